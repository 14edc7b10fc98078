;; Built against a 0.1.1 with one more function, which it calls: `forbidden-import`, as the host has none.
;; wit: package portent:classifier@0.1.0; => package portent:classifier@0.1.1;
;; wit: log: func(level: level, message: string); => log: func(level: level, message: string); count: func() -> u32;
;; prelude: (import "portent => (import "portent:classifier/log@0.1.0" "count" (func $count (result i32))) (import "portent
(func $misbehave (param $subjects i32) (param $n i32) (result i32)
    (drop (call $count))
    (call $well_behaved (local.get $subjects) (local.get $n)))
