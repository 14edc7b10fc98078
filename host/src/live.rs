//! The path from what is watched to outcomes, for as long as the process lives.
//!
//! One thread owns it and nothing in it waits: what is seen goes into the store,
//! whose subject is dirty goes to a worker, what a worker has done is taken when
//! it is done. Work that may be large (a sweep after a LIST, expiry) is cut into
//! slices ([`Live::step`]), so that what comes in between waits for one of them
//! at most.
//!
//! What bounds it: the store by bytes, by objects and by records of an object
//! ([`Bounds`]), records by how long ago anyone confirmed them, the dirty set by the
//! store, outcomes by their bytes, and sweeps by the watches, of which each has one at
//! most.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    num::NonZeroUsize,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use crate::{
    dispatch::{Dispatcher, Held, Pauses, Report, Swapped},
    memory::GiveBack,
    outcome::{Change, Generation, Outcomes},
    plugins::PluginSet,
    reason::Reason,
    record::{Caps, EventRef, ObjectKey, Record, Rejected, Uid, UnixMs, decode::WireEvent},
    sandbox::Limits,
    scope::Scope,
    store::{Bucket, Confirmation, Put, Removal, Seconds, Store, Stored, Version, Walk, may_equal},
    subject::{Owners, Shift, SubjectKey, assigned, subjects},
};

mod pods;

pub use pods::{PodBounds, WAITING_MAX};

use pods::Watched;

/// How much is held, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes of records and what comes with them. Of the namespace that holds most, the
    /// object leaves first that was confirmed longest ago.
    pub store_bytes: usize,
    /// Records of one object. With one more, the one of them leaves that was confirmed
    /// longest ago; what a finding that holds rests on leaves last.
    pub records_per_object: usize,
    /// Objects with a record. With one more, one leaves as with the bytes.
    pub objects: usize,
    /// Bytes of outcomes. Of the namespace that holds most those leave first that are
    /// nothing but additional reasons.
    pub outcome_bytes: usize,
    /// How long a record stays that nobody confirms.
    pub time_to_live: Seconds,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            store_bytes: 256 << 20,
            records_per_object: 64,
            objects: 1_000_000,
            outcome_bytes: 32 << 20,
            time_to_live: 65 * 60,
        }
    }
}

/// What became of the Events that came. With the store's own totals it adds up:
/// received are stored, merged, rejected, out of scope, unselected or waiting.
#[derive(Debug, Default)]
pub struct Counters {
    /// Events that came, other than to say that they were deleted.
    pub received: AtomicU64,
    /// Those of them whose object is out of scope.
    pub out_of_scope: AtomicU64,
    /// Those of them that were refused, in the order of [`Rejected::ALL`].
    rejected: [AtomicU64; Rejected::ALL.len()],
    /// Fields that held something else than they may, and count as absent.
    pub malformed_fields: AtomicU64,
    /// Records with a time that was yet to come, and was taken for now.
    pub clamped: AtomicU64,
    /// Events that said that they were deleted.
    pub deletions: AtomicU64,
    /// Pods that came, other than to say that they are gone.
    pub pods_received: AtomicU64,
    /// Subjects that lost a record before a plugin saw it, because too many did.
    pub unseen: AtomicU64,
    /// Events that waited for a pod that did not come, or that is over.
    pub unselected: AtomicU64,
    /// Events that wait for a pod.
    pub waiting: AtomicU64,
    /// Pods that are known.
    pub pods: AtomicU64,
    /// Times that a pod could not become known, because too many are.
    pub pods_over: AtomicU64,
    /// Pods that could not be used.
    pub pods_rejected: AtomicU64,
}

impl Counters {
    /// Events that were refused, by why.
    pub fn rejected(&self) -> impl Iterator<Item = (Rejected, u64)> {
        let counts = self.rejected.iter().map(|it| it.load(Relaxed));
        Rejected::ALL.into_iter().zip(counts)
    }

    fn reject(&self, why: Rejected) {
        for (it, count) in Rejected::ALL.iter().zip(&self.rejected) {
            if *it == why {
                count.fetch_add(1, Relaxed);
            }
        }
    }
}

/// Memory is given back when the store has let go of so much, and of a quarter of what
/// it had.
const GIVE_BACK_BYTES: usize = 8 << 20;

/// How many objects leave at most to make room for a record.
const AT_ONCE: usize = 8;

/// How many buckets a slice of work looks at.
const SLICE: usize = 64;

/// The live path.
#[derive(Debug)]
pub struct Live {
    store: Arc<Store>,
    outcomes: Arc<Outcomes>,
    counters: Arc<Counters>,
    dispatcher: Dispatcher,
    /// The pods that are selected; none of them where there is no pod selector.
    watched: Option<Watched>,
    scope: Scope,
    caps: Caps,
    bounds: Bounds,
    /// The newest LIST of each watch whose sweep is not done, and how far it is.
    sweeps: BTreeMap<u16, Sweep>,
    /// What changed without a call.
    changes: Vec<Change>,
    /// What the first listing produced is not newer.
    listed_at: Option<Version>,
    /// What was confirmed before has expired.
    expired_before: Seconds,
    /// The most bytes that the store had since memory was given back last.
    peak_bytes: usize,
    /// When that was looked at last.
    tidied: Seconds,
    give_back: GiveBack,
}

#[derive(Debug)]
struct Sweep {
    listing: u32,
    why: Removal,
    at: Option<Walk>,
    /// What is filed later was confirmed later.
    until: Seconds,
}

impl Live {
    /// Nothing is held yet. The epoch is of the process, and no other has the same.
    /// `on_done` is called, from other threads, whenever there is something to
    /// [`collect`](Self::collect).
    ///
    /// # Errors
    ///
    /// If a thread cannot be started.
    #[expect(
        clippy::too_many_arguments,
        reason = "each is something else, and all is decided at one place"
    )]
    pub fn new(
        epoch: u64,
        scope: Scope,
        plugins: Arc<PluginSet>,
        limits: &Limits,
        caps: Caps,
        bounds: Bounds,
        n_workers: NonZeroUsize,
        on_done: &Arc<dyn Fn() + Send + Sync>,
    ) -> io::Result<Self> {
        let (store, outcomes) = (Arc::new(Store::in_epoch(epoch)), Arc::<Outcomes>::default());
        let dispatcher = Dispatcher::new(
            Arc::clone(&store),
            Arc::clone(&outcomes),
            plugins,
            limits.clone(),
            n_workers,
            on_done,
        )?;
        Ok(Self {
            store,
            outcomes,
            counters: Arc::default(),
            dispatcher,
            watched: None,
            scope,
            caps,
            bounds,
            sweeps: BTreeMap::new(),
            changes: Vec::new(),
            listed_at: None,
            expired_before: 0,
            peak_bytes: 0,
            tidied: 0,
            give_back: GiveBack::default(),
        })
    }

    /// An Event that exists. `now` is by the wall clock: no claim is later.
    pub fn put(&mut self, wire: &WireEvent<'_>, confirmed: Confirmation, now: UnixMs) {
        let counters = Arc::clone(&self.counters);
        counters.received.fetch_add(1, Relaxed);
        let Some((object, mut record)) = self.pare_down(wire) else {
            return;
        };
        if record.clamp(now) {
            counters.clamped.fetch_add(1, Relaxed);
        }
        if let Some((object, record)) = self.select(object, record, confirmed) {
            self.keep(&object, &record, confirmed);
        }
    }

    fn keep(&mut self, object: &ObjectKey, record: &Record, confirmed: Confirmation) {
        let before = self.store.view(object, |bucket| {
            moves_others(bucket, record).then(|| Owners::of(bucket))
        });
        let before = before.flatten();
        for uid in before.iter().flat_map(Owners::uids) {
            self.keep_picture(object, uid);
        }
        match self.store.put(object.clone(), record.clone(), confirmed) {
            Put::Inserted => {
                self.mark(object, &[record]);
                self.bound_object(object);
                self.bound_objects(AT_ONCE);
            }
            Put::Updated(earlier) => self.mark(object, &[record, &earlier]),
            Put::Unchanged => {}
            Put::Replaced(earlier) => {
                let gone = earlier.event_ref();
                for uid in before.iter().flat_map(Owners::uids) {
                    self.outcomes.event_gone(&subject(object, uid), &gone);
                }
                self.gone_around(object, &[gone]);
                self.mark(object, &[record]);
            }
        }
        if let Some(before) = before {
            self.apply_shift(object, &before);
        }
        self.bound_bytes(AT_ONCE);
    }

    /// An Event that is deleted.
    pub fn delete(&mut self, wire: &WireEvent<'_>) {
        self.counters.deletions.fetch_add(1, Relaxed);
        // What is refused or out of scope was so when it came, too.
        let is_cluster_scoped = |kind: &str| self.scope.cluster_scoped().contains(kind);
        let Ok((object, record)) =
            Record::pare_down_where(wire, self.caps, self.store.interner(), is_cluster_scoped)
        else {
            return;
        };
        let goes = |it: &Stored| {
            it.record.is_named_as(&record) && may_equal(it.record.uid(), record.uid())
        };
        self.remove(&object, Removal::Deleted, goes);
        if let Some(watched) = &mut self.watched {
            let is_it = |it: &Record| it.is_named_as(&record) && may_equal(it.uid(), record.uid());
            let n = watched.drop_waiting(&object, is_it);
            self.counters.unselected.fetch_add(count(n), Relaxed);
            self.count_pods();
        }
    }

    /// A LIST of a watch is read to its end, at this time: what only an earlier one
    /// had is gone.
    pub fn sweep(&mut self, watch: u16, listing: u32, at: Seconds) {
        // Before the first there was none that could have had anything.
        if listing <= 1 {
            return;
        }
        self.begin_sweep(watch, listing, Removal::Swept, at);
    }

    /// A watch has ended, at this time, since no plugin is interested in what it brings: what
    /// only it confirmed leaves. That is no evidence of anything, and what was found stays.
    pub fn unwatch(&mut self, watch: u16, at: Seconds) {
        self.begin_sweep(watch, u32::MAX, Removal::Unwatched, at);
    }

    fn begin_sweep(&mut self, watch: u16, listing: u32, why: Removal, until: Seconds) {
        let sweep = Sweep {
            listing,
            why,
            at: None,
            until,
        };
        self.sweeps.insert(watch, sweep);
    }

    /// All watches have listed, or been refused: what is new from now on is news.
    pub fn listed(&mut self) {
        self.listed_at.get_or_insert(self.store.version());
    }

    /// Does a slice of what there is to do, and says whether there is more.
    pub fn step(&mut self, now: Seconds) -> bool {
        let expires = self.expire(now);
        let sweeps = self.sweep_slice();
        let is_over = self.bound_bytes(SLICE) || self.bound_objects(SLICE);
        let is_over = self.bound_outcomes(now) || is_over;
        let is_over = self.end_pods(now) || is_over;
        let (ended, swaps) = self.dispatcher.step(now);
        self.changes.extend(ended);
        self.peak_bytes = self.peak_bytes.max(self.store.n_bytes());
        let more = expires || sweeps || is_over || swaps;
        if self.tidied < now && !more {
            self.tidied = now;
            self.tidy();
        }
        more
    }

    /// Gives what is dirty to workers that are free.
    pub fn submit(&mut self) {
        self.dispatcher.submit();
    }

    /// Takes what workers have done. `on_change` is told of each change, and
    /// whether the first listing produced it.
    pub fn collect(
        &mut self,
        on_change: &mut dyn FnMut(Change, bool),
        on_report: &mut dyn FnMut(Report<'_>),
    ) {
        let listed_at = self.listed_at;
        let is_initial = |it: &Change| listed_at.is_none_or(|listed_at| it.version <= listed_at);
        let mut tell = |it: Change| {
            let initial = is_initial(&it);
            on_change(it, initial);
        };
        self.changes.drain(..).for_each(&mut tell);
        self.dispatcher.collect(&mut tell, on_report);
    }

    /// Whether there is nothing to submit, nothing with the workers, and nothing to
    /// tell.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.dispatcher.is_idle() && self.changes.is_empty()
    }

    /// How many subjects wait to be classified, counted once for each plugin.
    #[must_use]
    pub fn n_waiting(&self) -> usize {
        self.dispatcher.n_waiting()
    }

    /// Serves with these plugins from now on. Nothing waits for it: what is with a worker ends
    /// on the plugin that it began with, and what is to be asked again is so in the next steps.
    pub fn swap(&mut self, plugins: Arc<PluginSet>) -> Swapped {
        self.dispatcher.swap(plugins)
    }

    /// The plugins that serve.
    #[must_use]
    pub fn plugins(&self) -> &Arc<PluginSet> {
        self.dispatcher.plugins()
    }

    /// Asks nobody again that has not changed: the process is about to end.
    pub fn drop_backlog(&mut self) {
        self.dispatcher.drop_backlog();
    }

    /// How many subjects wait only because a plugin is another, as far as is known.
    #[must_use]
    pub fn n_backlog(&self) -> usize {
        self.dispatcher.n_backlog()
    }

    /// Whether any batch of a plugin of this name and generation is with the workers.
    #[must_use]
    pub fn is_out(&self, name: &str, generation: Generation) -> bool {
        self.dispatcher.is_out(name, generation)
    }

    /// Results that came after their plugin was removed.
    #[must_use]
    pub fn n_late(&self) -> u64 {
        self.dispatcher.n_late()
    }

    /// How many batches are with the workers.
    #[must_use]
    pub fn n_out(&self) -> u64 {
        self.dispatcher.n_with_workers()
    }

    /// How many of those that wait do so for a worker, and for nothing else.
    #[must_use]
    pub fn n_ready(&self) -> usize {
        self.dispatcher.n_ready()
    }

    /// The plugins by name, each with why it is left alone for a while, if it is.
    pub fn health(&self) -> impl Iterator<Item = (&str, Option<Reason>)> {
        self.dispatcher.health()
    }

    /// The plugins that answered otherwise when they were asked again, by name and generation.
    pub fn impure(&self) -> impl Iterator<Item = (&str, Generation)> {
        self.dispatcher.impure()
    }

    /// What swaps held up.
    #[must_use]
    pub fn held(&self) -> Held {
        self.dispatcher.held()
    }

    /// From now on a plugin whose calls fail is left alone for so long.
    pub fn set_pauses(&mut self, pauses: Pauses) {
        self.dispatcher.set_pauses(pauses);
    }

    /// Takes up other bounds, with the next steps.
    pub fn set_bounds(&mut self, bounds: Bounds) {
        self.bounds = bounds;
    }

    /// The records that are live.
    #[must_use]
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// What is held of all subjects.
    #[must_use]
    pub fn outcomes(&self) -> &Arc<Outcomes> {
        &self.outcomes
    }

    /// What became of what came.
    #[must_use]
    pub fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    fn pare_down(&self, wire: &WireEvent<'_>) -> Option<(ObjectKey, Record)> {
        let counters = &self.counters;
        counters
            .malformed_fields
            .fetch_add(wire.n_malformed().into(), Relaxed);
        let is_cluster_scoped = |kind: &str| self.scope.cluster_scoped().contains(kind);
        let pared =
            Record::pare_down_where(wire, self.caps, self.store.interner(), is_cluster_scoped);
        let (object, record) = pared.inspect_err(|why| counters.reject(*why)).ok()?;
        let is_in_scope = self.scope.kinds().contains(object.kind())
            && (object.namespace().is_empty() || self.scope.admits_namespace(object.namespace()));
        if !is_in_scope {
            counters.out_of_scope.fetch_add(1, Relaxed);
            return None;
        }
        Some((object, record))
    }

    /// Gives memory back, if much of it is held for nothing.
    fn tidy(&mut self) {
        let n_bytes = self.store.n_bytes();
        let n_free = self.peak_bytes.saturating_sub(n_bytes);
        let is_little = n_free < GIVE_BACK_BYTES || n_free < self.peak_bytes / 4;
        if is_little || self.give_back.is_running() {
            return;
        }
        self.store.shrink();
        self.outcomes.shrink();
        self.dispatcher.shrink();
        self.watched.iter_mut().for_each(Watched::shrink);
        self.peak_bytes = n_bytes;
        if let Err(error) = self.give_back.begin() {
            tracing::warn!(%error, "memory that is free cannot be given back");
        }
    }

    /// Removes those records of an object that are to go.
    fn remove(
        &mut self,
        object: &ObjectKey,
        why: Removal,
        mut goes: impl FnMut(&Stored) -> bool,
    ) -> usize {
        let mut going: Vec<(Uid, EventRef)> = Vec::new();
        let before = self.store.view(object, |bucket| {
            for (uid, it) in assigned(bucket).into_iter().zip(bucket.records()) {
                if goes(it) {
                    going.push((uid.into(), it.record.event_ref()));
                }
            }
            has_unnamed(bucket).then(|| Owners::of(bucket))
        });
        let uids: BTreeSet<_> = going.iter().map(|(uid, _)| uid.clone()).collect();
        for uid in &uids {
            self.keep_picture(object, uid);
        }
        if !going.is_empty() {
            for it in self.dispatcher.around(object) {
                self.keep_picture(&it.object, &it.uid);
            }
        }
        let removed = self.store.remove_where(object, why, goes);
        for (uid, event) in &going {
            self.outcomes.event_gone(&subject(object, uid), event);
        }
        let events: Vec<_> = going.into_iter().map(|(_, event)| event).collect();
        self.gone_around(object, &events);
        let left = self.store.view(object, |bucket| {
            let left = assigned(bucket);
            uids.iter()
                .filter(|it| left.contains(&it.as_ref()))
                .cloned()
                .collect()
        });
        let left: BTreeSet<_> = left.unwrap_or_default();
        for uid in uids.difference(&left) {
            self.outcomes.records_gone(&subject(object, uid));
        }
        if let Some(before) = before.flatten() {
            self.apply_shift(object, &before);
        }
        removed.len()
    }

    /// Keeps a picture of a subject that is about to lose a record that a plugin
    /// may not have seen.
    fn keep_picture(&mut self, object: &ObjectKey, uid: &Uid) {
        let n_lost = self.dispatcher.keep_picture(&subject(object, uid));
        self.counters.unseen.fetch_add(n_lost, Relaxed);
    }

    /// Marks those whose records are others now, and lets the subject that had no
    /// uid go up in the one that turned out to be it. Who only lost a record is not
    /// asked again: absence is no evidence.
    fn apply_shift(&mut self, object: &ObjectKey, before: &Owners) {
        let after = self.store.view(object, Owners::of).unwrap_or_default();
        let shift = Shift::between(before, &after);
        for it in subjects(object, &shift.gained) {
            self.dispatcher.mark_moved(&it);
        }
        if let Some(into) = &shift.unnamed_became {
            let (unnamed, named) = (subject(object, &Uid::default()), subject(object, into));
            self.changes.extend(self.outcomes.fold(&unnamed, &named));
        }
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
            self.dispatcher.mark(&subject(object, &uid), records);
        }
        self.dispatcher.mark_around(object, records);
    }

    /// Notes that Events are gone which the failed pods around an object were given.
    fn gone_around(&self, object: &ObjectKey, events: &[EventRef]) {
        for subject in self.dispatcher.around(object) {
            for event in events {
                self.outcomes.event_gone(&subject, event);
            }
        }
    }

    /// Lets go of a record of an object that has too many.
    fn bound_object(&mut self, object: &ObjectKey) {
        let max = self.bounds.records_per_object;
        let records = self.store.view(object, |bucket| {
            let records = bucket.records();
            if records.len() <= max {
                return Vec::new();
            }
            let of_each = assigned(bucket).into_iter().zip(records);
            let of_each = of_each.map(|(uid, it)| {
                let event = it.record.event_ref();
                (Uid::from(uid), event, (it.confirmed.at, it.sequence))
            });
            of_each.collect()
        });
        let leaving = records.iter().flatten().min_by_key(|(uid, event, age)| {
            let rests_on_it = self.outcomes.rests_on(&subject(object, uid), event);
            (rests_on_it, *age)
        });
        if let Some((_, _, (_, sequence))) = leaving {
            let sequence = *sequence;
            self.remove(object, Removal::OverCount, |it| it.sequence == sequence);
        }
    }

    /// Lets go of objects while there are too many, of so many at most. Says whether
    /// there are more to let go of.
    fn bound_objects(&mut self, max: usize) -> bool {
        let is_over = |it: &Self| it.bounds.objects < it.store.n_buckets();
        self.make_room(max, Removal::OverCount, is_over)
    }

    /// Lets go of what was confirmed longest ago while there is too much, of so many
    /// objects at most. Says whether there is more to let go of.
    fn bound_bytes(&mut self, max: usize) -> bool {
        let is_over = |it: &Self| it.bounds.store_bytes < it.store.n_bytes();
        self.make_room(max, Removal::OverBytes, is_over)
    }

    fn make_room(&mut self, max: usize, why: Removal, is_over: impl Fn(&Self) -> bool) -> bool {
        for _ in 0..max {
            if !is_over(self) {
                return false;
            }
            let Some(object) = self.store.least_confirmed() else {
                return false;
            };
            self.remove(&object, why, |_| true);
        }
        is_over(self)
    }

    /// Ends a slice of what was held for too long, or of what is too much.
    fn bound_outcomes(&mut self, now: Seconds) -> bool {
        self.outcomes.set_now(now);
        let (expired, has_expired) = self.outcomes.expire(SLICE);
        let (over, is_over) = self.outcomes.bound(self.bounds.outcome_bytes, SLICE);
        self.changes.extend(expired.into_iter().chain(over));
        has_expired || is_over
    }

    /// A slice of what nobody confirmed for too long. Within a second it is not looked
    /// for twice.
    fn expire(&mut self, now: Seconds) -> bool {
        let since = now.checked_sub(self.bounds.time_to_live);
        let Some(since) = since.filter(|since| self.expired_before < *since) else {
            return false;
        };
        let due = self.store.filed_before(since, SLICE);
        for object in &due {
            self.remove(object, Removal::Expired, |it| it.confirmed.at < since);
        }
        if due.len() < SLICE {
            self.expired_before = since;
        }
        due.len() == SLICE
    }

    /// A slice of what newer LISTs do not have.
    fn sweep_slice(&mut self) -> bool {
        let Some((watch, sweep)) = self.sweeps.pop_first() else {
            return false;
        };
        let (objects, at) = self.store.walk(sweep.at, sweep.until, SLICE);
        let is_older =
            |it: &Stored| it.confirmed.watch == watch && it.confirmed.listing < sweep.listing;
        for object in objects {
            let is_concerned = self
                .store
                .view(&object, |bucket| bucket.records().iter().any(is_older));
            if is_concerned == Some(true) {
                self.remove(&object, sweep.why, is_older);
            }
        }
        if at.is_some() {
            self.sweeps.insert(watch, Sweep { at, ..sweep });
        }
        !self.sweeps.is_empty()
    }
}

fn count(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}

fn subject(object: &ObjectKey, uid: &Uid) -> SubjectKey {
    SubjectKey {
        object: object.clone(),
        uid: uid.clone(),
    }
}

/// Whether any record of a bucket does not say whom it regards.
fn has_unnamed(bucket: &Bucket) -> bool {
    let mut records = bucket.records().iter();
    records.any(|it| it.record.object_uid().is_empty())
}

/// Whether a record that comes may give others to another subject, or take the
/// place of one. Most Events are new, or say what they said, and whom they regard.
fn moves_others(bucket: &Bucket, record: &Record) -> bool {
    let takes_place = |it: &Stored| {
        it.record.is_named_as(record)
            && (it.record.uid() != record.uid() || it.record.object_uid() != record.object_uid())
    };
    record.object_uid().is_empty()
        || has_unnamed(bucket)
        || bucket.records().iter().any(takes_place)
}

#[cfg(test)]
mod tests;
