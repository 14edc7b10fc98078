;; Never comes back: `out-of-fuel`.
(func $misbehave (param $subjects i32) (param $n i32) (result i32)
    (loop $again (br $again))
    unreachable)
