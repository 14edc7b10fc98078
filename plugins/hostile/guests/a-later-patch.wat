;; Built against a 0.1.1 with one more function: the host, which knows 0.1.0, must take it.
;; wit: package portent:classifier@0.1.0; => package portent:classifier@0.1.1;
;; wit: log: func(level: level, message: string); => log: func(level: level, message: string); enabled: func(level: level) -> bool;
(func $misbehave (param $subjects i32) (param $n i32) (result i32)
    (call $well_behaved (local.get $subjects) (local.get $n)))
