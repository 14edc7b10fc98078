//! An item of a list whose end cannot be told costs itself, not the list.

use proptest::prelude::*;

use super::*;

/// Ways to damage the text of an Event, and whether it is one all the same.
const DAMAGE: [(&str, &str); 14] = [
    // Quotes that are lost or too many.
    ("\"name\"", "\"name"),
    ("\"name\"", "name\""),
    ("\"pod\"", "\"pod"),
    ("\"pod\"", "pod\""),
    ("\"ns\"", "\"n\"s\""),
    // Brackets that are lost, others or too many.
    ("{\"name\"", "\"name\""),
    ("\"metadata\":{", "\"metadata\":["),
    ("\"ns\"}}", "\"ns\"}"),
    ("\"ns\"}}", "\"ns\"}]"),
    ("\"ns\"}}", "\"ns\"}}}"),
    // What is no JSON, between brackets that are right.
    ("\"pod\"", "pod"),
    ("\"pod\"", "\"\\x\""),
    (",\"namespace\"", "\"namespace\""),
    (":\"pod\"", "\"pod\""),
];

/// Events as a list, of which one is damaged, each on a line of its own, over many
/// and on one.
fn lists_with(damaged: usize, from: &str, to: &str) -> [String; 5] {
    let events = ["a", "b", "c", "d"].map(|it| event(it).to_string());
    let mut lines = events.clone();
    let last = lines[damaged].rfind(from).unwrap();
    lines[damaged].replace_range(last..last + from.len(), to);
    let spread = lines.each_ref().map(|it| {
        let it = it.replace('{', "{\n      ").replace(',', ",\n      ");
        it.replace('}', "\n    }")
    });
    let around = |items: &str, end: &str| {
        format!(
            "{{\"apiVersion\":\"v1\",\"items\":[{items}{end}],\"kind\":\"List\"}}\n{}\n",
            event("z")
        )
    };
    [
        around(&lines.join(","), ""),
        around(&lines.join(", "), ""),
        around(&format!("\n{}", lines.join(",\n")), "\n"),
        around(&format!("\n    {}", lines.join(",\n    ")), "\n  "),
        around(&format!("\n    {}", spread.join(",\n    ")), "\n  "),
    ]
}

#[test]
fn an_item_whose_end_is_lost_is_named_and_the_others_are_read() {
    for (from, to) in DAMAGE {
        for (damaged, name) in ["+a", "+b", "+c", "+d"].into_iter().enumerate() {
            for text in lists_with(damaged, from, to) {
                let all = read_all(&text);
                let mut items = all.items;
                items.retain(|it| it != name);
                let mut want = vec!["+a", "+b", "+c", "+d", "+z"];
                want.retain(|it| *it != name);
                assert_eq!(items, want, "{from} -> {to}: {:?}\n{text}", all.problems);
                assert!(!all.problems.is_empty(), "{from} -> {to}: {text}");
                let (first, _) = place(
                    &text,
                    text.find(&format!("\"{}\"", name.trim_start_matches('+')))
                        .unwrap(),
                );
                let named = all.problems[0].line;
                assert!(
                    (first..first + 14).contains(&(named + 2)),
                    "{from} -> {to}: {named} for {first}\n{text}"
                );
            }
        }
    }
}

#[test]
fn what_is_missing_between_items_costs_none() {
    let [a, b, c] = ["a", "b", "c"].map(event);
    for between in ["", "\n", "\n    ", " "] {
        let text = format!("{{\"items\": [{between}{a}{between}{b},{between}{c}]}}\n");
        let all = read_all(&text);
        assert_eq!(all.items, ["+a", "+b", "+c"], "{text}");
        assert!(!all.problems.is_empty(), "{text}");
    }
    for (between, n_problems) in [(",,", 1), (",}", 1), (" x ", 1), (", x,", 1), (":", 1)] {
        let text = format!("[\n  {a}{between}\n  {b},\n  {c}\n]\n");
        let all = read_all(&text);
        assert_eq!(all.items, ["+a", "+b", "+c"], "{text}");
        assert_eq!(all.problems.len(), n_problems, "{text}: {:?}", all.problems);
    }
}

#[test]
fn a_list_within_lists_is_no_end() {
    let mut a = event("a");
    a["metadata"]["managedFields"] = json!([{ "f": [[], {}, [{ "g": "]}" }]] }, { "items": [1] }]);
    let of_list = list(&[a.clone(), event("b")]);
    check_document(&of_list, &["+a", "+b"]);
    check_document(&a, &["+a"]);
    // One item on each line, as some programs write it, and nothing indented.
    let text = format!(
        "{{\n\"items\": [\n{a},\n{}\n],\n\"kind\": \"List\"\n}}\n",
        event("b")
    );
    check(text, &["+a", "+b"], &[]);
    let flat = pretty(&of_list)
        .lines()
        .map(str::trim_start)
        .collect::<Vec<_>>()
        .join("\n");
    check(flat, &["+a", "+b"], &[]);
}

#[test]
fn keys_may_be_escaped_and_repeated() {
    let a = event("a");
    check(format!("{{\"\\u0069tems\": [{a}]}}"), &["+a"], &[]);
    check(
        format!("{{\"items\": [{a}],\n\"items\": [{a}]\n}}"),
        &["+a", "+a"],
        &[],
    );
    check(
        format!("{{\"metadata\": {{\"items\": [1]}},\n\"items\": [{a}]\n}}"),
        &["+a"],
        &[],
    );
    check(
        format!("{{\"x\": [1], \"items\": [\n{a}], \"y\": [{{}}]\n}}"),
        &["+a"],
        &[],
    );
}

#[test]
fn what_is_wrong_around_the_items_is_named_where_it_is() {
    let a = event("a");
    check(
        format!("{{\"items\": [\n{a}],\n  \"kind\": oops\n}}\n{a}"),
        &["+a", "+a"],
        &["line 3, column 11: expected value"],
    );
    check(
        format!("{{\"kind\": oops,\n\"items\": [\n{a}]}}\n{a}"),
        &["+a", "+a"],
        &["line 1, column 10: expected value"],
    );
    check(
        format!("{{\"items\": [\n{a}],\n\"kind\": \"List\n}}\n{a}"),
        &["+a", "+a"],
        &["line 3, column 13: EOF while parsing a string"],
    );
    check(
        format!("{{\n\"items\": [\n{a}\n"),
        &["+a"],
        &[&format!(
            "line 3, column {}: cut off: EOF while parsing a list",
            a.to_string().len() + 1
        )],
    );
}

proptest! {
    /// A bracket that is put in or lost may end the list, and then costs what
    /// follows; it is named all the same.
    #[test]
    fn one_item_whose_brackets_stand_costs_at_most_the_next_when_damaged(
        n in 2..6_usize,
        damaged in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(),
        with in prop::collection::vec(any::<u8>().prop_filter(
            "a line stays one line, and brackets stand", |it| !b"\n[]{}".contains(it)
        ), 1..6),
    ) {
        let events: Vec<_> = (0..n).map(|it| event(&format!("e{it}"))).collect();
        let text = pretty(&list(&events));
        let damaged = damaged.index(n);
        let start = text.find(&format!("\"e{damaged}\"")).unwrap();
        let end = start + text.split_at(start).1.find("\n    }").unwrap();
        let mut text = text.into_bytes();
        let at = start + at.index(end - start);
        for (it, byte) in text[at..end].iter_mut().zip(&with) {
            if !b"\n[]{}".contains(it) {
                *it = *byte;
            }
        }
        let all = read_all(&text);
        for it in (0..n).filter(|it| *it != damaged && *it != damaged + 1) {
            prop_assert!(all.items.contains(&format!("+e{it}")), "e{it} is lost: {:?}", all.problems);
        }
    }
}
