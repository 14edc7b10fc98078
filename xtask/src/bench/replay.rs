//! `cargo xtask bench replay`: a recording that is larger than what may be held, by the program as the
//! benches have it: what is released, but for the optimisation over all crates.
//!
//! The recording is a file of about 1 GiB in the folder for temporary files, and is gone afterwards. What
//! portent spills meanwhile has no name to begin with.

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{self, Stdio};

use anyhow::{Context as _, Result, ensure};

use super::build;
use crate::process::{optimised_portent, plugins_dir, program, run as run_child};

/// Events of the recording, 350 bytes each.
const N_EVENTS: u32 = 3_000_000;

/// Bytes that may be resident at once, in KiB.
const RSS_BUDGET_KIB: u64 = 400 << 10;

pub(crate) fn run() -> Result<()> {
    let cost = build()?;
    let recording =
        Temporary(env::temp_dir().join(format!("portent-bench-{}.jsonl", process::id())));
    generate(&cost, &recording.0)?;
    let n_bytes = fs::metadata(&recording.0)?.len();
    println!("{N_EVENTS} Events, {} MiB of JSON lines", n_bytes >> 20);
    println!("output  wall s  CPU s  Events/CPU-s  peak RSS, MiB");
    let mut over = Vec::new();
    for form in ["table", "jsonl"] {
        let used = replay(&recording.0, form)?;
        let Used { wall, cpu, rss_kib } = used;
        println!(
            "{form:<6}  {wall:>6.1}  {cpu:>5.1}  {:>12.0}  {:>13}",
            f64::from(N_EVENTS) / cpu,
            rss_kib >> 10
        );
        if RSS_BUDGET_KIB <= rss_kib {
            over.push(form);
        }
    }
    ensure!(
        over.is_empty(),
        "over {} MiB: {}",
        RSS_BUDGET_KIB >> 10,
        over.join(", ")
    );
    Ok(())
}

/// A file that does not outlive this.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Err(err) = fs::remove_file(&self.0) {
            eprintln!("xtask: cannot remove {}: {err}", self.0.display());
        }
    }
}

fn generate(cost: &Path, to: &Path) -> Result<()> {
    let file = File::create(to).with_context(|| format!("cannot create {}", to.display()))?;
    let mut generate = program(cost);
    generate.arg("generate").arg(N_EVENTS.to_string());
    run_child(generate.stdout(file))
}

/// What a process used.
struct Used {
    /// Seconds.
    wall: f64,
    /// Seconds of all processors.
    cpu: f64,
    /// The most that was resident at once.
    rss_kib: u64,
}

/// Replays a recording through both plugins, with the limits as they are unless
/// told otherwise.
fn replay(recording: &Path, form: &str) -> Result<Used> {
    let mut time = program("/usr/bin/time");
    time.args(["-f", "used %e %U %S %M"])
        .arg(optimised_portent())
        .args(["replay", "--output", form, "--plugins"])
        .arg(plugins_dir())
        .arg(recording)
        .stdout(Stdio::null());
    let output = time
        .stderr(Stdio::piped())
        .output()
        .context("measuring needs GNU time: on Debian, `apt-get install time`")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "{} of {time:?}: {said}",
        output.status
    );
    used(&said).with_context(|| format!("{time:?} does not say what was used: {said}"))
}

/// Reads the last line of what was said.
fn used(said: &str) -> Option<Used> {
    let mut parts = said.lines().last()?.strip_prefix("used ")?.split(' ');
    let mut next = || parts.next()?.parse::<f64>().ok();
    let (wall, user, system) = (next()?, next()?, next()?);
    Some(Used {
        wall,
        cpu: user + system,
        rss_kib: parts.next()?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_stands_last() {
        let used = used("3 Events: 3 stored.\nused 1.50 2.25 0.25 1024\n").unwrap();
        assert!((used.wall - 1.5).abs() < 1e-9 && (used.cpu - 2.5).abs() < 1e-9);
        assert_eq!(used.rss_kib, 1_024);
        assert!(super::used("3 Events: 3 stored.\n").is_none());
    }
}
