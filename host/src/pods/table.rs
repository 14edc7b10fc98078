//! The pods that are known, and who of them is where, whose, and called what.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use super::Pod;
use crate::{
    record::{ObjectKey, Uid, UidRef},
    store::Version,
};

/// Which pod: its name, and its uid.
pub type PodKey = (ObjectKey, Uid);

/// The pods that are known. What bounds it is their number ([`PODS_MAX`]): each is some
/// hundred bytes, and a name in up to three indexes beside that.
#[derive(Debug)]
pub struct Pods {
    /// Those of one name, the one that came last at the end.
    by_name: HashMap<ObjectKey, Vec<Known>>,
    on_node: HashMap<Arc<str>, BTreeSet<PodKey>>,
    by_owner: HashMap<ObjectKey, BTreeSet<PodKey>>,
    by_label: BTreeMap<(Box<str>, Box<str>), BTreeSet<PodKey>>,
    count: usize,
    max: usize,
}

/// A pod, and since when it is known so.
#[derive(Clone, Debug)]
struct Known {
    pod: Arc<Pod>,
    version: Version,
}

/// What became of a pod that was put.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PodPut {
    /// It is known as it was.
    Unchanged,
    /// It was not known, or is another now. This is what it was.
    Changed(Option<Arc<Pod>>),
    /// It was not known, and there are as many as there may be.
    Full,
}

/// How many pods are known at most, unless somebody says otherwise. A cluster has 150,000
/// (the limit that Kubernetes states for large clusters); these are only those of a workload.
pub const PODS_MAX: usize = 100_000;

impl Default for Pods {
    fn default() -> Self {
        Self {
            by_name: HashMap::new(),
            on_node: HashMap::new(),
            by_owner: HashMap::new(),
            by_label: BTreeMap::new(),
            count: 0,
            max: PODS_MAX,
        }
    }
}

impl Pods {
    /// From now on at most so many become known.
    pub fn set_max(&mut self, max: usize) {
        self.max = max;
    }

    /// Takes up a pod as it is now. What is classified of it from now on is of this version.
    pub fn put(&mut self, object: &ObjectKey, pod: Pod, version: Version) -> PodPut {
        let known = self.get(object, pod.uid.as_ref());
        if known.is_some_and(|(known, _)| **known == pod) {
            return PodPut::Unchanged;
        }
        if known.is_none() && self.max <= self.count {
            return PodPut::Full;
        }
        let place = self.place(object, pod.uid.as_ref());
        let before = self.remove(object, pod.uid.as_ref());
        let key = (object.clone(), pod.uid.clone());
        if let Some(node) = &pod.node {
            let on_node = self.on_node.entry(Arc::clone(node)).or_default();
            on_node.insert(key.clone());
        }
        if let Some(owner) = &pod.owner {
            let owned = self.by_owner.entry(owner.object.clone()).or_default();
            owned.insert(key.clone());
        }
        for label in &pod.labels {
            let labelled = self.by_label.entry(label.clone()).or_default();
            labelled.insert(key.clone());
        }
        let known = Known {
            pod: Arc::new(pod),
            version,
        };
        let of_name = self.by_name.entry(key.0).or_default();
        of_name.insert(place.unwrap_or(of_name.len()), known);
        self.count += 1;
        PodPut::Changed(before)
    }

    /// Forgets a pod.
    pub fn remove(&mut self, object: &ObjectKey, uid: UidRef<'_>) -> Option<Arc<Pod>> {
        let place = self.place(object, uid)?;
        let of_name = self.by_name.get_mut(object)?;
        let pod = of_name.remove(place).pod;
        if of_name.is_empty() {
            self.by_name.remove(object);
        }
        self.count -= 1;
        let key = (object.clone(), pod.uid.clone());
        let take_out = |keys: &mut BTreeSet<PodKey>| {
            keys.remove(&key);
            keys.is_empty()
        };
        if let Some(node) = &pod.node
            && self.on_node.get_mut(node).is_some_and(take_out)
        {
            self.on_node.remove(node);
        }
        if let Some(owner) = &pod.owner
            && self.by_owner.get_mut(&owner.object).is_some_and(take_out)
        {
            self.by_owner.remove(&owner.object);
        }
        for label in &pod.labels {
            if self.by_label.get_mut(label).is_some_and(take_out) {
                self.by_label.remove(label);
            }
        }
        Some(pod)
    }

    /// What is known of a pod, and as of which version.
    #[must_use]
    pub fn get(&self, object: &ObjectKey, uid: UidRef<'_>) -> Option<(&Arc<Pod>, Version)> {
        let known = &self.by_name.get(object)?[self.place(object, uid)?];
        Some((&known.pod, known.version))
    }

    /// The pod of this name that became known last.
    #[must_use]
    pub fn newest(&self, object: &ObjectKey) -> Option<(&Arc<Pod>, Version)> {
        let known = self.by_name.get(object)?.last()?;
        Some((&known.pod, known.version))
    }

    /// The pods of this name, the one that became known last at the end.
    pub fn named(&self, object: &ObjectKey) -> impl Iterator<Item = &Pod> {
        let of_name = self.by_name.get(object).into_iter().flatten();
        of_name.map(|it| &*it.pod)
    }

    fn place(&self, object: &ObjectKey, uid: UidRef<'_>) -> Option<usize> {
        let mut of_name = self.by_name.get(object)?.iter();
        of_name.position(|it| it.pod.uid.as_ref() == uid)
    }

    /// The pods that what is said of an object is said of, too: those on a node, or
    /// those that it owns. In order.
    pub fn around(&self, object: &ObjectKey) -> impl Iterator<Item = &PodKey> {
        let pods = if object.kind() == "Node" && object.namespace().is_empty() {
            self.on_node.get(object.name())
        } else {
            self.by_owner.get(object)
        };
        pods.into_iter().flatten()
    }

    /// The pods of a namespace that have this label, of the labels that are kept. In order.
    pub fn labelled(
        &self,
        namespace: &str,
        key: &str,
        value: &str,
    ) -> impl Iterator<Item = &PodKey> {
        let label = (Box::from(key), Box::from(value));
        let pods = self.by_label.get(&label).into_iter().flatten();
        pods.filter(move |(object, _)| object.namespace() == namespace)
    }

    /// All of them, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&ObjectKey, &Arc<Pod>)> {
        let by_name = self.by_name.iter();
        by_name.flat_map(|(object, pods)| pods.iter().map(move |it| (object, &it.pod)))
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Names in indexes, for whoever tests that they are forgotten.
    #[cfg(test)]
    pub(super) fn n_indexed(&self) -> usize {
        self.by_name.len() + self.on_node.len() + self.by_owner.len() + self.by_label.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Gives back the room of those that are forgotten.
    pub fn shrink(&mut self) {
        self.by_name.shrink_to_fit();
        self.on_node.shrink_to_fit();
        self.by_owner.shrink_to_fit();
    }
}
