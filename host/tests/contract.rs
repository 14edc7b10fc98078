//! The contract is what others build against: it may not change under them.

#![allow(clippy::unwrap_used, reason = "a test says what went wrong by failing")]

use std::{
    fs,
    path::{Path, PathBuf},
};

use portent::sandbox::WIT_PACKAGE;
use sha2::{Digest as _, Sha256};
use wit_parser::{Resolve, WorldId};

/// Every contract that was published, and the digest of its file: published copies never change.
const PUBLISHED: [(&str, &str); 1] = [(
    "0.1.0",
    "94b5ec7cb47e2f166a76094f2d662456988415c00f39a42dd785d7222e9cd6b1",
)];

fn wit() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../wit")
}

/// The contract as it is.
fn today() -> String {
    fs::read_to_string(wit().join("classifier.wit")).unwrap()
}

/// As it was published.
fn published(version: &str) -> String {
    let path = wit().join("published").join(version);
    fs::read_to_string(path.join("classifier.wit")).unwrap()
}

/// Whether a guest of one contract is a guest of the other.
fn check_compatible(published: &str, today: &str) -> Result<(), String> {
    let mut resolve = Resolve::default();
    // The two are in one set, and so need two names.
    let (docs, package) = published.split_once("\npackage ").unwrap();
    let (name, rest) = package.split_once(';').unwrap();
    let published = format!("{docs}\npackage {name}-published;{rest}");
    let published = world(&mut resolve, "published.wit", &published);
    let today = world(&mut resolve, "today.wit", today);
    wit_component::semver_check(resolve, published, today).map_err(|err| format!("{err:#}"))
}

fn world(resolve: &mut Resolve, name: &str, text: &str) -> WorldId {
    let package = resolve.push_source(name, text).unwrap();
    resolve.select_world(&[package], Some("plugin")).unwrap()
}

#[test]
fn todays_contract_takes_every_guest_of_the_published_ones() {
    for (version, _) in PUBLISHED {
        check_compatible(&published(version), &today()).unwrap();
    }
}

#[test]
fn what_was_published_is_listed_and_as_it_was() {
    let entries = fs::read_dir(wit().join("published")).unwrap();
    let mut found: Vec<_> = entries
        .map(|it| it.unwrap().file_name().into_string().unwrap())
        .collect();
    found.sort();
    assert_eq!(found, PUBLISHED.map(|(version, _)| version.to_owned()));
    for (version, digest) in PUBLISHED {
        let text = published(version);
        assert_eq!(format!("{:x}", Sha256::digest(&text)), digest, "{version}");
        let package = format!("\npackage portent:classifier@{version};");
        assert!(text.contains(&package), "{version} is another's");
    }
}

#[test]
fn the_host_serves_the_package_that_the_contract_is() {
    assert!(today().contains(&format!("\npackage {WIT_PACKAGE};")));
}

#[test]
fn the_check_sees_what_would_break_a_guest() {
    let today = today();
    for (what, old, new) in [
        (
            "a field more",
            "        count: u32,\n",
            "        count: u32,\n        weight: u32,\n",
        ),
        (
            "a field more, which may be missing",
            "        count: u32,\n",
            "        count: u32,\n        weight: option<u32>,\n",
        ),
        ("a field less", "        count: u32,\n", ""),
        (
            "a field of another type",
            "        count: u32,\n",
            "        count: u64,\n",
        ),
        (
            "fields in another order",
            "        severity: severity,\n        /// For example `active`.\n        status: status,\n",
            "        status: status,\n        severity: severity,\n",
        ),
        (
            "a case less",
            "        /// Trying again cannot help.\n        not-at-all,\n",
            "",
        ),
        ("an import less", "    import log;\n", ""),
        (
            "another result",
            "describe: func() -> description;",
            "describe: func() -> option<description>;",
        ),
        (
            "a case more",
            "enum status {\n",
            "enum status {\n        unsure,\n",
        ),
        (
            "a parameter more",
            "classify: func(settings: string,",
            "classify: func(now: u64, settings: string,",
        ),
        (
            "an export more",
            "    export classifier;\n",
            "    export classifier;\n    export explain: func() -> string;\n",
        ),
    ] {
        assert!(today.contains(old), "{what}: the contract has no {old:?}");
        let broken = today.replacen(old, new, 1);
        assert!(check_compatible(&today, &broken).is_err(), "{what} passed");
    }
}

#[test]
fn every_item_of_the_contract_is_documented_and_shows_a_value() {
    let today = today();
    let mut resolve = Resolve::default();
    let package = resolve.push_source("classifier.wit", &today).unwrap();
    let mut undocumented = Vec::new();
    let mut need = |docs: &Option<String>, name: String| {
        if docs.as_ref().is_none_or(|it| it.trim().is_empty()) {
            undocumented.push(name);
        }
    };
    let package = &resolve.packages[package];
    need(&package.docs.contents, "the package".to_owned());
    for (name, id) in &package.worlds {
        need(&resolve.worlds[*id].docs.contents, format!("world {name}"));
    }
    for (name, id) in &package.interfaces {
        let interface = &resolve.interfaces[*id];
        need(&interface.docs.contents, format!("interface {name}"));
        for (function, it) in &interface.functions {
            need(&it.docs.contents, format!("{name}.{function}"));
        }
        for (name, id) in &interface.types {
            let ty = &resolve.types[*id];
            // A type that is used from elsewhere is documented there.
            if let wit_parser::TypeDefKind::Type(wit_parser::Type::Id(_)) = ty.kind {
                continue;
            }
            need(&ty.docs.contents, name.clone());
            match &ty.kind {
                wit_parser::TypeDefKind::Record(record) => {
                    for field in &record.fields {
                        need(&field.docs.contents, format!("{name}.{}", field.name));
                    }
                }
                wit_parser::TypeDefKind::Enum(cases) => {
                    for case in &cases.cases {
                        need(&case.docs.contents, format!("{name}.{}", case.name));
                    }
                }
                _ => {}
            }
        }
    }
    assert_eq!(undocumented, Vec::<String>::new());
}
