//! What is read of a plugin folder, before any guest is called.

use std::fmt::Write as _;

use super::*;
use crate::sandbox::Limits;

/// A folder with these files.
fn folder(files: &[(&str, &[u8])]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        fs::write(folder.path().join(name), bytes).unwrap();
    }
    folder
}

/// What is read of a settings file that holds this. In a failure the folder's
/// path is left out.
fn settings(yaml: &[u8]) -> Result<String, (Reason, String)> {
    let folder = folder(&[("it.yaml", yaml)]);
    let read = Settings::read(&folder.path().join("it.wasm"));
    let json = read.map(|it| it.json().to_owned());
    json.map_err(|it| (it.reason, it.message))
}

#[track_caller]
fn check(yaml: &str, want: &str) {
    assert_eq!(settings(yaml.as_bytes()).as_deref(), Ok(want), "{yaml}");
}

#[track_caller]
fn check_refused(yaml: impl AsRef<[u8]>, reason: Reason, message: &str) {
    let want = (reason, format!("it.yaml:{message}"));
    assert_eq!(settings(yaml.as_ref()), Err(want));
}

#[test]
fn no_settings_are_the_empty_ones() {
    let none = folder(&[]);
    let read = Settings::read(&none.path().join("it.wasm")).unwrap();
    assert_eq!(read.json(), "{}");
    for empty in [
        "",
        "\n",
        "# a comment\n",
        "---",
        "---\n...\n",
        "null",
        "~",
        "{}",
        "\u{feff}",
    ] {
        check(empty, "{}");
    }
}

#[test]
fn a_mapping_becomes_the_same_in_json() {
    check("a: 1", r#"{"a":1}"#);
    check("\u{feff}a: 1\r\nb: x\r\n", r#"{"a":1,"b":"x"}"#);
    check(
        "b: 2\na: {d: [1, x, \"2\"], c: ~}",
        r#"{"a":{"c":null,"d":[1,"x","2"]},"b":2}"#,
    );
    check("{\"a\": \"json \\u00fc\"}", r#"{"a":"json ü"}"#);
    check("a: |\n  two\n  lines\n", r#"{"a":"two\nlines\n"}"#);
    check("a: &x [1]", r#"{"a":[1]}"#);
    check("79: a", r#"{"79":"a"}"#);
    check(
        "a: 18446744073709551615\nb: -1\nc: 0.5",
        r#"{"a":18446744073709551615,"b":-1,"c":0.5}"#,
    );
}

#[test]
fn what_only_looks_like_a_word_of_json_is_a_text_and_what_is_a_number_is_that_number() {
    // YAML 1.1 has booleans and dates that nobody meant.
    check(
        "a: on\nb: off\nc: yes\nd: n\ne: True\nf: 2026-01-01\ng: 12:30:45\nh: .inf\ni: .nan",
        r#"{"a":"on","b":"off","c":"yes","d":"n","e":true,"f":"2026-01-01","g":"12:30:45","h":".inf","i":".nan"}"#,
    );
    check(
        "a: 0x1f\nb: 1e3\nc: 010\nd: 1_000\ne: +1\nf: 1.50\ng: -0\nh: \"63\"",
        r#"{"a":31,"b":1000.0,"c":"010","d":"1_000","e":1,"f":1.5,"g":-0.0,"h":"63"}"#,
    );
    check(
        "63: a\n0x3f: b\ntrue: c\non: d\n1.0: e",
        r#"{"0x3f":"b","1.0":"e","63":"a","on":"d","true":"c"}"#,
    );
}

#[test]
fn settings_that_are_no_mapping_are_refused_with_what_to_write() {
    let message = "settings are a mapping of keys to values, for example `key: value`";
    for yaml in ["- a", "[]", "7", "text", "true", "xid 79", "\"a: 1\""] {
        check_refused(yaml, Reason::SettingsInvalid, &format!("1:1: {message}"));
    }
}

#[test]
fn what_is_no_yaml_is_named_by_its_place() {
    let invalid = |yaml, message| check_refused(yaml, Reason::SettingsInvalid, message);
    invalid("a: 1\nb: [", "2:4: this is no YAML: unclosed bracket '['");
    invalid("a: 1\n\nb: 'x", "3:4: this is no YAML: unclosed quote");
    invalid("a: 1\na: 2", "2:1: `a` is there twice: write it once");
    invalid(
        "63: 1\n\"63\": 2",
        "2:1: `63` is there twice: write it once",
    );
    invalid("? [a]\n: 1", "1:3: this is no key: write a word");
    invalid(
        "a: &x 1\nb: *x",
        "2:4: this is an alias, which is not followed: write out what it stands for",
    );
    invalid(
        "a: 1\n---\nb: 2",
        "2:1: a second document begins here: write one into a file",
    );
    let message = "2:4: a byte here is no UTF-8: save the file as UTF-8";
    check_refused(b"a: 1\nb: \xff", Reason::SettingsInvalid, message);
}

#[test]
fn what_settings_say_is_shown_on_one_line_and_bounded() {
    let hostile = "a\u{202e}b\u{200b}: 1\n";
    let (_, message) = settings(hostile.repeat(2).as_bytes()).unwrap_err();
    assert!(message.contains("`a\\u{202e}b\\u{200b}`"), "{message}");
    let long = format!("{}: 1\n", "x".repeat(900));
    for yaml in [
        long.repeat(2),
        "a: \u{1b}[31m".to_owned(),
        format!("a: {}", "[".repeat(5_000)),
    ] {
        let (reason, message) = settings(yaml.as_bytes()).unwrap_err();
        assert_eq!(reason, Reason::SettingsInvalid);
        assert!(message.len() < 600, "{message}");
        assert!(!message.chars().any(char::is_control), "{message}");
    }
}

#[test]
fn settings_are_read_up_to_a_mebibyte() {
    let mut yaml = b"a: 1 #".to_vec();
    yaml.resize(1 << 20, b' ');
    assert_eq!(settings(&yaml).as_deref(), Ok(r#"{"a":1}"#));
    yaml.push(b' ');
    let message = " 1048577 bytes, settings may have 1048576";
    check_refused(yaml, Reason::TooLarge, message);
}

#[test]
fn settings_of_few_bytes_that_would_become_many_are_refused() {
    let mut laughs = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n".to_owned();
    for it in 1..9 {
        let nine = vec![format!("*a{}", it - 1); 9].join(",");
        writeln!(laughs, "a{it}: &a{it} [{nine}]").unwrap();
    }
    let (reason, _) = settings(laughs.as_bytes()).unwrap_err();
    assert_eq!(reason, Reason::SettingsInvalid);
}

fn load(folder: &Path) -> io::Result<PluginSet> {
    let mut limits = Limits::default();
    limits.set("component-bytes", "1024").unwrap();
    PluginSet::load(&Sandbox::new(limits).unwrap(), folder)
}

/// Wants no plugin loaded, and these files refused, in this order.
#[track_caller]
fn check_failed(folder: &Path, want: &[(&str, Reason, &str)]) {
    let set = load(folder).unwrap();
    assert!(set.plugins.is_empty());
    assert_eq!(set.generation, Generation(1));
    let failed = set.failed.iter().map(|(path, it)| {
        let name = path.strip_prefix(folder).unwrap().to_str().unwrap();
        (name, it.reason, it.message.as_str())
    });
    for (failed, want) in failed.clone().zip(want) {
        assert_eq!((failed.0, failed.1), (want.0, want.1));
        assert!(failed.2.contains(want.2), "{failed:?}");
    }
    assert_eq!(failed.count(), want.len());
}

#[test]
fn a_folder_without_plugins_gives_none() {
    check_failed(folder(&[]).path(), &[]);
    let other = [
        ("it.yaml", &b"a: 1"[..]),
        ("README.md", b""),
        ("wasm", b""),
        ("it.wasm.bak", b""),
    ];
    check_failed(folder(&other).path(), &[]);
    let missing = folder(&[]).path().join("missing");
    assert_eq!(load(&missing).unwrap_err().kind(), io::ErrorKind::NotFound);
}

#[test]
fn each_plugin_that_cannot_be_loaded_is_told_in_order_of_its_name() {
    let folder = folder(&[
        ("d.wasm", b"\0asm\x01\0\0\0"),
        ("a.wasm", b"no component"),
        ("c.wasm", &[0; 1_025]),
        ("b.wasm", &[0; 1_024]),
        // Its settings are read before it is compiled.
        ("e.wasm", b""),
        ("e.yaml", b"- not a mapping"),
        ("f.wasm", b""),
    ]);
    fs::create_dir(folder.path().join("g.wasm")).unwrap();
    fs::create_dir(folder.path().join("f.yaml")).unwrap();
    check_failed(
        folder.path(),
        &[
            ("a.wasm", Reason::NotAComponent, ""),
            ("b.wasm", Reason::NotAComponent, ""),
            (
                "c.wasm",
                Reason::TooLarge,
                "1025 bytes, the limit component-bytes is 1024",
            ),
            ("d.wasm", Reason::NotAComponent, ""),
            (
                "e.wasm",
                Reason::SettingsInvalid,
                "e.yaml:1:1: settings are a mapping",
            ),
            (
                "f.wasm",
                Reason::ReadFailed,
                "f.yaml: it is no regular file",
            ),
            ("g.wasm", Reason::ReadFailed, "it is no regular file"),
        ],
    );
}

#[cfg(unix)]
#[test]
fn what_has_no_end_is_not_read() {
    let folder = folder(&[]);
    // A regular file by its name, a device behind it.
    std::os::unix::fs::symlink("/dev/null", folder.path().join("a.wasm")).unwrap();
    std::os::unix::fs::symlink("missing", folder.path().join("b.wasm")).unwrap();
    check_failed(
        folder.path(),
        &[
            ("a.wasm", Reason::ReadFailed, "it is no regular file"),
            ("b.wasm", Reason::ReadFailed, ""),
        ],
    );
}
