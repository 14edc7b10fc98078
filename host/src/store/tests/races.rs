//! What must hold when several threads change one bucket. Each of these was run
//! against the wrong code first; its comment says how often it caught it, on two
//! cores that others used, too.

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

/// What a thread put stays until that thread removes it, however often another
/// empties the same bucket. With the removal split in two (take the record out,
/// then drop the bucket if it is empty) this failed in 40 runs of 40;
/// on idle cores, with the map optimised and twice the rounds, in 39.
#[test]
fn a_removal_does_not_swallow_a_racing_insert() {
    let store = four(|store, object, mine| {
        for round in 0..ROUNDS {
            store.put(object.clone(), mine.clone(), Confirmation::default());
            let is_there = store.view(object, |bucket| {
                bucket.records().iter().any(|it| it.record == *mine)
            });
            assert_eq!(is_there, Some(true), "{mine:?} lost in round {round}");
            store.remove(object, mine.name(), mine.uid());
        }
    });
    assert_eq!(store.n_buckets(), 0);
    let changes = 4 * u64::from(ROUNDS);
    let totals = store.totals();
    assert_eq!((totals.stored, totals.deleted), (changes, changes));
    assert_eq!(store.n_bytes(), 0);
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
            store.remove(object, mine.name(), mine.uid());
        }
    });
}

/// Nothing goes uncounted, whoever takes whose records away. With the removal
/// split in two this failed in 37 runs of 40.
#[test]
fn what_was_stored_is_live_or_counted_as_gone() {
    let store = four(|store, object, mine| {
        for round in 0..ROUNDS / 4 {
            store.put(object.clone(), mine.clone(), Confirmation::default());
            match round % 4 {
                0 => drop(store.evict(object)),
                1 => drop(store.remove(object, "a", "a")),
                _ => drop(store.remove(object, mine.name(), mine.uid())),
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
    } = store.totals();
    assert_eq!(stored + merged, u64::from(ROUNDS), "what came");
    let live = u64::try_from(store.n_records()).unwrap();
    assert_eq!(stored, live + deleted + replaced + evicted);
    store.evict(&pod("pod"));
    assert_eq!((store.n_records(), store.n_buckets()), (0, 0));
    assert_eq!(store.n_bytes(), 0);
}
