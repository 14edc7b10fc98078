;; Cannot say what it is: `describe-failed`.
(func $describe (result i32)
    unreachable)
