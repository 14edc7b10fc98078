//! Whose Events are asked for: namespaces, or the cluster, times kinds; and which Pods.
//!
//! The API server refuses a field selector with a wrong label, but answers one
//! with a wrong value (`regarding.kind=pod`) with an empty list, for ever. So a
//! selector is made from a [`Kind`], never from text, and nothing here can be
//! made from bad text. With a list of namespaces nothing is ever asked of the
//! whole cluster.
//!
//! A scope never changes once it is made. What bounds it is the configuration
//! file that it comes from.

use std::{collections::BTreeSet, fmt};

mod labels;
mod names;

pub use labels::{LabelError, LabelKey, LabelSelector, SELECTOR_MAX_BYTES};
pub use names::{Glob, Kind, NameError, Namespace};

/// Which Events are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    reach: Reach,
    /// Invariant: never empty.
    kinds: BTreeSet<Kind>,
    /// Invariant: `Node` is among them.
    cluster_scoped: BTreeSet<Kind>,
}

/// Which namespaces are watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// These, each with a watch of its own. A Role in each is permission enough.
    Namespaces(BTreeSet<Namespace>),
    /// All that the globs admit, in one watch over the whole cluster. That takes
    /// a `ClusterRole`, and the API server sends the Events of all namespaces.
    Cluster {
        /// What is admitted; every namespace if there is none.
        include: Vec<Glob>,
        /// What is not, even if it is included.
        exclude: Vec<Glob>,
    },
}

/// One LIST and WATCH that is to be kept up.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Watch {
    /// Where; in all namespaces if there is none.
    pub namespace: Option<Namespace>,
    /// The kind of what the Events regard.
    pub kind: Kind,
}

/// One LIST and WATCH of Pods that is to be kept up.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodWatch {
    /// Where; in all namespaces if there is none.
    pub namespace: Option<Namespace>,
    /// Which of the Pods there.
    pub selector: LabelSelector,
}

/// More watches than this are warned about. An arbitrary number: each is a
/// connection's stream, and a LIST whenever it starts anew.
const WATCHES_MAX: usize = 64;

impl Scope {
    /// A scope of these namespaces and kinds. `cluster_scoped` says which kinds
    /// have no namespace; `Node` need not be named.
    ///
    /// # Errors
    ///
    /// If there is no kind, or a list of namespaces without one.
    pub fn new(
        reach: Reach,
        kinds: BTreeSet<Kind>,
        mut cluster_scoped: BTreeSet<Kind>,
    ) -> Result<Self, ScopeError> {
        if kinds.is_empty() {
            return Err(ScopeError::NoKind);
        }
        if matches!(&reach, Reach::Namespaces(it) if it.is_empty()) {
            return Err(ScopeError::NoNamespace);
        }
        cluster_scoped.insert(Kind::node());
        Ok(Self {
            reach,
            kinds,
            cluster_scoped,
        })
    }

    /// Which namespaces are watched.
    #[must_use]
    pub fn reach(&self) -> &Reach {
        &self.reach
    }

    /// The kinds whose Events are asked for; at least one.
    #[must_use]
    pub fn kinds(&self) -> &BTreeSet<Kind> {
        &self.kinds
    }

    /// The kinds that have no namespace, `Node` among them, watched or not.
    #[must_use]
    pub fn cluster_scoped(&self) -> &BTreeSet<Kind> {
        &self.cluster_scoped
    }

    /// What is to be watched, always in the same order: one watch for each kind
    /// in each namespace, or in all of them. A cluster-scoped kind has one, in
    /// `default`, wherever the others are.
    #[must_use]
    pub fn watches(&self) -> Vec<Watch> {
        let mut watches = Vec::with_capacity(self.n_watches());
        for kind in &self.kinds {
            let of = |namespace| Watch {
                namespace,
                kind: kind.clone(),
            };
            match &self.reach {
                _ if self.cluster_scoped.contains(kind) => {
                    watches.push(of(Some(Namespace::of_cluster_events())));
                }
                Reach::Namespaces(namespaces) => {
                    watches.extend(namespaces.iter().map(|it| of(Some(it.clone()))));
                }
                Reach::Cluster { .. } => watches.push(of(None)),
            }
        }
        watches
    }

    /// Where the Pods of a selector are to be watched: in each namespace, or in all.
    #[must_use]
    pub fn pod_watches(&self, selector: &LabelSelector) -> Vec<PodWatch> {
        let of = |namespace| PodWatch {
            namespace,
            selector: selector.clone(),
        };
        match &self.reach {
            Reach::Namespaces(namespaces) => {
                namespaces.iter().map(|it| of(Some(it.clone()))).collect()
            }
            Reach::Cluster { .. } => vec![of(None)],
        }
    }

    /// How many [`watches`](Self::watches) there are.
    fn n_watches(&self) -> usize {
        let n_cluster_scoped = self.kinds.intersection(&self.cluster_scoped).count();
        let per_kind = match &self.reach {
            Reach::Namespaces(namespaces) => namespaces.len(),
            Reach::Cluster { .. } => 1,
        };
        n_cluster_scoped + per_kind * (self.kinds.len() - n_cluster_scoped)
    }

    /// Whether Events about objects of this namespace are wanted. It says nothing
    /// of cluster-scoped kinds: their objects have no namespace.
    ///
    /// The time it takes is linear in the length of the name, for each glob, and
    /// no name is longer than a namespace may be.
    #[must_use]
    pub fn admits_namespace(&self, namespace: &str) -> bool {
        match &self.reach {
            Reach::Namespaces(namespaces) => namespaces.contains(namespace),
            Reach::Cluster { include, exclude } => {
                let is_in = |globs: &[Glob]| globs.iter().any(|it| it.matches(namespace));
                (include.is_empty() || is_in(include)) && !is_in(exclude)
            }
        }
    }

    /// What an operator should be told about a scope that is valid, if anything.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        let n_watches = self.n_watches();
        let remedy = match &self.reach {
            _ if n_watches <= WATCHES_MAX => return None,
            Reach::Namespaces(_) => {
                "instead of scope.namespaces write scope.cluster with globs in include, which is \
                 one watch for each kind, and needs a ClusterRole"
            }
            Reach::Cluster { .. } => "name fewer in scope.kinds",
        };
        Some(format!(
            "the scope makes {n_watches} watches, over {WATCHES_MAX} they weigh on the API server: {remedy}"
        ))
    }
}

impl Watch {
    /// What selects its Events, in `events.k8s.io/v1`.
    #[must_use]
    pub fn field_selector(&self) -> String {
        format!("regarding.kind={}", self.kind)
    }
}

impl fmt::Display for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{} in {namespace}", self.kind),
            None => write!(f, "{} everywhere", self.kind),
        }
    }
}

impl fmt::Display for PodWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "pods in {namespace}"),
            None => f.write_str("pods everywhere"),
        }
    }
}

/// Why there is no such scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScopeError {
    /// Nothing would be watched.
    #[error("there is no kind: name one, for example `Pod`")]
    NoKind,
    /// Nowhere would be watched.
    #[error("there is no namespace: name one, or write `cluster: {{}}` for all of them")]
    NoNamespace,
}

#[cfg(test)]
mod tests;
