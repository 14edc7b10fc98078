//! Files, folders and links as they are found on a disk, read through what the
//! library shows.

#![allow(clippy::unwrap_used, reason = "a test says what went wrong by failing")]

use std::{
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::atomic::Ordering::Relaxed,
};

use flate2::{Compression, write::GzEncoder};
use portent::{
    record::Rejected,
    replay::input::{self, Item, Origin, Problem, Reader},
};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

/// The names of the Events, and what else there was.
#[derive(Debug, Default)]
struct Read {
    names: Vec<String>,
    problems: Vec<String>,
    n_foreign: usize,
}

impl Reader for Read {
    fn item(&mut self, item: Item<'_>) -> Result<(), Rejected> {
        let (Item::Put(event) | Item::Deleted(event)) = item;
        self.names.push(event.metadata.name.to_string());
        Ok(())
    }

    fn pod(
        &mut self,
        _: portent::pods::decode::WirePod<'_>,
    ) -> Result<(), portent::pods::decode::Rejected> {
        unreachable!("no input is said to hold Pods")
    }

    fn problem(&mut self, problem: Problem) {
        self.problems.push(problem.to_string());
    }

    fn refused(&mut self, problem: Problem) {
        self.problems.push(problem.to_string());
    }

    fn foreign(&mut self) {
        self.n_foreign += 1;
    }

    fn is_stopped(&self) -> bool {
        false
    }
}

fn fixture(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    fs::read(folder.join(name)).unwrap()
}

/// An Event of this name, on a line.
fn event(name: &str) -> String {
    format!(
        r#"{{"kind":"Event","metadata":{{"name":"{name}","namespace":"ns"}},"regarding":{{"kind":"Pod","name":"p","namespace":"ns"}}}}"#
    ) + "\n"
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut to = GzEncoder::new(Vec::new(), Compression::fast());
    to.write_all(text).unwrap();
    to.finish().unwrap()
}

fn zstd(text: &[u8]) -> Vec<u8> {
    compress_to_vec(text, CompressionLevel::Fastest)
}

/// A folder with these files, and the folders that they are in.
fn folder(files: &[(&str, &[u8])]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    folder
}

/// Reads all that the paths lead to. What cannot be opened is a problem.
fn read_all(paths: &[PathBuf]) -> Read {
    let mut all = Read::default();
    for source in &input::sources(paths).unwrap() {
        let read = source
            .open()
            .and_then(|it| input::read(it, &mut all, source.origin()));
        if let Err(err) = read {
            all.problems.push(err.to_string());
        }
    }
    all
}

/// The names of what the paths lead to, from the folder on.
fn names(folder: &Path, paths: &[PathBuf]) -> Vec<String> {
    let sources = input::sources(paths).unwrap();
    let from = format!("{}/", folder.display());
    sources
        .iter()
        .map(|it| it.name().replace(&from, ""))
        .collect()
}

#[test]
fn a_folder_is_read_in_the_order_of_its_paths() {
    let file = event("x");
    let file = file.as_bytes();
    let folder = folder(&[
        ("b.json", file),
        ("a/z.yaml", file),
        ("a/b/events.jsonl.gz", file),
        ("a.yml", file),
        ("c/EVENTS.JSON.ZST", file),
        ("c/events.ndjson", file),
        ("c/events.log", file),
        ("c/json", file),
        ("events.json.bak", file),
        ("d/deep/er/.json", file),
    ]);
    let path = folder.path();
    let want = [
        "a/b/events.jsonl.gz",
        "a/z.yaml",
        "a.yml",
        "b.json",
        "c/EVENTS.JSON.ZST",
        "c/events.ndjson",
        "d/deep/er/.json",
    ];
    assert_eq!(names(path, &[path.to_owned()]), want);
    // Named ones come where they are named, whatever they are called.
    let paths = ["c/events.log", "d", "c/json", "a"].map(|it| path.join(it));
    let want = [
        "c/events.log",
        "d/deep/er/.json",
        "c/json",
        "a/b/events.jsonl.gz",
        "a/z.yaml",
    ];
    assert_eq!(names(path, &paths), want);
    assert_eq!(names(path, &[path.join("d/deep/er")]), ["d/deep/er/.json"]);
    assert_eq!(names(path, &[]), [""; 0]);
}

#[test]
fn a_must_gather_gives_its_events_and_counts_the_rest() {
    let folder = folder(&[
        (
            "namespaces/team-a/core/events.yaml",
            &fixture("list-core.yaml"),
        ),
        ("namespaces/team-a/core/pods.yaml", &fixture("pods.yaml")),
        (
            "namespaces/team-b/core/events.yaml.gz",
            &gzip(&fixture("eventlist.yaml")),
        ),
        (
            "namespaces/team-b/core/more.json.zst",
            &zstd(event("more").as_bytes()),
        ),
        ("cluster/version.json", b"{\"version\": \"1.36\"}"),
        ("cluster/empty.yaml", b"---\n"),
        ("cluster/log.txt", b"garbage"),
    ]);
    let all = read_all(&[folder.path().to_owned()]);
    assert_eq!(all.problems, [""; 0]);
    assert_eq!((all.names.len(), all.n_foreign), (6 + 6 + 1, 2 + 1));
    assert_eq!(all.names[12], "more");
    // Who names a file says that it holds Events.
    let named = read_all(&[folder.path().join("namespaces/team-a/core/pods.yaml")]);
    assert_eq!(
        named.problems,
        [
            "line 4, column 1: a Pod, not an Event",
            "line 19, column 1: a Pod, not an Event"
        ]
    );
}

#[test]
fn a_file_that_is_broken_costs_no_other() {
    let lines: String = (0..100).map(|it| event(&format!("e{it}"))).collect();
    let packed = gzip(lines.as_bytes());
    let folder = folder(&[
        ("1.json", event("a").as_bytes()),
        ("2.json.gz", &packed[..packed.len() / 2]),
        ("3.json.gz", &[0x1f, 0x8b, 8]),
        ("4.json", b"{"),
        ("5.json", b""),
        ("6.json", event("z").as_bytes()),
    ]);
    let all = read_all(&[folder.path().to_owned()]);
    assert_eq!(all.names.first().unwrap(), "a");
    assert_eq!(all.names.last().unwrap(), "z");
    assert!(
        10 < all.names.len() && all.names.len() < 100,
        "{}",
        all.names.len()
    );
    assert_eq!(all.problems.len(), 3, "{:?}", all.problems);
    assert!(all.problems[0].contains("cut off: "), "{:?}", all.problems);
    assert_eq!(
        all.problems[2],
        "line 1, column 1: cut off: EOF while parsing an object"
    );
}

#[test]
fn a_path_that_is_not_there_is_named_before_anything_is_read() {
    let folder = folder(&[("a.json", event("a").as_bytes())]);
    let there = folder.path().join("a.json");
    let err = input::sources(&[there, "no-such\u{1b}file.json".into()]).unwrap_err();
    assert_eq!(err.to_string(), "cannot read no-such\\u{1b}file.json");
    let why = std::error::Error::source(&err).unwrap();
    assert!(why.to_string().contains("No such file"), "{why}");
}

#[test]
fn a_source_knows_its_size_and_how_much_was_read() {
    let text = event("a").repeat(1_000);
    let packed = gzip(text.as_bytes());
    let folder = folder(&[("a.json", text.as_bytes()), ("b/b.json.gz", &packed)]);
    let paths = ["a.json", "b"].map(|it| folder.path().join(it));
    let sources = input::sources(&paths).unwrap();
    let n_bytes = (text.len() + packed.len()) as u64;
    assert_eq!(sources.n_bytes(), Some(n_bytes));
    let origins: Vec<_> = sources.iter().map(input::Source::origin).collect();
    assert_eq!(origins, [Origin::Named, Origin::Found]);
    let n_read = sources.n_read();
    let mut all = Read::default();
    for (source, want) in sources.iter().zip([text.len() as u64, n_bytes]) {
        let from = source.open().unwrap();
        input::read(from, &mut all, source.origin()).unwrap();
        assert_eq!(n_read.load(Relaxed), want);
    }
    assert_eq!(all.names.len(), 2_000);

    let sources = input::sources(&["-".into(), paths[0].clone()]).unwrap();
    let names: Vec<_> = sources.iter().map(input::Source::name).collect();
    assert_eq!(names[0], "standard input");
    assert_eq!(sources.n_bytes(), None);
}

#[test]
fn what_is_opened_may_be_read_on_another_thread() {
    fn is_sendable(_: &(impl io::Read + Send + 'static)) {}
    let folder = folder(&[("a.json.zst", &zstd(event("a").as_bytes()))]);
    let sources = input::sources(&[folder.path().to_owned()]).unwrap();
    let from = sources.iter().next().unwrap().open().unwrap();
    is_sendable(&from);
    assert_eq!(io::read_to_string(from).unwrap(), event("a"));
}

#[cfg(unix)]
mod links {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_links_lead_to_is_read_once() {
        let folder = folder(&[
            ("a/events.json", event("a").as_bytes()),
            ("elsewhere/b.json", event("b").as_bytes()),
        ]);
        let path = folder.path();
        let link = |to: &str, at: &str| symlink(to, path.join(at)).unwrap();
        link("..", "a/up");
        link(".", "a/here");
        link("../elsewhere", "a/in");
        link("events.json", "a/same.json");
        link("loop.json", "a/loop.json");
        link("nowhere", "a/gone");
        // As a ConfigMap is mounted.
        link("a", "..data");
        link("..data/events.json", "events.json");
        let all = read_all(&[path.to_owned()]);
        assert_eq!(all.names, ["a", "b"]);
        // A link with the name of a recording that leads nowhere is told.
        assert_eq!(all.problems.len(), 1, "{:?}", all.problems);
        // A file that is named is not found as well.
        let paths = [path.join("elsewhere/b.json"), path.to_owned()];
        assert_eq!(read_all(&paths).names, ["b", "a"]);
        let err = input::sources(&[path.join("a/loop.json")]).unwrap_err();
        assert!(err.to_string().ends_with("a/loop.json"), "{err}");
    }

    #[test]
    fn a_folder_that_cannot_be_read_says_so() {
        use std::os::unix::fs::PermissionsExt as _;

        let folder = folder(&[
            ("a.json", event("a").as_bytes()),
            ("b/b.json", event("b").as_bytes()),
            ("c.json", event("c").as_bytes()),
        ]);
        let locked = folder.path().join("b");
        let allow = |mode| fs::set_permissions(&locked, fs::Permissions::from_mode(mode)).unwrap();
        allow(0);
        let all = read_all(&[folder.path().to_owned()]);
        allow(0o700);
        // Root reads everything.
        if all.names != ["a", "b", "c"] {
            assert_eq!(all.names, ["a", "c"]);
            assert_eq!(all.problems, ["Permission denied (os error 13)"]);
        }
    }
}
