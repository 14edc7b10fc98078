//! Events to feed plugins, and the binary that has to bear them. The plugins come from the hostile kit, so that no
//! test needs a toolchain for WebAssembly.

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
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use portent_hostile::component_of;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Starts a thread that ends with what it does, or with the test.
pub(crate) fn spawn<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> thread::JoinHandle<T> {
    let thread = thread::Builder::new().name("beside-a-test".to_owned());
    thread.spawn(work).expect("there is room for a thread")
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
