;; Wants what has our name and is not ours: `forbidden-import`.
;; wit: world plugin { => interface secrets { read: func() -> u32; } world plugin { import secrets;
;; prelude: (import "portent => (import "portent:classifier/secrets@0.1.0" "read" (func $read (result i32))) (import "portent
(func $misbehave (param $subjects i32) (param $n i32) (result i32)
    (drop (call $read))
    (call $well_behaved (local.get $subjects) (local.get $n)))
