;; Returns a finding with a code that its description does not name: `contract-violation`.
(data (i32.const 0x800) "Undeclared")
(func $misbehave (param $subjects i32) (param $n i32) (result i32)
    (i32.store offset=8 (global.get $finding) (i32.const 0x800))
    (i32.store offset=12 (global.get $finding) (i32.const 10))
    (call $find (local.get $subjects) (local.get $n) (global.get $finding) (i32.const 1)))
