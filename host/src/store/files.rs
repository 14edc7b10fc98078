//! The buckets of each namespace, in the order in which they are to be looked at.
//!
//! It is how what expires, is swept or has to make room is found a key at a time,
//! so that no shard is ever locked for a walk. A bucket is filed by when a record
//! of it was confirmed, and filed anew only when it is looked at: until then it was
//! perhaps confirmed since, and never earlier.
//!
//! It holds one entry for each bucket, and one for each namespace that has any.

use std::{
    collections::BTreeMap,
    ops::Bound::{Excluded, Included, Unbounded},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use super::Seconds;
use crate::record::ObjectKey;

/// Where a bucket is filed in its namespace: by when a record of it was confirmed,
/// and in the order of filing within a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// No record of it was confirmed earlier.
    pub second: Seconds,
    /// It takes more than can be filed in a second to come round.
    order: u32,
}

/// How far a walk over all files is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Walk {
    namespace: Arc<str>,
    behind: Option<Place>,
}

#[derive(Debug, Default)]
pub(super) struct Files {
    namespaces: BTreeMap<Arc<str>, Namespace>,
}

#[derive(Debug, Default)]
struct Namespace {
    by_place: BTreeMap<Place, ObjectKey>,
    n_filed: u32,
    /// What its buckets cost. Each of them knows it, too, and keeps it right.
    n_bytes: Arc<AtomicUsize>,
}

impl Files {
    /// Files a bucket, and says where to count its bytes.
    pub(super) fn file(&mut self, key: ObjectKey, second: Seconds) -> (Place, Arc<AtomicUsize>) {
        if !self.namespaces.contains_key(key.namespace()) {
            self.namespaces
                .insert(key.namespace().into(), Namespace::default());
        }
        let namespace = self
            .namespaces
            .get_mut(key.namespace())
            .expect("it was put there now");
        namespace.n_filed = namespace.n_filed.wrapping_add(1);
        let place = Place {
            second,
            order: namespace.n_filed,
        };
        namespace.by_place.insert(place, key);
        (place, Arc::clone(&namespace.n_bytes))
    }

    /// Takes a bucket out, and its namespace with the last of them.
    pub(super) fn take(&mut self, key: &ObjectKey, place: Place) {
        let Some(namespace) = self.namespaces.get_mut(key.namespace()) else {
            return;
        };
        namespace.by_place.remove(&place);
        if namespace.by_place.is_empty() {
            self.namespaces.remove(key.namespace());
        }
    }

    /// The buckets that are filed before a second, at most so many.
    pub(super) fn before(&self, second: Seconds, max: usize) -> Vec<ObjectKey> {
        let due = self.namespaces.values().flat_map(|it| {
            let due = it.by_place.iter();
            due.take_while(|(place, _)| place.second < second)
        });
        due.take(max).map(|(_, key)| key.clone()).collect()
    }

    /// The next buckets of a walk over what is filed no later than a second: `from`
    /// where it is by now, and where it is then, `None` at the end.
    pub(super) fn walk(
        &self,
        from: Option<Walk>,
        until: Seconds,
        max: usize,
    ) -> (Vec<ObjectKey>, Option<Walk>) {
        let mut keys = Vec::new();
        let (first, mut behind) = from.map_or((None, None), |it| (Some(it.namespace), it.behind));
        let begin = first.as_deref().map_or(Unbounded, Included);
        for (name, namespace) in self.namespaces.range::<str, _>((begin, Unbounded)) {
            // Only of the namespace that the walk stopped in, if it is there yet.
            let behind = behind.take().filter(|_| first.as_ref() == Some(name));
            let rest = (behind.map_or(Unbounded, Excluded), Unbounded);
            for (place, key) in namespace.by_place.range(rest) {
                if until < place.second {
                    break;
                }
                keys.push(key.clone());
                if keys.len() == max {
                    let walk = Walk {
                        namespace: Arc::clone(name),
                        behind: Some(*place),
                    };
                    return (keys, Some(walk));
                }
            }
        }
        (keys, None)
    }

    /// The first buckets of the namespace that holds most, at most so many.
    pub(super) fn first_of_largest(&self, max: usize) -> Vec<(Place, ObjectKey)> {
        let largest = self
            .namespaces
            .values()
            .max_by_key(|it| it.n_bytes.load(Relaxed));
        let first = largest.into_iter().flat_map(|it| &it.by_place);
        let first = first.take(max);
        first.map(|(place, key)| (*place, key.clone())).collect()
    }
}
