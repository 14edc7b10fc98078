;; Grows its memory until it is refused and copes: the host must take its answer.
(func $misbehave (param $subjects i32) (param $n i32) (result i32)
    (loop $again
        (br_if $again (i32.ne (memory.grow (i32.const 1)) (i32.const -1))))
    (call $well_behaved (local.get $subjects) (local.get $n)))
