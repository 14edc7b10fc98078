//! What of outcomes has to leave, and when.

use super::*;
use crate::store::Seconds;

/// Outcomes of many pods, without a store: each pod has one Event.
#[derive(Default)]
struct Pods {
    outcomes: Outcomes,
}

impl Pods {
    fn subject(namespace: &str, pod: &str) -> Subject {
        let json = serde_json::json!({
            "metadata": { "namespace": namespace, "name": "event", "uid": "event" },
            "regarding": { "kind": "Pod", "namespace": namespace, "name": pod, "uid": "u" },
            "note": "note",
            "deprecatedLastTimestamp": "2026-01-01T00:00:00Z",
        })
        .to_string();
        let wire: WireEvent<'_> = serde_json::from_str(&json).unwrap();
        let (object, record) =
            Record::pare_down(&wire, Caps::default(), &Interner::default()).unwrap();
        let store = Store::default();
        store.put(object.clone(), record, Confirmation::default());
        let key = SubjectKey {
            object: object.clone(),
            uid: "u".into(),
        };
        let of = |bucket: &Bucket| Subject::of(key, bucket, |_| true);
        store.view(&object, of).flatten().unwrap()
    }

    fn merge(&self, subject: &Subject, outcome: Outcome) {
        let pod = Pod::new();
        let change = self
            .outcomes
            .merge(subject, &pod.classifier, pod.generation, Ok(outcome));
        assert!(change.is_some());
    }

    fn say(&self, namespace: &str, pod: &str) {
        let subject = Self::subject(namespace, pod);
        let said =
            AdditionalReason::new("note".into(), 0, &subject.events[0], Attributes::default());
        let outcome = Outcome {
            additional_reasons: vec![Arc::new(said)],
            ..Outcome::default()
        };
        self.merge(&subject, outcome);
    }

    fn find(&self, namespace: &str, pod: &str) {
        let subject = Self::subject(namespace, pod);
        let outcome = Outcome {
            findings: vec![finding("key", Status::Active, &subject.events[0])],
            ..Outcome::default()
        };
        self.merge(&subject, outcome);
    }

    fn event_gone(&self, namespace: &str, pod: &str) {
        let subject = Self::subject(namespace, pod);
        let event = subject.events[0].event_ref();
        self.outcomes.event_gone(&subject.key, &event);
    }

    /// Bounds it, and says who is left and of whom a finding ended.
    fn bound(&self, max_bytes: usize) -> (String, String) {
        let (changes, more) = self.outcomes.bound(max_bytes, usize::MAX);
        assert!(!more);
        assert!(self.outcomes.n_bytes() <= max_bytes);
        (self.left(), told(&changes))
    }

    fn left(&self) -> String {
        let objects = self.outcomes.objects();
        let names: Vec<_> = objects.iter().map(ObjectKey::name).collect();
        names.join(" ")
    }
}

/// Of whom a finding ended, and why.
fn told(changes: &[Change]) -> String {
    let ended = changes.iter().flat_map(|it| {
        let name = it.subject.object.name();
        let cleared = it.delta.cleared.iter();
        cleared.map(move |(_, why)| format!("{name} {}", why.as_str()))
    });
    ended.collect::<Vec<_>>().join(", ")
}

#[test]
fn the_namespace_that_holds_most_gives_first_and_findings_go_last() {
    let pods = Pods::default();
    pods.find("a", "a-fault");
    let one_finding = pods.outcomes.n_bytes();
    pods.say("a", "a-said");
    for name in ["b0", "b1", "b2"] {
        pods.say("b", name);
    }
    pods.find("b", "b-fault");
    let all = pods.outcomes.n_bytes();

    let none = String::new();
    let everybody = "a-fault a-said b-fault b0 b1 b2".to_owned();
    assert_eq!(pods.bound(all), (everybody, none.clone()));
    let left = pods.bound(all - 1);
    assert_eq!(
        left,
        ("a-fault a-said b-fault b1 b2".to_owned(), none.clone())
    );
    let left = pods.bound(2 * one_finding);
    assert_eq!(left, ("a-fault b-fault".to_owned(), none));
    let left = pods.bound(one_finding);
    let told = if left.0 == "a-fault" {
        "b-fault over-bytes"
    } else {
        "a-fault over-bytes"
    };
    assert_eq!(left.1, told);
    pods.bound(0);
    let dropped = pods.outcomes.dropped();
    assert_eq!((dropped.passing, dropped.lasting), (4, 2));
    assert_eq!(
        (pods.outcomes.n_subjects(), pods.outcomes.n_bytes()),
        (0, 0)
    );
}

#[test]
fn what_has_to_leave_leaves_in_slices() {
    let pods = Pods::default();
    for n in 0..5 {
        pods.say("a", &format!("p{n}"));
    }
    let (_, more) = pods.outcomes.bound(0, 3);
    assert!(more);
    assert_eq!(pods.left(), "p3 p4");
    let (_, more) = pods.outcomes.bound(0, 3);
    assert!(!more);
}

#[test]
fn a_finding_of_which_nothing_was_live_for_a_day_ends() {
    const GONE: Seconds = 1_000;
    let pods = Pods::default();
    pods.find("a", "gone");
    pods.find("a", "live");
    pods.say("a", "said");
    pods.outcomes.set_now(GONE);
    pods.event_gone("a", "gone");
    assert_eq!(pods.left(), "gone live said");

    pods.outcomes.set_now(GONE + RETAINED_FOR);
    let (changes, more) = pods.outcomes.expire(9);
    assert_eq!((told(&changes), more), (String::new(), false));
    pods.outcomes.set_now(GONE + RETAINED_FOR + 1);
    let (changes, more) = pods.outcomes.expire(9);
    assert_eq!((told(&changes), more), ("gone expired".to_owned(), false));
    assert_eq!(pods.left(), "live said");
}

#[test]
fn a_finding_whose_event_comes_again_is_retained_no_more() {
    let pods = Pods::default();
    pods.find("a", "pod");
    pods.event_gone("a", "pod");
    // Its severity is another, so that there is a change.
    let subject = Pods::subject("a", "pod");
    let finding = Finding {
        severity: Severity::Info,
        ..finding("key", Status::Active, &subject.events[0])
    };
    let outcome = Outcome {
        findings: vec![finding],
        ..Outcome::default()
    };
    pods.merge(&subject, outcome);
    pods.outcomes.set_now(RETAINED_FOR + 1);
    assert!(pods.outcomes.expire(9).0.is_empty());
}

#[test]
fn what_went_during_the_call_is_not_held_to_be_live() {
    let pods = Pods::default();
    pods.say("a", "said");
    pods.find("a", "found");
    for name in ["said", "found"] {
        let subject = Pods::subject("a", name);
        pods.outcomes.look_again(&subject.key, |_| true);
    }
    assert_eq!(pods.left(), "found said");
    for name in ["said", "found"] {
        let subject = Pods::subject("a", name);
        pods.outcomes.look_again(&subject.key, |_| false);
    }
    assert_eq!(pods.left(), "found");
    let found = Pods::subject("a", "found");
    assert!(pods.outcomes.held(&found.key)[0].outcome.findings[0].is_retained());
}

#[test]
fn that_a_call_failed_is_forgotten_with_the_last_record() {
    let pods = Pods::default();
    let (subject, pod) = (Pods::subject("a", "pod"), Pod::new());
    let failure = CallFailure::new(crate::reason::Reason::Trap, "it trapped");
    let change = pods
        .outcomes
        .merge(&subject, &pod.classifier, pod.generation, Err(failure));
    assert!(change.is_none());
    pods.event_gone("a", "pod");
    assert_eq!(pods.left(), "pod");
    pods.outcomes.records_gone(&subject.key);
    assert_eq!((pods.left(), pods.outcomes.n_bytes()), (String::new(), 0));
}
