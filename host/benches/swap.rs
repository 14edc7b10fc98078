//! 1,000 swaps of plugins, under more than 1,000 Events a second, in one process.
//!
//! One thread writes versions into a folder and loads them, as `portent run` does but for the quarter of a
//! second that it lets a file settle; the other is the live path, with a pod every fraction of a millisecond
//! and 500 that live. Each version stamps what it says, so that what comes out tells who said it.
//!
//! Before that: how long the Events of one plugin take alone, and beside one that loops for ever and is never
//! left alone.

#![allow(
    clippy::unwrap_used,
    reason = "a benchmark says what went wrong by failing"
)]
#![allow(clippy::print_stdout, reason = "it is what this is for")]
#![allow(
    clippy::cast_precision_loss,
    reason = "what is counted here is far below what a float holds"
)]

#[path = "../tests/support/mod.rs"]
mod support;

use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    fs,
    num::NonZeroUsize,
    sync::{Arc, mpsc},
    thread,
    time::{Duration, Instant},
};

use portent::{
    dispatch::Pauses,
    live::{Bounds, Live},
    outcome::EndReason,
    plugins::{Loader, PluginSet, Terms, Why},
    record::Caps,
    sandbox::{Limits, STACK_MIN_BYTES, Sandbox, on_guest_stack},
    scope::{Reach, Scope},
    store::Confirmation,
};
use portent_hostile::component_of;
use support::stamped;

const SWAPS: u32 = 1_000;

/// Pods that have an Event at a time.
const LIVE: usize = 500;

/// More pods than there are in all.
const PODS_MAX: usize = 1 << 20;

/// How often there is an Event.
const EVERY: Duration = Duration::from_micros(400);

/// How long fairness is looked at, alone and beside another.
const FAIR: Duration = Duration::from_secs(8);

fn main() {
    fairness();
    let folder = tempfile::tempdir().unwrap();
    let sandbox = Sandbox::new(Limits::default()).unwrap();
    let path = folder.path().join("a.wasm");
    fs::write(&path, stamped("a", 0)).unwrap();
    let mut loader = Loader::new(sandbox, folder.path().to_owned(), Terms::default());
    let (send, sets) = mpsc::sync_channel::<(u32, Arc<PluginSet>)>(1);
    let versions: Vec<_> = (0..100).map(|it| stamped("a", it)).collect();
    let loading = thread::Builder::new().stack_size(STACK_MIN_BYTES);
    let loading = loading.spawn(move || {
        send.send((0, loader.first().unwrap())).unwrap();
        for swap in 1..=SWAPS {
            let stamp = swap % 100;
            fs::write(&path, &versions[stamp as usize]).unwrap();
            let set = loop {
                loader.look(Why::Regular);
                if let Some(set) = loader.look(Why::Settling).set {
                    break set;
                }
            };
            send.send((stamp, set)).unwrap();
        }
        // Folder and loader stay until all is told.
        drop(folder);
    });
    let loading = loading.unwrap();

    let (_, first) = sets.recv().unwrap();
    let mut bench = Bench::new(first);
    bench.run(Duration::from_secs(2), &sets, false);
    let alone = bench.percentiles("no swaps");
    bench.run(Duration::from_hours(1), &sets, true);
    loading.join().unwrap();
    bench.finish();
    let swapping = bench.percentiles("with swaps");
    println!(
        "p99 alone {alone:.2?}, with swaps {swapping:.2?}; a swap stopped the live path for {:.0?} at most",
        bench.live.held().longest
    );
    println!(
        "{} swaps in {:.1?}, {:.0} events/s; {} events, each told once; {} batches waited for a swap",
        bench.n_swaps,
        bench.took,
        bench.n_events_of_swaps as f64 / bench.took.as_secs_f64(),
        bench.n_pods,
        bench.live.held().n_batches
    );
    println!(
        "held: {} bytes of records, {} of outcomes of {} subjects",
        bench.live.store().n_bytes(),
        bench.live.outcomes().n_bytes(),
        bench.live.outcomes().n_subjects()
    );
    println!(
        "resident memory after ten swaps {:.1} MB, after {} {:.1} MB",
        bench.rss_after_ten as f64 / 1e6,
        bench.n_swaps,
        rss() as f64 / 1e6
    );
}

/// What one plugin's Events have to bear when another loops: its own p99, and one deadline.
fn fairness() {
    let loops = "(func $misbehave (param i32 i32) (result i32) (loop $l (br $l)) (i32.const 0))";
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.wasm"), stamped("a", 0)).unwrap();
    let measure = |what: &str| {
        let sandbox = Sandbox::new(Limits::default()).unwrap();
        let set = on_guest_stack(|| PluginSet::load(&sandbox, folder.path()).unwrap());
        let deadline = set.plugins[0].guest.deadline(&[]);
        let mut bench = Bench::new(Arc::new(set));
        bench.live.set_pauses(Pauses {
            first: 0,
            longest: 0,
        });
        // Nobody sends any.
        let (_, sets) = mpsc::channel();
        bench.run(FAIR, &sets, false);
        (bench.percentiles(what), deadline)
    };
    let (alone, deadline) = measure("alone");
    fs::write(
        folder.path().join("loops.wasm"),
        component_of("loops", loops),
    )
    .unwrap();
    let (beside, _) = measure("beside one that loops");
    let is_fair = beside <= alone + deadline;
    println!(
        "fairness: p99 alone {alone:.2?}, beside a plugin that loops {beside:.2?}, a deadline is {deadline:.0?}: {}",
        if is_fair { "fair" } else { "NOT FAIR" }
    );
}

struct Bench {
    live: Live,
    stamps: HashMap<String, String>,
    /// When the Event of each pod was sent, by its number.
    sent: Vec<Instant>,
    raised: Vec<bool>,
    waits: Vec<Duration>,
    pods: VecDeque<usize>,
    n_pods: usize,
    n_events_of_swaps: usize,
    n_swaps: u32,
    took: Duration,
    rss_after_ten: u64,
}

impl Bench {
    fn new(first: Arc<PluginSet>) -> Self {
        let scope = Scope::new(
            Reach::Namespaces(BTreeSet::from(["ns".parse().unwrap()])),
            BTreeSet::from(["Pod".parse().unwrap()]),
            BTreeSet::new(),
        );
        let digest = first.plugins[0].provenance.digest.to_string();
        let live = Live::new(
            1,
            scope.unwrap(),
            first,
            &Limits::default(),
            Caps::default(),
            Bounds {
                // Soon full, so that what is held is as much after ten swaps as at the end.
                outcome_bytes: 2 << 20,
                ..Bounds::default()
            },
            NonZeroUsize::new(2).unwrap(),
            &(Arc::new(|| {}) as Arc<dyn Fn() + Send + Sync>),
        );
        Self {
            live: live.unwrap(),
            stamps: HashMap::from([(digest, "00".to_owned())]),
            // Of a size that does not change: it is not what is measured.
            sent: vec![Instant::now(); PODS_MAX],
            raised: vec![false; PODS_MAX],
            waits: {
                let mut waits = vec![Duration::ZERO; PODS_MAX];
                waits.clear();
                waits
            },
            pods: VecDeque::new(),
            n_pods: 0,
            n_events_of_swaps: 0,
            n_swaps: 0,
            took: Duration::ZERO,
            rss_after_ten: 0,
        }
    }

    /// An Event every so often, until there are no more sets, or for so long.
    fn run(&mut self, period: Duration, sets: &mpsc::Receiver<(u32, Arc<PluginSet>)>, swaps: bool) {
        let began = Instant::now();
        let n_before = self.n_pods;
        let mut next = began;
        while began.elapsed() < period {
            if swaps {
                match sets.try_recv() {
                    Ok((stamp, set)) => self.swap(stamp, set),
                    Err(mpsc::TryRecvError::Empty) => {}
                    Err(mpsc::TryRecvError::Disconnected) => break,
                }
            }
            if next <= Instant::now() {
                next += EVERY;
                self.event();
            } else {
                thread::sleep(Duration::from_micros(100));
            }
            self.turn();
        }
        if swaps {
            self.took = began.elapsed();
            self.n_events_of_swaps = self.n_pods - n_before;
        }
    }

    fn swap(&mut self, stamp: u32, set: Arc<PluginSet>) {
        let digest = set.plugins[0].provenance.digest.to_string();
        self.stamps.insert(digest, format!("{stamp:02}"));
        self.live.swap(set);
        self.n_swaps += 1;
        if self.n_swaps == 10 {
            self.rss_after_ten = rss();
        }
        if self.n_swaps.is_multiple_of(200) {
            println!("after {} swaps {:.1} MB", self.n_swaps, rss() as f64 / 1e6);
        }
    }

    fn event(&mut self) {
        let json = event(self.n_pods);
        self.live.put(
            &serde_json::from_str(&json).unwrap(),
            Confirmation::default(),
            1_900_000_000_000,
        );
        self.sent[self.n_pods] = Instant::now();
        self.pods.push_back(self.n_pods);
        self.n_pods += 1;
        if LIVE < self.pods.len()
            && let Some(pod) = self.pods.pop_front()
        {
            let json = event(pod);
            self.live.delete(&serde_json::from_str(&json).unwrap());
        }
    }

    fn turn(&mut self) {
        let Self {
            live,
            stamps,
            sent,
            raised,
            waits,
            ..
        } = self;
        live.collect(
            &mut |change, _| {
                let stamp = &stamps[&*change.classifier.digest];
                let delta = &change.delta;
                for it in delta.raised.iter().chain(&delta.changed) {
                    assert_eq!(*it.message, **stamp, "said by half a version");
                }
                // Of pods that are gone for long: the bound of what is held is small.
                for (_, why) in &delta.cleared {
                    assert_eq!(*why, EndReason::OverBytes);
                }
                if !delta.raised.is_empty() {
                    let pod = change.subject.object.name().strip_prefix("poison-");
                    let pod: usize = pod.unwrap().parse().unwrap();
                    assert!(!raised[pod], "{pod} is told twice");
                    raised[pod] = true;
                    waits.push(sent[pod].elapsed());
                }
            },
            &mut |_| {},
        );
        live.step(1);
        live.submit();
    }

    fn finish(&mut self) {
        while !self.live.is_idle() {
            self.turn();
        }
        self.turn();
        let n_raised = self.raised.iter().filter(|it| **it).count();
        assert_eq!(n_raised, self.n_pods, "some are lost");
        assert_eq!((self.live.n_late(), self.n_swaps), (0, SWAPS));
    }

    /// Prints how long Events waited to be told of, and says what 99 of 100 did at most.
    fn percentiles(&mut self, what: &str) -> Duration {
        let waits = &mut self.waits;
        waits.sort_unstable();
        let at = |share: usize| waits[waits.len() * share / 100];
        println!(
            "{what}: {} events, p50 {:.2?}, p99 {:.2?}, max {:.2?}",
            waits.len(),
            at(50),
            at(99),
            waits[waits.len() - 1]
        );
        let p99 = at(99);
        waits.clear();
        p99
    }
}

fn event(pod: usize) -> String {
    serde_json::json!({
        "metadata": { "name": format!("e{pod}"), "namespace": "ns", "uid": format!("uid-e{pod}"),
            "creationTimestamp": "2026-01-01T00:00:00Z" },
        "regarding": { "kind": "Pod", "namespace": "ns", "name": format!("poison-{pod}"),
            "uid": format!("uid-{pod}") },
        "type": "Warning",
        "reason": "Reason",
        "note": "a note",
        "deprecatedLastTimestamp": "2026-01-01T00:00:00Z",
    })
    .to_string()
}

fn rss() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|it| it.strip_prefix("VmRSS:"));
    let kib = line.unwrap().split_ascii_whitespace().next().unwrap();
    kib.parse::<u64>().unwrap() * 1_024
}
