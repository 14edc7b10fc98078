//! `cargo xtask plugins`: a core module by cargo, a component by portent itself.
//!
//! Ours and an author's take the same way, so that what our tests load is what an author gets.

use std::env;
use std::fs;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf, absolute};
use std::thread;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};

use crate::process::{cargo, output, plugins_dir, portent, program, root, run as run_child};
use crate::toolchain::{TARGET, Toolchain};

/// The plugins of this checkout.
const OURS: [&str; 2] = ["portent-gpu-fault", "portent-additional-reasons"];

/// Builds ours, or the one of this manifest. `host` builds the host meanwhile, which
/// has a stretch that keeps one processor busy, and says where it is.
pub(crate) fn run(
    host: impl FnOnce() -> Result<PathBuf>,
    manifest: Option<&Path>,
    out: Option<&Path>,
) -> Result<()> {
    // Children run from the root of the workspace, the user perhaps elsewhere.
    let manifest = manifest
        .map(absolute)
        .transpose()
        .context("cannot find the manifest")?;
    let out = out
        .map_or_else(|| Ok(plugins_dir()), absolute)
        .context("cannot find the folder")?;

    let (portent, modules) = thread::scope(|scope| {
        let modules = scope.spawn(|| build_modules(manifest.as_deref()));
        let portent = host();
        let modules = modules.join().unwrap_or_else(|panic| resume_unwind(panic));
        (portent, modules)
    });
    let (portent, modules) = (portent?, modules?);

    fs::create_dir_all(&out).with_context(|| format!("cannot create {}", out.display()))?;
    for (package, module) in modules {
        let plugin = package.strip_prefix("portent-").unwrap_or(&package);
        componentize(&portent, &module, &out.join(plugin).with_extension("wasm"))?;
    }
    Ok(())
}

/// Compiles ours, or the one of this manifest: packages and their core modules.
fn build_modules(manifest: Option<&Path>) -> Result<Vec<(String, PathBuf)>> {
    let toolchain = Toolchain::find()?;
    let target_dir = root().join("target/guests");
    let start = Instant::now();
    let mut build = toolchain.build();
    build.arg("--target-dir").arg(&target_dir);
    let what = manifest.map_or_else(|| OURS.join(" and "), |it| it.display().to_string());
    eprintln!("xtask: building {what} {}", toolchain.as_remark());
    let (packages, profile) = match manifest {
        None => {
            build.args(["--profile", "guest"]);
            run_child(build.args(OURS.map(|it| ["-p", it]).concat()))?;
            (OURS.map(str::to_owned).to_vec(), "guest")
        }
        Some(manifest) => {
            run_child(build.arg("--release").arg("--manifest-path").arg(manifest))?;
            (vec![package_of(manifest)?], "release")
        }
    };
    eprintln!("xtask: built {what} in {:.1?}", start.elapsed());
    let modules = target_dir.join(TARGET).join(profile);
    let modules = packages.into_iter().map(|package| {
        let module = modules
            .join(package.replace('-', "_"))
            .with_extension("wasm");
        (package, module)
    });
    Ok(modules.collect())
}

/// The binary that makes a module a component: the one that `PORTENT` names, for
/// callers who have just built it, else a freshly built one.
pub(crate) fn built_portent() -> Result<PathBuf> {
    if let Some(built) = env::var_os("PORTENT") {
        return Ok(built.into());
    }
    eprintln!("xtask: building portent, which makes components of modules");
    run_child(cargo().args(["build", "--quiet", "-p", "portent"]))?;
    Ok(portent())
}

fn componentize(portent: &Path, module: &Path, component: &Path) -> Result<()> {
    ensure!(
        module.exists(),
        "cargo made no {}: a plugin has `crate-type = [\"cdylib\", \"rlib\"]` and no other `name` \
         in `[lib]` of its manifest",
        module.display()
    );
    let mut portent = program(portent);
    portent.args(["plugin", "componentize"]);
    run_child(portent.arg(module).arg("-o").arg(component))?;
    eprintln!("xtask: wrote {}", component.display());
    Ok(())
}

/// The name of the manifest's package. It needs the lock file that a build leaves.
fn package_of(manifest: &Path) -> Result<String> {
    let id = output(cargo().arg("pkgid").arg("--manifest-path").arg(manifest))?;
    let package = package_of_id(&id);
    package
        .map(str::to_owned)
        .with_context(|| format!("cannot read the package id {id}"))
}

/// The name of `path+file:///plugins/oom#0.1.0`, or of `path+file:///plugins#oom@0.1.0`.
fn package_of_id(id: &str) -> Option<&str> {
    let (url, version) = id.rsplit_once('#')?;
    match version.split_once('@') {
        Some((name, _)) => Some(name),
        None => url.rsplit('/').next(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_id_names_the_package_or_its_folder_does() {
        assert_eq!(package_of_id("path+file:///plugins/oom#0.1.0"), Some("oom"));
        assert_eq!(
            package_of_id("path+file:///plugins#my-oom@0.1.0"),
            Some("my-oom")
        );
        assert_eq!(package_of_id("oom"), None);
    }
}
