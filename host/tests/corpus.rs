//! The labelled corpora, where they are: `PORTENT_CORPUS` names their folder.

#![allow(
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a test says what went wrong by failing"
)]

mod support;

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    path::{Path, PathBuf},
};

use serde_json::Value;

/// The folder of the corpora. Without it the test says that it was skipped.
fn corpus() -> Option<PathBuf> {
    let folder = std::env::var_os("PORTENT_CORPUS").map(PathBuf::from);
    if folder.is_none() {
        eprintln!("skipped: PORTENT_CORPUS names no folder with the corpora");
    }
    folder
}

#[track_caller]
fn replay(file: &Path, flags: &[&str]) -> (Vec<Value>, String) {
    let plugins = std::env::var_os("PORTENT_TEST_PLUGINS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/plugins"),
        PathBuf::from,
    );
    let words = ["replay", "-o", "json"].iter().chain(flags);
    let words = words.map(OsStr::new);
    let paths = [
        OsStr::new("--plugins"),
        plugins.as_os_str(),
        file.as_os_str(),
    ];
    let output = support::portent(words.chain(paths));
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    (serde_json::from_slice(&output.stdout).unwrap(), stderr)
}

#[test]
fn each_live_event_gives_one_additional_reason_and_the_forged_one_none() {
    let Some(corpus) = corpus() else { return };
    let (elements, stderr) = replay(&corpus.join("events.jsonl"), &[]);
    let n_reasons: usize = elements
        .iter()
        .filter_map(|it| it["outcome"]["additionalReasons"].as_array().map(Vec::len))
        .sum();
    assert_eq!(n_reasons, 109);
    assert!(elements.iter().all(|it| it["error"].is_null()));
    assert!(
        stderr.contains("1 refused (1 forged-namespace)"),
        "{stderr}"
    );
}

/// What is said of each Event by name: the active findings of its own object that rest on it.
fn said(elements: &[Value]) -> BTreeMap<String, Vec<Value>> {
    let mut said = BTreeMap::<String, Vec<Value>>::new();
    let ours = elements
        .iter()
        .filter(|it| it["classifier"]["name"] == "gpu-fault");
    for element in ours {
        assert!(element["error"].is_null(), "{element}");
        let findings = element["outcome"]["findings"].as_array().unwrap();
        for finding in findings.iter().filter(|it| it["status"] == "active") {
            for event in finding["evidence"].as_array().unwrap() {
                let name = event["name"].as_str().unwrap().to_owned();
                said.entry(name).or_default().push(finding.clone());
            }
        }
    }
    said
}

/// What is wrong with a finding, by its label. Nothing, if nothing is.
fn disagreements(label: &Value, found: &[Value]) -> Vec<String> {
    let [finding] = found else {
        let n_wanted = usize::from(label["category"] != "none");
        return if found.len() == n_wanted {
            Vec::new()
        } else {
            vec![format!("{} findings", found.len())]
        };
    };
    if finding["category"] != label["category"] {
        return vec![format!("category {}", finding["category"])];
    }
    let attributes = &finding["attributes"];
    let mut wrong = Vec::new();
    let number = ["root_xid", "xid", "sxid", "afid"]
        .into_iter()
        .find_map(|it| attributes[it].as_str());
    let want = label["code"].as_u64().map(|it| it.to_string());
    if label["extract"].get("xid").is_some_and(Value::is_null) {
        // The text has no number, and gets the word of the one that the label names.
        assert_eq!(want.as_deref(), Some("79"));
        if number.is_some() || finding["code"] != "GpuFallenOffBus" {
            wrong.push(format!("number {number:?}, code {}", finding["code"]));
        }
    } else if number != want.as_deref() {
        wrong.push(format!("number {number:?}"));
    }
    for (key, value) in label["extract"].as_object().unwrap() {
        let want = match value {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        };
        if attributes[key].as_str() != want.as_deref() {
            wrong.push(format!("{key} {}", attributes[key]));
        }
    }
    wrong
}

const CATEGORIES: [&str; 5] = [
    "gpu-fault",
    "gpu-user-error",
    "gpu-capacity",
    "gpu-config",
    "none",
];

/// The labels are the corpus' own; where one of them is wrong, that is argued beside the plugin's tables.
#[test]
fn events_about_gpus_are_told_apart_as_their_labels_say() {
    let Some(corpus) = corpus() else { return };
    let labels: BTreeMap<String, Value> =
        serde_json::from_slice(&std::fs::read(corpus.join("gpu-labels.json")).unwrap()).unwrap();
    let (elements, _) = replay(&corpus.join("gpu-events.json"), &[]);
    let said = said(&elements);

    let mut table = BTreeMap::<(&str, String), usize>::new();
    let mut wrong = Vec::new();
    for (name, label) in &labels {
        let found = said.get(name).map_or(&[][..], Vec::as_slice);
        let category = label["category"].as_str().unwrap();
        let of_finding = found
            .first()
            .map_or("none", |it| it["category"].as_str().unwrap());
        *table.entry((category, of_finding.to_owned())).or_default() += 1;
        let disagreements = disagreements(label, found);
        if !disagreements.is_empty() {
            wrong.push(format!("{name} ({category}): {}", disagreements.join(", ")));
        }
    }

    let n = |label: &str, said: &str| table.get(&(label, said.to_owned())).copied().unwrap_or(0);
    let row = |of: &str, cells: [String; CATEGORIES.len()]| {
        let cells = cells.map(|it| format!("{it:>14}")).concat();
        eprintln!("{of:>14}{cells}");
    };
    row("label \\ said", CATEGORIES.map(str::to_owned));
    for label in CATEGORIES {
        row(label, CATEGORIES.map(|it| n(label, it).to_string()));
    }
    for category in CATEGORIES {
        let hits = n(category, category);
        let n_said: usize = CATEGORIES.iter().map(|it| n(it, category)).sum();
        let n_labelled: usize = CATEGORIES.iter().map(|it| n(category, it)).sum();
        eprintln!("{category:>14} precision {hits}/{n_said}, recall {hits}/{n_labelled}");
        assert_eq!(
            hits, n_said,
            "something is taken for {category}: {wrong:#?}"
        );
        assert!(
            n_labelled * 98 <= hits * 100,
            "too little of {category} is found: {wrong:#?}"
        );
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Whether a verdict does what a label's action asks for.
fn follows(action: &str, verdict: &Value) -> bool {
    let avoids_node = verdict["avoid"].to_string().contains("\"node\"");
    let (blame, retry) = (&verdict["blame"], &verdict["retry"]);
    match action {
        "none" => verdict.is_null(),
        "fix-user" => blame == "workload" && !verdict.is_null() && retry != "elsewhere",
        "retry-same" => blame == "platform" && retry == "same-place",
        _ => blame == "platform" && retry == "elsewhere" && avoids_node,
    }
}

#[test]
fn verdicts_follow_the_actions_of_the_labels() {
    let Some(corpus) = corpus() else { return };
    let labels: BTreeMap<String, Value> =
        serde_json::from_slice(&std::fs::read(corpus.join("gpu-labels.json")).unwrap()).unwrap();
    let events: Value =
        serde_json::from_slice(&std::fs::read(corpus.join("gpu-events.json")).unwrap()).unwrap();
    let (elements, _) = replay(&corpus.join("gpu-events.json"), &["--failure", "Error"]);
    let verdict_on = |name: &Value| {
        elements
            .iter()
            .filter(|it| it["classifier"]["name"] == "gpu-fault" && it["object"]["name"] == *name)
            .map(|it| it["outcome"]["verdict"].clone())
            .find(|it| !it.is_null())
            .unwrap_or_default()
    };
    let mut wrong = Vec::new();
    for event in events["items"].as_array().unwrap() {
        let name = event["metadata"]["name"].as_str().unwrap();
        let label = &labels[name];
        let verdict = verdict_on(&event["regarding"]["name"]);
        let action = match label["category"].as_str() {
            Some("none") => "none",
            _ => label["action"].as_str().unwrap(),
        };
        // Whoever evicts for a device's taint runs anywhere, and no pods are told here.
        let is_evicted = event["reason"] == "DeviceTaintManagerEviction";
        let is_right = follows(action, &verdict) || (is_evicted && verdict["retry"] == "elsewhere");
        if !is_right {
            wrong.push(format!("{name} {action}: {verdict}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
