;; Says that it reads the uids of Events only, and traps when their controllers do not come: `trap`.
(data (i32.const 0x800) "event.uid")
(data (i32.const 0x810) (i32 0x800 9))
(func $describe (result i32)
    (i32.store (i32.const 0x124) (i32.const 0x810))
    (i32.store (i32.const 0x128) (i32.const 1))
    (call $static_description))
;; The events of a subject are at 168, and the controller of an event, an option, at 72.
(func $misbehave (param $subjects i32) (param $n i32) (result i32)
    (local $subject i32)
    (local.set $subject (i32.add
        (local.get $subjects)
        (i32.mul (call $poison_index (local.get $subjects) (local.get $n)) (i32.const 184))))
    (if (i32.eqz (i32.load8_u offset=72 (i32.load offset=168 (local.get $subject)))) (then unreachable))
    (call $well_behaved (local.get $subjects) (local.get $n)))
