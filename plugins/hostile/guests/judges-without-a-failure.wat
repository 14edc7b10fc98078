;; Returns a verdict on a subject without a failure: `contract-violation`.
(func $misbehave (param $subjects i32) (param $n i32) (result i32)
    (local $answer i32) (local $outcome i32)
    (local.set $answer (call $well_behaved (local.get $subjects) (local.get $n)))
    (local.set $outcome (call $poison_outcome (local.get $answer) (local.get $subjects) (local.get $n)))
    (i32.store offset=16 (local.get $outcome) (i32.const 1))
    (i32.store offset=20 (local.get $outcome) (i32.const 0x1a8))
    (i32.store offset=24 (local.get $outcome) (i32.const 7))
    (local.get $answer))
