;; Grows a table until it is refused and copes: the host must bound it (eight bytes an element of the
;; host's own memory) and take its answer.
(table $table 0 funcref)
(func $misbehave (param $subjects i32) (param $n i32) (result i32)
    (loop $again
        (br_if $again (i32.ne (table.grow $table (ref.null func) (i32.const 1000)) (i32.const -1))))
    (call $well_behaved (local.get $subjects) (local.get $n)))
