//! With a pod selector, what is kept follows the pods that are selected.

use serde_json::{Value, json};

use super::*;
use crate::outcome::{
    Evidence, Finding, Generation, Identity, Outcome, Provenance, Severity, Status,
};

const GRACE: Seconds = 600;
const WAIT: Seconds = 30;
const OUTCOME_GRACE: Seconds = 7_200;

/// Records stay until their pod is over.
fn watching(bounds: PodBounds) -> Live {
    let mut live = live(Bounds {
        time_to_live: Seconds::MAX,
        ..Bounds::default()
    });
    live.watch_pods(bounds);
    live
}

fn pod_bounds() -> PodBounds {
    PodBounds {
        grace: GRACE,
        wait: WAIT,
        outcome_grace: OUTCOME_GRACE,
        ..PodBounds::default()
    }
}

/// A pod on a node, with the uid that `event` says.
fn pod(name: &str, node: &str, phase: &str) -> Value {
    json!({
        "metadata": { "namespace": "ns", "name": name, "uid": format!("uid-{name}") },
        "spec": { "nodeName": node },
        "status": { "phase": phase },
    })
}

fn node_event(node: &str, name: &str) -> Value {
    let mut event = event("default", node, name);
    event["regarding"] = json!({ "kind": "Node", "name": node, "uid": node });
    event
}

fn at(listing: u32, at: Seconds) -> Confirmation {
    Confirmation {
        watch: 0,
        listing,
        at,
    }
}

impl Live {
    fn see_pod(&mut self, pod: &Value, confirmed: Confirmation) {
        self.put_pod(&serde_json::from_str(&pod.to_string()).unwrap(), confirmed);
    }

    fn see_pod_deleted(&mut self, pod: &Value, confirmed: Confirmation) {
        self.delete_pod(&serde_json::from_str(&pod.to_string()).unwrap(), confirmed);
    }

    /// The names of all live records, how many Events were not wanted, and how many wait.
    #[track_caller]
    fn check_pods(&self, names: &str, unselected: u64, waiting: u64) {
        let removed = self.state().1;
        self.check(names, &removed);
        let counters = &self.counters;
        let counts = [&counters.unselected, &counters.waiting].map(|it| it.load(Relaxed));
        assert_eq!(counts, [unselected, waiting]);
    }
}

#[test]
fn what_concerns_a_selected_pod_its_node_or_its_owner_is_kept() {
    let mut live = watching(pod_bounds());
    live.see_pod(&pod("p", "n1", "Running"), at(1, 1));
    live.see(&event("ns", "p", "own"), 1, 1, 2);
    live.see(&node_event("n1", "node"), 1, 1, 2);
    live.see(&event("ns", "q", "another"), 1, 1, 2);
    live.see(&node_event("n2", "another-node"), 1, 1, 2);
    live.check_pods("node own", 0, 2);
    live.settle(2 + WAIT);
    live.check_pods("node own", 2, 0);
}

#[test]
fn without_a_selector_everything_is_kept() {
    let mut live = live(bounds());
    live.see(&event("ns", "q", "another"), 1, 1, 2);
    live.see_pod(&pod("p", "n1", "Running"), at(1, 1));
    live.check_pods("another", 0, 0);
    assert!(live.pods().is_empty());
}

#[test]
fn an_event_waits_for_its_pod_for_so_long() {
    let mut live = watching(pod_bounds());
    live.see(&event("ns", "p", "early"), 1, 1, 10);
    live.see(&node_event("n1", "early-node"), 1, 1, 10);
    live.settle(10 + WAIT - 1);
    live.check_pods("", 0, 2);
    live.see_pod(&pod("p", "", "Pending"), at(1, 10 + WAIT - 1));
    live.check_pods("early", 0, 1);
    // It gets its node in the last second.
    live.see_pod(&pod("p", "n1", "Running"), at(1, 10 + WAIT - 1));
    live.check_pods("early early-node", 0, 0);

    let mut live = watching(pod_bounds());
    live.see(&event("ns", "p", "early"), 1, 1, 10);
    live.settle(10 + WAIT);
    live.see_pod(&pod("p", "n1", "Running"), at(1, 10 + WAIT));
    live.check_pods("", 1, 0);
}

#[test]
fn so_many_events_wait_and_the_oldest_gives_way() {
    let mut live = watching(pod_bounds());
    for idx in 0..WAITING_MAX {
        live.see(
            &event("ns", &format!("p{idx}"), &format!("e{idx}")),
            1,
            1,
            1,
        );
    }
    let n = u64::try_from(WAITING_MAX).unwrap();
    live.check_pods("", 0, n);
    live.see(&event("ns", "last", "last"), 1, 1, 1);
    live.check_pods("", 1, n);
    for name in ["p0", "p1", "last"] {
        live.see_pod(&pod(name, "n1", "Running"), at(1, 2));
    }
    live.check_pods("e1 last", 1, n - 2);
}

#[test]
fn an_event_that_is_deleted_waits_no_more() {
    let mut live = watching(pod_bounds());
    live.see(&event("ns", "p", "a"), 1, 1, 1);
    live.see(&event("ns", "p", "b"), 1, 1, 1);
    live.see_deleted(&event("ns", "p", "a"));
    live.check_pods("", 1, 1);
    live.see_pod(&pod("p", "n1", "Running"), at(1, 2));
    live.check_pods("b", 1, 0);
}

#[test]
fn an_event_of_another_uid_is_not_the_pods() {
    let mut live = watching(pod_bounds());
    live.see_pod(&pod("p", "n1", "Running"), at(1, 1));
    let mut forged = event("ns", "p", "forged");
    forged["regarding"]["uid"] = "another".into();
    live.see(&forged, 1, 1, 2);
    live.settle(2 + WAIT);
    live.check_pods("", 1, 0);
    // One that names none may be.
    let mut unnamed = event("ns", "p", "unnamed");
    unnamed["regarding"]["uid"] = Value::Null;
    live.see(&unnamed, 1, 1, 40);
    live.check_pods("unnamed", 1, 0);
}

#[test]
fn the_events_of_a_terminal_pod_go_after_a_grace_and_no_more_are_taken() {
    let mut live = watching(pod_bounds());
    live.see_pod(&pod("p", "n1", "Running"), at(1, 1));
    live.see(&event("ns", "p", "own"), 1, 1, 2);
    live.see(&node_event("n1", "node"), 1, 1, 2);
    live.see_pod(&pod("p", "n1", "Succeeded"), at(1, 10));
    live.settle(10 + GRACE - 1);
    live.check_pods("node own", 0, 0);
    live.settle(10 + GRACE);
    live.check_pods("", 0, 0);
    assert_eq!(live.store.totals().object_gone, 2);
    live.see(&event("ns", "p", "late"), 1, 1, 700);
    live.see(&node_event("n1", "late-node"), 1, 1, 700);
    live.check_pods("", 2, 0);
    // It is there yet.
    assert_eq!(live.pods().len(), 1);
}

#[test]
fn a_nodes_events_stay_while_any_pod_there_is_not_over() {
    let mut live = watching(pod_bounds());
    live.see_pod(&pod("p", "n1", "Failed"), at(1, 1));
    live.see_pod(&pod("q", "n1", "Running"), at(1, 1));
    live.see(&node_event("n1", "node"), 1, 1, 2);
    live.settle(1 + GRACE);
    live.check_pods("node", 0, 0);
    live.see_pod_deleted(&pod("q", "n1", "Running"), at(1, 700));
    live.settle(700 + GRACE);
    live.check_pods("", 0, 0);
}

#[test]
fn a_pod_that_a_newer_list_does_not_have_is_deleted() {
    let mut live = watching(pod_bounds());
    for name in ["p", "q"] {
        live.see_pod(&pod(name, "n1", "Running"), at(1, 1));
        live.see(&event("ns", name, name), 1, 1, 2);
    }
    live.see_pod(&pod("q", "n1", "Running"), at(2, 50));
    live.sweep_pods(0, 2, 50);
    // Another watch's are not concerned.
    live.sweep_pods(1, 9, 50);
    live.settle(50 + GRACE - 1);
    live.check_pods("p q", 0, 0);
    live.settle(50 + GRACE);
    live.check_pods("q", 0, 0);
    assert_eq!(live.pods().len(), 1);
}

#[test]
fn a_pod_that_is_deleted_after_its_grace_is_forgotten_at_once() {
    let mut live = watching(pod_bounds());
    live.see_pod(&pod("p", "n1", "Failed"), at(1, 1));
    live.settle(1 + GRACE);
    live.see_pod_deleted(&pod("p", "n1", "Failed"), at(1, 1_000));
    assert!(live.pods().is_empty());
    // And a new one of its name is another.
    let mut recreated = pod("p", "n1", "Running");
    recreated["metadata"]["uid"] = "new".into();
    live.see_pod(&recreated, at(1, 1_001));
    let mut own = event("ns", "p", "own");
    own["regarding"]["uid"] = "new".into();
    live.see(&own, 1, 1, 1_002);
    live.settle(1_002 + GRACE);
    live.check_pods("own", 0, 0);
}

#[test]
fn a_pod_over_the_bound_is_as_unknown() {
    let mut live = watching(PodBounds {
        max: 1,
        ..pod_bounds()
    });
    live.see_pod(&pod("p", "n1", "Running"), at(1, 1));
    live.see_pod(&pod("q", "n1", "Running"), at(1, 1));
    live.see(&event("ns", "p", "a"), 1, 1, 2);
    live.see(&event("ns", "q", "b"), 1, 1, 2);
    live.check_pods("a", 0, 1);
    assert_eq!(live.counters.pods_over.load(Relaxed), 1);
}

#[test]
fn a_pod_without_an_identity_is_counted_and_not_known() {
    let mut live = watching(pod_bounds());
    live.see_pod(&json!({ "metadata": { "name": "p" } }), at(1, 1));
    assert!(live.pods().is_empty());
    assert_eq!(live.counters.pods_rejected.load(Relaxed), 1);
}

/// A finding that holds, on a pod.
fn find(live: &Live, name: &str) -> SubjectKey {
    let subject = SubjectKey {
        object: ObjectKey::new("ns", "Pod", name).unwrap(),
        uid: format!("uid-{name}").as_str().into(),
    };
    let of = |bucket: &Bucket| crate::subject::Subject::of(subject.clone(), bucket, |_| true);
    let pictured = live.store.view(&subject.object, of).flatten().unwrap();
    let finding = Finding {
        identity: Identity {
            category: "category".into(),
            code: "code".into(),
            key: "".into(),
        },
        severity: Severity::Warning,
        status: Status::Active,
        blame: crate::outcome::Blame::Unknown,
        message: "".into(),
        attributes: crate::outcome::Attributes::default(),
        evidence: vec![Evidence::of(&pictured.events[0], true)],
    };
    let outcome = Outcome {
        findings: vec![finding],
        ..Outcome::default()
    };
    let provenance = Arc::new(Provenance {
        name: "classifier".into(),
        version: "".into(),
        digest: "".into(),
        settings_digest: "".into(),
        wit: "".into(),
    });
    let change = live
        .outcomes
        .merge(&pictured, &provenance, Generation(1), Ok(outcome));
    assert!(change.is_some());
    subject
}

#[test]
fn what_was_found_of_a_deleted_pod_ends_after_a_longer_grace_and_says_why() {
    let mut live = watching(pod_bounds());
    for name in ["p", "q"] {
        live.see_pod(&pod(name, "n1", "Running"), at(1, 1));
        live.see(&event("ns", name, name), 1, 1, 2);
        find(&live, name);
    }
    live.see_pod_deleted(&pod("p", "n1", "Running"), at(1, 100));
    // Terminal is not deleted.
    live.see_pod(&pod("q", "n1", "Failed"), at(1, 100));
    live.settle(100 + OUTCOME_GRACE - 1);
    assert_eq!(live.outcomes.n_subjects(), 2);
    live.settle(100 + OUTCOME_GRACE);
    assert_eq!(live.outcomes.n_subjects(), 1);

    let mut ended = Vec::new();
    let mut tell = |it: Change, _| {
        let cleared = it.delta.cleared.iter();
        ended.extend(cleared.map(|(_, why)| (it.subject.object.name().to_owned(), why.as_str())));
    };
    live.collect(&mut tell, &mut |_| {});
    assert_eq!(ended, [("p".to_owned(), "object-gone")]);
}
