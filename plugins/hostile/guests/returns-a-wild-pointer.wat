;; Returns its answer outside its memory: `bad-output`.
(func $misbehave (param $subjects i32) (param $n i32) (result i32)
    (i32.const 0xfffffff0))
