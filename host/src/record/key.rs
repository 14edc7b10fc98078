//! Which object an Event is about, as a key.

use std::{
    cmp::Ordering,
    fmt,
    hash::{BuildHasher as _, Hash, Hasher, RandomState},
    sync::{Arc, LazyLock},
};

/// No namespace, kind, name or uid in Kubernetes is longer (a DNS subdomain has
/// at most 253 characters, RFC 1123), but the server does not check those that
/// an Event merely regards. Cutting one would merge two objects: it is refused.
pub const IDENTITY_MAX_BYTES: usize = 253;

/// The object that an Event regards.
///
/// A Node, or any other object of the cluster's scope, has the empty namespace.
/// It is a pointer: each object is known by several tables.
#[derive(Clone)]
pub struct ObjectKey(Arc<Parts>);

struct Parts {
    /// Of what follows. An Event's key is looked up some ten times. Half a hash tells
    /// keys apart well enough.
    hash: u32,
    namespace_end: u16,
    kind_end: u16,
    /// Namespace, kind and name, end to end.
    text: Box<str>,
}

/// Whoever may create Events chooses names, and must not choose their hashes: the
/// key of this one is drawn at random in each process.
static HASHER: LazyLock<RandomState> = LazyLock::new(RandomState::new);

impl ObjectKey {
    /// A key of these three. `None` when one of them is longer than
    /// [`IDENTITY_MAX_BYTES`].
    #[must_use]
    pub fn new(namespace: &str, kind: &str, name: &str) -> Option<Self> {
        if [namespace, kind, name]
            .iter()
            .any(|it| IDENTITY_MAX_BYTES < it.len())
        {
            return None;
        }
        let namespace_end = u16::try_from(namespace.len()).ok()?;
        let kind_end = u16::try_from(namespace.len() + kind.len()).ok()?;
        let text: Box<str> = [namespace, kind, name].concat().into();
        let hash = HASHER.hash_one((&*text, namespace_end, kind_end));
        Some(Self(Arc::new(Parts {
            hash: u32::try_from(hash >> 32).ok()?,
            namespace_end,
            kind_end,
            text,
        })))
    }

    /// Namespace, for example `ml-team`; empty for an object of the cluster's scope.
    #[must_use]
    pub fn namespace(&self) -> &str {
        self.part(0, self.0.namespace_end)
    }

    /// Kind, for example `Pod`.
    #[must_use]
    pub fn kind(&self) -> &str {
        self.part(self.0.namespace_end, self.0.kind_end)
    }

    /// Name, for example `train-0`.
    #[must_use]
    pub fn name(&self) -> &str {
        let start = self.0.kind_end;
        self.0.text.get(start.into()..).unwrap_or_default()
    }

    /// What a table of them needs to hold one, beside the pointer to it.
    pub(crate) fn n_bytes(&self) -> usize {
        2 * size_of::<usize>() + size_of::<Parts>() + self.0.text.len()
    }

    fn part(&self, start: u16, end: u16) -> &str {
        let part = self.0.text.get(start.into()..end.into());
        part.unwrap_or_default()
    }

    fn parts(&self) -> (&str, &str, &str) {
        (self.namespace(), self.kind(), self.name())
    }
}

impl PartialEq for ObjectKey {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
            || (self.0.hash == other.0.hash && self.parts() == other.parts())
    }
}

impl Eq for ObjectKey {}

impl Hash for ObjectKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u32(self.0.hash);
    }
}

impl PartialOrd for ObjectKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ObjectKey {
    fn cmp(&self, other: &Self) -> Ordering {
        self.parts().cmp(&other.parts())
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (namespace, kind, name) = self.parts();
        if namespace.is_empty() {
            write!(f, "{kind}/{name}")
        } else {
            write!(f, "{namespace}/{kind}/{name}")
        }
    }
}

impl fmt::Debug for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
