;; Says that it has 1,001 codes: `description-invalid`, as each may become a label of a metric.
(func $describe (result i32)
    (local $codes i32) (local $i i32)
    (local.set $codes (call $alloc (i32.const 8008)))
    (loop $again
        (i64.store (i32.add (local.get $codes) (i32.shl (local.get $i) (i32.const 3))) (i64.load (i32.const 0x1f8)))
        (br_if $again (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 1001))))
    (i32.store (i32.const 0x140) (local.get $codes))
    (i32.store (i32.const 0x144) (i32.const 1001))
    (call $static_description))
