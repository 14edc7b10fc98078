//! `cargo xtask test`: everything that a change has to pass, in the order of what fails soonest.
//!
//! Everything of the host is compiled once: what is built for the tests has the
//! features of their dependencies too, so the binary that makes components of
//! the plugins is the one that was built along with the tests.

use std::env;
use std::fs;
use std::io;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};

use crate::plugins;
use crate::process::{cargo, plugins_dir, portent, root, run as run_child, target_dir};
use crate::testbed::{self, Testbed};

/// The first step that fails ends it.
pub(crate) fn run() -> Result<()> {
    step("format", || {
        run_child(cargo().args(["fmt", "--all", "--check"]))
    })?;
    step("lints", || {
        let mut clippy = cargo();
        clippy.args([
            "clippy",
            "--workspace",
            "--all-targets",
            "--",
            "-D",
            "warnings",
        ]);
        run_child(&mut clippy)
    })?;
    let testbed = step("build", build)?;
    let skipped = skipped()?;
    step("tests", || run_child(&mut tests(&testbed, &skipped)))?;
    step("documentation", || {
        let mut doc = cargo();
        doc.args(["doc", "--workspace", "--no-deps"]);
        run_child(doc.env("RUSTDOCFLAGS", "-Dwarnings"))
    })?;
    tell_skipped(&testbed, &skipped)
}

fn step<T>(name: &'static str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    eprintln!("xtask: {name}");
    let start = Instant::now();
    let made =
        work().with_context(|| format!("step `{name}` failed after {:.1?}", start.elapsed()))?;
    eprintln!("xtask: {name} passed in {:.1?}", start.elapsed());
    Ok(made)
}

/// The tests, the plugins that they load, and the control plane that they talk to, all at once: each has
/// stretches that keep one processor busy.
fn build() -> Result<Testbed> {
    let (built, testbed) = thread::scope(|scope| {
        let testbed = scope.spawn(testbed::find);
        let host = || {
            run_child(cargo().args(["test", "--workspace", "--no-run"]))?;
            Ok(portent())
        };
        let built = plugins::run(host, None, None);
        let testbed = testbed.join().unwrap_or_else(|panic| resume_unwind(panic));
        (built, testbed)
    });
    built?;
    let testbed = testbed?;
    if let Testbed::Missing(reason) = &testbed
        && env::var_os("CI").is_some_and(|it| it == "true")
    {
        bail!("{reason} (where CI is `true`, no test is skipped)");
    }
    Ok(testbed)
}

/// Where tests that need what is not there leave their names, none yet.
fn skipped() -> Result<PathBuf> {
    let file = target_dir().join("skipped-tests");
    match fs::remove_file(&file) {
        Err(err) if err.kind() != io::ErrorKind::NotFound => {
            Err(err).with_context(|| format!("cannot remove {}", file.display()))
        }
        _ => Ok(file),
    }
}

/// The end of the output is what is read. What was not tested has to be there.
fn tell_skipped(testbed: &Testbed, skipped: &Path) -> Result<()> {
    let Testbed::Missing(reason) = testbed else {
        return Ok(());
    };
    let names = fs::read_to_string(skipped)
        .with_context(|| format!("cannot read {}", skipped.display()))?;
    let mut names: Vec<_> = names.lines().collect();
    names.sort_unstable();
    eprintln!("xtask: skipped, for want of a control plane:");
    for it in names {
        eprintln!("xtask:   {it}");
    }
    eprintln!("xtask: {reason}");
    Ok(())
}

/// The corpora are no part of the checkout: they lie beside it, if anywhere.
pub(crate) fn corpus() -> Option<PathBuf> {
    let beside = root().parent()?.join("shared/corpus");
    beside.is_dir().then_some(beside)
}

fn tests(testbed: &Testbed, skipped: &Path) -> Command {
    let mut tests = cargo();
    tests
        // All of them, whatever fails: a run of half an hour is to tell all it can.
        .args(["test", "--workspace", "--no-fail-fast"])
        .env("PORTENT_TEST_PLUGINS", plugins_dir())
        .env("PORTENT_SKIPPED_TESTS", skipped);
    match testbed {
        Testbed::In(folder) => tests.env("PORTENT_TESTBED", folder),
        Testbed::Missing(_) => tests.env_remove("PORTENT_TESTBED"),
    };
    match corpus() {
        Some(corpus) => {
            tests.env("PORTENT_CORPUS", corpus);
        }
        None => {
            eprintln!("xtask: no ../shared/corpus: the tests that need the corpora are skipped");
        }
    }
    tests
}
