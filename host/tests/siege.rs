//! All guests that misbehave at once, beside the plugins that do not, in one running program: it stays within the memory
//! that it says, answers whoever watches over it, and does its work.

#![allow(clippy::unwrap_used, reason = "a test says what went wrong by failing")]

mod support;

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

use portent_hostile::{GUESTS, Guest, Stop};
use serde_json::Value;
use support::{
    apiserver::{Answer, Apiserver, event, event_with, frame, list},
    running::{Running, config, plugins},
    spawn,
};
use tempfile::TempDir;

/// It is well each time that it is asked with few subjects, and fails where a loaded machine has no time for that.
const WELL_IN_TIME: &str = "traps-at-the-third";

/// The memory that the program may have, in MiB, part by part.
const STORE: u64 = 256;
const OUTCOMES: u64 = 32;
const PAGES: u64 = 32;
const WORKERS: u64 = 2;
const EACH_WORKER: u64 = 16;
const COMPILE: u64 = 128;
const BASE: u64 = 64;
const BUDGET: u64 = STORE + OUTCOMES + PAGES + WORKERS * EACH_WORKER + COMPILE + BASE;

/// How long a compiler may take: the plugins that come with portent need some seconds where nothing is optimised, and
/// a guest that takes for ever is waited for.
const COMPILE_SECONDS: u64 = 20;

/// Small batches, so that a guest has soon had enough of them to be left alone.
const BATCH: u64 = 8;

/// Most pods make guests misbehave, so that most batches fail.
const POISONED: usize = 240;
const OTHERS: usize = 60;

/// How often at least, so that who is left alone is tried again while the others go on.
const WAVES_MIN: u64 = 8;

/// How often all that is known of the pods is said again, so that all are asked again.
const EVERY: Duration = Duration::from_secs(2);

/// The longest that an answer of the admin port may take, on a machine that does other things too.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// Flyte's agent's words for a GPU that is gone.
const FAULT: &str = "[gpu-health] [CRITICAL] Xid 79 (GPU has fallen off the bus) on GPU 5 GPU-b8c1. \
    xid=79 severity=critical gpu_uuid=GPU-b8c1 gpu_index=5 pci=0000:ab:00.0 node=n pid=1 process=p";

/// The Events of all pods, as of a version: a fault on each of those that poison nobody.
fn items(version: u64) -> Vec<String> {
    let poisoned = (0..POISONED).map(|n| event(&format!("e{n}"), version, &format!("poison-{n}")));
    let others = (0..OTHERS).map(|n| {
        event_with(&format!("f{n}"), version, &format!("pod-{n}"), FAULT)
            .replace("\"Reason\"", "\"GPUXidError\"")
    });
    let items = poisoned.chain(others);
    // An Event that is seen once more.
    let count = format!("\"deprecatedCount\":{version}");
    items
        .map(|it| it.replace("\"deprecatedCount\":1", &count))
        .collect()
}

/// Lists all, and says it all again every now and then.
fn server(is_over: &Arc<AtomicBool>) -> Apiserver {
    let is_over = Arc::clone(is_over);
    Apiserver::start(move |it| {
        if !it.is_watch() {
            return Answer::json(list(10, "", &items(10)));
        }
        let is_over = Arc::clone(&is_over);
        Answer::Paced(Box::new(move |write| {
            for version in 11.. {
                thread::sleep(EVERY);
                if is_over.load(Relaxed) {
                    break;
                }
                for item in items(version) {
                    write(format!("{}\n", frame("MODIFIED", &item)).as_bytes())?;
                }
            }
            Ok(())
        }))
    })
}

/// All of them, and the plugins that come with portent.
fn folder(built: &Path) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["gpu-fault", "additional-reasons"] {
        let file = format!("{name}.wasm");
        fs::copy(built.join(&file), folder.path().join(&file)).unwrap();
    }
    for guest in GUESTS {
        let path = folder.path().join(format!("{}.wasm", guest.name));
        fs::write(path, guest.component()).unwrap();
    }
    folder
}

/// What the status says of each file: a state and a reason, of what serves or, where nothing does, of what failed.
fn states(portent: &Running) -> BTreeMap<String, (String, String)> {
    let admin = portent.admin();
    let output = support::portent(["plugin", "status", "--json", "--url", &admin]);
    // 1 says that something is wrong, as there is.
    assert_ne!(output.status.code(), Some(2), "{output:?}");
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    let word = |it: &Value| it.as_str().unwrap_or_default().to_owned();
    let plugins = told["plugins"].as_array().unwrap().iter();
    let states = plugins.map(|it| {
        let version = if it["serving"].is_object() {
            &it["serving"]
        } else {
            &it["newest"]
        };
        let state = (word(&version["state"]), word(&version["reason"]));
        (word(&it["file"]), state)
    });
    states.collect()
}

/// Whether a guest's answer is wrong for one subject at a time. It is asked on; who fails as a whole is left alone.
fn is_asked_on(guest: &Guest) -> bool {
    let is_wrong = matches!(guest.stop, Stop::Call("contract-violation" | "guest-error"));
    let is_too_large = [
        "returns-too-many-findings",
        "returns-a-long-text",
        "gives-many-reasons",
    ];
    is_wrong || is_too_large.contains(&guest.name)
}

/// Whether it is known by its state and by the metrics what the guest did.
fn is_found_out(guest: &Guest, (state, why): &(String, String), metrics: &str) -> bool {
    let name = guest.name;
    let is_counted = |series: &str| metrics.lines().any(|it| it.starts_with(series));
    match guest.stop {
        Stop::Nowhere | Stop::Unasked => state == "active",
        Stop::Load(reason) => {
            let series = format!("portent_plugin_load_failures_total{{reason=\"{reason}\"}} ");
            (&**state, &**why) == ("failed", reason) && is_counted(&series)
        }
        Stop::Call(reason) => {
            let labels = format!("classifier=\"{name}\",reason=\"{reason}\"");
            let series = format!("portent_plugin_failures_total{{{labels}}} ");
            let is_known = if is_asked_on(guest) {
                state == "active"
            } else {
                (&**state, &**why) == ("quarantined", reason)
            };
            is_known && is_counted(&series)
        }
    }
}

#[test]
fn with_every_hostile_guest_at_once_it_stays_within_its_memory_and_does_its_work() {
    let Some(built) = plugins() else { return };
    let is_over = Arc::new(AtomicBool::new(false));
    let server = server(&is_over);
    let folder = folder(&built);
    let more = format!(
        "store:\n  bytes: {STORE}Mi\noutcomes:\n  bytes: {OUTCOMES}Mi\nwatch:\n  pagesBytes: {PAGES}Mi\nworkers: {WORKERS}\nlimits:\n  batch-events: {BATCH}\n  compile-seconds: {COMPILE_SECONDS}\n"
    );
    let config = config(&["ns"], folder.path(), &more).replace("level: debug", "level: info");
    let (_folder, kubeconfig) = server.kubeconfig();
    let portent = Arc::new(Running::start(&config, &kubeconfig));
    portent.until_ready();

    // Whoever watches over it, all the while.
    let watching = spawn({
        let (portent, is_over) = (Arc::clone(&portent), Arc::clone(&is_over));
        move || {
            let (mut slowest, mut children) = (Duration::ZERO, 0);
            while !is_over.load(Relaxed) {
                for page in ["/livez", "/readyz"] {
                    let asked = Instant::now();
                    let (code, text) = portent.get(page);
                    assert_eq!(code, 200, "{page}: {text}");
                    slowest = slowest.max(asked.elapsed());
                }
                children = portent.peak_rss_of_children().max(children);
                thread::sleep(Duration::from_millis(50));
            }
            (slowest, children)
        }
    });

    let raised = "portent_findings_raised_total";
    let of_good = ["gpu-fault", "GpuFallenOffBus"];
    portent.until("the findings of the good plugin", |it| {
        (it.metric(raised, &of_good) == OTHERS as u64).then_some(())
    });
    // What was there at the start was compiled before anybody could watch: this is, beside everything else.
    let late = portent_hostile::guest("compiles-in-much-memory").unwrap();
    fs::write(folder.path().join("late.wasm"), late.component()).unwrap();
    portent.hang_up();
    let began = Instant::now();
    loop {
        let (states, (_, metrics)) = (states(&portent), portent.get("/metrics"));
        let is_late_refused = states
            .get("late")
            .is_some_and(|(_, why)| why == "compile-limit");
        let not_yet: Vec<_> = GUESTS
            .iter()
            .filter(|it| !is_found_out(it, &states[it.name], &metrics))
            .map(|it| (it.name, &states[it.name]))
            .collect();
        let n_merged = portent.metric("portent_events_merged_total", &[]);
        if not_yet.is_empty()
            && is_late_refused
            && WAVES_MIN * (POISONED + OTHERS) as u64 <= n_merged
        {
            break;
        }
        assert!(began.elapsed() < Duration::from_mins(4), "{not_yet:#?}");
        thread::sleep(Duration::from_millis(200));
    }
    is_over.store(true, Relaxed);
    let (slowest, children) = watching.join().unwrap();
    assert!(slowest < ANSWER_MAX, "an answer took {slowest:?}");

    // What is allowed has failed on nothing, nor has who is good.
    let (states, (_, metrics)) = (states(&portent), portent.get("/metrics"));
    let well = GUESTS
        .iter()
        .filter(|it| matches!(it.stop, Stop::Nowhere | Stop::Unasked));
    let well = well.map(|it| it.name).filter(|it| *it != WELL_IN_TIME);
    for name in well.chain(["gpu-fault", "additional-reasons"]) {
        let series = format!("portent_plugin_failures_total{{classifier=\"{name}\"");
        // Who is given no processor is out of time, whatever it does.
        let is_late = |it: &&str| it.contains("reason=\"deadline\"");
        let failed = metrics.lines().filter(|it| it.starts_with(&series));
        let failed: Vec<_> = failed.filter(|it| !is_late(it)).collect();
        assert!(failed.is_empty(), "{failed:#?}");
        assert_eq!(states[name].0, "active", "{name}");
    }
    assert_eq!(states.len(), GUESTS.len() + 3);
    let unasked = "classifier=\"wants-nodes-only\"";
    assert_eq!(portent.metric("portent_plugin_calls_total", &[unasked]), 0);

    assert!(0 < children, "no compiler was seen");
    let peak = (portent.peak_rss() + children) >> 20;
    println!(
        "peak RSS {peak} of {BUDGET} MiB, {} of it a compiler's, slowest answer {slowest:?}, {:?}",
        children >> 20,
        began.elapsed()
    );
    assert!(peak < BUDGET, "{peak} MiB, and {BUDGET} are allowed");
}
