;; Traps where there are more than two subjects: the host must ask again with fewer, and take its answers.
(func $classify (param $settings i32) (param $settings_length i32) (param $subjects i32) (param $n i32) (result i32)
    (if (i32.lt_u (i32.const 2) (local.get $n)) (then unreachable))
    (call $well_behaved (local.get $subjects) (local.get $n)))
