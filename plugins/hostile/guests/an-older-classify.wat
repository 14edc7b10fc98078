;; Built against a `classify` without settings under today's version: `abi-unsupported`.
;; wit: classify: func(settings: string, subjects: list<subject>) => classify: func(subjects: list<subject>)
(func $classify (param $subjects i32) (param $n i32) (result i32)
    (call $well_behaved (local.get $subjects) (local.get $n)))
