//! Additional reasons are those of Flyte's `AdditionalReasons`.
//!
//! Flyte's executor lists the Events of an object that are newer than its watermark, by
//! when they were created and then by when it saw them first; each becomes a `ReasonInfo`
//! of its message and when it was created, with type, reason, source component and count
//! beside it, and the watermark moves to the last one (facts: event-pipelines 3.1). Here
//! that is written down a second time and fed with what the live path is fed with.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::OnceLock,
};

use portent::{outcome::AdditionalReason, plugins::PluginSet};
use proptest::{prelude::*, test_runner::Config};
use serde_json::{Value, json};

use super::{Path, uid_of};

/// Something that happens to the one pod here, or somebody who reconciles.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// An Event is created, in so many seconds of the epoch.
    Created(u64),
    /// One of them, if there is one, is said again, otherwise.
    Said(usize),
    /// One of them is deleted.
    Deleted(usize),
    Reconciled,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1..5_u64).prop_map(Step::Created),
        2 => (0..8_usize).prop_map(Step::Said),
        1 => (0..8_usize).prop_map(Step::Deleted),
        2 => Just(Step::Reconciled),
    ]
}

/// A line as a person gets it: its text, when that happened, and what is beside it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Line {
    text: String,
    at: u64,
    beside: BTreeMap<String, String>,
}

/// What Flyte holds of an Event.
#[derive(Clone, Debug)]
struct Info {
    event: Value,
    created: u64,
    recorded: u64,
}

impl Info {
    fn line(&self) -> Line {
        let text = |key: &str| self.event[key].as_str().unwrap().to_owned();
        let beside = [
            ("type", text("type")),
            ("reason", text("reason")),
            ("controller", text("reportingController")),
            ("count", self.event["deprecatedCount"].to_string()),
        ];
        Line {
            text: text("note"),
            at: self.created * 1_000,
            beside: beside.map(|(key, it)| (key.to_owned(), it)).into(),
        }
    }
}

#[derive(Debug, Default)]
struct Flyte {
    events: BTreeMap<String, Info>,
    n_recorded: u64,
    watermark: (u64, u64),
    /// What was told, with the name of its Event.
    told: Vec<(String, Line)>,
    /// Events that came when the watermark was past them: Flyte never tells of them.
    late: BTreeSet<String>,
}

impl Flyte {
    fn put(&mut self, name: &str, created: u64, event: &Value) {
        if let Some(known) = self.events.get_mut(name) {
            // What it says is replaced, when it was seen first is not.
            known.event = event.clone();
            return;
        }
        self.n_recorded += 1;
        let info = Info {
            event: event.clone(),
            created,
            recorded: self.n_recorded,
        };
        if (created, self.n_recorded) <= self.watermark {
            self.late.insert(name.to_owned());
        }
        self.events.insert(name.to_owned(), info);
    }

    fn recorded(&self, name: &str) -> Option<u64> {
        self.events.get(name).map(|it| it.recorded)
    }

    fn list(&self, after: (u64, u64)) -> Vec<(String, Info)> {
        let newer = self.events.iter();
        let newer = newer.filter(|(_, it)| after < (it.created, it.recorded));
        let mut listed: Vec<_> = newer.map(|(name, it)| (name.clone(), it.clone())).collect();
        listed.sort_by_key(|(_, it)| (it.created, it.recorded));
        listed
    }

    fn reconcile(&mut self) {
        for (name, info) in self.list(self.watermark) {
            self.watermark = (info.created, info.recorded);
            self.told.push((name, info.line()));
        }
    }
}

fn event(name: &str, created: u64, n_said: u64) -> Value {
    // Some say nothing, of nobody.
    let text = |of: &str| match n_said {
        2 => String::new(),
        n => format!("{of} {n} of {name}"),
    };
    json!({
        "metadata": { "name": name, "namespace": "ns", "uid": format!("uid-{name}"),
            "creationTimestamp": format!("1970-01-01T00:00:{created:02}Z") },
        "regarding": { "kind": "Pod", "namespace": "ns", "name": "pod", "uid": uid_of("pod") },
        "type": "Warning",
        "reason": text("Reason"),
        "note": text("note"),
        "reportingController": text("kubelet"),
        "deprecatedCount": n_said,
    })
}

fn line(it: &AdditionalReason) -> Line {
    let report = &it.report;
    let beside = [
        ("type", report.event_type().to_owned()),
        ("reason", report.reason().to_owned()),
        ("controller", report.controller().to_owned()),
        ("count", report.count().to_string()),
    ];
    Line {
        text: it.text().to_owned(),
        at: it.at,
        beside: beside.map(|(key, it)| (key.to_owned(), it)).into(),
    }
}

/// The plugin that it is about, compiled once; none if none is built.
fn the_plugin() -> Option<PluginSet> {
    static LOADED: OnceLock<Option<PluginSet>> = OnceLock::new();

    let loaded = LOADED.get_or_init(super::load).as_ref()?;
    let plugins = loaded.plugins.iter();
    let it = plugins.filter(|it| &*it.provenance.name == "additional-reasons");
    Some(PluginSet {
        plugins: it.cloned().collect(),
        generation: loaded.generation,
        ..PluginSet::default()
    })
}

fn check(steps: &[Step]) -> Result<(), TestCaseError> {
    let Some(plugins) = the_plugin() else {
        return Ok(());
    };
    let mut path = Path::with(plugins);
    let mut flyte = Flyte::default();
    // Of every Event: when it was created, and how often it was said.
    let mut events: Vec<(u64, u64)> = Vec::new();
    let (mut ours, mut known) = (Vec::new(), BTreeSet::new());
    for it in steps.iter().chain([&Step::Reconciled]) {
        match *it {
            Step::Created(created) => {
                events.push((created, 1));
                let name = format!("e{}", events.len() - 1);
                let event = event(&name, created, 1);
                flyte.put(&name, created, &event);
                path.put(&event, 1);
            }
            Step::Said(idx) => {
                let name = format!("e{idx}");
                if let Some((created, n_said)) = events.get_mut(idx)
                    && flyte.events.contains_key(&name)
                {
                    *n_said += 1;
                    let event = event(&name, *created, *n_said);
                    flyte.put(&name, *created, &event);
                    path.put(&event, 1);
                }
            }
            Step::Deleted(idx) => {
                let name = format!("e{idx}");
                if let Some(info) = flyte.events.get(&name)
                    && known.contains(&name)
                {
                    path.delete(&info.event);
                    flyte.events.remove(&name);
                }
            }
            Step::Reconciled => {
                path.settle(1);
                flyte.reconcile();
                let told = path.changes.drain(..);
                let told = told.flat_map(|it| it.delta.additional_reasons);
                let n_before = ours.len();
                for it in told {
                    let name = it.event.name().to_owned();
                    // That one says something else is news to us, and none to Flyte, unless
                    // it never told what it said before.
                    if known.insert(name.clone()) {
                        ours.push((name, line(&it)));
                    } else if let Some(told) = ours[n_before..].iter_mut().find(|it| it.0 == name) {
                        told.1 = line(&it);
                    }
                }
                // A subject that loses a record meanwhile is told of in two changes.
                ours[n_before..].sort_by_key(|(name, it)| (it.at, flyte.recorded(name)));
            }
        }
    }

    // What is held is what Flyte lists to whoever begins.
    let held = path.live.outcomes().held(&super::subject());
    let held = held.iter().flat_map(|it| &it.outcome.additional_reasons);
    let held: Vec<_> = held.map(|it| line(it)).collect();
    let listed = flyte.list((0, 0));
    let listed: Vec<_> = listed.iter().map(|(_, it)| it.line()).collect();
    prop_assert_eq!(held, listed);

    // What is told is what Flyte tells, in its order, and what it loses.
    ours.retain(|(name, _)| !flyte.late.contains(name));
    prop_assert_eq!(ours, flyte.told);
    Ok(())
}

proptest! {
    #![proptest_config(Config { cases: 24, ..Config::default() })]

    #[test]
    fn additional_reasons_are_those_of_flyte(steps in prop::collection::vec(step(), 1..40)) {
        check(&steps)?;
    }
}
