;; Returns an error of 1 MiB of NUL: `guest-error`, cut and escaped.
(func $misbehave (param $subjects i32) (param $n i32) (result i32)
    (i32.store (i32.const 0x810) (i32.const 1))
    (i32.store (i32.const 0x814) (call $alloc (i32.const 0x100000)))
    (i32.store (i32.const 0x818) (i32.const 0x100000))
    (i32.const 0x810))
