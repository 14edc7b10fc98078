//! What a classifier is given: one object, of one uid, with its records.
//!
//! A bucket holds the records of a namespace, kind and name. Pods are recreated
//! under their names, so it may hold records of several uids, and records that
//! name none. Here each record is assigned to exactly one subject, so that a
//! recreated pod never inherits what was said of its predecessor.
//!
//! It holds nothing: a subject is made for one call and dropped after it.

use std::{collections::BTreeMap, fmt, sync::Arc};

use crate::{
    pods::{Failure, ObjectRef, Pod},
    record::{ObjectKey, Record, Uid, UidRef, UnixMs},
    store::{Bucket, Stored, Version},
};

mod reading;
mod shift;
mod surroundings;
mod trust;

pub use reading::read;
pub use shift::{Owners, Shift, subjects};
pub use surroundings::{
    AFTER_FAILURE_MS, AFTER_LAST_EVENT_MS, BEFORE_FAILURE_MS, SURROUNDINGS_MAX,
};
pub use trust::{Agreement, Trust};

/// Who a subject is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SubjectKey {
    /// The object.
    pub object: ObjectKey,
    /// Its uid; a Node's is its name; empty when no record knows it.
    pub uid: Uid,
}

impl fmt::Display for SubjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.object)
    }
}

/// One object and its records, as of one version of its bucket.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Who it is.
    pub key: SubjectKey,
    /// The API version of the object, as its newest record knows it.
    pub api_version: Arc<str>,
    /// Its pod, if it is one that is known.
    pub pod: Option<Arc<Pod>>,
    /// Whether pods of its name are known, and none of them has its uid: what is said of
    /// it is of a predecessor, or forged.
    pub is_disowned: bool,
    /// The failure that a verdict is wanted for.
    pub failure: Option<Arc<Failure>>,
    /// Those of its records that are of interest, and of those around its failure, oldest
    /// first: by when they were created, then by arrival.
    pub events: Vec<Record>,
    /// What each of its events regards if that is another object. Empty when all are its
    /// own.
    about: Vec<Option<Arc<ObjectRef>>>,
    /// Every live record of the object, of interest or not, and of those that it is given
    /// others of: what is in here and was evidence is evidence still.
    pub live: Vec<Record>,
    /// When the newest of its own records was last seen, if it has any.
    last_seen: Option<UnixMs>,
    /// Which version of its bucket this is a picture of; the least if it has none.
    pub of_bucket: Version,
    /// The other objects whose records it may be given, each with the version of its
    /// bucket, if it has one.
    pub around: Vec<(ObjectKey, Option<Version>)>,
    /// The newest version of all that this is a picture of.
    pub version: Version,
}

impl Subject {
    /// The subject of this uid in a bucket, with those of its records that are
    /// of interest. `None` if none of the records is its own. Its key is the bucket's
    /// from then on: what is held of it for long shares that.
    #[must_use]
    pub fn of(
        key: SubjectKey,
        bucket: &Bucket,
        is_of_interest: impl Fn(&Record) -> bool,
    ) -> Option<Self> {
        let mut events = own(bucket, key.uid.as_ref());
        if events.is_empty() {
            return None;
        }
        let last_seen = events.iter().map(|it| it.record.last_seen()).max();
        events.retain(|it| is_of_interest(&it.record));
        events.sort_by_key(|it| (it.record.created(), it.sequence));
        let key = SubjectKey {
            object: bucket.key().clone(),
            uid: key.uid,
        };
        Some(Self {
            api_version: newest_api_version(bucket),
            events: events.into_iter().map(|it| it.record.clone()).collect(),
            live: bucket
                .records()
                .iter()
                .map(|it| it.record.clone())
                .collect(),
            last_seen,
            of_bucket: bucket.version(),
            version: bucket.version(),
            ..Self::without_records(key)
        })
    }

    /// A subject that nothing is said of.
    #[must_use]
    pub fn without_records(key: SubjectKey) -> Self {
        Self {
            key,
            api_version: "".into(),
            pod: None,
            is_disowned: false,
            failure: None,
            events: Vec::new(),
            about: Vec::new(),
            live: Vec::new(),
            last_seen: None,
            of_bucket: Version::default(),
            around: Vec::new(),
            version: Version::default(),
        }
    }

    /// What one of its events regards, by the event's place, if that is another object.
    #[must_use]
    pub fn about(&self, idx: usize) -> Option<&ObjectRef> {
        self.about.get(idx)?.as_deref()
    }

    /// Bytes of text that cross when it is handed to a classifier.
    #[must_use]
    pub fn n_bytes(&self) -> usize {
        self.events.iter().map(Record::n_text_bytes).sum()
    }
}

/// The uids of the subjects that a bucket's records make up, each once.
#[must_use]
pub fn uids(bucket: &Bucket) -> Vec<UidRef<'_>> {
    let mut uids = assigned(bucket);
    uids.sort_unstable();
    uids.dedup();
    uids
}

/// The subject that each record of a bucket belongs to, by uid, in the bucket's
/// order.
///
/// A record without a uid belongs to the newest uid that was first seen at or
/// before that record was last seen; else to the oldest known; else to the
/// subject without a uid.
#[must_use]
pub fn assigned(bucket: &Bucket) -> Vec<UidRef<'_>> {
    let records = bucket.records();
    if records.iter().all(|it| !it.record.object_uid().is_empty()) {
        return records.iter().map(|it| it.record.object_uid()).collect();
    }
    let mut first_seen = BTreeMap::<UidRef<'_>, UnixMs>::new();
    for it in records
        .iter()
        .map(|it| &it.record)
        .filter(|it| !it.object_uid().is_empty())
    {
        let seen = first_seen.entry(it.object_uid()).or_insert(UnixMs::MAX);
        *seen = (*seen).min(it.first_seen());
    }
    // Oldest first; the uid itself makes the order total.
    let mut known: Vec<_> = first_seen
        .into_iter()
        .map(|(uid, seen)| (seen, uid))
        .collect();
    known.sort_unstable();
    let owner_at = |at| {
        let newest_by_then = known.iter().rev().find(|(seen, _)| *seen <= at);
        newest_by_then
            .or(known.first())
            .map_or(Uid::Text(""), |(_, uid)| *uid)
    };
    records
        .iter()
        .map(|it| match it.record.object_uid() {
            uid if uid.is_empty() => owner_at(it.record.last_seen()),
            uid => uid,
        })
        .collect()
}

/// The records of a bucket that belong to the subject of a uid, in order of arrival.
fn own<'a>(bucket: &'a Bucket, uid: UidRef<'_>) -> Vec<&'a Stored> {
    let of_each = assigned(bucket).into_iter().zip(bucket.records());
    let own = of_each.filter(|(owner, _)| *owner == uid);
    own.map(|(_, it)| it).collect()
}

fn newest_api_version(bucket: &Bucket) -> Arc<str> {
    let known = bucket
        .records()
        .iter()
        .rev()
        .map(|it| it.record.object_api_version());
    known
        .into_iter()
        .find(|it| !it.is_empty())
        .unwrap_or_default()
        .into()
}

#[cfg(test)]
mod tests;
