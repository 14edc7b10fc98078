;; Does not take the empty settings, and none are given: `settings-invalid` with its text.
(data (i32.const 0x800) "team: missing; write the team's name")
(data (i32.const 0x830) (i32 1 0x800 36))
(func $check_settings (param i32 i32) (result i32)
    (i32.const 0x830))
