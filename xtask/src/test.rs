//! `cargo xtask test`: everything that a change has to pass, in the order of what fails soonest.
//!
//! Everything of the host is compiled once: what is built for the tests has the
//! features of their dependencies too, so the binary that makes components of
//! the plugins is the one that was built along with the tests.

use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, Result};

use crate::plugins;
use crate::process::{cargo, plugins_dir, portent, root, run as run_child};

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
    step("build", || {
        let host = || {
            run_child(cargo().args(["test", "--workspace", "--no-run"]))?;
            Ok(portent())
        };
        plugins::run(host, None, None)
    })?;
    step("tests", || run_child(&mut tests()))?;
    step("documentation", || {
        let mut doc = cargo();
        doc.args(["doc", "--workspace", "--no-deps"]);
        run_child(doc.env("RUSTDOCFLAGS", "-Dwarnings"))
    })
}

fn step(name: &'static str, work: impl FnOnce() -> Result<()>) -> Result<()> {
    eprintln!("xtask: {name}");
    let start = Instant::now();
    work().with_context(|| format!("step `{name}` failed after {:.1?}", start.elapsed()))?;
    eprintln!("xtask: {name} passed in {:.1?}", start.elapsed());
    Ok(())
}

fn tests() -> Command {
    let mut tests = cargo();
    tests
        .args(["test", "--workspace"])
        .env("PORTENT_TEST_PLUGINS", plugins_dir());
    // The corpora are no part of the checkout: they lie beside it, if anywhere.
    match root()
        .parent()
        .map(|beside| beside.join("shared/corpus"))
        .filter(|it| it.is_dir())
    {
        Some(corpus) => {
            tests.env("PORTENT_CORPUS", corpus);
        }
        None => {
            eprintln!("xtask: no ../shared/corpus: the tests that need the corpora are skipped");
        }
    }
    tests
}
