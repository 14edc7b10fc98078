;; Returns a text that is not UTF-8: `bad-output`.
(data (i32.const 0x800) "\ff\fe")
(func $misbehave (param $subjects i32) (param $n i32) (result i32)
    (i32.store (global.get $reason) (i32.const 0x800))
    (call $well_behaved (local.get $subjects) (local.get $n)))
