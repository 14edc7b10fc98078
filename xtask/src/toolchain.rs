//! Where a compiler for the guests' target comes from.
//!
//! rustup has it, where rustup is and can be reached. Debian's compiler brings no standard library for
//! the target, but can build it from the sources that Debian ships. Other ways there may be; a plugin
//! author needs one that works.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use crate::process::{cargo, output, program, run};

/// No WASI: a plugin may import nothing but portent's own interfaces.
pub(crate) const TARGET: &str = "wasm32-unknown-unknown";

/// Debian's packages, suffixed because their compiler is newer than the release's own.
const PACKAGES: [&str; 3] = ["rustc-web", "cargo-web", "rust-web-src"];

const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
const DEBIAN_CARGO: &str = "/usr/bin/cargo";
const DEBIAN_SOURCES: &str = "/usr/lib/rustlib/src/rust/library/std";

/// The workspace's `rust-version`. Debian's unsuffixed packages have the same paths and are older.
const MINOR_VERSION: u32 = 95;

/// Long enough for 20 MB on a slow line; without a line at all rustup would try for longer.
const RUSTUP_DEADLINE: Duration = Duration::from_mins(1);

/// What cargo and rustup tell their children, and a compiler that is not theirs must not hear. Flags are
/// the host's: a guest is built alike wherever it is built.
const FOREIGN: [&str; 10] = [
    "CARGO",
    "CARGO_BUILD_TARGET",
    "CARGO_ENCODED_RUSTFLAGS",
    "LD_LIBRARY_PATH",
    "RUSTC",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTC_WRAPPER",
    "RUSTDOC",
    "RUSTFLAGS",
    "RUSTUP_TOOLCHAIN",
];

/// A compiler that has the target's standard library, or builds it.
pub(crate) enum Toolchain {
    /// The one that runs this.
    Active,
    /// Debian's, with the linker of the active one: Debian's has none for the target.
    Debian { linker: PathBuf },
}

impl Toolchain {
    /// Finds one, or gets one where that takes no decision of the user's.
    pub(crate) fn find() -> Result<Self> {
        if active_has_target()? {
            return Ok(Self::Active);
        }
        if !debian_is_installed() {
            if add_with_rustup() && active_has_target()? {
                return Ok(Self::Active);
            }
            install_debian()?;
        }
        Ok(Self::Debian { linker: linker()? })
    }

    /// `cargo build` for the target.
    pub(crate) fn build(&self) -> Command {
        let mut command = match self {
            Self::Active => {
                let mut command = cargo();
                command
                    .env_remove("RUSTFLAGS")
                    .env_remove("CARGO_ENCODED_RUSTFLAGS");
                command.arg("build");
                command
            }
            Self::Debian { linker } => {
                let mut command = program(DEBIAN_CARGO);
                for name in FOREIGN {
                    command.env_remove(name);
                }
                command
                    .env("RUSTC", DEBIAN_RUSTC)
                    // Building the standard library is a nightly feature by name only.
                    .env("RUSTC_BOOTSTRAP", "1")
                    .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker)
                    .args(["build", "-Zbuild-std=std,panic_abort"]);
                command
            }
        };
        command.args(["--quiet", "--target", TARGET]);
        command
    }

    /// What a user who waits should know.
    pub(crate) fn as_remark(&self) -> &'static str {
        match self {
            Self::Active => "with the active toolchain",
            Self::Debian { .. } => {
                "with Debian's compiler (the first time, it builds the standard library too: about a minute)"
            }
        }
    }
}

fn active_has_target() -> Result<bool> {
    let libraries =
        output(program("rustc").args(["--print", "target-libdir", "--target", TARGET]))?;
    // A target that is not installed has a folder all the same, by name.
    Ok(fs::read_dir(libraries).is_ok_and(|mut entries| entries.next().is_some()))
}

fn debian_is_installed() -> bool {
    [DEBIAN_RUSTC, DEBIAN_CARGO, DEBIAN_SOURCES]
        .iter()
        .all(|path| Path::new(path).exists())
        && output(
            program(DEBIAN_RUSTC)
                .arg("--version")
                .env_remove("LD_LIBRARY_PATH"),
        )
        .is_ok_and(|version| minor_version(&version).is_some_and(|it| it >= MINOR_VERSION))
}

/// 96, of `rustc 1.96.0 (ac68faa20 2026-05-25)`.
fn minor_version(text: &str) -> Option<u32> {
    text.strip_prefix("rustc 1.")?
        .split('.')
        .next()?
        .parse()
        .ok()
}

/// Whether rustup says that it has the target now. It may be missing, or cut off: Debian is next then.
fn add_with_rustup() -> bool {
    let mut rustup = program("rustup");
    rustup
        .args(["target", "add", TARGET])
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let Ok(mut child) = rustup.spawn() else {
        return false;
    };
    eprintln!("xtask: adding the target {TARGET} with rustup, for at most {RUSTUP_DEADLINE:?}");
    let deadline = Instant::now() + RUSTUP_DEADLINE;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) if Instant::now() < deadline => thread::sleep(Duration::from_millis(100)),
            Ok(None) | Err(_) => {
                // It ends either way, and what it says of its end does not matter.
                drop(child.kill());
                drop(child.wait());
                return false;
            }
        }
    }
}

fn install_debian() -> Result<()> {
    let remedies = format!(
        "a guest needs the target {TARGET}; get it with `rustup target add {TARGET}`, \
         or on Debian with `apt-get install {}`",
        PACKAGES.join(" ")
    );
    let is_root = output(program("id").arg("-u")).is_ok_and(|id| id == "0");
    if !is_root || !Path::new("/usr/bin/apt-get").exists() {
        bail!(remedies);
    }
    eprintln!("xtask: installing Debian's {}", PACKAGES.join(", "));
    let apt = || {
        let mut apt = program("/usr/bin/apt-get");
        apt.env("DEBIAN_FRONTEND", "noninteractive")
            .arg("-qq")
            .stdout(Stdio::null());
        apt
    };
    run(apt().arg("update"))
        .and_then(|()| run(apt().args(["install", "--yes"]).args(PACKAGES)))
        .with_context(|| remedies.clone())?;
    ensure!(
        debian_is_installed(),
        "{remedies}; its release may be too old for these"
    );
    Ok(())
}

/// rustup's toolchains bring a linker that knows the target, whether or not they have its libraries.
fn linker() -> Result<PathBuf> {
    let version = output(program("rustc").args(["--version", "--verbose"]))?;
    let host = version
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .context("`rustc --version --verbose` names no host")?;
    let sysroot = PathBuf::from(output(program("rustc").args(["--print", "sysroot"]))?);
    let linker = sysroot.join("lib/rustlib").join(host).join("bin/rust-lld");
    ensure!(
        linker.exists(),
        "no linker for {TARGET}: there is no {}; `rustup target add {TARGET}` needs none of its own",
        linker.display()
    );
    Ok(linker)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_read_or_not_believed() {
        assert_eq!(
            minor_version("rustc 1.96.0 (ac68faa20 2026-05-25)"),
            Some(96)
        );
        assert_eq!(minor_version("rustc 1.63.0"), Some(63));
        assert_eq!(minor_version("clang version 14.0.6"), None);
        assert_eq!(minor_version(""), None);
    }
}
