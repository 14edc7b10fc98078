//! The verdict on each labelled Event, given a failure one second after it was last seen.
//!
//! `PORTENT_CORPUS` names the folder of the corpus. What the findings have to be is held by the host's test,
//! which replays the same file.

use portent_sdk::{Failure, ObjectRef, Retry, Trust, Verdict};
use serde_json::Value;

use super::*;

fn text(value: &Value) -> Option<&str> {
    value.as_str().filter(|it| !it.is_empty())
}

/// An Event as a host hands it over that watches no pods.
fn event(item: &Value) -> Event {
    let source = &item["deprecatedSource"];
    let controller = text(&item["reportingController"]).or(text(&source["component"]));
    let instance = text(&item["reportingInstance"]).or(text(&source["host"]));
    let event = Event::new(
        item["type"].as_str().unwrap_or_default(),
        item["reason"].as_str().unwrap_or_default(),
        item["note"].as_str().unwrap_or_default(),
    );
    Event {
        controller: controller.map(str::to_owned),
        instance: instance.map(str::to_owned),
        ..event.created(AT).trust(Trust::default())
    }
}

const AT: u64 = 1_788_224_460_000;

fn verdict(item: &Value) -> Option<Verdict> {
    let it = &item["regarding"];
    let field = |key: &str| it[key].as_str().unwrap_or_default();
    let object = ObjectRef::new(
        field("apiVersion"),
        field("kind"),
        field("namespace"),
        field("name"),
    );
    let failure = Failure::new("Error", "", AT + 1_000);
    let subject = Subject::new(object).failure(failure).event(event(item));
    classify(&Settings::default(), &subject).verdict
}

/// Whether a verdict does what a label's action asks for.
fn follows(action: &str, item: &Value, verdict: Option<&Verdict>) -> bool {
    let Some(verdict) = verdict else {
        return action == "none";
    };
    // Whoever evicts for a device's taint runs anywhere, and nobody tells here where the pod ran.
    let is_evicted = item["reason"] == "DeviceTaintManagerEviction";
    let avoids_node = is_evicted || verdict.avoid.iter().any(|it| it.key == "node");
    match action {
        "fix-user" => verdict.blame == Blame::Workload && verdict.retry != Retry::Elsewhere,
        "retry-same" => verdict.blame == Blame::Platform && verdict.retry == Retry::SamePlace,
        "retry-elsewhere" | "drain" | "reset" | "rma" => {
            verdict.blame == Blame::Platform && verdict.retry == Retry::Elsewhere && avoids_node
        }
        _ => false,
    }
}

#[test]
fn verdicts_follow_the_actions_of_the_labels() {
    let Some(folder) = std::env::var_os("PORTENT_CORPUS").map(std::path::PathBuf::from) else {
        return;
    };
    let read = |name: &str| -> Value {
        serde_json::from_slice(&std::fs::read(folder.join(name)).unwrap()).unwrap()
    };
    let (events, labels) = (read("gpu-events.json"), read("gpu-labels.json"));
    let mut wrong = Vec::new();
    let mut n_labelled = 0;
    for item in events["items"].as_array().unwrap() {
        let name = item["metadata"]["name"].as_str().unwrap();
        let label = &labels[name];
        let verdict = verdict(item);
        if label["category"] == "none" {
            assert_eq!(verdict, None, "{name}");
            continue;
        }
        n_labelled += 1;
        let action = label["action"].as_str().unwrap();
        if !follows(action, item, verdict.as_ref()) {
            wrong.push(format!("{name} {action}: {verdict:?}"));
        }
        let uuid = label["extract"]["uuid"].as_str();
        if let (Some(uuid), Some(verdict)) = (uuid, verdict) {
            let leaves = verdict.retry == Retry::Elsewhere;
            let avoids = verdict
                .avoid
                .iter()
                .any(|it| it.key == "device" && it.value == uuid);
            assert_eq!(leaves, avoids, "{name}");
        }
    }
    assert!(wrong.is_empty(), "of {n_labelled}: {wrong:#?}");
}
