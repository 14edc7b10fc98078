;; Grows its memory until it is refused, touches every page of it and copes: the host must have all of it, and
;; take its answer.
(func $misbehave (param $subjects i32) (param $n i32) (result i32)
    (local $at i32) (local $end i32)
    (loop $again
        (br_if $again (i32.ne (memory.grow (i32.const 1)) (i32.const -1))))
    (local.set $at (i32.const 0x10000))
    (local.set $end (i32.shl (memory.size) (i32.const 16)))
    (loop $next
        (i32.store8 offset=64 (local.get $at) (i32.const 1))
        (local.set $at (i32.add (local.get $at) (i32.const 4096)))
        (br_if $next (i32.lt_u (local.get $at) (local.get $end))))
    (call $well_behaved (local.get $subjects) (local.get $n)))
