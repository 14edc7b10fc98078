;; Returns a finding without evidence: `contract-violation`.
(func $misbehave (param $subjects i32) (param $n i32) (result i32)
    (i32.store offset=40 (global.get $finding) (i32.const 0))
    (call $find (local.get $subjects) (local.get $n) (global.get $finding) (i32.const 1)))
