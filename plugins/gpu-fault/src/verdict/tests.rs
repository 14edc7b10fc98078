//! Folding, precedence, the window, and what is said of the failure itself.

use portent_sdk::{Agreement, ObjectRef, Outcome, Settings as _, Subject, Trust};

use super::*;

const AT: u64 = 1_788_224_460_000;

fn flyte(note: &str) -> Event {
    Event::warning("GPUXidError", ["[gpu-health] ? ", note].concat())
        .instance("n1")
        .created(AT - MINUTE)
}

fn kubelet(cause: &str) -> Event {
    let note = ["Allocate failed due to ", cause, ", which is unexpected"].concat();
    Event::warning("UnexpectedAdmissionError", note)
        .controller("kubelet")
        .instance("n1")
        .created(AT - MINUTE)
}

fn outcome_with(
    settings: &Settings,
    failure: Failure,
    events: impl IntoIterator<Item = Event>,
) -> Outcome {
    let pod = Subject::pod("ml-team", "train-0").failure(failure);
    let pod = events.into_iter().fold(pod, Subject::event);
    crate::classify(settings, &pod)
}

fn verdict_of(code: &str, events: impl IntoIterator<Item = Event>) -> Option<Verdict> {
    let failure = Failure::new(code, "container main exited", AT);
    outcome_with(&Settings::default(), failure, events).verdict
}

#[track_caller]
fn check(events: impl IntoIterator<Item = Event>, want: Option<(&str, &str, Blame, Retry)>) {
    let verdict = verdict_of("Error", events);
    let rule = |it: &Verdict| it.attributes[0].value.clone();
    let read = verdict
        .as_ref()
        .map(|it| (it.code.as_str(), rule(it), it.blame, it.retry));
    let want = want.map(|(code, rule, blame, retry)| (code, rule.to_owned(), blame, retry));
    assert_eq!(read, want);
}

#[test]
fn without_a_failure_there_is_no_verdict() {
    let pod = Subject::pod("ml-team", "train-0").event(flyte("xid=79"));
    assert_eq!(crate::classify(&Settings::default(), &pod).verdict, None);
}

#[test]
fn a_device_that_failed_is_the_platforms_fault() {
    let note = "xid=79 gpu_uuid=GPU-1 node=n1";
    let verdict = verdict_of("Error", [flyte(note)]).unwrap();
    assert_eq!(verdict.code, "GpuFallenOffBus");
    assert_eq!(
        (verdict.blame, verdict.retry),
        (Blame::Platform, Retry::Elsewhere)
    );
    assert_eq!(verdict.message, "?. container main exited");
    let avoid: Vec<_> = verdict
        .avoid
        .iter()
        .map(|it| (it.key.as_str(), it.value.as_str()))
        .collect();
    assert_eq!(avoid, [("node", "n1"), ("device", "GPU-1")]);
    assert_eq!(verdict.finding, Some(0));
}

#[test]
fn of_critical_faults_the_one_recorded_first_decides() {
    let first = flyte("xid=48").created(AT - 3 * MINUTE).last_seen(AT);
    let second = flyte("xid=79").created(AT - 2 * MINUTE);
    let want = Some((
        "GpuEccUncorrectable",
        "first-critical",
        Blame::Platform,
        Retry::Elsewhere,
    ));
    check([first.clone(), second.clone()], want);
    check([second, first], want);
}

#[test]
fn what_proves_more_decides_whatever_came_first() {
    use Blame::{Platform, Workload};
    use Retry::{Elsewhere, NoOpinion, SamePlace};

    let lost = "previously allocated devices are no longer healthy; cannot allocate unhealthy devices nvidia.com/gpu";
    let contained = Event::warning("XIDError", "Caught XID error, XID=94")
        .controller("nvidia-gpu-device-plugin")
        .about(ObjectRef::node("n1"))
        .created(AT - MINUTE);
    // From what proves least to what proves most; each is recorded before what beats it.
    let steps = [
        (
            kubelet(
                "requested number of devices unavailable for nvidia.com/gpu. Requested: 1, Available: 0",
            ),
            ("GpuAllocationFailed", "capacity", Platform, Elsewhere),
        ),
        (
            flyte("xid=13"),
            ("GpuXidError", "first-user", Workload, NoOpinion),
        ),
        (
            contained,
            ("GpuEccUncorrectable", "contained", Platform, SamePlace),
        ),
        (
            kubelet("cannot allocate unregistered device nvidia.com/gpu"),
            ("GpuDevicePluginUnavailable", "config", Platform, Elsewhere),
        ),
        (
            kubelet(lost),
            ("GpuUnhealthy", "device-lost", Platform, Elsewhere),
        ),
        (
            flyte("xid=79"),
            ("GpuFallenOffBus", "first-critical", Platform, Elsewhere),
        ),
    ];
    for n in 1..=steps.len() {
        let events = steps.iter().take(n).zip(1..).map(|((event, _), minute)| {
            Event {
                created: 0,
                first_seen: 0,
                last_seen: 0,
                ..event.clone()
            }
            .created(AT - 20 * MINUTE + minute * MINUTE)
        });
        check(events, Some(steps[n - 1].1));
    }
}

#[test]
fn a_warning_decides_nothing() {
    check([flyte("xid=4242")], None);
    check([flyte("xid=79 severity=warn")], None);
    let waits = Event::warning(
        "FailedScheduling",
        "0/2 nodes are available: 2 Insufficient nvidia.com/gpu.",
    )
    .controller("default-scheduler")
    .created(AT - MINUTE);
    check([waits], None);
    check([], None);
}

#[test]
fn a_permanent_failure_is_never_tried_again() {
    let failure = Failure::new("Error", "", AT).permanent();
    for (note, blame) in [("xid=79", Blame::Platform), ("xid=13", Blame::Workload)] {
        let outcome = outcome_with(&Settings::default(), failure.clone(), [flyte(note)]);
        let verdict = outcome.verdict.unwrap();
        assert_eq!(
            (verdict.blame, verdict.retry),
            (blame, Retry::NotAtAll),
            "{note}"
        );
    }
}

#[track_caller]
fn check_code(code: &str, is_replaced: bool) {
    let verdict = verdict_of(code, [flyte("xid=79")]).unwrap();
    let want = if is_replaced { "GpuFallenOffBus" } else { code };
    assert_eq!(verdict.code, want, "{code}");
    assert_eq!(verdict.blame, Blame::Platform);
}

#[test]
fn only_a_code_that_says_nothing_is_replaced() {
    for code in [
        "",
        "Unknown",
        "UnknownError",
        "Error",
        "Interrupted",
        "137",
        "ExitCode1",
        "exit code 137",
        "EXIT-CODE-1",
        "exit_code_9",
        "exitcode9",
        "exit code9",
    ] {
        check_code(code, true);
    }
    for code in [
        "OOMKilled",
        "exit",
        "ExitCode",
        "exit 137",
        "137x",
        "x137",
        "error",
        "unknown",
        "-1",
        "exit--code 1",
        "Exit code: 1",
        "UnexpectedAdmissionError",
        " ",
    ] {
        check_code(code, false);
    }
}

#[test]
fn what_the_kubelet_calls_a_refusal_is_replaced_by_its_cause() {
    let refused = kubelet("cannot allocate unregistered device nvidia.com/gpu");
    for code in [
        "UnexpectedAdmissionError",
        "OutOfnvidia.com/gpu",
        "StartError",
    ] {
        let verdict = verdict_of(code, [refused.clone()]).unwrap();
        assert_eq!(verdict.code, "GpuDevicePluginUnavailable");
    }
    assert_eq!(
        verdict_of("OOMKilled", [refused]).unwrap().code,
        "OOMKilled"
    );
}

#[track_caller]
fn check_window(created: i64, last_seen: i64, is_relevant: bool) {
    let at = |minutes: i64| AT.saturating_add_signed(minutes * 60_000);
    let event = flyte("xid=79");
    let event = Event {
        created: at(created),
        first_seen: at(created),
        last_seen: at(last_seen),
        ..event
    };
    assert_eq!(
        verdict_of("Error", [event]).is_some(),
        is_relevant,
        "{created} {last_seen}"
    );
}

#[test]
fn what_overlaps_the_window_around_the_failure_counts() {
    check_window(-10, -10, true);
    check_window(-30, -30, true);
    check_window(-31, -31, false);
    check_window(-600, -30, true);
    check_window(-600, 600, true);
    check_window(2, 2, true);
    check_window(3, 3, false);
    check_window(1, 600, true);
}

#[test]
fn a_time_that_is_missing_is_the_other_and_an_end_before_its_beginning_is_nobodys() {
    let with = |created, last_seen| {
        let event = Event {
            created,
            first_seen: 0,
            last_seen,
            ..flyte("xid=79")
        };
        verdict_of("Error", [event]).is_some()
    };
    assert!(with(0, AT));
    assert!(with(AT, 0));
    assert!(!with(0, 0));
    assert!(!with(AT, AT - MINUTE));
    // It takes a while to write one down.
    assert!(with(AT, AT - 2_000));
}

#[test]
fn at_an_unknown_time_anything_may_have_been_the_cause() {
    let failure = Failure::new("Error", "", 0);
    let outcome = outcome_with(&Settings::default(), failure, [flyte("xid=79")]);
    assert!(outcome.verdict.is_some());
}

#[test]
fn what_was_over_before_the_failure_is_not_its_cause() {
    let condition = |status: &str, at| {
        let note = format!(
            "Node condition GPUMissing is now: {status}, reason: GPUMissing, message: \"x\""
        );
        Event::warning("GPUMissing", note)
            .controller("gpu-custom-plugin-monitor")
            .about(ObjectRef::node("n1"))
            .created(at)
    };
    let fault = condition("True", AT - 5 * MINUTE);
    check([fault.clone(), condition("False", AT - 4 * MINUTE)], None);
    let want = Some((
        "GpuMissing",
        "first-critical",
        Blame::Platform,
        Retry::Elsewhere,
    ));
    check([fault.clone(), condition("False", AT + MINUTE)], want);
    check([condition("False", AT - 6 * MINUTE), fault], want);
}

#[test]
fn whom_a_workloads_own_xid_blames_is_a_matter_of_flytes_version() {
    let older = Settings::parse(r#"{"user-xid": "failure"}"#).unwrap();
    let blame = |settings: &Settings, code: &str, blame| {
        let failure = Failure::new(code, "", AT).blame(blame);
        let outcome = outcome_with(settings, failure, [flyte("xid=13")]);
        let verdict = outcome.verdict.unwrap();
        assert_eq!(verdict.retry, Retry::NoOpinion);
        verdict.blame
    };
    let newest = Settings::default();
    assert_eq!(
        blame(&newest, "Interrupted", Blame::Platform),
        Blame::Workload
    );
    assert_eq!(blame(&newest, "Evicted", Blame::Platform), Blame::Platform);
    assert_eq!(blame(&newest, "Evicted", Blame::Unknown), Blame::Workload);
    assert_eq!(
        blame(&older, "Interrupted", Blame::Platform),
        Blame::Platform
    );
    assert_eq!(blame(&older, "Interrupted", Blame::Unknown), Blame::Unknown);
}

#[test]
fn what_the_operator_says_of_a_number_decides() {
    let says = |said: &str, note: &str| {
        let settings = Settings::parse(&["{\"xid\": {\"63\": ", said, "}}"].concat()).unwrap();
        outcome_with(&settings, Failure::new("Error", "", AT), [flyte(note)])
    };
    assert_eq!(says(r#"{"severity": "warn"}"#, "xid=63").verdict, None);
    let outcome = says(r#"{"severity": "user"}"#, "xid=63");
    assert_eq!(outcome.findings[0].category, "gpu-user-error");
    assert_eq!(outcome.verdict.unwrap().blame, Blame::Workload);
    let outcome = says(r#"{"action": "retry-same"}"#, "xid=63");
    assert_eq!(outcome.verdict.unwrap().retry, Retry::SamePlace);
    assert!(says("{}", "xid=63").verdict.is_some());
}

#[test]
fn what_is_said_of_the_pods_node_is_the_pods_own_finding() {
    let event = Event::warning(
        "XIDError",
        "Caught XID error, XID=79, GPU UUID=GPU-1, Device ID=nvidia0",
    )
    .controller("nvidia-gpu-device-plugin")
    .about(ObjectRef::node("n1"))
    .created(AT - MINUTE);
    let failure = Failure::new("137", "", AT);
    let outcome = outcome_with(&Settings::default(), failure, [event]);
    assert_eq!(outcome.findings[0].find("node"), Some("n1"));
    assert_eq!(outcome.findings[0].evidence, [0]);
    let verdict = outcome.verdict.unwrap();
    assert_eq!(verdict.avoid[0].value, "n1");
    assert_eq!(verdict.avoid[1].value, "GPU-1");
}

#[test]
fn of_what_is_forwarded_to_the_owner_a_pod_takes_its_own_node_only() {
    let event = Event::warning(
        "XIDError/npd",
        "Node event observed on Node \"n1\" (reason: XIDError, source: npd): Caught XID error, XID=79",
    )
    .about(ObjectRef::new("ray.io/v1", "RayCluster", "ml-team", "ray"))
    .created(AT - MINUTE);
    let on = |node: Option<&str>| {
        let pod = Subject::pod("ml-team", "train-0").event(event.clone());
        let pod = node.into_iter().fold(pod, Subject::node);
        crate::classify(&Settings::default(), &pod).findings.len()
    };
    assert_eq!((on(Some("n1")), on(Some("n2")), on(None)), (1, 0, 0));
}

#[test]
fn a_node_is_its_own_place_to_avoid() {
    let event = Event::warning("NvidiaXid", "NVRM: Xid (PCI:0000:3b:00): 79, x")
        .controller("kernel-monitor")
        .trust(Trust {
            uid: Agreement::Same,
            node: Agreement::Unknown,
        })
        .created(AT);
    let node = Subject::new(ObjectRef::node("n7"))
        .failure(Failure::new("Error", "", AT))
        .event(event);
    let verdict = crate::classify(&Settings::default(), &node)
        .verdict
        .unwrap();
    let avoid: Vec<_> = verdict.avoid.iter().map(|it| it.value.as_str()).collect();
    assert_eq!(avoid, ["n7", "0000:3b:00"]);
}
