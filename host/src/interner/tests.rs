//! What is shared, what is forgotten, and what does not fit.

use std::{sync::Barrier, thread};

use super::*;

#[test]
fn what_is_said_alike_is_held_once() {
    let interner = Interner::default();
    let one = interner.intern(&["v1", "Warning", "Failed"]);
    let other = interner.intern(&["v1", "Warning", "Failed"]);
    assert!(Arc::ptr_eq(&one, &other));
    assert_eq!(
        [one.part(0), one.part(1), one.part(2)],
        ["v1", "Warning", "Failed"]
    );
    assert_eq!(interner.len(), 1);
    assert_eq!(one.n_own_bytes(), 0);
}

#[test]
fn texts_with_their_ends_elsewhere_are_others() {
    let interner = Interner::default();
    let (one, other) = (interner.intern(&["ab", "c"]), interner.intern(&["a", "bc"]));
    assert_ne!(one, other);
    assert_eq!(
        [
            other.part(0),
            other.part(1),
            interner.intern(&["", ""]).part(1)
        ],
        ["a", "bc", ""]
    );
}

#[test]
fn the_last_user_takes_the_text_along() {
    let interner = Interner::default();
    let all: Vec<_> = (0..1_000)
        .map(|it| interner.intern(&[&it.to_string()]))
        .collect();
    let again = interner.intern(&["7"]);
    assert_eq!(interner.len(), 1_000);
    drop(all);
    assert_eq!(interner.len(), 1);
    drop(again);
    assert!(interner.is_empty());
    assert_eq!(interner.n_bytes(), 0);
    assert_eq!(lock(&interner.table).places.capacity(), 0);
}

#[test]
fn what_finds_no_place_is_its_records_own() {
    let fits = Interner::default();
    drop((fits.intern(&["Failed"]), fits.intern(&["Killed"])));
    let two = 2 * {
        let _one = fits.intern(&["Failed"]);
        fits.n_bytes()
    };
    for (max_bytes, n_shared) in [(two, 2), (two - 1, 1), (0, 0)] {
        let interner = Interner::bounded(max_bytes);
        let texts = ["Failed", "Killed"].map(|it| interner.intern(&[it]));
        assert_eq!(interner.len(), n_shared, "{max_bytes}");
        assert!(interner.n_bytes() <= max_bytes);
        let n_own = texts.iter().filter(|it| 0 < it.n_own_bytes()).count();
        assert_eq!(n_own, 2 - n_shared, "{max_bytes}");
        assert_eq!(texts[1].part(0), "Killed");
    }
}

#[test]
fn room_that_is_given_back_is_used_again() {
    let interner = Interner::bounded({
        let any = Interner::default();
        let _one = any.intern(&["Failed"]);
        any.n_bytes()
    });
    let first = interner.intern(&["Failed"]);
    assert!(0 < interner.intern(&["Killed"]).n_own_bytes());
    drop(first);
    assert_eq!(interner.intern(&["Killed"]).n_own_bytes(), 0);
}

/// Against a table that forgets whatever stands in the place of a text that goes
/// (`ptr::eq` left out), this failed 20 times of 20.
#[test]
fn a_text_that_goes_never_takes_another_out_of_its_place() {
    let interner = Interner::default();
    let (n_threads, start) = (4, Barrier::new(4));
    thread::scope(|scope| {
        for _ in 0..n_threads {
            scope.spawn(|| {
                start.wait();
                for _ in 0..20_000 {
                    let mine = interner.intern(&["Warning", "Failed"]);
                    // As long as it is held, who asks gets the same.
                    assert!(Arc::ptr_eq(&mine, &interner.intern(&["Warning", "Failed"])));
                }
            });
        }
    });
    assert!(interner.is_empty());
    assert_eq!(interner.n_bytes(), 0);
}
