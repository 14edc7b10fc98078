//! What the store makes of a history, first in tables, then against a model,
//! then with several threads at once.

use std::{
    collections::{BTreeMap, BTreeSet},
    thread,
};

use proptest::prelude::*;

use super::*;
use crate::interner::Interner;
use crate::record::{Caps, decode::WireEvent};

mod contract;
mod defects;
mod races;
mod semantics;

/// A sighting of an Event of this name and uid, created and last seen at this
/// second, and the pod that it is about.
fn sighting(pod: &str, name: &str, uid: &str, second: u8, note: &str) -> (ObjectKey, Record) {
    let at = format!("2026-01-01T00:{:02}:{:02}Z", second / 60, second % 60);
    let json = serde_json::json!({
        "metadata": { "namespace": "ns", "name": name, "uid": uid, "creationTimestamp": at },
        "regarding": { "kind": "Pod", "namespace": "ns", "name": pod, "uid": "u" },
        "note": note,
        "deprecatedFirstTimestamp": at,
        "deprecatedLastTimestamp": at,
    })
    .to_string();
    let wire: WireEvent<'_> = serde_json::from_str(&json).unwrap();
    Record::pare_down(&wire, Caps::default(), &Interner::default()).unwrap()
}

fn pod(name: &str) -> ObjectKey {
    ObjectKey::new("ns", "Pod", name).unwrap()
}

/// A record in short: name, uid, note, the seconds of creation and last sight.
fn short(it: &Record) -> String {
    let second = |ms: u64| ms / 1_000 % 3_600;
    let (name, uid, note) = (it.name(), it.uid(), it.note());
    let (created, last) = (second(it.created()), second(it.last_seen()));
    format!("{name}/{uid} {note} {created}-{last}")
}

fn names(put: &Put) -> String {
    match put {
        Put::Inserted => "inserted".to_owned(),
        Put::Updated(earlier) => format!("updated: {}", short(earlier)),
        Put::Unchanged => "unchanged".to_owned(),
        Put::Replaced(earlier) => format!("replaced: {}", short(earlier)),
    }
}

/// Does `put NAME/UID SECOND NOTE` or `remove NAME/UID` to one pod, and says what
/// came of it.
fn act(store: &Store, step: &str) -> String {
    let mut words = step.split(' ');
    let (verb, event) = (words.next().unwrap(), words.next().unwrap());
    let (name, uid) = event.split_once('/').unwrap();
    if verb == "put" {
        let second = words.next().unwrap().parse().unwrap();
        let (object, record) = sighting("pod", name, uid, second, words.next().unwrap());
        names(&store.put(object, record, Confirmation::default()))
    } else {
        let (object, event) = sighting("pod", name, uid, 0, "");
        let removed = store.remove(&object, &event);
        removed.map_or("none".to_owned(), |it| format!("removed: {}", short(&it)))
    }
}

/// Does one thing after the other. Compares what each says, then the records that
/// are left.
#[track_caller]
fn check(steps: &[(&str, &str)], left: &[&str]) {
    let (store, object) = (Store::default(), pod("pod"));
    for (step, want) in steps {
        assert_eq!(act(&store, step), *want, "{step}");
    }
    let records = store.view(&object, |bucket| {
        let records = bucket.records().iter();
        records.map(|it| short(&it.record)).collect::<Vec<_>>()
    });
    assert_eq!(records.unwrap_or_default(), left);
    assert_eq!(store.n_records(), left.len());
    assert_eq!(store.n_buckets(), usize::from(!left.is_empty()));
}

#[test]
fn an_update_keeps_creation_and_place_and_is_last_seen_only_ever_later() {
    check(
        &[("put a/1 5 x", "inserted"), ("put b/2 6 y", "inserted")],
        &["a/1 x 5-5", "b/2 y 6-6"],
    );
    check(
        &[
            ("put a/1 5 x", "inserted"),
            ("put b/2 6 y", "inserted"),
            ("put a/1 9 z", "updated: a/1 x 5-5"),
        ],
        &["a/1 z 5-9", "b/2 y 6-6"],
    );
    check(
        &[
            ("put a/1 9 new", "inserted"),
            ("put a/1 5 old", "updated: a/1 new 9-9"),
        ],
        &["a/1 old 9-9"],
    );
}

#[test]
fn what_says_the_same_again_changes_nothing() {
    check(
        &[
            ("put a/1 5 x", "inserted"),
            ("put a/1 5 x", "unchanged"),
            ("put a/1 6 x", "updated: a/1 x 5-5"),
            ("put a/1 6 x", "unchanged"),
        ],
        &["a/1 x 5-6"],
    );
}

#[test]
fn another_uid_under_a_name_is_another_event() {
    check(
        &[
            ("put a/1 5 x", "inserted"),
            ("put b/2 6 y", "inserted"),
            ("put a/3 4 z", "replaced: a/1 x 5-5"),
        ],
        &["b/2 y 6-6", "a/3 z 4-4"],
    );
    check(
        &[
            ("put a/1 5 x", "inserted"),
            ("put a/2 5 x", "replaced: a/1 x 5-5"),
            ("put a/1 5 x", "replaced: a/2 x 5-5"),
        ],
        &["a/1 x 5-5"],
    );
}

#[test]
fn an_unknown_uid_may_be_any() {
    check(
        &[
            ("put a/ 5 x", "inserted"),
            ("put a/1 6 y", "updated: a/ x 5-5"),
        ],
        &["a/1 y 5-6"],
    );
    check(
        &[
            ("put a/1 5 x", "inserted"),
            ("put a/ 6 y", "updated: a/1 x 5-5"),
        ],
        &["a/ y 5-6"],
    );
    check(
        &[
            ("put a/1 5 x", "inserted"),
            ("remove a/", "removed: a/1 x 5-5"),
        ],
        &[],
    );
    check(
        &[
            ("put a/ 5 x", "inserted"),
            ("remove a/1", "removed: a/ x 5-5"),
        ],
        &[],
    );
}

#[test]
fn a_deletion_of_what_is_not_there_removes_nothing() {
    check(&[("remove a/1", "none")], &[]);
    check(
        &[("put a/1 5 x", "inserted"), ("remove b/1", "none")],
        &["a/1 x 5-5"],
    );
    check(
        &[
            ("put a/1 5 x", "inserted"),
            ("put a/2 6 y", "replaced: a/1 x 5-5"),
            // The deletion of the first comes late.
            ("remove a/1", "none"),
        ],
        &["a/2 y 6-6"],
    );
    check(
        &[
            ("put a/1 5 x", "inserted"),
            ("remove a/1", "removed: a/1 x 5-5"),
            ("remove a/1", "none"),
        ],
        &[],
    );
}

#[test]
fn last_record_takes_its_bucket_along() {
    let store = Store::default();
    for (name, in_pod) in [("a", "pod-0"), ("b", "pod-0"), ("c", "pod-1")] {
        let (object, record) = sighting(in_pod, name, name, 1, "x");
        store.put(object, record, Confirmation::default());
    }
    let remove = |name| {
        let (object, event) = sighting("pod-0", name, name, 0, "");
        assert!(store.remove(&object, &event).is_some());
    };
    remove("a");
    assert_eq!(store.n_buckets(), 2);
    remove("b");
    assert_eq!(store.n_buckets(), 1);
    assert!(store.view(&pod("pod-0"), |_| ()).is_none());
    assert!(store.view(&pod("pod-1"), |_| ()).is_some());
}

/// One thing that may happen to the store.
#[derive(Clone, Debug)]
enum Step {
    Put(u8, u8, &'static str, u8),
    Remove(u8, u8, &'static str),
    Evict(u8),
}

fn step() -> impl Strategy<Value = Step> {
    let uid = || prop::sample::select(vec!["", "1", "2"]);
    let put = (0..3_u8, 0..3_u8, uid(), 0..9_u8);
    prop_oneof![
        6 => put.prop_map(|(pod, name, uid, second)| Step::Put(pod, name, uid, second)),
        4 => (0..3_u8, 0..3_u8, uid()).prop_map(|(pod, name, uid)| Step::Remove(pod, name, uid)),
        1 => (0..3_u8).prop_map(Step::Evict),
    ]
}

/// A record as the model keeps it.
#[derive(Clone, Debug, PartialEq)]
struct Modelled {
    uid: &'static str,
    arrival: usize,
    created: u8,
    first: u8,
    last: u8,
}

/// The model's records: one for each pod and name.
type Model = BTreeMap<(u8, u8), Modelled>;

/// A put, in the model: what became of it, and what of the totals that is.
fn put_in_model(model: &mut Model, at: (u8, u8), new: Modelled) -> &'static str {
    let same = |a: &str, b: &str| a == b || a.is_empty() || b.is_empty();
    match model.get_mut(&at) {
        None => {
            model.insert(at, new);
            "inserted"
        }
        Some(known) if !same(known.uid, new.uid) => {
            *known = new;
            "replaced"
        }
        Some(known) => {
            let was = known.clone();
            known.uid = new.uid;
            known.first = known.first.min(new.first);
            known.last = known.last.max(new.last);
            if *known == was {
                "unchanged"
            } else {
                "updated"
            }
        }
    }
}

/// What is in a bucket, in its order.
fn picture(records: &[Stored]) -> Vec<(String, u64)> {
    let records = records.iter();
    records.map(|it| (short(&it.record), it.sequence)).collect()
}

/// What the store should say that it costs.
fn n_bytes(store: &Store) -> usize {
    let of_bucket = |name: u8| {
        store.view(&pod(&format!("pod-{name}")), |bucket| {
            let texts = bucket.records().iter().map(|it| it.record.n_own_bytes());
            let key = bucket.key().n_bytes();
            let room = bucket.records.capacity() * size_of::<Stored>();
            BUCKET_BYTES + key + room + texts.sum::<usize>()
        })
    };
    (0..3).filter_map(of_bucket).sum()
}

proptest! {
    /// The store does what a plain map does, keeps each bucket in order of
    /// arrival, foretells what a change would leave, and loses no record.
    #[test]
    fn it_agrees_with_a_plain_map(steps in prop::collection::vec(step(), 1..80)) {
        let (store, mut model) = (Store::default(), Model::new());
        let mut want = Totals::default();
        for (arrival, step) in steps.into_iter().enumerate() {
            let (Step::Put(of, ..) | Step::Remove(of, ..) | Step::Evict(of)) = step;
            let object = pod(&format!("pod-{of}"));
            let before = store.view(&object, Bucket::clone);
            let foretold;
            let changes = match step {
                Step::Put(of, name, uid, second) => {
                    let event = format!("e{name}");
                    let (object, record) = sighting(&format!("pod-{of}"), &event, uid, second, "x");
                    foretold = before.as_ref().map(|it| it.with(record.clone()));
                    let new = Modelled { uid, arrival, created: second,
 first: second, last: second };
                    let said = put_in_model(&mut model, (of, name), new);
                    prop_assert!(names(&store.put(object, record, Confirmation::default())).starts_with(said));
                    want.stored += u64::from(["inserted", "replaced"].contains(&said));
                    want.replaced += u64::from(said == "replaced");
                    want.merged += u64::from(["unchanged", "updated"].contains(&said));
                    said != "unchanged"
                }
                Step::Remove(of, name, uid) => {
                    let (_, event) = sighting(&format!("pod-{of}"), &format!("e{name}"), uid, 0, "");
                    foretold = before.as_ref().map(|it| it.without(&event));
                    let is_known = model.get(&(of, name)).is_some_and(|it| may_equal(it.uid.into(), uid.into()));
                    if is_known {
                        model.remove(&(of, name));
                    }
                    prop_assert_eq!(store.remove(&object, &event).is_some(), is_known);
                    want.deleted += u64::from(is_known);
                    is_known
                }
                Step::Evict(of) => {
                    foretold = None;
                    let n_records = model.len();
                    model.retain(|(pod, _), _| *pod != of);
                    want.evicted += u64::try_from(n_records - model.len()).unwrap();
                    let evicted = store.evict(&object);
                    let evicted = evicted.as_deref().map(picture);
                    prop_assert_eq!(evicted, before.as_ref().map(|it| picture(it.records())));
                    true
                }
            };

            let after = store.view(&object, Bucket::clone);
            let mut records: Vec<_> = model.iter().filter(|((at, _), _)| *at == of).collect();
            records.sort_by_key(|(_, it)| it.arrival);
            let records: Vec<_> = records
                .iter()
                .map(|((_, name), it)| format!("e{name}/{} x {}-{}", it.uid, it.created, it.last))
                .collect();
            let left = after.as_ref().map(|it| picture(it.records())).unwrap_or_default();
            prop_assert!(left.is_sorted_by(|(_, a), (_, b)| a < b), "{left:?}");
            let left: Vec<_> = left.into_iter().map(|(record, _)| record).collect();
            prop_assert_eq!(&left, &records);
            if let Some(foretold) = foretold {
                let foretold: Vec<_> = picture(foretold.records()).into_iter().map(|(it, _)| it).collect();
                prop_assert_eq!(foretold, left);
            }
            if let (Some(before), Some(after)) = (&before, &after) {
                prop_assert_eq!(before.version() < after.version(), changes);
            }
            prop_assert_eq!(store.totals(), want);
            prop_assert_eq!(store.n_records(), model.len());
            let objects: BTreeSet<_> = model.keys().map(|(pod, _)| pod).collect();
            prop_assert_eq!(store.n_buckets(), objects.len());
            prop_assert_eq!(store.n_bytes(), n_bytes(&store));
            let live = u64::try_from(model.len()).unwrap();
            prop_assert_eq!(want.stored, live + want.deleted + want.replaced + want.evicted);
        }
    }
}
