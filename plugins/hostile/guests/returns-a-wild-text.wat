;; Returns a text that ends outside its memory: `bad-output`.
(func $misbehave (param $subjects i32) (param $n i32) (result i32)
    (i32.store (global.get $reason) (i32.const 0xffffff00))
    (i32.store offset=4 (global.get $reason) (i32.const 4096))
    (call $well_behaved (local.get $subjects) (local.get $n)))
