;; Returns one text of 1 MiB, which is less than may cross in all: `output-limit`.
(func $misbehave (param $subjects i32) (param $n i32) (result i32)
    (i32.store offset=28 (global.get $finding) (call $alloc (i32.const 0x100000)))
    (i32.store offset=32 (global.get $finding) (i32.const 0x100000))
    (call $find (local.get $subjects) (local.get $n) (global.get $finding) (i32.const 1)))
