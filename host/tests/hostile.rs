//! What a plugin may do to the host: nothing. Each row is a guest of `tests/guests` or a file that is
//! none, and what the host must say of it; the subjects and the plugins beside it must not notice.

mod support;

use std::fs::File;
use std::process::Output;

use serde_json::Value;
use support::{component, directory, event_uid, events, portent};
use tempfile::TempDir;

/// In the order of their names, with the poisonous one between others, so that a bisection has to look
/// on both sides of it.
const PODS: [&str; 4] = ["api-0", "poison-0", "web-0", "web-1"];
const POISON: &str = "poison-0";
const EVENTS_OF_EACH: u32 = 3;

#[test]
fn every_guest_has_a_row() {
    for guest in support::every_guest() {
        assert!(
            include_str!("hostile.rs").contains(&format!("\"{guest}\"")),
            "{guest} has none"
        );
    }
}

#[test]
fn what_is_allowed_costs_a_guest_nothing() {
    check_fine("behaves-well");
    check_fine("grows-memory-to-the-cap");
    check_fine("grows-its-table-to-the-cap");
    check_fine("keeps-state");
    check_fine("a-later-patch");
}

#[test]
fn a_flood_of_log_lines_is_cut_and_the_answer_taken() {
    let output = check_fine("floods-the-log");
    // 32 lines of 4 KiB a batch, some more for the host's own, against the 1 GB that the guest logs.
    assert!(
        output.stderr.len() < 512 * 1024,
        "{} bytes on stderr",
        output.stderr.len()
    );
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
fn a_guest_without_end_costs_one_subject() {
    check_call("loops-for-ever", "out-of-fuel", "fuel");
    check_call("loops-in-post-return", "out-of-fuel", "fuel");
    check_call("fills-memory-for-ever", "out-of-fuel", "fuel");
    check_call("logs-for-ever", "out-of-fuel", "fuel");
    check_call("recurses-for-ever", "stack-overflow", "recursed");
}

#[test]
fn a_guest_that_traps_costs_one_subject() {
    check_call("allocates-for-ever", "memory-limit", "memory-bytes");
    check_call("panics", "panic", "boom 42");
    check_call("panics-at-length", "panic", "src/lib.rs:8:9");
    check_call("reaches-unreachable", "trap", "unreachable");
    check_call("reads-out-of-bounds", "trap", "out of bounds");
    check_call(
        "logs-from-realloc",
        "trap",
        "cannot leave component instance",
    );
}

#[test]
fn an_answer_that_is_too_large_costs_one_subject() {
    check_call("returns-too-many-outcomes", "output-limit", "lifted-bytes");
    check_call("returns-aliased-texts", "output-limit", "lifted-bytes");
    check_call(
        "gives-many-reasons",
        "output-limit",
        "20 additional reasons",
    );
    check_call(
        "returns-too-many-findings",
        "output-limit",
        "10000 findings",
    );
    check_call("returns-a-long-text", "output-limit", "1048576");
}

#[test]
fn an_answer_that_cannot_be_read_costs_one_subject() {
    check_call("returns-bad-utf8", "bad-output", "utf-8");
    check_call("returns-a-bad-discriminant", "bad-output", "77");
    check_call("returns-a-wild-pointer", "bad-output", "out of bounds");
    check_call("returns-a-wild-list", "bad-output", "out of bounds");
    check_call(
        "reallocs-out-of-bounds",
        "bad-output",
        "beyond end of memory",
    );
}

#[test]
fn an_answer_against_the_contract_costs_one_subject() {
    check_call("answers-one-too-few", "contract-violation", "0 outcomes");
    check_call("answers-one-too-many", "contract-violation", "2 outcomes");
    check_call("cites-evidence-out-of-range", "contract-violation", "99");
    check_call("cites-no-evidence", "contract-violation", "evidence");
    check_call("cites-a-reason-out-of-range", "contract-violation", "98");
    check_call("repeats-a-finding", "contract-violation", "twin");
    check_call("repeats-an-attribute", "contract-violation", "twice");
    check_call(
        "finds-an-undeclared-code",
        "contract-violation",
        "Undeclared",
    );
    check_call(
        "finds-an-undeclared-category",
        "contract-violation",
        "undeclared",
    );
    check_call("finds-without-a-code", "contract-violation", "code");
    check_call("judges-without-a-failure", "contract-violation", "verdict");
}

#[test]
fn an_error_of_the_guest_costs_one_subject() {
    check_call("answers-with-an-error", "guest-error", "cannot do this");
    check_call("answers-with-a-long-error", "guest-error", "");
}

#[test]
fn a_guest_for_another_contract_is_refused() {
    check_refused("an-older-classify", "abi-unsupported", "portent-sdk");
    check_refused("an-older-outcome", "abi-unsupported", "3 fields");
    check_refused("a-later-version", "abi-unsupported", "0.2.0");
    check_refused(
        "imports-wasi",
        "forbidden-import",
        "wasi:clocks/monotonic-clock",
    );
}

#[test]
fn a_guest_that_does_not_come_up_is_refused() {
    check_refused("begins-with-too-much-memory", "compile-failed", "memory");
    check_refused("begins-with-a-large-table", "compile-failed", "table");
    check_refused("begins-with-many-tables", "compile-failed", "table");
    check_refused("loops-in-start", "instantiate-failed", "fuel");
    check_refused("traps-in-describe", "describe-failed", "unreachable");
    check_refused("loops-in-describe", "describe-failed", "fuel");
    check_refused("describes-no-interests", "description-invalid", "interest");
    check_refused("describes-a-bad-name", "description-invalid", "Not A Name!");
    check_refused(
        "refuses-its-settings",
        "settings-invalid",
        "write the team's name",
    );
    check_refused("traps-always", "self-test-failed", "unreachable");
}

#[test]
fn a_guest_whose_answer_depends_on_what_is_beside_a_subject_is_refused() {
    check_refused("counts-its-subjects", "impure", "is `1`, and was `2`");
}

#[test]
fn a_file_that_is_no_component_is_refused() {
    let whole = component("behaves-well");
    let half = whole
        .get(..whole.len() / 2)
        .expect("a half is less than a whole");
    let core = wat::parse_str("(module)").expect("a module can be empty");
    let empty = wat::parse_str("(component)").expect("a component can be empty");

    check_refused_file("empty-file", &[], "not-a-component", "");
    check_refused_file("garbage", b"\x01\xff\x00 and more", "not-a-component", "");
    // As what another wasmtime has compiled begins: machine code, which nobody could check.
    check_refused_file("compiled", b"\x7fELF and more", "not-a-component", "");
    check_refused_file("text", b"(component)", "not-a-component", "");
    check_refused_file("core-module", &core, "not-a-component", "core module");
    check_refused_file("truncated", half, "not-a-component", "");
    check_refused_file(
        "exports-nothing",
        &empty,
        "abi-unsupported",
        "portent:classifier",
    );
}

#[test]
fn a_file_that_is_too_large_is_refused_by_its_size() {
    let plugins = plugins(["behaves-well"]);
    // A file of nothing but a hole takes no room.
    let path = plugins.path().join("huge.wasm");
    File::create(&path)
        .and_then(|file| file.set_len(1 << 28))
        .expect("a file can have a hole");
    check_refused_in(&plugins, "huge.wasm", "too-large", "");
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
    let everyone = support::every_guest();
    let output = replay(&plugins(everyone.iter().map(String::as_str)), &[]);
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

#[track_caller]
fn check_refused(guest: &str, reason: &str, telling: &str) {
    check_refused_file(guest, &component(guest), reason, telling);
}

#[track_caller]
fn check_refused_file(name: &str, content: &[u8], reason: &str, telling: &str) {
    let alone = directory([(file_name(name), content.to_owned())]);
    let output = replay(&alone, &[]);
    assert_eq!(
        output.status.code(),
        Some(2),
        "{name} alone: {}",
        said(&output)
    );

    let beside = directory([
        (file_name("behaves-well"), component("behaves-well")),
        (file_name(name), content.to_owned()),
    ]);
    check_refused_in(&beside, &file_name(name), reason, telling);
}

/// The file is refused, and the good plugin that is in the directory too is not.
#[track_caller]
fn check_refused_in(plugins: &TempDir, file: &str, reason: &str, telling: &str) {
    let path = plugins.path().join(file);
    let output = portent(["plugin".as_ref(), "check".as_ref(), path.as_os_str()]);
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

    let output = replay(plugins, &[]);
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

    let output = replay(plugins, &["--strict"]);
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
