;; Returns 20 additional reasons for a subject of three events, which may have 12: `output-limit`.
(func $misbehave (param $subjects i32) (param $n i32) (result i32)
    (local $answer i32) (local $outcome i32)
    (local.set $answer (call $well_behaved (local.get $subjects) (local.get $n)))
    (local.set $outcome (call $poison_outcome (local.get $answer) (local.get $subjects) (local.get $n)))
    (i32.store offset=8 (local.get $outcome) (call $alloc (i32.const 640)))
    (i32.store offset=12 (local.get $outcome) (i32.const 20))
    (local.get $answer))
