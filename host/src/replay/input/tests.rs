//! Each form in which Events are recorded gives the items that it should. What
//! is wrong with an input is in `broken`.

use serde_json::{Value, json};

use super::*;
use crate::interner::Interner;
use crate::record::{Caps, ObjectKey, Record};

mod broken;
mod compressed;
mod damaged;
mod kinds;
mod random;
mod streams;
mod yaml;

/// What was read of an input.
#[derive(Debug, Default, PartialEq)]
struct Read {
    /// Names of Events: `+` for one that exists, `-` for one that is deleted.
    items: Vec<String>,
    records: Vec<(ObjectKey, Record)>,
    problems: Vec<Problem>,
    refused: Vec<Problem>,
    n_foreign: usize,
    /// How many items are enough.
    stops_at: Option<usize>,
}

impl Reader for Read {
    fn item(&mut self, item: Item<'_>) -> Result<(), Rejected> {
        let (sign, event) = match &item {
            Item::Put(event) => ('+', event),
            Item::Deleted(event) => ('-', event),
        };
        self.items.push(format!("{sign}{}", &*event.metadata.name));
        self.records.push(Record::pare_down(
            event,
            Caps::default(),
            &Interner::default(),
        )?);
        Ok(())
    }

    fn pod(
        &mut self,
        _: crate::pods::decode::WirePod<'_>,
    ) -> Result<(), crate::pods::decode::Rejected> {
        unreachable!("no input is said to hold Pods")
    }

    fn problem(&mut self, problem: Problem) {
        self.problems.push(problem);
    }

    fn refused(&mut self, problem: Problem) {
        self.refused.push(problem);
    }

    fn foreign(&mut self) {
        self.n_foreign += 1;
    }

    fn is_stopped(&self) -> bool {
        self.stops_at == Some(self.items.len())
    }
}

fn read_all(input: impl AsRef<[u8]>) -> Read {
    let mut all = Read::default();
    read(input.as_ref(), &mut all, Origin::Named).unwrap();
    all
}

/// Wants these items, these problems, and nothing refused.
#[track_caller]
fn check(input: impl AsRef<[u8]>, items: &[&str], problems: &[&str]) {
    let input = input.as_ref();
    let all = read_all(input);
    let shown = String::from_utf8_lossy(input);
    assert_eq!(all.items, items, "{shown}");
    let named: Vec<_> = all.problems.iter().map(Problem::to_string).collect();
    assert_eq!(named, problems, "{shown}");
    assert_eq!(all.refused, [], "{shown}");
}

/// An Event of this name.
fn event(name: &str) -> Value {
    json!({
        "kind": "Event",
        "metadata": { "namespace": "ns", "name": name },
        "regarding": { "kind": "Pod", "namespace": "ns", "name": "pod" },
    })
}

/// The same as an item of a list, which does not say what it is.
fn item(name: &str) -> Value {
    let mut event = event(name);
    event.as_object_mut().unwrap().remove("kind");
    event
}

fn frame(kind: &str, object: &Value) -> Value {
    json!({ "type": kind, "object": object })
}

fn list(items: &[Value]) -> Value {
    json!({ "kind": "List", "apiVersion": "v1", "metadata": { "resourceVersion": "" }, "items": items })
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap()
}

/// Wants the same of a document on one line and over many, with and without an
/// end of line, a BOM, the line ends of another system, and blank lines around.
#[track_caller]
fn check_document(document: &Value, items: &[&str]) {
    let (compact, pretty) = (document.to_string(), pretty(document));
    for text in [
        compact.clone() + "\n",
        pretty.clone() + "\n",
        compact,
        pretty,
    ] {
        check(&text, items, &[]);
        check(format!("\u{feff}{text}"), items, &[]);
        check(text.replace('\n', "\r\n"), items, &[]);
        check(format!("\n \r\n\t{text}\n\n  \n"), items, &[]);
        check(format!("\u{feff}\r\n{text}\r\n"), items, &[]);
    }
}

#[test]
fn an_event_is_read_on_one_line_and_over_many() {
    check_document(&event("a"), &["+a"]);
    check_document(&item("a"), &["+a"]);
}

#[test]
fn a_list_is_read_as_kubectl_and_as_the_api_write_it() {
    check_document(&list(&[event("a"), event("b")]), &["+a", "+b"]);
    check_document(
        &json!({ "items": [item("a"), item("b")], "kind": "EventList" }),
        &["+a", "+b"],
    );
    check_document(&list(&[]), &[]);
    check_document(&json!({ "kind": "EventList", "items": null }), &[]);
    // `jq .items`
    check_document(&json!([event("a"), item("b")]), &["+a", "+b"]);
    check_document(&json!([]), &[]);
}

#[test]
fn a_watch_frame_says_what_became_of_its_event() {
    check_document(&frame("ADDED", &event("a")), &["+a"]);
    check_document(&frame("MODIFIED", &event("a")), &["+a"]);
    check_document(&frame("DELETED", &event("a")), &["-a"]);
    check_document(&frame("ADDED", &item("a")), &["+a"]);
    check_document(
        &frame("BOOKMARK", &json!({ "kind": "Event", "metadata": {} })),
        &[],
    );
    // The names stand in any order.
    check(
        format!("{{\"object\":{},\"type\":\"DELETED\"}}", event("a")),
        &["-a"],
        &[],
    );
}

#[test]
fn documents_follow_each_other_in_any_way() {
    let (a, b, both) = (event("a"), event("b"), list(&[event("c"), event("d")]));
    let delta = frame("DELETED", &event("e"));
    let compact = [&a, &both, &b, &delta].map(Value::to_string);
    let pretty = [&a, &both, &b, &delta].map(pretty);
    let items = ["+a", "+c", "+d", "+b", "-e"];
    check(compact.join("\n"), &items, &[]);
    check(compact.join("\n\n \r\n"), &items, &[]);
    check(pretty.join("\n"), &items, &[]);
    check(pretty.join("\r\n\r\n"), &items, &[]);
    // As a shell pastes them together.
    check(pretty.concat(), &items, &[]);
    check(pretty.join("  "), &items, &[]);
    // Some on one line, some over many.
    let [a, both, b, delta] = &pretty;
    let lines = &compact;
    check(
        [a, &lines[1], &lines[2], delta]
            .map(String::as_str)
            .join("\n"),
        &items,
        &[],
    );
    check(
        [&lines[0], both, b, &lines[3]]
            .map(String::as_str)
            .join("\n"),
        &items,
        &[],
    );
    check(
        [&lines[0], &lines[1], b, delta]
            .map(String::as_str)
            .join("\n\n"),
        &items,
        &[],
    );
}

#[test]
fn nothing_gives_nothing() {
    for nothing in ["", "\n", " \t\r\n\n  ", "\u{feff}", "\u{feff}\n"] {
        check(nothing, &[], &[]);
    }
}

#[test]
fn an_item_lies_where_it_is_refused() {
    let no_name = json!({ "kind": "Event", "metadata": {} });
    let lines = format!("{}\n  {no_name}\n{}", event("a"), event("b"));
    let all = read_all(&lines);
    assert_eq!(all.items, ["+a", "+", "+b"]);
    assert_eq!(all.problems, []);
    let refused = |line, column| {
        let what = Rejected::NoName.to_string();
        vec![Problem { line, column, what }]
    };
    assert_eq!(all.refused, refused(2, 3));

    let of_list = pretty(&list(&[event("a"), no_name.clone()]));
    let (line, column) = place(&of_list, of_list.rfind("{\n      \"kind\"").unwrap());
    assert_eq!(read_all(&of_list).refused, refused(line, column));
    let of_frames = format!(
        "{}\n{}",
        frame("ADDED", &event("a")),
        frame("DELETED", &no_name)
    );
    let (line, column) = place(&of_frames, of_frames.rfind("{\"kind\"").unwrap());
    assert_eq!(read_all(&of_frames).refused, refused(line, column));
}

/// The line and column of an offset, both from 1.
fn place(text: &str, at: usize) -> (usize, usize) {
    let before = &text.as_bytes()[..at];
    let mut lines = before.split(|it| *it == b'\n');
    (lines.clone().count(), lines.next_back().unwrap().len() + 1)
}

#[test]
fn the_three_prints_of_a_list_give_equal_records() {
    let core = read_all(include_bytes!("../../../tests/fixtures/list-core.json"));
    assert_eq!(
        core.items,
        [
            "+node-0.not-ready",
            "+job-0.created",
            "+train-0.back-off",
            "+train-0.scheduled",
            "+train-0.xid-79",
            "+train-1.failed-scheduling"
        ]
    );
    assert_eq!(core.records.len(), 6);
    let events_v1 = include_bytes!("../../../tests/fixtures/list-events-v1.json");
    assert_eq!(read_all(events_v1), core);
    assert_eq!(
        read_all(include_bytes!("../../../tests/fixtures/eventlist.json")),
        core
    );
}

#[track_caller]
fn check_counts(input: &[u8], items: usize, problems: usize, refused: usize) {
    let all = read_all(input);
    let counts = (all.items.len(), all.problems.len(), all.refused.len());
    assert_eq!(counts, (items, problems, refused));
}

#[test]
fn the_corpus_is_read_in_each_of_its_forms() {
    let frames = read_all(include_bytes!("../../../tests/fixtures/frames.jsonl"));
    assert_eq!(
        frames.items,
        [
            "+train-0.xid-79",
            "+train-0.back-off",
            "+train-0.back-off",
            "-train-0.xid-79",
            "+train-0.killing",
            "+train-0.scheduled"
        ]
    );
    check_counts(
        include_bytes!("../../../tests/fixtures/frames.jsonl"),
        6,
        0,
        0,
    );
    check_counts(
        include_bytes!("../../../tests/fixtures/events.jsonl"),
        17,
        0,
        0,
    );
    check_counts(
        include_bytes!("../../../tests/fixtures/recreated.jsonl"),
        7,
        0,
        0,
    );
    check_counts(
        include_bytes!("../../../tests/fixtures/flyte.json"),
        67,
        0,
        0,
    );
    check_counts(
        include_bytes!("../../../tests/fixtures/forged.jsonl"),
        13,
        0,
        8,
    );
    check_counts(
        include_bytes!("../../../tests/fixtures/hostile-text.jsonl"),
        9,
        1,
        0,
    );
    check_counts(
        include_bytes!("../../../tests/fixtures/broken.jsonl"),
        7,
        3,
        2,
    );
}
