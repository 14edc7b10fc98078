;; Logs a line of 1 MiB without end: `out-of-fuel`, if a line beyond the bound costs the host next to
;; nothing, for the guest pays a few units of fuel for it.
(func $misbehave (param $subjects i32) (param $n i32) (result i32)
    (local $text i32)
    (local.set $text (call $alloc (i32.const 0x100000)))
    (loop $again
        (call $log (i32.const 2) (local.get $text) (i32.const 0x100000))
        (br $again))
    unreachable)
