//! What is wrong is named by line and column, and costs nothing but itself.

use super::*;

#[test]
fn each_broken_line_of_the_corpus_is_named_and_the_rest_is_read() {
    let all = read_all(include_bytes!("../../../../tests/fixtures/broken.jsonl"));
    let problems: Vec<_> = all.problems.iter().map(Problem::to_string).collect();
    assert_eq!(
        problems,
        [
            "line 2, column 217: EOF while parsing a string",
            "line 4, column 18: invalid type: string \"train-0 was here\", expected an Event, a list of Events or a watch frame",
            "line 9, column 20: invalid escape",
        ]
    );
    let refused: Vec<_> = all.refused.iter().map(Problem::to_string).collect();
    assert_eq!(
        refused,
        [
            format!("line 6, column 1: {}", Rejected::NoObject),
            format!("line 7, column 1: {}", Rejected::NoName),
        ]
    );
    let names: Vec<_> = all.records.iter().map(|(_, it)| it.name()).collect();
    assert_eq!(
        names,
        ["good-1", "good-2", "good-3", "bad-timestamp", "good-4"]
    );
}

/// Wants a line to be named at this column and for this, and those around it read.
#[track_caller]
fn check_line(line: &str, problem: &str) {
    let good = event("a");
    let input = format!("{good}\n{line}\n{good}\n");
    check(
        input,
        &["+a", "+a"],
        &[&format!("line 2, column {problem}")],
    );
}

#[test]
fn a_line_that_is_no_document_is_named() {
    check_line("{", "1: EOF while parsing an object");
    check_line("}", "1: expected value");
    check_line("[\"", "2: EOF while parsing a string");
    check_line("NAME   READY", "1: expected value");
    check_line("{'a': 1}", "2: key must be a string");
    check_line(
        "{\"note\": \"\u{1}\"}",
        "11: control character (\\u0000-\\u001F) found while parsing a string",
    );
    check_line(
        "{\"note\": \"\\ud800\"}",
        "17: unexpected end of hex escape",
    );
    check_line(
        "null",
        "4: invalid type: null, expected an Event, a list of Events or a watch frame",
    );
    check_line(
        "17",
        "2: invalid type: integer `17`, expected an Event, a list of Events or a watch frame",
    );
    check_line(
        "{}",
        "1: neither an Event, a list of Events nor a watch frame",
    );
    check_line(
        "  {\"a\": 1}",
        "3: neither an Event, a list of Events nor a watch frame",
    );
    check_line(
        "{\"items\": 7}",
        "11: invalid type: integer `7`, expected a list of Events",
    );
}

#[test]
fn what_is_behind_an_event_on_its_line_is_named_and_the_event_kept() {
    let (a, b) = (event("a").to_string(), event("b").to_string());
    let column = a.len() + 1;
    for garbage in ["x", ",", "}", "\"", "null", "\u{feff}"] {
        let problem = format!("line 1, column {column}: trailing characters");
        check(format!("{a}{garbage}\n{b}"), &["+a", "+b"], &[&problem]);
    }
}

#[test]
fn what_is_something_else_is_named_for_what_it_says() {
    let pod = json!({ "kind": "Pod", "metadata": { "name": "pod" } });
    let not_event = "a Pod, not an Event";
    check(
        pod.to_string(),
        &[],
        &[&format!("line 1, column 1: {not_event}")],
    );
    check(
        pretty(&pod),
        &[],
        &[&format!("line 1, column 1: {not_event}")],
    );
    check(
        frame("ADDED", &pod).to_string(),
        &[],
        &[&format!("line 1, column 11: {not_event}")],
    );

    let pods = list(&[pod.clone(), event("a"), pod]);
    let mut text = pretty(&pods);
    check(
        &text,
        &["+a"],
        &[
            &format!("line 4, column 5: {not_event}"),
            &format!("line 22, column 5: {not_event}"),
        ],
    );
    // What comes behind is read.
    text.push_str(&pretty(&event("b")));
    assert_eq!(read_all(&text).items, ["+a", "+b"]);

    let hostile = json!({ "kind": "Po\u{1b}[31md\n", "metadata": { "name": "x" } });
    check(
        hostile.to_string(),
        &[],
        &["line 1, column 1: a Po\\u{1b}[31md\\n, not an Event"],
    );
}

#[test]
fn a_pod_list_as_the_api_writes_it_gives_no_record() {
    // Its items say neither what they are nor what they are about.
    let pods = json!({ "kind": "PodList", "items": [{ "metadata": { "name": "pod" } }] });
    let all = read_all(pods.to_string());
    assert_eq!((all.records, all.problems), (vec![], vec![]));
    assert_eq!(all.refused[0].what, Rejected::NoObject.to_string());
}

#[test]
fn a_frame_that_carries_no_event_is_named_with_what_it_carries() {
    let gone = json!({ "kind": "Status", "code": 410, "message": "too old resource version" });
    let error = frame("ERROR", &gone);
    let named = "a watch frame of type `ERROR`: {\"code\":410,\"kind\":\"Status\",\"message\":\"too old resource version\"}";
    let lines = format!(
        "{}\n{error}\n{}\n",
        frame("ADDED", &event("a")),
        frame("ADDED", &event("b"))
    );
    check(
        lines,
        &["+a", "+b"],
        &[&format!("line 2, column 1: {named}")],
    );
    let other = json!({ "type": 7, "object": {} }).to_string();
    check(
        other,
        &[],
        &["line 1, column 1: a watch frame of type ``: {}"],
    );
    let odd = frame("ADDED", &json!([])).to_string();
    check(
        odd,
        &[],
        &["line 1, column 11: invalid type: sequence, expected an Event"],
    );
    // A frame may carry a megabyte; a message does not.
    let long = frame("ERROR", &json!("x".repeat(1 << 20))).to_string();
    assert!(read_all(long).problems[0].what.len() < 300);
}

#[test]
fn an_item_that_is_no_event_costs_only_itself() {
    let broken = [json!(null), json!(7), json!("x"), json!([event("x")])];
    for it in broken {
        for text in [
            pretty(&list(&[event("a"), it.clone(), event("b")])),
            list(&[event("a"), it.clone(), event("b")]).to_string(),
        ] {
            let all = read_all(&text);
            assert_eq!(all.items, ["+a", "+b"], "{text}");
            assert_eq!(all.problems.len(), 1, "{text}");
        }
    }
    // It is named where it is wrong, not where it begins.
    let mut odd = event("odd");
    odd.as_object_mut()
        .unwrap()
        .insert("note".to_owned(), json!("@"));
    let text = pretty(&list(&[event("a"), odd, event("b")])).replace('@', "\\udead");
    let (line, _) = place(&text, text.find("udead").unwrap());
    let all = read_all(&text);
    assert_eq!(all.items, ["+a", "+b"]);
    assert_eq!((all.problems[0].line, all.problems.len()), (line, 1));
}

/// A list that is cut anywhere gives the items before the cut, and names it once.
#[track_caller]
fn check_cuts(text: &str, ends: &[usize]) {
    for cut in 1..text.len() {
        let (before, behind) = text.split_at(cut);
        let all = read_all(before);
        let whole = ends.iter().filter(|it| **it <= cut).count();
        assert_eq!(all.items.len(), whole, "cut at {cut}");
        if behind.trim().is_empty() {
            assert_eq!(all.problems, [], "cut at {cut}");
            continue;
        }
        let [problem] = &all.problems[..] else {
            panic!("cut at {cut}: {:?}", all.problems)
        };
        // On the line of the cut, or behind what is blank before it.
        let (line, _) = place(text, cut);
        let (first_line, _) = place(text, before.trim_end().len());
        let is_near = (first_line..=line).contains(&problem.line);
        assert!(is_near, "cut at {cut}: {problem}");
    }
}

#[test]
fn a_list_that_is_cut_gives_the_items_before_the_cut() {
    let value = list(&[event("a"), event("b"), event("c")]);
    let pretty = pretty(&value) + "\n";
    let ends: Vec<_> = pretty
        .match_indices("\n    }")
        .map(|(at, it)| at + it.len())
        .collect();
    assert_eq!(ends.len(), 3);
    check_cuts(&pretty, &ends);
    let compact = value.to_string();
    let ends: Vec<_> = compact
        .match_indices("\"name\":\"pod\",\"namespace\":\"ns\"}}")
        .map(|(at, it)| at + it.len())
        .collect();
    assert_eq!(ends.len(), 3);
    check_cuts(&compact, &ends);
}

/// Three documents over many lines, of which one is replaced by `broken`: the
/// others are read, wherever it stands.
#[track_caller]
fn check_among_documents(broken: &str) {
    let [a, b] = [event("a"), event("b")].map(|it| pretty(&it));
    for parts in [[broken, &a, &b], [&a, broken, &b], [&a, &b, broken]] {
        let text = parts.join("\n");
        let all = read_all(&text);
        assert_eq!(all.items, ["+a", "+b"], "{text}");
        assert!(!all.problems.is_empty(), "{text}");
    }
}

#[test]
fn a_broken_document_among_others_costs_only_itself() {
    let whole = pretty(&event("x"));
    check_among_documents("{");
    check_among_documents("}");
    check_among_documents("Warning: v1 Event is deprecated");
    check_among_documents("[7]");
    check_among_documents("{}");
    check_among_documents("{\"kind\": \"Pod\"}");
    check_among_documents("{\n  'a': 1\n}");
    // Cut behind a line, within a text, within a name.
    check_among_documents(
        whole
            .lines()
            .take(3)
            .collect::<Vec<_>>()
            .join("\n")
            .as_str(),
    );
    check_among_documents(whole.split_once("Pod").unwrap().0);
    check_among_documents(whole.split_once("etadata").unwrap().0);
    // Its last line is missing.
    check_among_documents(whole.trim_end_matches('}'));
}

#[test]
fn a_broken_first_line_is_not_taken_for_the_start_of_a_document() {
    let (a, b) = (event("a").to_string(), event("b").to_string());
    for first in [
        "{",
        "{\"kind\":",
        "{\"kind\":\"Ev",
        "{\"kind\":\"Event\"",
        "[",
        "{\"metadata\":{\"name\":\"x\"},",
        "x",
        "\"",
        "{\"items\":[",
    ] {
        let all = read_all(format!("{first}\n{a}\n{b}\n"));
        assert_eq!(all.items, ["+a", "+b"], "{first}");
        assert_eq!(all.problems.len(), 1, "{first}: {:?}", all.problems);
    }
}

#[test]
fn problems_are_counted_from_the_start_of_the_input_whatever_their_order() {
    let mut text = String::new();
    let mut lines = Vec::new();
    for it in 1..200 {
        let is_bad = it % 3 == 0;
        text.push_str(if is_bad { "bad\n" } else { "\n" });
        if is_bad {
            lines.push(it);
        }
    }
    let named: Vec<_> = read_all(&text).problems.iter().map(|it| it.line).collect();
    assert_eq!(named, lines);
}
