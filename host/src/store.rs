//! Records by the object they regard.
//!
//! One [`Bucket`] exists for each object that has at least one live record, and
//! none for any other. Pod names are unique per attempt, so a store that kept
//! empty buckets would grow with every attempt ever made (flyte #7992).
//!
//! Removing the last record and removing its bucket must be one step, or an
//! insert that lands between them is lost. Both happen under the write lock of
//! the shard that owns the key: buckets live by value in the map, are changed
//! only through `entry` and `remove_if_mut`, and read only inside
//! [`Store::view`]. No method returns a guard, so none can be held across a
//! second call.
//!
//! It holds one record per live Event, gives the bucket back with the last of
//! them, and knows how many bytes that is ([`Store::n_bytes`]). Who fills it
//! decides what has to leave and why ([`Store::remove_where`]).
//!
//! That an Event exists is confirmed by whoever saw it ([`Confirmation`]), on our
//! own clock. What a record claims of its times decides nothing here. The buckets of
//! a namespace are filed by when a record of theirs was confirmed, longest ago
//! first, so that what expires, is swept or has to make room is found a key at a
//! time and no shard is ever locked for a walk.

use std::mem::size_of;

use crate::{
    files::{self, Files},
    interner::Interner,
    record::{ObjectKey, Record, UidRef},
    sync::{
        Arc, DashMap, Entry, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
};

mod reading;

pub use crate::files::{Place, Seconds, Walk};
pub use reading::{After, Cursor, ReadError, Reading};

impl files::Key for ObjectKey {
    fn namespace(&self) -> &str {
        self.namespace()
    }
}

/// The live records of one object.
///
/// Invariant: never empty.
#[derive(Clone, Debug)]
pub struct Bucket {
    key: ObjectKey,
    /// In order of arrival. Events of one object are few, so a scan beats a hash.
    records: Vec<Stored>,
    version: Version,
    /// What the texts of its records cost.
    n_text_bytes: usize,
    /// Where it is filed.
    place: Place,
    /// What its namespace costs.
    of_namespace: Arc<AtomicUsize>,
}

/// What a bucket costs beside its records and its key: itself, its slot in a table,
/// and its place in the files.
const BUCKET_BYTES: usize = size_of::<Bucket>() + SLOT_BYTES * 8 / 5 + FILED_BYTES;

/// A slot of the table: key, pointer, and a byte of the table's own. Of the slots
/// between seven and fourteen of sixteen are in use, as the table grows by doubling.
const SLOT_BYTES: usize = size_of::<(ObjectKey, Box<Bucket>)>() + 1;

/// A leaf of a B-tree that is filed into in order has six of eleven places in use.
const FILED_BYTES: usize = size_of::<(Place, ObjectKey)>() * 11 / 6 + 10;

/// How many objects are looked at for the one that has to make room.
const CANDIDATES: usize = 64;

/// A record and when it came, as a number that only grows.
#[derive(Clone, Debug)]
pub struct Stored {
    /// The record.
    pub record: Record,
    /// Its place in the order of arrival of all records of this process. An
    /// update of a known Event keeps it.
    pub sequence: u64,
    /// The change that made it what it is: its arrival, or the last sighting that
    /// said something else.
    pub changed: Version,
    /// Who saw it last, and when.
    pub confirmed: Confirmation,
}

/// Who saw last that an Event exists, and when. A recording confirms nothing:
/// there it is all zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Confirmation {
    /// Which watch.
    pub watch: u16,
    /// Which LIST of that watch, or the last before it.
    pub listing: u32,
    /// When.
    pub at: Seconds,
}

/// Counts the changes of the store; that of a bucket is the number of the last
/// change that touched it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(u64);

/// What became of a record that was put into the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Put {
    /// The Event was not known.
    Inserted,
    /// It was known; this is what it said before.
    Updated(Record),
    /// It was known and said the same.
    Unchanged,
    /// Another Event of the same name was known, with another uid. It is gone.
    Replaced(Record),
}

/// How many records went through the store.
///
/// `stored` is what was ever inserted, `merged` what came again: received
/// records are one or the other, and `stored` less the removed is what is live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Records inserted, those that replaced another Event's among them.
    pub stored: u64,
    /// Records that were a further sighting of a known Event.
    pub merged: u64,
    /// Records removed because their Event was deleted.
    pub deleted: u64,
    /// Records removed because another Event took their name.
    pub replaced: u64,
    /// Records removed because their object had to make room.
    pub evicted: u64,
    /// Records removed because a newer LIST did not have them.
    pub swept: u64,
    /// Records removed because nobody confirmed them for too long.
    pub expired: u64,
    /// Records removed because their object had too many.
    pub over_count: u64,
    /// Records removed because their object is over, or is none that anyone asks about.
    pub object_gone: u64,
    /// Records that nobody watches any more.
    pub unwatched: u64,
}

/// Why records are removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// Their Event was deleted.
    Deleted,
    /// A newer LIST did not have them.
    Swept,
    /// Nobody confirmed them for too long.
    Expired,
    /// The store holds too many bytes.
    OverBytes,
    /// Their object has too many.
    OverCount,
    /// Their object is over, or is none that anyone asks about.
    ObjectGone,
    /// The watch that confirmed them has ended, since no plugin is interested.
    Unwatched,
}

impl Totals {
    /// Records that are live.
    #[must_use]
    pub fn live(&self) -> u64 {
        let removed = self.deleted
            + self.replaced
            + self.evicted
            + self.swept
            + self.expired
            + self.over_count
            + self.object_gone
            + self.unwatched;
        self.stored.saturating_sub(removed)
    }
}

/// Live records, bucketed by object.
#[derive(Debug, Default)]
pub struct Store {
    /// Whose numbers these are.
    epoch: u64,
    /// Behind a pointer: what is empty of a table is a third of it.
    buckets: DashMap<ObjectKey, Box<Bucket>>,
    changes: AtomicU64,
    stored: AtomicU64,
    merged: AtomicU64,
    deleted: AtomicU64,
    replaced: AtomicU64,
    evicted: AtomicU64,
    swept: AtomicU64,
    expired: AtomicU64,
    over_count: AtomicU64,
    object_gone: AtomicU64,
    unwatched: AtomicU64,
    n_bytes: AtomicUsize,
    interner: Interner,
    /// One entry for each bucket. Locked within the lock of a bucket's shard,
    /// never the other way round.
    files: Mutex<Files<ObjectKey>>,
}

impl Store {
    /// Puts a record where it belongs. Inside a bucket an Event is known by its
    /// namespace and name; another uid under that name is another Event.
    pub fn put(&self, key: ObjectKey, record: Record, confirmed: Confirmation) -> Put {
        let entry = self.buckets.entry(key);
        // Drawn under the lock: a version of a bucket is never older than the one before.
        let sequence = self.changes.fetch_add(1, Relaxed) + 1;
        let put = match entry {
            Entry::Occupied(mut bucket) => {
                let bucket = bucket.get_mut();
                let before = bucket.n_bytes();
                let put = bucket.put(record, sequence, confirmed);
                self.cost(bucket, before);
                put
            }
            Entry::Vacant(slot) => {
                let filed = self.files().file(slot.key().clone(), confirmed.at);
                let stored = Stored {
                    record,
                    sequence,
                    changed: Version(sequence),
                    confirmed,
                };
                let bucket = Bucket::of(slot.key(), stored, filed);
                self.cost(&bucket, 0);
                slot.insert(Box::new(bucket));
                Put::Inserted
            }
        };
        match put {
            Put::Inserted => self.stored.fetch_add(1, Relaxed),
            Put::Updated(_) | Put::Unchanged => self.merged.fetch_add(1, Relaxed),
            Put::Replaced(_) => {
                self.replaced.fetch_add(1, Relaxed);
                self.stored.fetch_add(1, Relaxed)
            }
        };
        put
    }

    /// Removes the record of a deleted Event, and its bucket with it if it was
    /// the last. `None` if it is not known, or another Event has its name by now.
    pub fn remove(&self, key: &ObjectKey, event: &Record) -> Option<Record> {
        let mut removed = None;
        self.buckets.remove_if_mut(key, |_, bucket| {
            let before = bucket.n_bytes();
            if let Some(idx) = bucket.position(event) {
                removed = Some(bucket.take(idx));
                bucket.version = Version(self.changes.fetch_add(1, Relaxed) + 1);
            }
            let is_empty = bucket.records.is_empty();
            if is_empty {
                self.files().take(key, bucket.place);
            }
            self.cost(bucket, before);
            is_empty
        });
        if removed.is_some() {
            self.deleted.fetch_add(1, Relaxed);
        }
        removed
    }

    /// Removes a whole bucket, to make room, and says what was in it.
    pub fn evict(&self, key: &ObjectKey) -> Option<Vec<Stored>> {
        let mut removed = None;
        self.buckets.remove_if_mut(key, |_, bucket| {
            self.files().take(key, bucket.place);
            let before = bucket.n_bytes();
            removed = Some(std::mem::take(&mut bucket.records));
            self.cost(bucket, before);
            true
        });
        let records = removed?;
        let n_records = u64::try_from(records.len()).unwrap_or(u64::MAX);
        self.evicted.fetch_add(n_records, Relaxed);
        Some(records)
    }

    /// Removes those records of an object that are to go, and its bucket with the
    /// last of them. What stays is filed anew, if it was confirmed since.
    pub fn remove_where(
        &self,
        key: &ObjectKey,
        why: Removal,
        mut is_to_go: impl FnMut(&Stored) -> bool,
    ) -> Vec<Record> {
        let mut removed = Vec::new();
        self.buckets.remove_if_mut(key, |_, bucket| {
            let before = bucket.n_bytes();
            let mut idx = 0;
            while let Some(it) = bucket.records.get(idx) {
                if is_to_go(it) {
                    removed.push(bucket.take(idx));
                } else {
                    idx += 1;
                }
            }
            if !removed.is_empty() {
                bucket.version = Version(self.changes.fetch_add(1, Relaxed) + 1);
            }
            let oldest = bucket.records.iter().map(|it| it.confirmed.at).min();
            match oldest {
                None => self.files().take(key, bucket.place),
                Some(oldest) if bucket.place.second < oldest => {
                    let mut files = self.files();
                    // Filed first: its namespace would go with its last bucket.
                    let (place, _) = files.file(key.clone(), oldest);
                    files.take(key, bucket.place);
                    bucket.place = place;
                }
                Some(_) => {}
            }
            self.cost(bucket, before);
            oldest.is_none()
        });
        let total = match why {
            Removal::Deleted => &self.deleted,
            Removal::Swept => &self.swept,
            Removal::Expired => &self.expired,
            Removal::OverBytes => &self.evicted,
            Removal::OverCount => &self.over_count,
            Removal::ObjectGone => &self.object_gone,
            Removal::Unwatched => &self.unwatched,
        };
        total.fetch_add(u64::try_from(removed.len()).unwrap_or(u64::MAX), Relaxed);
        removed
    }

    /// The objects of which a record was last confirmed before this second, at most so
    /// many.
    #[must_use]
    pub fn filed_before(&self, second: Seconds, max: usize) -> Vec<ObjectKey> {
        self.files().before(second, max)
    }

    /// The next of a walk over the objects of which a record was confirmed no later
    /// than a second, at most so many; and how far it is then, `None` at the end.
    #[must_use]
    pub fn walk(
        &self,
        from: Option<Walk>,
        until: Seconds,
        max: usize,
    ) -> (Vec<ObjectKey>, Option<Walk>) {
        self.files().walk(from, until, max)
    }

    /// Who has to make room: of the namespace that holds most, the object that nobody
    /// confirmed for longest, to within a second. One that was confirmed since it was
    /// filed is passed over for another of the next 64.
    #[must_use]
    pub fn least_confirmed(&self) -> Option<ObjectKey> {
        let candidates = self.files().first_of_largest(CANDIDATES);
        let mut least: Option<(Seconds, ObjectKey)> = None;
        for (place, key) in candidates {
            let newest = self.view(&key, |bucket| {
                let records = bucket.records.iter();
                records.map(|it| it.confirmed.at).max().unwrap_or_default()
            });
            let Some(newest) = newest else {
                continue;
            };
            if newest <= place.second {
                return Some(key);
            }
            if least.as_ref().is_none_or(|(at, _)| newest < *at) {
                least = Some((newest, key));
            }
        }
        least.map(|(_, key)| key)
    }

    /// Counts what a bucket costs now, where it cost that before. Under its lock.
    fn cost(&self, bucket: &Bucket, before: usize) {
        let now = bucket.n_bytes();
        for total in [&self.n_bytes, &*bucket.of_namespace] {
            total.fetch_add(now, Relaxed);
            total.fetch_sub(before, Relaxed);
        }
    }

    fn files(&self) -> MutexGuard<'_, Files<ObjectKey>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives back the room of buckets that are gone. A shard at a time is locked
    /// while what is left of it moves.
    pub fn shrink(&self) {
        self.buckets.shrink_to_fit();
    }

    /// Counts a change of something else that what is classified rests on.
    pub fn next_version(&self) -> Version {
        Version(self.changes.fetch_add(1, Relaxed) + 1)
    }

    /// The newest version of any bucket.
    #[must_use]
    pub fn version(&self) -> Version {
        Version(self.changes.load(Relaxed))
    }

    /// What all of it costs in memory, about.
    #[must_use]
    pub fn n_bytes(&self) -> usize {
        self.n_bytes.load(Relaxed) + self.interner.n_bytes()
    }

    /// Where its records find the texts that they share. Who else makes records of
    /// it holds bytes of the store.
    #[must_use]
    pub fn interner(&self) -> &Interner {
        &self.interner
    }

    /// Reads a bucket under its lock. `read` must not call the store.
    pub fn view<R>(&self, key: &ObjectKey, read: impl FnOnce(&Bucket) -> R) -> Option<R> {
        self.buckets.get(key).map(|bucket| read(&bucket))
    }

    /// How many objects have a live record.
    #[must_use]
    pub fn n_buckets(&self) -> usize {
        self.buckets.len()
    }

    /// Slots of the table of buckets, used or not. Locks each of its shards in turn.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.buckets.capacity()
    }

    /// How many records are live. Walks the whole store: for the end of a run
    /// and for tests.
    #[must_use]
    pub fn n_records(&self) -> usize {
        self.buckets.iter().map(|it| it.records.len()).sum()
    }

    /// What went through so far.
    #[must_use]
    pub fn totals(&self) -> Totals {
        Totals {
            stored: self.stored.load(Relaxed),
            merged: self.merged.load(Relaxed),
            deleted: self.deleted.load(Relaxed),
            replaced: self.replaced.load(Relaxed),
            evicted: self.evicted.load(Relaxed),
            swept: self.swept.load(Relaxed),
            expired: self.expired.load(Relaxed),
            over_count: self.over_count.load(Relaxed),
            object_gone: self.object_gone.load(Relaxed),
            unwatched: self.unwatched.load(Relaxed),
        }
    }
}

impl Bucket {
    fn of(
        key: &ObjectKey,
        stored: Stored,
        (place, of_namespace): (Place, Arc<AtomicUsize>),
    ) -> Self {
        let n_text_bytes = stored.record.n_own_bytes();
        let version = Version(stored.sequence);
        Self {
            key: key.clone(),
            records: vec![stored],
            version,
            n_text_bytes,
            place,
            of_namespace,
        }
    }

    /// What it and its records cost in memory, about; nothing once it is empty, since
    /// then it goes.
    #[must_use]
    pub fn n_bytes(&self) -> usize {
        if self.records.is_empty() {
            return 0;
        }
        let room = self.records.capacity() * size_of::<Stored>();
        BUCKET_BYTES + self.key.n_bytes() + room + self.n_text_bytes
    }

    /// Its object. Who holds a copy of this very key shares its text.
    #[must_use]
    pub fn key(&self) -> &ObjectKey {
        &self.key
    }

    /// The records, in order of arrival.
    #[must_use]
    pub fn records(&self) -> &[Stored] {
        &self.records
    }

    /// Which change touched it last.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }

    /// What [`Store::put`] of this record would leave.
    #[must_use]
    pub fn with(&self, record: Record) -> Self {
        let mut bucket = self.clone();
        bucket.put(record, u64::MAX, Confirmation::default());
        bucket
    }

    /// What [`Store::remove`] of this Event would leave; it may be empty.
    #[must_use]
    pub fn without(&self, event: &Record) -> Self {
        let mut bucket = self.clone();
        if let Some(idx) = bucket.position(event) {
            bucket.take(idx);
        }
        bucket
    }

    /// Where this Event is. An empty uid, here or there, is unknown and matches.
    fn position(&self, event: &Record) -> Option<usize> {
        self.records
            .iter()
            .position(|it| it.record.is_named_as(event) && may_equal(it.record.uid(), event.uid()))
    }

    /// Removes a record by its place.
    fn take(&mut self, idx: usize) -> Record {
        let Stored { record, .. } = self.records.remove(idx);
        let room = room_for(self.records.len());
        if 2 * room < self.records.capacity() {
            self.records.shrink_to(room);
        }
        self.n_text_bytes -= record.n_own_bytes();
        record
    }

    fn put(&mut self, record: Record, sequence: u64, confirmed: Confirmation) -> Put {
        let known = self
            .records
            .iter()
            .position(|it| it.record.is_named_as(&record));
        let replaced = match known {
            Some(idx) if may_equal(self.records[idx].record.uid(), record.uid()) => {
                return self.update(idx, record, sequence, confirmed);
            }
            Some(idx) => Some(self.take(idx)),
            None => None,
        };
        self.version = Version(sequence);
        self.n_text_bytes += record.n_own_bytes();
        if self.records.len() == self.records.capacity() {
            let more = room_for(self.records.len()) - self.records.len();
            self.records.reserve_exact(more);
        }
        self.records.push(Stored {
            record,
            sequence,
            changed: Version(sequence),
            confirmed,
        });
        replaced.map_or(Put::Inserted, Put::Replaced)
    }

    fn update(
        &mut self,
        idx: usize,
        record: Record,
        sequence: u64,
        confirmed: Confirmation,
    ) -> Put {
        let stored = &mut self.records[idx];
        stored.confirmed = confirmed;
        let known = &mut stored.record;
        let record = record.after(known);
        if record == *known {
            return Put::Unchanged;
        }
        self.version = Version(sequence);
        stored.changed = self.version;
        self.n_text_bytes = self.n_text_bytes + record.n_own_bytes() - known.n_own_bytes();
        Put::Updated(std::mem::replace(known, record))
    }
}

/// Room for one more than so many records, and a quarter: not for twice as many, as
/// there are as many of these as objects.
fn room_for(n: usize) -> usize {
    n + 1 + n / 4
}

impl Record {
    /// Whether two are of Events of one name, in one namespace: those about an object of
    /// the cluster's scope may be in several.
    pub(crate) fn is_named_as(&self, other: &Self) -> bool {
        self.name() == other.name() && self.namespace() == other.namespace()
    }
}

/// Whether two uids may be the same: an empty one is unknown.
pub(crate) fn may_equal(one: UidRef<'_>, other: UidRef<'_>) -> bool {
    one == other || one.is_empty() || other.is_empty()
}

#[cfg(test)]
mod tests;
