//! What is wrong with Flyte's watcher, each defect a test that holds here, by its number.
//! Where a defect is about another part, its test is beside that: D8 with the subjects
//! (`subject/tests/reading.rs`), D3, D11, D13 and D15 with the live path
//! (`live/tests/defects.rs`), D12 and D14 where the whole of it runs
//! (`host/tests/live.rs`, `host/tests/run.rs`).

use super::*;

/// What a reader is shown: names, uids and notes.
fn read(store: &Store, after: After) -> Vec<String> {
    let reading = store.read(&pod("pod"), after).unwrap();
    let records = reading.records.iter().map(|it| &it.record);
    records
        .map(|it| format!("{}/{} {}", it.name(), it.uid(), it.note()))
        .collect()
}

/// Behind everything that there is.
fn now(store: &Store) -> Cursor {
    let after = After::Arrival(store.beginning());
    store.read(&pod("pod"), after).unwrap().next
}

/// What Flyte's reader is shown next that has seen everything that there is.
fn watermark(store: &Store) -> After {
    let zero = After::Watermark {
        created: 0,
        recorded: 0,
    };
    let reading = store.read(&pod("pod"), zero).unwrap();
    let last = reading.records.last().unwrap();
    After::Watermark {
        created: last.record.created(),
        recorded: last.sequence,
    }
}

#[test]
fn d01_a_late_but_older_event_is_read_by_cursor() {
    let store = Store::default();
    act(&store, "put b/2 9 x");
    let (watermark, cursor) = (watermark(&store), now(&store));
    // The second of a LIST, which comes in the order of names.
    act(&store, "put c/3 5 y");
    assert_eq!(read(&store, watermark), [""; 0], "this is the defect");
    assert_eq!(read(&store, After::Arrival(cursor)), ["c/3 y"]);
    assert_eq!(read(&store, After::Change(cursor)), ["c/3 y"]);
}

#[test]
fn d02_after_a_restart_nothing_that_was_read_is_passed_off_as_new() {
    let events = ["put a/1 5 x", "put b/2 5 y"];
    let before = Store::in_epoch(1);
    for it in events {
        act(&before, it);
    }
    let cursor = now(&before);
    let known = before.read(&pod("pod"), After::Arrival(before.beginning()));
    let known: BTreeSet<_> = known
        .unwrap()
        .records
        .iter()
        .map(|it| {
            (
                it.record.event_ref(),
                it.record.resource_version().to_owned(),
            )
        })
        .collect();

    // The same in another order, and one more, all of one second.
    let after = Store::in_epoch(2);
    for it in ["put c/3 5 z", events[1], events[0]] {
        act(&after, it);
    }
    for after_what in [After::Arrival(cursor), After::Change(cursor)] {
        let read = after.read(&pod("pod"), after_what).map(|_| ());
        assert_eq!(read, Err(ReadError::ForeignCursor));
    }
    // Who is told so begins anew, and knows what it knew.
    let all = after.read(&pod("pod"), After::Arrival(after.beginning()));
    let records = all.unwrap().records;
    let new = records.iter().map(|it| &it.record).filter(|it| {
        let version = it.resource_version().to_owned();
        !known.contains(&(it.event_ref(), version))
    });
    assert_eq!(new.map(Record::name).collect::<Vec<_>>(), ["c"]);
}

#[test]
fn d04_events_of_one_second_have_one_order() {
    let zero = After::Watermark {
        created: 0,
        recorded: 0,
    };
    // Whatever the order of their names, or of the hashes of a process.
    for order in ["zmac", "acmz", "cazm"] {
        let store = Store::default();
        for it in order.chars() {
            act(&store, &format!("put {it}/{it} 5 x"));
        }
        let want: Vec<_> = order.chars().map(|it| format!("{it}/{it} x")).collect();
        for after in [zero, After::Arrival(store.beginning())] {
            assert_eq!(read(&store, after), want);
        }
    }
}

#[test]
fn d05_an_event_recreated_under_its_name_is_another_and_is_read() {
    let store = Store::default();
    act(&store, "put a/1 5 x");
    let (watermark, cursor) = (watermark(&store), now(&store));
    // Its deletion was missed: it comes as an update would.
    act(&store, "put a/2 7 y");
    let ways = [watermark, After::Arrival(cursor), After::Change(cursor)];
    for after in ways {
        assert_eq!(read(&store, after), ["a/2 y"], "{after:?}");
    }
    let Totals {
        stored, replaced, ..
    } = store.totals();
    assert_eq!((stored, replaced), (2, 1));
}

#[test]
fn d06_the_latest_note_of_an_event_is_read_by_who_asks_for_changes() {
    let store = Store::default();
    act(&store, "put a/1 5 0/3-nodes");
    let (watermark, cursor) = (watermark(&store), now(&store));
    act(&store, "put a/1 7 1/3-nodes");
    act(&store, "put a/1 9 2/3-nodes");
    assert_eq!(read(&store, watermark), [""; 0], "this is the defect");
    assert_eq!(read(&store, After::Change(cursor)), ["a/1 2/3-nodes"]);
    // And whoever reads it then has read it.
    let next = now(&store);
    act(&store, "put a/1 9 2/3-nodes");
    assert_eq!(read(&store, After::Change(next)), [""; 0]);
}

/// Reads the one record of an Event about `pod` with these fields besides.
fn kept(fields: &serde_json::Value) -> Record {
    let mut event = serde_json::json!({
        "metadata": { "namespace": "ns", "name": "e" },
        "regarding": { "kind": "Pod", "namespace": "ns", "name": "pod" },
    });
    let fields = fields.as_object().unwrap().clone();
    event.as_object_mut().unwrap().extend(fields);
    let json = event.to_string();
    let wire: WireEvent<'_> = serde_json::from_str(&json).unwrap();
    let (object, record) = Record::pare_down(&wire, Caps::default(), &Interner::default()).unwrap();
    let store = Store::default();
    store.put(object.clone(), record, Confirmation::default());
    let reading = store.read(&object, After::Arrival(store.beginning()));
    reading.unwrap().records.remove(0).record
}

#[test]
fn d07_type_source_and_count_are_handed_out() {
    let it = kept(&serde_json::json!({
        "type": "Warning",
        "reportingController": "kubelet",
        "reportingInstance": "gpu-0",
        "series": { "count": 9 },
    }));
    assert_eq!(
        [it.event_type(), it.controller(), it.instance()],
        ["Warning", "kubelet", "gpu-0"]
    );
    assert_eq!(it.count(), 9);
    // In the old spelling of each.
    let it = kept(&serde_json::json!({
        "type": "GpuThermalWatch",
        "source": { "component": "agent", "host": "gpu-1" },
        "count": 3,
    }));
    assert_eq!(
        [it.event_type(), it.controller(), it.instance()],
        ["GpuThermalWatch", "agent", "gpu-1"]
    );
    assert_eq!(it.count(), 3);
}

#[test]
fn d09_objects_of_two_groups_with_one_kind_and_name_can_be_told_apart() {
    let store = Store::default();
    for (name, group) in [("a", "batch/v1"), ("b", "batch.volcano.sh/v1alpha1")] {
        let json = serde_json::json!({
            "metadata": { "namespace": "ns", "name": name },
            "regarding": { "kind": "Job", "apiVersion": group, "namespace": "ns", "name": "train",
                "uid": format!("uid-{name}") },
        })
        .to_string();
        let wire: WireEvent<'_> = serde_json::from_str(&json).unwrap();
        let (object, record) =
            Record::pare_down(&wire, Caps::default(), &Interner::default()).unwrap();
        store.put(object, record, Confirmation::default());
    }
    let object = ObjectKey::new("ns", "Job", "train").unwrap();
    let reading = store.read(&object, After::Arrival(store.beginning()));
    let records = reading.unwrap().records;
    let of_batch = records.iter().map(|it| &it.record);
    let of_batch = of_batch.filter(|it| it.object_api_version().starts_with("batch/"));
    assert_eq!(of_batch.map(Record::name).collect::<Vec<_>>(), ["a"]);
    let uids = records.iter().map(|it| it.record.object_uid());
    assert_eq!(uids.collect::<Vec<_>>(), ["uid-a", "uid-b"]);
}

#[test]
fn d10_an_object_without_a_kind_or_a_name_is_an_error_and_no_empty_list() {
    let store = Store::default();
    act(&store, "put a/1 5 x");
    let zero = After::Watermark {
        created: 0,
        recorded: 0,
    };
    let read = |[namespace, kind, name]: [&str; 3], after| {
        let object = ObjectKey::new(namespace, kind, name).unwrap();
        store.read(&object, after).map(|it| it.records.len())
    };
    for after in [zero, After::Arrival(store.beginning())] {
        assert_eq!(read(["ns", "Pod", "pod"], after), Ok(1));
        assert_eq!(read(["ns", "Pod", "other"], after), Ok(0));
        assert_eq!(read(["ns", "", "pod"], after), Err(ReadError::NoObject));
        assert_eq!(read(["ns", "Pod", ""], after), Err(ReadError::NoObject));
        assert_eq!(read(["", "", ""], after), Err(ReadError::NoObject));
        // A Node has no namespace.
        assert_eq!(read(["", "Node", "gpu-0"], after), Ok(0));
    }
    assert_eq!(
        ReadError::NoObject.to_string(),
        "an object without a kind or a name has no records: name it in full, for example \
         `team-a/Pod/train-0`"
    );
}
