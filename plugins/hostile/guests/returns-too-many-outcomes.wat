;; Returns 200,000 empty outcomes, 14 MB that cost it nothing: `output-limit`.
(func $misbehave (param $subjects i32) (param $n i32) (result i32)
    (call $answer (call $alloc (i32.const 14400000)) (i32.const 200000)))
