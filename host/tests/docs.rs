//! What the pages say, done: their files build, and their commands print what they show.
//!
//! `docs/writing-a-plugin.md` is followed from its top to its end, as an author would. The first word
//! behind a fence says what its block is, and `file=` where it goes: a file, `diff` for a change of one,
//! `sh` for commands, `text` for what the last of them prints. A command that is not known here fails.

#![allow(clippy::unwrap_used, reason = "a test says what went wrong by failing")]

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use portent::{
    config::{Config, Key},
    plugins::State,
    reason::{Reason, Step},
};
use serde_json::Value;

const PAGES: [&str; 17] = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "deploy/README.md",
    "docs/benchmarks.md",
    "docs/configuration.md",
    "docs/explain.md",
    "docs/gpu-faults.md",
    "docs/plugins.md",
    "docs/running.md",
    "docs/replay.md",
    "docs/writing-a-plugin.md",
    "host/tests/frozen/README.md",
    "plugins/hostile/README.md",
    "testbed/README.md",
    "wit/README.md",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

#[track_caller]
fn page(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap_or_else(|err| panic!("{name}: {err}"))
}

/// A fenced block of a page.
struct Block {
    /// Of its fence, from 1.
    line: usize,
    /// What it is, for example `sh`.
    kind: String,
    /// Where it goes.
    file: Option<String>,
    text: String,
}

fn blocks(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for (line, text) in (1..).zip(page.lines()) {
        match (text.strip_prefix("```"), &mut open) {
            (None, None) => {}
            (None, Some(block)) => block.text.extend([text, "\n"]),
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(info), None) => {
                let mut words = info.split(' ');
                let kind = words.next().unwrap_or_default().to_owned();
                let file = words
                    .find_map(|it| it.strip_prefix("file="))
                    .map(str::to_owned);
                open = Some(Block {
                    line,
                    kind,
                    file,
                    text: String::new(),
                });
            }
        }
    }
    assert!(open.is_none(), "a block is not closed");
    blocks
}

const AUTHORS_PAGE: &str = "docs/writing-a-plugin.md";

#[test]
fn the_page_for_authors_can_be_followed_to_its_end() {
    let mut author = Author::new();
    let mut printed = String::new();
    let mut n_compared = 0;
    for block in blocks(&page(AUTHORS_PAGE)) {
        let Block {
            line,
            kind,
            file,
            text,
        } = block;
        match (kind.as_str(), file) {
            ("diff", Some(file)) => author.edit(&file, &text),
            (_, Some(file)) => author.write(&file, &text),
            ("sh", None) => {
                for command in text.lines() {
                    printed = author.run(command);
                }
            }
            ("text", None) => {
                check_printed(&format!("{AUTHORS_PAGE}, line {line}"), &text, &printed);
                n_compared += 1;
            }
            (kind, None) => panic!("{AUTHORS_PAGE}, line {line}: what is to be done with {kind}?"),
        }
    }
    assert!(0 < n_compared, "{AUTHORS_PAGE} shows no output");
}

/// Whoever follows the page. The crate is a workspace of its own below `target`, always at the same
/// place, so that cargo knows it from one run of the test to the next.
struct Author {
    folder: PathBuf,
    /// The files as the page has them.
    files: BTreeMap<String, String>,
}

/// What the page calls the SDK in the checkout beside the crate.
const SDK: &str = "../portent/guest-sdk";

impl Author {
    fn new() -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("docs/eviction");
        if folder.exists() {
            fs::remove_dir_all(&folder).unwrap();
        }
        fs::create_dir_all(&folder).unwrap();
        // With the versions that the host's tests were run with, so that nothing has to be looked up.
        fs::copy(root().join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
        Self {
            folder,
            files: BTreeMap::new(),
        }
    }

    fn write(&mut self, file: &str, text: &str) {
        let mut on_disk = text.to_owned();
        if file == "Cargo.toml" {
            assert_eq!(
                text.matches(SDK).count(),
                1,
                "{file} does not name {SDK} once"
            );
            let sdk = root().join("guest-sdk").canonicalize().unwrap();
            on_disk = text.replace(SDK, &sdk.display().to_string());
            on_disk.push_str("\n[workspace]\n");
        }
        let path = self.folder.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, on_disk).unwrap();
        self.files.insert(file.to_owned(), text.to_owned());
    }

    /// Does what a diff says. Its hunks are told apart by `@@`.
    fn edit(&mut self, file: &str, diff: &str) {
        let mut text = self
            .files
            .get(file)
            .unwrap_or_else(|| panic!("no {file} yet"))
            .clone();
        for hunk in diff.split("@@\n") {
            let side = |other: char| -> String {
                let lines = hunk.lines().filter(|it| !it.starts_with(other));
                lines
                    .flat_map(|it| [it.get(1..).unwrap_or_default(), "\n"])
                    .collect()
            };
            let (old, new) = (side('+'), side('-'));
            assert_eq!(
                text.matches(&old).count(),
                1,
                "{file} does not have this once:\n{old}"
            );
            text = text.replace(&old, &new);
        }
        self.write(file, &text);
    }

    /// What a command of the page prints on stdout.
    fn run(&self, command: &str) -> String {
        let words: Vec<_> = command.split(' ').collect();
        match words[..] {
            ["cargo", "test"] => self.test(),
            // For this one the machine may have no target. xtask runs it with whichever compiler does.
            ["cargo", "build", "--release", "--target", target] => {
                self.xtask_plugins(&self.folder.join("by-xtask"));
                let module = Path::new(target).join("release/eviction.wasm");
                let here = self.folder.join("target").join(&module);
                fs::create_dir_all(here.parent().unwrap()).unwrap();
                fs::copy(root().join("target/guests").join(module), here).unwrap();
                String::new()
            }
            ["cargo", "xtask", "plugins", ref rest @ ..] => {
                let out = [
                    "--manifest-path",
                    "../eviction/Cargo.toml",
                    "--out",
                    "../eviction/plugins",
                ];
                assert_eq!(*rest, out, "{command}");
                self.xtask_plugins(&self.folder.join("plugins"));
                String::new()
            }
            ["portent", "plugin", "componentize", ref rest @ ..] => {
                self.portent(&[&["plugin", "componentize"], rest].concat(), 0);
                let read = |folder: &str| fs::read(self.folder.join(folder).join("eviction.wasm"));
                assert!(
                    read("plugins").unwrap() == read("by-xtask").unwrap(),
                    "the page's two ways to a component do not lead to one"
                );
                String::new()
            }
            ["portent", "plugin", "check", ..] => {
                let output = output_of(portent(&words[1..]).current_dir(&self.folder));
                let [stdout, stderr] = texts(&output);
                let code = i32::from(!stdout.contains(": would be loaded"));
                assert_eq!(output.status.code(), Some(code), "{stdout}\n{stderr}");
                stdout
            }
            ["portent", ref rest @ ..] => self.portent(rest, 0),
            _ => panic!("`{command}`: nobody here knows how to run it"),
        }
    }

    fn test(&self) -> String {
        let mut tests = Command::new(env!("CARGO"));
        tests.arg("test").current_dir(&self.folder);
        tests.env("CARGO_TARGET_DIR", self.folder.with_file_name("target"));
        let printed = stdout_of(&mut tests, 0);
        let n_written = self
            .files
            .values()
            .map(|it| it.matches("#[test]").count())
            .sum::<usize>();
        let passed = format!("test result: ok. {n_written} passed");
        assert!(
            0 < n_written && printed.contains(&passed),
            "not `{passed}`:\n{printed}"
        );
        printed
    }

    fn xtask_plugins(&self, out: &Path) {
        let mut xtask = Command::new(env!("CARGO"));
        xtask
            .current_dir(root())
            .args(["xtask", "plugins", "--manifest-path"]);
        xtask
            .arg(self.folder.join("Cargo.toml"))
            .arg("--out")
            .arg(out);
        // The host is built already, and must not be built while other tests use it.
        stdout_of(xtask.env("PORTENT", env!("CARGO_BIN_EXE_portent")), 0);
    }

    fn portent(&self, args: &[&str], code: i32) -> String {
        stdout_of(portent(args).current_dir(&self.folder), code)
    }
}

/// The binary, with nothing of this environment in its own.
fn portent(args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
    let mut portent = Command::new(env!("CARGO_BIN_EXE_portent"));
    portent.args(args).env_clear();
    portent
}

/// What a command prints on stdout, provided that it exits with this code.
#[track_caller]
fn stdout_of(command: &mut Command, code: i32) -> String {
    let output = output_of(command);
    let [stdout, stderr] = texts(&output);
    assert_eq!(
        output.status.code(),
        Some(code),
        "{command:?} wrote:\n{stdout}\n{stderr}"
    );
    stdout
}

#[track_caller]
fn output_of(command: &mut Command) -> Output {
    command
        .output()
        .unwrap_or_else(|err| panic!("{command:?}: {err}"))
}

fn texts(output: &Output) -> [String; 2] {
    [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it).into_owned())
}

/// What is shown is what is printed, line by line, but for spaces at the ends of lines.
#[track_caller]
fn check_printed(place: &str, shown: &str, printed: &str) {
    let is_same = shown.trim_end().lines().count() == printed.trim_end().lines().count()
        && shown
            .lines()
            .zip(printed.lines())
            .all(|(shown, printed)| is_shown(shown, printed));
    assert!(
        is_same,
        "{place} shows\n{shown}\nand this is printed:\n{printed}"
    );
}

/// Whether a line of a page shows this line; `...` stands for any text.
fn is_shown(shown: &str, printed: &str) -> bool {
    let mut rest = printed.trim_end();
    let (first, others) = match shown.trim_end().split_once("...") {
        None => return shown.trim_end() == rest,
        Some((first, others)) => (first, others),
    };
    let Some(behind) = rest.strip_prefix(first) else {
        return false;
    };
    rest = behind;
    let mut parts: Vec<_> = others.split("...").collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        let Some((_, behind)) = rest.split_once(part) else {
            return false;
        };
        rest = behind;
    }
    rest.ends_with(last)
}

#[test]
fn what_stands_for_any_text_matches_any_text_and_no_more() {
    for (shown, printed, want) in [
        ("size  ...", "size  77532 bytes", true),
        ("a:...: b...", "a:12:5: b c", true),
        ("a:...: b...", "a:12:5 b c", false),
        ("same", "same  ", true),
        ("same", "same here", false),
        ("...end", "the end", true),
        ("...end", "the end.", false),
    ] {
        assert_eq!(is_shown(shown, printed), want, "{shown:?}, {printed:?}");
    }
}

/// Where `cargo xtask plugins` leaves the plugins of this checkout.
fn plugins() -> PathBuf {
    let built = env::var_os("PORTENT_TEST_PLUGINS")
        .map_or_else(|| root().join("target/plugins"), PathBuf::from);
    assert!(
        built.join("gpu-fault.wasm").exists(),
        "there are no plugins in {}: run `cargo xtask plugins` first",
        built.display()
    );
    built
}

#[test]
fn the_readme_shows_what_the_demo_prints() {
    let recording = root().join("demo/recording.json");
    let args: [&OsStr; 4] = [
        "replay".as_ref(),
        "--plugins".as_ref(),
        plugins().into_os_string().leak(),
        recording.as_ref(),
    ];
    let output = output_of(&mut portent(args));
    let printed = texts(&output).concat();
    let shown = blocks(&page("README.md"))
        .into_iter()
        .find(|it| it.text.contains("SEVERITY"))
        .unwrap();
    for line in shown
        .text
        .lines()
        .filter(|it| !it.starts_with('$') && *it != "...")
    {
        assert!(
            printed.lines().any(|it| it.trim_end() == line),
            "README.md shows a line that is not printed:\n{line}"
        );
    }
}

#[test]
fn the_readme_shows_the_sdks_own_example() {
    let sdk = page("guest-sdk/src/lib.rs");
    let header = sdk.lines().map_while(|it| it.strip_prefix("//!"));
    let header: String = header
        .flat_map(|it| [it.strip_prefix(' ').unwrap_or(it), "\n"])
        .collect();
    let example = blocks(&header).into_iter().next().unwrap().text;
    let shown = blocks(&page("README.md"))
        .into_iter()
        .find(|it| it.kind == "rust")
        .unwrap()
        .text;
    assert!(
        example.starts_with(&shown),
        "README.md shows\n{shown}\nand the SDK\n{example}"
    );
}

#[test]
fn every_reason_code_is_listed_with_its_meaning_and_no_other() {
    let page = page("docs/replay.md");
    let (_, table) = page.split_once("| code | meaning |\n|---|---|\n").unwrap();
    let mut listed = table.lines().take_while(|it| it.starts_with('|'));
    for it in Reason::ALL {
        let want = format!("| `{it}` | {} |", it.meaning());
        assert_eq!(listed.next(), Some(&*want), "in docs/replay.md");
    }
    assert_eq!(listed.next(), None, "in docs/replay.md, and no such code");
}

#[test]
fn every_state_of_a_plugin_is_listed_with_its_meaning_and_no_other() {
    let page = page("docs/plugins.md");
    let (_, table) = page.split_once("| state | meaning |\n|---|---|\n").unwrap();
    let listed: Vec<_> = table.lines().take_while(|it| it.starts_with('|')).collect();
    let steps = Step::ALL.iter().map(|it| (it.as_str(), it.meaning()));
    let states = steps.chain(State::BEHIND);
    let wanted: Vec<_> = states
        .map(|(word, meaning)| format!("| `{word}` | {meaning} |"))
        .collect();
    assert_eq!(listed, wanted, "in docs/plugins.md");
}

/// The row of a key in the table of the page.
fn row(key: &Key) -> String {
    let range = key.range.as_ref();
    let range = range.map_or(String::new(), |(low, high)| format!("{low} to {high}"));
    let default = match key.default.as_deref() {
        None => "it has to be set".to_owned(),
        // A sentence, for what is no value.
        Some(it) if it.contains(' ') => it.to_owned(),
        Some(it) => format!("`{it}`"),
    };
    format!(
        "| `{}` | {} | {} | {default} | {range} | {} |",
        key.path,
        key.meaning,
        key.form,
        key.taken_up.as_str()
    )
}

#[test]
fn every_key_of_the_configuration_is_listed_as_it_is_and_no_other() {
    let page = page("docs/configuration.md");
    let head =
        "| key | what it decides | value | default | range | change |\n|---|---|---|---|---|---|\n";
    let (_, table) = page.split_once(head).unwrap();
    let listed: Vec<_> = table.lines().take_while(|it| it.starts_with('|')).collect();
    let wanted: Vec<_> = Config::keys().iter().map(row).collect();
    assert_eq!(
        listed,
        wanted,
        "docs/configuration.md should list:\n{}",
        wanted.join("\n")
    );
}

#[test]
fn the_configurations_of_the_page_are_good_or_have_the_problems_that_are_shown() {
    let blocks = blocks(&page("docs/configuration.md"));
    let (mut n_good, mut n_bad) = (0, 0);
    for (idx, block) in blocks.iter().enumerate() {
        if block.kind != "yaml" {
            continue;
        }
        let place = format!("docs/configuration.md, line {}", block.line);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("portent.yaml");
        fs::write(&file, &block.text).unwrap();
        match (Config::read(&file), blocks.get(idx + 1)) {
            (Ok(_), _) => n_good += 1,
            (Err(err), Some(shown)) if shown.kind == "text" => {
                let folder = format!("{}/", folder.path().display());
                check_printed(&place, &shown.text, &err.to_string().replace(&folder, ""));
                n_bad += 1;
            }
            (Err(err), _) => panic!("{place}: {err}"),
        }
    }
    assert_eq!((n_good, n_bad), (2, 1));
}

#[test]
fn every_key_of_the_output_is_explained() {
    for (name, page_name) in [
        ("replay", "docs/replay.md"),
        ("changes", "docs/replay.md"),
        ("explain", "docs/explain.md"),
    ] {
        // What an element is said to be in one place holds in the other.
        let page = page(page_name) + &page("docs/replay.md");
        let path = root().join(format!("docs/schema/{name}.schema.json"));
        let schema: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        let mut keys = BTreeSet::new();
        keys_of(&schema, &mut keys);
        assert!(10 < keys.len(), "{keys:?}");
        for it in keys {
            assert!(page.contains(&it), "{page_name} says nothing of `{it}`");
        }
    }
}

/// Every key that an object of the schema may have.
fn keys_of(schema: &Value, keys: &mut BTreeSet<String>) {
    match schema {
        Value::Object(map) => {
            for (key, value) in map {
                if let ("properties", Some(properties)) = (key.as_str(), value.as_object()) {
                    keys.extend(properties.keys().cloned());
                }
                keys_of(value, keys);
            }
        }
        Value::Array(items) => items.iter().for_each(|it| keys_of(it, keys)),
        _ => {}
    }
}

#[test]
fn the_map_of_the_code_has_every_module() {
    let map = page("ARCHITECTURE.md");
    assert!(
        map.lines().count() <= 200,
        "ARCHITECTURE.md is to be read in one go"
    );
    for entry in fs::read_dir(root().join("host/src")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let module = name.trim_end_matches(".rs");
        assert!(
            map.contains(&format!("`{module}`")) || module == "lib",
            "ARCHITECTURE.md lacks {module}"
        );
    }
}

#[test]
fn every_link_within_the_checkout_leads_somewhere() {
    let mut n_links = 0;
    for name in PAGES {
        let text = page(name);
        let folder = root().join(name).parent().unwrap().to_owned();
        // `[words](target)`; no page has parentheses in a target.
        for link in text
            .split("](")
            .skip(1)
            .filter_map(|it| it.split(')').next())
        {
            let file = link.split('#').next().unwrap_or_default();
            if file.is_empty() || link.contains("://") {
                continue;
            }
            n_links += 1;
            assert!(
                folder.join(file).exists(),
                "{name} links to {link}, which does not exist"
            );
        }
    }
    assert!(0 < n_links);
}

#[test]
fn the_pages_are_about_no_machine_in_particular() {
    let here = root().canonicalize().unwrap();
    for name in PAGES {
        let text = page(name);
        for it in [here.as_path(), here.parent().unwrap()] {
            let it = format!("{}/", it.display());
            assert!(it == "/" || !text.contains(&it), "{name} names {it}");
        }
    }
}
