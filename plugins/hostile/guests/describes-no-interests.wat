;; Says that no event is of interest: `description-invalid`.
(func $describe (result i32)
    (i32.store (i32.const 0x11c) (i32.const 0))
    (call $static_description))
