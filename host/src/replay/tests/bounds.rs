//! What is held is within its bounds, and what leaves for that is handed out.

use proptest::prelude::*;

use super::*;

fn records_per_object(records_per_object: usize) -> Bounds {
    Bounds {
        records_per_object,
        ..Bounds::default()
    }
}

/// Frames of Events about `train-0`, all of one uid, by the Events' names.
fn added(names: &[&str]) -> String {
    let frames = names.iter().map(|it| frame("ADDED", it, "1", "x"));
    frames.collect()
}

/// Wants these records to be left, and the object to have left so often.
#[track_caller]
fn check_full(bound: usize, frames: &str, live: usize, left_full: u64) {
    let mut all = Intake::new(records_per_object(bound));
    input::read(frames.as_bytes(), &mut all, Origin::Named).unwrap();
    assert_eq!(all.replay.store().n_records(), live);
    assert_eq!(all.replay.tally().left_full, left_full);
    assert_eq!(all.replay.tally().left_early, 0);
}

#[test]
fn an_object_with_one_record_more_than_it_may_have_leaves_and_starts_anew() {
    check_full(2, &added(&["a"]), 1, 0);
    check_full(2, &added(&["a", "b"]), 2, 0);
    check_full(2, &added(&["a", "b", "c"]), 1, 1);
    check_full(2, &added(&["a", "b", "c", "d"]), 2, 1);
    check_full(2, &added(&["a", "b", "c", "d", "e"]), 1, 2);
    check_full(1, &added(&["a", "b", "c"]), 1, 2);
}

#[test]
fn a_further_sight_of_an_event_is_not_one_more() {
    check_full(2, &added(&["a", "b", "a", "b", "a"]), 2, 0);
    let replaced = added(&["a", "b"]) + &frame("ADDED", "b", "2", "x");
    check_full(2, &replaced, 2, 0);
    let deleted = added(&["a", "b"]) + &frame("DELETED", "a", "1", "x") + &added(&["c"]);
    check_full(2, &deleted, 2, 0);
}

#[test]
fn what_leaves_is_handed_out_and_handed_out_again_when_it_came_again() {
    let mut all = Intake::new(records_per_object(1));
    input::read(added(&["a"]).as_bytes(), &mut all, Origin::Named).unwrap();
    plant_fault(&all.replay, &key("x"));
    input::read(added(&["b"]).as_bytes(), &mut all, Origin::Named).unwrap();
    assert_eq!(all.told.elements, [(key("x"), 1)]);

    plant_fault(&all.replay, &key("x"));
    all.replay.finish(&mut all.told);
    assert_eq!(all.told.elements, [(key("x"), 1), (key("x"), 1)]);
}

#[test]
fn what_is_held_of_a_subject_without_records_is_handed_out_at_the_end() {
    let mut all = Intake::new(Bounds::default());
    input::read(added(&["a"]).as_bytes(), &mut all, Origin::Named).unwrap();
    plant_fault(&all.replay, &key("x"));
    input::read(
        frame("DELETED", "a", "1", "x").as_bytes(),
        &mut all,
        Origin::Named,
    )
    .unwrap();
    assert_eq!(all.replay.store().n_buckets(), 0);
    all.replay.finish(&mut all.told);
    assert_eq!(all.told.elements, [(key("x"), 1)]);
}

#[test]
fn with_too_many_outcomes_all_of_them_are_handed_out() {
    let mut all = Intake::new(Bounds {
        outcomes: 0,
        ..Bounds::default()
    });
    input::read(added(&["a"]).as_bytes(), &mut all, Origin::Named).unwrap();
    plant_fault(&all.replay, &key("x"));
    let other = frame("ADDED", "b", "1", "y").replace("train-0", "train-1");
    input::read(other.as_bytes(), &mut all, Origin::Named).unwrap();
    assert_eq!(all.told.elements, [(key("x"), 1)]);
    assert_eq!(all.replay.outcomes().n_subjects(), 0);
    // Of whom nothing is held, nobody has to leave.
    assert_eq!(all.replay.store().n_buckets(), 1);
    assert_eq!(all.replay.tally().left_early, 1);
}

#[test]
fn with_too_many_bytes_objects_leave() {
    let bounds = |store_bytes| Bounds {
        store_bytes,
        ..Bounds::default()
    };
    let mut all = Intake::new(bounds(0));
    input::read(added(&["a", "b", "c"]).as_bytes(), &mut all, Origin::Named).unwrap();
    assert_eq!(all.replay.store().n_bytes(), 0);
    assert_eq!(all.replay.tally().left_early, 3);
    assert_eq!(all.replay.store().totals().evicted, 3);

    // What one costs is enough for one.
    let mut one = Intake::new(Bounds::default());
    input::read(added(&["a"]).as_bytes(), &mut one, Origin::Named).unwrap();
    let mut all = Intake::new(bounds(one.replay.store().n_bytes()));
    input::read(added(&["a"]).as_bytes(), &mut all, Origin::Named).unwrap();
    assert_eq!(all.replay.tally().left_early, 0);
}

proptest! {
    /// Whatever comes: what is held is within its bounds, and each Event that
    /// came is live or counted as gone.
    #[test]
    fn bounds_hold_and_nothing_goes_uncounted(
        events in prop::collection::vec((any::<bool>(), 0..4_u8, 0..5_u8, 0..2_u8, 0..3_u8), 1..60),
        store_bytes in 0..12_000_usize,
        records_per_object in 1..4_usize,
    ) {
        let bounds = Bounds { store_bytes, records_per_object, outcomes: 16 };
        let mut all = Intake::new(bounds);
        for (is_put, pod, name, uid, object_uid) in events {
            let kind = if is_put { "ADDED" } else { "DELETED" };
            let object_uid = ["", "x", "y"][usize::from(object_uid)];
            let line = frame(kind, &format!("e{name}"), &uid.to_string(), object_uid);
            let line = line.replace("train-0", &format!("train-{pod}"));
            input::read(line.as_bytes(), &mut all, Origin::Named).unwrap();

            let store = all.replay.store();
            prop_assert!(store.n_bytes() <= store_bytes);
            for pod in 0..4 {
                let object = ObjectKey::new("team-a", "Pod", &format!("train-{pod}")).unwrap();
                let n_records = store.view(&object, |it| it.records().len()).unwrap_or(0);
                prop_assert!(n_records <= records_per_object);
            }
            let (tally, totals) = (all.replay.tally(), store.totals());
            prop_assert_eq!(tally.received, totals.stored + totals.merged);
            let live = u64::try_from(store.n_records()).unwrap();
            let gone = totals.deleted + totals.replaced + totals.evicted;
            prop_assert_eq!(totals.stored, live + gone);
            prop_assert!(tally.left_early + tally.left_full <= totals.evicted);
        }
    }
}
