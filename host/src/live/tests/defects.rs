//! What is wrong with Flyte's watcher, as far as it is about the path from a watch to the
//! store: each a test, by the defect's number. `store/tests/defects.rs` has the others.

use super::*;
use crate::store::After;

impl Live {
    /// The names of the Events of an object that are read after something.
    fn read(&self, [namespace, kind, name]: [&str; 3], after: After) -> Vec<String> {
        let object = ObjectKey::new(namespace, kind, name).unwrap();
        let records = self.store.read(&object, after).unwrap().records;
        let names = records.iter().map(|it| it.record.name().to_owned());
        names.collect()
    }
}

#[test]
fn d03_a_wall_clock_that_goes_back_hides_no_event() {
    let mut live = live(bounds());
    let object = ["ns", "Pod", "p"];
    let mut see = |name, now| {
        let text = event("ns", "p", name).to_string();
        let event = serde_json::from_str(&text).unwrap();
        live.put(&event, Confirmation::default(), now);
        let store = live.store();
        let all = store.read(
            &ObjectKey::new("ns", "Pod", "p").unwrap(),
            After::Arrival(store.beginning()),
        );
        all.unwrap()
    };
    let first = see("a", NOW);
    let last = &first.records[0];
    see("b", NOW - 3_600_000);

    let watermark = After::Watermark {
        created: last.record.created(),
        recorded: last.sequence,
    };
    // Both were created in one second.
    assert_eq!(live.read(object, watermark), ["b"]);
    assert_eq!(live.read(object, After::Arrival(first.next)), ["b"]);
    // Even if it goes back so far that the Event is of a time to come.
    let next = live.store().read(
        &ObjectKey::new("ns", "Pod", "p").unwrap(),
        After::Arrival(first.next),
    );
    let text = event("ns", "p", "c").to_string();
    let event = serde_json::from_str(&text).unwrap();
    live.put(&event, Confirmation::default(), 1);
    assert_eq!(live.read(object, After::Arrival(next.unwrap().next)), ["c"]);
}

#[test]
fn d11_without_any_deletion_what_is_held_is_bounded_and_goes_in_time() {
    let mut live = live(bounds());
    live.see(&event("ns", "p", "one"), 0, 1, 1);
    let one = live.store.n_bytes();
    let bounds = Bounds {
        store_bytes: 40 * one,
        objects: 50,
        records_per_object: 8,
        ..bounds()
    };
    live.set_bounds(bounds);
    for n in 0..3_000 {
        // Half of them are about a pod that never stops, half about new ones.
        let pod = if n % 2 == 0 { "p" } else { &format!("p{n}") };
        let mut event = event("ns", pod, &format!("e{n}"));
        event["deprecatedLastTimestamp"] = "2999-01-01T00:00:00Z".into();
        live.see(&event, 0, 1, 2 + n / 100);
        let store = &live.store;
        let n_of_pod = store.view(&ObjectKey::new("ns", "Pod", "p").unwrap(), |bucket| {
            bucket.records().len()
        });
        assert!(n_of_pod <= Some(bounds.records_per_object));
        assert!(store.n_buckets() <= bounds.objects);
        assert!(store.n_bytes() <= bounds.store_bytes);
    }
    assert!(20 < live.store.n_buckets());
    live.settle(2 + 30 + TTL);
    assert_eq!((live.store.n_buckets(), live.store.n_bytes()), (0, 0));
    let totals = live.store.totals();
    assert_eq!(
        (totals.stored, totals.deleted, totals.live()),
        (3_001, 0, 0)
    );
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
    assert_eq!(live.read(["", "Node", "n"], all), ["of-node"]);
    assert_eq!(live.read(["default", "Pod", "n"], all), [""; 0]);
}
