;; Recurses without end on the native stack, none of it in its memory: `stack-overflow`.
(func $misbehave (param $subjects i32) (param $n i32) (result i32)
    ;; The addition keeps it from being a tail call.
    (i32.add (i32.const 1) (call $misbehave (local.get $n) (local.get $subjects))))
