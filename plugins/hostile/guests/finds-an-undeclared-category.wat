;; Returns a finding with a category that its description does not name: `contract-violation`.
(data (i32.const 0x800) "undeclared")
(func $misbehave (param $subjects i32) (param $n i32) (result i32)
    (i32.store (global.get $finding) (i32.const 0x800))
    (i32.store offset=4 (global.get $finding) (i32.const 10))
    (call $find (local.get $subjects) (local.get $n) (global.get $finding) (i32.const 1)))
