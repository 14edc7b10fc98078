//! Events made at random: whatever is in them, decoding neither panics nor
//! fails, and what is kept is within its caps.

use proptest::prelude::*;

use super::*;

fn key() -> impl Strategy<Value = String> {
    let ours = [
        "kind",
        "apiVersion",
        "metadata",
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "regarding",
        "involvedObject",
        "related",
        "fieldPath",
        "type",
        "reason",
        "action",
        "note",
        "message",
        "reportingController",
        "reportingComponent",
        "reportingInstance",
        "deprecatedSource",
        "source",
        "component",
        "host",
        "series",
        "count",
        "lastObservedTime",
        "deprecatedCount",
        "eventTime",
        "deprecatedFirstTimestamp",
        "firstTimestamp",
        "deprecatedLastTimestamp",
        "lastTimestamp",
        "items",
        "object",
    ];
    prop_oneof![
        9 => prop::sample::select(ours.to_vec()).prop_map(str::to_owned),
        1 => any::<String>(),
    ]
}

fn text() -> impl Strategy<Value = String> {
    let telling = ["", "Pod", "Node", "team-a", "default", "train-0", "e1"];
    let times = [
        "2026-11-28T09:00:00Z",
        "0001-01-01T00:00:00Z",
        "2999-01-01T00:00:00+23:59",
        "9999-12-31T23:59:59Z",
    ];
    prop_oneof![
        6 => prop::sample::select(telling.to_vec()).prop_map(str::to_owned),
        2 => prop::sample::select(times.to_vec()).prop_map(str::to_owned),
        2 => any::<String>(),
        1 => ("[a€\u{1f980}]", 0..400_usize).prop_map(|(unit, n)| unit.repeat(n)),
    ]
}

fn object(value: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    prop::collection::vec((key(), value), 0..12)
        .prop_map(|it| it.into_iter().collect::<serde_json::Map<_, _>>().into())
}

/// Any JSON, often with the names and the values of an Event.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        1 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::from),
        1 => any::<i64>().prop_map(Value::from),
        1 => any::<u64>().prop_map(Value::from),
        1 => any::<f64>().prop_map(Value::from),
        8 => text().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 32, 8, |inner| {
        prop_oneof![
            1 => prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            3 => object(inner),
        ]
    })
}

/// An Event with an identity, in which some fields hold anything.
fn disturbed() -> impl Strategy<Value = Value> {
    let change = (
        prop::sample::select(decoding::POINTERS.to_vec()),
        any_value(),
    );
    prop::collection::vec(change, 0..6).prop_map(|changes| {
        let mut event = full();
        for (pointer, value) in changes {
            let (parent, _) = pointer.rsplit_once('/').unwrap();
            if event.pointer(parent).is_some_and(Value::is_object) {
                set(&mut event, pointer, value);
            }
        }
        event
    })
}

proptest! {
    #[test]
    fn decoding_an_object_never_fails_and_caps_hold(
        event in prop_oneof![object(any_value()), disturbed()],
        note_bytes in 0..2_500_usize,
        field_bytes in 0..300_usize,
    ) {
        let json = event.to_string();
        let wire = serde_json::from_str::<WireEvent<'_>>(&json);
        prop_assert!(wire.is_ok(), "{wire:?}");
        let caps = Caps { note_bytes, field_bytes };
        let Ok((object, it)) = Record::pare_down(&wire.unwrap(), caps, &Interner::default()) else { return Ok(()) };

        prop_assert!(it.note().len() <= note_bytes);
        let fields = [
            it.resource_version(), it.object_api_version(), it.field_path(), it.event_type(), it.reason(),
            it.action(), it.controller(), it.instance(),
        ];
        for field in fields.into_iter().chain(it.related()) {
            prop_assert!(field.len() <= field_bytes, "{field}");
        }
        let (uid, object_uid) = (it.uid().text(), it.object_uid().text());
        let own = [it.name(), it.namespace(), &*uid, &*object_uid];
        for identity in own.into_iter().chain([object.namespace(), object.kind(), object.name()]) {
            prop_assert!(identity.len() <= IDENTITY_MAX_BYTES, "{identity}");
        }
        prop_assert!(!it.name().is_empty() && !object.kind().is_empty() && !object.name().is_empty());
        let spoken_for = object.namespace().is_empty() || object.namespace() == it.namespace();
        prop_assert!(spoken_for, "{object} by {}", it.namespace());
        prop_assert!(1 <= it.count());
        prop_assert!(it.first_seen() <= it.last_seen());
        let kept: usize = fields.iter().chain(&it.related()).chain(&own).map(|it| it.len()).sum();
        prop_assert_eq!(it.n_text_bytes(), kept + it.note().len());
        prop_assert_eq!(it.clone().after(&it), it);
    }

    #[test]
    fn decoding_any_bytes_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200), cut in any::<prop::sample::Index>()) {
        assert!(serde_json::from_slice::<WireEvent<'_>>(&bytes).is_err() || bytes.contains(&b'{'));
        // And no part of an Event is one.
        let json = full().to_string();
        let cut = cut.index(json.len());
        prop_assert!(serde_json::from_slice::<WireEvent<'_>>(&json.as_bytes()[..cut]).is_err());
    }
}
