//! The subjects that have changed since a plugin saw them last: each once, the
//! one that has waited longest first.

use std::collections::{BTreeMap, HashMap};

use crate::subject::SubjectKey;

/// Subjects in the order in which they were marked first.
#[derive(Debug, Default)]
pub(super) struct DirtySet {
    place: HashMap<SubjectKey, u64>,
    order: BTreeMap<u64, SubjectKey>,
    next: u64,
}

impl DirtySet {
    /// Adds a subject, unless it is in already.
    pub(super) fn mark(&mut self, subject: &SubjectKey) {
        if self.place.contains_key(subject) {
            return;
        }
        self.place.insert(subject.clone(), self.next);
        self.order.insert(self.next, subject.clone());
        self.next += 1;
    }

    /// Takes a subject out; says whether it was in.
    pub(super) fn remove(&mut self, subject: &SubjectKey) -> bool {
        let place = self.place.remove(subject);
        place.is_some_and(|it| self.order.remove(&it).is_some())
    }

    /// Whether a subject is in.
    pub(super) fn contains(&self, subject: &SubjectKey) -> bool {
        self.place.contains_key(subject)
    }

    /// How many are in.
    pub(super) fn len(&self) -> usize {
        self.place.len()
    }

    /// The one that has waited longest.
    pub(super) fn peek(&self) -> Option<&SubjectKey> {
        self.order.first_key_value().map(|(_, subject)| subject)
    }

    /// Takes out the one that has waited longest.
    pub(super) fn pop(&mut self) -> Option<SubjectKey> {
        let (_, subject) = self.order.pop_first()?;
        self.place.remove(&subject);
        Some(subject)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::record::ObjectKey;

    fn subject(name: &str) -> SubjectKey {
        SubjectKey {
            object: ObjectKey::new("ns", "Pod", name).unwrap(),
            uid: Arc::from("u"),
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
        assert!(dirty.place.is_empty() && dirty.order.is_empty());
    }
}
