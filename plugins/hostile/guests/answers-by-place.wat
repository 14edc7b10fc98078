;; Answers with the place of the poisonous subject within the batch as the time of its reason, in milliseconds. It
;; is pure on whatever a host makes up to try it with: only who asks twice about real subjects finds out.
(func $misbehave (param $subjects i32) (param $n i32) (result i32)
    (local $answer i32) (local $reason i32)
    (local.set $reason (call $alloc (i32.const 32)))
    (memory.copy (local.get $reason) (global.get $reason) (i32.const 32))
    (i64.store offset=8 (local.get $reason)
        (i64.extend_i32_u (call $poison_index (local.get $subjects) (local.get $n))))
    (local.set $answer (call $well_behaved (local.get $subjects) (local.get $n)))
    (i32.store offset=8 (call $poison_outcome (local.get $answer) (local.get $subjects) (local.get $n)) (local.get $reason))
    (local.get $answer))
