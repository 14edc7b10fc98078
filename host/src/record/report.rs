//! What an Event says beside its note.
//!
//! Whoever tells of an Event by a line of text shows it beside that line: what sort of news it was,
//! who brought it, and how often. It is the host's to say, for any plugin would only copy it. It
//! shares what the record shares with a thousand others, and costs two pointers and a number.

use std::{fmt, sync::Arc};

use super::{Record, Sort, Source};
use crate::interner::Repeated;

/// Type, reason, reporter and count of an Event, as of one record of it.
#[derive(Clone)]
pub struct Report {
    sort: Arc<Repeated>,
    source: Arc<Repeated>,
    count: u32,
}

impl Report {
    /// `Normal`, `Warning`, or what else its writer put there.
    #[must_use]
    pub fn event_type(&self) -> &str {
        self.sort.part(Sort::EventType as usize)
    }

    /// For machines, for example `FailedScheduling`.
    #[must_use]
    pub fn reason(&self) -> &str {
        self.sort.part(Sort::Reason as usize)
    }

    /// Who reported it, for example `kubelet`; empty when unknown.
    #[must_use]
    pub fn controller(&self) -> &str {
        self.source.part(Source::Controller as usize)
    }

    /// How often it was seen. At least 1.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count
    }

    fn parts(&self) -> (&str, &str, &str, u32) {
        (
            self.event_type(),
            self.reason(),
            self.controller(),
            self.count,
        )
    }
}

impl Record {
    /// What the Event says beside its note.
    #[must_use]
    pub fn report(&self) -> Report {
        Report {
            sort: Arc::clone(&self.sort),
            source: Arc::clone(&self.source),
            count: self.count,
        }
    }
}

impl PartialEq for Report {
    /// What else is repeated together with these is nobody's here.
    fn eq(&self, other: &Self) -> bool {
        let is_shared =
            Arc::ptr_eq(&self.sort, &other.sort) && Arc::ptr_eq(&self.source, &other.source);
        (is_shared && self.count == other.count) || self.parts() == other.parts()
    }
}

impl Eq for Report {}

impl fmt::Debug for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parts().fmt(f)
    }
}
