;; Logs three short lines and answers well.
(data (i32.const 0x800) "line of three")
(func $misbehave (param $subjects i32) (param $n i32) (result i32)
    (call $log (i32.const 2) (i32.const 0x800) (i32.const 13))
    (call $log (i32.const 2) (i32.const 0x800) (i32.const 13))
    (call $log (i32.const 2) (i32.const 0x800) (i32.const 13))
    (call $well_behaved (local.get $subjects) (local.get $n)))
