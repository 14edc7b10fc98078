;; Logs a line that is not UTF-8: `bad-output`.
(data (i32.const 0x800) "\ff\fe")
(func $misbehave (param $subjects i32) (param $n i32) (result i32)
    (call $log (i32.const 2) (i32.const 0x800) (i32.const 2))
    (call $well_behaved (local.get $subjects) (local.get $n)))
