//! What is wrong with Flyte's watcher, as far as it is about the path from a watch to the
//! store: each a test, by the defect's number. `store/tests/defects.rs` has the others.

use super::*;
use crate::store::{After, Reading};

/// What is read of an object after something.
fn read(live: &Live, [namespace, kind, name]: [&str; 3], after: After) -> Reading {
    let object = ObjectKey::new(namespace, kind, name).unwrap();
    live.store.read(&object, after).unwrap()
}

/// The names of the Events that this is.
fn names(live: &Live, object: [&str; 3], after: After) -> Vec<String> {
    let records = read(live, object, after).records;
    let names = records.iter().map(|it| it.record.name().to_owned());
    names.collect()
}

#[test]
fn d03_a_wall_clock_that_goes_back_hides_no_event() {
    let (mut live, pod) = (live(bounds()), ["ns", "Pod", "p"]);
    // All are created in one second.
    let see = |live: &mut Live, name, now| {
        let text = event("ns", "p", name).to_string();
        let event = serde_json::from_str(&text).unwrap();
        live.put(&event, Confirmation::default(), now);
    };
    see(&mut live, "a", NOW);
    let first = read(&live, pod, After::Arrival(live.store.beginning()));
    assert_eq!(first.next.epoch, EPOCH);
    let watermark = After::Watermark {
        created: first.records[0].record.created(),
        recorded: first.records[0].sequence,
    };
    see(&mut live, "b", NOW - 3_600_000);
    assert_eq!(names(&live, pod, watermark), ["b"]);
    assert_eq!(names(&live, pod, After::Arrival(first.next)), ["b"]);
    // Even if it goes back so far that the Event is of a time to come: that is taken for
    // now, and so lies before the watermark.
    see(&mut live, "c", 1);
    assert_eq!(names(&live, pod, After::Arrival(first.next)), ["b", "c"]);
}

#[test]
fn d11_without_any_deletion_what_is_held_is_bounded_and_goes_in_time() {
    let bytes = Bounds {
        store_bytes: 32 << 10,
        records_per_object: 8,
        ..bounds()
    };
    let objects = Bounds {
        objects: 20,
        records_per_object: 8,
        ..bounds()
    };
    for bounds in [bytes, objects] {
        let mut live = live(bounds);
        for n in 0..3_000 {
            // Half of them are about a pod that never stops, half about new ones.
            let pod = if n % 2 == 0 { "p" } else { &format!("p{n}") };
            let mut event = event("ns", pod, &format!("e{n}"));
            event["deprecatedLastTimestamp"] = "2999-01-01T00:00:00Z".into();
            live.see(&event, 0, 1, 1 + n / 100);
            let store = &live.store;
            let of_pod = ObjectKey::new("ns", "Pod", "p").unwrap();
            let n_of_pod = store.view(&of_pod, |bucket| bucket.records().len());
            assert!(n_of_pod <= Some(bounds.records_per_object));
            assert!(store.n_buckets() <= bounds.objects);
            assert!(store.n_bytes() <= bounds.store_bytes);
        }
        assert!(10 < live.store.n_buckets(), "there is room for some");
        live.settle(1 + 30 + TTL);
        assert_eq!((live.store.n_buckets(), live.store.n_bytes()), (0, 0));
        let totals = live.store.totals();
        let counts = (totals.stored, totals.deleted, totals.live());
        assert_eq!(counts, (3_000, 0, 0));
    }
}

#[test]
fn d13_a_deletion_makes_no_bucket_and_one_that_never_came_is_made_up_for() {
    let mut live = live(bounds());
    live.see_deleted(&event("ns", "p", "a"));
    live.check("", "0,0,0,0,0");
    assert_eq!((live.store.n_buckets(), live.store.n_bytes()), (0, 0));

    // `a` and its object go while nobody watches, and with it half of another's Events.
    for (pod, name) in [("p", "a"), ("q", "b"), ("q", "c")] {
        live.see(&event("ns", pod, name), 0, 1, 1);
    }
    live.see(&event("ns", "q", "c"), 0, 2, 2);
    live.sweep(0, 2, 2);
    live.settle(2);
    live.check("c", "0,2,0,0,0");
    // That it is said late harms nobody.
    live.see_deleted(&event("ns", "p", "a"));
    live.check("c", "0,2,0,0,0");
    assert_eq!(live.store.n_buckets(), 1);
}

#[test]
fn d15_events_of_nodes_are_asked_for_in_default_and_kept_wherever_the_pods_are() {
    let mut live = live(bounds());
    let watches = live.scope.watches();
    let of_nodes = watches.iter().filter(|it| it.kind.as_str() == "Node");
    let places: Vec<_> = of_nodes.map(ToString::to_string).collect();
    assert_eq!(places, ["Node in default"]);

    let mut node = event("default", "n", "of-node");
    node["regarding"] = serde_json::json!({ "kind": "Node", "name": "n", "uid": "n" });
    live.see(&node, 0, 1, 1);
    // Nothing else of that namespace is anybody's business.
    live.see(&event("default", "n", "of-pod"), 0, 1, 1);
    live.check("of-node", "0,0,0,0,0");
    let all = After::Arrival(live.store.beginning());
    assert_eq!(names(&live, ["", "Node", "n"], all), ["of-node"]);
    assert_eq!(names(&live, ["default", "Pod", "n"], all), [""; 0]);
}
