//! The live path with both plugins, in this process, with no cluster: what is left when all is gone.

#![allow(clippy::unwrap_used, reason = "a test says what went wrong by failing")]

#[path = "live/reasons.rs"]
mod reasons;
mod support;

use std::{
    collections::BTreeSet,
    num::NonZeroUsize,
    sync::{Arc, mpsc},
};

use portent::{
    live::{Bounds, Live},
    outcome::Change,
    plugins::PluginSet,
    record::{Caps, ObjectKey},
    sandbox::{Limits, Sandbox},
    scope::{Reach, Scope},
    store::{Confirmation, Seconds},
    subject::SubjectKey,
};
use serde_json::Value;
use support::running::plugins;

/// Flyte's agent's words for a GPU that is gone.
const FAULT: &str = "[gpu-health] [CRITICAL] Xid 79 (GPU has fallen off the bus) on GPU 5 \
    GPU-b8c1f0a2-7d43-4e19-9a65-2f0c8e71d4b6. xid=79 severity=critical \
    gpu_uuid=GPU-b8c1f0a2-7d43-4e19-9a65-2f0c8e71d4b6 gpu_index=5 pci=0000:ab:00.0 node=n pid=1 process=p";

struct Path {
    live: Live,
    is_done: mpsc::Receiver<()>,
    changes: Vec<Change>,
}

/// Both plugins, if they are built.
fn load() -> Option<PluginSet> {
    let sandbox = Sandbox::new(Limits::default()).unwrap();
    Some(PluginSet::load(&sandbox, &plugins()?).unwrap())
}

impl Path {
    fn new() -> Option<Self> {
        load().map(Self::with)
    }

    fn with(plugins: PluginSet) -> Self {
        let scope = Scope::new(
            Reach::Namespaces(BTreeSet::from(["ns".parse().unwrap()])),
            BTreeSet::from(["Pod".parse().unwrap()]),
            BTreeSet::new(),
        );
        let (done, is_done) = mpsc::channel();
        let live = Live::new(
            1,
            scope.unwrap(),
            Arc::new(plugins),
            &Limits::default(),
            Caps::default(),
            Bounds::default(),
            NonZeroUsize::new(2).unwrap(),
            &(Arc::new(move || done.send(()).unwrap_or_default()) as Arc<dyn Fn() + Send + Sync>),
        );
        Self {
            live: live.unwrap(),
            is_done,
            changes: Vec::new(),
        }
    }

    fn put(&mut self, event: &Value, at: Seconds) {
        let json = event.to_string();
        let confirmed = Confirmation {
            at,
            ..Confirmation::default()
        };
        let event = serde_json::from_str(&json).unwrap();
        self.live.put(&event, confirmed, 1_900_000_000_000);
    }

    fn delete(&mut self, event: &Value) {
        let json = event.to_string();
        self.live.delete(&serde_json::from_str(&json).unwrap());
    }

    fn collect(&mut self) {
        let changes = &mut self.changes;
        self.live
            .collect(&mut |it, _| changes.push(it), &mut |_| {});
    }

    /// Does all that there is to do at a time.
    fn settle(&mut self, at: Seconds) {
        loop {
            // First: who waits for what is collected is submitted at once.
            self.collect();
            let more = self.live.step(at);
            self.live.submit();
            if !more && self.live.is_idle() {
                return;
            }
            if !more {
                self.is_done.recv().unwrap();
            }
        }
    }

    fn left(&self) -> [usize; 4] {
        let store = self.live.store();
        let outcomes = self.live.outcomes();
        let n_bytes = store.n_bytes() + outcomes.n_bytes();
        [
            store.n_buckets(),
            store.interner().len(),
            outcomes.n_subjects(),
            n_bytes,
        ]
    }
}

/// A UUID, as the server makes them. The pod's name has four bytes at most.
fn uid_of(pod: &str) -> String {
    let name = pod.bytes().fold(0, |name, it| name << 8 | u32::from(it));
    format!("{name:08x}-4e5f-4a6b-8c7d-9e0f1a2b3c4d")
}

/// The pod that is called `pod`.
fn subject() -> SubjectKey {
    SubjectKey {
        object: ObjectKey::new("ns", "Pod", "pod").unwrap(),
        uid: uid_of("pod").as_str().into(),
    }
}

fn event(pod: &str, name: &str, reason: &str, note: &str) -> Value {
    serde_json::json!({
        "metadata": { "name": name, "namespace": "ns", "uid": format!("uid-{name}"),
            "creationTimestamp": "2026-01-01T00:00:00Z" },
        "regarding": { "kind": "Pod", "namespace": "ns", "name": pod, "uid": uid_of(pod) },
        "type": "Warning",
        "reason": reason,
        "note": note,
        "reportingController": "gpu-health",
        "deprecatedLastTimestamp": "2026-01-01T00:00:00Z",
    })
}

#[test]
fn ordinary_events_leave_nothing_behind_whether_they_are_deleted_or_expire() {
    let Some(mut path) = Path::new() else { return };
    let events: Vec<_> = (0..600)
        .map(|n| {
            event(
                &format!("p{}", n / 3),
                &format!("e{n}"),
                "Unhealthy",
                "a probe failed",
            )
        })
        .collect();
    for it in &events {
        path.put(it, 1);
    }
    path.settle(1);
    assert_eq!(path.left()[..3], [200, 2, 200]);
    for it in &events[..300] {
        path.delete(it);
    }
    path.settle(2);
    assert_eq!(path.left()[..3], [100, 2, 100]);
    path.settle(Bounds::default().time_to_live + 2);
    // Who was told of reasons holds what their Events say.
    assert_eq!(path.left()[..3], [0, 2, 0]);
    path.changes.clear();
    assert_eq!(path.left(), [0, 0, 0, 0]);
}

#[test]
fn an_event_that_goes_while_it_is_classified_leaves_no_reason_and_a_retained_finding() {
    let Some(mut path) = Path::new() else { return };
    let (fault, harmless) = (
        event("p", "fault", "GPUXidError", FAULT),
        event("q", "harmless", "Unhealthy", "a probe failed"),
    );
    path.put(&fault, 1);
    path.put(&harmless, 1);
    path.live.submit();
    // They are with the workers, and perhaps done: nobody has taken the results.
    path.delete(&fault);
    path.delete(&harmless);
    path.settle(1);

    assert!(path.changes.iter().any(|it| !it.delta.raised.is_empty()));
    let key = SubjectKey {
        object: ObjectKey::new("ns", "Pod", "p").unwrap(),
        uid: uid_of("p").as_str().into(),
    };
    let held = path.live.outcomes().held(&key);
    let [held] = &held[..] else {
        panic!("{held:?}");
    };
    assert!(held.outcome.findings[0].is_retained());
    path.changes.clear();
    assert_eq!(path.left()[..3], [0, 0, 1]);
}

#[test]
fn d12_however_many_plugins_there_are_records_are_held_once() {
    let Some(mut with_both) = Path::new() else {
        return;
    };
    let mut with_none = Path::with(PluginSet::default());
    for path in [&mut with_both, &mut with_none] {
        for n in 0..100 {
            let pod = format!("p{}", n / 2);
            path.put(&event(&pod, &format!("e{n}"), "GPUXidError", FAULT), 1);
        }
        path.settle(1);
    }
    let n_classifiers = |path: &Path| {
        let names = path.changes.iter().map(|it| &it.classifier.name);
        names.collect::<BTreeSet<_>>().len()
    };
    assert_eq!([&with_both, &with_none].map(n_classifiers), [2, 0]);
    let held = |path: &Path| {
        let store = path.live.store();
        [store.n_buckets(), store.n_records(), store.n_bytes()]
    };
    assert_eq!(held(&with_both), held(&with_none));
}

/// A result that comes in after a newer one was merged and forgotten would stand.
#[test]
fn a_subject_is_in_one_call_at_a_time_and_so_is_a_picture_of_it() {
    let Some(mut path) = Path::new() else { return };
    path.put(&event("p", "first", "GPUXidError", FAULT), 1);
    path.live.submit();
    // It is with the workers until someone collects. What it loses meanwhile is kept.
    let second = event("p", "second", "GPUXidError", FAULT);
    path.put(&second, 1);
    path.delete(&second);
    let n_pictures = path.live.n_waiting();
    assert!(0 < n_pictures);
    path.live.submit();
    assert_eq!(path.live.n_waiting(), n_pictures);

    path.settle(1);
    assert_eq!(path.live.n_waiting(), 0);
}
