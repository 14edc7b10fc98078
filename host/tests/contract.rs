//! The contract is what others build against: it may not change under them.

#![allow(clippy::unwrap_used, reason = "a test says what went wrong by failing")]

use std::{fs, path::Path};

use wit_parser::{Resolve, WorldId};

/// The contract as it is, and as it was published.
fn contracts() -> [(&'static str, String); 2] {
    let wit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../wit");
    let read = |path: &str| fs::read_to_string(wit.join(path)).unwrap();
    [
        ("today's", read("classifier.wit")),
        ("0.1.0", read("published/0.1.0/classifier.wit")),
    ]
}

/// Whether a guest of one contract is a guest of the other.
fn check_compatible(published: &str, today: &str) -> Result<(), String> {
    let mut resolve = Resolve::default();
    let published = world(
        &mut resolve,
        "published.wit",
        &published.replace("@0.1.0", "@0.1.0-published"),
    );
    let today = world(&mut resolve, "today.wit", today);
    wit_component::semver_check(resolve, published, today).map_err(|err| format!("{err:#}"))
}

fn world(resolve: &mut Resolve, name: &str, text: &str) -> WorldId {
    let package = resolve.push_source(name, text).unwrap();
    resolve.select_world(&[package], Some("plugin")).unwrap()
}

#[test]
fn todays_contract_takes_every_guest_of_the_published_one() {
    let [(_, today), (_, published)] = contracts();
    check_compatible(&published, &today).unwrap();
}

#[test]
fn the_check_sees_what_would_break_a_guest() {
    let [(_, today), _] = contracts();
    for (what, old, new) in [
        (
            "a field more",
            "        count: u32,\n",
            "        count: u32,\n        weight: u32,\n",
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
    let [(_, today), _] = contracts();
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
