//! The directions of the architecture, held by looking at the text.

#![allow(clippy::unwrap_used, reason = "a test says what went wrong by failing")]

use std::{
    fs,
    path::{Path, PathBuf},
};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Every file below a folder with this ending, as its path from the folder.
fn files(folder: &Path, ending: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(it) = folders.pop() {
        for entry in fs::read_dir(it).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().ends_with(ending) {
                let name = path
                    .strip_prefix(folder)
                    .unwrap()
                    .to_string_lossy()
                    .into_owned();
                found.push((name, fs::read_to_string(&path).unwrap()));
            }
        }
    }
    assert!(!found.is_empty(), "nothing below {}", folder.display());
    found.sort();
    found
}

/// Lines of code that name a thing, comments aside.
fn lines_naming(text: &str, what: &str) -> usize {
    text.lines()
        .filter(|it| !it.trim_start().starts_with("//") && it.contains(what))
        .count()
}

/// No file outside of `allowed` names `what`.
#[track_caller]
fn check_only_in(what: &str, allowed: &[&str]) {
    let everywhere = files(&root().join("host/src"), ".rs");
    let naming = everywhere
        .iter()
        .filter(|(_, text)| 0 < lines_naming(text, what));
    let names: Vec<_> = naming.map(|(name, _)| name.as_str()).collect();
    let elsewhere: Vec<_> = names
        .iter()
        .filter(|name| !allowed.iter().any(|it| name.starts_with(it)))
        .collect();
    assert!(elsewhere.is_empty(), "{what} is named in {elsewhere:?}");
    assert!(
        !names.is_empty() || allowed.is_empty(),
        "nobody names {what}: is the rule still right?"
    );
}

#[test]
fn only_the_sandbox_names_wasmtime() {
    check_only_in("wasmtime", &["sandbox"]);
    check_only_in("wasmparser", &["sandbox"]);
}

#[test]
fn only_the_author_tool_names_wit_component() {
    check_only_in("wit_component", &["componentize.rs"]);
}

#[test]
fn only_the_store_and_the_outcome_table_name_dashmap() {
    check_only_in("dashmap", &["store", "outcome"]);
}

#[test]
fn nothing_that_is_used_uses_who_uses_it() {
    // Who may not name whom: the data goes one way.
    for (of, may_not_name) in [
        ("text", &["crate::"][..]),
        ("reason", &["crate::"]),
        (
            "scope",
            &[
                "crate::record",
                "crate::store",
                "crate::subject",
                "crate::outcome",
                "crate::sandbox",
                "crate::plugins",
                "crate::dispatch",
                "crate::replay",
                "crate::config",
                "crate::cli",
                "kube",
            ],
        ),
        (
            "record",
            &[
                "crate::store",
                "crate::subject",
                "crate::outcome",
                "crate::sandbox",
                "crate::plugins",
                "crate::dispatch",
                "crate::replay",
                "crate::cli",
            ],
        ),
        (
            "store",
            &[
                "crate::subject",
                "crate::outcome",
                "crate::sandbox",
                "crate::plugins",
                "crate::dispatch",
                "crate::replay",
                "crate::cli",
            ],
        ),
        (
            "subject",
            &[
                "crate::outcome",
                "crate::sandbox",
                "crate::plugins",
                "crate::dispatch",
                "crate::replay",
                "crate::cli",
            ],
        ),
        (
            "outcome",
            &[
                "crate::sandbox",
                "crate::plugins",
                "crate::dispatch",
                "crate::replay",
                "crate::cli",
            ],
        ),
        (
            "sandbox",
            &[
                "crate::plugins",
                "crate::dispatch",
                "crate::replay",
                "crate::cli",
            ],
        ),
        (
            "plugins",
            &["crate::dispatch", "crate::replay", "crate::cli"],
        ),
        ("dispatch", &["crate::replay", "crate::cli"]),
        ("replay", &["crate::cli"]),
    ] {
        let of_module = files(&root().join("host/src"), ".rs")
            .into_iter()
            .filter(|(name, _)| *name == format!("{of}.rs") || name.starts_with(&format!("{of}/")));
        let mut n_files = 0;
        for (name, text) in of_module {
            n_files += 1;
            for it in may_not_name {
                // The tests of a module may use what they need.
                if !name.ends_with("tests.rs") && !name.contains("tests/") {
                    assert_eq!(lines_naming(&text, it), 0, "{name} names {it}");
                }
            }
        }
        assert!(0 < n_files, "there is no module {of}");
    }
}

#[test]
fn the_host_meets_guests_only_in_the_contract() {
    let manifest = fs::read_to_string(root().join("host/Cargo.toml")).unwrap();
    for it in [
        "portent-sdk",
        "portent-gpu-fault",
        "portent-additional-reasons",
    ] {
        assert!(!manifest.contains(it), "host depends on {it}");
    }
    for guest in [
        "guest-sdk",
        "plugins/gpu-fault",
        "plugins/additional-reasons",
    ] {
        let manifest = fs::read_to_string(root().join(guest).join("Cargo.toml")).unwrap();
        let dependencies = manifest.split_once("[dependencies]").unwrap().1;
        let names = dependencies
            .lines()
            .filter_map(|it| it.split_once(['.', ' ']))
            .map(|(it, _)| it);
        let allowed = if guest == "guest-sdk" {
            "wit-bindgen"
        } else {
            "portent-sdk"
        };
        for it in names.filter(|it| it.chars().all(|it| it.is_ascii_lowercase() || it == '-')) {
            assert!(
                it == allowed || it.is_empty() || it == "workspace",
                "{guest} depends on {it}"
            );
        }
    }
}

#[test]
fn there_is_no_mod_rs_in_what_ships() {
    for folder in ["host/src", "guest-sdk/src", "plugins", "xtask/src"] {
        for (name, _) in files(&root().join(folder), ".rs") {
            assert!(!name.ends_with("mod.rs"), "{folder}/{name}");
        }
    }
}

#[test]
fn every_module_says_why_it_is_there() {
    for folder in [
        "host/src",
        "host/tests",
        "guest-sdk/src",
        "plugins",
        "xtask/src",
    ] {
        for (name, text) in files(&root().join(folder), ".rs") {
            let first = text
                .lines()
                .find(|it| !it.trim().is_empty())
                .unwrap_or_default();
            assert!(first.starts_with("//!"), "{folder}/{name} has no header");
        }
    }
}
