//! What is known of a subject from elsewhere, and what its events' claims are held against.

use super::*;
use crate::pods::Pods;

const MINUTE: UnixMs = 60_000;

/// When the pods here failed: at noon of the epoch's first day.
const FAILED_AT: UnixMs = 12 * 60 * MINUTE;

fn pod(uid: &str, node: Option<&str>, at: Option<UnixMs>) -> Pod {
    let failure = |at| {
        Arc::new(Failure {
            code: "Error".into(),
            at,
            ..Failure::default()
        })
    };
    let owner = ObjectRef {
        api_version: "batch/v1".into(),
        object: ObjectKey::new("ns", "Job", "job").unwrap(),
        uid: "job-uid".into(),
    };
    Pod {
        uid: uid.into(),
        node: node.map(Into::into),
        owner: Some(owner),
        failure: at.map(failure),
        ..Pod::default()
    }
}

fn pods(all: impl IntoIterator<Item = Pod>) -> Pods {
    let mut pods = Pods::default();
    for it in all {
        pods.put(&key("").object, it, Version::default());
    }
    pods
}

/// An Event about an object, reported by a node, seen from one time to another.
fn put(store: &Store, object: [&str; 3], name: &str, instance: &str, seen: [UnixMs; 2]) {
    let [kind, object_name, uid] = object;
    let [first, last] = seen.map(|at| {
        let at = jiff::Timestamp::from_millisecond(i64::try_from(at).unwrap());
        at.unwrap().to_string()
    });
    let namespace = if kind == "Node" { "" } else { "ns" };
    let json = serde_json::json!({
        "metadata": { "namespace": if kind == "Node" { "default" } else { "ns" }, "name": name,
            "creationTimestamp": first },
        "regarding": { "kind": kind, "namespace": namespace, "name": object_name, "uid": uid },
        "reportingInstance": instance,
        "deprecatedFirstTimestamp": first,
        "deprecatedLastTimestamp": last,
    })
    .to_string();
    let wire: WireEvent<'_> = serde_json::from_str(&json).unwrap();
    let (object, record) = Record::pare_down(&wire, Caps::default(), &Interner::default()).unwrap();
    store.put(object, record, Confirmation::default());
}

const POD: [&str; 3] = ["Pod", "pod", "x"];
const NODE: [&str; 3] = ["Node", "n1", "n1"];
const JOB: [&str; 3] = ["Job", "job", "job-uid"];

/// The subject of a pod with all that is known of it.
fn subject(store: &Store, pods: &Pods, uid: &str, code: Option<&str>) -> Subject {
    let of = |bucket: &Bucket| Subject::of(key(uid), bucket, |_| true);
    let own = store.view(&key("").object, of).flatten();
    let mut subject = own.unwrap_or_else(|| Subject::without_records(key(uid)));
    subject.know(pods, code);
    subject.surround(store, |_, _| true);
    subject
}

/// The names of a subject's events, and what each is about if that is another object.
fn told(subject: &Subject) -> Vec<String> {
    let name = |(idx, it): (usize, &Record)| match subject.about(idx) {
        Some(about) => format!("{} of {}", it.name(), about.object),
        None => it.name().to_owned(),
    };
    subject.events.iter().enumerate().map(name).collect()
}

#[test]
fn a_failed_pod_is_given_what_is_said_of_its_node_and_its_owner() {
    let store = Store::default();
    put(&store, JOB, "job", "", [FAILED_AT - 3 * MINUTE; 2]);
    put(&store, POD, "own", "n1", [FAILED_AT - 2 * MINUTE; 2]);
    put(&store, NODE, "node", "n1", [FAILED_AT - MINUTE; 2]);
    put(
        &store,
        ["Node", "n2", "n2"],
        "other-node",
        "n2",
        [FAILED_AT; 2],
    );
    put(
        &store,
        ["Job", "job", "another"],
        "other-job",
        "",
        [FAILED_AT; 2],
    );
    let failed = pods([pod("x", Some("n1"), Some(FAILED_AT))]);

    let subject = subject(&store, &failed, "x", None);
    assert_eq!(
        told(&subject),
        ["job of ns/Job/job", "own", "node of Node/n1"]
    );
    assert_eq!(subject.live.len(), 3);
    assert_eq!(subject.version, store.version());
}

#[test]
fn a_pod_that_did_not_fail_is_given_its_own_alone() {
    let store = Store::default();
    put(&store, POD, "own", "n1", [FAILED_AT; 2]);
    put(&store, NODE, "node", "n1", [FAILED_AT; 2]);
    let running = pods([pod("x", Some("n1"), None)]);
    let subject = subject(&store, &running, "x", None);
    assert_eq!(told(&subject), ["own"]);
    assert!(subject.pod.is_some() && subject.failure.is_none());
}

#[test]
fn a_failed_pod_of_which_nothing_is_said_has_its_nodes_events() {
    let store = Store::default();
    put(&store, NODE, "node", "n1", [FAILED_AT; 2]);
    let failed = pods([pod("x", Some("n1"), Some(FAILED_AT))]);
    assert_eq!(
        told(&subject(&store, &failed, "x", None)),
        ["node of Node/n1"]
    );
}

#[track_caller]
fn check_window(seen: [UnixMs; 2], is_given: bool) {
    let store = Store::default();
    put(&store, NODE, "node", "n1", seen);
    let failed = pods([pod("x", Some("n1"), Some(FAILED_AT))]);
    let subject = subject(&store, &failed, "x", None);
    assert_eq!(subject.events.len(), usize::from(is_given), "{seen:?}");
    // It is evidence of what was said before, inside the window or not.
    assert_eq!(subject.live.len(), 1);
}

#[test]
fn what_was_seen_around_the_failure_is_given_and_nothing_else() {
    let (from, to) = (FAILED_AT - BEFORE_FAILURE_MS, FAILED_AT + AFTER_FAILURE_MS);
    check_window([MINUTE, from], true);
    check_window([MINUTE, from - 1], false);
    check_window([to, to + MINUTE], true);
    check_window([to + 1, to + MINUTE], false);
    check_window([MINUTE, to + MINUTE], true);
}

#[test]
fn of_too_many_those_are_given_that_were_seen_last() {
    let store = Store::default();
    let n = u64::try_from(SURROUNDINGS_MAX).unwrap() + 1;
    for idx in 0..n {
        let at = FAILED_AT - MINUTE + idx;
        put(&store, NODE, &format!("{idx:02}"), "n1", [at; 2]);
    }
    let failed = pods([pod("x", Some("n1"), Some(FAILED_AT))]);
    let subject = subject(&store, &failed, "x", None);
    assert_eq!(subject.events.len(), SURROUNDINGS_MAX);
    assert_eq!(
        (told(&subject)[0].as_str(), subject.live.len()),
        ("01 of Node/n1", 33)
    );
}

#[test]
fn events_created_together_are_in_the_order_in_which_they_came() {
    let store = Store::default();
    for (object, name) in [(NODE, "1"), (POD, "2"), (JOB, "3"), (POD, "4"), (NODE, "5")] {
        put(&store, object, name, "n1", [FAILED_AT; 2]);
    }
    let failed = pods([pod("x", Some("n1"), Some(FAILED_AT))]);
    let names: Vec<_> = subject(&store, &failed, "x", None)
        .events
        .iter()
        .map(|it| it.name().to_owned())
        .collect();
    assert_eq!(names, ["1", "2", "3", "4", "5"]);
}

#[test]
fn a_code_that_the_caller_knows_is_of_the_pods_own_failure() {
    let store = Store::default();
    put(&store, POD, "own", "n1", [0, 7 * MINUTE]);
    let failed = pods([pod("x", Some("n1"), Some(FAILED_AT))]);
    let failure = subject(&store, &failed, "x", Some("Oops")).failure.unwrap();
    assert_eq!((&*failure.code, failure.at), ("Oops", FAILED_AT));
}

#[test]
fn without_a_failure_of_its_own_it_failed_a_second_after_its_last_event() {
    let store = Store::default();
    put(&store, POD, "first", "n1", [0, 7 * MINUTE]);
    put(&store, POD, "second", "n1", [MINUTE, 2 * MINUTE]);
    for pods in [pods([]), pods([pod("x", Some("n1"), None)])] {
        let failure = subject(&store, &pods, "x", Some("Oops")).failure.unwrap();
        assert_eq!((&*failure.code, failure.at), ("Oops", 7 * MINUTE + 1_000));
    }
}

#[track_caller]
fn check_trust(
    claimed_uid: &str,
    claimed_node: &str,
    pods: &Pods,
    uid: &str,
    want: [Agreement; 2],
) {
    let store = Store::default();
    put(
        &store,
        ["Pod", "pod", claimed_uid],
        "event",
        claimed_node,
        [FAILED_AT; 2],
    );
    let Trust { uid, node } = subject(&store, pods, uid, None).trust(0);
    assert_eq!(
        [uid, node],
        want,
        "uid {claimed_uid:?}, node {claimed_node:?}"
    );
}

#[test]
fn an_events_claims_are_held_against_its_pod() {
    use Agreement::{Absent, Different, Same, Unknown};

    // Known, and on a node.
    let placed = pods([pod("x", Some("n1"), None)]);
    check_trust("x", "n1", &placed, "x", [Same, Same]);
    check_trust("x", "n2", &placed, "x", [Same, Different]);
    check_trust("x", "", &placed, "x", [Same, Absent]);
    check_trust("", "n1", &placed, "", [Absent, Same]);
    check_trust("", "n2", &placed, "", [Absent, Different]);
    check_trust("", "", &placed, "", [Absent, Absent]);
    check_trust("y", "n1", &placed, "y", [Different, Unknown]);
    check_trust("y", "", &placed, "y", [Different, Unknown]);

    // Known, and on no node yet: nobody there can report on it.
    let pending = pods([pod("x", None, None)]);
    check_trust("x", "n1", &pending, "x", [Same, Different]);
    check_trust("x", "", &pending, "x", [Same, Absent]);
    check_trust("", "n1", &pending, "", [Absent, Different]);
    check_trust("", "", &pending, "", [Absent, Absent]);

    // Not known: its own uid is all that there is.
    let none = pods([]);
    check_trust("x", "n1", &none, "x", [Same, Unknown]);
    check_trust("x", "", &none, "x", [Same, Unknown]);
    check_trust("", "n1", &none, "", [Unknown, Unknown]);
    check_trust("", "", &none, "", [Unknown, Unknown]);
}

#[test]
fn of_a_recreated_pod_each_uid_has_what_is_its_own() {
    let store = Store::default();
    put(&store, ["Pod", "pod", "old"], "1", "n1", [FAILED_AT; 2]);
    put(&store, ["Pod", "pod", "new"], "2", "n2", [FAILED_AT; 2]);
    let both = pods([pod("old", Some("n1"), None), pod("new", Some("n2"), None)]);
    for uid in ["old", "new"] {
        let subject = subject(&store, &both, uid, None);
        let Trust { uid, node } = subject.trust(0);
        assert_eq!([uid, node], [Agreement::Same; 2]);
    }
}

#[test]
fn a_node_is_where_it_is_and_nobody_knows_where_an_owner_is() {
    let store = Store::default();
    put(&store, NODE, "1", "n1", [FAILED_AT; 2]);
    put(&store, NODE, "2", "n2", [FAILED_AT; 2]);
    put(&store, NODE, "3", "", [FAILED_AT; 2]);
    put(&store, JOB, "4", "n1", [FAILED_AT; 2]);
    let failed = pods([pod("x", Some("n1"), Some(FAILED_AT))]);
    let subject = subject(&store, &failed, "x", None);
    let trust: Vec<_> = (0..4).map(|idx| subject.trust(idx)).collect();
    assert!(trust.iter().all(|it| it.uid == Agreement::Same));
    let nodes: Vec<_> = trust.iter().map(|it| it.node).collect();
    assert_eq!(
        nodes,
        [
            Agreement::Same,
            Agreement::Different,
            Agreement::Absent,
            Agreement::Unknown
        ]
    );
}
