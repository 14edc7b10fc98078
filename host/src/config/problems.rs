//! What is wrong with a configuration file, and where.
//!
//! Nothing is kept of more than [`PROBLEMS_MAX`] problems but their number, and
//! a message is bounded and on one line, whatever text it quotes.

use std::fmt;

use crate::{
    text::{Visible, cut},
    yaml::Place,
};

/// One thing that is wrong. Printed, it is one line: `LINE:COLUMN: KEY: WHAT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where it is.
    pub place: Place,
    /// The key that it is about, by its path; empty if it is about the whole text.
    pub key: String,
    /// What is wrong, and what to write instead.
    pub what: String,
}

/// Everything that is wrong with a text; at least one thing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems {
    /// The first so many, in the order of the text.
    shown: Vec<Problem>,
    n_more: usize,
}

/// Problems that are kept. Who has more reads the first of them first.
const PROBLEMS_MAX: usize = 100;

/// Bytes of a message: room for every key of a section, or the name of every limit.
const WHAT_MAX_BYTES: usize = 512;

/// Bytes of a path: no key has more than 40.
const KEY_MAX_BYTES: usize = 64;

impl Problems {
    /// The first hundred, in the order of the text.
    #[must_use]
    pub fn shown(&self) -> &[Problem] {
        &self.shown
    }

    /// How many there are.
    #[must_use]
    pub fn n(&self) -> usize {
        self.shown.len() + self.n_more
    }

    pub(super) fn add(&mut self, place: Place, key: &str, what: &str) {
        let problem = Problem {
            place,
            key: Visible(cut(key, KEY_MAX_BYTES)).to_string(),
            what: Visible(cut(what, WHAT_MAX_BYTES)).to_string(),
        };
        let idx = self.shown.partition_point(|it| it.place <= place);
        self.shown.insert(idx, problem);
        if PROBLEMS_MAX < self.shown.len() {
            self.shown.pop();
            self.n_more += 1;
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, key, what } = self;
        write!(f, "{place}: ")?;
        if !key.is_empty() {
            write!(f, "{key}: ")?;
        }
        f.write_str(what)
    }
}
