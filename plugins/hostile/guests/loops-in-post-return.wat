;; Answers well and never comes back from the clean-up after it: `out-of-fuel`.
(global $poisoned (mut i32) (i32.const 0))
(func $misbehave (param $subjects i32) (param $n i32) (result i32)
    (global.set $poisoned (i32.const 1))
    (call $well_behaved (local.get $subjects) (local.get $n)))
(func $post_return (param $answer i32)
    (loop $again (br_if $again (global.get $poisoned))))
