//! Which Events have an identity, and which regard what they may.

use super::*;

#[track_caller]
fn check<const N: usize>(changes: [(&str, Value); N], want: Result<&str, Rejected>) {
    let event = with(changes);
    let object = pare(&event).map(|(object, _)| object.to_string());
    assert_eq!(object.as_deref().map_err(|it| *it), want, "{event}");
    assert_eq!(pare(&in_core_spelling(&event)), pare(&event));
}

#[test]
fn without_a_name_of_its_own_an_event_is_refused() {
    for nothing in [json!(""), Value::Null, json!(7), json!({}), json!(["name"])] {
        check([("/metadata/name", nothing)], Err(Rejected::NoName));
    }
    for nothing in [Value::Null, json!({}), json!(42), json!("x"), json!([{}])] {
        check([("/metadata", nothing)], Err(Rejected::NoName));
    }
}

#[test]
fn without_an_object_an_event_is_refused() {
    for part in ["/regarding/name", "/regarding/kind"] {
        for nothing in [json!(""), Value::Null, json!(7), json!({}), json!(["name"])] {
            check([(part, nothing)], Err(Rejected::NoObject));
        }
    }
    for nothing in [Value::Null, json!({}), json!(42), json!("x"), json!([{}])] {
        check([("/regarding", nothing)], Err(Rejected::NoObject));
    }
}

#[test]
fn an_identity_of_254_bytes_is_refused_and_one_of_253_is_not() {
    // "ü" has two bytes: it is bytes that are counted, and nothing is cut.
    let (fits, over) = ("ü".repeat(126) + "x", "ü".repeat(127));
    assert_eq!((fits.len(), over.len()), (253, 254));
    let parts = [
        "/metadata/name",
        "/metadata/uid",
        "/regarding/name",
        "/regarding/kind",
        "/regarding/uid",
    ];
    for part in parts {
        assert!(
            pare(&with([(part, fits.as_str().into())])).is_ok(),
            "{part}"
        );
        check(
            [(part, over.as_str().into())],
            Err(Rejected::IdentityTooLong),
        );
    }
    let in_namespace = |it: &str| {
        with([
            ("/metadata/namespace", it.into()),
            ("/regarding/namespace", it.into()),
        ])
    };
    let (object, record) = pare(&in_namespace(&fits)).unwrap();
    assert_eq!((object.namespace(), record.namespace()), (&*fits, &*fits));
    assert_eq!(pare(&in_namespace(&over)), Err(Rejected::IdentityTooLong));
}

#[test]
fn an_event_speaks_of_its_own_namespace_only() {
    let forged = Err(Rejected::ForgedNamespace);
    check([], Ok("team-a/Pod/train-0"));
    check([("/metadata/namespace", json!("team-b"))], forged);
    check([("/metadata/namespace", json!("default"))], forged);
    check([("/metadata/namespace", json!("kube-system"))], forged);
    check([("/metadata/namespace", json!(""))], forged);
    check([("/metadata/namespace", Value::Null)], forged);
    check([("/metadata/namespace", json!("team-a "))], forged);
    check([("/metadata/namespace", json!("Team-A"))], forged);
    check([("/regarding/namespace", json!("default"))], forged);
}

/// An Event in one namespace about an object of this kind in another.
#[track_caller]
fn check_scope(event_in: &str, kind: &str, object_in: &str, want: Result<&str, Rejected>) {
    check(
        [
            ("/metadata/namespace", event_in.into()),
            ("/regarding/kind", kind.into()),
            ("/regarding/namespace", object_in.into()),
        ],
        want,
    );
}

#[test]
fn of_objects_of_the_clusters_scope_only_the_namespaces_of_the_system_speak() {
    let forged = Err(Rejected::ForgedScope);
    check_scope("default", "Node", "", Ok("Node/train-0"));
    check_scope("kube-system", "Node", "", Ok("Node/train-0"));
    check_scope("team-a", "Node", "", forged);
    check_scope("", "Node", "", forged);
    // A Node does not become namespaced by saying so.
    check_scope("team-a", "Node", "team-a", forged);
    check_scope("default", "Node", "default", Ok("Node/train-0"));
    check_scope("default", "Node", "team-a", Err(Rejected::ForgedNamespace));

    check_scope(
        "default",
        "PersistentVolume",
        "",
        Ok("PersistentVolume/train-0"),
    );
    check_scope(
        "kube-system",
        "PersistentVolume",
        "",
        Ok("PersistentVolume/train-0"),
    );
    check_scope("team-a", "PersistentVolume", "", forged);
    check_scope("team-a", "Job", "", forged);
    check_scope("kube-public", "Job", "", forged);
    check_scope("default", "Job", "default", Ok("default/Job/train-0"));
}

#[test]
fn a_pod_without_a_namespace_is_nobodys() {
    for event_in in ["team-a", "default", "kube-system", ""] {
        check_scope(event_in, "Pod", "", Err(Rejected::ForgedScope));
    }
    check_scope(
        "kube-system",
        "Pod",
        "kube-system",
        Ok("kube-system/Pod/train-0"),
    );
}

#[test]
fn the_corpus_of_forgeries_is_refused_and_its_neighbours_are_kept() {
    let (mut n_forged, mut n_legal) = (0, 0);
    for line in include_str!("../../../tests/fixtures/forged.jsonl").lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        let name = event.pointer("/metadata/name").unwrap().as_str().unwrap();
        let refused = pare(&event).err();
        let is_forged = matches!(
            refused,
            Some(Rejected::ForgedNamespace | Rejected::ForgedScope)
        );
        if name.starts_with("forged-") {
            n_forged += 1;
            assert!(is_forged, "{name}: {refused:?}");
        } else {
            n_legal += 1;
            assert_eq!(refused, None, "{name}");
        }
    }
    assert_eq!((n_forged, n_legal), (8, 5));
}

#[track_caller]
fn check_uid(kind: &str, uid: Value, want: &str) {
    let event = with([
        ("/metadata/namespace", json!("default")),
        ("/regarding/kind", kind.into()),
        ("/regarding/namespace", json!("default")),
        ("/regarding/uid", uid),
    ]);
    assert_eq!(pare(&event).unwrap().1.object_uid(), want);
}

#[test]
fn the_uid_of_a_node_is_its_name_and_of_anything_else_what_is_said() {
    check_uid("Node", json!("train-0"), "train-0");
    check_uid(
        "Node",
        json!("b0000000-0000-4000-8000-000000000001"),
        "train-0",
    );
    check_uid("Node", json!(""), "train-0");
    check_uid("Node", Value::Null, "train-0");
    check_uid("Pod", json!("a1"), "a1");
    check_uid("Pod", json!(""), "");
    check_uid("Pod", Value::Null, "");
    check_uid("node", json!("a1"), "a1");
}

#[test]
fn keys_are_equal_when_each_part_is_and_stand_in_order_of_the_parts() {
    let key = |it: [&str; 3]| ObjectKey::new(it[0], it[1], it[2]).unwrap();
    let ordered = [
        ["", "", ""],
        ["", "Node", "gpu-0"],
        ["a", "Pod", "a"],
        ["a", "Pod", "b"],
        // The same letters end to end, divided otherwise.
        ["a", "Pod", "bc"],
        ["a", "Podb", "c"],
        ["aP", "od", "bc"],
        ["b", "Job", "a"],
        ["b", "Pod", "Z"],
        ["b", "Pod", "a"],
    ];
    for (idx, one) in ordered.iter().enumerate() {
        for (other_idx, other) in ordered.iter().enumerate() {
            let (one, other) = (key(*one), key(*other));
            assert_eq!(one.cmp(&other), idx.cmp(&other_idx), "{one} and {other}");
            assert_eq!(one == other, idx == other_idx, "{one} and {other}");
        }
        let it = key(*one);
        assert_eq!([it.namespace(), it.kind(), it.name()], *one);
    }
}

#[test]
fn a_key_reads_as_its_parts() {
    let key = |namespace, kind, name| ObjectKey::new(namespace, kind, name).unwrap();
    assert_eq!(
        key("team-a", "Pod", "train-0").to_string(),
        "team-a/Pod/train-0"
    );
    assert_eq!(key("", "Node", "gpu-0").to_string(), "Node/gpu-0");
    assert_eq!(format!("{:?}", key("", "Node", "gpu-0")), "Node/gpu-0");
}

#[test]
fn a_part_of_a_key_is_never_cut() {
    let (fits, over) = ("x".repeat(253), "x".repeat(254));
    let all = ObjectKey::new(&fits, &fits, &fits).unwrap();
    assert_eq!(
        [all.namespace(), all.kind(), all.name()],
        [fits.as_str(); 3]
    );
    assert_eq!(ObjectKey::new(&over, "Pod", "a"), None);
    assert_eq!(ObjectKey::new("a", &over, "a"), None);
    assert_eq!(ObjectKey::new("a", "Pod", &over), None);
}
