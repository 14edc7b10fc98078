//! What is left of 200,000 objects when all of their Events are gone: the
//! measurement that flyte #7992 was found by, of our store and of the whole path.
//!
//! `cargo xtask bench churn` runs it. Each row is a process of its own, since what
//! one run leaves in the allocator is there at the start of the next. Live heap is
//! what was asked of the allocator and not given back, to the byte; RSS is the
//! kernel's. Nothing is drawn at random: two runs differ in time and RSS only.
//!
//! With a row's words as arguments it runs that row and prints its line:
//! `store|pipeline deleted|expired|relisted SURVIVORS_PERCENT FAULTS_PERCENT`.

#![allow(clippy::print_stdout, reason = "it is what this is for")]
#![allow(
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    reason = "a benchmark says what went wrong by failing, and counts no further than 2^53"
)]

use std::{
    collections::BTreeSet,
    env, fs,
    num::NonZeroUsize,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

use portent::{
    live::{Bounds, Live},
    plugins::PluginSet,
    record::{
        Caps, UnixMs,
        decode::{WireEvent, from_json},
    },
    sandbox::Limits,
    scope::{Reach, Scope},
    store::{Confirmation, Seconds},
};

#[path = "cost/events.rs"]
#[allow(dead_code, reason = "the other benches use more of it")]
mod events;
#[path = "cost/guests.rs"]
#[allow(dead_code, reason = "the other benches use more of it")]
mod guests;
#[path = "churn/heap.rs"]
mod heap;

const N_OBJECTS: usize = 200_000;
const OF_EACH: usize = 3;

/// Before what is claimed of any Event here.
const NOW: UnixMs = 1_800_000_000_000;

/// Every row: path, how Events go, percent of objects that stay, percent of Events
/// that are faults.
const ROWS: [[&str; 4]; 11] = [
    ["store", "deleted", "0", "0"],
    ["store", "deleted", "1", "0"],
    ["store", "deleted", "10", "0"],
    ["store", "expired", "0", "0"],
    ["store", "relisted", "0", "0"],
    ["store", "relisted", "1", "0"],
    ["pipeline", "deleted", "0", "0"],
    ["pipeline", "deleted", "1", "0"],
    ["pipeline", "expired", "0", "0"],
    ["pipeline", "relisted", "0", "0"],
    ["pipeline", "deleted", "0", "1"],
];

fn main() {
    portent::memory::free_at_once();
    let args: Vec<_> = env::args().skip(1).filter(|it| it != "--bench").collect();
    if let [path, end, survivors, faults] = &*args {
        row(
            path,
            end,
            survivors.parse().unwrap(),
            faults.parse().unwrap(),
        );
        return;
    }
    println!(
        "{:<9} {:<9} {:>5} {:>6}  {:>8} {:>8}  {:>6} {:>6} {:>6} {:>6}  {:>6} {:>6} {:>6}  {:>7} {:>7}",
        "path",
        "end",
        "stay%",
        "fault%",
        "buckets",
        "outcomes",
        "heap0",
        "peak",
        "after",
        "store",
        "rss0",
        "peak",
        "after",
        "within",
        "stall"
    );
    for args in ROWS {
        let program = env::current_exe().unwrap();
        assert!(Command::new(program).args(args).status().unwrap().success());
    }
}

fn row(path: &str, end: &str, survivors: usize, faults: usize) {
    let plugins = match path {
        "pipeline" => guests::load(Limits::default()),
        _ => Arc::<PluginSet>::default(),
    };
    let mut run = Run::new(plugins, faults);
    let stays = |object: usize| survivors != 0 && object.is_multiple_of(100 / survivors);
    let start = Memory::now();
    for object in 0..N_OBJECTS {
        run.put(object, 1, 0);
    }
    run.settle(0);
    let peak = Memory::now();

    let stall = Stall::begin();
    run.longest = Duration::ZERO;
    let mut at = 1;
    match end {
        "deleted" => {
            for object in (0..N_OBJECTS).filter(|it| !stays(*it)) {
                run.delete(object);
            }
        }
        "expired" => {
            at = Bounds::default().time_to_live;
            for object in (0..N_OBJECTS).filter(|it| stays(*it)) {
                run.put(object, 1, at);
            }
            at += 2;
        }
        _ => {
            for object in (0..N_OBJECTS).filter(|it| stays(*it)) {
                run.put(object, 2, at);
            }
            run.live.sweep(0, 2, at);
        }
    }
    let began = Instant::now();
    let mut within = None;
    while began.elapsed() < Duration::from_secs(30) {
        run.settle(at);
        if Memory::now().rss < start.rss + 10_000_000 {
            within = Some(began.elapsed());
            break;
        }
        thread::sleep(Duration::from_millis(500));
        at += 1;
    }
    let after = Memory::now();
    let mb = |bytes: usize| format!("{:.1}", bytes as f64 / 1e6);
    println!(
        "{path:<9} {end:<9} {survivors:>5} {faults:>6}  {:>8} {:>8}  {:>6} {:>6} {:>6} {:>6}  {:>6} {:>6} {:>6}  {:>7} {:>7}",
        run.live.store().n_buckets(),
        run.live.outcomes().n_subjects(),
        mb(start.heap),
        mb(peak.heap),
        mb(after.heap),
        mb(run.live.store().n_bytes()),
        mb(start.rss),
        mb(peak.rss),
        mb(after.rss),
        within.map_or("never".to_owned(), |it| format!(
            "{:.1} s",
            it.as_secs_f64()
        )),
        format!(
            "{:.1}/{:.1}",
            run.longest.as_secs_f64() * 1e3,
            stall.end().as_secs_f64() * 1e3
        ),
    );
}

struct Run {
    live: Live,
    faults: usize,
    /// The longest turn.
    longest: Duration,
}

impl Run {
    fn new(plugins: Arc<PluginSet>, faults: usize) -> Self {
        let scope = Scope::new(
            Reach::Namespaces(
                (0..40)
                    .map(|it| format!("team-{it}").parse().unwrap())
                    .collect(),
            ),
            BTreeSet::from(["Pod".parse().unwrap()]),
            BTreeSet::new(),
        );
        let bounds = Bounds {
            // All of it is to be in at once.
            store_bytes: usize::MAX / 2,
            outcome_bytes: usize::MAX / 2,
            ..Bounds::default()
        };
        let live = Live::new(
            1,
            scope.unwrap(),
            plugins,
            &Limits::default(),
            Caps::default(),
            bounds,
            NonZeroUsize::new(2).unwrap(),
            &(Arc::new(|| {}) as Arc<dyn Fn() + Send + Sync>),
        );
        Self {
            live: live.unwrap(),
            faults,
            longest: Duration::ZERO,
        }
    }

    fn put(&mut self, object: usize, listing: u32, at: Seconds) {
        let confirmed = Confirmation {
            watch: 0,
            listing,
            at,
        };
        self.each(object, |live, event| live.put(event, confirmed, NOW));
        if object.is_multiple_of(64) {
            self.turn(at);
        }
    }

    fn delete(&mut self, object: usize) {
        self.each(object, Live::delete);
        if object.is_multiple_of(64) {
            self.turn(0);
        }
    }

    fn each(&mut self, object: usize, mut what: impl FnMut(&mut Live, &WireEvent<'_>)) {
        let lines = events::of_pod(object, OF_EACH, self.faults);
        for line in guests::split(&lines) {
            what(&mut self.live, &from_json(line).unwrap());
        }
    }

    fn turn(&mut self, at: Seconds) -> bool {
        let began = Instant::now();
        self.live.collect(&mut |_, _| {}, &mut |_| {});
        let more = self.live.step(at);
        self.live.submit();
        self.longest = self.longest.max(began.elapsed());
        more
    }

    fn settle(&mut self, at: Seconds) {
        while self.turn(at) || !self.live.is_idle() {
            thread::yield_now();
        }
    }
}

#[derive(Clone, Copy)]
struct Memory {
    heap: usize,
    rss: usize,
}

impl Memory {
    fn now() -> Self {
        let statm = fs::read_to_string("/proc/self/statm").unwrap();
        let pages: usize = statm.split(' ').nth(1).unwrap().parse().unwrap();
        Self {
            heap: heap::live(),
            rss: pages * 4096,
        }
    }
}

/// How long another thread waits for a little memory, at the most.
struct Stall {
    longest: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
}

impl Stall {
    fn begin() -> Self {
        let (longest, is_over) = (Arc::<AtomicU64>::default(), Arc::<AtomicBool>::default());
        let (to, over) = (Arc::clone(&longest), Arc::clone(&is_over));
        let waiting = thread::Builder::new().name("waiting".to_owned());
        let begun = waiting.spawn(move || {
            while !over.load(Relaxed) {
                let began = Instant::now();
                for n_bytes in [100, 1_000, 10_000, 100_000] {
                    std::hint::black_box(vec![0_u8; n_bytes]);
                }
                let nanos = u64::try_from(began.elapsed().as_nanos()).unwrap();
                to.fetch_max(nanos, Relaxed);
                thread::sleep(Duration::from_micros(200));
            }
        });
        drop(begun.unwrap());
        Self { longest, is_over }
    }

    fn end(self) -> Duration {
        self.is_over.store(true, Relaxed);
        Duration::from_nanos(self.longest.load(Relaxed))
    }
}
