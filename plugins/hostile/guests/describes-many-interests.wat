;; Says that notes may contain any of 100,000 texts, 100 for each of 1,000 interests, which share one list. The
;; host would look for each of them in each Event, and no fuel is spent on that: `description-invalid`.
(func $describe (result i32)
    (local $texts i32) (local $interests i32) (local $i i32)
    (local.set $texts (call $alloc (i32.const 800)))
    (loop $again
        ;; One NUL, which no note has.
        (i64.store (i32.add (local.get $texts) (i32.shl (local.get $i) (i32.const 3))) (i64.const 0x100000900))
        (br_if $again (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 100))))
    (local.set $interests (call $alloc (i32.const 56000)))
    (local.set $i (local.get $interests))
    (loop $again
        (i32.store offset=40 (local.get $i) (local.get $texts))
        (i32.store offset=44 (local.get $i) (i32.const 100))
        (br_if $again (i32.lt_u
            (local.tee $i (i32.add (local.get $i) (i32.const 56)))
            (i32.add (local.get $interests) (i32.const 56000)))))
    (i32.store (i32.const 0x118) (local.get $interests))
    (i32.store (i32.const 0x11c) (i32.const 1000))
    (call $static_description))
