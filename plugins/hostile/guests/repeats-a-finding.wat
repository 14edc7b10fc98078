;; Returns two findings with the key `twin`, and so of one identity: `contract-violation`.
(data (i32.const 0x800) "twin")
(func $misbehave (param $subjects i32) (param $n i32) (result i32)
    (i32.store offset=8 (global.get $finding) (i32.const 0x1a8))
    (i32.store offset=16 (global.get $finding) (i32.const 0x800))
    (i32.store offset=20 (global.get $finding) (i32.const 4))
    (memory.copy (i32.add (global.get $finding) (i32.const 52)) (global.get $finding) (i32.const 52))
    (call $find (local.get $subjects) (local.get $n) (global.get $finding) (i32.const 2)))
