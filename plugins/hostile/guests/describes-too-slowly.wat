;; Says what it is after 100,500,000 units of fuel, of which it may use 100,000,000: `describe-failed`.
(func $describe (result i32)
    (local $i i32)
    (local.set $i (i32.const 20100000))
    (loop $again
        (br_if $again (local.tee $i (i32.sub (local.get $i) (i32.const 1)))))
    (call $static_description))
