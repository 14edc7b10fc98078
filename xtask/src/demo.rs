//! `cargo xtask demo`: from a fresh checkout to classified events, with no cluster.

use std::process::ExitCode;

use anyhow::{Context as _, Result};

use crate::plugins;
use crate::process::{cargo, portent, program, run as run_child};

const BEFORE: &str = "\
xtask: the demo replays a recording of Kubernetes Events through two plugins. The first time, it
xtask: builds portent and both plugins before: some minutes.";

const AFTER: &str = "
What to try next:
  cargo run -q -- replay --plugins target/plugins demo/recording.json -o json
      the same for programs
  cargo run -q -- plugin check target/plugins/gpu-fault.wasm
      what the host knows of a plugin before it runs it
  kubectl get events -A -o json | cargo run -q -- replay --plugins target/plugins -
      your own cluster's last hour; only read, and only by kubectl
  docs/writing-a-plugin.md
      a classifier of your own, in one function";

/// Ends as portent does.
pub(crate) fn run() -> Result<ExitCode> {
    eprintln!("{BEFORE}");
    let host = || {
        run_child(cargo().args(["build", "-p", "portent"]))?;
        Ok(portent())
    };
    plugins::run(host, None, None)?;

    let mut replay = program(portent());
    replay.args([
        "replay",
        "--plugins",
        "target/plugins",
        "demo/recording.json",
    ]);
    eprintln!("xtask: portent replay --plugins target/plugins demo/recording.json\n");
    let status = replay
        .status()
        .with_context(|| format!("cannot run {replay:?}"))?;
    eprintln!("{AFTER}");
    // Without a code it was ended by a signal.
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}
