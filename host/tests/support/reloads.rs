//! Plugins that are replaced again and again in the folder of a running portent, while a real API server
//! takes Events; what comes out is checked by its content.
//!
//! Each Event is about a pod of its own, and each version stamps what it says: so it is seen whether every
//! Event is told of, whether one is told twice, and whether anything is said by half a version. What it holds
//! is bounded by the few objects that the configuration lets the store have, and by the lines that were not
//! looked at.

use std::{
    collections::HashMap,
    fmt::Write as _,
    fs,
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::{
    running::{Running, config},
    spawn, stamped,
    testbed::{Testbed, client, core_event, post},
};

/// What a run of it came to.
#[derive(Debug)]
pub(crate) struct Figures {
    pub(crate) n_events: usize,
    /// From the first to the last swap.
    pub(crate) took: Duration,
    /// From an Event's request to the line that tells of it, the shortest first.
    pub(crate) waits: Vec<Duration>,
    /// Resident memory after ten swaps, and at the end, in bytes.
    pub(crate) rss: [u64; 2],
    /// Results that came from a plugin that was removed.
    pub(crate) n_late: u64,
}

/// Objects that have a record at a time.
const OBJECTS: usize = 500;

/// Versions that take turns.
const N_VERSIONS: u32 = 100;

/// Requests in flight: more than a server answers at once.
const IN_FLIGHT: usize = 32;

/// Replaces a plugin so many times, with an Event every so often meanwhile.
///
/// # Panics
///
/// If an Event is lost or told twice, or something is said by a version that did not say it.
pub(crate) fn reloads(
    testbed: &Testbed,
    namespace: &str,
    n_swaps: u32,
    every: Duration,
) -> Figures {
    let folder = tempfile::tempdir().expect("there is room for temporary files");
    let versions: Vec<_> = (0..N_VERSIONS.min(n_swaps + 1))
        .map(|it| stamped("a", it))
        .collect();
    let digests: Vec<_> = versions.iter().map(|it| digest(it)).collect();
    let mut book = Book {
        stamps: (0..)
            .zip(&digests)
            .map(|(n, it)| (it.clone(), format!("{n:02}")))
            .collect(),
        told: Vec::new(),
    };
    write(folder.path(), &versions[0]);
    let more = format!("store:\n  objects: {OBJECTS}\noutcomes:\n  bytes: 2Mi\n");
    let portent = Running::start(
        &config(&[namespace], folder.path(), &more),
        &testbed.kubeconfig(),
    );
    portent.until_ready();

    let writer = Writer::start(testbed, namespace, every);
    let began = Instant::now();
    let mut rss = 0;
    for swap in 1..=n_swaps {
        let version = swap as usize % versions.len();
        write(folder.path(), &versions[version]);
        portent.hang_up();
        portent.until("the version", |it| {
            book.read(it);
            serves(it, &digests[version]).then_some(())
        });
        if swap == 10.min(n_swaps) {
            rss = portent.rss();
        }
    }
    let took = began.elapsed();
    let sent = writer.stop();
    portent.until("a line for each Event", |it| {
        book.read(it);
        let n_told = book.told.iter().filter(|it| it.is_some()).count();
        (n_told == sent.len()).then_some(())
    });
    let mut waits: Vec<_> = sent
        .iter()
        .zip(&book.told)
        .filter_map(|(sent, told)| Some(told.as_ref()?.saturating_duration_since(*sent)))
        .collect();
    waits.sort_unstable();
    Figures {
        n_events: sent.len(),
        took,
        waits,
        rss: [rss, portent.rss()],
        n_late: portent.metric("portent_plugin_results_late_total", &[]),
    }
}

/// Who writes a file and means it to be read puts it in place as a whole.
fn write(folder: &Path, component: &[u8]) {
    let part = folder.join(".a.part");
    fs::write(&part, component).expect("there is room for temporary files");
    fs::rename(&part, folder.join("a.wasm")).expect("it is one folder");
}

fn digest(component: &[u8]) -> String {
    let hash = Sha256::digest(component);
    hash.iter().fold("sha256:".to_owned(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a text takes what it is given");
        text
    })
}

fn serves(portent: &Running, digest: &str) -> bool {
    let (_, body) = portent.get("/plugins");
    let status: Value = serde_json::from_str(&body).expect("it is JSON");
    status["plugins"][0]["serving"]["digest"] == digest
}

/// What was told so far.
struct Book {
    /// What a version says, by its digest.
    stamps: HashMap<String, String>,
    /// When each pod was first told of, by its number.
    told: Vec<Option<Instant>>,
}

impl Book {
    fn read(&mut self, portent: &Running) {
        for (at, line) in portent.take_changes() {
            let change: Value = serde_json::from_str(&line).expect("it is JSON");
            let digest = change["classifier"]["digest"].as_str().expect("it has one");
            let stamp = &self.stamps[digest];
            for kind in ["raised", "changed"] {
                for it in change[kind].as_array().expect("it is a list") {
                    assert_eq!(it["message"], **stamp, "said by half a version: {change}");
                }
            }
            // Of pods that are gone for long: the bound of what is held is small.
            for it in change["cleared"].as_array().expect("it is a list") {
                assert_eq!(it["reason"], "over-bytes", "{change}");
            }
            if change["raised"].as_array().is_some_and(|it| !it.is_empty()) {
                let name = change["object"]["name"].as_str().expect("it has one");
                let pod: usize = pod_number(name);
                if self.told.len() <= pod {
                    self.told.resize(pod + 1, None);
                }
                let before = self.told[pod].replace(at);
                assert_eq!(before, None, "{name} is told of twice");
            }
        }
    }
}

fn pod_name(number: usize) -> String {
    format!("poison-{number}")
}

fn pod_number(name: &str) -> usize {
    let number = name.strip_prefix("poison-").and_then(|it| it.parse().ok());
    number.expect("the Events here are about pods of these names")
}

/// Who writes Events, each about a pod of its own, until it is told to stop.
struct Writer {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Instant>>,
}

impl Writer {
    fn start(testbed: &Testbed, namespace: &str, every: Duration) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let (over, kubeconfig, namespace) = (
            Arc::clone(&is_over),
            testbed.kubeconfig(),
            namespace.to_owned(),
        );
        let thread = spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("there is room for a runtime");
            let sent = Mutex::new(Vec::new());
            let n_begun = AtomicUsize::new(0);
            runtime.block_on(async {
                let path = format!("/api/v1/namespaces/{namespace}/events");
                let clock = tokio::sync::Mutex::new(tokio::time::interval(every));
                let one = async || {
                    let client = client(&kubeconfig).await;
                    while !over.load(Ordering::Relaxed) {
                        clock.lock().await.tick().await;
                        let number = n_begun.fetch_add(1, Ordering::Relaxed);
                        let event = pod_event(&namespace, number);
                        // In the order of the numbers: nothing else runs between the two.
                        sent.lock()
                            .expect("nobody panics with it")
                            .push(Instant::now());
                        post(&client, &path, &event).await;
                    }
                };
                futures_util::future::join_all((0..IN_FLIGHT).map(|_| one())).await;
            });
            sent.into_inner().expect("nobody panics with it")
        });
        Self { is_over, thread }
    }

    /// When each Event was sent, by the number of its pod.
    fn stop(self) -> Vec<Instant> {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().expect("the server took what was sent")
    }
}

fn pod_event(namespace: &str, number: usize) -> Value {
    let mut event = core_event(namespace, "Pod", &pod_name(number), 0);
    event["involvedObject"]["uid"] = format!("00000000-0000-4000-8000-{number:012x}").into();
    event
}
