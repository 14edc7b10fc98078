;; Logs a line that ends outside its memory: `bad-output`.
(func $misbehave (param $subjects i32) (param $n i32) (result i32)
    (call $log (i32.const 2) (i32.const 0xffffff00) (i32.const 4096))
    (call $well_behaved (local.get $subjects) (local.get $n)))
