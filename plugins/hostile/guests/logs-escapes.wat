;; Logs a line that clears the terminal and pretends to be two: the host must write it escaped.
(data (i32.const 0x800) "\1b[2Jfirst\r\nforged second")
(func $misbehave (param $subjects i32) (param $n i32) (result i32)
    (call $log (i32.const 3) (i32.const 0x800) (i32.const 24))
    (call $well_behaved (local.get $subjects) (local.get $n)))
