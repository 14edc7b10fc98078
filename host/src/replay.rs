//! The whole path from recorded Events to outcomes, with no cluster.
//!
//! Replay has no clock: nothing is clamped, nothing expires, and what comes out
//! is a function of the input alone. For that a subject is classified before any
//! of its records is removed or moves to another subject, and at the end of the
//! input; in between it may change as often as it likes.
//!
//! A recording may be of any size, so what is held is bounded ([`Bounds`]). What
//! has to leave is classified first and handed out, and starts anew if it is
//! heard of again: nothing is lost, but it comes in parts.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    num::NonZeroUsize,
    sync::Arc,
};

use crate::{
    dispatch::Dispatcher,
    outcome::{Change, Held, Outcomes},
    plugins::PluginSet,
    pods::{Pod, PodPut, Pods},
    record::{Caps, ObjectKey, Record, Rejected, Uid, decode::WireEvent},
    sandbox::Limits,
    store::{Bucket, Confirmation, Put, Store},
    subject::{Owners, Shift, SubjectKey, assigned, subjects, uids},
};

pub mod input;
pub mod spill;
pub mod table;

/// Who is told what comes of a replay.
pub trait Listener {
    /// What is held of a subject changed.
    fn change(&mut self, change: Change);
    /// What is held of a subject at the end, or as it leaves: one for each
    /// classifier that has something to say. A subject that left and came again
    /// is told again.
    fn element(&mut self, subject: &SubjectKey, held: &[Held]);
}

/// How much is held at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes of records and what comes with them. The object that was first heard
    /// of longest ago leaves first.
    pub store_bytes: usize,
    /// Records of one object. With one more it leaves, so that an object that
    /// never stops displaces nobody but itself.
    pub records_per_object: usize,
    /// Subjects with an outcome.
    pub outcomes: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            store_bytes: 256 << 20,
            records_per_object: 64,
            outcomes: 16_384,
        }
    }
}

/// How many objects are classified and handed out at once at the end: enough to
/// fill batches, and little to hold.
const SLICE: usize = 4_096;

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
    /// Objects that left before the end of the input, to make room for others.
    pub left_early: u64,
    /// Objects that left because they had too many records.
    pub left_full: u64,
}

impl Tally {
    /// Events that were refused.
    #[must_use]
    pub fn n_rejected(&self) -> u64 {
        self.rejected.values().sum()
    }
}

/// What is known of the object of a record that comes.
enum Known {
    /// It has as many records as it may, and this is one more.
    Full,
    /// It may have it, and these subjects get other records by it.
    Room(Shift),
}

impl Known {
    fn of(bucket: &Bucket, record: &Record, bounds: &Bounds) -> Self {
        let is_known = |it: &Record| it.is_named_as(record);
        let n_records = bucket.records().len();
        if bounds.records_per_object <= n_records
            && !bucket.records().iter().any(|it| is_known(&it.record))
        {
            return Self::Full;
        }
        // Most Events are new, and say whom they regard: they move nobody.
        let moves_nobody = !record.object_uid().is_empty()
            && bucket
                .records()
                .iter()
                .all(|it| !it.record.object_uid().is_empty() && !is_known(&it.record));
        if moves_nobody {
            return Self::Room(Shift::default());
        }
        let after = bucket.with(record.clone());
        Self::Room(Shift::between(&Owners::of(bucket), &Owners::of(&after)))
    }
}

/// A replay that is under way.
#[derive(Debug)]
pub struct Replay {
    store: Arc<Store>,
    outcomes: Arc<Outcomes>,
    dispatcher: Dispatcher,
    bounds: Bounds,
    caps: Caps,
    tally: Tally,
    /// The objects with records, in the order in which they were first heard of;
    /// among them may be some that have none any more.
    order: VecDeque<ObjectKey>,
}

/// How many more objects may be in the order before it is looked at whether they
/// have records: that takes every lock of the store.
const ORDER_STEP: usize = 65_536;

impl Replay {
    /// A replay through these plugins.
    ///
    /// # Errors
    ///
    /// If a thread cannot be started.
    pub fn new(
        plugins: Arc<PluginSet>,
        limits: &Limits,
        bounds: Bounds,
        n_workers: NonZeroUsize,
    ) -> std::io::Result<Self> {
        let (store, outcomes) = (Arc::<Store>::default(), Arc::<Outcomes>::default());
        let dispatcher = Dispatcher::new(
            Arc::clone(&store),
            Arc::clone(&outcomes),
            plugins,
            limits.clone(),
            n_workers,
            &(Arc::new(|| {}) as Arc<dyn Fn() + Send + Sync>),
        )?;
        let (caps, tally, order) = (Caps::default(), Tally::default(), VecDeque::new());
        Ok(Self {
            store,
            outcomes,
            dispatcher,
            bounds,
            caps,
            tally,
            order,
        })
    }

    /// An Event that exists, or says something new.
    ///
    /// # Errors
    ///
    /// If it was refused, which is counted.
    pub fn put(&mut self, wire: &WireEvent<'_>, to: &mut dyn Listener) -> Result<(), Rejected> {
        self.tally.received += 1;
        self.tally.malformed_fields += u64::from(wire.n_malformed());
        let (object, record) = Record::pare_down(wire, self.caps, self.store.interner())
            .inspect_err(|why| *self.tally.rejected.entry(*why).or_default() += 1)?;

        let known = self
            .store
            .view(&object, |bucket| Known::of(bucket, &record, &self.bounds));
        let is_new = known.is_none();
        let shift = match known {
            Some(Known::Full) => {
                self.tally.left_full += 1;
                self.leave(std::slice::from_ref(&object), to);
                Shift::default()
            }
            Some(Known::Room(shift)) => shift,
            None => Shift::default(),
        };
        self.settle(&object, &shift, to);

        match self
            .store
            .put(object.clone(), record.clone(), Confirmation::default())
        {
            Put::Inserted => self.mark(&object, &[&record]),
            Put::Updated(earlier) => self.mark(&object, &[&record, &earlier]),
            Put::Unchanged => {}
            Put::Replaced(earlier) => {
                self.gone(&object, &shift, &earlier);
                self.mark(&object, &[&record]);
            }
        }
        self.apply(&object, &shift, to);
        if is_new {
            self.order.push_back(object);
        }
        self.make_room(to);
        Ok(())
    }

    /// An Event that is deleted.
    pub fn delete(&mut self, wire: &WireEvent<'_>, to: &mut dyn Listener) {
        self.tally.malformed_fields += u64::from(wire.n_malformed());
        let Ok((object, record)) = Record::pare_down(wire, self.caps, self.store.interner()) else {
            // It was refused when it came, too.
            self.tally.unknown_deletions += 1;
            return;
        };
        let shift = self.store.view(&object, |bucket| {
            let after = bucket.without(&record);
            Shift::between(&Owners::of(bucket), &Owners::of(&after))
        });
        let shift = shift.unwrap_or_default();
        self.settle(&object, &shift, to);

        match self.store.remove(&object, &record) {
            None => self.tally.unknown_deletions += 1,
            Some(removed) => {
                self.gone(&object, &shift, &removed);
                // Who only lost a record is not asked again: absence is no evidence.
                for subject in subjects(&object, &shift.gained) {
                    self.dispatcher.mark_moved(&subject);
                }
            }
        }
        self.make_room(to);
    }

    /// A pod, as it is at the end of the recording. Whoever knows of pods puts them first:
    /// what left before was classified without.
    pub fn put_pod(&mut self, object: &ObjectKey, pod: Pod) -> PodPut {
        self.dispatcher.put_pod(object, pod)
    }

    /// The pods that are known.
    #[must_use]
    pub fn pods(&self) -> &Pods {
        self.dispatcher.pods()
    }

    /// From now on every object is taken to have failed with this code: a pod that did
    /// fail when it did, any other object one second after its last Event was last seen.
    pub fn assume_failure(&mut self, code: &str) {
        self.dispatcher.assume_failure(code);
    }

    /// Classifies what is left at the end of the input, and hands it out.
    pub fn finish(&mut self, to: &mut dyn Listener) {
        let objects = std::mem::take(&mut self.order);
        for slice in Vec::from(objects).chunks(SLICE) {
            self.hand_out(slice, to);
        }
        // Pods that failed and that nothing was said of.
        self.dispatcher.drain(&mut |it| to.change(it));
        self.hand_out_rest(to);
    }

    /// Classifies whoever is about to lose a record.
    fn settle(&mut self, object: &ObjectKey, shift: &Shift, to: &mut dyn Listener) {
        if shift.lost.is_empty() {
            return;
        }
        let mut losing = subjects(object, &shift.lost);
        losing.extend(self.dispatcher.around(object));
        self.dispatcher.settle(&losing, &mut |it| to.change(it));
    }

    /// Notes that a record is gone, which these subjects had.
    fn gone(&self, object: &ObjectKey, shift: &Shift, record: &Record) {
        let mut lost = subjects(object, &shift.lost);
        lost.extend(self.dispatcher.around(object));
        for subject in &lost {
            self.outcomes.event_gone(subject, &record.event_ref());
        }
    }

    /// Lets objects leave until what is held is within its bounds, and a little
    /// more, so that it is not for one object at a time.
    fn make_room(&mut self, to: &mut dyn Listener) {
        let Bounds {
            store_bytes,
            records_per_object: _,
            outcomes,
        } = self.bounds;
        if store_bytes < self.store.n_bytes() {
            let enough = store_bytes - store_bytes / 8;
            while enough < self.store.n_bytes() {
                let n = self.order.len().min(SLICE);
                if n == 0 {
                    break;
                }
                let leaving: Vec<_> = self.order.drain(..n).collect();
                let n_before = self.store.n_buckets();
                self.leave(&leaving, to);
                let n_left = n_before - self.store.n_buckets();
                self.tally.left_early += u64::try_from(n_left).unwrap_or(u64::MAX);
            }
        }
        if outcomes < self.outcomes.n_subjects() {
            // Those that are classified before the end are those whose Events are
            // deleted: they are as good as over.
            let (mut objects, n_before) = (self.outcomes.objects(), self.store.n_buckets());
            objects.retain(|it| self.store.view(it, |_| ()).is_some());
            self.leave(&objects, to);
            self.hand_out_rest(to);
            let n_left = n_before - self.store.n_buckets();
            self.tally.left_early += u64::try_from(n_left).unwrap_or(u64::MAX);
        }
        // Of what was deleted meanwhile nothing but the key is left in the order.
        if self.order.len() % ORDER_STEP == ORDER_STEP - 1
            && 2 * self.store.n_buckets() < self.order.len()
        {
            let mut seen = std::collections::HashSet::new();
            self.order
                .retain(|it| self.store.view(it, |_| ()).is_some() && seen.insert(it.clone()));
        }
    }

    /// Classifies objects, hands them out, and forgets them.
    fn leave(&mut self, objects: &[ObjectKey], to: &mut dyn Listener) {
        self.hand_out(objects, to);
        for object in objects {
            self.store.evict(object);
        }
    }

    /// Classifies the subjects of these objects and hands out what is held of them.
    fn hand_out(&mut self, objects: &[ObjectKey], to: &mut dyn Listener) {
        let subjects: Vec<_> = objects
            .iter()
            .flat_map(|object| {
                let uids = self.store.view(object, |bucket| {
                    uids(bucket)
                        .into_iter()
                        .map(Uid::from)
                        .collect::<BTreeSet<_>>()
                });
                subjects(object, &uids.unwrap_or_default())
            })
            .collect();
        let around = objects.iter().flat_map(|it| self.dispatcher.around(it));
        let settling: Vec<_> = subjects.iter().cloned().chain(around).collect();
        self.dispatcher.settle(&settling, &mut |it| to.change(it));
        for subject in subjects {
            let held = self.outcomes.take(&subject);
            if !held.is_empty() {
                to.element(&subject, &held);
            }
        }
    }

    /// Hands out what is held of subjects of which no record is left.
    fn hand_out_rest(&mut self, to: &mut dyn Listener) {
        for (subject, held) in self.outcomes.take_all() {
            to.element(&subject, &held);
        }
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
        let uid = match newest.object_uid() {
            uid if uid.is_empty() => self.store.view(object, |bucket| {
                let mut of_each = assigned(bucket).into_iter().zip(bucket.records());
                let own = of_each.find(|(_, it)| it.record.is_named_as(newest));
                own.map_or_else(Uid::default, |(uid, _)| uid.into())
            }),
            uid => Some(uid.into()),
        };
        if let Some(uid) = uid {
            let subject = SubjectKey {
                object: object.clone(),
                uid,
            };
            self.dispatcher.mark(&subject, records);
        }
        self.dispatcher.mark_around(object, records);
    }

    /// Marks those whose records are others now, and lets the subject that had
    /// no uid go up in the one that turned out to be it.
    fn apply(&mut self, object: &ObjectKey, shift: &Shift, to: &mut dyn Listener) {
        for uids in [&shift.gained, &shift.lost] {
            for subject in subjects(object, uids) {
                self.dispatcher.mark_moved(&subject);
            }
        }
        if let Some(into) = &shift.unnamed_became {
            let unnamed = SubjectKey {
                object: object.clone(),
                uid: Uid::default(),
            };
            let named = SubjectKey {
                object: object.clone(),
                uid: into.clone(),
            };
            let changes = self.outcomes.fold(&unnamed, &named);
            for it in changes {
                to.change(it);
            }
        }
    }
}

#[cfg(test)]
mod tests;
