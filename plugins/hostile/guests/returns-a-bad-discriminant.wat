;; Returns a finding of severity 77: `bad-output`.
(func $misbehave (param $subjects i32) (param $n i32) (result i32)
    (i32.store8 offset=24 (global.get $finding) (i32.const 77))
    (call $find (local.get $subjects) (local.get $n) (global.get $finding) (i32.const 1)))
