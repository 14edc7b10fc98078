;; Wants 17 MiB of memory, of which it may have 16, before it does anything: `compile-failed`.
;; prelude: (memory (export "memory") 2) => (memory (export "memory") 272)
