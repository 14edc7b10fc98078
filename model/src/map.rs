//! A map that stands in for `DashMap`, which spins and cannot be told which thread is to go on.
//!
//! It has those methods that the sources call, and the promises that they rest on: what is done to an entry
//! is done under the lock of its shard, and so is what `remove_if_mut` decides. Its locks let in one reader
//! at a time, so that who locks a shard twice is found out, be it to read.

use std::{collections::BTreeMap, fmt, ops::Deref, rc::Rc};

use crate::sync::{Fault, Mutex, MutexGuard, PoisonError, has};

/// Two, so that there are threads which hold different ones and want the same third lock.
const N_SHARDS: usize = 2;

type Shard<'a, K, V> = MutexGuard<'a, BTreeMap<K, V>>;

/// What is called `DashMap` in the sources.
pub struct DashMap<K, V> {
    shards: [Mutex<BTreeMap<K, V>>; N_SHARDS],
}

impl<K, V> Default for DashMap<K, V> {
    fn default() -> Self {
        Self {
            shards: std::array::from_fn(|_| Mutex::new(BTreeMap::new())),
        }
    }
}

impl<K, V> fmt::Debug for DashMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DashMap").finish_non_exhaustive()
    }
}

fn lock<K, V>(shard: &Mutex<BTreeMap<K, V>>) -> Shard<'_, K, V> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

#[allow(missing_docs, reason = "they are those of the same names")]
impl<K: Clone + fmt::Debug + Ord, V> DashMap<K, V> {
    /// Which shard a key is in. By what it is called: its hash is another in each process, and what failed
    /// in one is to fail in the next.
    pub fn shard_of(key: &K) -> usize {
        let name = format!("{key:?}");
        name.bytes().map(usize::from).sum::<usize>() % N_SHARDS
    }

    fn lock(&self, key: &K) -> Shard<'_, K, V> {
        lock(&self.shards[Self::shard_of(key)])
    }

    pub fn entry(&self, key: K) -> Entry<'_, K, V> {
        let shard = self.lock(&key);
        if shard.contains_key(&key) {
            Entry::Occupied(Occupied { shard, key })
        } else {
            Entry::Vacant(Vacant { shard, key })
        }
    }

    pub fn remove_if_mut(
        &self,
        key: &K,
        decide: impl FnOnce(&K, &mut V) -> bool,
    ) -> Option<(K, V)> {
        let mut shard = self.lock(key);
        let is_to_go = decide(key, shard.get_mut(key)?);
        if has(Fault::TwoStepRemoval) {
            drop(shard);
            shard = self.lock(key);
        }
        if is_to_go {
            shard.remove_entry(key)
        } else {
            None
        }
    }

    pub fn get(&self, key: &K) -> Option<Ref<'_, K, V>> {
        let shard = Rc::new(self.lock(key));
        let key = key.clone();
        shard.contains_key(&key).then(|| Ref { shard, key })
    }

    pub fn iter(&self) -> impl Iterator<Item = Ref<'_, K, V>> {
        self.shards.iter().flat_map(|shard| {
            let shard = Rc::new(lock(shard));
            let keys: Vec<_> = shard.keys().cloned().collect();
            keys.into_iter().map(move |key| Ref {
                shard: Rc::clone(&shard),
                key,
            })
        })
    }

    pub fn len(&self) -> usize {
        self.shards.iter().map(|it| lock(it).len()).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn capacity(&self) -> usize {
        self.len()
    }

    pub fn shrink_to_fit(&self) {
        for it in &self.shards {
            drop(lock(it));
        }
    }
}

impl<'a, K: Clone + fmt::Debug + Ord, V> IntoIterator for &'a DashMap<K, V> {
    type Item = Ref<'a, K, V>;
    type IntoIter = Box<dyn Iterator<Item = Self::Item> + 'a>;

    fn into_iter(self) -> Self::IntoIter {
        Box::new(self.iter())
    }
}

/// A value, with its shard locked.
pub struct Ref<'a, K, V> {
    shard: Rc<Shard<'a, K, V>>,
    key: K,
}

impl<K, V> Ref<'_, K, V> {
    /// Whose it is.
    pub fn key(&self) -> &K {
        &self.key
    }
}

impl<K: Ord, V> Deref for Ref<'_, K, V> {
    type Target = V;

    fn deref(&self) -> &V {
        &self.shard[&self.key]
    }
}

/// A place in the map, with its shard locked.
pub enum Entry<'a, K, V> {
    /// There is something in it.
    Occupied(Occupied<'a, K, V>),
    /// There is nothing in it.
    Vacant(Vacant<'a, K, V>),
}

/// A place that is taken.
pub struct Occupied<'a, K, V> {
    shard: Shard<'a, K, V>,
    key: K,
}

#[allow(missing_docs, reason = "they are those of the same names")]
impl<K: Ord, V> Occupied<'_, K, V> {
    pub fn get_mut(&mut self) -> &mut V {
        self.shard
            .get_mut(&self.key)
            .expect("the shard is locked since it was there")
    }

    pub fn remove(mut self) {
        self.shard.remove(&self.key);
    }
}

/// A place that is free.
pub struct Vacant<'a, K, V> {
    shard: Shard<'a, K, V>,
    key: K,
}

#[allow(missing_docs, reason = "they are those of the same names")]
impl<'a, K: Clone + Ord, V> Vacant<'a, K, V> {
    pub fn key(&self) -> &K {
        &self.key
    }

    pub fn insert(self, value: V) {
        self.insert_entry(value);
    }

    pub fn insert_entry(self, value: V) -> Occupied<'a, K, V> {
        let Self { mut shard, key } = self;
        shard.insert(key.clone(), value);
        Occupied { shard, key }
    }
}
