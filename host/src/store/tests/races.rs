//! What must hold when several threads change one bucket. Each of these was run
//! against the wrong code first; its comment says how often it caught it, on two
//! cores that others used, too.

use std::sync::atomic::AtomicBool;

use super::*;

const ROUNDS: u32 = 200_000;

/// Four threads, each with a record of its own in the same bucket.
fn four(work: impl Fn(&Store, &ObjectKey, &Record) + Sync) -> Store {
    let store = Store::default();
    thread::scope(|scope| {
        for name in ["a", "b", "c", "d"] {
            let (store, work) = (&store, &work);
            let (object, record) = sighting("pod", name, name, 1, "x");
            scope.spawn(move || work(store, &object, &record));
        }
    });
    store
}

/// What a thread puts a record into.
trait Buckets: Sync {
    fn put(&self, object: &ObjectKey, record: &Record);
    fn has(&self, object: &ObjectKey, record: &Record) -> bool;
    fn remove(&self, object: &ObjectKey, record: &Record);
}

impl Buckets for Store {
    fn put(&self, object: &ObjectKey, record: &Record) {
        Self::put(
            self,
            object.clone(),
            record.clone(),
            Confirmation::default(),
        );
    }

    fn has(&self, object: &ObjectKey, record: &Record) -> bool {
        let has = |bucket: &Bucket| bucket.records().iter().any(|it| it.record == *record);
        self.view(object, has) == Some(true)
    }

    fn remove(&self, object: &ObjectKey, record: &Record) {
        Self::remove(self, object, record);
    }
}

/// The wrong code, kept to see that it is caught: a removal in two steps.
#[derive(Default)]
struct InTwoSteps(DashMap<ObjectKey, Vec<Record>>);

impl Buckets for InTwoSteps {
    fn put(&self, object: &ObjectKey, record: &Record) {
        let mut bucket = self.0.entry(object.clone()).or_default();
        bucket.push(record.clone());
    }

    fn has(&self, object: &ObjectKey, record: &Record) -> bool {
        let bucket = self.0.get(object);
        bucket.is_some_and(|bucket| bucket.contains(record))
    }

    fn remove(&self, object: &ObjectKey, record: &Record) {
        let is_empty = self.0.get_mut(object).is_some_and(|mut bucket| {
            bucket.retain(|it| it != record);
            bucket.is_empty()
        });
        // What another puts into the bucket now goes with it.
        if is_empty {
            self.0.remove(object);
        }
    }
}

/// So many threads, four to an object, put a record of their own into its bucket, look
/// for it and remove it, again and again. Whether one of them did not find its own; no
/// round is begun after that.
fn loses_a_record(buckets: &impl Buckets, n_threads: u32, rounds: u32) -> bool {
    let is_lost = AtomicBool::new(false);
    thread::scope(|scope| {
        for idx in 0..n_threads {
            let (is_lost, name) = (&is_lost, format!("e{idx}"));
            let (object, mine) = sighting(&format!("pod-{}", idx / 4), &name, &name, 1, "x");
            scope.spawn(move || {
                for _ in 0..rounds {
                    if is_lost.load(Relaxed) {
                        return;
                    }
                    buckets.put(&object, &mine);
                    if !buckets.has(&object, &mine) {
                        is_lost.store(true, Relaxed);
                    }
                    buckets.remove(&object, &mine);
                }
            });
        }
    });
    is_lost.into_inner()
}

/// No record is lost by so many threads, and none of them leaves anything behind.
#[track_caller]
fn check_loses_none(n_threads: u32, rounds: u32) {
    let store = Store::default();
    assert!(!loses_a_record(&store, n_threads, rounds));
    let changes = u64::from(n_threads) * u64::from(rounds);
    let totals = store.totals();
    assert_eq!((totals.stored, totals.deleted), (changes, changes));
    assert_eq!((store.n_buckets(), store.n_bytes()), (0, 0));
}

/// What a thread put stays until that thread removes it, however often another
/// empties the same bucket. With our own removal split in two (take the record out,
/// then drop the bucket if it is empty) this failed in 40 runs of 40;
/// on idle cores, with the map optimised and twice the rounds, in 39.
#[test]
fn a_removal_does_not_swallow_a_racing_insert() {
    check_loses_none(4, ROUNDS);
}

/// As many as Flyte tries it with.
#[test]
fn of_400_that_empty_buckets_at_once_none_loses_its_record() {
    check_loses_none(400, ROUNDS / 100);
}

/// A test of a race proves nothing until it has failed. On two cores the first run caught
/// it in 20 of 20, on one the eighth at the latest.
#[test]
fn what_stresses_the_store_catches_a_removal_in_two_steps() {
    for (n_threads, rounds) in [(4, ROUNDS), (400, ROUNDS / 100)] {
        let broken = InTwoSteps::default();
        let mut runs = 0..50;
        let is_caught = runs.any(|_| loses_a_record(&broken, n_threads, rounds));
        assert!(is_caught, "by {n_threads} threads");
    }
}

/// A result for an older version is dropped, so a version that went back would
/// lose the newest. With the number drawn before the bucket is locked this failed
/// in 40 runs of 40.
#[test]
fn the_version_of_a_bucket_never_goes_back() {
    four(|store, object, mine| {
        let mut seen = Version::default();
        for round in 0..ROUNDS {
            store.put(object.clone(), mine.clone(), Confirmation::default());
            let (version, sequences) = store
                .view(object, |bucket| {
                    let sequences = bucket.records().iter().map(|it| it.sequence);
                    (bucket.version(), sequences.collect::<Vec<_>>())
                })
                .unwrap();
            assert!(
                seen <= version,
                "{seen:?} then {version:?} in round {round}"
            );
            assert!(sequences.is_sorted(), "{sequences:?} in round {round}");
            seen = version;
            store.remove(object, mine);
        }
    });
}

/// Nothing goes uncounted, whoever takes whose records away. With the removal
/// split in two this failed in 37 runs of 40.
#[test]
fn what_was_stored_is_live_or_counted_as_gone() {
    let (_, first) = sighting("pod", "a", "a", 1, "x");
    let store = four(|store, object, mine| {
        for round in 0..ROUNDS / 4 {
            store.put(object.clone(), mine.clone(), Confirmation::default());
            match round % 4 {
                0 => drop(store.evict(object)),
                1 => drop(store.remove(object, &first)),
                _ => drop(store.remove(object, mine)),
            }
        }
    });
    let Totals {
        stored,
        merged,
        deleted,
        replaced,
        evicted,
        swept: _,
        expired: _,
        over_count: _,
        object_gone: _,
        unwatched: _,
    } = store.totals();
    assert_eq!(stored + merged, u64::from(ROUNDS), "what came");
    let live = u64::try_from(store.n_records()).unwrap();
    assert_eq!(stored, live + deleted + replaced + evicted);
    store.evict(&pod("pod"));
    assert_eq!((store.n_records(), store.n_buckets()), (0, 0));
    assert_eq!(store.n_bytes(), 0);
}
