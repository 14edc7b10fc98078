;; Logs 4,000 lines of 10 KB: the host must keep a few of them, say so, and take its answer.
(func $misbehave (param $subjects i32) (param $n i32) (result i32)
    (local $i i32) (local $text i32)
    (local.set $text (call $alloc (i32.const 10240)))
    (memory.fill (local.get $text) (i32.const 0x78) (i32.const 10240))
    (local.set $i (i32.const 4000))
    (loop $again
        (call $log (i32.const 2) (local.get $text) (i32.const 10240))
        (br_if $again (local.tee $i (i32.sub (local.get $i) (i32.const 1)))))
    (call $well_behaved (local.get $subjects) (local.get $n)))
