//! The store by itself: what an operation costs with more threads and more objects,
//! and how long one waits while a million records leave.
//!
//! `cargo xtask bench store` runs it. What an operation costs is processor time of the
//! thread that does it; how long one takes at the most is the wall's, and of the
//! system's scheduler as much as of the store: the same is measured with nothing else
//! going on. Objects are drawn by a fixed seed.

#![allow(clippy::print_stdout, reason = "it is what this is for")]
#![allow(
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    reason = "a benchmark says what went wrong by failing, and counts no further than 2^53"
)]

use std::{
    hint::black_box,
    sync::{
        Barrier,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

use fastrand::Rng;
use nix::time::{ClockId, clock_gettime};
use portent::{
    record::{Caps, ObjectKey, Record, decode::from_json},
    store::{After, Confirmation, Removal, Seconds, Store},
};

/// Operations of each kind, over all threads.
const N_OPERATIONS: usize = 160_000;

/// Records that leave while someone else works.
const N_LEAVING: usize = 1_000_000;

/// As many as the live path takes in one turn.
const SLICE: usize = 64;

fn main() {
    portent::memory::free_at_once();
    operations();
    leaving();
}

fn operations() {
    println!("ns of processor time an operation; every object has one record before\n");
    println!(
        "{:>9} {:>7}  {:>7} {:>7} {:>7} {:>8} {:>7}",
        "objects", "threads", "insert", "update", "list", "snapshot", "remove"
    );
    for n_objects in [1_000, 10_000, 100_000, 1_000_000] {
        let store = filled(n_objects, 1);
        for n_threads in [1, 2, 4, 8] {
            // Few of each object at a time: they are searched one by one.
            let n_at_once = N_OPERATIONS.min(4 * n_objects);
            let rounds = N_OPERATIONS / n_at_once;
            let mut costs = [0.0; 5];
            for _ in 0..rounds {
                let of_round = self::costs(&store, n_objects, n_threads, n_at_once / n_threads);
                for (all, it) in costs.iter_mut().zip(of_round) {
                    *all += it / rounds as f64;
                }
            }
            println!(
                "{n_objects:>9} {n_threads:>7}  {:>7.0} {:>7.0} {:>7.0} {:>8.0} {:>7.0}",
                costs[0], costs[1], costs[2], costs[3], costs[4]
            );
        }
    }
}

fn leaving() {
    println!(
        "\nµs of the wall that another thread's operation takes while {N_LEAVING} records leave\n"
    );
    println!(
        "{:<9} {:>8}  {:>7} {:>7} {:>7} {:>7}",
        "by", "seconds", "median", "99.9 %", "99.99 %", "max"
    );
    waits("nothing", |_| {
        thread::sleep(Duration::from_secs(2));
    });
    waits("expiry", |store| {
        loop {
            let due = store.filed_before(2, SLICE);
            if due.is_empty() {
                return;
            }
            for it in due {
                store.remove_where(&it, Removal::Expired, |it| it.confirmed.at < 2);
            }
        }
    });
    waits("sweep", |store| {
        let mut from = None;
        loop {
            let (keys, more) = store.walk(from, 1, SLICE);
            for it in keys {
                store.remove_where(&it, Removal::Swept, |it| it.confirmed.listing < 2);
            }
            match more {
                None => return,
                it => from = it,
            }
        }
    });
    waits("eviction", |store| {
        while let Some(it) = store.least_confirmed() {
            if it.namespace() == OTHERS {
                return;
            }
            store.remove_where(&it, Removal::OverBytes, |_| true);
        }
    });
}

/// Of those that stay while others leave.
const OTHERS: &str = "team-b";

/// An Event about an object, as the kubelet writes it.
fn record(store: &Store, object: usize, name: &str, note: &str) -> (ObjectKey, Record) {
    about(store, "team-a", object, name, note)
}

fn about(
    store: &Store,
    namespace: &str,
    object: usize,
    name: &str,
    note: &str,
) -> (ObjectKey, Record) {
    let json = format!(
        r#"{{"metadata":{{"namespace":"{namespace}","name":"train-{object:08}.{name}",
        "uid":"{object:08x}-0000-4c11-8f6e-0242ac120002","resourceVersion":"184467",
        "creationTimestamp":"2026-05-01T10:00:00Z"}},
        "regarding":{{"apiVersion":"v1","kind":"Pod","namespace":"{namespace}",
        "name":"train-{object:08}","uid":"{object:08x}-aaaa-4c11-8f6e-0242ac120002",
        "fieldPath":"spec.containers{{main}}"}},
        "type":"Normal","reason":"Pulled","note":"{note}",
        "reportingController":"kubelet","reportingInstance":"node-{}"}}"#,
        object % 40
    );
    let wire = from_json(json.as_bytes()).unwrap();
    Record::pare_down(&wire, Caps::default(), store.interner()).unwrap()
}

fn confirmed(at: Seconds) -> Confirmation {
    Confirmation {
        at,
        listing: at,
        ..Confirmation::default()
    }
}

fn filled(n_objects: usize, at: Seconds) -> Store {
    let store = Store::default();
    for object in 0..n_objects {
        let (key, record) = record(&store, object, "first", "Container image was pulled");
        store.put(key, record, confirmed(at));
    }
    store
}

/// What an operation of each kind costs, in this order: insert, update, list, snapshot,
/// remove. Each thread has Events of its own, about objects all over the store.
fn costs(store: &Store, n_objects: usize, n_threads: usize, of_each: usize) -> [f64; 5] {
    let barrier = Barrier::new(n_threads);
    let spent = thread::scope(|scope| {
        let threads: Vec<_> = (0..n_threads)
            .map(|thread| {
                let barrier = &barrier;
                scope.spawn(move || {
                    let mut rng = Rng::with_seed(thread as u64);
                    let objects: Vec<_> = (0..of_each).map(|_| rng.usize(0..n_objects)).collect();
                    let made = |note: &str| -> Vec<_> {
                        let events = objects.iter().enumerate();
                        events
                            .map(|(n, it)| record(store, *it, &format!("{thread}-{n}"), note))
                            .collect()
                    };
                    let (first, second) = (made("Back-off"), made("Back-off, for longer"));
                    let kept = first.clone();
                    let timed = |work: &mut dyn FnMut()| {
                        barrier.wait();
                        let began = cpu();
                        work();
                        cpu() - began
                    };
                    let mut puts = [Some(first), Some(second)];
                    let mut put = |idx: usize| {
                        let records = puts[idx].take().unwrap();
                        let mut records = Some(records);
                        timed(&mut || {
                            for (key, record) in records.take().unwrap() {
                                black_box(store.put(key, record, confirmed(1)));
                            }
                        })
                    };
                    let (insert, update) = (put(0), put(1));
                    let all = After::Watermark {
                        created: 0,
                        recorded: 0,
                    };
                    let list = timed(&mut || {
                        for (key, _) in &kept {
                            black_box(store.read(key, all).unwrap());
                        }
                    });
                    let snapshot = timed(&mut || {
                        for (key, _) in &kept {
                            black_box(store.view(key, |it| it.records().to_vec()));
                        }
                    });
                    let remove = timed(&mut || {
                        for (key, record) in &kept {
                            assert!(store.remove(key, record).is_some());
                        }
                    });
                    [insert, update, list, snapshot, remove]
                })
            })
            .collect();
        let mut all = [0; 5];
        for it in threads {
            for (all, it) in all.iter_mut().zip(it.join().unwrap()) {
                *all += it;
            }
        }
        all
    });
    spent.map(|it| it as f64 / (of_each * n_threads) as f64)
}

/// Processor time of this thread, in nanoseconds.
fn cpu() -> i64 {
    let spent = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap();
    spent.tv_sec() * 1_000_000_000 + spent.tv_nsec()
}

/// How long the operations of a thread take while another does this to a million records
/// that are not its own.
fn waits(what: &str, leave: impl FnOnce(&Store) + Send) {
    let store = filled(N_LEAVING, 1);
    let is_over = AtomicBool::new(false);
    let (mut took, lasted) = thread::scope(|scope| {
        let leaving = scope.spawn(|| {
            let began = Instant::now();
            leave(&store);
            is_over.store(true, Relaxed);
            began.elapsed()
        });
        let mut took = Vec::new();
        let mut rng = Rng::with_seed(7992);
        while !is_over.load(Relaxed) {
            let object = rng.usize(0..1_000);
            let (key, record) = about(&store, OTHERS, object, "only", "Back-off");
            let began = Instant::now();
            store.put(key.clone(), record.clone(), confirmed(9));
            black_box(store.view(&key, |it| it.records().len()));
            store.remove(&key, &record);
            took.push(began.elapsed());
        }
        (took, leaving.join().unwrap())
    });
    took.sort_unstable();
    let at = |of_10_000: usize| {
        let idx = took.len() * of_10_000 / 10_000;
        took[idx.min(took.len() - 1)].as_secs_f64() * 1e6
    };
    println!(
        "{what:<9} {:>8.1}  {:>7.1} {:>7.1} {:>7.1} {:>7.0}",
        lasted.as_secs_f64(),
        at(5_000),
        at(9_990),
        at(9_999),
        at(10_000)
    );
}
