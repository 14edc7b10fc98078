;; Says that it wants Events about Nodes, and traps on a Pod: the host must not ask it about one.
(data (i32.const 0x800) "Node")
(data (i32.const 0x808) (i32 0x800 4))
(func $describe (result i32)
    (i32.store (i32.const 0x300) (i32.const 0x808))
    (i32.store (i32.const 0x304) (i32.const 1))
    (call $static_description))
;; The kind of its object is at 8.
(func $classify (param $settings i32) (param $settings_length i32) (param $subjects i32) (param $n i32) (result i32)
    (if (i32.ne (i32.load align=1 (i32.load offset=8 (local.get $subjects))) (i32.const 0x65646f4e)) ;; Node
        (then unreachable))
    (call $well_behaved (local.get $subjects) (local.get $n)))
