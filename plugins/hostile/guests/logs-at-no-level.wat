;; Logs at a level that there is none of: `bad-output`.
(func $misbehave (param $subjects i32) (param $n i32) (result i32)
    (call $log (i32.const 99) (i32.const 0x1b0) (i32.const 2))
    (call $well_behaved (local.get $subjects) (local.get $n)))
