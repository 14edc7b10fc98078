//! Which subject each record belongs to, and what a subject shows.

use super::*;
use crate::{
    interner::Interner,
    record::{Caps, decode::WireEvent},
    store::{Confirmation, Store},
};

mod reading;
mod shift;
mod surroundings;

/// An Event: its name, the uid of the object (empty when it does not say), and
/// when it was created, first and last seen, in minutes; 0 for unknown. Its name
/// is the object's API version, too, unless it begins with `?`.
#[derive(Clone, Copy)]
struct Event(&'static str, &'static str, [u32; 3]);

/// A bucket that got these Events in this order.
fn bucket(events: &[Event]) -> Bucket {
    let store = Store::default();
    fill(&store, events);
    store.view(&key("").object, Bucket::clone).unwrap()
}

/// Puts these Events into the bucket of one pod.
fn fill(store: &Store, events: &[Event]) {
    for Event(name, uid, times) in events {
        let [created, first, last] = times.map(|minute| match minute {
            0 => serde_json::Value::Null,
            it => format!("2026-01-01T00:{it:02}:00Z").into(),
        });
        let api_version = name.strip_prefix('?').map_or(*name, |_| "");
        let json = serde_json::json!({
            "metadata": { "namespace": "ns", "name": name, "creationTimestamp": created },
            "regarding": { "kind": "Pod", "namespace": "ns", "name": "pod", "uid": uid, "apiVersion": api_version },
            "deprecatedFirstTimestamp": first,
            "deprecatedLastTimestamp": last,
        })
        .to_string();
        let wire: WireEvent<'_> = serde_json::from_str(&json).unwrap();
        let (object, record) =
            Record::pare_down(&wire, Caps::default(), &Interner::default()).unwrap();
        store.put(object, record, Confirmation::default());
    }
}

/// An Event that was created and first seen at one time, and last seen at another.
const fn seen(name: &'static str, uid: &'static str, first: u32, last: u32) -> Event {
    Event(name, uid, [first, first, last])
}

fn key(uid: impl Into<Uid>) -> SubjectKey {
    SubjectKey {
        object: ObjectKey::new("ns", "Pod", "pod").unwrap(),
        uid: uid.into(),
    }
}

#[track_caller]
fn check_owners(events: &[Event], want: &[&str]) {
    let bucket = bucket(events);
    assert_eq!(assigned(&bucket), want);
    // Each record is in exactly one subject.
    let mut n_records = 0;
    for uid in uids(&bucket) {
        let subject = Subject::of(key(uid), &bucket, |_| true).unwrap();
        assert!(!subject.events.is_empty(), "{uid}");
        n_records += subject.events.len();
        assert_eq!(subject.live.len(), events.len());
    }
    assert_eq!(n_records, events.len());
}

#[test]
fn a_record_belongs_to_the_uid_that_it_names() {
    check_owners(&[seen("a", "x", 1, 1)], &["x"]);
    check_owners(&[seen("a", "x", 1, 1), seen("b", "y", 2, 2)], &["x", "y"]);
    // Whenever that was.
    check_owners(&[seen("a", "x", 5, 9), seen("b", "y", 1, 9)], &["x", "y"]);
}

#[test]
fn one_without_a_uid_belongs_to_the_newest_that_was_there_by_then() {
    let (x, y) = (seen("a", "x", 10, 11), seen("b", "y", 20, 21));
    check_owners(&[x, y, seen("c", "", 30, 30)], &["x", "y", "y"]);
    check_owners(&[x, y, seen("c", "", 20, 20)], &["x", "y", "y"]);
    check_owners(&[x, y, seen("c", "", 19, 19)], &["x", "y", "x"]);
    check_owners(&[x, y, seen("c", "", 10, 10)], &["x", "y", "x"]);
    // It is when it was last seen that counts.
    check_owners(&[x, y, seen("c", "", 5, 25)], &["x", "y", "y"]);
    // In whatever order they come.
    check_owners(&[seen("c", "", 19, 19), y, x], &["x", "y", "x"]);
    check_owners(&[seen("c", "", 20, 20), y, x], &["y", "y", "x"]);
}

#[test]
fn else_it_belongs_to_the_oldest_that_is_known() {
    let (x, y) = (seen("a", "x", 10, 11), seen("b", "y", 20, 21));
    check_owners(&[x, y, seen("c", "", 9, 9)], &["x", "y", "x"]);
    check_owners(&[y, x, seen("c", "", 1, 9)], &["y", "x", "x"]);
    check_owners(&[x, y, Event("c", "", [0, 0, 0])], &["x", "y", "x"]);
}

#[test]
fn else_to_a_subject_without_a_uid() {
    check_owners(&[seen("a", "", 1, 1)], &[""]);
    check_owners(&[seen("a", "", 1, 1), seen("b", "", 9, 9)], &["", ""]);
}

#[test]
fn a_uid_is_as_old_as_the_first_sight_of_any_of_its_records() {
    let late = seen("a", "x", 30, 31);
    let early = seen("b", "x", 10, 35);
    let y = seen("c", "y", 20, 21);
    check_owners(&[late, y, seen("d", "", 15, 15)], &["x", "y", "y"]);
    check_owners(
        &[late, early, y, seen("d", "", 15, 15)],
        &["x", "x", "y", "x"],
    );
    check_owners(&[late, y, seen("d", "", 32, 32)], &["x", "y", "x"]);
    check_owners(
        &[late, early, y, seen("d", "", 32, 32)],
        &["x", "x", "y", "y"],
    );
}

#[test]
fn a_uid_whose_first_sight_is_unknown_is_as_old_as_its_last() {
    let (x, y) = (seen("a", "x", 10, 11), Event("b", "y", [0, 0, 20]));
    check_owners(&[x, y, seen("c", "", 15, 15)], &["x", "y", "x"]);
    check_owners(&[x, y, seen("c", "", 25, 25)], &["x", "y", "y"]);
}

#[test]
fn of_two_uids_first_seen_at_once_it_is_always_the_same() {
    let (x, y, c) = (
        seen("a", "x", 10, 10),
        seen("b", "y", 10, 10),
        seen("c", "", 12, 12),
    );
    check_owners(&[x, y, c], &["x", "y", "y"]);
    check_owners(&[y, x, c], &["y", "x", "y"]);
    check_owners(&[c, y, x], &["y", "y", "x"]);
}

#[test]
fn the_uids_of_a_bucket_come_once_each() {
    let check = |events: &[Event], want: &[&str]| assert_eq!(uids(&bucket(events)), want);
    check(&[seen("a", "x", 1, 1), seen("b", "x", 2, 2)], &["x"]);
    check(
        &[
            seen("a", "y", 1, 1),
            seen("b", "x", 2, 2),
            seen("c", "y", 3, 3),
        ],
        &["x", "y"],
    );
    check(&[seen("a", "x", 1, 1), seen("b", "", 2, 2)], &["x"]);
    check(&[seen("a", "", 1, 1), seen("b", "", 2, 2)], &[""]);
}

/// What a subject of the uid `x` shows, of interest and in all.
#[track_caller]
fn check_events(
    events: &[Event],
    is_of_interest: fn(&Record) -> bool,
    want: &[&str],
    live: &[&str],
) {
    let subject = Subject::of(key("x"), &bucket(events), is_of_interest).unwrap();
    let names = |it: &[Record]| it.iter().map(|it| it.name().to_owned()).collect::<Vec<_>>();
    assert_eq!(names(&subject.events), want);
    assert_eq!(names(&subject.live), live);
    let n_bytes: usize = subject.events.iter().map(Record::n_text_bytes).sum();
    assert_eq!(subject.n_bytes(), n_bytes);
}

#[test]
fn events_stand_in_order_of_creation_then_of_arrival() {
    let all = |_: &Record| true;
    let events = [
        seen("c", "x", 3, 3),
        seen("a", "x", 1, 9),
        seen("b", "x", 2, 2),
    ];
    check_events(&events, all, &["a", "b", "c"], &["c", "a", "b"]);
    let events = [
        seen("z", "x", 1, 3),
        seen("y", "x", 1, 2),
        seen("x", "x", 1, 1),
    ];
    check_events(&events, all, &["z", "y", "x"], &["z", "y", "x"]);
    // Neither first nor last sight is what counts, nor is an unknown time an error.
    let events = [
        Event("b", "x", [2, 1, 9]),
        Event("a", "x", [1, 5, 5]),
        Event("n", "x", [0, 0, 0]),
    ];
    check_events(&events, all, &["n", "a", "b"], &["b", "a", "n"]);
    // An update keeps the place.
    let events = [
        seen("a", "x", 1, 1),
        seen("b", "x", 1, 1),
        seen("a", "x", 1, 9),
    ];
    check_events(&events, all, &["a", "b"], &["a", "b"]);
}

#[test]
fn only_what_is_of_interest_and_its_own_crosses_and_all_that_is_live_is_known() {
    let not_b = |it: &Record| it.name() != "b";
    let events = [
        seen("a", "x", 1, 1),
        seen("b", "x", 2, 2),
        seen("c", "y", 3, 3),
        seen("d", "", 1, 1),
    ];
    check_events(&events, not_b, &["a", "d"], &["a", "b", "c", "d"]);
    check_events(&events, |_| false, &[], &["a", "b", "c", "d"]);
}

#[test]
fn whose_records_are_all_another_s_is_no_subject() {
    let events = [seen("c", "y", 3, 3)];
    assert!(Subject::of(key("x"), &bucket(&events), |_| true).is_none());
}

#[test]
fn the_api_version_is_the_newest_that_is_known() {
    let of = |events: &[Event]| {
        Subject::of(key("x"), &bucket(events), |_| false)
            .unwrap()
            .api_version
    };
    assert_eq!(&*of(&[seen("v1", "x", 1, 1)]), "v1");
    assert_eq!(&*of(&[seen("v1", "x", 9, 9), seen("v2", "x", 1, 1)]), "v2");
    assert_eq!(&*of(&[seen("v1", "x", 1, 1), seen("?", "x", 9, 9)]), "v1");
    assert_eq!(&*of(&[seen("?", "x", 1, 1)]), "");
}

#[test]
fn a_subject_is_a_picture_of_one_version_of_its_bucket() {
    let bucket = bucket(&[seen("a", "x", 1, 1), seen("b", "x", 2, 2)]);
    let subject = Subject::of(key("x"), &bucket, |_| true).unwrap();
    assert_eq!(subject.version, bucket.version());
    assert_eq!(subject.failure, None);
    assert_eq!(subject.key.to_string(), "ns/Pod/pod");
}
