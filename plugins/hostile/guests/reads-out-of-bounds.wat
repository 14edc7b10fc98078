;; Follows a wild pointer: `trap`.
(func $misbehave (param $subjects i32) (param $n i32) (result i32)
    (i32.load (i32.const 0xfffffff0)))
