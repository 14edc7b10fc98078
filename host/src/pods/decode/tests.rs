//! What becomes of a Pod that is pared down, rule by rule, and that nothing in it can
//! do harm.

use std::slice;

use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::*;
use crate::record::decode::from_json;

const NONE: &[&str] = &[];

/// A time of a certain hour, as JSON.
fn at(hour: u8) -> String {
    format!("2026-11-28T{hour:02}:00:00Z")
}

/// The same as it is held.
fn ms(hour: u8) -> UnixMs {
    1_795_824_000_000 + UnixMs::from(hour) * 3_600_000
}

/// A Pod with all that is read.
fn full() -> Json {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "train-0",
            "namespace": "team-a",
            "uid": "7c1a3f0e-0000-4000-8000-000000000001",
            "resourceVersion": "77",
            "creationTimestamp": at(1),
            "labels": {"run": "r7", "action": "a1", "app": "trainer"},
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "u1"},
                {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "u2",
                 "controller": true, "blockOwnerDeletion": true},
            ],
        },
        "spec": {"nodeName": "gpu-7", "containers": [{"name": "main"}]},
        "status": {
            "phase": "Running",
            "startTime": at(2),
            "conditions": [{"type": "Ready", "lastTransitionTime": at(3)}],
            "containerStatuses": [container("main", json!({"running": {"startedAt": at(2)}}), json!({}))],
        },
    })
}

fn container(name: &str, state: impl Into<Json>, last_state: impl Into<Json>) -> Json {
    let (state, last_state): (Json, Json) = (state.into(), last_state.into());
    json!({"name": name, "restartCount": 1, "state": state, "lastState": last_state})
}

fn ended(exit_code: i64, hour: u8) -> Json {
    json!({"terminated": {"exitCode": exit_code, "finishedAt": at(hour)}})
}

fn with(changes: &[(&str, Json)]) -> Json {
    let mut pod = full();
    for (pointer, value) in changes {
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        let parent = pod.pointer_mut(parent).unwrap().as_object_mut().unwrap();
        parent.insert(key.to_owned(), value.clone());
    }
    pod
}

/// Pares down, and says how many fields were malformed.
fn pare_keeping(pod: &Json, keep: &[&str]) -> (Result<(ObjectKey, Pod), Rejected>, u32) {
    let json = pod.to_string();
    let wire: WirePod<'_> = from_json(json.as_bytes()).unwrap();
    (Pod::pare_down(&wire, keep), wire.n_malformed())
}

fn pare(changes: &[(&str, Json)]) -> Pod {
    let (pod, n_malformed) = pare_keeping(&with(changes), NONE);
    assert_eq!(n_malformed, 0);
    pod.unwrap().1
}

/// The failure of a Pod in this phase, with these statuses of its containers.
fn failure(phase: &str, containers: &[Json]) -> Option<Failure> {
    let pod = pare(&[
        ("/status/phase", phase.into()),
        ("/status/containerStatuses", containers.into()),
    ]);
    pod.failure.map(|it| (*it).clone())
}

#[test]
fn what_is_said_of_a_pod_is_kept_and_no_more() {
    let (it, n_malformed) = pare_keeping(&full(), &["run", "other", "action"]);
    let (object, pod) = it.unwrap();
    assert_eq!(object.to_string(), "team-a/Pod/train-0");
    assert_eq!(n_malformed, 0);
    let labels = [("action", "a1"), ("run", "r7")];
    let want = Pod {
        uid: "7c1a3f0e-0000-4000-8000-000000000001".into(),
        node: Some("gpu-7".into()),
        phase: Some(Phase::Running),
        owner: Some(ObjectRef {
            api_version: "batch/v1".into(),
            object: ObjectKey::new("team-a", "Job", "train").unwrap(),
            uid: "u2".into(),
        }),
        labels: labels.map(|(key, it)| (key.into(), it.into())).into(),
        failure: None,
    };
    assert_eq!(pod, want);
}

#[test]
fn a_pod_that_nobody_has_put_anywhere_has_neither_node_nor_failure() {
    let pod = json!({"metadata": {"name": "p", "namespace": "n", "uid": "u"}});
    let (_, pod) = pare_keeping(&pod, NONE).0.unwrap();
    let want = Pod {
        uid: "u".into(),
        ..Pod::default()
    };
    assert_eq!(pod, want);
}

#[test]
fn a_pod_without_an_identity_is_refused() {
    for pointer in ["/metadata/name", "/metadata/namespace", "/metadata/uid"] {
        let of = |text: &str| pare_keeping(&with(&[(pointer, text.into())]), NONE).0;
        assert_eq!(of(""), Err(Rejected::NoIdentity), "{pointer}");
        assert!(of(&"x".repeat(IDENTITY_MAX_BYTES)).is_ok(), "{pointer}");
        let long = of(&"x".repeat(IDENTITY_MAX_BYTES + 1));
        assert_eq!(long, Err(Rejected::IdentityTooLong), "{pointer}");
    }
    let null = pare_keeping(
        &json!({"metadata": null, "spec": null, "status": null}),
        NONE,
    );
    assert_eq!(null, (Err(Rejected::NoIdentity), 0));
}

#[test]
fn a_node_or_an_owner_whose_name_is_none_is_none() {
    let fits = "x".repeat(IDENTITY_MAX_BYTES);
    let long = format!("{fits}x");
    assert_eq!(
        pare(&[("/spec/nodeName", fits.as_str().into())])
            .node
            .as_deref(),
        Some(&*fits)
    );
    assert_eq!(pare(&[("/spec/nodeName", long.as_str().into())]).node, None);
    let owner = |key: &str, value: &str| {
        let mut it =
            json!({"apiVersion": "v1", "kind": "K", "name": "n", "uid": "u", "controller": true});
        it.as_object_mut()
            .unwrap()
            .insert(key.to_owned(), value.into());
        pare(&[("/metadata/ownerReferences", json!([it]))]).owner
    };
    for key in ["apiVersion", "kind", "name", "uid"] {
        assert!(owner(key, &fits).is_some(), "{key}");
        assert_eq!(owner(key, &long), None, "{key}");
    }
    assert_eq!(owner("kind", ""), None);
    assert_eq!(owner("name", ""), None);
    // A static Pod.
    let node = owner("kind", "Node").unwrap();
    assert_eq!(node.object.to_string(), "Node/n");
}

#[test]
fn a_pod_that_runs_or_ended_well_has_no_failure() {
    let well = container("main", ended(0, 5), json!({}));
    let badly = container("main", ended(1, 5), ended(1, 4));
    for phase in ["Pending", "Running", "Unknown", "Succeeded", "Odd"] {
        assert_eq!(failure(phase, slice::from_ref(&well)), None, "{phase}");
    }
    assert_eq!(failure("Succeeded", &[badly]), None);
}

#[test]
fn a_failed_pod_says_itself_of_what() {
    let pod = pare(&[
        ("/status/phase", "Failed".into()),
        ("/status/reason", "Evicted".into()),
        (
            "/status/message",
            "The node was low on resource: memory.".into(),
        ),
        (
            "/status/containerStatuses",
            json!([container("main", ended(137, 5), json!({}))]),
        ),
    ]);
    let want = Failure {
        code: "Evicted".into(),
        message: "The node was low on resource: memory.".into(),
        at: ms(5),
        attributes: Box::default(),
    };
    assert_eq!(pod.failure.as_deref(), Some(&want));
}

#[test]
fn else_its_first_container_that_ended_badly_does() {
    let of = |name: &str, code, hour| container(name, ended(code, hour), json!({}));
    let code = |containers: &[Json]| {
        failure("Failed", containers).unwrap().attributes[0]
            .1
            .clone()
    };
    assert_eq!(&*code(&[of("a", 0, 3), of("b", 1, 5), of("c", 2, 4)]), "c");
    // In order, where they ended at once.
    assert_eq!(&*code(&[of("a", 0, 4), of("b", 1, 4), of("c", 2, 4)]), "b");
    // What has no time comes last, and an end that was followed by a start after that.
    let timeless = container("t", json!({"terminated": {"exitCode": 1}}), json!({}));
    assert_eq!(&*code(&[timeless.clone(), of("b", 1, 9)]), "b");
    let restarted = container("r", json!({"waiting": {}}), ended(1, 1));
    assert_eq!(&*code(&[restarted.clone(), timeless]), "t");
    assert_eq!(&*code(&[restarted]), "r");
}

#[test]
fn an_init_container_counts_like_any_other_and_a_debug_container_does_not() {
    let statuses = |of: &str, phase: &str| {
        let pod = pare(&[
            ("/status/phase", phase.into()),
            ("/status/containerStatuses", json!([])),
            (of, json!([container("x", ended(3, 4), json!({}))])),
        ]);
        pod.failure.map(|it| it.code.clone())
    };
    for phase in ["Failed", "Running"] {
        let code = statuses("/status/initContainerStatuses", phase);
        assert_eq!(code.as_deref(), Some("3"));
    }
    assert_eq!(
        statuses("/status/ephemeralContainerStatuses", "Running"),
        None
    );
}

#[test]
fn each_restart_is_a_failure_and_the_newest_is_told() {
    let running = || json!({"running": {"startedAt": at(6)}});
    let restarted = |name: &str, code, hour| container(name, running(), ended(code, hour));
    let of = |containers: &[Json]| failure("Running", containers).map(|it| it.at);
    assert_eq!(of(&[restarted("a", 1, 3)]), Some(ms(3)));
    assert_eq!(
        of(&[restarted("a", 1, 3), restarted("b", 1, 5)]),
        Some(ms(5))
    );
    assert_eq!(
        of(&[restarted("a", 1, 5), restarted("b", 0, 6)]),
        Some(ms(5))
    );
    // It waits to be started again.
    let waiting = container("a", ended(1, 7), ended(1, 6));
    assert_eq!(of(&[waiting]), Some(ms(7)));
}

#[test]
fn how_a_container_ended_is_the_code_the_message_and_the_attributes() {
    let end = |terminated: Json| {
        let it = container("main", json!({"terminated": terminated}), json!({}));
        failure("Failed", &[it]).unwrap()
    };
    let oom = end(json!({"exitCode": 137, "signal": 9, "reason": "OOMKilled",
        "message": "Traceback", "startedAt": at(3), "finishedAt": at(4)}));
    let attributes = [
        ("container", "main"),
        ("exit-code", "137"),
        ("signal", "9"),
        ("reason", "OOMKilled"),
    ];
    let want = Failure {
        code: "OOMKilled".into(),
        message: "Traceback".into(),
        at: ms(4),
        attributes: attributes.map(|(name, it)| (name, it.into())).into(),
    };
    assert_eq!(oom, want);
    let plain = end(json!({"exitCode": -1_073_741_819, "finishedAt": at(4)}));
    let attributes = [("container", "main"), ("exit-code", "-1073741819")];
    let want = Failure {
        code: "-1073741819".into(),
        message: "container main exited with -1073741819".into(),
        at: ms(4),
        attributes: attributes.map(|(name, it)| (name, it.into())).into(),
    };
    assert_eq!(plain, want);
}

#[test]
fn a_failure_is_of_the_newest_time_that_anything_tells() {
    let failed = ("/status/phase", json!("Failed"));
    let evicted = ("/status/reason", json!("Evicted"));
    let time = |changes: &[(&str, Json)]| {
        let changes: Vec<_> = [&[failed.clone(), evicted.clone()], changes].concat();
        pare(&changes).failure.unwrap().at
    };
    let well = json!([container("main", ended(0, 9), ended(1, 8))]);
    let none = || json!(null);
    let mut changes = vec![
        ("/status/containerStatuses", well),
        ("/metadata/deletionTimestamp", json!(at(7))),
    ];
    assert_eq!(time(&changes), ms(9));
    changes.push(("/status/containerStatuses", none()));
    assert_eq!(time(&changes), ms(3));
    changes.push(("/status/conditions", none()));
    assert_eq!(time(&changes), ms(7));
    changes.push(("/metadata/deletionTimestamp", none()));
    assert_eq!(time(&changes), ms(2));
    changes.push(("/status/startTime", none()));
    assert_eq!(time(&changes), ms(1));
    changes.push(("/metadata/creationTimestamp", none()));
    assert_eq!(time(&changes), 0);
    // So is that of a container of which nobody saw the end.
    let lost = container(
        "main",
        json!({"terminated": {"exitCode": 137, "finishedAt": null}}),
        json!({}),
    );
    assert_eq!(failure("Failed", &[lost]).unwrap().at, ms(3));
}

#[test]
fn a_pod_that_failed_of_nothing_failed_all_the_same() {
    // As the garbage collector leaves those of a node that is gone.
    let it = failure("Failed", &[]).unwrap();
    assert_eq!((&*it.code, &*it.message, it.at), (UNKNOWN, "", ms(3)));
}

#[test]
fn texts_are_cut_at_the_last_character_that_fits() {
    let of = |max: usize, text: &str, read: fn(&Failure) -> &str, key: &str| {
        let mut end = json!({"exitCode": 1, "reason": "r", "message": "m", "finishedAt": at(4)});
        end.as_object_mut()
            .unwrap()
            .insert(key.to_owned(), text.into());
        let it = container("main", json!({"terminated": end}), json!({}));
        let it = failure("Failed", &[it]).unwrap();
        assert_eq!(read(&it), cut(text, max), "{key}");
        it
    };
    for n in [CODE_MAX_BYTES, CODE_MAX_BYTES + 1] {
        let it = of(CODE_MAX_BYTES, &"x".repeat(n), |it| &it.code, "reason");
        assert_eq!(it.attributes[2].1.len(), CODE_MAX_BYTES);
    }
    for n in [MESSAGE_MAX_BYTES, MESSAGE_MAX_BYTES + 1] {
        of(
            MESSAGE_MAX_BYTES,
            &"x".repeat(n),
            |it| &it.message,
            "message",
        );
    }
    of(
        MESSAGE_MAX_BYTES,
        &"€".repeat(MESSAGE_MAX_BYTES),
        |it| &it.message,
        "message",
    );
    let pod = pare(&[
        ("/status/phase", "Failed".into()),
        ("/status/reason", "x".repeat(CODE_MAX_BYTES + 1).into()),
        ("/status/message", "x".repeat(MESSAGE_MAX_BYTES + 1).into()),
    ]);
    let it = pod.failure.unwrap();
    assert_eq!(
        (it.code.len(), it.message.len()),
        (CODE_MAX_BYTES, MESSAGE_MAX_BYTES)
    );
    let it = failure(
        "Failed",
        &[container(&"x".repeat(1 << 20), ended(1, 4), json!({}))],
    )
    .unwrap();
    assert_eq!(it.attributes[0].1.len(), CODE_MAX_BYTES);
    assert!(it.message.ends_with(" exited with 1"));
}

#[test]
fn of_labels_those_that_are_asked_for_are_read() {
    let labels = |labels: &str, keep: &[&str]| {
        let json = format!(
            r#"{{"metadata": {{"name": "p", "namespace": "n", "uid": "u", "labels": {labels}}}}}"#
        );
        let wire: WirePod<'_> = from_json(json.as_bytes()).unwrap();
        let (_, it) = Pod::pare_down(&wire, keep).unwrap();
        let it = it.labels.iter().map(|(key, it)| format!("{key}={it}"));
        (it.collect::<Vec<_>>().join(","), wire.n_malformed())
    };
    let of = |it: &str| labels(it, &["a", "b"]);
    assert_eq!(
        of(r#"{"b": "1", "c": "2", "a": "3"}"#),
        ("a=3,b=1".to_owned(), 0)
    );
    assert_eq!(of(r#"{"a": "1", "\u0061": "2"}"#), ("a=2".to_owned(), 0));
    assert_eq!(of(r#"{"a": 7, "b": {"a": "1"}}"#), (String::new(), 0));
    assert_eq!(of("null"), (String::new(), 0));
    assert_eq!(of(r#"["a"]"#), (String::new(), 1));
    assert_eq!(labels(r#"{"a": "1"}"#, NONE), (String::new(), 0));
    for n in [LABEL_MAX_BYTES, LABEL_MAX_BYTES + 1] {
        let (it, _) = of(&format!(r#"{{"a": "{}"}}"#, "x".repeat(n)));
        assert_eq!(it.len(), "a=".len() + LABEL_MAX_BYTES);
    }
}

#[test]
fn a_field_of_another_type_counts_as_absent_and_is_counted() {
    let of_any_pod = [
        "/metadata/resourceVersion",
        "/metadata/creationTimestamp",
        "/metadata/deletionTimestamp",
        "/metadata/ownerReferences",
        "/spec",
        "/spec/nodeName",
        "/status",
        "/status/phase",
        "/status/reason",
        "/status/message",
        "/status/startTime",
        "/status/conditions",
        "/status/initContainerStatuses",
        "/status/containerStatuses",
    ];
    for pointer in of_any_pod {
        let (absent, n_malformed) = pare_keeping(&with(&[(pointer, json!(null))]), NONE);
        assert_eq!(n_malformed, 0, "{pointer}");
        for wrong in [json!(true), json!(-1), json!(1.5), json!(42)] {
            let (it, n_malformed) = pare_keeping(&with(&[(pointer, wrong.clone())]), NONE);
            assert_eq!((&it, n_malformed), (&absent, 1), "{pointer}: {wrong}");
        }
    }
    let odd = json!([null, 7, [], {}, {"state": 7}, {"state": {"terminated": [1]}},
        {"state": {"terminated": {"exitCode": "1", "finishedAt": "soon"}}}]);
    let (it, n_malformed) = pare_keeping(&with(&[("/status/containerStatuses", odd)]), NONE);
    assert_eq!((it.unwrap().1.failure, n_malformed), (None, 6));
}

#[test]
fn what_is_held_of_a_pod_does_not_grow_with_it() {
    let many = 20_000;
    let containers: Vec<_> = (0..many)
        .map(|it| container(&format!("c{it}"), ended(1, 5), ended(1, 4)))
        .collect();
    let owners: Vec<_> = (0..many)
        .map(|it| json!({"kind": "K", "name": format!("{it}"), "controller": true}))
        .collect();
    let labels: serde_json::Map<_, _> =
        (0..many).map(|it| (format!("l{it}"), "v".into())).collect();
    let pod = with(&[
        ("/metadata/labels", labels.into()),
        ("/metadata/ownerReferences", owners.into()),
        ("/status/phase", "Failed".into()),
        ("/status/containerStatuses", containers.into()),
    ]);
    let (_, it) = pare_keeping(&pod, &["l7"]).0.unwrap();
    assert_eq!(it.labels.len(), 1);
    assert_eq!(it.owner.unwrap().object.name(), "0");
    assert_eq!(&*it.failure.unwrap().attributes[0].1, "c0");
}

#[test]
fn depth_costs_nothing_and_what_is_no_object_is_an_error() {
    let n = 100_000;
    for (begin, end) in [
        (r#"{"metadata":"#, "}"),
        (r#"{"metadata":{"labels":{"run":"#, "}}}"),
        (r#"{"metadata":{"ownerReferences":"#, "}}"),
        (r#"{"status":{"containerStatuses":[{"state":"#, "}]}}"),
    ] {
        for (open, close) in [("[", "]"), (r#"{"x":"#, "}")] {
            let json = [begin, &open.repeat(n), "1", &close.repeat(n), end].concat();
            let wire: WirePod<'_> = from_json(json.as_bytes()).unwrap();
            assert_eq!(wire.metadata.labels.kept(&["run"]), Box::default());
        }
    }
    for it in ["", "null", "[]", "7", r#""Pod""#, "{"] {
        assert!(from_json::<WirePod<'_>>(it.as_bytes()).is_err(), "{it}");
    }
}

fn any_value() -> impl Strategy<Value = Json> {
    let keys = [
        "metadata",
        "name",
        "namespace",
        "uid",
        "labels",
        "ownerReferences",
        "controller",
        "apiVersion",
        "kind",
        "creationTimestamp",
        "deletionTimestamp",
        "spec",
        "nodeName",
        "status",
        "phase",
        "reason",
        "message",
        "startTime",
        "conditions",
        "lastTransitionTime",
        "initContainerStatuses",
        "containerStatuses",
        "state",
        "lastState",
        "terminated",
        "exitCode",
        "signal",
        "finishedAt",
    ];
    let texts = [
        "",
        "Failed",
        "Running",
        "Node",
        "2026-11-28T09:00:00Z",
        "9999-12-31T23:59:59Z",
        "run",
    ];
    let leaf = prop_oneof![
        1 => Just(Json::Null),
        1 => any::<bool>().prop_map(Json::from),
        2 => any::<i64>().prop_map(Json::from),
        1 => any::<f64>().prop_map(Json::from),
        4 => prop::sample::select(texts.to_vec()).prop_map(Json::from),
        1 => any::<String>().prop_map(Json::from),
        1 => ("[a€\u{1f980}]", 0..3_000_usize).prop_map(|(unit, n)| unit.repeat(n).into()),
    ];
    leaf.prop_recursive(5, 64, 8, move |inner| {
        let pair = (prop::sample::select(keys.to_vec()), inner.clone());
        prop_oneof![
            1 => prop::collection::vec(inner, 0..4).prop_map(Json::from),
            4 => prop::collection::vec(pair, 0..12).prop_map(|it| {
                let it = it.into_iter().map(|(key, it)| (key.to_owned(), it));
                it.collect::<serde_json::Map<_, _>>().into()
            }),
        ]
    })
}

proptest! {
    #[test]
    fn decoding_an_object_never_fails_and_caps_hold(status in any_value(), spec in any_value(), beside in any_value()) {
        let mut pod = with(&[("/status", status), ("/spec", spec)]);
        if let (Json::Object(pod), Json::Object(beside)) = (&mut pod, beside) {
            pod.extend(beside);
        }
        let (it, _) = pare_keeping(&pod, &["run", "name"]);
        let Ok((object, pod)) = it else { return Ok(()) };
        prop_assert_eq!(object.kind(), "Pod");
        prop_assert!(!object.name().is_empty() && !object.namespace().is_empty() && !pod.uid.is_empty());
        prop_assert!(pod.labels.iter().all(|(_, it)| it.len() <= LABEL_MAX_BYTES));
        prop_assert!(pod.node.is_none_or(|it| !it.is_empty() && it.len() <= IDENTITY_MAX_BYTES));
        if let Some(it) = pod.failure {
            prop_assert!(!it.code.is_empty() && it.code.len() <= CODE_MAX_BYTES);
            prop_assert!(it.message.len() <= MESSAGE_MAX_BYTES);
            prop_assert!(it.attributes.iter().all(|(_, it)| !it.is_empty() && it.len() <= CODE_MAX_BYTES));
            prop_assert_ne!(pod.phase, Some(Phase::Succeeded));
        }
    }

    #[test]
    fn decoding_any_bytes_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200), at in any::<prop::sample::Index>()) {
        assert!(from_json::<WirePod<'_>>(&bytes).is_err() || bytes.contains(&b'{'));
        // And no part of a Pod is one.
        let json = full().to_string();
        let part = &json.as_bytes()[..at.index(json.len())];
        prop_assert!(from_json::<WirePod<'_>>(part).is_err());
    }
}
