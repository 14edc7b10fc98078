//! What becomes of an Event that is pared down, rule by rule, and that nothing
//! in it can do harm.

use serde_json::{Value, json};

use super::*;

mod decoding;
mod hostile;
mod identity;
mod times;

/// An Event with all fields, in the spelling of `events.k8s.io/v1`.
fn full() -> Value {
    json!({
        "kind": "Event",
        "apiVersion": "events.k8s.io/v1",
        "metadata": {
            "name": "train-0.back-off",
            "namespace": "team-a",
            "uid": "e1",
            "resourceVersion": "1001",
            "creationTimestamp": "2026-11-28T09:00:00Z",
        },
        "regarding": {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": "team-a",
            "name": "train-0",
            "uid": "a1",
            "fieldPath": "spec.containers{main}",
        },
        "related": {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "namespace": "team-a",
            "name": "train",
            "uid": "b1",
        },
        "type": "Warning",
        "reason": "BackOff",
        "action": "Restarting",
        "note": "Back-off restarting failed container",
        "reportingController": "kubelet",
        "reportingInstance": "gpu-0",
        "deprecatedSource": { "component": "old-kubelet", "host": "old-gpu-0" },
        "series": { "count": 9, "lastObservedTime": "2026-11-28T09:05:00Z" },
        "deprecatedCount": 4,
        "eventTime": "2026-11-28T09:01:00Z",
        "deprecatedFirstTimestamp": "2026-11-28T09:02:00Z",
        "deprecatedLastTimestamp": "2026-11-28T09:03:00Z",
    })
}

/// The same Event in the spelling of core/v1.
fn in_core_spelling(event: &Value) -> Value {
    let core = event.as_object().unwrap().iter().map(|(key, value)| {
        let key = match key.as_str() {
            "regarding" => "involvedObject",
            "note" => "message",
            "reportingController" => "reportingComponent",
            "deprecatedSource" => "source",
            "deprecatedCount" => "count",
            "deprecatedFirstTimestamp" => "firstTimestamp",
            "deprecatedLastTimestamp" => "lastTimestamp",
            same => same,
        };
        (key.to_owned(), value.clone())
    });
    core.collect::<serde_json::Map<_, _>>().into()
}

/// Puts a value where a JSON pointer says.
fn set(event: &mut Value, pointer: &str, value: impl Into<Value>) {
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    let parent = event.pointer_mut(parent).unwrap().as_object_mut().unwrap();
    parent.insert(key.to_owned(), value.into());
}

/// Takes away what a JSON pointer says.
fn unset(event: &mut Value, pointer: &str) {
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    let parent = event.pointer_mut(parent).unwrap().as_object_mut().unwrap();
    parent.remove(key).unwrap();
}

/// A full Event with these fields set to these values.
fn with<const N: usize>(changes: [(&str, Value); N]) -> Value {
    let mut event = full();
    for (pointer, value) in changes {
        set(&mut event, pointer, value);
    }
    event
}

/// Pares down with these caps, and says how many fields were malformed.
fn pare_with(event: &Value, caps: Caps) -> (Result<(ObjectKey, Record), Rejected>, u32) {
    let json = event.to_string();
    let wire: WireEvent<'_> = serde_json::from_str(&json).unwrap();
    (
        Record::pare_down(&wire, caps, &Interner::default()),
        wire.n_malformed(),
    )
}

fn pare(event: &Value) -> Result<(ObjectKey, Record), Rejected> {
    pare_with(event, Caps::default()).0
}

#[test]
fn each_field_is_kept_under_its_name() {
    let (object, it) = pare(&full()).unwrap();
    assert_eq!(object.to_string(), "team-a/Pod/train-0");
    assert_eq!(
        [
            it.namespace(),
            it.name(),
            &*it.uid().text(),
            it.resource_version()
        ],
        ["team-a", "train-0.back-off", "e1", "1001"]
    );
    assert_eq!(
        [
            it.object_api_version(),
            &*it.object_uid().text(),
            it.field_path()
        ],
        ["v1", "a1", "spec.containers{main}"]
    );
    assert_eq!(
        [it.event_type(), it.reason(), it.action(), it.note()],
        [
            "Warning",
            "BackOff",
            "Restarting",
            "Back-off restarting failed container"
        ]
    );
    assert_eq!([it.controller(), it.instance()], ["kubelet", "gpu-0"]);
    assert_eq!(it.related(), ["batch/v1", "Job", "team-a", "train", "b1"]);
    assert_eq!(it.count(), 9);
    let event = it.event_ref();
    assert_eq!(
        [event.namespace(), event.name(), &*event.uid().text()],
        ["team-a", "train-0.back-off", "e1"]
    );
}

#[test]
fn both_api_groups_give_equal_records() {
    let mut event = full();
    let both = |event: &Value| {
        assert_eq!(pare(&in_core_spelling(event)), pare(event), "{event}");
    };
    both(&event);
    // And still when one field after the other is missing.
    for pointer in decoding::POINTERS {
        if event.pointer(pointer).is_some() {
            unset(&mut event, pointer);
            both(&event);
        }
    }
}

#[track_caller]
fn check_reporter(new: [&str; 2], old: [&str; 2], want: [&str; 2]) {
    let event = with([
        ("/reportingController", new[0].into()),
        ("/reportingInstance", new[1].into()),
        ("/deprecatedSource/component", old[0].into()),
        ("/deprecatedSource/host", old[1].into()),
    ]);
    let (_, record) = pare(&event).unwrap();
    assert_eq!([record.controller(), record.instance()], want);
}

#[test]
fn who_reported_falls_back_to_the_old_source_part_by_part() {
    check_reporter(["new", "new-0"], ["old", "old-0"], ["new", "new-0"]);
    check_reporter(["", "new-0"], ["old", "old-0"], ["old", "new-0"]);
    check_reporter(["new", ""], ["old", "old-0"], ["new", "old-0"]);
    check_reporter(["", ""], ["old", "old-0"], ["old", "old-0"]);
    check_reporter(["", ""], ["", "old-0"], ["", "old-0"]);
    check_reporter(["", ""], ["", ""], ["", ""]);
}

#[track_caller]
fn check_count(series: Value, deprecated: Value, want: u32) {
    let event = with([("/series/count", series), ("/deprecatedCount", deprecated)]);
    assert_eq!(pare(&event).unwrap().1.count(), want, "{event}");
}

#[test]
fn the_count_is_the_series_then_the_old_one_and_never_none() {
    check_count(json!(9), json!(4), 9);
    check_count(json!(0), json!(4), 4);
    check_count(Value::Null, json!(4), 4);
    check_count(json!(-1), json!(4), 4);
    check_count(Value::Null, Value::Null, 1);
    check_count(json!(0), json!(0), 1);
    check_count(json!(-1), json!(i64::MIN), 1);
    check_count(json!(u32::MAX), json!(4), u32::MAX);
    // More than we can count is as much as we can count.
    check_count(json!(u64::from(u32::MAX) + 1), json!(4), u32::MAX);
    check_count(json!(u64::MAX), json!(4), u32::MAX);
    check_count(json!(1e30), json!(4), 4);
}

/// How a field is read back.
type Read = fn(&Record) -> &str;

/// Sets a text of `n_bytes` made of `unit`s, and wants `want` bytes of it.
#[track_caller]
fn check_cap(pointer: &str, read: Read, unit: &str, n_bytes: usize, want: usize) {
    let caps = Caps {
        note_bytes: 30,
        field_bytes: 12,
    };
    let text: String = unit.repeat(n_bytes / unit.len());
    let (record, n_malformed) = pare_with(&with([(pointer, text.as_str().into())]), caps);
    let (_, record) = record.unwrap();
    assert_eq!(
        Some(read(&record)),
        text.get(..want),
        "{pointer}, {n_bytes} bytes"
    );
    assert_eq!(n_malformed, 0);
}

#[test]
fn a_note_is_cut_at_the_last_character_that_fits() {
    let check = |unit, n_bytes, want| check_cap("/note", Record::note, unit, n_bytes, want);
    check("a", 29, 29);
    check("a", 30, 30);
    check("a", 31, 30);
    check("ü", 30, 30);
    check("ü", 32, 30);
    check("€", 30, 30);
    check("€", 33, 30);
    check("\u{1f980}", 28, 28);
    check("\u{1f980}", 32, 28);
    check("a", 1 << 20, 30);
}

#[test]
fn any_other_text_is_cut_at_its_own_cap() {
    let fields: [(&str, Read); 11] = [
        ("/metadata/resourceVersion", Record::resource_version),
        ("/regarding/apiVersion", Record::object_api_version),
        ("/regarding/fieldPath", Record::field_path),
        ("/type", Record::event_type),
        ("/reason", Record::reason),
        ("/action", Record::action),
        ("/reportingController", Record::controller),
        ("/reportingInstance", Record::instance),
        ("/related/kind", |it| it.related()[1]),
        ("/related/name", |it| it.related()[3]),
        ("/related/uid", |it| it.related()[4]),
    ];
    for (pointer, read) in fields {
        check_cap(pointer, read, "a", 12, 12);
        check_cap(pointer, read, "a", 13, 12);
        check_cap(pointer, read, "\u{1f980}", 12, 12);
        check_cap(pointer, read, "€", 15, 12);
        check_cap(pointer, read, "abcde", 15, 12);
    }
}

#[test]
fn a_note_of_the_corpus_is_cut_before_the_character_that_is_over() {
    let lines = include_str!("../../tests/fixtures/hostile-text.jsonl");
    let line = lines.lines().find(|it| it.contains("multibyte-5k"));
    let (_, record) = pare(&serde_json::from_str(line.unwrap()).unwrap()).unwrap();
    // 2,048 is no multiple of three.
    assert_eq!(record.note().len(), 2_046);
    assert_eq!(
        record.n_text_bytes() - 2_046,
        {
            let mut event: Value = serde_json::from_str(line.unwrap()).unwrap();
            set(&mut event, "/note", "");
            pare(&event).unwrap().1.n_text_bytes()
        },
        "and no more than that is held of it"
    );
}

#[test]
fn what_is_no_utf8_matters_where_it_is_read_only() {
    let with = |note: &[u8], other: &[u8]| {
        let parts: [&[u8]; 5] = [b"{\"note\":\"", note, b"\",\"odd\":\"", other, b"\"}"];
        let json = parts.concat();
        decode::from_json::<WireEvent<'_>>(&json).map(|it| it.note.to_string())
    };
    assert_eq!(with("grün".as_bytes(), b"x").unwrap(), "grün");
    assert_eq!(with(b"said", b"\xff").unwrap(), "said");
    assert!(with(b"\xff", b"x").is_err());
}

#[test]
fn a_detached_reference_is_the_same_and_holds_no_note() {
    let (_, it) = Record::pare_down(
        &decode::from_json(
            br#"{"metadata":{"namespace":"ns","name":"e","uid":"u"},"involvedObject":{"kind":"Pod",
                "namespace":"ns","name":"p"},"message":"a note"}"#,
        )
        .unwrap(),
        Caps::default(),
        &Interner::default(),
    )
    .unwrap();
    let event = it.event_ref();
    assert_eq!(event, event.detached());
    assert_eq!(&*event.detached().text, "unse");
}
