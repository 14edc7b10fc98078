//! Which subjects a change of a bucket concerns.
//!
//! A record that comes or goes may take others with it from one subject to
//! another: those that name no uid. Whoever loses a record has to be classified
//! before it does.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::Bounds;
use crate::{
    record::{ObjectKey, Record},
    store::Bucket,
    subject::{SubjectKey, assigned},
};

/// What is known of the object of a record that comes.
pub(super) enum Known {
    /// It has as many records as it may, and this is one more.
    Full,
    /// It may have it, and these subjects get other records by it.
    Room(Shift),
}

impl Known {
    pub(super) fn of(bucket: &Bucket, record: &Record, bounds: &Bounds) -> Self {
        let is_known = |it: &Record| it.name() == record.name();
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
        Self::Room(Shift::between(bucket, &bucket.with(record.clone())))
    }
}

/// Which subjects of an object get other records by a change of its bucket.
#[derive(Debug, Default)]
pub(super) struct Shift {
    /// Those that lose one, by uid.
    pub(super) lost: BTreeSet<Arc<str>>,
    /// Those that get one that another had.
    pub(super) gained: BTreeSet<Arc<str>>,
    /// Whom the records without a uid belong to, if they were a subject of their
    /// own and are none any more.
    pub(super) unnamed_became: Option<Arc<str>>,
}

impl Shift {
    pub(super) fn between(before: &Bucket, after: &Bucket) -> Self {
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

pub(super) fn subjects(object: &ObjectKey, uids: &BTreeSet<Arc<str>>) -> Vec<SubjectKey> {
    uids.iter()
        .map(|uid| SubjectKey {
            object: object.clone(),
            uid: Arc::clone(uid),
        })
        .collect()
}
