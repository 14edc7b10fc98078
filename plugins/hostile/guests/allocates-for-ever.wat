;; Allocates 1 MiB at a time and gives up when it gets no more: `memory-limit`.
(func $misbehave (param $subjects i32) (param $n i32) (result i32)
    (loop $again
        (br_if $again (i32.ne (memory.grow (i32.const 16)) (i32.const -1))))
    unreachable)
