//! `portent replay` on the repo's own recordings, through the real plugins.
//!
//! The plugins are built by `cargo xtask plugins`; without them these tests fail
//! and say so.

#![allow(clippy::unwrap_used, reason = "a test says what went wrong by failing")]

mod support;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::Output,
};

use serde_json::Value;

fn plugins() -> PathBuf {
    let built = std::env::var_os("PORTENT_TEST_PLUGINS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/plugins"),
        PathBuf::from,
    );
    assert!(
        built.join("gpu-fault.wasm").exists(),
        "there are no plugins in {}: run `cargo xtask plugins` first",
        built.display()
    );
    built
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(name)
}

/// Replays a file through the real plugins.
#[track_caller]
fn replay(file: &Path, more: &[&str]) -> Output {
    let plugins = plugins();
    let args = [
        "replay".as_ref(),
        "--plugins".as_ref(),
        plugins.as_os_str(),
        file.as_os_str(),
    ];
    support::portent(args.into_iter().chain(more.iter().map(AsRef::as_ref)))
}

/// The same, with its output as JSON; it must succeed.
#[track_caller]
fn elements(file: &Path) -> Vec<Value> {
    let output = replay(file, &["-o", "json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The findings of `gpu-fault` that hold, by the name of each Event they rest on.
fn findings_by_event(elements: &[Value]) -> BTreeMap<String, Vec<Value>> {
    let mut by_event = BTreeMap::<String, Vec<Value>>::new();
    for element in elements
        .iter()
        .filter(|it| it["classifier"]["name"] == "gpu-fault")
    {
        for finding in element["outcome"]["findings"]
            .as_array()
            .into_iter()
            .flatten()
        {
            for event in finding["evidence"].as_array().unwrap() {
                if finding["status"] == "active" {
                    let name = event["name"].as_str().unwrap().to_owned();
                    by_event.entry(name).or_default().push(finding.clone());
                }
            }
        }
    }
    by_event
}

fn additional_reasons(elements: &[Value]) -> Vec<Value> {
    let of_each = elements
        .iter()
        .filter_map(|it| it["outcome"]["additionalReasons"].as_array());
    of_each.flatten().cloned().collect()
}

#[test]
fn three_forms_of_one_list_give_the_same() {
    let of = |name| serde_json::to_string(&elements(&fixture(name))).unwrap();
    let core = of("list-core.json");
    assert_eq!(
        additional_reasons(&serde_json::from_str::<Vec<Value>>(&core).unwrap()).len(),
        6
    );
    assert_eq!(core, of("list-events-v1.json"));
    assert_eq!(core, of("eventlist.json"));
}

#[test]
fn standard_input_is_read_as_a_file_is() {
    let list = std::fs::File::open(fixture("list-core.json")).unwrap();
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_portent"))
        .args(["replay", "-o", "json", "-"])
        .env("PORTENT_PLUGINS", plugins())
        .stdin(list)
        .output()
        .unwrap();
    let from_stdin: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(from_stdin, elements(&fixture("list-core.json")));
}

#[test]
fn flyte_reports_are_what_flyte_says_they_are() {
    let want: BTreeMap<String, Value> =
        serde_json::from_slice(&std::fs::read(fixture("flyte.expect.json")).unwrap()).unwrap();
    let found = findings_by_event(&elements(&fixture("flyte.json")));
    for (event, want) in want {
        let found = found.get(&event).map_or(&[][..], Vec::as_slice);
        if want["category"].is_null() {
            assert!(found.is_empty(), "{event}: {found:?}");
            continue;
        }
        let [finding] = found else {
            panic!("{event}: {found:?}")
        };
        assert_eq!(finding["category"], want["category"], "{event}: {finding}");
        assert_eq!(finding["code"], want["code"], "{event}: {finding}");
        for (key, value) in want["attributes"].as_object().unwrap() {
            assert_eq!(
                &finding["attributes"][key], value,
                "{event}, {key}: {finding}"
            );
        }
        let (severity, blame) = match finding["attributes"]["severity"].as_str() {
            Some("user") => ("info", "workload"),
            Some("warn") => ("warning", "unknown"),
            Some("critical") => ("critical", "platform"),
            other => panic!("{event}: severity {other:?}"),
        };
        assert_eq!(
            (&finding["severity"], &finding["blame"]),
            (&severity.into(), &blame.into()),
            "{event}"
        );
    }
}

#[test]
fn a_fault_outlives_the_deletion_of_its_event() {
    let found = elements(&fixture("frames.jsonl"));
    let faults: Vec<_> = found
        .iter()
        .filter(|it| it["classifier"]["name"] == "gpu-fault")
        .collect();
    let [fault] = &faults[..] else {
        panic!("{faults:?}")
    };
    let finding = &fault["outcome"]["findings"][0];
    assert_eq!(finding["code"], "GpuFallenOffBus");
    assert_eq!(finding["retained"], true);
    assert_eq!(finding["status"], "active");
}

#[test]
fn changes_tell_the_story_in_order() {
    let output = replay(&fixture("frames.jsonl"), &["--changes", "-o", "jsonl"]);
    let changes: Vec<Value> = stdout(&output)
        .lines()
        .map(|it| serde_json::from_str(it).unwrap())
        .collect();
    let raised: Vec<_> = changes
        .iter()
        .flat_map(|it| it["raised"].as_array().unwrap())
        .collect();
    assert_eq!(raised.len(), 1, "{changes:?}");
    assert!(
        changes
            .iter()
            .all(|it| it["cleared"].as_array().unwrap().is_empty())
    );
    for (idx, it) in changes.iter().enumerate() {
        assert_eq!(it["epoch"], 0);
        assert_eq!(it["initial"], false);
        assert_eq!(it["seq"], idx + 1);
    }
}

#[test]
fn the_same_input_gives_the_same_bytes_whatever_the_number_of_workers() {
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("../demo/recording.json");
    for file in [
        demo,
        fixture("flyte.json"),
        fixture("frames.jsonl"),
        fixture("recreated.jsonl"),
    ] {
        for mode in [&["-o", "json"][..], &["-o", "jsonl", "--changes"]] {
            let of = |workers| replay(&file, &[mode, &["--workers", workers]].concat()).stdout;
            let one = of("1");
            assert!(!one.is_empty());
            assert!(
                one == of("2") && one == of("8"),
                "{}: {mode:?}",
                file.display()
            );
        }
    }
}

#[test]
fn the_demo_shows_its_incidents_and_nothing_else() {
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("../demo/recording.json");
    let found = elements(&demo);
    let mut faults: Vec<_> = found
        .iter()
        .filter(|it| it["classifier"]["name"] == "gpu-fault")
        .flat_map(|it| {
            let findings = it["outcome"]["findings"].as_array().unwrap();
            findings.iter().map(|finding| {
                (
                    it["object"]["name"].as_str().unwrap().to_owned(),
                    finding["code"].as_str().unwrap().to_owned(),
                )
            })
        })
        .collect();
    faults.sort();
    let want = [
        ("aurora-pretrain-2-pq6hn", "GpuFallenOffBus"),
        ("aurora-pretrain-2-zk4wb", "GpuInsufficient"),
        ("burn-in-gpu-a-05-x2l6c", "GpuXidError"),
        ("depth-tune-gpu-worker-h2k7d", "GpuRowRemapPending"),
        ("depth-tune-gpu-worker-q8c4t", "GpuInsufficient"),
        ("moe-eval-tq5xd", "GpuNvlinkError"),
        ("notebook-ines-0", "GpuXidError"),
    ];
    assert_eq!(
        faults,
        want.map(|(name, code)| (name.to_owned(), code.to_owned()))
    );
}

#[test]
fn broken_lines_are_named_and_the_rest_is_classified() {
    let output = replay(&fixture("broken.jsonl"), &[]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let output_strict = replay(&fixture("broken.jsonl"), &["--strict"]);
    assert_eq!(output_strict.status.code(), Some(2));
    insta::assert_snapshot!("broken_stderr", in_any_place(&stderr(&output)));
    insta::assert_snapshot!("broken_table", stdout(&output));
}

#[test]
fn forged_events_are_refused_and_counted() {
    let output = replay(&fixture("forged.jsonl"), &[]);
    assert_eq!(output.status.code(), Some(0));
    assert!(!stdout(&output).contains("forged-"), "{}", stdout(&output));
    assert_eq!(
        replay(&fixture("forged.jsonl"), &["--strict"])
            .status
            .code(),
        Some(2)
    );
    insta::assert_snapshot!("forged_stderr", in_any_place(&stderr(&output)));
}

#[test]
fn hostile_notes_are_shown_and_never_obeyed() {
    let output = replay(&fixture("hostile-text.jsonl"), &[]);
    for (name, text) in [("stdout", stdout(&output)), ("stderr", stderr(&output))] {
        let obeyed = text.chars().find(|it| it.is_control() && *it != '\n');
        assert_eq!(obeyed, None, "{name}");
        assert!(
            !text.contains(['\u{202e}', '\u{200b}', '\u{2066}']),
            "{name}"
        );
    }
    // For programs they are what they were.
    let found = elements(&fixture("hostile-text.jsonl"));
    let texts = additional_reasons(&found);
    assert!(
        texts
            .iter()
            .any(|it| it["text"].as_str().unwrap().contains('\u{1b}'))
    );
}

#[test]
fn an_empty_input_holds_no_events() {
    for content in [
        "",
        "\n \n",
        r#"{"kind":"List","apiVersion":"v1","items":[]}"#,
        r#"{"kind":"EventList","items":null}"#,
    ] {
        let folder = support::directory([("in", content.as_bytes().to_vec())]);
        let output = replay(&folder.path().join("in"), &["-o", "json"]);
        assert_eq!(
            output.status.code(),
            Some(0),
            "{content:?}: {}",
            stderr(&output)
        );
        assert!(stderr(&output).contains("no events"), "{content:?}");
        assert_eq!(stdout(&output), "[]\n", "{content:?}");
    }
}

#[test]
fn an_input_without_a_readable_event_is_an_error() {
    for content in [
        "hello",
        "{",
        r#"{"kind":"PodList","items":[{"kind":"Pod","metadata":{"name":"x"}}]}"#,
        "[1,2]",
        "\0\u{1}",
    ] {
        let folder = support::directory([("in", content.as_bytes().to_vec())]);
        let output = replay(&folder.path().join("in"), &[]);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{content:?}: {}",
            stderr(&output)
        );
        assert!(
            stderr(&output).contains("holds no Event that can be read"),
            "{}",
            stderr(&output)
        );
        assert_eq!(stdout(&output), "", "{content:?}");
    }
}

#[test]
fn a_missing_file_or_folder_is_named() {
    let output = replay(Path::new("no-such-file.json"), &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("cannot read no-such-file.json"),
        "{}",
        stderr(&output)
    );
    let output = support::portent(["replay", "--plugins", "no-such-folder", "x"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("cannot read the plugin folder no-such-folder"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn settings_beside_a_plugin_reach_it_and_are_part_of_what_is_said() {
    let wasm = std::fs::read(plugins().join("gpu-fault.wasm")).unwrap();
    let folder = support::directory([
        ("gpu-fault.wasm", wasm),
        ("gpu-fault.yaml", b"xid: 79\n".to_vec()),
    ]);
    let args = [
        "replay".as_ref(),
        "--plugins".as_ref(),
        folder.path().as_os_str(),
    ];
    let file = fixture("list-core.json");
    let output = support::portent(args.into_iter().chain([file.as_os_str()]));
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("settings-invalid"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn every_fault_of_settings_is_told_with_its_place_and_what_to_write() {
    let wasm = std::fs::read(plugins().join("gpu-fault.wasm")).unwrap();
    let settings = "\
xid:
  63: {severity: wran, action: rma}
  79: drain
  x: {}
sxid:
- 1
acelerators: [a]
user-xid: on
";
    let folder = support::directory([
        ("gpu-fault.wasm", wasm),
        ("gpu-fault.yaml", settings.as_bytes().to_vec()),
    ]);
    let file = folder.path().join("gpu-fault.wasm");
    let args = ["plugin".as_ref(), "check".as_ref(), file.as_os_str()];
    let output = support::portent(args);
    assert_eq!(output.status.code(), Some(1));
    let said = stdout(&output);
    let what = said.lines().find_map(|it| it.strip_prefix("  what       "));
    let what: Vec<_> = what.unwrap().split("; gpu-fault.yaml:").collect();
    assert_eq!(
        what,
        [
            "gpu-fault.yaml:2:8: xid.63.severity: cannot be `\"wran\"`: write one of user, info, warn, \
             critical; did you mean `warn`?",
            "3:3: xid.79: cannot be `\"drain\"`: write a mapping",
            "4:3: xid.x: no key can be `x`: write what matches `^[0-9]+$`",
            "5:1: sxid: cannot be a list: write a mapping",
            "7:1: acelerators: there is no such key; did you mean `accelerators`?",
            "8:1: user-xid: cannot be `\"on\"`: write one of workload, failure",
        ]
    );
    // What no schema says is told by the plugin, with the file's name.
    std::fs::write(
        folder.path().join("gpu-fault.yaml"),
        "xid: {99999999999: {}}",
    )
    .unwrap();
    let said = stdout(&support::portent(args));
    assert!(
        said.contains("  what       gpu-fault.yaml: xid.99999999999: `99999999999` is no number"),
        "{said}"
    );
    std::fs::write(folder.path().join("gpu-fault.yaml"), "").unwrap();
    let schema = support::portent([&args[..], &["--schema".as_ref()]].concat());
    let schema: serde_json::Value = serde_json::from_slice(&schema.stdout).unwrap();
    assert_eq!(schema["properties"]["user-xid"]["default"], "workload");
}

#[test]
fn help_teaches() {
    for args in [
        &["--help"][..],
        &["replay", "--help"],
        &["plugin", "--help"],
        &["plugin", "check", "--help"],
        &["plugin", "limits"],
    ] {
        let output = support::portent(args);
        assert_eq!(output.status.code(), Some(0));
        insta::assert_snapshot!(args.join("_").replace("--", ""), stdout(&output));
    }
}

#[test]
fn the_table_of_a_small_list_is_pleasant_to_read() {
    insta::assert_snapshot!(
        "list_core_table",
        stdout(&replay(&fixture("list-core.json"), &[]))
    );
    insta::assert_snapshot!(
        "frames_changes",
        stdout(&replay(&fixture("frames.jsonl"), &["--changes"]))
    );
}

/// A message without the place where this checkout is.
fn in_any_place(text: &str) -> String {
    let folder = fixture("");
    text.replace(folder.to_str().unwrap(), "fixtures/")
}
