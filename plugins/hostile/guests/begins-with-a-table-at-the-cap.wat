;; Wants a table of the 20,000 elements that it may have, before it does anything.
(table 20000 funcref)
(func $misbehave (param $subjects i32) (param $n i32) (result i32)
    (call $well_behaved (local.get $subjects) (local.get $n)))
