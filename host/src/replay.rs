//! The whole path from recorded Events to outcomes, with no cluster.
//!
//! Replay has no clock: nothing is clamped, nothing expires, and what comes out
//! is a function of the input alone. For that a subject is classified before any
//! of its records is removed or moves to another subject, and at the end of the
//! input; in between it may change as often as it likes.
//!
//! It holds one record for each Event that is live at the end of what was read,
//! and the outcomes.

use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZeroUsize,
    sync::Arc,
};

use crate::{
    dispatch::Dispatcher,
    outcome::{Change, Outcomes},
    plugins::PluginSet,
    record::{Caps, ObjectKey, Record, Rejected, decode::WireEvent},
    sandbox::Limits,
    store::{Bucket, Put, Store},
    subject::{SubjectKey, assigned},
};

pub mod input;
pub mod output;
pub mod spill;
pub mod table;

/// What was read, and what became of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Events that came, other than to say that they were deleted.
    pub received: u64,
    /// Those of them that were refused, by why.
    pub rejected: BTreeMap<Rejected, u64>,
    /// Fields that held something else than they may, and count as absent.
    pub malformed_fields: u64,
    /// Deletions of Events that were not known.
    pub unknown_deletions: u64,
}

impl Tally {
    /// Events that were refused.
    #[must_use]
    pub fn n_rejected(&self) -> u64 {
        self.rejected.values().sum()
    }
}

/// A replay that is under way.
#[derive(Debug)]
pub struct Replay {
    store: Arc<Store>,
    outcomes: Arc<Outcomes>,
    dispatcher: Dispatcher,
    caps: Caps,
    tally: Tally,
}

impl Replay {
    /// A replay through these plugins.
    ///
    /// # Errors
    ///
    /// If a thread cannot be started.
    pub fn new(
        plugins: Arc<PluginSet>,
        limits: &Limits,
        n_workers: NonZeroUsize,
    ) -> std::io::Result<Self> {
        let (store, outcomes) = (Arc::<Store>::default(), Arc::<Outcomes>::default());
        let dispatcher = Dispatcher::new(
            Arc::clone(&store),
            Arc::clone(&outcomes),
            plugins,
            limits.clone(),
            n_workers,
        )?;
        Ok(Self {
            store,
            outcomes,
            dispatcher,
            caps: Caps::default(),
            tally: Tally::default(),
        })
    }

    /// An Event that exists, or says something new.
    ///
    /// # Errors
    ///
    /// If it was refused, which is counted.
    pub fn put(
        &mut self,
        wire: &WireEvent<'_>,
        on_change: &mut dyn FnMut(Change),
    ) -> Result<(), Rejected> {
        self.tally.received += 1;
        self.tally.malformed_fields += u64::from(wire.n_malformed());
        let (object, record) = match Record::pare_down(wire, self.caps) {
            Ok(known) => known,
            Err(why) => {
                *self.tally.rejected.entry(why).or_default() += 1;
                return Err(why);
            }
        };

        let shift = self.store.view(&object, |bucket| {
            // Most Events are new, and say whom they regard: they move nobody.
            let is_plain = |it: &Record| !it.object_uid().is_empty() && it.name() != record.name();
            let moves_nobody = !record.object_uid().is_empty()
                && bucket.records().iter().all(|it| is_plain(&it.record));
            if moves_nobody {
                Shift::default()
            } else {
                Shift::between(bucket, &bucket.with(record.clone()))
            }
        });
        let shift = shift.unwrap_or_default();
        self.dispatcher
            .settle(&subjects(&object, &shift.lost), on_change);

        match self.store.put(object.clone(), record.clone()) {
            Put::Inserted => self.mark(&object, &[&record]),
            Put::Updated(earlier) => self.mark(&object, &[&record, &earlier]),
            Put::Unchanged => {}
            Put::Replaced(earlier) => {
                for subject in subjects(&object, &shift.lost) {
                    self.outcomes.event_gone(&subject, &earlier.event_ref());
                }
                self.mark(&object, &[&record]);
            }
        }
        self.apply(&object, &shift, on_change);
        Ok(())
    }

    /// An Event that is deleted.
    pub fn delete(&mut self, wire: &WireEvent<'_>, on_change: &mut dyn FnMut(Change)) {
        self.tally.malformed_fields += u64::from(wire.n_malformed());
        let Ok((object, record)) = Record::pare_down(wire, self.caps) else {
            // It was refused when it came, too.
            self.tally.unknown_deletions += 1;
            return;
        };
        let shift = self.store.view(&object, |bucket| {
            Shift::between(bucket, &bucket.without(record.name(), record.uid()))
        });
        let shift = shift.unwrap_or_default();
        self.dispatcher
            .settle(&subjects(&object, &shift.lost), on_change);

        match self.store.remove(&object, record.name(), record.uid()) {
            None => self.tally.unknown_deletions += 1,
            Some(removed) => {
                for subject in subjects(&object, &shift.lost) {
                    self.outcomes.event_gone(&subject, &removed.event_ref());
                }
                // Who only lost a record is not asked again: absence is no evidence.
                for subject in subjects(&object, &shift.gained) {
                    self.dispatcher.mark_moved(&subject);
                }
            }
        }
    }

    /// Classifies what is left at the end of the input.
    pub fn finish(&mut self, on_change: &mut dyn FnMut(Change)) {
        self.dispatcher.drain(on_change);
    }

    /// What is held of all subjects.
    #[must_use]
    pub fn outcomes(&self) -> &Outcomes {
        &self.outcomes
    }

    /// The records that are live.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// What was read so far.
    #[must_use]
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Marks the subject that a record belongs to.
    fn mark(&mut self, object: &ObjectKey, records: &[&Record]) {
        let Some(newest) = records.first() else {
            return;
        };
        let uid = self.store.view(object, |bucket| {
            let of_each = assigned(bucket).into_iter().zip(bucket.records());
            let mut it = of_each.filter(|(_, it)| it.record.name() == newest.name());
            it.next().map(|(uid, _)| Arc::from(uid))
        });
        if let Some(uid) = uid.flatten() {
            self.dispatcher.mark(
                &SubjectKey {
                    object: object.clone(),
                    uid,
                },
                records,
            );
        }
    }

    /// Marks those whose records are others now, and lets the subject that had
    /// no uid go up in the one that turned out to be it.
    fn apply(&mut self, object: &ObjectKey, shift: &Shift, on_change: &mut dyn FnMut(Change)) {
        for uids in [&shift.gained, &shift.lost] {
            for subject in subjects(object, uids) {
                self.dispatcher.mark_moved(&subject);
            }
        }
        if let Some(into) = &shift.unnamed_became {
            let unnamed = SubjectKey {
                object: object.clone(),
                uid: "".into(),
            };
            let named = SubjectKey {
                object: object.clone(),
                uid: Arc::clone(into),
            };
            self.outcomes
                .fold(&unnamed, &named)
                .into_iter()
                .for_each(on_change);
        }
    }
}

/// Which subjects of an object get other records by a change of its bucket.
#[derive(Debug, Default)]
struct Shift {
    /// Those that lose one, by uid.
    lost: BTreeSet<Arc<str>>,
    /// Those that get one that another had.
    gained: BTreeSet<Arc<str>>,
    /// Whom the records without a uid belong to, if they were a subject of their
    /// own and are none any more.
    unnamed_became: Option<Arc<str>>,
}

impl Shift {
    fn between(before: &Bucket, after: &Bucket) -> Self {
        let after_of: BTreeMap<u64, &str> = after
            .records()
            .iter()
            .map(|it| it.sequence)
            .zip(assigned(after))
            .collect();
        let mut shift = Self::default();
        for (uid, it) in assigned(before).into_iter().zip(before.records()) {
            match after_of.get(&it.sequence) {
                Some(same) if *same == uid => {}
                Some(other) => {
                    shift.lost.insert(uid.into());
                    shift.gained.insert((*other).into());
                    if uid.is_empty() && !after_of.values().any(|it| it.is_empty()) {
                        shift.unnamed_became.get_or_insert_with(|| (*other).into());
                    }
                }
                None => {
                    shift.lost.insert(uid.into());
                }
            }
        }
        shift
    }
}

fn subjects(object: &ObjectKey, uids: &BTreeSet<Arc<str>>) -> Vec<SubjectKey> {
    uids.iter()
        .map(|uid| SubjectKey {
            object: object.clone(),
            uid: Arc::clone(uid),
        })
        .collect()
}

#[cfg(test)]
mod tests;
