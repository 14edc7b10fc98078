//! From events to findings. The grammar has its own tests, beside it.

use portent_sdk::{Blame, Severity};

use super::*;
use crate::code::Category;

const FALLEN: &str = "[gpu-health] [CRITICAL] Xid 79 (GPU has fallen off the bus) on GPU 0 GPU-6f3c. \
    xid=79 severity=critical gpu_uuid=GPU-6f3c gpu_index=0 pci=0000:3b:00.0 node=n1 pid=12 \
    process=python";

fn outcome_of<'a>(notes: impl IntoIterator<Item = &'a str>) -> Outcome {
    let events = notes
        .into_iter()
        .map(|note| Event::warning("GPUXidError", note));
    classify(
        &Settings::default(),
        &events.fold(Subject::pod("ml-team", "train-0"), Subject::event),
    )
}

#[track_caller]
fn finding_of(note: &str) -> Finding {
    let outcome = outcome_of([note]);
    assert_eq!(outcome.verdict, None);
    assert!(outcome.additional_reasons.is_empty());
    let [finding] = outcome.findings.try_into().unwrap();
    finding
}

#[test]
fn a_report_becomes_a_finding() {
    let finding = finding_of(FALLEN);
    let want = Finding::new(
        "gpu-fault",
        "GpuFallenOffBus",
        Severity::Critical,
        "Xid 79 (GPU has fallen off the bus) on GPU 0 GPU-6f3c",
    )
    .key("79/GPU-6f3c")
    .blame(Blame::Platform)
    .evidence([0])
    .attribute("xid", 79)
    .attribute("severity", "critical")
    .attribute("name", "GPU has fallen off the bus")
    .attribute("uuid", "GPU-6f3c")
    .attribute("pci", "0000:3b:00.0")
    .attribute("node", "n1")
    .attribute("process", "python")
    .attribute("gpu_index", 0)
    .attribute("pid", 12);
    assert_eq!(finding, want);
}

#[track_caller]
fn check_severity(tail: &str, category: &str, severity: Severity, blame: Blame, word: &str) {
    let finding = finding_of(&["[gpu-health] ? ", tail].concat());
    assert_eq!(
        (finding.category.as_str(), finding.severity),
        (category, severity),
        "{tail}"
    );
    assert_eq!(
        (finding.blame, finding.find("severity")),
        (blame, Some(word)),
        "{tail}"
    );
}

#[test]
fn severity_decides_category_and_blame() {
    check_severity(
        "xid=13",
        "gpu-user-error",
        Severity::Info,
        Blame::Workload,
        "user",
    );
    check_severity(
        "xid=92",
        "gpu-fault",
        Severity::Warning,
        Blame::Unknown,
        "warn",
    );
    check_severity(
        "xid=79",
        "gpu-fault",
        Severity::Critical,
        Blame::Platform,
        "critical",
    );
    check_severity(
        "sxid=1",
        "gpu-fault",
        Severity::Critical,
        Blame::Platform,
        "critical",
    );
}

#[track_caller]
fn check_key(tail: &str, want: &str) {
    assert_eq!(finding_of(&["[gpu-health] ? ", tail].concat()).key, want);
}

#[test]
fn the_key_is_the_number_and_the_best_name_of_the_device() {
    check_key(
        "xid=48 gpu_uuid=GPU-1 pci=0000:af:00.0 gpu_index=3",
        "48/GPU-1",
    );
    check_key("xid=48 pci=0000:af:00.0 gpu_index=3", "48/0000:af:00.0");
    check_key("xid=48 gpu_index=0", "48/0");
    check_key("xid=48 node=n1", "48");
    check_key("sxid=12028 pci=0000:05:00.0", "12028/0000:05:00.0");
}

#[test]
fn without_a_sentence_the_number_is_the_message() {
    assert_eq!(finding_of("[gpu-health] xid=79").message, "Xid 79");
    assert_eq!(finding_of("[gpu-health] sxid=12028").message, "SXid 12028");
}

#[test]
fn an_sxid_is_named_as_one() {
    let finding = finding_of("[gpu-health] ? sxid=12028");
    assert_eq!(
        (finding.find("sxid"), finding.find("xid")),
        (Some("12028"), None)
    );
}

#[test]
fn the_pods_node_stands_in_for_one_that_the_report_does_not_name() {
    let subject = Subject::pod("ml-team", "train-0")
        .node("n2")
        .event(Event::warning("GPUXidError", "[gpu-health] ? xid=79"))
        .event(Event::warning(
            "GPUXidError",
            "[gpu-health] ? xid=48 node=n1",
        ));
    let findings = classify(&Settings::default(), &subject).findings;
    assert_eq!(findings[0].find("node"), Some("n2"));
    assert_eq!(findings[1].find("node"), Some("n1"));
}

#[test]
fn repeats_fold_to_what_was_seen_last() {
    let report = |sentence: &str, severity: &str| {
        let note = format!("[gpu-health] {sentence}. xid=79 severity={severity} gpu_uuid=GPU-1");
        Event::warning("GPUXidError", note)
    };
    let subject = Subject::pod("ml-team", "train-0")
        .event(report("first", "critical").created(1).last_seen(9))
        .event(report("second", "warn").created(2).last_seen(10))
        .event(Event::normal("Pulled", "Successfully pulled image").created(3))
        .event(report("third", "critical").created(4));

    let [finding] = classify(&Settings::default(), &subject)
        .findings
        .try_into()
        .unwrap();
    assert_eq!(
        (finding.message.as_str(), finding.severity),
        ("second", Severity::Warning)
    );
    assert_eq!(finding.evidence, [0, 1, 3]);
    assert_eq!(finding.key, "79/GPU-1");
}

#[test]
fn of_reports_seen_together_the_later_one_stands() {
    let outcome = outcome_of(["[gpu-health] first. xid=79", "[gpu-health] second. xid=79"]);
    assert_eq!(outcome.findings[0].message, "second");
    assert_eq!(outcome.findings[0].evidence, [0, 1]);
}

#[test]
fn different_faults_stay_apart() {
    let outcome = outcome_of([
        "[gpu-health] ? xid=94 gpu_uuid=GPU-1",
        "[gpu-health] ? xid=95 gpu_uuid=GPU-1",
        "[gpu-health] ? xid=94 gpu_uuid=GPU-2",
        "[gpu-health] ? xid=94 gpu_uuid=GPU-2 severity=user",
    ]);
    let identities: Vec<_> = outcome
        .findings
        .iter()
        .map(|it| (it.category.as_str(), it.key.as_str()))
        .collect();
    assert_eq!(
        identities,
        [
            ("gpu-fault", "94/GPU-1"),
            ("gpu-fault", "95/GPU-1"),
            ("gpu-fault", "94/GPU-2"),
            ("gpu-user-error", "94/GPU-2"),
        ]
    );
}

#[test]
fn ordinary_events_yield_nothing() {
    let outcome = outcome_of([
        "Back-off restarting failed container",
        "Started container main",
        "",
    ]);
    assert_eq!(outcome, Outcome::default());
}

#[test]
fn every_word_is_on_the_page_for_who_is_paged() {
    let page = include_str!("../../../docs/gpu-faults.md");
    let words = Category::ALL.map(Category::as_word);
    for word in code::ALL.into_iter().chain(words) {
        assert!(page.contains(&["`", word, "`"].concat()), "{word}");
    }
    for action in action::Action::ALL {
        assert!(page.contains(&["| `", action.as_word(), "` |"].concat()));
    }
}

#[test]
fn the_page_has_every_setting_and_rule() {
    let page = include_str!("../../../docs/gpu-faults.md");
    let schema: serde_json::Value =
        serde_json::from_str(<Settings as portent_sdk::Settings>::SCHEMA).unwrap();
    for key in schema["properties"].as_object().unwrap().keys() {
        assert!(page.contains(&["\n", key, ":"].concat()), "{key}");
    }
    for rule in verdict::RULES {
        assert!(page.contains(&["| `", rule, "` |"].concat()), "{rule}");
    }
}

mod corpus;
mod hostile;
