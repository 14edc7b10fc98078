//! What `portent run` costs and how long it takes: as a process, with both plugins, against a scripted server
//! and a real one.
//!
//! Times are of a machine that does all of it at once: server, writer and portent share its processors. CPU
//! is that of portent's process alone.

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
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;
use support::{
    apiserver::{Answer, Apiserver, event, frame, list},
    running::{Running, config, plugins},
    testbed::{self, Testbed, core_event},
};

/// When each Event was sent, by its name.
type Sent = Arc<Mutex<HashMap<String, Instant>>>;

fn main() {
    let Some(plugins) = plugins() else { return };
    from_a_frame_to_a_change(&plugins);
    frames(&plugins);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(on_a_real_server(&plugins));
}

/// Prints how long it took for half, for 99 of 100 and at the most.
fn tell(what: &str, took: &mut [Duration]) {
    took.sort_unstable();
    let at = |share: usize| took[(took.len() * share / 100).min(took.len() - 1)];
    println!(
        "{what}: {} events, p50 {:.2?}, p99 {:.2?}, max {:.2?}",
        took.len(),
        at(50),
        at(99),
        took[took.len() - 1]
    );
}

/// A server that has nothing at first, and then writes an Event at each turn of this length.
fn paced(n: usize, turn: Duration, sent: &Sent) -> Apiserver {
    let to = Arc::clone(sent);
    Apiserver::start(move |it| {
        if !it.is_watch() {
            return Answer::json(list(10, "", &[]));
        }
        let sent = Arc::clone(&to);
        Answer::Paced(Box::new(move |write| {
            let began = Instant::now();
            for n in 0..n {
                let due = began + turn * u32::try_from(n).unwrap();
                thread::sleep(due.saturating_duration_since(Instant::now()));
                let name = format!("e{n}");
                let line = frame(
                    "ADDED",
                    &event(&name, 11 + n as u64, &format!("p{}", n / 5)),
                );
                sent.lock().unwrap().insert(name, Instant::now());
                write(format!("{line}\n").as_bytes())?;
            }
            Ok(())
        }))
    })
}

/// From a frame that the server writes to the line that tells of it, at 500 a second.
fn from_a_frame_to_a_change(plugins: &Path) {
    const N: usize = 5_000;
    let sent = Sent::default();
    let server = paced(N, Duration::from_millis(2), &sent);
    let (_folder, kubeconfig) = server.kubeconfig();
    let portent = Running::start(&config(&["ns"], plugins, ""), &kubeconfig);
    let mut took = latencies(&portent, &sent, N);
    tell(
        "frame written to change read, at 500/s (budget: p99 10 ms)",
        &mut took,
    );
}

/// Frames at 1,500 a second, from a server without TLS.
fn frames(plugins: &Path) {
    const N: usize = 15_000;
    let server = paced(
        N,
        Duration::from_micros(1_000_000 / 1_500),
        &Sent::default(),
    );
    let (_folder, kubeconfig) = server.kubeconfig();
    let config = config(&["ns"], plugins, "changes:\n  stdout: false\n");
    let began = Instant::now();
    let portent = Running::start(&config, &kubeconfig);
    let start = portent.cpu();
    settled(&portent, N);
    let cpu = portent.cpu().saturating_sub(start);
    println!(
        "{N} frames at {:.0}/s, no TLS, classified by both plugins: {:.1} us CPU an event",
        N as f64 / began.elapsed().as_secs_f64(),
        cpu.as_secs_f64() * 1e6 / N as f64
    );
}

/// Waits until so many Events are records and all of their subjects classified. It seldom
/// asks: to be asked costs, too.
fn settled(portent: &Running, n: usize) {
    portent.until("all Events, classified and told of", |it| {
        thread::sleep(Duration::from_millis(250));
        let is_done = it.metric("portent_records", &[]) == n as u64
            && it.metric("portent_subjects_waiting", &[]) == 0
            && it.metric("portent_changes_waiting", &[]) == 0;
        is_done.then_some(())
    });
}

/// How long it took from when each Event was sent until it was told of, once all are.
fn latencies(portent: &Running, sent: &Sent, n: usize) -> Vec<Duration> {
    settled(portent, n);
    let told = portent.until("all lines", |it| {
        let mut told = HashMap::new();
        for (at, change) in it.changes_with_times() {
            for it in change["additionalReasons"].as_array().unwrap() {
                let name = it["event"]["name"].as_str().unwrap().to_owned();
                told.entry(name).or_insert(at);
            }
        }
        (told.len() == n).then_some(told)
    });
    let sent = sent.lock().unwrap();
    let took = told.iter().map(|(name, at)| *at - sent[name]);
    took.collect()
}

/// An Event as a kubelet writes it: it says which pod it means.
fn pod_event(namespace: &str, n: usize) -> Value {
    let pod = format!("p{}", n / 5);
    let mut event = core_event(namespace, "Pod", &pod, n);
    event["involvedObject"]["uid"] = format!("00000000-0000-4000-8000-{:012x}", n / 5).into();
    event
}

async fn on_a_real_server(plugins: &Path) {
    let Some(testbed) = Testbed::shared().await else {
        return;
    };
    for it in ["many", "live", "paced"] {
        testbed.namespace(it, &[]).await;
    }
    end_to_end(&testbed, plugins);
    live(&testbed, plugins).await;
    synced(&testbed, plugins).await;
}

/// 50,000 Events that are there when it starts.
async fn synced(testbed: &Testbed, plugins: &Path) {
    const N: usize = 50_000;
    testbed.write((0..N).map(|n| pod_event("many", n))).await;
    let config = config(&["many"], plugins, "changes:\n  stdout: false\n");
    let began = Instant::now();
    let portent = Running::start(&config, &testbed.kubeconfig());
    // By then the plugins are compiled.
    let start = (portent.cpu(), portent.rss());
    settled(&portent, N);
    let (took, cpu) = (began.elapsed(), portent.cpu().saturating_sub(start.0));
    println!(
        "start, with two plugins to compile: CPU {:.2?}, RSS {} MiB",
        start.0,
        start.1 >> 20
    );
    println!(
        "{N} Events synced and classified by both plugins: {took:.2?}, CPU {cpu:.2?}, {:.1} us an event \
         (budget 12), RSS {} MiB, peak {} MiB (budget 50 MB)",
        cpu.as_secs_f64() * 1e6 / N as f64,
        portent.rss() >> 20,
        portent.peak_rss() >> 20
    );
}

/// As many as writers and server manage beside it.
async fn live(testbed: &Testbed, plugins: &Path) {
    const N: usize = 15_000;
    let config = config(&["live"], plugins, "changes:\n  stdout: false\n");
    let portent = Running::start(&config, &testbed.kubeconfig());
    portent.until_ready();
    let (began, cpu) = (Instant::now(), portent.cpu());
    testbed.write((0..N).map(|n| pod_event("live", n))).await;
    let rate = N as f64 / began.elapsed().as_secs_f64();
    settled(&portent, N);
    let cpu = portent.cpu().saturating_sub(cpu);
    println!(
        "{N} live Events at {rate:.0}/s, classified by both plugins: {:.1} us CPU an event (budget 32 at \
         1,500/s), RSS {} MiB",
        cpu.as_secs_f64() * 1e6 / N as f64,
        portent.rss() >> 20
    );
}

/// From the moment that a writer sends an Event to the line that tells of it.
fn end_to_end(testbed: &Testbed, plugins: &Path) {
    const N: usize = 1_000;
    let portent = Running::start(&config(&["paced"], plugins, ""), &testbed.kubeconfig());
    portent.until_ready();
    let sent = Sent::default();
    let (to, kubeconfig): (_, PathBuf) = (Arc::clone(&sent), testbed.kubeconfig());
    let writer = support::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let client = testbed::client(&kubeconfig).await;
            let mut every = tokio::time::interval(Duration::from_millis(10));
            for n in 0..N {
                every.tick().await;
                let event = pod_event("paced", n);
                let name = event["metadata"]["name"].as_str().unwrap().to_owned();
                to.lock().unwrap().insert(name, Instant::now());
                testbed::post(&client, "/api/v1/namespaces/paced/events", &event).await;
            }
        });
    });
    writer.join().unwrap();
    let mut took = latencies(&portent, &sent, N);
    tell(
        "Event sent to a real server to change read, up to 100/s",
        &mut took,
    );
}
