;; Returns a result that is neither ok nor an error: `bad-output`.
(func $misbehave (param $subjects i32) (param $n i32) (result i32)
    (local $answer i32)
    (local.set $answer (call $well_behaved (local.get $subjects) (local.get $n)))
    (i32.store8 (local.get $answer) (i32.const 2))
    (local.get $answer))
