;; Never comes back while the host hands over its arguments: `out-of-fuel`. The name is there in full when the
;; room for the uid after it is asked for.
(global $latest (mut i32) (i32.const 0))
(func $guest_realloc (param $old i32) (param $old_size i32) (param $align i32) (param $size i32) (result i32)
    (if (i32.eq (i32.load align=1 (global.get $latest)) (i32.const 0x73696f70))
        (then (loop $again (br $again))))
    (global.set $latest (call $realloc (local.get $old) (local.get $old_size) (local.get $align) (local.get $size)))
    (global.get $latest))
