//! What is held of each namespace, in the order in which it is to be looked at.
//!
//! It is how what expires, is swept or has to make room is found a key at a time,
//! so that no shard of a table is ever locked for a walk. What is filed by a second
//! is filed anew only when it is looked at: until then it was perhaps confirmed
//! since, and never earlier.
//!
//! It holds one entry for each key, and one for each namespace that has any.

use std::{
    collections::BTreeMap,
    ops::Bound::{Excluded, Included, Unbounded},
};

use crate::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

/// Seconds of our own monotonic clock, from when the process began.
pub type Seconds = u32;

/// What belongs to a namespace.
pub(crate) trait Key: Clone {
    /// Which; empty for what is of the cluster's scope.
    fn namespace(&self) -> &str;
}

/// Where something is filed in its namespace: by a second, and in the order of filing
/// within it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Of a bucket: no record of it was confirmed earlier.
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

/// What is filed of all namespaces.
#[derive(Debug)]
pub(crate) struct Files<K> {
    namespaces: BTreeMap<Arc<str>, Namespace<K>>,
}

#[derive(Debug)]
struct Namespace<K> {
    by_place: BTreeMap<Place, K>,
    n_filed: u32,
    /// What is filed costs that. Each of it knows this, too, and keeps it right.
    n_bytes: Arc<AtomicUsize>,
}

impl<K> Default for Files<K> {
    fn default() -> Self {
        Self {
            namespaces: BTreeMap::new(),
        }
    }
}

impl<K> Default for Namespace<K> {
    fn default() -> Self {
        Self {
            by_place: BTreeMap::new(),
            n_filed: 0,
            n_bytes: Arc::default(),
        }
    }
}

impl<K: Key> Files<K> {
    /// Files a key, and says where to count its bytes.
    pub(crate) fn file(&mut self, key: K, second: Seconds) -> (Place, Arc<AtomicUsize>) {
        let namespace = if let Some(namespace) = self.namespaces.get_mut(key.namespace()) {
            namespace
        } else {
            let name: Arc<str> = key.namespace().into();
            self.namespaces.entry(name).or_default()
        };
        namespace.n_filed = namespace.n_filed.wrapping_add(1);
        let place = Place {
            second,
            order: namespace.n_filed,
        };
        namespace.by_place.insert(place, key);
        (place, Arc::clone(&namespace.n_bytes))
    }

    /// Takes a key out, and its namespace with the last of them.
    pub(crate) fn take(&mut self, key: &K, place: Place) {
        let Some(namespace) = self.namespaces.get_mut(key.namespace()) else {
            return;
        };
        namespace.by_place.remove(&place);
        if namespace.by_place.is_empty() {
            self.namespaces.remove(key.namespace());
        }
    }

    /// What is filed before a second, at most so many.
    pub(crate) fn before(&self, second: Seconds, max: usize) -> Vec<K> {
        let due = self.namespaces.values().flat_map(|it| {
            let due = it.by_place.iter();
            due.take_while(|(place, _)| place.second < second)
        });
        due.take(max).map(|(_, key)| key.clone()).collect()
    }

    /// The next of a walk over what is filed no later than a second: `from`
    /// where it is by now, and where it is then, `None` at the end.
    pub(crate) fn walk(
        &self,
        from: Option<Walk>,
        until: Seconds,
        max: usize,
    ) -> (Vec<K>, Option<Walk>) {
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

    /// The first of the namespace that holds most, at most so many.
    pub(crate) fn first_of_largest(&self, max: usize) -> Vec<(Place, K)> {
        let largest = self
            .namespaces
            .values()
            .max_by_key(|it| it.n_bytes.load(Relaxed));
        let first = largest.into_iter().flat_map(|it| &it.by_place);
        let first = first.take(max);
        first.map(|(place, key)| (*place, key.clone())).collect()
    }
}

#[cfg(test)]
mod tests;
