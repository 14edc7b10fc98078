;; Answers with the number of subjects in the batch as the time, in milliseconds: shows how batches
;; are made.
(func $classify (param i32 i32) (param $subjects i32) (param $n i32) (result i32)
    (i64.store offset=8 (global.get $reason) (i64.extend_i32_u (local.get $n)))
    (call $well_behaved (local.get $subjects) (local.get $n)))
