//! What replay prints for programs is an interface: it has a schema, and keeps to it.

#![allow(clippy::unwrap_used, reason = "a test says what went wrong by failing")]

mod support;

use std::{
    fs,
    path::{Path, PathBuf},
};

use portent::output::{ChangeRecord, Element};
use schemars::{Schema, schema_for};
use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The published schema is that of the types. `PORTENT_BLESS=1` writes it anew,
/// which is right for a new key and wrong for anything else.
#[track_caller]
fn check_published(name: &str, schema: &Schema) {
    let path = root().join("docs/schema").join(name);
    let made = format!("{}\n", serde_json::to_string_pretty(schema).unwrap());
    if std::env::var_os("PORTENT_BLESS").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &made).unwrap();
    }
    let published = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        published == made,
        "docs/schema/{name} is not that of the types; run with PORTENT_BLESS=1"
    );
}

#[test]
fn the_published_schemas_are_those_of_the_types() {
    check_published("replay.schema.json", &schema_for!(Element<'static>));
    check_published("changes.schema.json", &schema_for!(ChangeRecord<'static>));
}

/// Every value that a replay of this file prints is as the schema says.
#[track_caller]
fn check_valid(schema: &str, plugins: &Path, file: &Path, more: &[&str]) -> usize {
    let text = fs::read_to_string(root().join("docs/schema").join(schema)).unwrap();
    let schema: Value = serde_json::from_str(&text).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let args = [
        "replay".as_ref(),
        "-o".as_ref(),
        "jsonl".as_ref(),
        "--plugins".as_ref(),
        plugins.as_os_str(),
        file.as_os_str(),
    ];
    let output = support::portent(args.into_iter().chain(more.iter().map(AsRef::as_ref)));
    let lines = String::from_utf8(output.stdout).unwrap();
    for line in lines.lines() {
        let value: Value = serde_json::from_str(line).unwrap();
        if let Err(err) = validator.validate(&value) {
            panic!("{}: {err}\n{line}", file.display());
        }
    }
    lines.lines().count()
}

fn built_plugins() -> PathBuf {
    std::env::var_os("PORTENT_TEST_PLUGINS")
        .map_or_else(|| root().join("target/plugins"), PathBuf::from)
}

#[test]
fn what_is_printed_keeps_to_the_schemas() {
    let plugins = built_plugins();
    let fixtures = root().join("host/tests/fixtures");
    for file in [
        "flyte.json",
        "frames.jsonl",
        "events.jsonl",
        "recreated.jsonl",
        "hostile-text.jsonl",
    ] {
        let file = fixtures.join(file);
        assert!(
            0 < check_valid("replay.schema.json", &plugins, &file, &[]),
            "{}",
            file.display()
        );
        assert!(
            0 < check_valid("changes.schema.json", &plugins, &file, &["--changes"]),
            "{}",
            file.display()
        );
    }
}

#[test]
fn a_failed_call_keeps_to_the_schema_too() {
    let plugins = support::directory([("panics.wasm", support::component("panics"))]);
    let events = support::events(&["good-0", "poison-0"], 2);
    let input = support::directory([("events.jsonl", events.into_bytes())]);
    let n = check_valid(
        "replay.schema.json",
        plugins.path(),
        &input.path().join("events.jsonl"),
        &[],
    );
    assert_eq!(n, 2);
}

#[test]
fn the_schema_refuses_what_it_should() {
    let text = fs::read_to_string(root().join("docs/schema/replay.schema.json")).unwrap();
    let validator = jsonschema::validator_for(&serde_json::from_str(&text).unwrap()).unwrap();
    for wrong in [
        serde_json::json!({}),
        serde_json::json!([]),
        serde_json::json!({"object": {"name": 1}}),
    ] {
        assert!(!validator.is_valid(&wrong), "{wrong}");
    }
}
