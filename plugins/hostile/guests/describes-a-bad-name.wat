;; Says that it is called `Not A Name!`: `description-invalid`.
(data (i32.const 0x800) "Not A Name!")
(func $describe (result i32)
    (i32.store (i32.const 0x100) (i32.const 0x800))
    (i32.store (i32.const 0x104) (i32.const 11))
    (call $static_description))
