//! The labelled corpora, where they are: `PORTENT_CORPUS` names their folder.

#![allow(
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a test says what went wrong by failing"
)]

mod support;

use std::{
    collections::BTreeMap,
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
fn replay(file: &Path) -> (Vec<Value>, String) {
    let plugins = std::env::var_os("PORTENT_TEST_PLUGINS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/plugins"),
        PathBuf::from,
    );
    let output = support::portent([
        "replay".as_ref(),
        "-o".as_ref(),
        "json".as_ref(),
        "--plugins".as_ref(),
        plugins.as_os_str(),
        file.as_os_str(),
    ]);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    (serde_json::from_slice(&output.stdout).unwrap(), stderr)
}

#[test]
fn each_live_event_gives_one_additional_reason_and_the_forged_one_none() {
    let Some(corpus) = corpus() else { return };
    let (elements, stderr) = replay(&corpus.join("events.jsonl"));
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

#[test]
fn flyte_reports_match_their_labels_and_what_is_no_fault_gives_none() {
    let Some(corpus) = corpus() else { return };
    let labels: BTreeMap<String, Value> =
        serde_json::from_slice(&std::fs::read(corpus.join("gpu-labels.json")).unwrap()).unwrap();
    let events: Value =
        serde_json::from_slice(&std::fs::read(corpus.join("gpu-events.json")).unwrap()).unwrap();
    let (elements, _) = replay(&corpus.join("gpu-events.json"));

    let mut found = BTreeMap::<String, Vec<Value>>::new();
    for element in elements
        .iter()
        .filter(|it| it["classifier"]["name"] == "gpu-fault")
    {
        assert!(element["error"].is_null(), "{element}");
        let findings = element["outcome"]["findings"].as_array().unwrap();
        for finding in findings.iter().filter(|it| it["status"] == "active") {
            for event in finding["evidence"].as_array().unwrap() {
                let name = event["name"].as_str().unwrap().to_owned();
                found.entry(name).or_default().push(finding.clone());
            }
        }
    }
    let mut n_flyte = 0;
    for event in events["items"].as_array().unwrap() {
        let name = event["metadata"]["name"].as_str().unwrap();
        let (label, found) = (
            &labels[name],
            found.get(name).map_or(&[][..], Vec::as_slice),
        );
        if label["category"] == "none" {
            assert!(found.is_empty(), "{name}: {found:?}");
            continue;
        }
        let is_flyte = event["note"].as_str().unwrap().starts_with("[gpu-health]")
            && ["GPUXidError", "GPUSXidError"].contains(&event["reason"].as_str().unwrap());
        if !is_flyte {
            continue;
        }
        n_flyte += 1;
        let [finding] = found else {
            panic!("{name}: {found:?}")
        };
        assert_eq!(finding["category"], label["category"], "{name}");
        let attributes = &finding["attributes"];
        let code = attributes.get("xid").or(attributes.get("sxid")).unwrap();
        assert_eq!(code.as_str().unwrap(), label["code"].to_string(), "{name}");
        for (key, value) in label["extract"].as_object().unwrap() {
            match value {
                Value::Null => assert!(attributes.get(key).is_none(), "{name}: {key}"),
                Value::String(text) => assert_eq!(&attributes[key], text, "{name}: {key}"),
                other => assert_eq!(attributes[key], other.to_string(), "{name}: {key}"),
            }
        }
    }
    assert_eq!(
        n_flyte, 9,
        "the corpus has nine Flyte reports that are faults"
    );
}
