//! `cargo xtask hostile`: the guests that misbehave, as files.
//!
//! A child process makes them: what makes components takes a while to build, and no other command needs it.

use std::path::{Path, absolute};

use anyhow::{Context as _, Result};

use crate::process::{cargo, run as run_child};

/// Children run from the root of the workspace, the user perhaps elsewhere.
pub(crate) fn run(out: &Path) -> Result<()> {
    let out = absolute(out).context("cannot find the folder")?;
    let mut kit = cargo();
    kit.args(["run", "--quiet", "-p", "portent-hostile", "--"]);
    run_child(kit.arg(&out))?;
    eprintln!("xtask: wrote {}", out.display());
    Ok(())
}
