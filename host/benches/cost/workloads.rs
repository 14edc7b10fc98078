//! The workloads, along the data path.
//!
//! Each handles so many Events that what surrounds it does not matter. Memory
//! that a workload allocates and returns is freed unmeasured, except where it
//! says so.

use std::{cell::LazyCell, hint::black_box, num::NonZeroUsize, sync::Arc};

use portent::{
    interner::Interner,
    outcome::{Change, Held, Outcome, Outcomes, Provenance},
    plugins::PluginSet,
    record::Rejected,
    replay::{
        Bounds, Listener, Replay,
        input::{self, Item, Origin, Problem},
    },
    sandbox::{Limits, Spent},
    store::{Confirmation, Put, Store},
    subject::{Subject, SubjectKey},
};

use serde::de::IgnoredAny;

use super::{
    events::{self, Form},
    guests::{decoded, load, named, record, records, split, store, subjects},
    meter::Meter,
};

/// Events of a workload that takes one after the other.
const N_EVENTS: usize = 10_000;

/// Events of a replay.
const N_REPLAYED: usize = 100_000;

/// The plugins, once anyone wants them.
type Plugins = LazyCell<Arc<PluginSet>>;

/// All workloads.
pub(crate) fn all(meter: &mut Meter<'_>) {
    let plugins: Plugins = LazyCell::new(|| load(Limits::default()));
    decode(meter);
    put(meter);
    call(meter, &plugins);
    merge(meter, &plugins);
    replay(meter, &plugins);
}

/// From bytes to what is borrowed from them, and on into an empty store. `scan` is
/// what cannot be had for less: the JSON walked over, and nothing taken. It tells
/// how fast a machine is.
fn decode(meter: &mut Meter<'_>) {
    let lines = LazyCell::new(|| events::lines(Form::Watched, N_EVENTS, 1));
    meter.workload(
        "scan",
        N_EVENTS,
        || split(&lines),
        |lines| {
            for it in &lines {
                let scanned: IgnoredAny = serde_json::from_slice(it).expect("it is JSON");
                black_box(scanned);
            }
            lines
        },
    );
    meter.workload(
        "decode",
        N_EVENTS,
        || split(&lines),
        |lines| {
            for it in &lines {
                black_box(decoded(it));
            }
            lines
        },
    );
    meter.workload(
        "decode-store",
        N_EVENTS,
        || (split(&lines), Store::default()),
        |(lines, store)| {
            for it in &lines {
                let (key, record) = record(it, store.interner());
                black_box(store.put(key, record, Confirmation::default()));
            }
            (lines, store)
        },
    );
}

/// A record into the store, again with another count, and out of it.
fn put(meter: &mut Meter<'_>) {
    let of_count = |count| records(&events::lines(Form::Watched, N_EVENTS, count));
    let once = LazyCell::new(|| of_count(1));
    let twice = LazyCell::new(|| of_count(2));
    meter.workload("store-insert", N_EVENTS, || once.clone(), store);
    meter.workload(
        "store-update",
        N_EVENTS,
        || (store(once.clone()), twice.clone()),
        |(store, records)| {
            for (key, record) in records {
                let put = store.put(key, record, Confirmation::default());
                assert!(matches!(put, Put::Updated(_)), "{put:?}");
            }
            store
        },
    );
    meter.workload(
        "store-remove",
        N_EVENTS,
        || store(once.clone()),
        |store| {
            for (key, record) in &*once {
                assert!(store.remove(key, record).is_some());
            }
            store
        },
    );
}

/// Calls of a fresh instance: 64 Events as 64, 16 and 1 subjects, and one alone.
/// One Event in ten is a GPU fault. `faults` is what `gpu-fault` is asked in
/// earnest: all of them are.
fn call(meter: &mut Meter<'_>, plugins: &Plugins) {
    let shapes = [
        ("64x1", 64, 1),
        ("16x4", 16, 4),
        ("1x64", 1, 64),
        ("1x1", 1, 1),
    ];
    for plugin in ["gpu-fault", "additional-reasons"] {
        for (shape, n_pods, of_each) in shapes {
            // In a batch of one that one is ordinary.
            let one_fault_in = if n_pods * of_each == 1 { 0 } else { 10 };
            calls(
                meter,
                plugins,
                plugin,
                shape,
                (n_pods, of_each, one_fault_in),
            );
        }
    }
    calls(meter, plugins, "gpu-fault", "faults-16x4", (16, 4, 1));
}

fn calls(
    meter: &mut Meter<'_>,
    plugins: &Plugins,
    plugin: &str,
    shape: &str,
    (n_pods, of_each, one_fault_in): (usize, usize, usize),
) {
    const N_CALLS: usize = 64;
    let subjects = LazyCell::new(|| {
        subjects(
            &records(&events::of_pods(n_pods, of_each, one_fault_in)),
            |_, _| true,
        )
    });
    meter.workload(
        &format!("call-{plugin}-{shape}"),
        N_CALLS * n_pods * of_each,
        || {
            let interner = Interner::default();
            (named(plugins, plugin), LazyCell::force(&subjects), interner)
        },
        |(plugin, subjects, interner)| {
            for _ in 0..N_CALLS {
                let outcomes = plugin
                    .guest
                    .classify(subjects, &interner, &mut Spent::default())
                    .expect("the call succeeds");
                assert!(outcomes.iter().all(Result::is_ok));
            }
        },
    );
}

/// Said of whom, and by whom.
type Said = Vec<(Subject, Arc<Provenance>, Outcome)>;

/// What both plugins say of an ordinary mix, into an empty table and once more.
fn merge(meter: &mut Meter<'_>, plugins: &Plugins) {
    let said = LazyCell::new(|| {
        let records = records(&events::lines(Form::Watched, N_EVENTS, 1));
        let interner = Interner::default();
        let of_each = plugins.plugins.iter().flat_map(|plugin| {
            let wants = |object: &_, it: &_| plugin.description().wants(object, it);
            let subjects = subjects(&records, wants);
            let batches = subjects.chunks(16).flat_map(|batch| {
                let outcomes = plugin
                    .guest
                    .classify(batch, &interner, &mut Spent::default())
                    .expect("the call succeeds");
                let said = batch.iter().cloned().zip(outcomes);
                let said = said.map(|(subject, outcome)| {
                    let outcome = outcome.expect("it is within the contract");
                    (subject, Arc::clone(&plugin.provenance), outcome)
                });
                said.collect::<Said>()
            });
            batches.collect::<Said>()
        });
        of_each.collect::<Said>()
    });
    let generation = plugins.generation;
    let into = |outcomes: &Outcomes, said: Said| {
        for (subject, classifier, outcome) in said {
            black_box(outcomes.merge(&subject, &classifier, generation, Ok(outcome)));
        }
    };
    meter.workload(
        "merge-first",
        N_EVENTS,
        || (Outcomes::default(), said.clone()),
        |(outcomes, said)| {
            into(&outcomes, said);
            outcomes
        },
    );
    meter.workload(
        "merge-again",
        N_EVENTS,
        || {
            let outcomes = Outcomes::default();
            into(&outcomes, said.clone());
            (outcomes, said.clone())
        },
        |(outcomes, said)| {
            into(&outcomes, said);
            outcomes
        },
    );
}

/// The whole path: from JSON lines in memory to what is handed out at the end,
/// with one worker.
fn replay(meter: &mut Meter<'_>, plugins: &Plugins) {
    let lines = LazyCell::new(|| events::lines(Form::Watched, N_REPLAYED, 1));
    meter.workload(
        "replay",
        N_REPLAYED,
        || {
            let (plugins, limits) = (Arc::clone(plugins), Limits::default());
            let replay = Replay::new(plugins, &limits, Bounds::default(), NonZeroUsize::MIN);
            (
                LazyCell::force(&lines),
                replay.expect("a thread can be started"),
            )
        },
        |(lines, replay)| {
            let mut reader = Replayed(replay, Count::default());
            input::read(&**lines, &mut reader, Origin::Named).expect("memory can be read");
            let Replayed(mut replay, mut count) = reader;
            replay.finish(&mut count);
            assert!(0 < count.n_elements && 0 < count.n_changes);
            replay
        },
    );
}

/// Takes what is read to a replay.
struct Replayed(Replay, Count);

impl input::Reader for Replayed {
    fn item(&mut self, item: Item<'_>) -> Result<(), Rejected> {
        match item {
            Item::Put(wire) => self.0.put(&wire, &mut self.1),
            Item::Deleted(_) => unreachable!("nothing is deleted in it"),
        }
    }

    fn pod(
        &mut self,
        _: portent::pods::decode::WirePod<'_>,
    ) -> Result<(), portent::pods::decode::Rejected> {
        unreachable!("no input is said to hold Pods")
    }

    fn problem(&mut self, problem: Problem) {
        panic!("{problem}");
    }

    fn refused(&mut self, problem: Problem) {
        panic!("{problem}");
    }

    fn foreign(&mut self) {}

    fn is_stopped(&self) -> bool {
        false
    }
}

/// Listens, and keeps nothing.
#[derive(Default)]
struct Count {
    n_changes: u64,
    n_elements: u64,
}

impl Listener for Count {
    fn change(&mut self, _: Change) {
        self.n_changes += 1;
    }

    fn element(&mut self, _: &SubjectKey, held: &[Held]) {
        self.n_elements += held.len() as u64;
    }
}
