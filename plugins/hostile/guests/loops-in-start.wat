;; Never comes up: `instantiate-failed`.
(func $start
    (loop $again (br $again)))
(start $start)
