//! Each limit of the sandbox, on both sides of it: with as much as a guest needs it passes, with one less it does
//! not. A limit that `portent plugin limits` prints and that has no row here fails, but for those of `compile`.

#![allow(clippy::unwrap_used, reason = "a test says what went wrong by failing")]

mod support;

use std::{path::Path, process::Output};

use portent_hostile::{component, component_of};
use serde_json::Value;
use support::{directory, events, portent};
use tempfile::TempDir;

const PODS: [&str; 4] = ["api-0", "poison-0", "web-0", "web-1"];
const EVENTS_OF_EACH: u32 = 3;

/// What happens with these limits, in a word.
type Probe = fn(&str, &[String]) -> String;

/// A limit, and a guest that needs so much of it.
struct Row {
    limit: &'static str,
    guest: &'static str,
    enough: Enough,
    /// Limits that would be met before it.
    with: &'static [&'static str],
    probe: Probe,
    /// What is seen with enough, and with one less.
    seen: [&'static str; 2],
}

/// How much a guest needs.
enum Enough {
    Known(u64),
    /// More than nothing, and no more than this: it is searched for.
    UpTo(u64),
}

use Enough::{Known, UpTo};

const ROWS: [Row; 16] = [
    Row {
        limit: "component-bytes",
        guest: "weighs-all-it-may",
        enough: Known(32 << 20),
        with: &[],
        probe: admitted,
        seen: ["ok", "too-large"],
    },
    Row {
        limit: "memory-bytes",
        guest: "begins-with-too-much-memory",
        enough: Known(17 << 20),
        with: &[],
        probe: admitted,
        // The pool counts in pages, and lets a byte less pass.
        seen: ["ok", "instantiate-failed"],
    },
    Row {
        limit: "tables",
        guest: "begins-with-many-tables",
        enough: Known(21),
        with: &[],
        probe: admitted,
        seen: ["ok", "compile-failed"],
    },
    Row {
        limit: "table-elements",
        guest: "begins-with-a-large-table",
        enough: Known(20_001),
        with: &[],
        probe: admitted,
        seen: ["ok", "compile-failed"],
    },
    Row {
        limit: "fuel-per-event",
        guest: "behaves-well",
        enough: UpTo(1_000_000),
        with: &["fuel-per-call=1"],
        probe: admitted,
        seen: ["ok", "self-test-failed"],
    },
    Row {
        limit: "fuel-per-call",
        guest: "behaves-well",
        enough: UpTo(1_000_000),
        with: &["fuel-per-event=1"],
        probe: admitted,
        seen: ["ok", "self-test-failed"],
    },
    Row {
        limit: "fuel-per-load",
        guest: "describes-too-slowly",
        enough: UpTo(200_000_000),
        with: &[],
        probe: admitted,
        seen: ["ok", "describe-failed"],
    },
    Row {
        limit: "lifted-bytes",
        guest: "returns-a-long-text",
        enough: UpTo(2 << 20),
        with: &["text-bytes=1048576"],
        probe: of_poison,
        seen: ["ok", "output-limit"],
    },
    Row {
        limit: "findings-per-subject",
        guest: "returns-too-many-findings",
        enough: Known(10_000),
        with: &[],
        probe: of_poison,
        seen: ["ok", "output-limit"],
    },
    Row {
        // Of three events.
        limit: "additional-reasons-per-event",
        guest: "gives-many-reasons",
        enough: Known(7),
        with: &[],
        probe: of_poison,
        seen: ["ok", "output-limit"],
    },
    Row {
        // They are counted before they are compared.
        limit: "attributes",
        guest: "repeats-an-attribute",
        enough: Known(2),
        with: &[],
        probe: of_poison,
        seen: ["contract-violation", "output-limit"],
    },
    Row {
        limit: "text-bytes",
        guest: "returns-a-long-text",
        enough: Known(1 << 20),
        with: &[],
        probe: of_poison,
        seen: ["ok", "output-limit"],
    },
    Row {
        limit: "log-lines",
        guest: "logs-three-lines",
        enough: Known(3),
        with: &[],
        probe: lines_dropped,
        seen: ["none", "some"],
    },
    Row {
        limit: "log-line-bytes",
        guest: "floods-the-log",
        enough: Known(10_240),
        with: &["log-lines=1"],
        probe: longest_line,
        seen: ["10240", "10239"],
    },
    Row {
        limit: "batch-events",
        guest: "logs-its-subjects",
        enough: Known(12),
        with: &[],
        probe: largest_batch,
        seen: ["4", "3"],
    },
    Row {
        limit: "batch-bytes",
        guest: "logs-its-subjects",
        enough: UpTo(1 << 20),
        with: &[],
        probe: largest_batch,
        seen: ["4", "3"],
    },
];

impl Row {
    fn seen_with(&self, value: u64) -> String {
        let with = self.with.iter().map(|it| (*it).to_owned());
        let limits: Vec<_> = with.chain([format!("{}={value}", self.limit)]).collect();
        (self.probe)(self.guest, &limits)
    }

    /// The smallest value that is enough.
    fn enough(&self) -> u64 {
        let (mut too_little, mut enough) = match self.enough {
            Known(it) => return it,
            UpTo(it) => (smallest_value(self.limit), it),
        };
        while 1 < enough - too_little {
            let middle = u64::midpoint(too_little, enough);
            if self.seen_with(middle) == self.seen[0] {
                enough = middle;
            } else {
                too_little = middle;
            }
        }
        enough
    }
}

/// What `portent plugin limits` prints: each limit, and the smallest value that it may have.
fn limits() -> Vec<(String, u64)> {
    let output = portent(["plugin", "limits"]);
    let printed = String::from_utf8(output.stdout).unwrap();
    let mut limits = Vec::new();
    let mut name = "";
    for line in printed.lines() {
        if !line.starts_with(' ') {
            name = line;
        } else if let Some((_, range)) = line.split_once(", from ") {
            let smallest = range.split(' ').next().unwrap();
            limits.push((name.to_owned(), smallest.parse().unwrap()));
        }
    }
    limits
}

fn smallest_value(limit: &str) -> u64 {
    let limits = limits();
    limits.iter().find(|(name, _)| name == limit).unwrap().1
}

/// What a compiler needs depends on the machine, so no number is on the edge: `compile` has a guest on each
/// side of these.
const OF_COMPILING: [&str; 2] = ["compile-memory-bytes", "compile-seconds"];

#[test]
fn every_limit_that_is_printed_has_a_row() {
    let printed = limits().into_iter().map(|(name, _)| name);
    let (of_compiling, printed): (Vec<_>, Vec<_>) =
        printed.partition(|it| OF_COMPILING.contains(&&**it));
    assert_eq!(printed, ROWS.map(|it| it.limit.to_owned()));
    assert_eq!(of_compiling, OF_COMPILING);
    let tests = include_str!("compile.rs");
    assert!(of_compiling.iter().all(|it| tests.contains(&**it)));
}

#[test]
fn a_guest_passes_with_what_it_needs_of_a_limit_and_not_with_one_less() {
    for row in &ROWS {
        let enough = row.enough();
        let [within, beyond] = row.seen;
        let limit = row.limit;
        assert_eq!(row.seen_with(enough), within, "{limit}={enough}");
        assert_eq!(row.seen_with(enough - 1), beyond, "{limit}={}", enough - 1);
    }
}

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

/// Whether a load admits the guest with these limits: the code of why not, or `ok`.
fn admitted(guest: &str, limits: &[String]) -> String {
    checked(&plugin(guest).path().join(format!("{guest}.wasm")), limits)
}

fn checked(file: &Path, limits: &[String]) -> String {
    let limits = limits
        .iter()
        .flat_map(|it| ["--limit".as_ref(), it.as_ref()]);
    let args = ["plugin", "check"].map(AsRef::as_ref).into_iter();
    let output = portent(args.chain(limits).chain([file.as_os_str()]));
    let stdout = String::from_utf8_lossy(&output.stdout);
    match output.status.code() {
        Some(0) => "ok".to_owned(),
        Some(1) => {
            let first = stdout.lines().next().unwrap_or_default();
            first.rsplit(' ').next().unwrap_or_default().to_owned()
        }
        other => panic!("{other:?}: {}", String::from_utf8_lossy(&output.stderr)),
    }
}

/// What is logged with these limits.
fn logged(guest: &str, limits: &[String]) -> String {
    let output = replay(plugin(guest).path(), limits);
    assert_eq!(output.status.code(), Some(0), "{limits:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Whether lines are missing, and said to be.
fn lines_dropped(guest: &str, limits: &[String]) -> String {
    let logged = logged(guest, limits);
    let is_dropped = logged.contains("log lines of a plugin were dropped");
    if is_dropped { "some" } else { "none" }.to_owned()
}

/// The bytes of the longest line of the guest, which are all `x`.
fn longest_line(guest: &str, limits: &[String]) -> String {
    let logged = logged(guest, limits);
    let lines = logged.lines().filter(|it| it.contains("xxx"));
    let longest = lines.map(|it| it.matches('x').count()).max();
    longest.unwrap_or_default().to_string()
}

/// How many subjects the largest batch had, of each of which the guest logs an `s`.
fn largest_batch(guest: &str, limits: &[String]) -> String {
    let largest = batches(guest, limits).into_iter().max();
    largest.unwrap_or_default().to_string()
}

/// How many subjects each batch had. Those of its load come before, and are left out.
fn batches(guest: &str, limits: &[String]) -> Vec<usize> {
    let logged = logged(guest, limits);
    let words = logged.split_ascii_whitespace();
    let batches = words.filter(|it| it.chars().all(|it| it == 's'));
    let all: Vec<_> = batches.map(str::len).collect();
    let sum_from = |at: &usize| all[*at..].iter().sum::<usize>();
    let first = (0..all.len()).find(|at| sum_from(at) == PODS.len());
    all[first.unwrap_or_else(|| panic!("{all:?}"))..].to_vec()
}

#[test]
fn fuel_is_exact_and_the_same_each_time() {
    let row = ROWS.iter().find(|it| it.limit == "fuel-per-call").unwrap();
    assert_eq!(row.enough(), row.enough());
}

#[test]
fn a_subject_is_never_split_however_little_a_batch_may_hold() {
    let batches = |limit: &str| batches("logs-its-subjects", &[limit.to_owned()]);
    assert_eq!(batches("batch-events=12"), [4]);
    assert_eq!(batches("batch-events=11"), [3, 1]);
    assert_eq!(batches("batch-events=1"), [1, 1, 1, 1]);
    assert_eq!(batches("batch-bytes=1024"), [2, 2]);
}

/// A guest with an interest in so many kinds.
fn interested(n: u32) -> TempDir {
    let own = format!(
        "(func $describe (result i32)
             (i32.store (i32.const 0x300) (call $alloc (i32.const {})))
             (i32.store (i32.const 0x304) (i32.const {n}))
             (call $static_description))",
        8 * n
    );
    directory([("a.wasm", component_of("a", &own))])
}

#[test]
fn the_entries_of_interests_are_bounded_since_the_host_looks_at_each_for_each_event() {
    let admitted = |n| checked(&interested(n).path().join("a.wasm"), &[]);
    assert_eq!(admitted(1_000), "ok");
    assert_eq!(admitted(1_001), "description-invalid");
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
