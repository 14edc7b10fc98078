//! Whose records a reader of one uid is shown.

use super::*;
use crate::store::{After, ReadError};

/// A store with an Event about a pod of each of these uids, in this order: its name, the
/// uid, and when it was first and last seen.
fn store(events: &[Event]) -> Store {
    let store = Store::in_epoch(7);
    fill(&store, events);
    store
}

/// The names of what a reader of a uid is shown of the pod.
fn read(store: &Store, uid: &str, after: After) -> Vec<String> {
    let reading = super::super::read(store, &key(uid).object, uid.into(), after).unwrap();
    let names = reading.records.iter().map(|it| it.record.name().to_owned());
    names.collect()
}

const ALL: After = After::Watermark {
    created: 0,
    recorded: 0,
};

#[test]
fn d08_a_recreated_pod_inherits_no_events() {
    let store = store(&[
        seen("a", "x", 10, 11),
        seen("b", "y", 20, 21),
        seen("c", "x", 12, 25),
        // They do not say whose they are: one of each time.
        seen("d", "", 15, 15),
        seen("e", "", 22, 22),
    ]);
    for after in [ALL, After::Change(store.beginning())] {
        assert_eq!(read(&store, "z", after), [""; 0]);
        assert_eq!(read(&store, "", after), [""; 0]);
    }
    assert_eq!(read(&store, "x", ALL), ["a", "c", "d"]);
    assert_eq!(read(&store, "y", ALL), ["b", "e"]);
    // Each is someone's, and the object's are those of both.
    let all = store.read(&key("").object, ALL).unwrap().records;
    assert_eq!(all.len(), 5);
}

#[test]
fn d08_a_node_is_known_by_its_name_whatever_uid_its_events_say() {
    let store = Store::in_epoch(7);
    for (name, uid) in [("a", "gpu-0"), ("b", "5f3c"), ("c", "")] {
        let json = serde_json::json!({
            "metadata": { "namespace": "default", "name": name },
            "regarding": { "kind": "Node", "name": "gpu-0", "uid": uid },
        })
        .to_string();
        let wire: WireEvent<'_> = serde_json::from_str(&json).unwrap();
        let (object, record) =
            Record::pare_down(&wire, Caps::default(), &Interner::default()).unwrap();
        store.put(object, record, Confirmation::default());
    }
    let node = ObjectKey::new("", "Node", "gpu-0").unwrap();
    for uid in ["gpu-0", "5f3c", ""] {
        let reading = super::super::read(&store, &node, uid.into(), ALL).unwrap();
        assert_eq!(reading.records.len(), 3, "{uid:?}");
    }
}

#[test]
fn who_has_no_uid_is_a_subject_until_one_is_known() {
    let store = store(&[seen("a", "", 10, 10)]);
    assert_eq!(read(&store, "", ALL), ["a"]);
    assert_eq!(read(&store, "x", ALL), [""; 0]);
    fill(&store, &[seen("b", "x", 11, 11)]);
    assert_eq!(read(&store, "", ALL), [""; 0]);
    assert_eq!(read(&store, "x", ALL), ["a", "b"]);
}

#[test]
fn a_cursor_goes_on_within_a_uid_and_past_the_records_of_others() {
    let store = store(&[seen("a", "x", 10, 10), seen("b", "y", 20, 20)]);
    let of =
        |uid: &str, after| super::super::read(&store, &key("").object, uid.into(), after).unwrap();
    let first = of("x", After::Arrival(store.beginning()));
    assert_eq!(first.records.len(), 1);
    fill(&store, &[seen("c", "y", 21, 21), seen("d", "x", 9, 9)]);
    assert_eq!(read(&store, "x", After::Arrival(first.next)), ["d"]);
    let second = of("x", After::Arrival(first.next));
    assert_eq!(read(&store, "x", After::Arrival(second.next)), [""; 0]);
    assert_eq!(read(&store, "y", After::Arrival(first.next)), ["c"]);
}

#[test]
fn what_cannot_be_read_of_an_object_cannot_be_read_of_a_uid() {
    let store = store(&[seen("a", "x", 10, 10)]);
    let kindless = ObjectKey::new("ns", "", "pod").unwrap();
    let read =
        |object: &ObjectKey, after| super::super::read(&store, object, "x".into(), after).err();
    assert_eq!(read(&kindless, ALL), Some(ReadError::NoObject));
    let foreign = After::Arrival(Store::in_epoch(8).beginning());
    assert_eq!(
        read(&key("x").object, foreign),
        Some(ReadError::ForeignCursor)
    );
}
