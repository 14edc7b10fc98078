;; Traps before it does anything: `instantiate-failed`.
(func $start
    unreachable)
(start $start)
