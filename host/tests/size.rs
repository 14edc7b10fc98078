//! Recordings that are larger than what may be held: nothing is lost, and what
//! has to leave early comes in parts.

#![allow(clippy::unwrap_used, reason = "a test says what went wrong by failing")]

mod support;

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use portent_hostile::component;
use serde_json::Value;
use support::{directory, events, portent};
use tempfile::TempDir;

/// A plugin that gives each subject one additional reason.
fn plugins() -> TempDir {
    directory([("behaves-well.wasm", component("behaves-well"))])
}

fn built_plugins() -> PathBuf {
    std::env::var_os("PORTENT_TEST_PLUGINS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/plugins"),
        PathBuf::from,
    )
}

#[track_caller]
fn replay(plugins: &Path, input: &str, more: &[&str]) -> Output {
    let folder = directory([("events.jsonl", input.as_bytes().to_vec())]);
    let file = folder.path().join("events.jsonl");
    let args = [
        "replay".as_ref(),
        "--plugins".as_ref(),
        plugins.as_os_str(),
        file.as_os_str(),
    ];
    portent(args.into_iter().chain(more.iter().map(AsRef::as_ref)))
}

fn elements(output: &Output) -> Vec<Value> {
    assert_eq!(output.status.code(), Some(0), "{}", stderr(output));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn pods(n: usize) -> Vec<String> {
    (0..n).map(|it| format!("pod-{it:03}")).collect()
}

#[test]
fn a_store_that_is_too_small_changes_nothing_but_parts() {
    let plugins = built_plugins();
    // Each pod's events are apart, so that it leaves and comes again.
    let input = events(&pods(100), 4);
    let all = elements(&replay(&plugins, &input, &["-o", "json"]));
    let output = replay(&plugins, &input, &["-o", "json", "--store-bytes", "50000"]);
    let parts = elements(&output);
    assert!(
        stderr(&output).contains("to stay within --store-bytes"),
        "{}",
        stderr(&output)
    );

    let reasons = |elements: &[Value]| -> Vec<Value> {
        let of_each = elements
            .iter()
            .map(|it| it["outcome"]["additionalReasons"].as_array().unwrap());
        of_each.flatten().cloned().collect()
    };
    assert!(all.len() < parts.len());
    assert_eq!(
        reasons(&all),
        reasons(&parts),
        "the same, in the same order"
    );
    assert!(
        all.iter().all(|it| it.get("part").is_none()),
        "what is whole has no parts"
    );
    let numbers: Vec<_> = parts
        .iter()
        .filter(|it| it["object"]["name"] == "pod-000")
        .map(|it| it["part"].as_u64().unwrap())
        .collect();
    let want: Vec<_> = (1..=u64::try_from(numbers.len()).unwrap()).collect();
    assert_eq!(numbers, want);
}

#[test]
fn an_object_that_never_stops_comes_in_parts_of_64_and_displaces_nobody() {
    let mut input = events(&["quiet-0"], 1);
    input += &events(&["noisy-0"], 60);
    // The minutes of `events` are seconds: 60 a call, told apart by a name.
    input += &events(&["noisy-0"], 60).replace("noisy-0.", "noisy-0.again-");
    let output = replay(&built_plugins(), &input, &["-o", "json"]);
    let sizes: Vec<_> = elements(&output)
        .iter()
        .filter(|it| it["object"]["name"] == "noisy-0")
        .map(|it| it["outcome"]["additionalReasons"].as_array().unwrap().len())
        .collect();
    assert_eq!(sizes, [64, 56]);
    let elements = elements(&output);
    let quiet = elements
        .iter()
        .find(|it| it["object"]["name"] == "quiet-0")
        .unwrap();
    assert!(quiet.get("part").is_none());
    assert!(
        stderr(&output).contains("more Events than are held of one"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn parts_are_the_same_whatever_the_number_of_workers() {
    let plugins = plugins();
    let input = events(&pods(200), 3);
    let of = |workers| {
        let more = [
            "-o",
            "jsonl",
            "--store-bytes",
            "60000",
            "--workers",
            workers,
        ];
        replay(plugins.path(), &input, &more).stdout
    };
    let one = of("1");
    assert!(one == of("2") && one == of("8"));
}

#[test]
fn what_the_temporary_files_may_not_hold_is_dropped_and_said() {
    let plugins = plugins();
    let input = events(&pods(10), 1);
    // Nothing is spilled until there is more than fits in memory, so this is
    // within any bound.
    let output = replay(plugins.path(), &input, &["-o", "json", "--tmp-bytes", "0"]);
    assert_eq!(elements(&output).len(), 10);
    assert!(!stderr(&output).contains("dropped"));
}

#[test]
fn a_table_says_what_it_does_not_show() {
    let plugins = built_plugins();
    let output = replay(&plugins, &events(&pods(100), 11), &[]);
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(
        stdout.contains("Not shown: 100 more lines of history; -o json has them all."),
        "{stdout}"
    );
    // Its rows, two headers' worth of other lines, and the note.
    assert_eq!(
        stdout.lines().filter(|it| it.contains("note ")).count(),
        1_000
    );
}

#[test]
fn scope_narrows_what_is_considered() {
    let plugins = plugins();
    let input = events(&pods(3), 2);
    let output = replay(
        plugins.path(),
        &input,
        &["-o", "json", "--object", "team-a/pod-001"],
    );
    assert_eq!(elements(&output).len(), 1);
    assert!(
        stderr(&output).contains("6 Events: 2 stored"),
        "{}",
        stderr(&output)
    );
    assert!(
        stderr(&output).contains("not asked for: 4"),
        "{}",
        stderr(&output)
    );
    let output = replay(
        plugins.path(),
        &input,
        &["-o", "json", "--namespace", "team-b"],
    );
    assert!(elements(&output).is_empty());
    let output = replay(plugins.path(), &input, &["--object", "pod-001"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("write NAMESPACE/NAME"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn only_a_part_is_printed_if_only_that_is_wanted() {
    let flyte = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/flyte.json");
    let of = |more: &[&str]| {
        let plugins = built_plugins();
        let args = [
            "replay".as_ref(),
            "--plugins".as_ref(),
            plugins.as_os_str(),
            flyte.as_os_str(),
        ];
        let output = portent(args.into_iter().chain(more.iter().map(AsRef::as_ref)));
        String::from_utf8(output.stdout).unwrap()
    };
    let findings = of(&["--only", "findings", "-o", "jsonl"]);
    assert!(!findings.contains("additional-reasons") && findings.contains("GpuFallenOffBus"));
    let reasons = of(&["--only", "reasons", "-o", "jsonl"]);
    assert!(reasons.contains("additional-reasons") && !reasons.contains("\"category\""));
    assert!(!of(&["--only", "findings"]).contains("REASON"));
    assert!(!of(&["--only", "findings", "--changes"]).contains("team-a/Pod/x  [gpu"));
}

#[test]
fn quiet_is_quiet_and_nothing_moves_where_there_is_no_terminal() {
    let plugins = plugins();
    let input = events(&pods(3), 2);
    let output = replay(plugins.path(), &input, &["-o", "json", "--quiet"]);
    assert_eq!(stderr(&output), "");
    let output = replay(plugins.path(), &input, &["-o", "json"]);
    assert!(
        !stderr(&output).contains(['\r', '\u{1b}']),
        "{}",
        stderr(&output)
    );
}

#[cfg(target_os = "linux")]
#[test]
fn ctrl_c_prints_what_there_is_so_far() {
    let plugins = plugins();
    let mut child = Command::new(env!("CARGO_BIN_EXE_portent"))
        .args(["replay", "-o", "jsonl", "--plugins"])
        .arg(plugins.path())
        .arg("-")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = events(&pods(3), 2);
    stdin.write_all(input.as_bytes()).unwrap();
    stdin.flush().unwrap();
    // The pipe stays open: without the signal it would wait for ever.
    while !has_read_and_waits(child.id(), input.len()) {
        std::thread::yield_now();
    }
    let signalled = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(signalled.unwrap().success());
    let output = child.wait_with_output().unwrap();
    drop(stdin);
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("interrupted"),
        "{}",
        stderr(&output)
    );
    let lines = String::from_utf8(output.stdout).unwrap();
    assert_eq!(lines.lines().count(), 3, "{lines}");
}

/// Whether the process's reading thread has read so many bytes and waits for more.
#[cfg(target_os = "linux")]
fn has_read_and_waits(process: u32, n_bytes: usize) -> bool {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
    tasks.map(|it| it.unwrap().path()).any(|task| {
        let read = |name: &str| std::fs::read_to_string(task.join(name)).unwrap_or_default();
        let n_read = read("io")
            .lines()
            .find_map(|it| it.strip_prefix("rchar: ")?.parse().ok());
        read("comm").trim() == "read"
            && n_bytes <= n_read.unwrap_or(0)
            && read("stat")
                .rsplit_once(") ")
                .is_some_and(|(_, rest)| rest.starts_with('S'))
    })
}

#[test]
fn a_folder_is_read_whole_and_what_else_is_in_it_is_counted() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let plugins = built_plugins();
    let of = |paths: &[&Path]| {
        let args = ["replay", "-o", "json", "--plugins"].map(AsRef::as_ref);
        let args = args.into_iter().chain([plugins.as_os_str()]);
        portent(args.chain(paths.iter().map(|it| it.as_os_str())))
    };
    let read = |name: &str| std::fs::read(fixtures.join(name)).unwrap();
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(&read("list-events-v1.json")).unwrap();
    let folder = directory([
        ("a.yaml", read("list-core.yaml")),
        ("b.yaml", read("pods.yaml")),
        ("c.json.gz", packed.finish().unwrap()),
        ("notes.txt", b"not looked at".to_vec()),
    ]);
    let output = of(&[folder.path()]);
    assert_eq!(
        elements(&output),
        elements(&of(&[&fixtures.join("list-core.json")]))
    );
    let said = stderr(&output);
    assert!(said.contains("12 Events: 6 stored, 6 seen again"), "{said}");
    assert!(said.contains("objects of other kinds: "), "{said}");
    // Who names a file says that it holds Events.
    let named = of(&[&folder.path().join("b.yaml")]);
    assert_eq!(named.status.code(), Some(2), "{}", stderr(&named));
}

#[test]
fn what_is_cut_off_counts_up_to_the_cut() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let whole = std::fs::read_to_string(fixtures.join("list-core.json")).unwrap();
    let cut = &whole.as_bytes()[..whole.len() / 2];
    let output = replay(
        plugins().path(),
        std::str::from_utf8(cut).unwrap(),
        &["-o", "json"],
    );
    assert!(!elements(&output).is_empty());
    assert!(stderr(&output).contains("cut off"), "{}", stderr(&output));
}

#[test]
fn one_file_that_cannot_be_read_is_named_and_the_others_are_classified() {
    let plugins = plugins();
    // A gzip file that ends within its header.
    let folder = directory([
        ("a.json.gz", b"\x1f\x8b\x08".to_vec()),
        ("b.jsonl", events(&pods(2), 1).into_bytes()),
    ]);
    let args = ["replay", "-o", "json", "--plugins"].map(AsRef::as_ref);
    let files = ["a.json.gz", "b.jsonl"].map(|it| folder.path().join(it));
    let args = args.into_iter().chain([plugins.path().as_os_str()]);
    let output = portent(args.chain(files.iter().map(|it| it.as_os_str())));
    assert_eq!(elements(&output).len(), 2);
    assert!(
        stderr(&output).contains("a.json.gz: "),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_folder_for_temporary_files_that_is_not_there_is_named_before_anything_is_read() {
    let output = replay(
        plugins().path(),
        "x",
        &["-o", "json", "--tmp", "no-such-folder"],
    );
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(
        said.contains("--tmp no-such-folder: there is no such folder"),
        "{said}"
    );
}

#[test]
fn what_is_no_core_module_is_not_made_a_component() {
    for (module, want) in [
        (b"{\"kind\"".to_vec(), "it is not WebAssembly"),
        (component("behaves-well"), "it is a component already"),
    ] {
        let folder = directory([("module.wasm", module)]);
        let file = folder.path().join("module.wasm");
        let out = folder.path().join("out.wasm");
        let args = ["plugin", "componentize", "-o"].map(AsRef::as_ref);
        let output = portent(args.into_iter().chain([out.as_os_str(), file.as_os_str()]));
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(want), "{}", stderr(&output));
        assert_eq!(stderr(&output).lines().count(), 1);
        assert!(!out.exists());
    }
}
