//! The outcome table: results of one subject at two versions. Today they are merged on one thread, so that
//! only a table that is read beside that would need this.

use portent_model::{
    interner::Interner,
    outcome::{Generation, Outcomes, Provenance},
    reason::{CallFailure, Reason},
    record::{Caps, ObjectKey, Record, decode::WireEvent},
    store::{Bucket, Confirmation, Store},
    subject::{Subject, SubjectKey},
    sync::{Arc, DashMap, Fault, thread},
};

use super::{check, check_caught};

/// Of one namespace, in different shards.
fn keys() -> [SubjectKey; 2] {
    let key = |name: &str| SubjectKey {
        object: ObjectKey::new("ns", "Pod", name).unwrap(),
        uid: "u".into(),
    };
    let keys = ["a", "b"].map(key);
    let [a, b] = keys.each_ref().map(DashMap::<_, ()>::shard_of);
    assert_ne!(a, b);
    keys
}

/// A subject with one record, and with two.
fn versions(key: &SubjectKey) -> [Subject; 2] {
    let store = Store::default();
    ["1", "2"].map(|name| {
        let json = serde_json::json!({
            "metadata": { "namespace": "ns", "name": name, "uid": name },
            "regarding": { "kind": "Pod", "namespace": "ns", "name": key.object.name(), "uid": "u" },
        })
        .to_string();
        let wire: WireEvent<'_> = serde_json::from_str(&json).unwrap();
        let (object, record) =
            Record::pare_down(&wire, Caps::default(), &Interner::default()).unwrap();
        store.put(object.clone(), record, Confirmation::default());
        let of = |bucket: &Bucket| Subject::of(key.clone(), bucket, |_| true);
        store.view(&object, of).flatten().unwrap()
    })
}

/// The calls of each subject's versions failed, saying which it was, while this is done to the
/// table.
fn merge_both(beside: impl FnOnce(&Outcomes) + Send + 'static) -> Arc<Outcomes> {
    let outcomes = Arc::new(Outcomes::default());
    let classifier = Arc::new(Provenance {
        name: "gpu".into(),
        version: "1".into(),
        digest: "d".into(),
        settings_digest: "s".into(),
        wit: "w".into(),
    });
    let mut threads: Vec<_> = keys()
        .iter()
        .flat_map(versions)
        .map(|subject| {
            let (outcomes, classifier) = (Arc::clone(&outcomes), Arc::clone(&classifier));
            thread::spawn(move || {
                let n_events = subject.events.len().to_string();
                let failed = CallFailure::new(Reason::Trap, n_events);
                let generation = Generation::default();
                let change = outcomes.merge(&subject, &classifier, generation, Err(failed));
                assert!(change.is_none(), "a failed call ends nothing");
            })
        })
        .collect();
    let outcomes_beside = Arc::clone(&outcomes);
    threads.push(thread::spawn(move || beside(&outcomes_beside)));
    for it in threads {
        it.join().unwrap();
    }
    outcomes
}

fn newest_stands() {
    let outcomes = merge_both(|_| {});
    for key in keys() {
        let held = outcomes.held(&key);
        assert_eq!(held[0].error.as_ref().unwrap().message, "2");
    }
}

/// While what is held is taken away, once with its last use and once whole.
fn all_is_counted() {
    let outcomes = merge_both(|outcomes| {
        for key in keys() {
            outcomes.records_gone(&key);
            assert!(outcomes.take(&key).len() <= 1);
        }
    });
    let n_held = outcomes.objects().len();
    assert_eq!(outcomes.n_subjects(), n_held);
    assert_eq!(outcomes.n_bytes() == 0, n_held == 0);
    let (changes, is_more) = outcomes.bound(0, 9);
    assert!(changes.is_empty() && !is_more);
    assert_eq!(outcomes.dropped().lasting, n_held as u64, "each is filed");
    assert_eq!((outcomes.n_subjects(), outcomes.n_bytes()), (0, 0));
}

/// If whatever comes last stands it fails in run 5.
#[test]
fn of_two_results_that_of_the_newer_version_stands() {
    check(newest_stands);
}

/// With a count that is read and then written it fails in run 27.
#[test]
fn what_is_taken_while_results_come_is_counted_out() {
    check(all_is_counted);
}

#[test]
fn a_removal_in_two_steps_is_seen_to_take_what_came_between() {
    check_caught(Fault::TwoStepRemoval, all_is_counted);
}
