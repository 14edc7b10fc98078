;; Returns a finding that rests on event 99 of a subject with fewer: `contract-violation`.
(func $misbehave (param $subjects i32) (param $n i32) (result i32)
    (i32.store (global.get $evidence) (i32.const 99))
    (call $find (local.get $subjects) (local.get $n) (global.get $finding) (i32.const 1)))
