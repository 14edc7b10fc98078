//! Each limit of the sandbox, on both sides of it: raised it lets pass what it
//! refused, lowered it refuses what it let pass.

#![allow(clippy::unwrap_used, reason = "a test says what went wrong by failing")]

mod support;

use std::{path::Path, process::Output};

use serde_json::Value;
use support::{component, component_of, directory, events, portent};
use tempfile::TempDir;

const PODS: [&str; 4] = ["api-0", "poison-0", "web-0", "web-1"];
const EVENTS_OF_EACH: u32 = 3;

fn plugin(guest: &str) -> TempDir {
    directory([(format!("{guest}.wasm"), component(guest))])
}

fn replay(plugins: &Path, limits: &[String]) -> Output {
    let input = directory([("events.jsonl", events(&PODS, EVENTS_OF_EACH).into_bytes())]);
    let events = input.path().join("events.jsonl");
    let args = ["replay", "-o", "json", "--plugins"].map(AsRef::as_ref);
    let args = args
        .into_iter()
        .chain([plugins.as_os_str(), events.as_os_str()]);
    let limits = limits
        .iter()
        .flat_map(|it| ["--limit".as_ref(), it.as_ref()]);
    portent(args.chain(limits))
}

/// How the poisonous subject fares with these limits: the code of its error, or `ok`.
#[track_caller]
fn of_poison(guest: &str, limits: &[String]) -> String {
    let output = replay(plugin(guest).path(), limits);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{guest} with {limits:?}: {stderr}"
    );
    let elements: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let poison = elements
        .iter()
        .find(|it| it["object"]["name"] == "poison-0")
        .unwrap();
    poison["error"]["reason"]
        .as_str()
        .unwrap_or("ok")
        .to_owned()
}

/// At `enough` the guest passes; one less, and it fails for this reason.
#[track_caller]
fn check(guest: &str, limit: &str, enough: u64, reason: &str, with: &[&str]) {
    let with = |value: u64| -> Vec<String> {
        with.iter()
            .map(|it| (*it).to_owned())
            .chain([format!("{limit}={value}")])
            .collect()
    };
    assert_eq!(of_poison(guest, &with(enough)), "ok", "{limit}={enough}");
    assert_eq!(
        of_poison(guest, &with(enough - 1)),
        reason,
        "{limit}={}",
        enough - 1
    );
}

#[test]
fn what_a_subject_may_be_answered_with_is_bounded() {
    check(
        "returns-too-many-findings",
        "findings-per-subject",
        10_000,
        "output-limit",
        &[],
    );
    check(
        "gives-many-reasons",
        "additional-reasons-per-event",
        7,
        "output-limit",
        &[],
    );
    check(
        "returns-a-long-text",
        "text-bytes",
        1 << 20,
        "output-limit",
        &[],
    );
}

#[test]
fn attributes_are_counted_before_they_are_compared() {
    let reason = |n| of_poison("repeats-an-attribute", &[format!("attributes={n}")]);
    assert_eq!(reason(2), "contract-violation");
    assert_eq!(reason(1), "output-limit");
}

/// Whether a load admits the guest with this limit, and what it says if not.
fn admitted(guest: &str, limit: &str, value: u64) -> Result<(), String> {
    let plugins = plugin(guest);
    let file = plugins.path().join(format!("{guest}.wasm"));
    let limit = format!("{limit}={value}");
    let args = ["plugin", "check", "--limit", &limit].map(AsRef::as_ref);
    let output = portent(args.into_iter().chain([file.as_os_str()]));
    match output.status.code() {
        Some(0) => Ok(()),
        Some(1) => Err(String::from_utf8_lossy(&output.stdout).into_owned()),
        other => panic!("{other:?}: {}", String::from_utf8_lossy(&output.stderr)),
    }
}

#[track_caller]
fn check_admission(guest: &str, limit: &str, enough: u64) {
    assert_eq!(admitted(guest, limit, enough), Ok(()));
    assert!(
        admitted(guest, limit, enough - 1).is_err(),
        "{limit}={}",
        enough - 1
    );
}

#[test]
fn what_a_guest_may_begin_with_is_bounded() {
    check_admission("begins-with-too-much-memory", "memory-bytes", 17 << 20);
    check_admission("begins-with-a-large-table", "table-elements", 20_001);
    check_admission("begins-with-many-tables", "tables", 21);
    let n_bytes = u64::try_from(component("behaves-well").len()).unwrap();
    check_admission("behaves-well", "component-bytes", n_bytes);
}

/// The smallest value of a limit with which the guest is admitted.
fn smallest(guest: &str, limit: &str) -> u64 {
    let (mut too_little, mut enough) = (1, 1_000_000);
    assert_eq!(admitted(guest, limit, enough), Ok(()));
    while 1 < enough - too_little {
        let middle = u64::midpoint(too_little, enough);
        match admitted(guest, limit, middle) {
            Ok(()) => enough = middle,
            Err(said) => {
                assert!(said.contains("out-of-fuel"), "{said}");
                too_little = middle;
            }
        }
    }
    enough
}

#[test]
fn fuel_is_exact_and_the_same_each_time() {
    // Loading asks with this fuel, and the trial runs on that of a call.
    let enough = smallest("behaves-well", "fuel-per-load");
    check_admission("behaves-well", "fuel-per-load", enough);
    assert_eq!(enough, smallest("behaves-well", "fuel-per-load"));
}

#[test]
fn fuel_grows_with_the_events_of_a_call() {
    // The trial's two events have to pay for the call between them.
    let admitted_with = |per_event: u64| {
        let plugins = plugin("behaves-well");
        let limits = [
            "fuel-per-call=1".to_owned(),
            format!("fuel-per-event={per_event}"),
        ];
        replay(plugins.path(), &limits).status.code()
    };
    assert_eq!(admitted_with(1), Some(2), "nothing can be loaded");
    assert_eq!(admitted_with(10_000), Some(0));
}

#[test]
fn bytes_lifted_are_bounded() {
    let with = ["text-bytes=1048576".to_owned()];
    let lifted = |n: u64| {
        of_poison(
            "returns-a-long-text",
            &[&with[..], &[format!("lifted-bytes={n}")]].concat(),
        )
    };
    assert_eq!(lifted(2 << 20), "ok");
    assert_eq!(lifted(1 << 20), "output-limit");
}

#[test]
fn log_lines_and_their_length_are_bounded() {
    let lines = |limits: &[&str]| -> Vec<usize> {
        let limits: Vec<_> = limits.iter().map(|it| (*it).to_owned()).collect();
        let output = replay(plugin("floods-the-log").path(), &limits);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        stderr
            .lines()
            .filter(|it| it.contains("xxx"))
            .map(|it| it.matches('x').count())
            .collect()
    };
    // The batch, its half with the poison, and the poison alone may all log.
    let few = lines(&["log-lines=1", "log-line-bytes=100"]);
    let more = lines(&["log-lines=2", "log-line-bytes=200"]);
    assert!(few.iter().all(|it| *it == 100), "{few:?}");
    assert!(more.iter().all(|it| *it == 200), "{more:?}");
    assert_eq!(more.len(), 2 * few.len());
}

#[test]
fn a_batch_holds_no_more_events_and_bytes_than_it_may() {
    // The guest answers with how many subjects were in its batch, but not on trial: it is impure.
    let counts = "(func $misbehave (param $subjects i32) (param $n i32) (result i32)
        (i64.store offset=8 (global.get $reason) (i64.extend_i32_u (local.get $n)))
        (call $well_behaved (local.get $subjects) (local.get $n)))
        (func $classify (param i32 i32) (param $subjects i32) (param $n i32) (result i32)
            (if (result i32) (call $on_trial (local.get $subjects))
                (then (call $well_behaved (local.get $subjects) (local.get $n)))
                (else (call $misbehave (local.get $subjects) (local.get $n)))))
        ;; Those of a trial are called `self-test-`, and nobody else is.
        (func $on_trial (param $subjects i32) (result i32)
            (i32.eq (i32.load align=1 (i32.load offset=24 (local.get $subjects))) (i32.const 0x666c6573)))";
    let folder = directory([("counts.wasm", component_of("counts", counts))]);
    let batches = |limits: &[&str]| -> Vec<u32> {
        let limits: Vec<_> = limits.iter().map(|it| (*it).to_owned()).collect();
        let output = replay(folder.path(), &limits);
        let elements: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
        let times = elements.iter().map(|it| {
            it["outcome"]["additionalReasons"][0]["at"]
                .as_str()
                .unwrap()
        });
        let n_subjects = times.map(|it| {
            let millis = it
                .trim_start_matches("1970-01-01T00:00:00.")
                .trim_end_matches('Z');
            millis.parse().unwrap()
        });
        n_subjects.collect()
    };
    assert_eq!(batches(&["batch-events=12"]), [4, 4, 4, 4]);
    assert_eq!(batches(&["batch-events=11"]), [3, 3, 3, 1]);
    assert_eq!(
        batches(&["batch-events=1"]),
        [1, 1, 1, 1],
        "a subject is never split"
    );
    assert_eq!(batches(&["batch-bytes=1024"]), [2, 2, 2, 2]);
    assert_eq!(batches(&["batch-bytes=1048576"]), [4, 4, 4, 4]);
}

#[test]
fn a_limit_that_is_none_or_cannot_be_is_named() {
    let said = |limit: &str| {
        let output = replay(plugin("behaves-well").path(), &[limit.to_owned()]);
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(
        said("memory=1").contains("there is no limit `memory`; the limits are component-bytes")
    );
    assert!(
        said("memory-bytes=16Mi").contains("cannot be `16Mi`: write a whole number from 65536 to")
    );
    assert!(said("memory-bytes=65535").contains("from 65536 to 4294967296"));
    assert!(said("memory-bytes").contains("write NAME=VALUE"));
}
