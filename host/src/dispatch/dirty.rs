//! The subjects that have changed since a plugin saw them last: each once, the
//! one that has waited longest first.

use std::collections::{HashMap, VecDeque};

use foldhash::quality::RandomState;

use crate::subject::SubjectKey;

/// Subjects in the order in which they were marked first.
#[derive(Debug, Default)]
pub(super) struct DirtySet {
    /// The place of each that is in.
    /// An object's name is hashed by then, with a key that nobody knows, so a fast hash
    /// will do.
    places: HashMap<SubjectKey, u64, RandomState>,
    /// Those that are in, at their places, and some that were taken out since.
    /// Never more of these than of the others, and none of them in front.
    queue: VecDeque<(u64, SubjectKey)>,
    next: u64,
}

impl DirtySet {
    /// Adds a subject, unless it is in already.
    pub(super) fn mark(&mut self, subject: &SubjectKey) {
        if self.places.contains_key(subject) {
            return;
        }
        self.places.insert(subject.clone(), self.next);
        self.queue.push_back((self.next, subject.clone()));
        self.next += 1;
    }

    /// Takes a subject out; says whether it was in.
    pub(super) fn remove(&mut self, subject: &SubjectKey) -> bool {
        let was_in = self.places.remove(subject).is_some();
        if was_in {
            self.tidy();
        }
        was_in
    }

    /// Whether a subject is in.
    pub(super) fn contains(&self, subject: &SubjectKey) -> bool {
        self.places.contains_key(subject)
    }

    /// How many are in.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// The one that has waited longest.
    pub(super) fn peek(&self) -> Option<&SubjectKey> {
        self.queue.front().map(|(_, subject)| subject)
    }

    /// Takes out the one that has waited longest.
    pub(super) fn pop(&mut self) -> Option<SubjectKey> {
        let (_, subject) = self.queue.pop_front()?;
        self.places.remove(&subject);
        self.tidy();
        Some(subject)
    }

    /// Gives back the room of those that are out.
    pub(super) fn shrink(&mut self) {
        self.places.shrink_to_fit();
        self.queue.shrink_to_fit();
    }

    /// Drops from the queue who is no longer in.
    fn tidy(&mut self) {
        let Self { places, queue, .. } = self;
        let is_in = |(place, subject): &(u64, SubjectKey)| places.get(subject) == Some(place);
        if 2 * places.len() < queue.len() {
            queue.retain(is_in);
        }
        while queue.front().is_some_and(|it| !is_in(it)) {
            queue.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::ObjectKey;

    fn subject(name: &str) -> SubjectKey {
        SubjectKey {
            object: ObjectKey::new("ns", "Pod", name).unwrap(),
            uid: "u".into(),
        }
    }

    #[test]
    fn a_subject_marked_twice_keeps_its_first_place() {
        let mut dirty = DirtySet::default();
        for name in ["b", "a", "b", "c"] {
            dirty.mark(&subject(name));
        }
        assert_eq!(dirty.pop(), Some(subject("b")));
        assert!(dirty.remove(&subject("c")));
        assert!(!dirty.remove(&subject("c")));
        dirty.mark(&subject("b"));
        assert_eq!(dirty.pop(), Some(subject("a")));
        assert_eq!(dirty.peek(), Some(&subject("b")));
        assert_eq!(dirty.pop(), Some(subject("b")));
        assert_eq!(dirty.pop(), None);
        assert!(dirty.places.is_empty() && dirty.queue.is_empty());
    }

    #[test]
    fn whoever_is_taken_out_early_takes_no_room() {
        let mut dirty = DirtySet::default();
        dirty.mark(&subject("first"));
        for idx in 0..1_000 {
            let it = subject(&format!("pod-{idx}"));
            dirty.mark(&it);
            assert!(dirty.remove(&it) && !dirty.contains(&it));
            assert!(dirty.queue.len() <= 2 * dirty.places.len());
        }
        assert_eq!(dirty.pop(), Some(subject("first")));
        assert!(dirty.queue.is_empty());
    }
}
