//! A configuration file as an operator meets it: what is printed for it, and what is said of it.

#![allow(clippy::unwrap_used, reason = "a test says what went wrong by failing")]

mod support;

use std::{fs, path::Path};

use portent::config::{Config, ConfigError};
use support::{directory, portent};

/// A file with this text, read and refused; the error is as it is printed.
#[track_caller]
fn refused(text: &[u8]) -> String {
    let folder = directory([("portent.yaml", text.to_vec())]);
    let err = Config::read(&folder.path().join("portent.yaml")).unwrap_err();
    assert!(matches!(err, ConfigError::Invalid { .. }), "{err:?}");
    let place = format!("{}/", folder.path().display());
    err.to_string().replace(&place, "")
}

/// Each line that is wrong says why.
const MISTAKES: &str = r#"
scope:
  namespaces: [team-a, Team_B, team-a, 123, kube-*]   # letters, twice, a number, a glob
  cluster:                                            # as well as namespaces
    include: [team-*, "Bad Glob"]
    exclude: team-x                                   # no list
  kinds: [pod, Pods!, Node]
  clusterScopedKind: [Queue]                          # unknown, near
plugins:
  dir: /plugins                                       # unknown, near nothing
  order: [gpu-fault, gpu-fault, GPU]
  order: []                                           # twice
store:
  bytes: 256MB                                        # no such unit
  recordsPerObject: 0                                 # out of range
  time_to_live: 65m                                   # another spelling
  noteBytes: 64Gi
outcomes: none                                        # no mapping
watch:
  timeout: 45                                         # no unit
  listDeadline: 1.5m
  startDeadline: -15s
  backoffMax: 2d
  pageSize: many
  lists: "4"
  pagesBytes:
  lineBytes: [16Mi]
  objects: 9                                          # belongs elsewhere
workers: 17
limits:
  tables: 1000
  fuel-per-evnt: 5
  memory-bytes: lots
  batch-events: 64
  batch-events: 65
admin:
  listen: ":8081"
changes:
  stdout: yes
log:
  level: WARN
  format: yaml
logging: {}
"\e[2J": hostile
"#;

#[test]
fn every_mistake_is_told_at_once_with_its_place_and_what_to_write() {
    insta::assert_snapshot!("mistakes", refused(MISTAKES.as_bytes()));
}

#[test]
fn a_hundred_problems_are_told_and_the_rest_is_counted() {
    let text: Vec<_> = (0..150).map(|it| format!("key-{it}: 1")).collect();
    let told = refused(text.join("\n").as_bytes());
    let lines: Vec<_> = told.lines().collect();
    // Those of the keys, and of the scope and the plugins, which are missing.
    assert_eq!(lines[0], "portent.yaml has 152 problems");
    assert_eq!(lines.len(), 102);
    assert_eq!(lines[101], "portent.yaml: and 52 more");
    assert!(refused(b"a: [").starts_with("portent.yaml has 1 problem\nportent.yaml:1:4: "));
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let folder = directory([] as [(&str, Vec<u8>); 0]);
    fs::create_dir(folder.path().join("folder")).unwrap();
    for name in ["missing.yaml", "folder", "a\nb"] {
        let err = Config::read(&folder.path().join(name)).unwrap_err();
        assert!(matches!(err, ConfigError::Unreadable { .. }), "{err:?}");
        let shown = name.replace('\n', "\\n");
        assert_eq!(
            err.to_string(),
            format!("cannot read {}/{shown}", folder.path().display())
        );
        assert!(std::error::Error::source(&err).is_some());
    }
}

#[test]
fn no_more_of_a_file_is_read_than_it_may_have() {
    let endless = Path::new("/dev/zero");
    let err = Config::read(endless).unwrap_err().to_string();
    assert!(err.contains("it is over 1048576 bytes"), "{err}");
}

#[track_caller]
fn printed(args: &[&str]) -> String {
    let output = portent(args);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), &*stderr), (Some(0), ""));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_printed_default_is_read_back_as_every_default() {
    let printed = printed(&["config", "default"]);
    assert_eq!(Config::parse(printed.as_bytes()), Ok(Config::example()));
    insta::assert_snapshot!("default", printed);
}

#[test]
fn the_printed_schema_is_the_published_one() {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    let published = manifest.join("../docs/schema/config.schema.json");
    let published = fs::read_to_string(published).unwrap();
    let printed = printed(&["config", "schema"]);
    assert!(printed == published, "docs/schema has another:\n{printed}");
}

#[test]
fn the_file_that_is_deployed_is_valid() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../deploy/kustomize/example/portent/portent.yaml");
    Config::read(&path).unwrap();
}
