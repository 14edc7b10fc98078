;; Returns 10,000 small findings for one subject, each with a key of its own: `output-limit`.
(func $misbehave (param $subjects i32) (param $n i32) (result i32)
    (local $findings i32) (local $finding i32) (local $keys i32) (local $key i32) (local $i i32)
    (local.set $findings (call $alloc (i32.const 520000)))
    (local.set $finding (local.get $findings))
    (local.set $keys (call $alloc (i32.const 40000)))
    (loop $again
        (memory.copy (local.get $finding) (global.get $finding) (i32.const 52))
        ;; Four letters, A to P: one for each four bits of the number.
        (local.set $key (i32.add (local.get $keys) (i32.shl (local.get $i) (i32.const 2))))
        (i32.store (local.get $key) (i32.add (i32.const 0x41414141) (i32.or
            (i32.or
                (i32.and (local.get $i) (i32.const 0xf))
                (i32.shl (i32.and (local.get $i) (i32.const 0xf0)) (i32.const 4)))
            (i32.or
                (i32.shl (i32.and (local.get $i) (i32.const 0xf00)) (i32.const 8))
                (i32.shl (i32.and (local.get $i) (i32.const 0xf000)) (i32.const 12))))))
        (i32.store offset=16 (local.get $finding) (local.get $key))
        (i32.store offset=20 (local.get $finding) (i32.const 4))
        (local.set $finding (i32.add (local.get $finding) (i32.const 52)))
        (br_if $again (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 10000))))
    (call $find (local.get $subjects) (local.get $n) (local.get $findings) (i32.const 10000)))
