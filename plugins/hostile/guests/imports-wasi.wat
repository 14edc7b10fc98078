;; Wants to know what time it is: `forbidden-import`.
;; wit: world plugin { => package wasi:clocks@0.2.0 { interface monotonic-clock { now: func() -> u64; } } world plugin { import wasi:clocks/monotonic-clock@0.2.0;
;; prelude: (import "portent => (import "wasi:clocks/monotonic-clock@0.2.0" "now" (func $now (result i64))) (import "portent
(func $misbehave (param $subjects i32) (param $n i32) (result i32)
    (drop (call $now))
    (call $well_behaved (local.get $subjects) (local.get $n)))
