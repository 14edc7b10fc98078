;; Returns a list of 1,000,000 outcomes that ends outside its memory: `bad-output`.
(func $misbehave (param $subjects i32) (param $n i32) (result i32)
    (call $answer (i32.const 0x1000) (i32.const 1000000)))
