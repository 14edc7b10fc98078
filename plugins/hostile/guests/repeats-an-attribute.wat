;; Returns a finding with the attribute `twice` twice: `contract-violation`.
(data (i32.const 0x800) "twice")
(data (i32.const 0x810) (i32 0x800 5) (i32 0x1b0 2) (i32 0x800 5) (i32 0x1b0 2))
(func $misbehave (param $subjects i32) (param $n i32) (result i32)
    (i32.store offset=44 (global.get $finding) (i32.const 0x810))
    (i32.store offset=48 (global.get $finding) (i32.const 2))
    (call $find (local.get $subjects) (local.get $n) (global.get $finding) (i32.const 1)))
