//! What a replay counts and holds, with no plugin.

use super::{
    input::{Item, Origin, Problem, Reader},
    *,
};
use crate::{
    outcome::{
        Attributes, Blame, EndReason, Evidence, Finding, Generation, Identity, Outcome, Provenance,
        Severity, Status,
    },
    store::{Bucket, Stored, Totals},
    subject::Subject,
};

mod bounds;

/// A replay that takes what is read.
struct Intake {
    replay: Replay,
    told: Told,
}

/// What a replay told.
#[derive(Default)]
struct Told {
    changes: Vec<Change>,
    /// Of whom, and how many findings.
    elements: Vec<(SubjectKey, usize)>,
}

impl Listener for Told {
    fn change(&mut self, change: Change) {
        self.changes.push(change);
    }

    fn element(&mut self, subject: &SubjectKey, held: &[Held]) {
        let n_findings = held.iter().map(|it| it.outcome.findings.len()).sum();
        self.elements.push((subject.clone(), n_findings));
    }
}

impl Intake {
    fn new(bounds: Bounds) -> Self {
        let (plugins, limits) = (Arc::default(), Limits::default());
        let replay = Replay::new(plugins, &limits, bounds, NonZeroUsize::MIN);
        let (replay, told) = (replay.unwrap(), Told::default());
        Self { replay, told }
    }

    fn of(input: &[u8]) -> Self {
        let mut all = Self::new(Bounds::default());
        input::read(input, &mut all, Origin::Named).unwrap();
        all.replay.finish(&mut all.told);
        all
    }

    /// The records of the pod `train-0`: the last digit of their subject's uid,
    /// their name and their note.
    fn owners(&self) -> Vec<(char, String, String)> {
        let pod = ObjectKey::new("team-a", "Pod", "train-0").unwrap();
        let owners = self.replay.store().view(&pod, |bucket| {
            let each = assigned(bucket).into_iter().zip(bucket.records());
            let each = each.map(|(uid, Stored { record: it, .. })| {
                let uid = uid.text().chars().last().unwrap_or('-');
                (uid, it.name().to_owned(), it.note().to_owned())
            });
            each.collect()
        });
        owners.unwrap_or_default()
    }
}

impl Reader for Intake {
    fn item(&mut self, item: Item<'_>) -> Result<(), Rejected> {
        match item {
            Item::Put(event) => self.replay.put(&event, &mut self.told),
            Item::Deleted(event) => {
                self.replay.delete(&event, &mut self.told);
                Ok(())
            }
        }
    }

    fn pod(
        &mut self,
        _: crate::pods::decode::WirePod<'_>,
    ) -> Result<(), crate::pods::decode::Rejected> {
        unreachable!("no input is said to hold Pods")
    }

    fn problem(&mut self, _: Problem) {}

    fn refused(&mut self, _: Problem) {}

    fn foreign(&mut self) {}

    fn is_stopped(&self) -> bool {
        false
    }
}

/// Wants this tally, these totals, and this many records of this many objects.
#[track_caller]
fn check(input: &[u8], tally: &Tally, totals: Totals, live: [usize; 2]) {
    let all = Intake::of(input);
    let store = all.replay.store();
    assert_eq!(all.replay.tally(), tally);
    assert_eq!(store.totals(), totals);
    assert_eq!([store.n_records(), store.n_buckets()], live);
    assert!(
        all.told.changes.is_empty(),
        "there is nobody to say anything"
    );
    assert_eq!(all.told.elements, []);
    assert_eq!(all.replay.outcomes().n_subjects(), 0);

    assert_eq!(
        tally.received,
        totals.stored + totals.merged + tally.n_rejected()
    );
    let gone = totals.deleted + totals.replaced + totals.evicted;
    assert_eq!(totals.stored, gone + u64::try_from(live[0]).unwrap());
}

fn totals(stored: u64, merged: u64, deleted: u64, replaced: u64) -> Totals {
    Totals {
        stored,
        merged,
        deleted,
        replaced,
        ..Totals::default()
    }
}

fn received(received: u64) -> Tally {
    Tally {
        received,
        ..Tally::default()
    }
}

#[test]
fn the_corpus_is_tallied() {
    let list = include_bytes!("../../tests/fixtures/list-core.json");
    check(list, &received(6), totals(6, 0, 0, 0), [6, 4]);
    let twice = [&list[..], list].concat();
    check(&twice, &received(12), totals(6, 6, 0, 0), [6, 4]);
    let both = [
        &list[..],
        include_bytes!("../../tests/fixtures/list-events-v1.json"),
    ]
    .concat();
    check(&both, &received(12), totals(6, 6, 0, 0), [6, 4]);

    let frames = include_bytes!("../../tests/fixtures/frames.jsonl");
    check(frames, &received(5), totals(4, 1, 1, 0), [3, 2]);
    let recreated = include_bytes!("../../tests/fixtures/recreated.jsonl");
    check(recreated, &received(7), totals(7, 0, 0, 1), [6, 1]);
    check(b"", &Tally::default(), Totals::default(), [0, 0]);
}

#[test]
fn what_is_refused_is_tallied_by_why() {
    let forged = Tally {
        rejected: [(Rejected::ForgedNamespace, 3), (Rejected::ForgedScope, 5)].into(),
        ..received(13)
    };
    let input = include_bytes!("../../tests/fixtures/forged.jsonl");
    check(input, &forged, totals(5, 0, 0, 0), [5, 4]);
    let broken = Tally {
        rejected: [(Rejected::NoName, 1), (Rejected::NoObject, 1)].into(),
        // The metadata of one, two timestamps of another.
        malformed_fields: 3,
        ..received(7)
    };
    let input = include_bytes!("../../tests/fixtures/broken.jsonl");
    check(input, &broken, totals(5, 0, 0, 0), [5, 1]);
}

/// A watch frame with an Event about `train-0`: its name and uid, and the uid of
/// the pod.
fn frame(kind: &str, name: &str, uid: &str, pod: &str) -> String {
    let object = serde_json::json!({
        "metadata": { "namespace": "team-a", "name": name, "uid": uid, "creationTimestamp": "2026-11-28T09:00:00Z" },
        "regarding": { "kind": "Pod", "namespace": "team-a", "name": "train-0", "uid": pod },
    });
    serde_json::json!({ "type": kind, "object": object }).to_string() + "\n"
}

#[test]
fn a_deletion_of_what_is_not_known_is_tallied_and_does_nothing() {
    let unknown = |n, received_events| Tally {
        unknown_deletions: n,
        ..received(received_events)
    };
    let added = frame("ADDED", "a", "1", "p");
    let check = |frames: &[String], tally: &Tally, totals: Totals, n_live: usize| {
        check(
            frames.concat().as_bytes(),
            tally,
            totals,
            [n_live, n_live.min(1)],
        );
    };
    check(
        &[frame("DELETED", "a", "1", "p")],
        &unknown(1, 0),
        totals(0, 0, 0, 0),
        0,
    );
    check(
        &[added.clone(), frame("DELETED", "b", "1", "p")],
        &unknown(1, 1),
        totals(1, 0, 0, 0),
        1,
    );
    // Another Event has its name by now.
    check(
        &[added.clone(), frame("DELETED", "a", "2", "p")],
        &unknown(1, 1),
        totals(1, 0, 0, 0),
        1,
    );
    let twice = frame("DELETED", "a", "1", "p").repeat(2);
    check(
        &[added.clone(), twice],
        &unknown(1, 1),
        totals(1, 0, 1, 0),
        0,
    );
    // It was refused when it came, too.
    let forged = frame("DELETED", "a", "1", "p").replacen("team-a", "team-b", 1);
    check(&[added, forged], &unknown(1, 1), totals(1, 0, 0, 0), 1);
}

#[test]
fn a_recreated_pod_inherits_nothing() {
    let all = Intake::of(include_bytes!("../../tests/fixtures/recreated.jsonl"));
    let owners = all.owners();
    for (uid, name, note) in &owners {
        let want = if note.starts_with("of the first pod") {
            '1'
        } else {
            '2'
        };
        assert_eq!(*uid, want, "{name}: {note}");
    }
    let of = |pod| owners.iter().filter(|(uid, ..)| *uid == pod).count();
    assert_eq!([of('1'), of('2')], [3, 3]);
    let reused = owners.iter().find(|(_, name, _)| name == "reused.back-off");
    assert_eq!(
        reused.unwrap().2,
        "of the second pod: another Event under the same name"
    );
}

#[test]
fn whose_a_record_is_does_not_depend_on_the_order_of_arrival() {
    let input = include_str!("../../tests/fixtures/recreated.jsonl");
    // Which of two Events of one name is the newer one does.
    let lines: Vec<_> = input
        .lines()
        .filter(|it| !it.contains("name reused"))
        .collect();
    let sorted = |lines: &[&str]| {
        let mut owners = Intake::of(lines.join("\n").as_bytes()).owners();
        owners.sort();
        owners
    };
    let want = sorted(&lines);
    assert_eq!(want.len(), 6);
    for shift in 0..lines.len() {
        let mut other = lines.clone();
        other.rotate_left(shift);
        assert_eq!(sorted(&other), want);
        other.reverse();
        assert_eq!(sorted(&other), want);
    }
}

/// A finding that rests on the first of a subject's records.
fn fault(subject: &Subject) -> Outcome {
    let finding = Finding {
        identity: Identity {
            category: "fault".into(),
            code: "Code".into(),
            key: "".into(),
        },
        severity: Severity::Critical,
        status: Status::Active,
        blame: Blame::Platform,
        message: "fault".into(),
        attributes: Attributes::default(),
        evidence: vec![Evidence::of(&subject.events[0], true)],
    };
    Outcome {
        findings: vec![finding],
        ..Outcome::default()
    }
}

/// The subject of this uid of `train-0`.
fn key(uid: &str) -> SubjectKey {
    SubjectKey {
        object: ObjectKey::new("team-a", "Pod", "train-0").unwrap(),
        uid: uid.into(),
    }
}

/// Lets a made-up classifier find a fault in what is known of a subject.
fn plant_fault(replay: &Replay, key: &SubjectKey) {
    let view = |bucket: &Bucket| Subject::of(key.clone(), bucket, |_| true).unwrap();
    let subject = replay.store.view(&key.object, view).unwrap();
    let classifier = Arc::new(Provenance {
        name: "made-up".into(),
        version: "1".into(),
        digest: "sha256:0".into(),
        settings_digest: "sha256:0".into(),
        wit: "portent:classifier@0.1.0".into(),
    });
    let said = Ok(fault(&subject));
    let change = replay
        .outcomes
        .merge(&subject, &classifier, Generation(1), said);
    assert_eq!(change.unwrap().delta.raised.len(), 1);
}

#[test]
fn what_is_held_of_the_subject_without_a_uid_goes_to_the_one_that_it_turns_out_to_be() {
    let mut all = Intake::new(Bounds::default());
    input::read(
        frame("ADDED", "a", "1", "").as_bytes(),
        &mut all,
        Origin::Named,
    )
    .unwrap();
    plant_fault(&all.replay, &key(""));

    input::read(
        frame("ADDED", "b", "2", "x").as_bytes(),
        &mut all,
        Origin::Named,
    )
    .unwrap();

    let [change] = &all.told.changes[..] else {
        panic!("{:?}", all.told.changes)
    };
    assert_eq!(change.subject, key(""));
    assert_eq!(change.delta.cleared[0].1, EndReason::Folded);
    all.replay.finish(&mut all.told);
    assert_eq!(all.told.elements, [(key("x"), 1)]);
    assert_eq!(
        all.replay.outcomes().n_subjects(),
        0,
        "what is handed out is held no more"
    );
}
