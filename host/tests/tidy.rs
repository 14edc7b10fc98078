//! The directions of the architecture, held by looking at the text.

#![allow(clippy::unwrap_used, reason = "a test says what went wrong by failing")]

use std::{
    collections::BTreeSet,
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
fn only_what_holds_settings_against_schemas_names_jsonschema() {
    check_only_in("jsonschema", &["plugins/schema"]);
}

#[test]
fn unsafe_code_and_other_processes_are_where_they_are_argued_for() {
    check_only_in("unsafe ", &["memory.rs", "sandbox/compile.rs"]);
    check_only_in("Component::deserialize", &["sandbox/compile.rs"]);
    check_only_in("Component::new", &[]);
    check_only_in(
        "Command::new",
        &["apart.rs", "apart/tests.rs", "sandbox/cache/tests.rs"],
    );
    // What compiles in its own process has no bounds: the commands never do.
    check_only_in(
        "Sandbox::new(",
        &[
            "sandbox/compile/tests.rs",
            "plugins/tests.rs",
            "plugins/loader/tests.rs",
        ],
    );
    check_only_in("Compiler::Here", &["sandbox.rs", "sandbox/compile"]);
}

#[test]
fn only_the_author_tool_names_wit_component() {
    check_only_in("wit_component", &["componentize.rs"]);
}

#[test]
fn only_the_store_and_the_outcome_table_have_a_dashmap() {
    check_only_in("dashmap", &["sync.rs"]);
    check_only_in("DashMap", &["store", "outcome", "sync.rs"]);
}

#[test]
fn what_is_modelled_takes_what_it_shares_from_where_the_model_puts_its_own() {
    for name in [
        "dispatch/workers.rs",
        "files.rs",
        "outcome/table.rs",
        "interner.rs",
        "sink.rs",
        "store.rs",
    ] {
        let text = fs::read_to_string(root().join("host/src").join(name)).unwrap();
        let code = text.split("\n#[cfg(test)]").next().unwrap_or_default();
        for behind in code.split("std::").skip(1) {
            let of_std = behind.split(';').next().unwrap_or_default();
            let mut words = of_std.split(|it: char| !it.is_alphanumeric());
            let shared = words.find(|it| ["sync", "thread"].contains(it));
            assert_eq!(shared, None, "{name} takes it from std");
        }
    }
}

#[test]
fn only_what_asks_a_cluster_names_kube() {
    check_only_in(
        "kube::",
        &[
            "watch",
            "check.rs",
            "explain/ask.rs",
            "run.rs",
            "run/watches.rs",
        ],
    );
    let clis = ["cli/check.rs", "cli/explain.rs"];
    check_only_in(
        "tokio::",
        &[&["watch", "check.rs", "run"], &clis[..]].concat(),
    );
    check_only_in("prometheus_client", &["run/metrics.rs"]);
}

/// Left may use right, never the other way: the data goes one way.
const CHAIN: [&str; 18] = [
    "cli", "explain", "check", "run", "config", "replay", "live", "watch", "sink", "output",
    "dispatch", "plugins", "sandbox", "outcome", "subject", "pods", "store", "record",
];

#[test]
fn nothing_that_is_used_uses_who_uses_it() {
    for (idx, of) in CHAIN.into_iter().enumerate() {
        for (name, named) in modules_named_by(of) {
            let left = CHAIN[..idx].iter().find(|it| named.contains(**it));
            assert_eq!(left, None, "{name} names what uses it");
        }
    }
}

#[test]
fn what_many_use_uses_little() {
    for (of, may_name) in [
        ("text", &[][..]),
        ("apart", &[]),
        ("reason", &[]),
        ("sync", &[]),
        ("files", &["sync"]),
        ("scope", &["text"]),
        ("yaml", &["text"]),
        ("config", &["config", "sandbox", "scope", "text", "yaml"]),
        ("watch", &["pods", "record", "scan", "scope", "text"]),
        ("output", &["outcome", "record", "subject", "text"]),
        ("sink", &["outcome", "output", "subject", "sync"]),
    ] {
        for (name, mut named) in modules_named_by(of) {
            named.retain(|it| !may_name.contains(&&**it));
            assert!(named.is_empty(), "{name} names {named:?}");
        }
    }
}

/// The files of a module, its tests aside, which may use what they need; and which modules of the
/// crate each names.
fn modules_named_by(of: &str) -> Vec<(String, BTreeSet<String>)> {
    let is_of = |name: &str| {
        (name == format!("{of}.rs") || name.starts_with(&format!("{of}/")))
            && !name.ends_with("tests.rs")
            && !name.contains("tests/")
    };
    let found: Vec<_> = files(&root().join("host/src"), ".rs")
        .into_iter()
        .filter(|(name, _)| is_of(name))
        .map(|(name, text)| (name, modules_named(&text)))
        .collect();
    assert!(!found.is_empty(), "there is no module {of}");
    found
}

/// The modules that stand behind `crate::` in code, alone or in braces.
fn modules_named(text: &str) -> BTreeSet<String> {
    let code: Vec<_> = text
        .lines()
        .filter(|it| !it.trim_start().starts_with("//"))
        .collect();
    let mut named = BTreeSet::new();
    for behind in code.join("\n").split("crate::").skip(1) {
        let word = |it: &str| -> String {
            let is_of_word = |it: &char| it.is_alphanumeric() || *it == '_';
            it.trim_start().chars().take_while(is_of_word).collect()
        };
        let Some(group) = behind.strip_prefix('{') else {
            named.insert(word(behind));
            continue;
        };
        // What is within the braces of an entry is no module of ours.
        let (mut depth, mut entries) = (0, String::new());
        for it in group.chars() {
            match it {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                _ if depth == 0 => entries.push(it),
                _ => {}
            }
        }
        named.extend(entries.split(',').map(word));
    }
    named.remove("");
    named
}

#[test]
fn a_module_is_seen_alone_and_in_braces() {
    let text = "\
        use crate::{\n    a::{b, C},\n    d,\n    e_1::F,\n};\n\
        // crate::comment\n\
        pub(crate) fn f(it: crate::g::H) {}\n\
        use crate::{i, j::{self, k}};\n";
    let named: Vec<_> = modules_named(text).into_iter().collect();
    assert_eq!(named, ["a", "d", "e_1", "g", "i", "j"]);
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
    // Its tests alone know the guests that misbehave.
    let (of_all, _) = manifest.split_once("[dev-dependencies]").unwrap();
    assert!(!of_all.contains("portent-hostile"));
    for guest in [
        "guest-sdk",
        "plugins/gpu-fault",
        "plugins/additional-reasons",
    ] {
        let manifest = fs::read_to_string(root().join(guest).join("Cargo.toml")).unwrap();
        // What its tests use is no part of it.
        let behind = manifest.split_once("[dependencies]").unwrap().1;
        let dependencies = behind.split("\n[").next().unwrap_or_default();
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
    for folder in [
        "host/src",
        "host/benches",
        "model/src",
        "guest-sdk/src",
        "plugins",
        "xtask/src",
    ] {
        for (name, _) in files(&root().join(folder), ".rs") {
            assert!(!name.ends_with("mod.rs"), "{folder}/{name}");
        }
    }
}

#[test]
fn every_module_says_why_it_is_there() {
    for folder in [
        "host/src",
        "host/benches",
        "host/tests",
        "model",
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
