//! What Flyte's watcher promises to those who list its Events, each promise a test, so
//! that whoever reads from there can read from here. What it breaks is in `defects`.
//!
//! That an Event which regards no object is counted is in the live path's tests
//! (`conservation`), and that no record is lost that comes while its object's last one
//! goes is in `races`.

use serde_json::{Value, json};

use super::*;
use crate::record::UnixMs;

/// An Event about the pod `pod`, of this name, created and last seen at these seconds.
fn event(name: &str, [created, last]: [u8; 2]) -> Value {
    let at = |second| format!("2026-01-01T00:00:{second:02}Z");
    json!({
        "metadata": { "namespace": "ns", "name": name, "uid": format!("uid-{name}"),
            "creationTimestamp": at(created) },
        "regarding": { "kind": "Pod", "namespace": "ns", "name": "pod", "uid": "u" },
        "reason": "Reason",
        "note": format!("note of {name}"),
        "deprecatedLastTimestamp": at(last),
    })
}

/// A second of that minute, as a record has it.
fn ms(second: u64) -> UnixMs {
    1_767_225_600_000 + 1_000 * second
}

fn pared(event: &Value) -> (ObjectKey, Record) {
    let json = event.to_string();
    let wire: WireEvent<'_> = serde_json::from_str(&json).unwrap();
    Record::pare_down(&wire, Caps::default(), &Interner::default()).unwrap()
}

fn put(store: &Store, event: &Value) -> ObjectKey {
    let (object, record) = pared(event);
    store.put(object.clone(), record, Confirmation::default());
    object
}

/// Flyte's `List`.
fn list(store: &Store, object: &ObjectKey, created: UnixMs, recorded: u64) -> Vec<Stored> {
    let after = After::Watermark { created, recorded };
    store.read(object, after).unwrap().records
}

fn names_of(records: &[Stored]) -> Vec<&str> {
    records.iter().map(|it| it.record.name()).collect()
}

#[test]
fn the_key_is_the_namespace_kind_and_name_of_what_an_event_regards() {
    let store = Store::default();
    let keys = [
        ["ns", "Pod", "a"],
        ["ns", "Pod", "b"],
        ["ns", "Job", "a"],
        ["other", "Pod", "a"],
    ];
    for (idx, [namespace, kind, name]) in keys.into_iter().enumerate() {
        let mut event = event(&format!("e{idx}"), [1, 1]);
        event["metadata"]["namespace"] = namespace.into();
        event["regarding"] = json!({ "namespace": namespace, "kind": kind, "name": name });
        put(&store, &event);
    }
    for (idx, [namespace, kind, name]) in keys.into_iter().enumerate() {
        let object = ObjectKey::new(namespace, kind, name).unwrap();
        let listed = list(&store, &object, 0, 0);
        assert_eq!(names_of(&listed), [format!("e{idx}")], "{object}");
    }
}

/// An object in a namespace has all its Events in that. Of a Node some are in one and some
/// in another.
#[test]
fn within_an_object_an_event_is_known_by_its_namespace_and_name() {
    let store = Store::default();
    let of_node = |event_in: &str, name: &str, uid: &str| {
        let mut event = event(name, [1, 1]);
        event["metadata"]["namespace"] = event_in.into();
        event["metadata"]["uid"] = uid.into();
        event["regarding"] = json!({ "kind": "Node", "name": "gpu-0" });
        event
    };
    let all = [
        of_node("default", "e", "1"),
        of_node("kube-system", "e", "2"),
        of_node("default", "f", "3"),
        of_node("kube-system", "f", ""),
    ];
    let node = ObjectKey::new("", "Node", "gpu-0").unwrap();
    for event in all.iter().chain(&all) {
        assert_eq!(put(&store, event), node);
    }
    assert_eq!(names_of(&list(&store, &node, 0, 0)), ["e", "e", "f", "f"]);
    assert_eq!((store.totals().stored, store.totals().merged), (4, 4));

    let (_, event) = pared(&of_node("kube-system", "e", ""));
    assert_eq!(store.remove(&node, &event).unwrap().uid(), "2");
    assert!(store.remove(&node, &event).is_none());
    assert_eq!(names_of(&list(&store, &node, 0, 0)), ["e", "f", "f"]);
}

#[test]
fn an_entry_says_when_it_was_created_and_last_seen_its_note_reason_and_uid() {
    // Event time, last timestamp, time of the series, as seconds; 0 for none. Wants
    // when it was last seen.
    for (times, want) in [
        ([0, 0, 0], 1),
        ([4, 0, 0], 4),
        ([0, 4, 0], 4),
        ([0, 0, 4], 4),
        ([4, 5, 6], 6),
        ([6, 5, 4], 6),
        ([4, 6, 5], 6),
    ] {
        let store = Store::default();
        let [event_time, last, series] = times.map(|second| match second {
            0 => Value::Null,
            it => format!("2026-01-01T00:00:{it:02}Z").into(),
        });
        let mut event = event("e", [1, 1]);
        event["eventTime"] = event_time;
        event["deprecatedLastTimestamp"] = last;
        event["series"] = json!({ "count": 2, "lastObservedTime": series });
        let object = put(&store, &event);
        let listed = list(&store, &object, 0, 0);
        let [it] = &listed[..] else {
            panic!("{listed:?}")
        };
        let record = &it.record;
        assert_eq!(
            [record.note(), record.reason(), &*record.object_uid().text()],
            ["note of e", "Reason", "u"]
        );
        assert_eq!((record.created(), record.last_seen()), (ms(1), ms(want)));
    }
}

#[test]
fn recorded_is_the_order_of_first_sight() {
    let store = Store::default();
    for name in ["z", "m", "a", "m", "z"] {
        put(&store, &event(name, [1, 1]));
    }
    let object = pod("pod");
    let listed = list(&store, &object, 0, 0);
    assert_eq!(names_of(&listed), ["z", "m", "a"]);
    assert!(listed.is_sorted_by(|a, b| a.sequence < b.sequence));
}

#[test]
fn an_update_keeps_created_and_recorded_and_takes_over_what_is_said() {
    let store = Store::default();
    let object = put(&store, &event("e", [3, 5]));
    let before = list(&store, &object, 0, 0);
    let mut update = event("e", [4, 9]);
    update["note"] = "more".into();
    update["reason"] = "Other".into();
    update["regarding"]["uid"] = "v".into();
    put(&store, &update);

    let after = list(&store, &object, 0, 0);
    assert_eq!(after.len(), 1);
    let record = &after[0].record;
    assert_eq!(after[0].sequence, before[0].sequence);
    assert_eq!((record.created(), record.last_seen()), (ms(3), ms(9)));
    assert_eq!(
        [record.note(), record.reason(), &*record.object_uid().text()],
        ["more", "Other", "v"]
    );
    // An older version may come late. It was last seen only ever later.
    put(&store, &event("e", [3, 7]));
    let record = &list(&store, &object, 0, 0)[0].record;
    assert_eq!((record.note(), record.last_seen()), ("note of e", ms(9)));
}

#[test]
fn an_update_is_not_listed_again_behind_its_own_watermark() {
    let store = Store::default();
    let object = put(&store, &event("e", [3, 5]));
    let known = list(&store, &object, 0, 0).remove(0);
    put(&store, &event("e", [3, 9]));
    let behind = list(&store, &object, known.record.created(), known.sequence);
    assert_eq!(names_of(&behind), [""; 0]);
}

#[test]
fn an_entry_is_listed_if_it_was_created_later_or_then_and_recorded_later() {
    let store = Store::default();
    // Recorded as 1 to 5.
    for (name, created) in [("a", 5), ("b", 7), ("c", 5), ("d", 7), ("e", 6)] {
        put(&store, &event(name, [created, 9]));
    }
    let check = |created, recorded, want: &str| {
        let listed = list(&store, &pod("pod"), created, recorded);
        assert_eq!(names_of(&listed).concat(), want, "{created} {recorded}");
    };
    check(0, 0, "acebd");
    check(0, u64::MAX, "acebd");
    check(ms(4), u64::MAX, "acebd");
    check(ms(5), 0, "acebd");
    check(ms(5), 1, "cebd");
    check(ms(5), 2, "cebd");
    check(ms(5), 3, "ebd");
    check(ms(5), u64::MAX, "ebd");
    check(ms(5) + 1, 0, "ebd");
    check(ms(6), 5, "bd");
    check(ms(7), 0, "bd");
    check(ms(7), 2, "d");
    check(ms(7), 4, "");
    check(ms(8), 0, "");
    check(UnixMs::MAX, u64::MAX, "");
}

#[test]
fn of_an_unknown_object_nothing_is_listed() {
    let store = Store::default();
    assert!(list(&store, &pod("pod"), 0, 0).is_empty());
    put(&store, &event("e", [1, 1]));
    assert!(list(&store, &pod("other"), 0, 0).is_empty());
    let job = ObjectKey::new("ns", "Job", "pod").unwrap();
    assert!(list(&store, &job, 0, 0).is_empty());
}

#[test]
fn an_event_that_says_no_time_at_all_is_listed() {
    let store = Store::default();
    let mut timeless = event("e", [1, 1]);
    timeless["metadata"]["creationTimestamp"] = Value::Null;
    timeless["deprecatedLastTimestamp"] = Value::Null;
    let object = put(&store, &timeless);
    assert_eq!(names_of(&list(&store, &object, 0, 0)), ["e"]);
}

#[test]
fn what_was_handed_out_never_changes() {
    let store = Store::default();
    let object = put(&store, &event("e", [3, 5]));
    let handed_out = list(&store, &object, 0, 0);
    let said = |it: &[Stored]| {
        let it = &it[0];
        let record = &it.record;
        let times = [record.created(), record.last_seen(), it.sequence];
        (record.note().to_owned(), times, it.changed)
    };
    let before = said(&handed_out);
    let mut update = event("e", [3, 9]);
    update["note"] = "more".into();
    put(&store, &update);
    assert_ne!(said(&list(&store, &object, 0, 0)), before);
    let (_, it) = pared(&event("e", [3, 9]));
    assert!(store.remove(&object, &it).is_some());
    assert_eq!(said(&handed_out), before);
}

#[test]
fn the_last_deletion_drops_the_object_and_what_comes_then_is_listed() {
    let store = Store::default();
    let object = put(&store, &event("a", [1, 1]));
    put(&store, &event("b", [1, 1]));
    let (_, a) = pared(&event("a", [1, 1]));
    store.remove(&object, &a);
    assert_eq!(names_of(&list(&store, &object, 0, 0)), ["b"]);
    // A deletion that was missed and is made up for says less, and counts as one.
    let mut b = event("b", [1, 1]);
    b["metadata"]["uid"] = Value::Null;
    store.remove(&object, &pared(&b).1);
    assert_eq!((store.n_buckets(), store.n_bytes()), (0, 0));
    put(&store, &event("c", [1, 1]));
    assert_eq!(names_of(&list(&store, &object, 0, 0)), ["c"]);
}

/// As Flyte's plugin manager does it at each turn: a line of history for each entry of
/// the list, and the watermark moves to the last.
#[test]
fn a_reader_that_keeps_the_watermark_of_the_last_entry_reads_each_event_once() {
    let (store, object) = (Store::default(), pod("pod"));
    let (mut lines, mut watermark) = (Vec::new(), (0, 0));
    let turns: [&[(&str, u8)]; 5] = [
        &[("a", 1), ("b", 1)],
        &[("c", 1), ("a", 1)],
        &[],
        &[("d", 2), ("b", 1), ("e", 4)],
        &[("f", 4), ("e", 4), ("g", 5)],
    ];
    for (turn, events) in (10..).zip(turns) {
        for (name, created) in events {
            put(&store, &event(name, [*created, turn]));
        }
        // One that is not ready to take it reads it again.
        let listed = list(&store, &object, watermark.0, watermark.1);
        let again = list(&store, &object, watermark.0, watermark.1);
        assert_eq!(names_of(&listed), names_of(&again));
        for it in &listed {
            lines.push(it.record.note().to_owned());
            watermark = (it.record.created(), it.sequence);
        }
    }
    let want = ["a", "b", "c", "d", "e", "f", "g"];
    assert_eq!(lines, want.map(|it| format!("note of {it}")));
}
