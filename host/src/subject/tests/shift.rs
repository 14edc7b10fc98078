//! Which subjects of an object a change of its bucket gives other records.

use std::collections::BTreeSet;

use super::*;

/// A change of the bucket of one pod.
enum Step {
    /// Name and uid of the Event, uid of the pod, minute of first and last sight.
    Put(&'static str, &'static str, &'static str, u32),
    Remove(&'static str),
}
use Step::{Put as P, Remove as R};

fn record(name: &str, uid: &str, pod: &str, minute: u32) -> (ObjectKey, Record) {
    let at = format!("2026-01-01T00:{minute:02}:00Z");
    let json = serde_json::json!({
        "metadata": { "namespace": "ns", "name": name, "uid": uid },
        "regarding": { "kind": "Pod", "namespace": "ns", "name": "pod", "uid": pod },
        "deprecatedFirstTimestamp": at,
        "deprecatedLastTimestamp": at,
    })
    .to_string();
    Record::pare_down(
        &serde_json::from_str(&json).unwrap(),
        Caps::default(),
        &Interner::default(),
    )
    .unwrap()
}

/// Wants who loses and who gets a record by a change after these steps, and who the
/// subject without a uid turns out to be.
#[track_caller]
fn check_shift(
    before: &[Step],
    change: &Step,
    lost: &[&str],
    gained: &[&str],
    became: Option<&str>,
) {
    let store = Store::default();
    for it in before {
        let P(name, uid, pod, minute) = it else {
            unreachable!()
        };
        let (object, record) = record(name, uid, pod, *minute);
        store.put(object, record, Confirmation::default());
    }
    let object = ObjectKey::new("ns", "Pod", "pod").unwrap();
    let shift = store.view(&object, |bucket| {
        let after = match change {
            P(name, uid, pod, minute) => bucket.with(record(name, uid, pod, *minute).1),
            R(name) => bucket.without(&record(name, "", "", 10).1),
        };
        Shift::between(&Owners::of(bucket), &Owners::of(&after))
    });
    let shift = shift.unwrap();
    let texts = |uids: &BTreeSet<Uid>| uids.iter().map(Uid::to_string).collect::<Vec<_>>();
    assert_eq!(texts(&shift.lost), lost);
    assert_eq!(texts(&shift.gained), gained);
    assert_eq!(
        shift.unnamed_became.map(|it| it.to_string()).as_deref(),
        became
    );
}

#[test]
fn a_record_that_says_whose_it_is_moves_nobody() {
    check_shift(
        &[P("a", "1", "x", 10)],
        &P("b", "2", "x", 20),
        &[],
        &[],
        None,
    );
    check_shift(
        &[P("a", "1", "x", 10)],
        &P("b", "2", "y", 20),
        &[],
        &[],
        None,
    );
    check_shift(
        &[P("a", "1", "x", 10)],
        &P("b", "2", "", 20),
        &[],
        &[],
        None,
    );
    check_shift(
        &[P("a", "1", "x", 10)],
        &P("a", "1", "x", 20),
        &[],
        &[],
        None,
    );
    check_shift(&[P("a", "1", "", 10)], &P("b", "2", "", 20), &[], &[], None);
}

#[test]
fn a_uid_that_appears_takes_what_had_none() {
    let unnamed = [P("a", "1", "", 10), P("b", "2", "", 20)];
    check_shift(&unnamed, &P("c", "3", "x", 30), &[""], &["x"], Some("x"));
    check_shift(&unnamed, &P("c", "3", "x", 5), &[""], &["x"], Some("x"));
    // A new version of an Event says whose it is.
    check_shift(&unnamed, &P("a", "1", "x", 10), &[""], &["x"], Some("x"));
    check_shift(
        &unnamed[..1],
        &P("a", "1", "x", 10),
        &[""],
        &["x"],
        Some("x"),
    );
    // So does another Event under its name; what it replaces moves nowhere.
    check_shift(&unnamed, &P("a", "9", "x", 10), &[""], &["x"], Some("x"));
    check_shift(&unnamed[..1], &P("a", "9", "x", 10), &[""], &[], None);
}

#[test]
fn a_successor_takes_what_came_after_it() {
    let before = [
        P("a", "1", "x", 10),
        P("b", "2", "", 15),
        P("c", "3", "", 25),
    ];
    check_shift(&before, &P("d", "4", "y", 20), &["x"], &["y"], None);
    check_shift(&before, &P("d", "4", "y", 30), &[], &[], None);
    // A new version of an Event may have been seen later than its successor was.
    let before = [
        P("a", "1", "x", 10),
        P("d", "4", "y", 20),
        P("b", "2", "", 15),
    ];
    check_shift(&before, &P("b", "2", "", 25), &["x"], &["y"], None);
}

#[test]
fn what_goes_away_is_lost_and_may_leave_others_to_another() {
    let before = [
        P("a", "1", "x", 10),
        P("d", "4", "y", 20),
        P("c", "3", "", 25),
    ];
    check_shift(&before, &R("c"), &["y"], &[], None);
    check_shift(&before, &R("a"), &["x"], &[], None);
    check_shift(&before, &R("d"), &["y"], &["x"], None);
    check_shift(&before, &R("nothing"), &[], &[], None);
    check_shift(&before, &P("d", "9", "y", 20), &["y"], &[], None);
    // With the last that knew it, the uid is forgotten.
    let before = [P("a", "1", "x", 10), P("c", "3", "", 25)];
    check_shift(&before, &R("a"), &["x"], &[""], None);
    check_shift(&before, &P("a", "1", "", 10), &["x"], &[""], None);
}
