//! When an Event was created, first seen and last seen, as it claims.

use proptest::prelude::*;

use super::*;

/// Nine o'clock, and so many minutes.
fn at(minute: u64) -> String {
    format!("2026-11-28T09:{minute:02}:00Z")
}

/// Minutes past nine; 0 stays 0, for unknown.
fn minute(ms: UnixMs) -> u64 {
    let nine: jiff::Timestamp = at(0).parse().unwrap();
    ms.saturating_sub(u64::try_from(nine.as_millisecond()).unwrap()) / 60_000
}

/// Claims, as minutes past nine, 0 for null: series, last, event time, first,
/// created. Wants last seen, first seen and created.
#[track_caller]
fn check(claims: [u64; 5], want: [u64; 3]) {
    let pointers = [
        "/series/lastObservedTime",
        "/deprecatedLastTimestamp",
        "/eventTime",
        "/deprecatedFirstTimestamp",
        "/metadata/creationTimestamp",
    ];
    let mut event = full();
    for (pointer, claim) in pointers.into_iter().zip(claims) {
        let value = if claim == 0 {
            Value::Null
        } else {
            at(claim).into()
        };
        set(&mut event, pointer, value);
    }
    for event in [in_core_spelling(&event), event] {
        let (_, it) = pare(&event).unwrap();
        let times = [it.last_seen(), it.first_seen(), it.created()];
        assert_eq!(times.map(minute), want, "{event}");
    }
}

#[test]
fn last_seen_is_the_latest_of_three_claims() {
    // All eight patterns of null.
    check([5, 4, 3, 2, 1], [5, 2, 1]);
    check([0, 4, 3, 2, 1], [4, 2, 1]);
    check([5, 0, 3, 2, 1], [5, 2, 1]);
    check([0, 0, 3, 2, 1], [3, 2, 1]);
    check([5, 4, 0, 2, 1], [5, 2, 1]);
    check([0, 4, 0, 2, 1], [4, 2, 1]);
    check([5, 0, 0, 2, 1], [5, 2, 1]);
    check([0, 0, 0, 2, 1], [2, 2, 1]);
    // Whichever of them it is.
    check([3, 4, 5, 2, 1], [5, 2, 1]);
    check([3, 5, 4, 2, 1], [5, 2, 1]);
    check([5, 3, 4, 2, 1], [5, 2, 1]);
    check([4, 4, 4, 2, 1], [4, 2, 1]);
}

#[test]
fn else_it_is_first_seen_else_created_else_unknown() {
    check([0, 0, 0, 2, 1], [2, 2, 1]);
    check([0, 0, 0, 2, 5], [2, 2, 5]);
    check([0, 0, 0, 0, 1], [1, 1, 1]);
    check([0, 0, 0, 2, 0], [2, 2, 2]);
    check([0, 0, 0, 0, 0], [0, 0, 0]);
    // An earlier claim is a claim: first seen is no later than last seen.
    check([0, 3, 0, 5, 1], [3, 3, 1]);
}

#[test]
fn first_seen_is_the_old_claim_else_the_new_one_else_created_else_last_seen() {
    check([5, 4, 3, 2, 1], [5, 2, 1]);
    check([5, 4, 3, 0, 1], [5, 3, 1]);
    check([5, 4, 0, 0, 1], [5, 1, 1]);
    check([5, 4, 0, 0, 0], [5, 5, 5]);
    check([0, 4, 0, 0, 0], [4, 4, 4]);
    check([5, 0, 0, 0, 0], [5, 5, 5]);
    check([5, 0, 3, 0, 0], [5, 3, 3]);
    // Created after it was last seen: the server's clock is another one.
    check([0, 4, 0, 0, 9], [4, 4, 9]);
}

#[test]
fn the_notes_of_the_corpus_say_when_each_was_last_seen() {
    let mut n_events = 0;
    for line in include_str!("../../../tests/fixtures/events.jsonl").lines() {
        let (_, record) = pare(&serde_json::from_str(line).unwrap()).unwrap();
        let want = match record.note().strip_prefix("last seen ").unwrap() {
            "unknown" => 0,
            // Replay has no clock: a stamp in the future stays what it claims.
            "receipt" => 32_472_144_000_000,
            known => known.parse::<jiff::Timestamp>().unwrap().as_millisecond(),
        };
        assert_eq!(
            record.last_seen(),
            u64::try_from(want).unwrap(),
            "{record:?}"
        );
        assert!(record.first_seen() <= record.last_seen(), "{record:?}");
        n_events += 1;
    }
    assert_eq!(n_events, 17);
}

/// A version of one Event: created, first seen, last seen, count.
fn version([created, first, last]: [u64; 3], count: u32) -> Record {
    let time = |it| {
        if it == 0 {
            Value::Null
        } else {
            Value::from(at(it))
        }
    };
    let event = with([
        ("/metadata/creationTimestamp", time(created)),
        ("/deprecatedFirstTimestamp", time(first)),
        ("/deprecatedLastTimestamp", time(last)),
        ("/series", Value::Null),
        ("/eventTime", Value::Null),
        ("/deprecatedCount", count.into()),
        ("/note", format!("seen {count} times").into()),
        ("/reason", format!("Reason{count}").into()),
        ("/type", format!("Type{count}").into()),
    ]);
    pare(&event).unwrap().1
}

#[track_caller]
fn check_after(earlier: [u64; 3], later: [u64; 3], want: [u64; 3]) {
    let it = version(later, 7).after(&version(earlier, 3));
    let times = [it.created(), it.first_seen(), it.last_seen()];
    assert_eq!(times.map(minute), want);
    assert_eq!((it.count(), it.note()), (7, "seen 7 times"));
    assert_eq!((it.reason(), it.event_type()), ("Reason7", "Type7"));
}

#[test]
fn an_update_keeps_its_creation_and_moves_last_seen_only_forward() {
    check_after([1, 2, 3], [1, 2, 5], [1, 2, 5]);
    check_after([1, 2, 5], [1, 2, 3], [1, 2, 5]);
    check_after([1, 2, 3], [1, 2, 3], [1, 2, 3]);
    check_after([2, 2, 3], [1, 2, 5], [2, 2, 5]);
    check_after([1, 3, 3], [1, 2, 5], [1, 2, 5]);
    check_after([1, 2, 3], [1, 4, 5], [1, 2, 5]);
}

#[test]
fn an_update_forgets_no_time_that_was_known_and_learns_those_that_were_not() {
    check_after([1, 2, 3], [0, 0, 0], [1, 2, 3]);
    check_after([0, 0, 0], [1, 2, 3], [1, 2, 3]);
    check_after([0, 0, 0], [0, 0, 0], [0, 0, 0]);
    check_after([0, 0, 3], [0, 2, 5], [3, 2, 5]);
}

#[test]
fn an_update_to_itself_is_itself() {
    for times in [[1, 2, 3], [0, 2, 3], [0, 0, 0], [5, 0, 3]] {
        let it = version(times, 3);
        assert_eq!(it.clone().after(&it), it);
    }
}

#[track_caller]
fn check_clamp(now: u64, times: [u64; 3], want: [u64; 3]) {
    let mut it = version(times, 3);
    let now = at(now).parse::<jiff::Timestamp>().unwrap().as_millisecond();
    let is_clamped = it.clamp(u64::try_from(now).unwrap());
    let clamped = [it.created(), it.first_seen(), it.last_seen()];
    assert_eq!(clamped.map(minute), want);
    assert_eq!(is_clamped, want != times);
    assert!(!it.clamp(u64::try_from(now).unwrap()), "once is enough");
}

#[test]
fn a_time_that_is_yet_to_come_is_taken_for_now() {
    check_clamp(5, [1, 2, 3], [1, 2, 3]);
    check_clamp(5, [5, 5, 5], [5, 5, 5]);
    check_clamp(5, [1, 2, 6], [1, 2, 5]);
    check_clamp(5, [1, 6, 7], [1, 5, 5]);
    check_clamp(5, [8, 6, 7], [5, 5, 5]);
    check_clamp(5, [8, 2, 3], [5, 2, 3]);
}

proptest! {
    /// What is read the short way is what the library reads.
    #[test]
    fn a_time_is_read_alike_whichever_way_it_is_read(
        text in "[0-9]{4}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-6][0-9]:[0-6][0-9](Z|z|[+]00:00|[.][0-9]{1,9}Z)?",
        at in 0..20_usize,
        other in proptest::char::range(' ', '~'),
    ) {
        let mut damaged = text.clone();
        damaged.replace_range(at..=at.min(text.len() - 1), &other.to_string());
        for text in [text, damaged] {
            let json = format!(r#"{{"eventTime": "{}"}}"#, text.replace(['\\', '"'], "?"));
            let wire: WireEvent<'_> = serde_json::from_str(&json).unwrap();
            let text = text.replace(['\\', '"'], "?");
            let want = text.parse::<jiff::Timestamp>().ok();
            let want = want.and_then(|it| u64::try_from(it.as_millisecond()).ok());
            prop_assert_eq!(wire.event_time, want.unwrap_or(0), "{}", text);
        }
    }
}
