;; Panics with a message of 10 KB, most of it NUL: `panic` with its beginning, cut and escaped.
(data (i32.const 0x10000) "panicked at src/lib.rs:8:9: \1b[2J")
(func $misbehave (param $subjects i32) (param $n i32) (result i32)
    (call $log (i32.const 3) (i32.const 0x10000) (i32.const 10240))
    unreachable)
