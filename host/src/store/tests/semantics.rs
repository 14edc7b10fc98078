//! What each way of reading shows of a history, in a table, and what a cursor is good
//! for.

use super::*;

/// What was read: name and note of each record.
fn shown(reading: &Reading) -> Vec<String> {
    let records = reading.records.iter().map(|it| &it.record);
    records
        .map(|it| format!("{} {}", it.name(), it.note()))
        .collect()
}

/// What a reader shows of `pod`, and where it goes on from.
fn read(store: &Store, after: After) -> (Vec<String>, Cursor) {
    let reading = store.read(&pod("pod"), after).unwrap();
    (shown(&reading), reading.next)
}

/// The watermark of a reader as Flyte has it: that of the last record of the list.
fn watermark(store: &Store) -> After {
    let zero = After::Watermark {
        created: 0,
        recorded: 0,
    };
    let reading = store.read(&pod("pod"), zero).unwrap();
    reading.records.last().map_or(zero, |it| After::Watermark {
        created: it.record.created(),
        recorded: it.sequence,
    })
}

/// Three readers know what came of the first steps. What each is shown of the rest: by
/// watermark, by arrival, by change.
#[track_caller]
fn check_new(known: &[&str], new: &[&str], want: [&[&str]; 3]) {
    let store = Store::in_epoch(7);
    for step in known {
        act(&store, step);
    }
    let watermark = watermark(&store);
    let (_, cursor) = read(&store, After::Arrival(store.beginning()));
    for step in new {
        act(&store, step);
    }
    let (listed, cursor_of_list) = read(&store, watermark);
    let (arrived, next) = read(&store, After::Arrival(cursor));
    let (changed, next_change) = read(&store, After::Change(cursor));
    assert_eq!([listed, arrived, changed], want, "{known:?}, {new:?}");
    // Behind what was read there is nothing, and all go on from the same place.
    assert_eq!([cursor_of_list, next_change], [next; 2]);
    for after in [After::Arrival(next), After::Change(next)] {
        assert_eq!(read(&store, after), (Vec::new(), next));
    }
}

const A: &str = "put a/1 5 x";
const B: &str = "put b/2 6 x";

#[test]
fn what_is_new_is_read_in_each_way() {
    check_new(&[], &[], [&[], &[], &[]]);
    check_new(&[], &[A, B], [&["a x", "b x"]; 3]);
    check_new(&[A], &[B], [&["b x"]; 3]);
    check_new(&[A, B], &[], [&[], &[], &[]]);
    // Of the second in which the last one was.
    check_new(&[A], &["put b/2 5 x"], [&["b x"]; 3]);
}

#[test]
fn what_was_created_earlier_and_came_late_is_no_news_to_a_watermark_only() {
    check_new(&[B], &[A], [&[], &["a x"], &["a x"]]);
    check_new(
        &["put c/3 5 x"],
        &[B, "put a/1 4 x"],
        [&["b x"], &["b x", "a x"], &["b x", "a x"]],
    );
    // Both in one list: in order of creation, or as they came.
    check_new(
        &[],
        &[B, A],
        [&["a x", "b x"], &["b x", "a x"], &["b x", "a x"]],
    );
}

#[test]
fn what_an_update_says_is_read_by_change_only_and_once() {
    check_new(&[A, B], &["put a/1 9 y"], [&[], &[], &["a y"]]);
    check_new(&[A, B], &["put a/1 5 y"], [&[], &[], &["a y"]]);
    check_new(&[A, B], &["put a/1 3 y"], [&[], &[], &["a y"]]);
    check_new(&[A], &["put a/1 6 y", "put a/1 7 z"], [&[], &[], &["a z"]]);
    // Said again, or said late: nothing is new.
    check_new(&[A], &[A], [&[], &[], &[]]);
    check_new(&[A, "put a/1 9 x"], &[A], [&[], &[], &[]]);
}

#[test]
fn changes_come_in_their_order() {
    check_new(
        &[A, B],
        &["put b/2 7 y", "put a/1 8 y"],
        [&[], &[], &["b y", "a y"]],
    );
    check_new(
        &[A],
        &["put c/3 7 x", "put a/1 8 y", "put d/4 9 x"],
        [&["c x", "d x"], &["c x", "d x"], &["c x", "a y", "d x"]],
    );
    // What came and was updated since came once.
    check_new(
        &[],
        &[A, B, "put a/1 9 y"],
        [&["a y", "b x"], &["a y", "b x"], &["b x", "a y"]],
    );
}

#[test]
fn another_event_under_a_name_is_new() {
    check_new(&[A], &["put a/3 6 y"], [&["a y"]; 3]);
    check_new(&[A], &["put a/3 5 x"], [&["a x"]; 3]);
    check_new(&[A, B], &["put a/3 4 y"], [&[], &["a y"], &["a y"]]);
}

#[test]
fn what_is_gone_is_not_read_and_what_comes_again_is_new() {
    check_new(&[A, B], &["remove a/1"], [&[], &[], &[]]);
    check_new(&[A], &[B, "remove b/2"], [&[], &[], &[]]);
    check_new(&[A, B], &["remove a/1", A], [&[], &["a x"], &["a x"]]);
    // The bucket goes and comes again.
    check_new(&[A], &["remove a/1", A], [&["a x"]; 3]);
    check_new(&[A], &["remove a/1", B], [&["b x"]; 3]);
}

#[test]
fn of_an_object_that_nothing_is_known_of_nothing_is_read() {
    let store = Store::in_epoch(7);
    act(&store, A);
    let cursor = Cursor {
        epoch: 7,
        sequence: 1,
    };
    for (after, next) in [
        (After::Arrival(cursor), cursor),
        (After::Change(cursor), cursor),
        (After::Arrival(store.beginning()), store.beginning()),
    ] {
        let reading = store.read(&pod("other"), after).unwrap();
        assert_eq!((shown(&reading), reading.next), (Vec::new(), next));
    }
}

#[test]
fn one_cursor_serves_all_objects_and_never_goes_back() {
    let store = Store::in_epoch(7);
    act(&store, A);
    let (object, record) = sighting("other", "o", "9", 1, "x");
    store.put(object.clone(), record, Confirmation::default());
    let (_, of_pod) = read(&store, After::Arrival(store.beginning()));
    let of_other = store.read(&object, After::Arrival(of_pod)).unwrap();
    assert_eq!(shown(&of_other), ["o x"]);
    assert_eq!(of_pod.sequence, 1);
    assert_eq!(of_other.next.sequence, 2);
    assert_eq!(
        read(&store, After::Arrival(of_other.next)),
        (Vec::new(), of_other.next)
    );
}

#[test]
fn a_cursor_of_another_process_is_told_apart_wherever_it_is_used() {
    let store = Store::in_epoch(7);
    act(&store, A);
    let check = |epoch, sequence, is_ours: bool| {
        let cursor = Cursor { epoch, sequence };
        for after in [After::Arrival(cursor), After::Change(cursor)] {
            for object in [pod("pod"), pod("unknown")] {
                let read = store.read(&object, after).map(|_| ());
                let want = is_ours.then_some(()).ok_or(ReadError::ForeignCursor);
                assert_eq!(read, want, "{after:?} of {object}");
            }
        }
    };
    check(7, 0, true);
    check(7, 1, true);
    check(6, 0, false);
    check(6, 1, false);
    check(8, 1, false);
    check(0, 0, false);
    // Of this process, but it has not counted so far.
    check(7, 2, false);
    check(7, u64::MAX, false);
}
