;; Says what it is after 99,500,000 units of fuel, of which it may use 100,000,000.
(func $describe (result i32)
    (local $i i32)
    (local.set $i (i32.const 19900000))
    (loop $again
        (br_if $again (local.tee $i (i32.sub (local.get $i) (i32.const 1)))))
    (call $static_description))
(func $misbehave (param $subjects i32) (param $n i32) (result i32)
    (call $well_behaved (local.get $subjects) (local.get $n)))
