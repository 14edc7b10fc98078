;; Wants the 16 MiB of memory that it may have, before it does anything.
;; prelude: (memory (export "memory") 2) => (memory (export "memory") 256)
(func $misbehave (param $subjects i32) (param $n i32) (result i32)
    (call $well_behaved (local.get $subjects) (local.get $n)))
