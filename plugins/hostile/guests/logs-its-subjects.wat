;; Logs a line for each call, with an `s` for each subject: shows how batches are made, and answers well.
(func $classify (param $settings i32) (param $settings_length i32) (param $subjects i32) (param $n i32) (result i32)
    (memory.fill (i32.const 0x800) (i32.const 0x73) (local.get $n))
    (call $log (i32.const 2) (i32.const 0x800) (local.get $n))
    (call $well_behaved (local.get $subjects) (local.get $n)))
