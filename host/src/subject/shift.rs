//! Which subjects a change of a bucket concerns.
//!
//! A record that comes or goes may take others with it from one subject to
//! another: those that name no uid. Whoever loses a record has to be classified
//! before it does.

use std::collections::{BTreeMap, BTreeSet};

use super::{SubjectKey, assigned};
use crate::{
    record::{ObjectKey, Uid},
    store::Bucket,
};

/// Which subject each record of a bucket belongs to.
#[derive(Debug, Default)]
pub struct Owners(BTreeMap<u64, Uid>);

impl Owners {
    /// Those of a bucket as it is.
    #[must_use]
    pub fn of(bucket: &Bucket) -> Self {
        let sequences = bucket.records().iter().map(|it| it.sequence);
        let uids = assigned(bucket).into_iter().map(Uid::from);
        Self(sequences.zip(uids).collect())
    }

    /// The uids, of each record once.
    pub fn uids(&self) -> impl Iterator<Item = &Uid> {
        self.0.values()
    }
}

/// Which subjects of an object get other records by a change of its bucket.
#[derive(Debug, Default)]
pub struct Shift {
    /// Those that lose one, by uid.
    pub lost: BTreeSet<Uid>,
    /// Those that get one that another had.
    pub gained: BTreeSet<Uid>,
    /// Whom the records without a uid belong to, if they were a subject of their
    /// own and are none any more.
    pub unnamed_became: Option<Uid>,
}

impl Shift {
    /// From one to the other.
    #[must_use]
    pub fn between(Owners(before): &Owners, Owners(after): &Owners) -> Self {
        let mut shift = Self::default();
        for (sequence, uid) in before {
            match after.get(sequence) {
                Some(same) if same == uid => {}
                Some(other) => {
                    shift.lost.insert(uid.clone());
                    shift.gained.insert(other.clone());
                    if uid.is_empty() && !after.values().any(Uid::is_empty) {
                        shift.unnamed_became.get_or_insert_with(|| other.clone());
                    }
                }
                None => {
                    shift.lost.insert(uid.clone());
                }
            }
        }
        shift
    }
}

/// The subjects of an object with these uids.
#[must_use]
pub fn subjects(object: &ObjectKey, uids: &BTreeSet<Uid>) -> Vec<SubjectKey> {
    uids.iter()
        .map(|uid| SubjectKey {
            object: object.clone(),
            uid: uid.clone(),
        })
        .collect()
}
