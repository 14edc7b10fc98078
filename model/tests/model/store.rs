//! The store and its files: two objects of one namespace, in different shards.

use std::sync::Arc;

use portent_model::{
    interner::Interner,
    record::{Caps, ObjectKey, Record, decode::WireEvent},
    store::{Bucket, Confirmation, Put, Removal, Seconds, Store, Stored, Version},
    sync::{DashMap, Fault, thread},
};
use shuttle::rand::{Rng as _, thread_rng};

use super::{check, check_caught};

fn pod(namespace: &str, name: &str) -> ObjectKey {
    ObjectKey::new(namespace, "Pod", name).unwrap()
}

/// Two pods of one namespace, in different shards.
fn pods() -> [ObjectKey; 2] {
    let pods = ["a", "b"].map(|it| pod("ns", it));
    let [a, b] = pods.each_ref().map(DashMap::<_, ()>::shard_of);
    assert_ne!(a, b);
    pods
}

/// A record about an object, of an Event of this name and uid.
fn record(object: &ObjectKey, [name, uid]: [&str; 2], note: &str, interner: &Interner) -> Record {
    let (namespace, pod) = (object.namespace(), object.name());
    let json = serde_json::json!({
        "metadata": { "namespace": namespace, "name": name, "uid": uid },
        "regarding": { "kind": "Pod", "namespace": namespace, "name": pod, "uid": "u" },
        "note": note,
    })
    .to_string();
    let wire: WireEvent<'_> = serde_json::from_str(&json).unwrap();
    let (key, record) = Record::pare_down(&wire, Caps::default(), interner).unwrap();
    assert_eq!(key, *object);
    record
}

fn confirmed(at: Seconds) -> Confirmation {
    Confirmation {
        at,
        ..Confirmation::default()
    }
}

/// Threads that each put a record of their own into one bucket and take it out again.
fn own_records() {
    let store = Arc::new(Store::default());
    let object = pod("ns", "a");
    let threads = ["x", "y", "z"].map(|name| {
        let (store, object) = (Arc::clone(&store), object.clone());
        thread::spawn(move || {
            let mine = record(&object, [name; 2], "", store.interner());
            let mut seen = Version::default();
            for _ in 0..2 {
                store.put(object.clone(), mine.clone(), confirmed(1));
                let found = store.view(&object, |bucket| {
                    let mut records = bucket.records().iter();
                    let sequences = bucket.records().iter().map(|it| it.sequence);
                    assert!(sequences.is_sorted(), "in order of arrival");
                    (records.any(|it| it.record == mine), bucket.version())
                });
                let (is_there, version) = found.expect("a record that is mine keeps the bucket");
                assert!(is_there, "what I put stays until I take it out");
                assert!(seen < version, "{seen:?} and then {version:?}");
                seen = version;
                assert!(store.remove(&object, &mine).is_some());
            }
        })
    });
    for it in threads {
        it.join().unwrap();
    }
    assert_eq!((store.n_buckets(), store.n_records()), (0, 0));
    assert_eq!((store.totals().stored, store.totals().deleted), (6, 6));
    assert_eq!(store.n_bytes(), 0);
    assert!(store.filed_before(Seconds::MAX, 9).is_empty());
}

/// Threads that each do a few things to two objects, whatever comes to their minds.
fn anything() {
    let store = Arc::new(Store::default());
    let threads = [(); 3].map(|()| {
        let store = Arc::clone(&store);
        thread::spawn(move || {
            let mut done = Done::default();
            for _ in 0..4 {
                done.something(&store);
            }
            done
        })
    });
    let mut done = Done::default();
    for it in threads {
        done.add(&it.join().unwrap());
    }
    done.check(&store);
    check_files(&store);
    check_bytes(&store);
    for it in pods() {
        store.evict(&it);
    }
    assert_eq!((store.n_buckets(), store.n_bytes()), (0, 0));
    assert!(store.filed_before(Seconds::MAX, 9).is_empty());
    assert_eq!(store.totals().live(), 0);
}

/// What a thread was told of what it did.
#[derive(Debug, Default)]
struct Done {
    stored: u64,
    merged: u64,
    deleted: u64,
    replaced: u64,
    evicted: u64,
    expired: u64,
    seen: [Version; 2],
}

impl Done {
    fn something(&mut self, store: &Store) {
        let pods = pods();
        let idx = thread_rng().gen_range(0..2);
        let object = &pods[idx];
        let name = ["x", "y"][thread_rng().gen_range(0..2)];
        let now = thread_rng().gen_range(1..4);
        match thread_rng().gen_range(0..8) {
            0..=2 => {
                let uid = ["1", "2"][thread_rng().gen_range(0..2)];
                let note = ["something", "more"][thread_rng().gen_range(0..2)];
                let record = record(object, [name, uid], note, store.interner());
                match store.put(object.clone(), record, confirmed(now)) {
                    Put::Inserted => self.stored += 1,
                    Put::Updated(_) | Put::Unchanged => self.merged += 1,
                    Put::Replaced(_) => {
                        self.stored += 1;
                        self.replaced += 1;
                    }
                }
            }
            3 => {
                // An unknown uid may be any.
                let event = record(object, [name, ""], "", store.interner());
                self.deleted += u64::from(store.remove(object, &event).is_some());
            }
            4 => self.evict(store, object),
            5 => {
                if let Some(object) = store.least_confirmed() {
                    self.evict(store, &object);
                }
            }
            6 => {
                for object in store.filed_before(now, 2) {
                    let is_to_go = |it: &Stored| it.confirmed.at < now;
                    let gone = store.remove_where(&object, Removal::Expired, is_to_go);
                    self.expired += gone.len() as u64;
                }
            }
            _ => {
                let version = store.view(object, |bucket| {
                    assert!(!bucket.records().is_empty(), "a bucket is never empty");
                    bucket.version()
                });
                if let Some(version) = version {
                    let seen = std::mem::replace(&mut self.seen[idx], version);
                    assert!(seen <= version, "{seen:?} and then {version:?}");
                }
            }
        }
    }

    fn evict(&mut self, store: &Store, object: &ObjectKey) {
        if let Some(records) = store.evict(object) {
            self.evicted += records.len() as u64;
        }
    }

    fn add(&mut self, other: &Self) {
        self.stored += other.stored;
        self.merged += other.merged;
        self.deleted += other.deleted;
        self.replaced += other.replaced;
        self.evicted += other.evicted;
        self.expired += other.expired;
    }

    /// What was told is what is counted, and what is not gone is there.
    fn check(&self, store: &Store) {
        let totals = store.totals();
        assert_eq!(
            (totals.stored, totals.merged, totals.deleted),
            (self.stored, self.merged, self.deleted)
        );
        assert_eq!(
            (totals.replaced, totals.evicted, totals.expired),
            (self.replaced, self.evicted, self.expired)
        );
        assert_eq!(totals.live(), store.n_records() as u64);
        for object in pods() {
            if let Some(version) = store.view(&object, Bucket::version) {
                assert!(version <= store.version());
            }
        }
    }
}

/// Each bucket is filed once, and nothing else is. By which second says nothing here: these
/// threads have no clock in common.
fn check_files(store: &Store) {
    let is_live = |it: &ObjectKey| store.view(it, |_| ()).is_some();
    let mut live: Vec<_> = pods().into_iter().filter(is_live).collect();
    live.sort();
    let mut filed = store.filed_before(Seconds::MAX, 9);
    filed.sort();
    assert_eq!(filed, live);
}

/// The bytes are those of the buckets that are left, and so are those of the namespace.
fn check_bytes(store: &Store) {
    let of_each = pods().map(|it| store.view(&it, Bucket::n_bytes).unwrap_or(0));
    let n_bytes = store.n_bytes() - store.interner().n_bytes();
    assert_eq!(n_bytes, of_each.iter().sum::<usize>());
    if n_bytes == 0 {
        assert_eq!(store.n_bytes(), 0);
        return;
    }
    // Who holds most gives first: another namespace that holds a byte more, or less.
    let other = pod("no", "a");
    let of_other = |n_note_bytes: usize| {
        let note = "n".repeat(n_note_bytes);
        record(&other, ["x"; 2], &note, store.interner())
    };
    let empty = Store::default();
    empty.put(other.clone(), of_other(0), confirmed(1));
    let n_others = empty.n_bytes();
    for (n_bytes, is_most) in [(n_bytes - 1, false), (n_bytes + 1, true)] {
        let rest = of_other(n_bytes - n_others);
        store.put(other.clone(), rest, confirmed(1));
        assert_eq!(store.least_confirmed().as_ref() == Some(&other), is_most);
        store.evict(&other);
    }
}

/// With a version drawn before the shard is locked it fails in run 2, with the files locked
/// before the shard in run 28, with a record taken out and then its bucket in run 5.
#[test]
fn what_a_thread_put_stays_until_it_takes_it_out() {
    check(own_records);
}

#[test]
fn a_removal_in_two_steps_is_seen_to_lose_what_came_between() {
    check_caught(Fault::TwoStepRemoval, own_records);
}

/// With a walk over the files that locks shards it fails in run 44, with the files locked
/// before the shard in run 6, with bytes that are read and then written in run 29, and in
/// run 99 if what is filed anew loses its namespace on the way.
#[test]
fn whatever_is_done_to_two_objects_each_record_and_byte_is_accounted_for() {
    check(anything);
}

#[test]
fn a_removal_in_two_steps_is_seen_in_what_is_accounted_for() {
    check_caught(Fault::TwoStepRemoval, anything);
}
