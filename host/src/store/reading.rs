//! Reading the records of an object, and going on from where one was.
//!
//! Whoever follows an object asks again and again for what is new. By when things
//! happened that cannot be said: Events come late, all of a second or in the order of
//! their names, and clocks go back. So a reader keeps a number of ours, the [`Cursor`],
//! which only grows. Flyte's own rule, by when the Event was created, is kept beside it
//! for whoever comes from there ([`After::Watermark`]).
//!
//! What is handed out is the reader's: a copy, which shares its texts and never changes.
//! One bucket is locked, for as long as that takes, and what bounds it is how many
//! records a bucket may have. No reader is known here, no clock is read, and nothing is
//! held for anyone.

use super::{Bucket, Store, Stored};
use crate::record::{ObjectKey, UnixMs};

/// How far a reader of an object is: keep one for each, since what another object had by
/// then counts as read. It is good for arrivals and changes alike, which are counted
/// together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cursor {
    /// The process that counts ([`Store::epoch`]).
    pub epoch: u64,
    /// The number of the last arrival or change that the reader knows; 0 before the
    /// first.
    pub sequence: u64,
}

/// What of an object is to be read, and in which order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// As Flyte's `List` has it: what was created later than this, or then and recorded
    /// later; in that order. All of it, if both are 0.
    ///
    /// What comes late and was created earlier is not among it, nor is what a new
    /// version of an Event says: read by a cursor.
    Watermark {
        /// When the last Event was created that is known.
        created: UnixMs,
        /// Its [`Stored::sequence`]. It is of one process, and nothing tells.
        recorded: u64,
    },
    /// What arrived since, in order of arrival. Each Event once, and as it is by now.
    Arrival(Cursor),
    /// What arrived or has said something else since, in the order of these changes.
    /// That a record is gone is no change of it.
    Change(Cursor),
}

/// What was read.
#[derive(Clone, Debug)]
pub struct Reading {
    /// The records.
    pub records: Vec<Stored>,
    /// Where to go on from.
    pub next: Cursor,
}

/// Why nothing was read. That nothing is known of an object is no error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The key lacks a kind or a name. No Event regards such an object, so that it
    /// would look like one that is well.
    #[error(
        "an object without a kind or a name has no records: name it in full, for example \
         `team-a/Pod/train-0`"
    )]
    NoObject,
    /// The cursor is of another process, or says more than this one has counted. What
    /// is new since cannot be told.
    #[error(
        "the cursor is not of this process: begin anew, and know by uid and resource version what \
         was read before"
    )]
    ForeignCursor,
}

impl Store {
    /// An empty store of a process. The default is of epoch 0: a recording is read once.
    #[must_use]
    pub fn in_epoch(epoch: u64) -> Self {
        Self {
            epoch,
            ..Self::default()
        }
    }

    /// The process that counts, as in the changes that it writes.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Where a reader begins.
    #[must_use]
    pub fn beginning(&self) -> Cursor {
        Cursor {
            epoch: self.epoch,
            sequence: 0,
        }
    }

    /// Reads the records of an object, whichever uid they name.
    ///
    /// # Errors
    ///
    /// If there can be no such object, or the cursor is of another process.
    pub fn read(&self, object: &ObjectKey, after: After) -> Result<Reading, ReadError> {
        self.read_those(object, after, |bucket| bucket.records().iter().collect())
    }

    /// The same of those that `of` takes of the object's bucket. It must not call the
    /// store.
    ///
    /// # Errors
    ///
    /// Likewise.
    pub fn read_those(
        &self,
        object: &ObjectKey,
        after: After,
        of: impl FnOnce(&Bucket) -> Vec<&Stored>,
    ) -> Result<Reading, ReadError> {
        if object.kind().is_empty() || object.name().is_empty() {
            return Err(ReadError::NoObject);
        }
        let mut next = match after {
            After::Watermark { .. } => self.beginning(),
            After::Arrival(cursor) | After::Change(cursor) => cursor,
        };
        if next.epoch != self.epoch || self.version().0 < next.sequence {
            return Err(ReadError::ForeignCursor);
        }
        let read = self.view(object, |bucket| {
            let records = of(bucket).into_iter();
            let new = records.filter(|it| after.mark() < after.place(it));
            (new.cloned().collect(), bucket.version())
        });
        let (mut records, version): (Vec<_>, _) = read.unwrap_or_default();
        records.sort_by_key(|it| after.place(it));
        // Not back, where the reader comes from another object.
        next.sequence = next.sequence.max(version.0);
        Ok(Reading { records, next })
    }
}

impl After {
    /// What a record is ordered by. No two records have one sequence, so each has a
    /// place of its own.
    fn place(self, it: &Stored) -> (UnixMs, u64) {
        match self {
            Self::Watermark { .. } => (it.record.created(), it.sequence),
            Self::Arrival(_) => (0, it.sequence),
            Self::Change(_) => (0, it.changed.0),
        }
    }

    /// What is read has its place behind this.
    fn mark(self) -> (UnixMs, u64) {
        match self {
            Self::Watermark { created, recorded } => (created, recorded),
            Self::Arrival(cursor) | Self::Change(cursor) => (0, cursor.sequence),
        }
    }
}
