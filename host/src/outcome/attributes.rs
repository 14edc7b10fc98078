//! What was extracted, as keys and values.
//!
//! Most things that are said of Events have the same few, so they are held as one
//! repeated text, and shared where a thousand others say the same. What bounds them are
//! the limits of the sandbox, which has counted and measured them before.

use std::{fmt, sync::Arc};

use serde::{Serialize, Serializer};

use crate::interner::{Interner, Repeated};

/// Keys and values, sorted; a key comes once.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Attributes(
    /// Key, value, key, value: a few dozen come with each Event, and would else be as
    /// many allocations. None where there is none.
    Option<Arc<Repeated>>,
);

impl Attributes {
    /// Attributes of these.
    ///
    /// # Errors
    ///
    /// The first key that comes twice.
    pub fn new<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, &'a str> {
        Self::of(pairs, |it| Arc::new(Repeated::own(it)))
    }

    /// Attributes that many things have alike, held once for all of them.
    ///
    /// # Errors
    ///
    /// The first key that comes twice.
    pub fn shared<'a>(
        pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
        interner: &Interner,
    ) -> Result<Self, &'a str> {
        Self::of(pairs, |it| interner.intern(it))
    }

    fn of<'a>(
        pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
        held: impl FnOnce(&[&str]) -> Arc<Repeated>,
    ) -> Result<Self, &'a str> {
        let mut pairs: Vec<_> = pairs.into_iter().map(|(key, value)| [key, value]).collect();
        pairs.sort_unstable();
        if let Some(twice) = pairs.windows(2).find(|it| it[0][0] == it[1][0]) {
            return Err(twice[0][0]);
        }
        Ok(Self(
            (!pairs.is_empty()).then(|| held(pairs.as_flattened())),
        ))
    }

    /// What they cost in memory, those aside that are shared.
    pub(super) fn n_bytes(&self) -> usize {
        self.0.as_ref().map_or(0, |it| it.n_own_bytes())
    }

    /// The value of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.iter()
            .find(|(it, _)| *it == key)
            .map(|(_, value)| value)
    }

    /// All of them, by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().flat_map(|it| {
            let keys = (0..it.len()).step_by(2);
            keys.map(|idx| (it.part(idx), it.part(idx + 1)))
        })
    }
}

impl fmt::Debug for Attributes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl Serialize for Attributes {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.iter())
    }
}
