//! `cargo xtask testbed`: a real control plane for the tests, built from Go's module proxy.
//!
//! An API server is what our watch has to agree with, and a fake one agrees with whoever wrote it. No package
//! manager has kube-apiserver; Go's proxy has its source, and `testbed/go.sum` says that it is the right one.
//! It takes minutes once, and is done again only when what it is built from changes.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, Result, bail};

use crate::process::{output, program, root, run as run_child, target_dir};

/// What the tests start.
const PROGRAMS: [&str; 4] = ["etcd", "kube-apiserver", "kube-scheduler", "kubectl"];

/// Go names a program after the folder of its package, and etcd's is this.
const ETCD_AS_BUILT: &str = "server";

/// The programs, or why there are none.
pub(crate) enum Testbed {
    /// The folder that they are in.
    In(PathBuf),
    /// What has to be installed first.
    Missing(String),
}

/// Builds it, and says where it is.
pub(crate) fn run() -> Result<()> {
    match find()? {
        Testbed::In(folder) => {
            eprintln!("xtask: for the tests, PORTENT_TESTBED={}", folder.display());
            Ok(())
        }
        Testbed::Missing(reason) => bail!(reason),
    }
}

/// The folder that `KUBEBUILDER_ASSETS` names if all programs are there, else our own, built if need be.
pub(crate) fn find() -> Result<Testbed> {
    if let Some(folder) = env::var_os("KUBEBUILDER_ASSETS") {
        let folder = root().join(folder);
        let lacks = lacking(&folder);
        if lacks.is_empty() {
            return Ok(Testbed::In(folder));
        }
        let (folder, lacks) = (folder.display(), lacks.join(", "));
        eprintln!("xtask: KUBEBUILDER_ASSETS is {folder}, which lacks {lacks}: not used");
    }

    let recipe = Recipe::read()?;
    let folder = target_dir().join("testbed/bin");
    let stamp = target_dir().join("testbed/stamp");
    let is_built = lacking(&folder).is_empty()
        && fs::read_to_string(&stamp).is_ok_and(|built| built == recipe.as_stamp());
    if is_built {
        return Ok(Testbed::In(folder));
    }
    if let Err(reason) = recipe.check_go() {
        let programs = PROGRAMS.join(", ");
        return Ok(Testbed::Missing(format!(
            "{reason}: install Go {} or later (https://go.dev/dl), or let KUBEBUILDER_ASSETS name a \
             folder that has {programs}",
            recipe.go
        )));
    }

    // Written last, so that what is cut short is done again.
    match fs::remove_file(&stamp) {
        Err(err) if err.kind() != io::ErrorKind::NotFound => {
            return Err(err).with_context(|| format!("cannot remove {}", stamp.display()));
        }
        _ => {}
    }
    recipe.build(&folder)?;
    fs::write(&stamp, recipe.as_stamp())
        .with_context(|| format!("cannot write {}", stamp.display()))?;
    Ok(Testbed::In(folder))
}

/// The programs that are not in this folder.
fn lacking(folder: &Path) -> Vec<&'static str> {
    let lacks = |it: &&str| !folder.join(it).is_file();
    PROGRAMS.into_iter().filter(lacks).collect()
}

/// All that decides what is built, apart from the compiler.
struct Recipe {
    /// `testbed/go.mod`.
    module: String,
    /// `testbed/go.sum`.
    sums: String,
    /// The oldest Go that does, for example `1.26.0`.
    go: String,
    /// For the linker: without the version, an API server calls itself `v0.0.0-master`.
    ldflags: String,
}

impl Recipe {
    fn read() -> Result<Self> {
        let read = |name: &str| {
            let file = root().join("testbed").join(name);
            fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))
        };
        let (module, sums) = (read("go.mod")?, read("go.sum")?);
        let go = pinned(&module, "go")
            .context("testbed/go.mod has no line `go VERSION`")?
            .to_owned();
        let ldflags = pinned(&module, "k8s.io/kubernetes")
            .and_then(ldflags)
            .context("testbed/go.mod requires no k8s.io/kubernetes vMAJOR.MINOR.PATCH")?;
        Ok(Self {
            module,
            sums,
            go,
            ldflags,
        })
    }

    fn as_stamp(&self) -> String {
        [&*self.ldflags, &self.module, &self.sums].join("\n")
    }

    /// `Err` is the reason why there is no Go that does. One since 1.21 that may use the network gets
    /// itself the version that go.mod asks for.
    fn check_go(&self) -> Result<(), String> {
        let mut go = program("go");
        go.current_dir(root().join("testbed"));
        let version = output(go.args(["env", "GOVERSION"]))
            .map_err(|_| "there is no Go that runs".to_owned())?;
        let minor = |it: &str| {
            it.strip_prefix("1.")?
                .split('.')
                .next()?
                .parse::<u32>()
                .ok()
        };
        let found = version.strip_prefix("go").and_then(minor);
        if found < minor(&self.go) {
            return Err(format!("{version} is too old"));
        }
        Ok(())
    }

    fn build(&self, folder: &Path) -> Result<()> {
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        eprintln!(
            "xtask: building {} with Go (the first time, it takes a quarter of an hour of processor time)",
            PROGRAMS.join(", ")
        );
        let start = Instant::now();
        let mut go = program("go");
        go.current_dir(root().join("testbed"))
            // As Kubernetes is released: it needs no C compiler.
            .env("CGO_ENABLED", "0")
            .env("GOWORK", "off")
            .args(["build", "-trimpath", "-buildvcs=false", "-ldflags"])
            .arg(&self.ldflags)
            .arg("-o")
            .arg(folder);
        run_child(go.arg("tool"))?;
        let etcd = folder.join(ETCD_AS_BUILT);
        fs::rename(&etcd, folder.join("etcd"))
            .with_context(|| format!("cannot rename {}", etcd.display()))?;
        eprintln!("xtask: built them in {:.1?}", start.elapsed());
        Ok(())
    }
}

/// The version of a requirement, or of the language.
fn pinned<'a>(module: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = module.lines().map(str::split_whitespace);
    lines.find_map(|mut words| (words.next()? == name).then(|| words.next())?)
}

/// What tells the programs which version they are.
fn ldflags(version: &str) -> Option<String> {
    let mut numbers = version.strip_prefix('v')?.split('.');
    let (major, minor, _) = (numbers.next()?, numbers.next()?, numbers.next()?);
    let package = "k8s.io/component-base/version";
    Some(format!(
        "-s -w -X {package}.gitVersion={version} -X {package}.gitMajor={major} -X {package}.gitMinor={minor}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_those_that_the_module_requires() {
        let module =
            "module m\n\ngo 1.26.0\n\nrequire (\n\tk8s.io/kubernetes v1.37.2 // indirect\n)\n";
        assert_eq!(pinned(module, "go"), Some("1.26.0"));
        assert_eq!(pinned(module, "k8s.io/kubernetes"), Some("v1.37.2"));
        assert_eq!(pinned(module, "k8s.io/api"), None);
        let flags = ldflags("v1.37.2").unwrap();
        assert!(flags.ends_with(".gitMajor=1 -X k8s.io/component-base/version.gitMinor=37"));
        assert_eq!(ldflags("1.37.2"), None);
        assert_eq!(ldflags("v1.37"), None);
    }

    #[test]
    fn what_is_built_comes_from_the_module_of_this_checkout() {
        let recipe = Recipe::read().unwrap();
        assert!(recipe.ldflags.contains("gitVersion=v1."));
        let staging =
            |line: &&str| line.trim_start().starts_with("k8s.io/") && line.contains(" => ");
        let minor = |version: &str| version.split_once('.').map(|(_, rest)| rest.to_owned());
        let want = minor(pinned(&recipe.module, "k8s.io/kubernetes").unwrap());
        let mut n_replaced = 0;
        for line in recipe.module.lines().filter(staging) {
            n_replaced += 1;
            let version = line.split_whitespace().last().unwrap();
            assert_eq!(minor(version), want, "a module of another release: {line}");
        }
        assert!(20 < n_replaced, "the staging modules are to be replaced");
    }
}
