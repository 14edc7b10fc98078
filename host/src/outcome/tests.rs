//! The rules of merging, each as a sentence, and all of them over histories
//! made at random.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::{
    interner::Interner,
    reason::CallFailure,
    record::{Caps, ObjectKey, decode::WireEvent},
    store::{Bucket, Confirmation, Removal, Store, Stored},
    subject::{Subject, SubjectKey},
};

mod bounds;

/// Events of one pod, and what a made-up classifier says of them.
struct Pod {
    store: Store,
    outcomes: Outcomes,
    object: ObjectKey,
    classifier: Arc<Provenance>,
    generation: Generation,
}

impl Pod {
    fn new() -> Self {
        Self {
            store: Store::default(),
            outcomes: Outcomes::default(),
            object: ObjectKey::new("ns", "Pod", "pod").unwrap(),
            classifier: Arc::new(Provenance {
                name: "made-up".into(),
                version: "1".into(),
                digest: "sha256:0".into(),
                settings_digest: "sha256:0".into(),
                wit: "portent:classifier@0.1.0".into(),
            }),
            generation: Generation(1),
        }
    }

    fn key(&self) -> SubjectKey {
        SubjectKey {
            object: self.object.clone(),
            uid: "u".into(),
        }
    }

    /// An Event of this name comes, last seen at this second, with this note.
    fn event(&self, name: &str, second: u32, note: &str) {
        let json = serde_json::json!({
            "metadata": { "namespace": "ns", "name": name, "uid": name },
            "regarding": { "kind": "Pod", "namespace": "ns", "name": "pod", "uid": "u" },
            "note": note,
            "deprecatedLastTimestamp": format!("2026-01-01T00:{:02}:{:02}Z", second / 60, second % 60),
        })
        .to_string();
        let wire: WireEvent<'_> = serde_json::from_str(&json).unwrap();
        let (object, record) =
            Record::pare_down(&wire, Caps::default(), &Interner::default()).unwrap();
        self.store.put(object, record, Confirmation::default());
    }

    fn delete(&self, name: &str) {
        let is_it = |it: &Stored| it.record.name() == name;
        let removed = self
            .store
            .remove_where(&self.object, Removal::Deleted, is_it);
        for record in removed {
            self.outcomes.event_gone(&self.key(), &record.event_ref());
        }
    }

    fn subject(&self) -> Option<Subject> {
        let of = |bucket: &Bucket| Subject::of(self.key(), bucket, |_| true);
        self.store.view(&self.object, of).flatten()
    }

    /// Classifies as the notes say: `fault KEY`, `over KEY` (`over` alone is over
    /// for every key), anything else is of no concern.
    fn classify(&self) -> Delta {
        let Some(subject) = self.subject() else {
            return Delta::default();
        };
        let mut outcome = Outcome::default();
        for record in &subject.events {
            let (status, key) = match record.note().split_once(' ') {
                Some(("fault", key)) => (Status::Active, key),
                Some(("over", key)) => (Status::Cleared, key),
                None if record.note() == "over" => (Status::Cleared, ""),
                _ => continue,
            };
            fold(&mut outcome.findings, finding(key, status, record));
        }
        self.merge(&subject, Ok(outcome))
    }

    fn merge(&self, subject: &Subject, said: Result<Outcome, CallFailure>) -> Delta {
        let change = self
            .outcomes
            .merge(subject, &self.classifier, self.generation, said);
        change.map_or_else(Delta::default, |it| it.delta)
    }

    fn held(&self) -> Option<Held> {
        self.outcomes.held(&self.key()).into_iter().next()
    }

    /// The findings that are held, as `+key` when active, `-key` when cleared.
    fn findings(&self) -> Vec<String> {
        let held = self.held().into_iter().flat_map(|it| it.outcome.findings);
        held.map(|it| sign(&it)).collect()
    }
}

fn sign(it: &Finding) -> String {
    let sign = if it.status == Status::Active {
        '+'
    } else {
        '-'
    };
    format!("{sign}{}", it.identity.key)
}

fn signs(findings: &[Finding]) -> Vec<String> {
    findings.iter().map(sign).collect()
}

fn ended(delta: &Delta) -> Vec<(String, EndReason)> {
    delta
        .cleared
        .iter()
        .map(|(it, why)| (it.identity.key.to_string(), *why))
        .collect()
}

fn finding(key: &str, status: Status, record: &Record) -> Finding {
    let code = if key.is_empty() { "" } else { "Code" };
    Finding {
        identity: Identity {
            category: "fault".into(),
            code: code.into(),
            key: key.into(),
        },
        severity: Severity::Critical,
        status,
        blame: Blame::Platform,
        message: "fault".into(),
        attributes: Attributes::default(),
        evidence: vec![Evidence::of(record, true)],
    }
}

/// As a classifier folds: one finding an identity, the newest event decides.
fn fold(findings: &mut Vec<Finding>, new: Finding) {
    match findings.iter_mut().find(|it| it.identity == new.identity) {
        None => findings.push(new),
        Some(known) if known.status == new.status => known.evidence.extend(new.evidence),
        Some(known) if known.last_seen() <= new.last_seen() => *known = new,
        Some(_) => {}
    }
}

#[test]
fn a_fault_outlives_its_event_and_harmless_ones_clear_nothing() {
    let pod = Pod::new();
    pod.event("e1", 1, "fault gpu0");
    assert_eq!(signs(&pod.classify().raised), ["+gpu0"]);

    pod.delete("e1");
    pod.event("e2", 2, "harmless");
    assert_eq!(pod.classify(), Delta::default());

    assert_eq!(pod.findings(), ["+gpu0"]);
    assert!(pod.held().unwrap().outcome.findings[0].is_retained());
}

#[test]
fn a_fault_that_is_said_no_more_of_live_evidence_ends() {
    let pod = Pod::new();
    pod.event("e1", 1, "fault gpu0");
    pod.classify();
    // The Event is updated: it is live, and no fault any more.
    pod.event("e1", 2, "harmless");
    assert_eq!(
        ended(&pod.classify()),
        [("gpu0".to_owned(), EndReason::NotYielded)]
    );
    assert!(pod.held().is_none());
}

#[test]
fn a_newer_recovery_ends_a_fault_and_is_remembered_while_either_is_live() {
    let pod = Pod::new();
    pod.event("e1", 1, "fault gpu0");
    pod.classify();
    pod.event("e2", 2, "over gpu0");
    assert_eq!(
        ended(&pod.classify()),
        [("gpu0".to_owned(), EndReason::Cleared)]
    );
    assert_eq!(pod.findings(), ["-gpu0"]);

    // The recovery's Event goes first: the fault's cannot raise it again.
    pod.delete("e2");
    pod.event("e3", 3, "harmless");
    assert_eq!(pod.classify(), Delta::default());
    assert_eq!(pod.findings(), ["-gpu0"]);

    pod.delete("e1");
    assert!(pod.held().is_none());
}

#[test]
fn a_recovery_that_matches_all_ends_each_fault_that_is_not_newer() {
    let pod = Pod::new();
    pod.event("e1", 1, "fault gpu0");
    pod.event("e2", 2, "fault gpu1");
    pod.event("e3", 4, "fault gpu2");
    pod.classify();
    pod.event("e4", 2, "over");
    let delta = pod.classify();
    assert_eq!(
        ended(&delta),
        [
            ("gpu0".to_owned(), EndReason::Cleared),
            ("gpu1".to_owned(), EndReason::Cleared)
        ],
        "on a tie the recovery stands"
    );
    assert_eq!(pod.findings(), ["-", "+gpu2"]);
}

#[test]
fn a_recurrence_after_a_recovery_is_raised_again() {
    let pod = Pod::new();
    pod.event("e1", 1, "fault gpu0");
    pod.event("e2", 2, "over gpu0");
    assert_eq!(
        pod.classify(),
        Delta::default(),
        "what is over when it is first seen is no news"
    );
    pod.event("e3", 3, "fault gpu0");
    assert_eq!(signs(&pod.classify().raised), ["+gpu0"]);
}

#[test]
fn a_late_event_of_an_older_fault_does_not_undo_a_recovery() {
    let pod = Pod::new();
    pod.event("e2", 2, "over gpu0");
    pod.classify();
    pod.event("e1", 1, "fault gpu0");
    assert_eq!(pod.classify(), Delta::default());
    assert_eq!(pod.findings(), ["-gpu0"]);
}

#[test]
fn a_failed_call_ends_nothing_and_the_next_good_one_takes_its_mark_away() {
    let pod = Pod::new();
    pod.event("e1", 1, "fault gpu0");
    pod.classify();
    pod.event("e2", 2, "harmless");
    let failure = CallFailure::new(crate::reason::Reason::Trap, "trapped");
    assert_eq!(
        pod.merge(&pod.subject().unwrap(), Err(failure.clone())),
        Delta::default()
    );
    assert_eq!(pod.findings(), ["+gpu0"]);
    assert_eq!(pod.held().unwrap().error, Some(failure));

    assert_eq!(pod.classify(), Delta::default());
    assert_eq!(pod.held().unwrap().error, None);
}

#[test]
fn a_result_for_an_older_subject_or_of_an_older_set_is_too_late() {
    let mut pod = Pod::new();
    pod.event("e1", 1, "harmless");
    let old = pod.subject().unwrap();
    pod.event("e2", 2, "fault gpu0");
    pod.classify();
    assert_eq!(pod.merge(&old, Ok(Outcome::default())), Delta::default());
    pod.generation = Generation(0);
    assert_eq!(
        pod.merge(&pod.subject().unwrap(), Ok(Outcome::default())),
        Delta::default()
    );
    assert_eq!(pod.findings(), ["+gpu0"]);
}

#[test]
fn evidence_is_a_union_of_the_newest() {
    let pod = Pod::new();
    for it in 0..20 {
        pod.event(&format!("e{it:02}"), it, "fault gpu0");
        assert!(
            pod.classify().changed.is_empty(),
            "evidence is no part of what is said"
        );
        pod.delete(&format!("e{it:02}"));
    }
    let held = pod.held().unwrap();
    let evidence = &held.outcome.findings[0].evidence;
    assert_eq!(evidence.len(), EVIDENCE_MAX);
    assert_eq!(evidence[0].event.name(), "e19");
    assert_eq!(evidence[15].event.name(), "e04");
}

#[test]
fn additional_reasons_live_and_die_with_their_records() {
    let pod = Pod::new();
    pod.event("e1", 1, "first");
    pod.event("e2", 2, "second");
    let subject = pod.subject().unwrap();
    let reasons = subject.events.iter().map(|it| {
        AdditionalReason::new(it.note().into(), it.last_seen(), it, Attributes::default())
    });
    let outcome = Outcome {
        additional_reasons: reasons.map(Arc::new).collect(),
        ..Outcome::default()
    };
    assert_eq!(
        pod.merge(&subject, Ok(outcome.clone()))
            .additional_reasons
            .len(),
        2
    );
    assert_eq!(
        pod.merge(&subject, Ok(outcome)),
        Delta::default(),
        "said again, it is no news"
    );
    pod.delete("e1");
    assert_eq!(pod.held().unwrap().outcome.additional_reasons.len(), 1);
    pod.delete("e2");
    assert_eq!(pod.outcomes.n_subjects(), 0);
}

#[test]
fn what_is_held_of_no_uid_goes_up_in_the_subject_that_turns_out_to_be_it() {
    let pod = Pod::new();
    pod.event("e1", 1, "fault gpu0");
    pod.classify();
    let unnamed = pod.key();
    let named = SubjectKey {
        object: pod.object.clone(),
        uid: "named".into(),
    };
    let changes = pod.outcomes.fold(&unnamed, &named);
    assert_eq!(
        ended(&changes[0].delta),
        [("gpu0".to_owned(), EndReason::Folded)]
    );
    assert_eq!(pod.outcomes.n_subjects(), 1);
    let held = pod.outcomes.take(&named);
    assert_eq!(signs(&held[0].outcome.findings), ["+gpu0"]);
    assert_eq!(pod.outcomes.n_subjects(), 0);
}

/// One thing that may happen to the pod.
#[derive(Clone, Debug)]
enum Step {
    Event {
        name: u8,
        second: u32,
        note: &'static str,
    },
    Delete {
        name: u8,
    },
    Classify,
    Fail,
}

fn step() -> impl Strategy<Value = Step> {
    let note = prop::sample::select(vec![
        "fault gpu0",
        "fault gpu1",
        "over gpu0",
        "over gpu1",
        "over",
        "harmless",
    ]);
    prop_oneof![
        4 => (0..6_u8, 0..60_u32, note).prop_map(|(name, second, note)| Step::Event { name, second, note }),
        2 => (0..6_u8).prop_map(|name| Step::Delete { name }),
        3 => Just(Step::Classify),
        1 => Just(Step::Fail),
    ]
}

proptest! {
    /// Whatever happens: nothing ends but for one of the two reasons, no change
    /// contradicts what was told before, and nothing is kept for nothing.
    #[test]
    fn merging_keeps_its_promises(steps in prop::collection::vec(step(), 1..60)) {
        let pod = Pod::new();
        let mut told = std::collections::BTreeSet::new();
        for it in steps {
            let before = pod.findings();
            let delta = match it {
                Step::Event { name, second, note } => {
                    pod.event(&format!("e{name}"), second, note);
                    continue;
                }
                Step::Delete { name } => {
                    pod.delete(&format!("e{name}"));
                    let active = |all: Vec<String>| -> Vec<String> {
                        all.into_iter().filter(|it| it.starts_with('+')).collect()
                    };
                    prop_assert_eq!(active(before), active(pod.findings()), "absence is no evidence");
                    continue;
                }
                Step::Classify => pod.classify(),
                Step::Fail => {
                    let Some(subject) = pod.subject() else { continue };
                    let failure = CallFailure::new(crate::reason::Reason::Trap, "trapped");
                    let delta = pod.merge(&subject, Err(failure));
                    prop_assert_eq!(&delta, &Delta::default());
                    prop_assert_eq!(before, pod.findings(), "a failed call ends nothing");
                    continue;
                }
            };
            for it in &delta.raised {
                prop_assert!(told.insert(it.identity.clone()), "raised twice: {:?}", it.identity);
            }
            for (it, why) in &delta.cleared {
                prop_assert!(told.remove(&it.identity), "ended without being raised: {:?}", it.identity);
                if *why == EndReason::NotYielded {
                    prop_assert!(it.evidence.iter().all(|it| it.live), "its evidence is not all live");
                }
            }
            let held: std::collections::BTreeSet<_> = pod
                .held()
                .into_iter()
                .flat_map(|it| it.outcome.findings)
                .filter(|it| it.status == Status::Active)
                .map(|it| it.identity)
                .collect();
            prop_assert_eq!(&held, &told, "what was told is what is held");
            prop_assert_eq!(pod.classify(), Delta::default(), "the same again is no news");
        }
        prop_assert_eq!(pod.outcomes.n_subjects(), pod.outcomes.objects().len());
        // With nothing left, only faults that nobody called over are held.
        for name in 0..6 {
            pod.delete(&format!("e{name}"));
        }
        prop_assert!(pod.findings().iter().all(|it| it.starts_with('+')));
    }
}
