//! Plugins assembled from text, Events to feed them, and the binary that has to bear them.
//!
//! No test needs a toolchain for WebAssembly: the guests are text, a core module each, and what makes
//! components of them is what makes them of everybody's.

#![allow(dead_code, reason = "each test binary uses a part of it")]

pub(crate) mod apiserver;
pub(crate) mod bomb;
pub(crate) mod failed;
pub(crate) mod reloads;
pub(crate) mod running;
pub(crate) mod testbed;

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;
use wit_component::{ComponentEncoder, StringEncoding};
use wit_parser::Resolve;

/// Starts a thread that ends with what it does, or with the test.
pub(crate) fn spawn<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> thread::JoinHandle<T> {
    let thread = thread::Builder::new().name("beside-a-test".to_owned());
    thread.spawn(work).expect("there is room for a thread")
}

const WIT: &str = include_str!("../../../wit/classifier.wit");
const PRELUDE: &str = include_str!("../guests/prelude.wat");

/// What is exported, from which function of the guest if it has it, and from which of the prelude else.
const EXPORTS: [(&str, &str, &str); 4] = [
    ("cabi_realloc", "$guest_realloc", "$realloc"),
    (
        "portent:classifier/descriptor@0.1.0#describe",
        "$describe",
        "$static_description",
    ),
    (
        "portent:classifier/descriptor@0.1.0#check-settings",
        "$check_settings",
        "$accept_settings",
    ),
    (
        "portent:classifier/classifier@0.1.0#classify",
        "$classify",
        "$well_behaved_unless_poisoned",
    ),
];
const POST_RETURN: &str = "cabi_post_portent:classifier/classifier@0.1.0#classify";

/// The component of `tests/guests/GUEST.wat`, whose name is GUEST.
///
/// A line `;; wit: OLD => NEW` in it changes the contract that the guest is built against, a line
/// `;; prelude: OLD => NEW` what it begins with.
pub(crate) fn component(guest: &str) -> Vec<u8> {
    let path = guests().join(format!("{guest}.wat"));
    let own =
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    component_of(guest, &own)
}

/// The component of a guest whose own part this is.
pub(crate) fn component_of(guest: &str, own: &str) -> Vec<u8> {
    let wit = edited(WIT, own, ";; wit: ");
    let text = module(guest, own, &wit);
    encode(&text, &wit).unwrap_or_else(|error| panic!("{guest}: {error:?}"))
}

/// A guest that finds something on each pod whose name begins with `poison`, and says who it is.
pub(crate) fn stamped(name: &str, stamp: u32) -> Vec<u8> {
    assert!(stamp < 100);
    let own = format!(
        ";; Says its stamp.\n(data (i32.const 0x1b0) \"{stamp:02}\")\n{}",
        "(func $misbehave (param $subjects i32) (param $n i32) (result i32)
             (local $answer i32) (local $at i32) (local $outcome i32) (local $end i32)
             (local.set $answer (call $well_behaved (local.get $subjects) (local.get $n)))
             (local.set $outcome (i32.load offset=4 (local.get $answer)))
             (local.set $end (i32.add (local.get $outcome) (i32.mul (local.get $n) (i32.const 72))))
             (block $done
                 (loop $next
                     (br_if $done (i32.eq (local.get $outcome) (local.get $end)))
                     (i32.store (local.get $outcome) (global.get $finding))
                     (i32.store offset=4 (local.get $outcome) (i32.const 1))
                     (local.set $outcome (i32.add (local.get $outcome) (i32.const 72)))
                     (br $next)))
             (local.get $answer))\n"
    );
    component_of(name, &own)
}

/// The names of all guests.
pub(crate) fn every_guest() -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(guests())
        .expect("the guests are beside the tests")
        .map(|entry| entry.expect("a directory can be read to its end").path())
        .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
        .filter(|name| name != "prelude")
        .collect();
    names.sort();
    names
}

fn guests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/guests")
}

/// The text of the core module.
fn module(guest: &str, own: &str, wit: &str) -> String {
    let prelude = edited(PRELUDE, own, ";; prelude: ")
        .replace("@NAME@", guest)
        .replace("@NAME_LENGTH@", &guest.len().to_string());
    let mut text = format!("(module ${guest}\n{prelude}\n{own}\n");
    if !defines(own, "$misbehave") {
        text += "(func $misbehave (param i32 i32) (result i32) unreachable)\n";
    }
    for (export, of_guest, of_prelude) in EXPORTS {
        let function = if defines(own, of_guest) {
            of_guest
        } else {
            of_prelude
        };
        text.extend(["(export \"", export, "\" (func ", function, "))\n"]);
    }
    if defines(own, "$post_return") {
        text.extend(["(export \"", POST_RETURN, "\" (func $post_return))\n"]);
    }
    text += ")";
    // The names of imports and exports carry the version of the contract that the guest is built against.
    let version = wit
        .split_once("package portent:classifier@")
        .and_then(|(_, rest)| rest.split_once(';'))
        .expect("the package has a version")
        .0;
    text.replace("@0.1.0", &format!("@{version}"))
}

fn encode(text: &str, wit: &str) -> Result<Vec<u8>, Box<dyn std::error::Error>> {
    let mut module = wat::parse_str(text)?;
    let mut resolve = Resolve::default();
    let package = resolve.push_source("classifier.wit", wit)?;
    let world = resolve.select_world(&[package], Some("plugin"))?;
    wit_component::embed_component_metadata(
        &mut module,
        &resolve,
        world,
        StringEncoding::UTF8,
        false,
    )?;
    Ok(ComponentEncoder::default().module(&module)?.encode()?)
}

fn defines(text: &str, function: &str) -> bool {
    text.contains(&format!("(func {function} "))
}

/// `text` with what the lines of `own` that begin with `marker` replace.
fn edited(text: &str, own: &str, marker: &str) -> String {
    let mut text = text.to_owned();
    for edit in own.lines().filter_map(|line| line.strip_prefix(marker)) {
        let (old, new) = edit.split_once(" =>").expect("an edit is `OLD => NEW`");
        assert_eq!(
            text.matches(old).count(),
            1,
            "`{old}` is not once in what it edits"
        );
        text = text.replace(old, new);
    }
    text
}

/// A directory with these files.
pub(crate) fn directory<N: AsRef<Path>>(files: impl IntoIterator<Item = (N, Vec<u8>)>) -> TempDir {
    let directory = tempfile::tempdir().expect("there is room for temporary files");
    for (name, content) in files {
        let path = directory.path().join(name);
        fs::write(&path, content).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
    directory
}

/// Events about these pods of the namespace `team-a`, a JSON object a line, each pod's a second apart
/// and all pods' interleaved, as a watch would bring them.
pub(crate) fn events<S: AsRef<str>>(pods: &[S], of_each: u32) -> String {
    let mut lines = String::new();
    for number in 0..of_each {
        for (index, pod) in pods.iter().enumerate() {
            lines += &event(pod.as_ref(), index, number).to_string();
            lines.push('\n');
        }
    }
    lines
}

fn event(pod: &str, index: usize, number: u32) -> Value {
    let at = format!("2026-09-01T01:01:{number:02}Z");
    json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "name": format!("{pod}.{number:016x}"),
            "namespace": "team-a",
            "uid": event_uid(index, number),
            "resourceVersion": (1000 + number).to_string(),
            "creationTimestamp": at,
        },
        "involvedObject": {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": "team-a",
            "name": pod,
            "uid": format!("00000000-0000-4000-8000-{index:012}"),
        },
        "type": "Warning",
        "reason": format!("Reason{number}"),
        "message": format!("note {number} about {pod}"),
        "source": { "component": "kubelet", "host": "node-1" },
        "reportingComponent": "kubelet",
        "reportingInstance": "node-1",
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
    })
}

/// The uid of the Event `number` about the pod `index` of [`events`].
pub(crate) fn event_uid(index: usize, number: u32) -> String {
    format!(
        "e0000000-0000-4000-8000-{:012}",
        index * 1000 + number as usize
    )
}

/// Runs the binary with nothing of this environment in its own. One that does not end in a minute is
/// killed and fails the test, for not to hang is what many of them are about.
#[track_caller]
pub(crate) fn portent<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Output {
    // Files rather than pipes: nobody has to read while the binary runs.
    let mut stdout = tempfile::tempfile().expect("there is room for temporary files");
    let mut stderr = tempfile::tempfile().expect("there is room for temporary files");
    let mut command = Command::new(env!("CARGO_BIN_EXE_portent"));
    command
        .args(args)
        .env_clear()
        .stdin(Stdio::null())
        .stdout(stdout.try_clone().expect("a file can be open twice"))
        .stderr(stderr.try_clone().expect("a file can be open twice"));
    let mut child = command.spawn().expect("the binary starts");
    let deadline = Instant::now() + Duration::from_mins(1);
    let status = loop {
        if let Some(status) = child.try_wait().expect("a child can be waited for") {
            break status;
        }
        if Instant::now() > deadline {
            child.kill().expect("a child can be killed");
            child.wait().expect("a child can be waited for");
            panic!(
                "{command:?} does not end; it wrote:\n{}",
                String::from_utf8_lossy(&content(&mut stderr))
            );
        }
        thread::sleep(Duration::from_millis(5));
    };
    Output {
        status,
        stdout: content(&mut stdout),
        stderr: content(&mut stderr),
    }
}

fn content(file: &mut File) -> Vec<u8> {
    let mut content = Vec::new();
    file.rewind()
        .and_then(|()| file.read_to_end(&mut content))
        .expect("a temporary file can be read");
    content
}
