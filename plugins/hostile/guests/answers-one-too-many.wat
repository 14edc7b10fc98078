;; Returns an outcome too many: `contract-violation`.
(func $misbehave (param $subjects i32) (param $n i32) (result i32)
    (call $well_behaved (local.get $subjects) (i32.add (local.get $n) (i32.const 1))))
