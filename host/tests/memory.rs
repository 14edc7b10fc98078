//! What is held costs what is said of it: live heap, to the byte, beside what the
//! store and the outcome table count.
//!
//! The allocator of this program counts. One test at a time may look at it.

#![allow(
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    clippy::print_stdout,
    reason = "a test says what went wrong by failing, these say what they saw, and count no \
              further than 2^53"
)]

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use portent::{
    outcome::{AdditionalReason, Attributes, Generation, Outcome, Outcomes, Provenance},
    record::{Caps, ObjectKey, Record},
    store::{Confirmation, Store},
    subject::{Subject, SubjectKey},
};

#[path = "../benches/churn/heap.rs"]
mod heap;

fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An Event as the kubelet writes it, with 264 bytes of text: as much as one of the
/// corpus has.
fn event(store: &Store, object: usize, event: usize, reason: &str) -> (ObjectKey, Record) {
    let name = format!("train-{object:08x}-a1");
    let json = serde_json::json!({
        "metadata": {
            "namespace": "ml-team-a",
            "name": format!("{name}.18{event:014x}"),
            "uid": format!("{object:08x}-{event:04x}-4c11-8f6e-0242ac120002"),
            "resourceVersion": "184467440",
            "creationTimestamp": "2026-05-01T10:00:00Z",
        },
        "regarding": {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": "ml-team-a",
            "name": name,
            "uid": format!("{object:08x}-aaaa-4c11-8f6e-0242ac120002"),
            "fieldPath": "spec.containers{main}",
        },
        "type": "Normal",
        "reason": reason,
        "note": "Container image is already present on the node, and 87 bytes of a note say so to a user",
        "reportingController": "kubelet",
        "reportingInstance": format!("gpu-node-{:02}", object % 40),
    });
    let json = json.to_string();
    let wire = serde_json::from_str(&json).unwrap();
    Record::pare_down(&wire, Caps::default(), store.interner()).unwrap()
}

/// A store of so many objects with so many Events each.
fn filled(n_objects: usize, of_each: usize, reason: impl Fn(usize, usize) -> String) -> Store {
    let store = Store::default();
    for number in 0..of_each {
        for object in 0..n_objects {
            let (key, record) = event(&store, object, number, &reason(object, number));
            store.put(key, record, Confirmation::default());
        }
    }
    store
}

fn pulled(_: usize, _: usize) -> String {
    "Pulled".to_owned()
}

/// What this makes, and the live heap that it takes. Less than nothing where it gives
/// back.
fn cost<T>(work: impl FnOnce() -> T) -> (T, isize) {
    let before = heap::live();
    let it = work();
    (it, heap::live().cast_signed() - before.cast_signed())
}

/// What is counted is within 5 % of what it costs.
#[track_caller]
fn check_counted(what: &str, counted: usize, live: isize) {
    let share = counted as f64 / live as f64;
    println!("{what}: {counted} bytes counted, {live} live: {share:.3}");
    assert!((0.95..=1.05).contains(&share), "{what}: {share}");
}

#[test]
fn a_record_of_264_bytes_of_text_costs_300_at_most() {
    const N_OBJECTS: usize = 10_000;
    let _alone = alone();
    let store = Store::default();
    let (_, record) = event(&store, 0, 0, "Pulled");
    assert_eq!(record.n_text_bytes(), 264);
    let of_each = |n| cost(|| filled(N_OBJECTS, n, pulled)).1.unsigned_abs();
    let (one, four) = (of_each(1), of_each(4));
    let of_record = (four - one) / (3 * N_OBJECTS);
    let of_bucket = one / N_OBJECTS - of_record;
    println!("a record: {of_record} bytes; a bucket, its key and its file: {of_bucket}");
    assert!(of_record <= 300, "{of_record}");
    assert!(of_bucket <= 200, "{of_bucket}");
}

#[test]
fn what_the_store_counts_is_what_it_costs() {
    let _alone = alone();
    // As full and as empty as the table's shards get, and objects of many Events.
    for (n_objects, of_each) in [(7_000, 1), (8_500, 1), (14_000, 3), (17_000, 3), (500, 64)] {
        let (store, live) = cost(|| filled(n_objects, of_each, pulled));
        let what = format!("{n_objects} objects of {of_each}");
        check_counted(&what, store.n_bytes(), live);
    }
    // Whoever invents reasons fills the table of them, and pays for the rest.
    for n_objects in [5_000, 40_000] {
        let (store, live) = cost(|| filled(n_objects, 1, |object, _| format!("Reason{object}")));
        let what = format!("{n_objects} objects of a reason each");
        check_counted(&what, store.n_bytes(), live);
    }
}

#[test]
fn a_store_that_is_empty_again_costs_what_an_empty_one_does() {
    let _alone = alone();
    let (store, empty) = cost(Store::default);
    let ((), filled) = cost(|| {
        for object in 0..10_000 {
            let (key, record) = event(&store, object, 0, &format!("Reason{}", object / 2));
            store.put(key, record, Confirmation::default());
        }
    });
    assert!(1 << 20 < filled);
    let ((), left) = cost(|| {
        for object in 0..10_000 {
            let (key, record) = event(&store, object, 0, "");
            assert!(store.remove(&key, &record).is_some());
        }
        store.shrink();
    });
    let left = filled + left;
    assert_eq!((store.n_bytes(), store.n_buckets()), (0, 0));
    assert!(store.interner().is_empty());
    println!("an empty store: {empty} bytes, one that was full: {left} more");
    // The threads of the other tests wait, and have a little.
    assert!(left < 16 << 10, "{left} bytes are left");
}

#[test]
fn what_the_outcome_table_counts_is_what_it_costs() {
    let _alone = alone();
    let classifier = Arc::new(Provenance {
        name: "additional-reasons".into(),
        version: "1".into(),
        digest: "sha256:0".into(),
        settings_digest: "sha256:0".into(),
        wit: "portent:classifier@0.1.0".into(),
    });
    for (n_objects, of_each) in [(7_000, 3), (8_500, 3), (500, 64)] {
        let store = filled(n_objects, of_each, pulled);
        let outcomes = Outcomes::default();
        let ((), live) = cost(|| {
            for object in 0..n_objects {
                let (key, record) = event(&store, object, 0, "Pulled");
                let subject = SubjectKey {
                    object: key.clone(),
                    uid: record.object_uid().into(),
                };
                let of = |bucket: &_| Subject::of(subject, bucket, |_| true);
                let subject = store.view(&key, of).flatten().unwrap();
                let reasons = subject.events.iter().map(|it| {
                    let pairs = [("reason", it.reason()), ("type", it.event_type())];
                    let attributes = Attributes::shared(pairs, outcomes.interner()).unwrap();
                    let text = it.note().into();
                    Arc::new(AdditionalReason::new(text, it.created(), it, attributes))
                });
                let outcome = Outcome {
                    additional_reasons: reasons.collect(),
                    ..Outcome::default()
                };
                let generation = Generation::default();
                drop(outcomes.merge(&subject, &classifier, generation, Ok(outcome)));
            }
        });
        let what = format!("{n_objects} subjects of {of_each}");
        check_counted(&what, outcomes.n_bytes(), live);
    }
}
