//! What is held costs what is said of it: live heap, to the byte, beside what the
//! store and the outcome table count.
//!
//! The allocator of this program counts. One test at a time may look at it.

#![allow(
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    reason = "a test says what went wrong by failing, and counts no further than 2^53"
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
        "note": "Container image already present on node, in all 68 bytes of a message",
        "reportingController": "kubelet",
        "reportingInstance": format!("gpu-node-{:02}", object % 40),
    });
    let json = json.to_string();
    let wire = serde_json::from_str(&json).unwrap();
    Record::pare_down(&wire, Caps::default(), store.interner()).unwrap()
}

/// A store of so many objects with so many Events each.
fn filled(n_objects: usize, of_each: usize) -> Store {
    let store = Store::default();
    for number in 0..of_each {
        for object in 0..n_objects {
            let (key, record) = event(&store, object, number, "Pulled");
            store.put(key, record, Confirmation::default());
        }
    }
    store
}

/// What making this costs in live heap.
fn cost<T>(make: impl FnOnce() -> T) -> (T, usize) {
    let before = heap::live();
    let made = make();
    (made, heap::live() - before)
}

#[test]
fn a_record_of_264_bytes_of_text_costs_300() {
    let _alone = alone();
    let (store, _) = cost(|| filled(1, 1));
    let (_, record) = event(&store, 0, 0, "Pulled");
    println!("{}", record.n_text_bytes());
    const N: usize = 10_000;
    let of_each = [1, 2, 4].map(|it| cost(|| filled(N, it)).1);
    println!("{:?}", of_each.map(|it| it as f64 / N as f64));
    println!("record {}", (of_each[2] - of_each[0]) / (3 * N));
}

#[test]
fn what_the_store_counts_is_what_it_costs() {
    let _alone = alone();
    for (n_objects, of_each) in [
        (1_000, 1),
        (7_000, 1),
        (8_000, 1),
        (10_000, 1),
        (14_000, 1),
        (16_000, 1),
        (20_000, 1),
        (10_000, 3),
        (8_000, 3),
        (14_000, 3),
        (500, 64),
    ] {
        let (store, live) = cost(|| filled(n_objects, of_each));
        let counted = store.n_bytes();
        println!(
            "{n_objects}x{of_each}: {live} {counted} {:.3}",
            counted as f64 / live as f64
        );
    }
}
