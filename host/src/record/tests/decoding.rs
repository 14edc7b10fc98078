//! What a field holds never costs the record: another type counts as absent.

use super::*;

/// Everything that is read of an Event, and of which type.
pub(super) const POINTERS: [&str; 31] = [
    "/series/lastObservedTime",
    "/series/count",
    "/series",
    "/eventTime",
    "/deprecatedLastTimestamp",
    "/deprecatedFirstTimestamp",
    "/metadata/creationTimestamp",
    "/deprecatedCount",
    "/note",
    "/reason",
    "/action",
    "/type",
    "/reportingController",
    "/reportingInstance",
    "/deprecatedSource/component",
    "/deprecatedSource/host",
    "/deprecatedSource",
    "/related/apiVersion",
    "/related/kind",
    "/related/namespace",
    "/related/name",
    "/related/uid",
    "/related",
    "/regarding/fieldPath",
    "/regarding/apiVersion",
    "/regarding/uid",
    "/metadata/resourceVersion",
    "/metadata/uid",
    "/metadata/name",
    "/regarding/name",
    "/kind",
];

/// Values that are no text, no time, no count and no object, as it may be.
fn wrong_values(pointer: &str) -> Vec<Value> {
    let mut wrong = vec![
        json!(true),
        json!(-1),
        json!(1.5),
        json!(1e300),
        json!([]),
        json!([[{ "name": "x" }], "x"]),
    ];
    let is_object = ["/series", "/deprecatedSource", "/related"].contains(&pointer);
    if !is_object {
        wrong.extend([json!({}), json!({ "name": { "name": "x" } })]);
    }
    if !pointer.to_lowercase().ends_with("count") {
        wrong.push(json!(42));
    }
    if pointer.contains("Time") {
        // Go writes the year 1 for "none".
        let bad = [
            "",
            "yesterday",
            "2026-13-01T00:00:00Z",
            "2026-11-28T09:00:00",
            "2026-11-28",
            "1764320400",
            "0001-01-01T00:00:00Z",
            "1969-12-31T23:59:59Z",
            "99999-01-01T00:00:00Z",
            "2026-11-28T09:00:00Z and more",
            "２026-11-28T09:00:00Z",
        ];
        wrong.extend(bad.map(Value::from));
    } else if is_object || pointer.to_lowercase().ends_with("count") {
        wrong.extend([json!("3"), json!("")]);
    }
    wrong
}

#[test]
fn a_field_of_another_type_counts_as_absent_and_is_counted() {
    for pointer in POINTERS {
        let mut absent = full();
        unset(&mut absent, pointer);
        let (absent, n_malformed) = pare_with(&absent, Caps::default());
        assert_eq!(n_malformed, 0, "{pointer}");
        for wrong in wrong_values(pointer) {
            let event = with([(pointer, wrong.clone())]);
            for event in [in_core_spelling(&event), event] {
                let (record, n_malformed) = pare_with(&event, Caps::default());
                assert_eq!(record, absent, "{pointer}: {wrong}");
                assert_eq!(n_malformed, 1, "{pointer}: {wrong}");
            }
        }
    }
}

#[test]
fn a_field_that_is_null_is_absent_and_nothing_is_wrong_with_that() {
    for pointer in POINTERS {
        let mut absent = full();
        unset(&mut absent, pointer);
        let null = with([(pointer, Value::Null)]);
        assert_eq!(
            pare_with(&null, Caps::default()),
            (pare(&absent), 0),
            "{pointer}"
        );
    }
}

#[test]
fn each_malformed_field_is_counted_at_every_level() {
    let event = with([
        ("/metadata/uid", json!(1)),
        ("/metadata/creationTimestamp", json!("soon")),
        ("/regarding/uid", json!(2)),
        ("/related/name", json!([])),
        ("/deprecatedSource/host", json!({})),
        ("/series/count", json!("9")),
        ("/series/lastObservedTime", json!(0)),
        ("/note", json!(false)),
        ("/eventTime", json!(1.0)),
    ]);
    assert_eq!(pare_with(&event, Caps::default()).1, 9);
    // What is in an object that is none cannot be counted.
    let event = with([
        ("/metadata", json!(42)),
        ("/regarding", json!("x")),
        ("/series", json!([1])),
    ]);
    assert_eq!(pare_with(&event, Caps::default()).1, 3);
}

#[test]
fn what_we_do_not_read_may_hold_anything() {
    let wanted = pare(&full());
    for pointer in [
        "/apiVersion",
        "/metadata/labels",
        "/metadata/managedFields",
        "/regarding/resourceVersion",
        "/series/state",
        "/deprecatedSource/x",
        "/unknown",
    ] {
        for value in [
            Value::Null,
            json!(1),
            json!("x"),
            json!([[1], {}]),
            json!({ "name": [{ "uid": 1 }] }),
        ] {
            let event = with([(pointer, value)]);
            assert_eq!(
                pare_with(&event, Caps::default()),
                (wanted.clone(), 0),
                "{event}"
            );
        }
    }
}

#[track_caller]
fn check_note(json: &str, want: &str) {
    let wire: WireEvent<'_> = serde_json::from_str(json).unwrap();
    assert_eq!((&*wire.note, wire.n_malformed()), (want, 0), "{json}");
}

#[test]
fn texts_and_keys_are_read_through_their_escapes() {
    check_note(r#"{"note":"plain"}"#, "plain");
    check_note(
        r#"{"note":"a\n\"b\" \u00fc \ud83e\udd80"}"#,
        "a\n\"b\" ü \u{1f980}",
    );
    check_note(
        r#"{"\u006eote":"by its escaped name"}"#,
        "by its escaped name",
    );
    check_note(r#"{"message":"core"}"#, "core");
    check_note(r#"{"Note":"names are exact"}"#, "");
    check_note(
        r#"{"note":"first","note":"the last one counts"}"#,
        "the last one counts",
    );
    check_note(" {\n\t\"note\" : \"spaced\"\r\n} ", "spaced");
    check_note("{}", "");
}

#[test]
fn only_what_is_no_object_is_no_event() {
    for json in [
        "null",
        "[]",
        "[{}]",
        "1",
        "true",
        "\"x\"",
        "",
        "{",
        "{\"note\":",
        "{\"note\":\"x\"",
        "{\"note\":\"\\ud800\"}",
        "{\"a\" 1}",
        "{} {}",
    ] {
        assert!(
            serde_json::from_str::<WireEvent<'_>>(json).is_err(),
            "{json}"
        );
    }
    let not_utf8 = b"{\"note\":\"\xff\"}";
    assert!(serde_json::from_slice::<WireEvent<'_>>(not_utf8).is_err());
}

#[test]
fn depth_is_no_danger() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    for key in ["unknown", "note", "metadata", "series", "eventTime"] {
        let json = format!("{{\"{key}\":{deep}}}");
        let wire: WireEvent<'_> = serde_json::from_str(&json).unwrap();
        assert_eq!(wire.n_malformed(), u32::from(key != "unknown"));
    }
}
