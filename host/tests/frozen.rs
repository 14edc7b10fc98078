//! Guests that were built for a published contract and lie here as they were: today's host takes them, and hears the
//! same from them as on the day on which they were made.
//!
//! `frozen/README.md` lists them with their digests. Nothing here builds a guest.

#![allow(clippy::unwrap_used, reason = "a test says what went wrong by failing")]

mod support;

use std::{
    collections::BTreeMap,
    env,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;
use sha2::{Digest as _, Sha256};
use support::{directory, portent};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/frozen")
}

/// The files that never change, and their digests, as the page lists them.
fn listed() -> BTreeMap<String, String> {
    let page = fs::read_to_string(folder().join("README.md")).unwrap();
    let rows = page.lines().filter_map(|it| it.strip_prefix("| `"));
    let rows = rows.map(|row| {
        let mut cells = row.split('`');
        let file = cells.next().unwrap().to_owned();
        (file, cells.nth(1).unwrap().to_owned())
    });
    rows.collect()
}

/// The folders of the versions.
fn versions() -> Vec<String> {
    let entries = fs::read_dir(folder()).unwrap().map(|it| it.unwrap());
    let folders = entries.filter(|it| it.path().is_dir());
    let mut versions: Vec<_> = folders
        .map(|it| it.file_name().into_string().unwrap())
        .collect();
    versions.sort();
    versions
}

#[test]
fn every_frozen_file_is_listed_and_is_what_it_was() {
    let mut listed = listed();
    for version in versions() {
        for entry in fs::read_dir(folder().join(&version)).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if name.ends_with(".expect.json") {
                continue;
            }
            let file = format!("{version}/{name}");
            let digest = format!("{:x}", Sha256::digest(fs::read(&path).unwrap()));
            assert_eq!(listed.remove(&file), Some(digest), "{file}, in README.md");
        }
    }
    assert_eq!(listed, BTreeMap::new(), "these are gone");
}

#[test]
fn every_published_contract_has_frozen_guests() {
    let published = Path::new(env!("CARGO_MANIFEST_DIR")).join("../wit/published");
    let entries = fs::read_dir(published).unwrap();
    let mut published: Vec<_> = entries
        .map(|it| it.unwrap().file_name().into_string().unwrap())
        .collect();
    published.sort();
    assert_eq!(versions(), published);
}

#[test]
fn todays_host_takes_every_frozen_guest_and_hears_from_it_what_it_always_said() {
    let guests: Vec<_> = listed()
        .into_keys()
        .filter(|it| Path::new(it).extension() == Some(OsStr::new("wasm")))
        .collect();
    assert!(!guests.is_empty());
    for guest in guests {
        let path = folder().join(&guest);
        let said = said_by(&path);
        let path = path.with_extension("expect.json");
        if env::var_os("PORTENT_BLESS").is_some() {
            let text = format!("{}\n", serde_json::to_string_pretty(&said).unwrap());
            fs::write(path, text).unwrap();
            continue;
        }
        let expected = fs::read(&path).unwrap();
        let expected: Value = serde_json::from_slice(&expected).unwrap();
        assert_eq!(said, expected, "{guest}");
    }
}

/// What it says, alone, with its settings if it has any, of the recording that all are given.
fn said_by(guest: &Path) -> Value {
    let mut files = vec![("guest.wasm", fs::read(guest).unwrap())];
    if let Ok(settings) = fs::read(guest.with_extension("yaml")) {
        files.push(("guest.yaml", settings));
    }
    let plugins = directory(files);
    let (pods, events) = (folder().join("pods.json"), folder().join("events.json"));
    let output = portent([
        "replay".as_ref(),
        "--strict".as_ref(),
        "--plugins".as_ref(),
        plugins.path().as_os_str(),
        "--pods".as_ref(),
        pods.as_os_str(),
        "-o".as_ref(),
        "json".as_ref(),
        events.as_os_str(),
    ]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    let shown = guest.display();
    assert_eq!(output.status.code(), Some(0), "{shown}: {stderr}");
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_ne!(said, Value::Array(Vec::new()), "{shown} says nothing");
    said
}
