;; Returns an error of its own: `guest-error` with its text.
(data (i32.const 0x800) "cannot do this")
(data (i32.const 0x810) (i32 1 0x800 14))
(func $misbehave (param $subjects i32) (param $n i32) (result i32)
    (i32.const 0x810))
