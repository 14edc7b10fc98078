;; Returns an additional reason of event 98 of a subject with fewer: `contract-violation`.
(func $misbehave (param $subjects i32) (param $n i32) (result i32)
    (local $answer i32) (local $reason i32)
    (local.set $reason (call $alloc (i32.const 32)))
    (i32.store offset=16 (local.get $reason) (i32.const 98))
    (local.set $answer (call $well_behaved (local.get $subjects) (local.get $n)))
    (i32.store offset=8 (call $poison_outcome (local.get $answer) (local.get $subjects) (local.get $n)) (local.get $reason))
    (local.get $answer))
