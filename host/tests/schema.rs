//! What replay prints for programs is an interface: it has a schema, and keeps to it.

#![allow(clippy::unwrap_used, reason = "a test says what went wrong by failing")]

mod support;

use std::{
    fs,
    path::{Path, PathBuf},
};

use portent::{
    check::Check,
    config::Config,
    explain::json::Explained,
    output::{ChangeRecord, Element},
};
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
    check_published("explain.schema.json", &schema_for!(Explained<'static>));
    check_published("config.schema.json", &schema_for!(Config));
    check_published("check.schema.json", &schema_for!(Vec<Check>));
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
    let plugins = support::directory([("panics.wasm", portent_hostile::component("panics"))]);
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

/// A configuration, as a file says it, that the schema and the program both take, or both refuse.
#[track_caller]
fn check_config(validator: &jsonschema::Validator, yaml: &str, is_good: bool) {
    let value: Value = serde_saphyr::from_str(yaml).unwrap();
    assert_eq!(validator.is_valid(&value), is_good, "the schema: {yaml}");
    let parsed = Config::parse(yaml.as_bytes());
    assert_eq!(parsed.is_ok(), is_good, "{parsed:?}: {yaml}");
}

#[test]
fn the_schema_of_the_configuration_takes_and_refuses_what_the_program_does() {
    let text = fs::read_to_string(root().join("docs/schema/config.schema.json")).unwrap();
    let validator = jsonschema::validator_for(&serde_json::from_str(&text).unwrap()).unwrap();
    let check = |yaml: &str, is_good| check_config(&validator, yaml, is_good);
    check(&Config::example().to_yaml(), true);
    for (scope, is_good) in [
        ("{namespaces: [team-a]}", true),
        ("{cluster: {}}", true),
        ("{cluster: {include: [team-*], exclude: ['?']}}", true),
        ("{namespaces: ['1'], kinds: [Pod, RayJob]}", true),
        ("{cluster: {}, clusterScopedKinds: []}", true),
        ("{}", false),
        ("{namespaces: [a], cluster: {}}", false),
        ("{namespaces: []}", false),
        ("{namespaces: [a, a]}", false),
        ("{namespaces: [Team]}", false),
        ("{namespaces: [1]}", false),
        ("{namespaces: team-a}", false),
        ("{cluster: }", false),
        ("{cluster: {includes: []}}", false),
        ("{cluster: {include: [Team]}}", false),
        ("{cluster: {}, kinds: [pod]}", false),
        ("{cluster: {}, kinds: []}", false),
    ] {
        check(
            &format!("scope: {scope}\nplugins: {{directory: /p}}"),
            is_good,
        );
    }
    check("scope: {cluster: {}}", false);
    check("plugins: {directory: /p}", false);
    for (more, is_good) in [
        ("store:", true),
        ("limits:", true),
        ("store: {bytes: 256Mi, recordsPerObject: 1}", true),
        ("store: {bytes: 1048576, timeToLive: 1h30m}", true),
        ("watch: {backoffMax: 2s, pageSize: 10000}", true),
        ("workers: 16", true),
        ("limits: {tables: 7}", true),
        ("admin: {listen: '[::]:80'}", true),
        ("log: {level: debug, format: json}", true),
        ("changes: {stdout: false}", true),
        ("store: {bytes: 256MB}", false),
        ("store: {bytes: 1048575}", false),
        ("store: {bytes: 1.5}", false),
        ("store: {bytes: }", false),
        ("store: {recordsPerObject: 0}", false),
        ("store: {recordsPerObject: '1'}", false),
        ("store: {timeToLive: 65}", false),
        ("store: {timeToLive: 1m1h}", false),
        ("store: {timeToLive: m}", false),
        ("store: {nodeBytes: 1Ki}", false),
        ("store: []", false),
        ("workers: 17", false),
        ("workers: 0", false),
        ("limits: {fuel: 7}", false),
        ("limits: {tables: -1}", false),
        ("admin: {listen: '8081'}", false),
        ("log: {level: WARN}", false),
        ("changes: {stdout: 'true'}", false),
        ("unknown: 1", false),
    ] {
        let yaml = format!("scope: {{cluster: {{}}}}\nplugins: {{directory: /p}}\n{more}");
        check(&yaml, is_good);
    }
}
