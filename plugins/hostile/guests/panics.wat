;; Panics as the SDK does, which logs the message first: `panic` with that message.
(data (i32.const 0x800) "panicked at src/lib.rs:7:9: boom 42")
(func $misbehave (param $subjects i32) (param $n i32) (result i32)
    (call $log (i32.const 3) (i32.const 0x800) (i32.const 35))
    unreachable)
