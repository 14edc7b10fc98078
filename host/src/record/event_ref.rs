//! Which Event it was.
//!
//! A record goes with its Event, and what was said of it may stay. What refers to it
//! shares the record's text for as long as both are there; who stays longer takes what
//! identifies the Event and lets go of the note.

use std::{cmp::Ordering, fmt, sync::Arc};

use uuid::Uuid;

use super::{UidRef, uid_of};

/// Refers to an Event after its record may be gone.
///
/// It shares its text with the record that it was made of, or with nobody
/// ([`EventRef::detached`]).
#[derive(Clone)]
pub struct EventRef {
    /// Begins with uid, if that is no UUID, namespace and name.
    pub(super) text: Arc<str>,
    pub(super) uid: Uuid,
    pub(super) ends: [u16; 3],
    /// Where its note begins, if the text has one.
    pub(super) note: u16,
}

impl EventRef {
    /// Namespace of the Event itself.
    #[must_use]
    pub fn namespace(&self) -> &str {
        self.part(self.ends[0], self.ends[1])
    }

    /// Name of the Event itself.
    #[must_use]
    pub fn name(&self) -> &str {
        self.part(self.ends[1], self.ends[2])
    }

    /// Its uid, empty when unknown.
    #[must_use]
    pub fn uid(&self) -> UidRef<'_> {
        uid_of(self.uid, self.part(0, self.ends[0]))
    }

    fn part(&self, start: u16, end: u16) -> &str {
        self.text.get(start.into()..end.into()).unwrap_or_default()
    }

    /// The same with a text of its own, for who holds it longer than the record
    /// and would hold the note with it.
    #[must_use]
    pub fn detached(&self) -> Self {
        Self {
            text: self.part(0, self.ends[2]).into(),
            uid: self.uid,
            ends: self.ends,
            note: u16::MAX,
        }
    }

    /// The Event's note, as of the record that this was made of. Empty once it is
    /// detached.
    #[must_use]
    pub(crate) fn note(&self) -> &str {
        self.text.get(self.note.into()..).unwrap_or_default()
    }

    /// Bytes of what identifies it.
    #[must_use]
    pub fn n_text_bytes(&self) -> usize {
        self.ends[2].into()
    }

    fn parts(&self) -> (&str, &str, UidRef<'_>) {
        (self.namespace(), self.name(), self.uid())
    }
}

impl PartialEq for EventRef {
    fn eq(&self, other: &Self) -> bool {
        self.parts() == other.parts()
    }
}

impl Eq for EventRef {}

impl PartialOrd for EventRef {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for EventRef {
    fn cmp(&self, other: &Self) -> Ordering {
        self.parts().cmp(&other.parts())
    }
}

impl fmt::Debug for EventRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parts().fmt(f)
    }
}
