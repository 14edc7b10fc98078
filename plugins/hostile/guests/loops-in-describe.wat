;; Never says what it is: `describe-failed`.
(func $describe (result i32)
    (loop $again (br $again))
    unreachable)
