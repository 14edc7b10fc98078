//! That nothing goes uncounted, whatever comes: what was received is stored, merged, out
//! of scope or rejected for a reason, and what was stored is live or gone for a reason.
//! It is compared with a plain list of what is live, which knows no slices and no index.

use proptest::prelude::*;

use super::*;
use crate::store::Totals;

/// One thing that may happen.
#[derive(Clone, Debug)]
enum Step {
    See(Sighting),
    Delete(Sighting),
    /// A watch begins a LIST.
    List(u16),
    /// A LIST is read to its end.
    Synced(u16),
    Wait(Seconds),
    /// All is done that there is to do.
    Settle,
}

/// An Event as a watch tells of it.
#[derive(Clone, Debug)]
struct Sighting {
    watch: u16,
    regards: usize,
    name: usize,
    uid: &'static str,
    object_uid: &'static str,
    count: u8,
}

/// What has to become of an Event.
#[derive(Clone, Copy)]
enum Fate {
    Kept,
    OutOfScope,
    Refused(Rejected),
}

/// The namespace of an Event, and the kind, namespace and name of what it regards.
const REGARDS: [([&str; 4], Fate); 10] = [
    (["ns", "Pod", "ns", "p"], Fate::Kept),
    (["ns", "Pod", "ns", "q"], Fate::Kept),
    (["other", "Pod", "other", "p"], Fate::Kept),
    (["default", "Node", "", "n"], Fate::Kept),
    (["elsewhere", "Pod", "elsewhere", "p"], Fate::OutOfScope),
    (["ns", "Job", "ns", "p"], Fate::OutOfScope),
    (["ns", "", "ns", "p"], Fate::Refused(Rejected::NoObject)),
    (["ns", "Pod", "ns", ""], Fate::Refused(Rejected::NoObject)),
    (
        ["ns", "Pod", "other", "p"],
        Fate::Refused(Rejected::ForgedNamespace),
    ),
    (
        ["ns", "Node", "", "n"],
        Fate::Refused(Rejected::ForgedScope),
    ),
];

/// How many of these are kept. They come first.
const N_KEPT: usize = 4;

/// Names of Events: three that are good, none, and one that is too long.
fn name(idx: usize) -> String {
    match idx {
        3 => String::new(),
        4 => "x".repeat(254),
        it => format!("e{it}"),
    }
}

impl Sighting {
    fn fate(&self) -> Fate {
        match (self.name, REGARDS[self.regards].1) {
            (3, _) => Fate::Refused(Rejected::NoName),
            (4, it) if !matches!(it, Fate::Refused(Rejected::NoObject)) => {
                Fate::Refused(Rejected::IdentityTooLong)
            }
            (_, it) => it,
        }
    }

    fn event(&self) -> serde_json::Value {
        let ([event_in, kind, object_in, object], _) = REGARDS[self.regards];
        serde_json::json!({
            "metadata": { "name": name(self.name), "namespace": event_in, "uid": self.uid },
            "regarding": { "kind": kind, "namespace": object_in, "name": object,
                "uid": self.object_uid },
            "note": "a note",
            "deprecatedCount": self.count,
            "deprecatedLastTimestamp": "2026-01-01T00:00:00Z",
        })
    }
}

fn sighting() -> impl Strategy<Value = Sighting> {
    let regards = prop_oneof![9 => 0..N_KEPT, 1 => N_KEPT..REGARDS.len()];
    let name = prop_oneof![9 => 0..3_usize, 1 => 3..5_usize];
    let uid = || prop::sample::select(vec!["", "1", "2"]);
    (0..2_u16, regards, name, uid(), uid(), 1..3_u8).prop_map(
        |(watch, regards, name, uid, object_uid, count)| Sighting {
            watch,
            regards,
            name,
            uid,
            object_uid,
            count,
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => sighting().prop_map(Step::See),
        3 => sighting().prop_map(Step::Delete),
        2 => (0..2_u16).prop_map(Step::List),
        2 => (0..2_u16).prop_map(Step::Synced),
        2 => (0..TTL).prop_map(Step::Wait),
        2 => Just(Step::Settle),
    ]
}

fn some_bounds() -> impl Strategy<Value = Bounds> {
    let store_bytes = prop_oneof![Just(usize::MAX), 0..8_000_usize];
    let objects = prop_oneof![Just(usize::MAX), 0..4_usize];
    (store_bytes, objects, 1..4_usize).prop_map(|(store_bytes, objects, records_per_object)| {
        Bounds {
            store_bytes,
            records_per_object,
            objects,
            ..bounds()
        }
    })
}

/// A record that is live.
#[derive(Clone, Debug)]
struct Known {
    regards: usize,
    name: usize,
    uid: &'static str,
    confirmed: Confirmation,
}

/// What has to be live, in order of arrival, and what has to be counted.
struct Model {
    live: Vec<Known>,
    bounds: Bounds,
    now: Seconds,
    listings: [u32; 2],
    /// Of each watch, the LIST that was read to its end last.
    swept: [u32; 2],
    received: u64,
    out_of_scope: u64,
    rejected: BTreeMap<Rejected, u64>,
    totals: Totals,
}

impl Model {
    fn new(bounds: Bounds) -> Self {
        Self {
            live: Vec::new(),
            bounds,
            now: 1,
            listings: [1; 2],
            swept: [0; 2],
            received: 0,
            out_of_scope: 0,
            rejected: BTreeMap::new(),
            totals: Totals::default(),
        }
    }

    /// Where the record of an Event is, by the Event's name.
    fn position(&self, it: &Sighting) -> Option<usize> {
        let is_it = |known: &Known| known.regards == it.regards && known.name == it.name;
        self.live.iter().position(is_it)
    }

    fn see(&mut self, it: &Sighting) {
        self.received += 1;
        match it.fate() {
            Fate::Kept => self.put(it),
            Fate::OutOfScope => self.out_of_scope += 1,
            Fate::Refused(why) => *self.rejected.entry(why).or_default() += 1,
        }
    }

    fn put(&mut self, it: &Sighting) {
        let new = Known {
            regards: it.regards,
            name: it.name,
            uid: it.uid,
            confirmed: self.confirmation(it.watch),
        };
        match self.position(it) {
            Some(idx) if may_be(self.live[idx].uid, it.uid) => {
                self.live[idx] = new;
                self.totals.merged += 1;
            }
            Some(idx) => {
                self.live.remove(idx);
                self.live.push(new);
                self.totals.stored += 1;
                self.totals.replaced += 1;
            }
            None => {
                self.live.push(new);
                self.totals.stored += 1;
                let of_object = self.live.iter().filter(|known| known.regards == it.regards);
                if self.bounds.records_per_object < of_object.clone().count() {
                    // The first of those that were confirmed longest ago.
                    let oldest = of_object.map(|known| known.confirmed.at).min();
                    let is_oldest = |known: &Known| {
                        known.regards == it.regards && Some(known.confirmed.at) == oldest
                    };
                    let idx = self.live.iter().position(is_oldest).unwrap();
                    self.live.remove(idx);
                    self.totals.over_count += 1;
                }
            }
        }
    }

    fn delete(&mut self, it: &Sighting) {
        if let Some(idx) = self.position(it)
            && may_be(self.live[idx].uid, it.uid)
        {
            self.live.remove(idx);
            self.totals.deleted += 1;
        }
    }

    fn settle(&mut self) {
        let (n_before, now) = (self.live.len(), self.now);
        self.live.retain(|it| now <= it.confirmed.at + TTL);
        let n_left = self.live.len();
        self.totals.expired += u64::try_from(n_before - n_left).unwrap();
        let swept = self.swept;
        self.live
            .retain(|it| swept[usize::from(it.confirmed.watch)] <= it.confirmed.listing);
        self.totals.swept += u64::try_from(n_left - self.live.len()).unwrap();
    }

    fn confirmation(&self, watch: u16) -> Confirmation {
        Confirmation {
            watch,
            listing: self.listings[usize::from(watch)],
            at: self.now,
        }
    }

    fn n_objects(&self) -> usize {
        let objects: BTreeSet<_> = self.live.iter().map(|it| it.regards).collect();
        objects.len()
    }

    /// Takes over which objects have made room for others: whole ones, if there was
    /// too much, and all of it counted.
    fn make_room(&mut self, live: &Live) -> Result<(), TestCaseError> {
        let is_over =
            self.bounds.store_bytes != usize::MAX || self.bounds.objects < self.n_objects();
        let mut n_gone = 0;
        for regards in 0..N_KEPT {
            if live.store.view(&object(regards), |_| ()).is_none() {
                let n_before = self.live.len();
                self.live.retain(|it| it.regards != regards);
                n_gone += n_before - self.live.len();
            }
        }
        prop_assert!(is_over || n_gone == 0, "{n_gone} went for nothing");
        let (want, totals) = (&mut self.totals, live.store.totals());
        let for_bytes = totals.evicted - want.evicted;
        let for_objects = totals.over_count - want.over_count;
        prop_assert_eq!(for_bytes + for_objects, u64::try_from(n_gone).unwrap());
        prop_assert!(for_bytes == 0 || self.bounds.store_bytes != usize::MAX);
        prop_assert!(for_objects == 0 || self.bounds.objects != usize::MAX);
        (want.evicted, want.over_count) = (totals.evicted, totals.over_count);
        Ok(())
    }

    /// All that is live, and each number, is as it has to be.
    fn check(&self, live: &Live) -> Result<(), TestCaseError> {
        for regards in 0..N_KEPT {
            let of_object = self.live.iter().filter(|it| it.regards == regards);
            let want: Vec<_> = of_object
                .map(|it| (name(it.name), it.uid.to_owned(), it.confirmed))
                .collect();
            let records = live.store.view(&object(regards), |bucket| {
                let records = bucket.records().iter();
                let of_each = records.map(|it| {
                    let record = &it.record;
                    (
                        record.name().to_owned(),
                        record.uid().to_string(),
                        it.confirmed,
                    )
                });
                of_each.collect::<Vec<_>>()
            });
            prop_assert_eq!(records.unwrap_or_default(), want);
        }
        prop_assert_eq!(live.store.n_buckets(), self.n_objects());
        let filed = live.store.walk(None, Seconds::MAX, usize::MAX).0;
        prop_assert_eq!(filed.len(), self.n_objects());

        let (counters, totals) = (&live.counters, live.store.totals());
        prop_assert_eq!(totals, self.totals);
        prop_assert_eq!(counters.received.load(Relaxed), self.received);
        prop_assert_eq!(counters.out_of_scope.load(Relaxed), self.out_of_scope);
        let rejected = counters.rejected().filter(|(_, n)| *n != 0);
        prop_assert_eq!(&rejected.collect::<BTreeMap<_, _>>(), &self.rejected);

        // The law itself, in the numbers that are told.
        let n_rejected: u64 = counters.rejected().map(|(_, n)| n).sum();
        let Totals {
            stored,
            merged,
            deleted,
            replaced,
            evicted,
            swept,
            expired,
            over_count,
            object_gone,
            unwatched,
        } = totals;
        prop_assert_eq!(
            self.received,
            stored + merged + counters.out_of_scope.load(Relaxed) + n_rejected
        );
        let n_live = u64::try_from(live.store.n_records()).unwrap();
        let removed =
            deleted + replaced + evicted + swept + expired + over_count + object_gone + unwatched;
        prop_assert_eq!(stored, n_live + removed);
        Ok(())
    }
}

fn object(regards: usize) -> ObjectKey {
    let ([_, kind, namespace, name], _) = REGARDS[regards];
    ObjectKey::new(namespace, kind, name).unwrap()
}

/// Whether two uids may be of one Event.
fn may_be(one: &str, other: &str) -> bool {
    one == other || one.is_empty() || other.is_empty()
}

proptest! {
    #[test]
    fn nothing_goes_uncounted_whatever_comes(
        bounds in some_bounds(),
        steps in prop::collection::vec(step(), 1..80),
    ) {
        let (mut live, mut model) = (live(bounds), Model::new(bounds));
        for step in steps {
            match &step {
                Step::See(it) => {
                    let Confirmation { watch, listing, at } = model.confirmation(it.watch);
                    live.see(&it.event(), watch, listing, at);
                    model.see(it);
                }
                Step::Delete(it) => {
                    live.see_deleted(&it.event());
                    model.delete(it);
                }
                Step::List(watch) => model.listings[usize::from(*watch)] += 1,
                Step::Synced(watch) => {
                    let listing = model.listings[usize::from(*watch)];
                    live.sweep(*watch, listing, model.now);
                    model.swept[usize::from(*watch)] = listing;
                }
                Step::Wait(seconds) => model.now += seconds,
                Step::Settle => {
                    live.settle(model.now);
                    model.settle();
                    prop_assert!(live.store.n_bytes() <= bounds.store_bytes);
                    prop_assert!(live.store.n_buckets() <= bounds.objects);
                }
            }
            model.make_room(&live)?;
            model.check(&live)?;
        }
    }
}
