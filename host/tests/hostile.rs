//! What a plugin may do to the host: nothing. Each guest of the kit (`plugins/hostile`) is stopped where its row
//! says, for the reason that it says; the subjects and the plugins beside it must not notice.

mod support;

use std::collections::BTreeSet;
use std::io::{Read as _, Seek as _};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use portent::reason::Reason;
use portent_hostile::{GUESTS, Guest, Stop, component};
use serde_json::Value;
use support::{directory, event_uid, events, portent};
use tempfile::TempDir;

/// In the order of their names, with the poisonous one between others, so that a bisection has to look
/// on both sides of it.
const PODS: [&str; 4] = ["api-0", "poison-0", "web-0", "web-1"];
const POISON: &str = "poison-0";

/// One each, so that a guest without end ends soon: a loaded machine has no time for more than a few million units of
/// fuel before a batch's time is over, and then those beside the poisonous one fail with it.
const EVENTS_OF_EACH: u32 = 1;

/// Long enough for whatever is not made to take long, and shorter than what a host would wait: it is waited for
/// four times here.
const COMPILE_SECONDS: [&str; 2] = ["--limit", "compile-seconds=8"];

/// What no guest can bring about: a file, its neighbours and who runs the host can.
const OF_NO_GUEST: [Reason; 5] = [
    Reason::ReadFailed,
    Reason::NameClash,
    Reason::PinMismatch,
    Reason::OverBudget,
    // Fuel ends before it, whatever has been tried.
    Reason::Deadline,
];

/// Those that are to be stopped there.
fn guests(is_it: impl Fn(Stop) -> bool) -> Vec<&'static Guest> {
    let guests: Vec<_> = GUESTS.iter().filter(|it| is_it(it.stop)).collect();
    assert!(!guests.is_empty());
    guests
}

#[test]
fn every_reason_is_one_that_a_guest_brings_about_or_one_that_none_can() {
    let ours: BTreeSet<_> = Reason::ALL.iter().map(|it| it.as_str()).collect();
    let tried = GUESTS.iter().filter_map(|it| it.stop.reason());
    let of_none = OF_NO_GUEST.iter().map(|it| it.as_str());
    let listed: BTreeSet<_> = tried.chain(of_none).collect();
    assert_eq!(listed, ours);
}

#[test]
fn what_is_allowed_costs_a_guest_nothing() {
    for guest in guests(|it| it == Stop::Nowhere) {
        check_fine(guest.name);
    }
}

#[test]
fn a_guest_that_wants_nothing_of_what_there_is_is_not_asked() {
    for guest in guests(|it| it == Stop::Unasked) {
        check_admissible(guest.name);
        let output = replay(&plugins([guest.name]), &["--strict"]);
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        check_elements(&output, &[], |_, _| None);
    }
}

#[test]
fn a_guest_that_misbehaves_in_a_call_costs_one_subject() {
    for guest in guests(|it| matches!(it, Stop::Call(_))) {
        let reason = guest.stop.reason().expect("it is stopped");
        check_call(guest.name, reason, guest.telling);
    }
}

#[test]
fn a_guest_that_cannot_serve_is_refused_and_the_one_beside_it_serves() {
    for guest in guests(|it| matches!(it, Stop::Load(_))) {
        let reason = guest.stop.reason().expect("it is stopped");
        check_refused(guest.name, reason, guest.telling);
    }
}

#[test]
fn a_flood_of_log_lines_is_cut() {
    let output = check_fine("floods-the-log");
    // 32 lines of 4 KiB a batch, some more for the host's own, against the 40 MB that the guest logs.
    assert!(
        output.stderr.len() < 512 * 1024,
        "{} bytes on stderr",
        output.stderr.len()
    );
}

#[test]
fn a_log_that_is_read_late_costs_a_guest_nothing() {
    let plugins = plugins(["floods-the-log"]);
    let input = directory([("events.jsonl", events(&PODS, EVENTS_OF_EACH).into_bytes())]);
    let mut stdout = tempfile::tempfile().expect("there is room for temporary files");
    let mut child = Command::new(env!("CARGO_BIN_EXE_portent"))
        .args(["replay", "-o", "json", "--plugins"])
        .arg(plugins.path())
        .arg(input.path().join("events.jsonl"))
        .stdout(stdout.try_clone().expect("a file can be open twice"))
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    // A pipe holds half of what a call may log. This is five times as long as a call may take, and so a guest that
    // had to wait for its lines would be out of time.
    thread::sleep(Duration::from_secs(1));
    let mut stderr = Vec::new();
    let mut pipe = child.stderr.take().expect("it is piped");
    pipe.read_to_end(&mut stderr).expect("it is a pipe");
    let status = child.wait().expect("a child can be waited for");
    let mut content = Vec::new();
    stdout
        .rewind()
        .and_then(|()| stdout.read_to_end(&mut content))
        .expect("a temporary file can be read");
    let output = Output {
        status,
        stdout: content,
        stderr,
    };
    check_elements(&output, &["floods-the-log"], |_, _| None);
}

#[test]
fn a_log_line_can_neither_command_the_terminal_nor_pretend_to_be_two() {
    let output = check_fine("logs-escapes");
    let stderr = text(&output.stderr);
    assert!(stderr.contains("forged second"), "{stderr:?}");
    assert!(!stderr.contains('\u{1b}'), "{stderr:?}");
    assert!(
        !stderr
            .split(['\n', '\r'])
            .any(|line| line.starts_with("forged")),
        "{stderr:?}"
    );
}

#[test]
fn a_file_that_is_not_there_cannot_be_read() {
    let nothing = directory::<&str>([]);
    let path = nothing.path().join("missing.wasm");
    let output = portent(["plugin".as_ref(), "check".as_ref(), path.as_os_str()]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(
        says(&said(&output), &["missing.wasm", "read-failed"]),
        "{}",
        said(&output)
    );
}

#[test]
fn of_two_plugins_of_one_name_the_first_file_serves() {
    let both = directory([
        ("a.wasm", component("behaves-well")),
        ("b.wasm", component("behaves-well")),
    ]);
    let output = replay(&both, &[]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(
        says(&text(&output.stderr), &["b.wasm", "name-clash"]),
        "{}",
        said(&output)
    );
    check_elements(&output, &["behaves-well"], |_, _| None);
    assert_eq!(replay(&both, &["--strict"]).status.code(), Some(2));
}

#[test]
fn strict_is_not_content_with_a_subject_that_was_not_classified() {
    let output = replay(&plugins(["loops-for-ever"]), &["--strict"]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
}

#[test]
fn all_of_them_together_leave_the_good_one_alone() {
    let everyone = guests(|_| true).into_iter().map(|it| it.name);
    let output = replay(&plugins(everyone), &[]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let elements = elements(&output);
    for (index, pod) in PODS.iter().enumerate() {
        let of_good: Vec<&Value> = elements
            .iter()
            .filter(|element| {
                element["object"]["name"] == *pod && element["classifier"]["name"] == "behaves-well"
            })
            .collect();
        assert_eq!(of_good.len(), 1, "{pod}: {of_good:?}");
        check_good(of_good[0], index);
    }
}

/// The guest is admissible, and no subject has an error.
#[track_caller]
fn check_fine(guest: &str) -> Output {
    check_admissible(guest);
    let output = replay(&plugins([guest]), &[]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    check_elements(&output, &[guest], |_, _| None);
    output
}

/// The guest is admissible, the poisonous subject has this error, and the others have none.
#[track_caller]
fn check_call(guest: &str, reason: &str, telling: &str) {
    check_admissible(guest);
    let output = replay(&plugins([guest]), &[]);
    assert_eq!(output.status.code(), Some(0), "{guest}: {}", said(&output));
    check_elements(&output, &[guest], |_, pod| {
        (pod == POISON).then_some((reason, telling))
    });
}

#[track_caller]
fn check_admissible(guest: &str) {
    let plugins = plugins([guest]);
    let path = plugins.path().join(file_name(guest));
    let output = portent(["plugin".as_ref(), "check".as_ref(), path.as_os_str()]);
    assert_eq!(output.status.code(), Some(0), "{guest}: {}", said(&output));
    assert!(
        text(&output.stdout).contains(guest),
        "{guest}: {}",
        said(&output)
    );
}

/// The guest is refused, and the good one beside it is not.
#[track_caller]
fn check_refused(name: &str, reason: &str, telling: &str) {
    let alone = plugins([name]);
    let output = replay(&alone, &[]);
    assert_eq!(
        output.status.code(),
        Some(2),
        "{name} alone: {}",
        said(&output)
    );

    let beside = plugins(["behaves-well", name]);
    let file = &*file_name(name);
    let path = beside.path().join(file);
    let check = ["plugin".as_ref(), "check".as_ref(), path.as_os_str()];
    let output = portent(check.into_iter().chain(COMPILE_SECONDS.map(AsRef::as_ref)));
    assert_eq!(output.status.code(), Some(1), "{file}: {}", said(&output));
    assert!(
        says(&said(&output), &[reason]),
        "{file} is not {reason}: {}",
        said(&output)
    );
    assert!(
        said(&output).contains(telling),
        "{file}, `{telling}`: {}",
        said(&output)
    );

    let output = replay(&beside, &[]);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{file} beside another: {}",
        said(&output)
    );
    assert!(
        says(&text(&output.stderr), &[file, reason]),
        "{file} is not {reason}: {}",
        said(&output)
    );
    check_elements(&output, &["behaves-well"], |_, _| None);

    let output = replay(&beside, &["--strict"]);
    assert_eq!(
        output.status.code(),
        Some(2),
        "{file}, strictly: {}",
        said(&output)
    );
}

/// There is one element for each pod and plugin; `error` gives the reason and a part of the message
/// where there must be an error.
#[track_caller]
fn check_elements<'a>(
    output: &Output,
    guests: &[&str],
    error: impl Fn(&str, &str) -> Option<(&'a str, &'a str)>,
) {
    let elements = elements(output);
    assert_eq!(
        elements.len(),
        guests.len() * PODS.len(),
        "{}",
        said(output)
    );
    for guest in guests {
        for (index, pod) in PODS.iter().enumerate() {
            let element = elements
                .iter()
                .find(|element| {
                    element["object"]["name"] == *pod && element["classifier"]["name"] == *guest
                })
                .unwrap_or_else(|| panic!("{guest} says nothing of {pod}: {}", said(output)));
            match error(guest, pod) {
                None => check_good(element, index),
                Some((reason, telling)) => {
                    assert_eq!(element["error"]["reason"], reason, "{guest}: {element}");
                    assert!(element["outcome"].is_null(), "{guest}: {element}");
                    let message = element["error"]["message"].as_str().unwrap_or_default();
                    assert!(message.contains(telling), "{guest}, `{telling}`: {message}");
                    // What a guest makes the host say is bounded too.
                    assert!(message.len() < 4096, "{guest}: {} bytes", message.len());
                }
            }
        }
    }
}

/// The element is the prelude's normal answer about the pod `index`.
#[track_caller]
fn check_good(element: &Value, index: usize) {
    assert!(element["error"].is_null(), "{element}");
    assert_eq!(element["outcome"]["stale"], false, "{element}");
    assert_eq!(element["object"]["kind"], "Pod", "{element}");
    assert_eq!(element["object"]["namespace"], "team-a", "{element}");
    let outcome = &element["outcome"];
    assert_eq!(outcome["findings"], Value::Array(vec![]), "{element}");
    assert!(outcome["verdict"].is_null(), "{element}");
    assert_eq!(
        outcome["additionalReasons"].as_array().map(Vec::len),
        Some(1),
        "{element}"
    );
    let reason = &outcome["additionalReasons"][0];
    assert_eq!(reason["text"], "ok", "{element}");
    assert_eq!(reason["event"]["uid"], event_uid(index, 0), "{element}");
}

/// Replays a few events of each pod through the plugins of a directory.
#[track_caller]
fn replay(plugins: &TempDir, more: &[&str]) -> Output {
    let input = directory([("events.jsonl", events(&PODS, EVENTS_OF_EACH).into_bytes())]);
    let events = input.path().join("events.jsonl");
    let arguments = [
        "replay".as_ref(),
        "--plugins".as_ref(),
        plugins.path().as_os_str(),
        "-o".as_ref(),
        "json".as_ref(),
    ];
    portent(
        arguments
            .into_iter()
            .chain(COMPILE_SECONDS.map(AsRef::as_ref))
            .chain(more.iter().map(AsRef::as_ref))
            .chain([events.as_os_str()]),
    )
}

fn plugins<'a>(guests: impl IntoIterator<Item = &'a str>) -> TempDir {
    directory(
        guests
            .into_iter()
            .map(|guest| (file_name(guest), component(guest))),
    )
}

fn file_name(guest: &str) -> String {
    format!("{guest}.wasm")
}

#[track_caller]
fn elements(output: &Output) -> Vec<Value> {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", said(output)))
}

/// Whether a line has all of these in it.
fn says(text: &str, words: &[&str]) -> bool {
    text.lines()
        .any(|line| words.iter().all(|word| line.contains(word)))
}

fn said(output: &Output) -> String {
    format!(
        "{}, stdout:\n{}\nstderr:\n{}",
        output.status,
        text(&output.stdout),
        text(&output.stderr)
    )
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
