//! YAML as kubectl, must-gather and people write it.

use super::*;

/// An Event as an item of a list, indented by so much.
fn item_yaml(name: &str, indent: usize) -> String {
    let text = format!(
        "- metadata:\n    name: {name}\n    namespace: ns\n  regarding:\n    kind: Pod\n    name: pod\n    namespace: ns\n"
    );
    let lines = text
        .lines()
        .map(|it| format!("{}{it}\n", " ".repeat(indent)));
    lines.collect()
}

fn event_yaml(name: &str) -> String {
    let item = item_yaml(name, 0).replace("\n  ", "\n");
    item.replace("- ", "kind: Event\n")
}

/// Wants the same with other line ends, a BOM, and more around it.
#[track_caller]
fn check_yaml(text: &str, items: &[&str]) {
    check(text, items, &[]);
    check(text.trim_end(), items, &[]);
    check(text.replace('\n', "\r\n"), items, &[]);
    check(format!("\u{feff}{text}"), items, &[]);
    check(
        format!("# of a bundle\n\n---\n{text}...\n---\n# the end\n"),
        items,
        &[],
    );
    check(format!("%YAML 1.2\n---\n{text}"), items, &[]);
}

#[test]
fn an_event_is_read() {
    check_yaml(&event_yaml("a"), &["+a"]);
    check_yaml(
        &(event_yaml("a") + "---\n" + &event_yaml("b")),
        &["+a", "+b"],
    );
    // As JSON is YAML, too.
    check(format!("--- {}\n", event("a")), &["+a"], &[]);
    check(
        format!("---\n{}\n---\n{}", pretty(&event("a")), event("b")),
        &["+a", "+b"],
        &[],
    );
}

#[test]
fn a_list_is_read_at_any_indentation() {
    for indent in [0, 1, 2, 4] {
        let items = item_yaml("a", indent) + &item_yaml("b", indent);
        let both = ["+a", "+b"];
        check_yaml(
            &format!(
                "apiVersion: v1\nitems:\n{items}kind: List\nmetadata:\n  resourceVersion: \"\"\n"
            ),
            &both,
        );
        check_yaml(
            &format!("kind: EventList\nitems: # all\n\n# of them\n{items}"),
            &both,
        );
        let more = format!("items:\n{items}---\nitems:\n{items}");
        check_yaml(&more, &["+a", "+b", "+a", "+b"]);
    }
    // `yq .items`
    check_yaml(&(item_yaml("a", 0) + &item_yaml("b", 0)), &["+a", "+b"]);
    check_yaml("kind: List\nitems: []\n", &[]);
    check_yaml("kind: List\nitems:\nmetadata: {}\n", &[]);
    check_yaml(
        &format!("kind: List\nitems: [{}, {}]\n", event("a"), event("b")),
        &["+a", "+b"],
    );
    check_yaml(
        "items:\n-\n  metadata: {name: a, namespace: ns}\n  regarding: {kind: Pod, name: p, namespace: ns}\n",
        &["+a"],
    );
}

#[test]
fn a_watch_frame_is_read() {
    let event = event_yaml("a");
    let lines: Vec<_> = event.lines().map(|it| format!("  {it}\n")).collect();
    let object = lines.concat();
    check_yaml(&format!("object:\n{object}type: DELETED\n"), &["-a"]);
    check_yaml(&format!("type: ADDED\nobject:\n{object}"), &["+a"]);
}

#[test]
fn lines_within_a_text_are_no_structure() {
    let note = |text: &str| {
        let all = read_all(item_yaml("a", 0) + text + &item_yaml("b", 0));
        assert_eq!(all.items, ["+a", "+b"], "{text}");
        assert_eq!(all.problems, [], "{text}");
        all.records[0].1.note().to_owned()
    };
    assert_eq!(
        note("  note: |\n    - a\n    items:\n\n      ---\n    # no comment\n"),
        "- a\nitems:\n\n  ---\n# no comment\n"
    );
    assert_eq!(note("  note: |-\n   - metadata:\n"), "- metadata:");
    assert_eq!(note("  note: >-\n    one\n    line\n"), "one line");
    assert_eq!(
        note("  note: 'it''s\n    - one\n\n    or two'\n"),
        "it's - one\nor two"
    );
    assert_eq!(note("  note: \"a\\n\\\n    \\  b\"\n"), "a\n  b");
    assert_eq!(note("  note: plain\n    and on\n"), "plain and on");
}

#[test]
fn a_text_that_looks_like_something_else_stays_a_text() {
    for text in ["yes", "off", "0123", "1_000", ".nan", "2026-01-01", "1:20"] {
        let all = read_all(item_yaml("a", 0) + &format!("  note: {text}\n"));
        assert_eq!(all.records[0].1.note(), text);
    }
}

#[test]
fn an_item_that_is_no_yaml_costs_only_itself() {
    for (broken, problem) in [
        ("- metadata: [\n", "line 8, column 1: "),
        ("- a: 'b\n  c: d\n", "line 8, column 1: "),
        ("- a: b: c\n", "line 8, column 1: "),
        ("- a: *b\n", "line 8, column 1: "),
        ("- note: @x\n", "line 8, column 1: "),
        ("- a: 1\n   b: 2\n", "line 9, column 1: "),
        (
            "-\n",
            "line 8, column 1: invalid type: null, expected an Event",
        ),
        (
            "- 7\n",
            "line 8, column 1: invalid type: integer `7`, expected an Event",
        ),
        ("- kind: Pod\n", "line 8, column 1: a Pod, not an Event"),
    ] {
        let text = item_yaml("a", 0) + broken + &item_yaml("b", 0);
        for text in [&text, &format!("{text}---\n{}", event_yaml("c"))] {
            let all = read_all(text);
            assert_eq!(all.items[..2], ["+a", "+b"], "{text}");
            assert_eq!(all.problems.len(), 1, "{text}: {:?}", all.problems);
            let named = all.problems[0].to_string();
            assert!(named.starts_with(problem), "{text}: {named}");
        }
    }
    let not_text = [item_yaml("a", 0).as_bytes(), b"- note: \xff\n"].concat();
    check(not_text, &["+a"], &["line 8, column 9: invalid UTF-8"]);
}

#[test]
fn a_document_that_is_no_event_is_named_for_what_it_is() {
    let good = event_yaml("a");
    let named = |it: &str, problem: &str| {
        check(
            format!("{good}---\n{it}---\n{good}"),
            &["+a", "+a"],
            &[problem],
        );
    };
    let nothing = "neither an Event, a list of Events nor a watch frame";
    named(
        "replicas: 2\nimage: x\n",
        &format!("line 10, column 1: {nothing}"),
    );
    named(
        "kind: Pod\nmetadata:\n  name: x\n",
        "line 10, column 1: a Pod, not an Event",
    );
    named(
        "items: 7\n",
        "line 10, column 1: invalid type: integer `7`, expected a list of Events",
    );
    named(
        "just: a: line\n",
        "line 10, column 1: mapping values are not allowed in this context",
    );
    // What is around items that are read is looked at as well.
    let all = read_all(format!("items:\n{}kind: [\n", item_yaml("a", 0)));
    assert_eq!(all.items, ["+a"]);
    assert_eq!((all.problems[0].line, all.problems.len()), (9, 1));
}

#[test]
fn an_alias_is_refused_since_it_makes_much_of_little() {
    let all = read_all("- a: &a [x, x]\n  b: &b [*a, *a]\n  c: [*b, *b]\n");
    assert_eq!(all.items, [""; 0]);
    assert_eq!(all.problems.len(), 1);
}

#[test]
fn what_kubectl_says_besides_is_no_yaml() {
    check(
        format!("Warning: v1 Event is deprecated\n{}", event_yaml("a")),
        &["+a"],
        &["line 1, column 1: expected value"],
    );
    check(
        format!("Warning: v1 Event is deprecated\n{}", event("a")),
        &["+a"],
        &["line 1, column 1: expected value"],
    );
}

#[test]
fn json_may_follow_yaml_and_yaml_json() {
    let text = format!(
        "{}{}\n{}---\n{}",
        event_yaml("a"),
        event("b"),
        event_yaml("c"),
        pretty(&event("d"))
    );
    check(text, &["+a", "+b", "+c", "+d"], &[]);
}
