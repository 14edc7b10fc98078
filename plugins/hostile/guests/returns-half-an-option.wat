;; Returns a verdict that is neither there nor not: `bad-output`.
(func $misbehave (param $subjects i32) (param $n i32) (result i32)
    (local $answer i32)
    (local.set $answer (call $well_behaved (local.get $subjects) (local.get $n)))
    (i32.store8 offset=16 (call $poison_outcome (local.get $answer) (local.get $subjects) (local.get $n)) (i32.const 7))
    (local.get $answer))
