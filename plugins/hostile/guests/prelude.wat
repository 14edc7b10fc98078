;; What every guest of the tests begins with; `support::component` puts a guest's own part behind it.
;;
;; A guest behaves well unless a subject whose name begins with `poison` is in the batch: then
;; `$misbehave`, which the guest defines, answers. So a guest passes the trial run of its loading, and
;; the subjects beside the poisonous one show whether the host told them apart.
;;
;; In place of what is here a guest may define `$describe`, `$check_settings`, `$classify` and
;; `$guest_realloc`, and `$post_return` in place of none.
;;
;; Addresses are fixed, and nothing is ever freed: an instance lives for one batch.

(import "portent:classifier/log@0.1.0" "log" (func $log (param $level i32) (param $text i32) (param $length i32)))

(memory (export "memory") 2)

;; 0x100: `description`, 80 bytes.
(data (i32.const 0x100)
    (i32 0x400 @NAME_LENGTH@)   ;; name
    (i32 0x180 5)               ;; version
    (i32 0x188 15)              ;; summary
    (i32 0x300 1)               ;; interests: one without a field, which every event meets
    (i32 0)                     ;; failures
    (i32 0 0)                   ;; reads
    (i32 0 0 0)                 ;; settings-schema
    (i32 0x1f0 1)               ;; categories
    (i32 0x1f8 1)               ;; codes
    (i32 0 0))                  ;; attributes
(data (i32.const 0x180) "0.0.1")
(data (i32.const 0x188) "a hostile guest")
(data (i32.const 0x1a0) "hostile")
(data (i32.const 0x1a8) "Hostile")
(data (i32.const 0x1b0) "ok")
(data (i32.const 0x1f0) (i32 0x1a0 7))
(data (i32.const 0x1f8) (i32 0x1a8 7))
(data (i32.const 0x400) "@NAME@")

;; `additional-reason`, 32 bytes: text, at, event and attributes.
(global $reason i32 (i32.const 0x200))
(data (i32.const 0x200) (i32 0x1b0 2) (i64 0) (i32 0) (i32 0 0))

;; `finding`, 52 bytes, and room for a second one. Its evidence is a list of one index.
(global $finding i32 (i32.const 0x240))
(global $evidence i32 (i32.const 0x220))
(data (i32.const 0x240)
    (i32 0x1a0 7)               ;; category
    (i32 0x1a8 7)               ;; code
    (i32 0 0)                   ;; key
    (i32 0)                     ;; severity, status and blame, a byte each
    (i32 0x1b0 2)               ;; message
    (i32 0x220 1)               ;; evidence
    (i32 0 0))                  ;; attributes

;; 0x800 to 0xfff is the guest's own.
(global $top (mut i32) (i32.const 0x1000))

;; Strings cross in the encoding that they have, so the host never asks for an old block to be resized.
(func $realloc (param $old i32) (param $old_size i32) (param $align i32) (param $size i32) (result i32)
    (local $at i32)
    (local.set $at (i32.and
        (i32.sub (i32.add (global.get $top) (local.get $align)) (i32.const 1))
        (i32.sub (i32.const 0) (local.get $align))))
    (global.set $top (i32.add (local.get $at) (local.get $size)))
    (block $fits
        (br_if $fits (i32.le_u (global.get $top) (i32.shl (memory.size) (i32.const 16))))
        (br_if $fits (i32.ne (i32.const -1) (memory.grow (i32.shr_u
            (i32.add (i32.sub (global.get $top) (i32.shl (memory.size) (i32.const 16))) (i32.const 0xffff))
            (i32.const 16)))))
        unreachable)
    (local.get $at))

;; Fresh memory is zero, and so is what comes from here.
(func $alloc (param $size i32) (result i32)
    (call $realloc (i32.const 0) (i32.const 0) (i32.const 8) (local.get $size)))

(func $static_description (result i32)
    (i32.const 0x100))

;; `ok`: twelve bytes of zero.
(func $accept_settings (param i32 i32) (result i32)
    (i32.const 0))

;; Index of the first poisonous subject; how many there are when none is. A `subject` has 184 bytes,
;; and the name of its object is at 24.
(func $poison_index (param $subjects i32) (param $n i32) (result i32)
    (local $i i32) (local $name i32)
    (block $end
        (loop $next
            (br_if $end (i32.ge_u (local.get $i) (local.get $n)))
            (block $other
                (br_if $other (i32.lt_u (i32.load offset=28 (local.get $subjects)) (i32.const 6)))
                (local.set $name (i32.load offset=24 (local.get $subjects)))
                (br_if $other (i32.ne (i32.load align=1 (local.get $name)) (i32.const 0x73696f70))) ;; pois
                (br_if $other (i32.ne (i32.load16_u offset=4 align=1 (local.get $name)) (i32.const 0x6e6f))) ;; on
                (br $end))
            (local.set $subjects (i32.add (local.get $subjects) (i32.const 184)))
            (local.set $i (i32.add (local.get $i) (i32.const 1)))
            (br $next)))
    (local.get $i))

(func $poison (param $subjects i32) (param $n i32) (result i32)
    (i32.ne (call $poison_index (local.get $subjects) (local.get $n)) (local.get $n)))

;; `ok` of a list of outcomes.
(func $answer (param $outcomes i32) (param $n i32) (result i32)
    (local $answer i32)
    (local.set $answer (call $alloc (i32.const 12)))
    (i32.store offset=4 (local.get $answer) (local.get $outcomes))
    (i32.store offset=8 (local.get $answer) (local.get $n))
    (local.get $answer))

;; One outcome a subject, 72 bytes, with one additional reason at 8: they all share one.
(func $well_behaved (param $subjects i32) (param $n i32) (result i32)
    (local $outcomes i32) (local $outcome i32) (local $end i32)
    (local.set $outcomes (call $alloc (i32.mul (local.get $n) (i32.const 72))))
    (local.set $outcome (local.get $outcomes))
    (local.set $end (i32.add (local.get $outcomes) (i32.mul (local.get $n) (i32.const 72))))
    (block $done
        (loop $next
            (br_if $done (i32.eq (local.get $outcome) (local.get $end)))
            (i32.store offset=8 (local.get $outcome) (global.get $reason))
            (i32.store offset=12 (local.get $outcome) (i32.const 1))
            (local.set $outcome (i32.add (local.get $outcome) (i32.const 72)))
            (br $next)))
    (call $answer (local.get $outcomes) (local.get $n)))

;; The outcome of the poisonous subject within an answer.
(func $poison_outcome (param $answer i32) (param $subjects i32) (param $n i32) (result i32)
    (i32.add
        (i32.load offset=4 (local.get $answer))
        (i32.mul (call $poison_index (local.get $subjects) (local.get $n)) (i32.const 72))))

;; The good answer, but with these findings on the poisonous subject.
(func $find (param $subjects i32) (param $n i32) (param $findings i32) (param $how_many i32) (result i32)
    (local $answer i32) (local $outcome i32)
    (local.set $answer (call $well_behaved (local.get $subjects) (local.get $n)))
    (local.set $outcome (call $poison_outcome (local.get $answer) (local.get $subjects) (local.get $n)))
    (i32.store (local.get $outcome) (local.get $findings))
    (i32.store offset=4 (local.get $outcome) (local.get $how_many))
    (local.get $answer))

(func $well_behaved_unless_poisoned (param $settings i32) (param $settings_length i32) (param $subjects i32) (param $n i32) (result i32)
    (if (result i32) (call $poison (local.get $subjects) (local.get $n))
        (then (call $misbehave (local.get $subjects) (local.get $n)))
        (else (call $well_behaved (local.get $subjects) (local.get $n)))))
