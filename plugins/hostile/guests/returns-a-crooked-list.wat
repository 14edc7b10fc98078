;; Returns a list of outcomes at an address that is no multiple of eight: `bad-output`.
(func $misbehave (param $subjects i32) (param $n i32) (result i32)
    (call $answer (i32.const 0x1001) (local.get $n)))
