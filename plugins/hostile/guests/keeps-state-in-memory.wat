;; Leaves a mark high in its memory, and fails where it finds one: the host must never hand out memory twice
;; without clearing it.
(func $classify (param $settings i32) (param $settings_length i32) (param $subjects i32) (param $n i32) (result i32)
    (drop (memory.grow (i32.sub (i32.const 200) (memory.size))))
    (if (i32.load (i32.const 0xc7fff0)) (then unreachable))
    (i32.store (i32.const 0xc7fff0) (i32.const 1))
    (call $well_behaved (local.get $subjects) (local.get $n)))
