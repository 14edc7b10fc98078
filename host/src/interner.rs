//! Text that Event after Event repeats, held once.
//!
//! What an Event says by its reason, type or reporter, thousands say alike, and so do
//! the lines that are told of them. Whoever holds such texts holds one `Repeated`,
//! shared with all that say the same. The table that finds it forgets it with its last
//! user, so that it is empty when no user is left.
//!
//! Whoever may write Events may invent reasons, so the table is bounded
//! ([`INTERNED_MAX_BYTES`]). What finds no place in it is its user's own, and costs
//! that user what it is.

use std::{
    collections::{HashMap, hash_map::Entry},
    hash::BuildHasher as _,
    mem::size_of,
};

// Whoever finds two texts of one hash has two that are held apart, and nothing slower.
use foldhash::quality::RandomState;

use crate::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Bytes that are held by the table of repeated texts, and by these themselves: some
/// 20,000 of them, where a node in a cluster makes one, and so does a reason.
pub const INTERNED_MAX_BYTES: usize = 4 << 20;

/// Texts that are repeated together.
#[derive(Debug)]
pub(crate) struct Repeated {
    text: Box<str>,
    /// Where each ends in `text`.
    ends: Box<[u32]>,
    /// The table that it is in, and where there; no table where there was no room.
    table: Weak<Mutex<Table>>,
    hash: u64,
}

/// What a text costs beside its bytes: itself, its counts, and its place in a table
/// that may be half empty.
const REPEATED_BYTES: usize = size_of::<Repeated>() + 16 + 2 * size_of::<(u64, Weak<Repeated>)>();

impl Repeated {
    /// Texts that nobody else is expected to say.
    pub(crate) fn own(parts: &[&str]) -> Self {
        let mut end = 0;
        let ends = parts.iter().map(|it| {
            end += it.len();
            u32::try_from(end).unwrap_or(u32::MAX)
        });
        Self {
            ends: ends.collect(),
            text: parts.concat().into(),
            table: Weak::new(),
            hash: 0,
        }
    }

    /// How many texts it is.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// One of the texts, by its place among them.
    pub(crate) fn part(&self, idx: usize) -> &str {
        let start = idx.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.text
            .get(start as usize..self.ends[idx] as usize)
            .unwrap_or_default()
    }

    /// Bytes of text.
    pub(crate) fn n_text_bytes(&self) -> usize {
        self.text.len()
    }

    /// What it costs whoever holds it: nothing if it is shared.
    pub(crate) fn n_own_bytes(&self) -> usize {
        if self.table.strong_count() == 0 {
            self.n_bytes()
        } else {
            0
        }
    }

    fn n_bytes(&self) -> usize {
        REPEATED_BYTES + self.text.len() + size_of::<u32>() * self.ends.len()
    }

    fn says(&self, parts: &[&str]) -> bool {
        self.ends.len() == parts.len() && (0..).zip(parts).all(|(idx, it)| self.part(idx) == *it)
    }
}

impl PartialEq for Repeated {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text && self.ends == other.ends
    }
}

impl Eq for Repeated {}

impl Drop for Repeated {
    /// The table forgets it, unless it has another in its place by now.
    fn drop(&mut self) {
        let Some(table) = self.table.upgrade() else {
            return;
        };
        let mut table = lock(&table);
        table.n_bytes -= self.n_bytes();
        if let Entry::Occupied(it) = table.places.entry(self.hash)
            && std::ptr::eq(it.get().as_ptr(), self)
        {
            it.remove();
        }
        if 4 * table.places.len() < table.places.capacity() {
            table.places.shrink_to_fit();
        }
    }
}

/// Finds what is repeated. One for each store, and one for the outcomes.
#[derive(Debug)]
pub struct Interner {
    table: Arc<Mutex<Table>>,
    hasher: RandomState,
    max_bytes: usize,
}

#[derive(Debug, Default)]
struct Table {
    /// By hash. Of two texts with one hash the second finds no place.
    places: HashMap<u64, Weak<Repeated>, RandomState>,
    n_bytes: usize,
}

impl Default for Interner {
    fn default() -> Self {
        Self::bounded(INTERNED_MAX_BYTES)
    }
}

impl Interner {
    /// One that holds at most this many bytes.
    #[must_use]
    pub fn bounded(max_bytes: usize) -> Self {
        Self {
            table: Arc::default(),
            hasher: RandomState::default(),
            max_bytes,
        }
    }

    /// How many texts it knows.
    #[must_use]
    pub fn len(&self) -> usize {
        lock(&self.table).places.len()
    }

    /// Whether it knows none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What they cost in memory, about.
    #[must_use]
    pub fn n_bytes(&self) -> usize {
        lock(&self.table).n_bytes
    }

    /// Texts that are said together, from now on held once.
    pub(crate) fn intern(&self, parts: &[&str]) -> Arc<Repeated> {
        let hash = self.hasher.hash_one(parts);
        // Two statements: to let go of the last user of a text is to lock the table.
        let known = lock(&self.table).find(hash);
        if let Some(it) = known
            && it.says(parts)
        {
            return it;
        }
        let mut new = Repeated::own(parts);
        new.hash = hash;
        let mut table = lock(&self.table);
        // Another thread may have been first.
        let known = table.find(hash);
        let n_bytes = table.n_bytes + new.n_bytes();
        if known.is_none() && n_bytes <= self.max_bytes {
            new.table = Arc::downgrade(&self.table);
            let new = Arc::new(new);
            table.n_bytes = n_bytes;
            table.places.insert(hash, Arc::downgrade(&new));
            return new;
        }
        // Before what was found is let go, likewise.
        drop(table);
        known
            .filter(|it| it.says(parts))
            .unwrap_or_else(|| Arc::new(new))
    }
}

impl Table {
    fn find(&self, hash: u64) -> Option<Arc<Repeated>> {
        self.places.get(&hash).and_then(Weak::upgrade)
    }
}

fn lock(table: &Mutex<Table>) -> MutexGuard<'_, Table> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
