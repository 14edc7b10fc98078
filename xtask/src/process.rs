//! Child processes: all from the root of the workspace, and none fails without saying what was run.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

/// The root of the workspace: where this package's folder lies.
pub(crate) fn root() -> &'static Path {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package)
}

/// Where a plugin's component goes unless told otherwise.
pub(crate) fn plugins_dir() -> PathBuf {
    root().join("target/plugins")
}

/// Where cargo puts what it builds: what is not absolute is below the root, since cargo runs there.
pub(crate) fn target_dir() -> PathBuf {
    let name = env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    root().join(name)
}

/// The binary of the host, once cargo has built it.
pub(crate) fn portent() -> PathBuf {
    portent_in("debug")
}

/// The same as the benches have it, or as it is released: whichever was built last.
pub(crate) fn optimised_portent() -> PathBuf {
    portent_in("release")
}

fn portent_in(profile: &str) -> PathBuf {
    let portent = target_dir().join(profile).join("portent");
    portent.with_extension(env::consts::EXE_EXTENSION)
}

/// A program, from the root of the workspace.
pub(crate) fn program(name: impl Into<OsString>) -> Command {
    let mut command = Command::new(name.into());
    command.current_dir(root());
    command
}

/// The cargo that runs this.
pub(crate) fn cargo() -> Command {
    program(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Runs it to its end, output and all.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command
        .status()
        .with_context(|| format!("cannot run {command:?}"))?;
    ensure!(status.success(), "{status} of {command:?}");
    Ok(())
}

/// Runs it for what it prints.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot run {command:?}"))?;
    ensure!(output.status.success(), "{} of {command:?}", output.status);
    let text = String::from_utf8(output.stdout)
        .with_context(|| format!("{command:?} does not print text"))?;
    Ok(text.trim_end().to_owned())
}
