//! Who is found, in which order, and by a walk that others change under it.

use super::*;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Named(&'static str, u32);

impl Key for Named {
    fn namespace(&self) -> &str {
        self.0
    }
}

/// Three of each of three namespaces, at the seconds 1, 2 and 3.
fn nine() -> (Files<Named>, Vec<(Named, Place)>) {
    let mut files = Files::default();
    let mut places = Vec::new();
    for namespace in ["b", "a", "c"] {
        for second in 1..=3 {
            let key = Named(namespace, second);
            let (place, _) = files.file(key.clone(), second);
            places.push((key, place));
        }
    }
    (files, places)
}

/// What a walk in slices of this length comes by.
fn walked(files: &Files<Named>, until: Seconds, max: usize) -> Vec<Named> {
    let (mut all, mut walk) = (Vec::new(), None);
    loop {
        let (keys, next) = files.walk(walk, until, max);
        assert!(keys.len() <= max);
        all.extend(keys);
        match next {
            Some(next) => walk = Some(next),
            None => return all,
        }
    }
}

#[test]
fn a_walk_comes_by_each_once_in_slices_of_any_length() {
    let (files, _) = nine();
    let in_order = |until: u32| {
        let of = |namespace| (1..=until).map(move |second| Named(namespace, second));
        ["a", "b", "c"].into_iter().flat_map(of).collect::<Vec<_>>()
    };
    for max in 1..=10 {
        for until in 0..=3 {
            assert_eq!(walked(&files, until, max), in_order(until), "{max} {until}");
        }
    }
}

#[test]
fn a_walk_goes_on_behind_what_went_meanwhile() {
    let (mut files, places) = nine();
    let (keys, next) = files.walk(None, 3, 2);
    assert_eq!(keys, [Named("a", 1), Named("a", 2)]);
    // The rest of the namespace that it stopped in, and all of the next.
    for (key, place) in &places {
        if ["a", "b"].contains(&key.0) {
            files.take(key, *place);
        }
    }
    assert_eq!(
        files.walk(next, 3, 9),
        ((1..=3).map(|it| Named("c", it)).collect(), None)
    );
}

#[test]
fn what_is_filed_before_a_second_is_found_in_each_namespace() {
    let (files, _) = nine();
    assert_eq!(files.before(1, 9), []);
    assert_eq!(files.before(2, 9).len(), 3);
    assert_eq!(files.before(9, 4).len(), 4);
}

#[test]
fn the_namespace_with_the_most_bytes_is_the_largest_and_gone_with_its_last() {
    let (mut files, places) = nine();
    let (place, n_bytes) = files.file(Named("c", 0), 0);
    n_bytes.store(7, Relaxed);
    let first: Vec<_> = files
        .first_of_largest(2)
        .into_iter()
        .map(|(_, key)| key)
        .collect();
    assert_eq!(first, [Named("c", 0), Named("c", 1)]);
    files.take(&Named("c", 0), place);
    for (key, place) in &places {
        files.take(key, *place);
    }
    assert_eq!(files.first_of_largest(9), []);
    assert!(files.namespaces.is_empty());
}
