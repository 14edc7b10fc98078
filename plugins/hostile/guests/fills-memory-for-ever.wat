;; Lets single instructions do much: `out-of-fuel`, as bulk memory costs fuel by the byte.
(func $misbehave (param $subjects i32) (param $n i32) (result i32)
    (drop (memory.grow (i32.const 128)))
    (loop $again
        (memory.fill (i32.const 0x10000) (i32.const 0) (i32.const 0x800000))
        (br $again))
    unreachable)
