;; Returns 100,000 additional reasons that share one text of 1 MiB, 100 GB in all: `output-limit`.
(func $misbehave (param $subjects i32) (param $n i32) (result i32)
    (local $answer i32) (local $outcome i32) (local $reasons i32) (local $reason i32) (local $end i32) (local $text i64)
    (local.set $text (i64.or
        (i64.extend_i32_u (call $alloc (i32.const 0x100000)))
        (i64.shl (i64.const 0x100000) (i64.const 32))))
    (local.set $reasons (call $alloc (i32.const 3200000)))
    (local.set $reason (local.get $reasons))
    (local.set $end (i32.add (local.get $reasons) (i32.const 3200000)))
    (loop $again
        (i64.store (local.get $reason) (local.get $text))
        (br_if $again (i32.ne (local.tee $reason (i32.add (local.get $reason) (i32.const 32))) (local.get $end))))
    (local.set $answer (call $well_behaved (local.get $subjects) (local.get $n)))
    (local.set $outcome (call $poison_outcome (local.get $answer) (local.get $subjects) (local.get $n)))
    (i32.store offset=8 (local.get $outcome) (local.get $reasons))
    (i32.store offset=12 (local.get $outcome) (i32.const 100000))
    (local.get $answer))
