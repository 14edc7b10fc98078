//! Whose Events are asked for: namespaces, or the cluster, times kinds.
//!
//! The API server refuses a field selector with a wrong label, but answers one
//! with a wrong value (`regarding.kind=pod`) with an empty list, for ever. So a
//! selector is made from a [`Kind`], never from text, and nothing here can be
//! made from bad text. With a list of namespaces nothing is ever asked of the
//! whole cluster.
//!
//! A scope never changes once it is made. What bounds it is the configuration
//! file that it comes from.

use std::{collections::BTreeSet, fmt, str::FromStr};

use crate::text::{Visible, cut};

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

/// Where the Events about kinds without a namespace are.
const CLUSTER_EVENTS: &str = "default";

/// The kind that is cluster-scoped whatever the configuration says.
const NODE: &str = "Node";

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
        cluster_scoped.insert(Kind(NODE.to_owned()));
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
                    watches.push(of(Some(Namespace(CLUSTER_EVENTS.to_owned()))));
                }
                Reach::Namespaces(namespaces) => {
                    watches.extend(namespaces.iter().map(|it| of(Some(it.clone()))));
                }
                Reach::Cluster { .. } => watches.push(of(None)),
            }
        }
        watches
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

/// A kind as manifests spell it: `[A-Z][A-Za-z0-9]*`, at most 63 bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind(String);

/// A namespace: a DNS label, which is 1 to 63 of `a` to `z`, `0` to `9` and `-`,
/// with no `-` at its ends.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Namespace(String);

/// A pattern of namespaces: what a namespace is made of, `*` for any number of
/// characters, `?` for one.
#[derive(Clone)]
pub struct Glob {
    text: String,
    /// Bit `n` of the state: the first `n` characters of the pattern, stars aside,
    /// are matched. This is the bit when all of them are.
    done: u64,
    /// The states at which a star stands, so that any character leaves them as
    /// they are.
    stars: u64,
    /// For each character of a namespace, the states that it leads on from.
    steps: [u64; N_CHARS],
}

/// How many characters a DNS label, or a kind, may have.
const LABEL_MAX_BYTES: usize = 63;

/// How much of a wrong text an error shows.
const SHOWN_MAX_BYTES: usize = 64;

/// How many different characters a namespace may be made of.
const N_CHARS: usize = 37;

/// Which of the characters of a namespace it is.
fn char_idx(byte: u8) -> Option<usize> {
    match byte {
        b'a'..=b'z' => Some(usize::from(byte - b'a')),
        b'0'..=b'9' => Some(26 + usize::from(byte - b'0')),
        b'-' => Some(36),
        _ => None,
    }
}

impl Glob {
    /// Whether it matches the whole name. What can be no namespace is not matched.
    #[must_use]
    pub fn matches(&self, namespace: &str) -> bool {
        if LABEL_MAX_BYTES < namespace.len() {
            return false;
        }
        // Every state that the characters so far may have led to, all at once.
        let mut states = 1;
        for byte in namespace.bytes() {
            let Some(idx) = char_idx(byte) else {
                return false;
            };
            states = (states & self.stars) | ((states & self.steps[idx]) << 1);
        }
        states & self.done != 0
    }
}

impl FromStr for Glob {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let mut glob = Self {
            text: text.to_owned(),
            done: 1,
            stars: 0,
            steps: [0; N_CHARS],
        };
        // A run of stars is as good as one, and makes the pattern no longer.
        let n_chars = text.bytes().filter(|it| *it != b'*').count();
        if text.is_empty() || LABEL_MAX_BYTES < n_chars || 2 * LABEL_MAX_BYTES < text.len() {
            return Err(NameError::new(NameOf::Glob, text));
        }
        for byte in text.bytes() {
            match (byte, char_idx(byte)) {
                (b'*', _) => {
                    glob.stars |= glob.done;
                    continue;
                }
                (b'?', _) => glob.steps.iter_mut().for_each(|it| *it |= glob.done),
                (_, Some(idx)) => glob.steps[idx] |= glob.done,
                (_, None) => return Err(NameError::new(NameOf::Glob, text)),
            }
            glob.done <<= 1;
        }
        Ok(glob)
    }
}

impl FromStr for Kind {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let is_kind = text.starts_with(|it: char| it.is_ascii_uppercase())
            && text.bytes().all(|it| it.is_ascii_alphanumeric())
            && text.len() <= LABEL_MAX_BYTES;
        is_kind
            .then(|| Self(text.to_owned()))
            .ok_or_else(|| NameError::new(NameOf::Kind, text))
    }
}

impl FromStr for Namespace {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let is_label = (1..=LABEL_MAX_BYTES).contains(&text.len())
            && text.bytes().all(|it| char_idx(it).is_some())
            && !text.starts_with('-')
            && !text.ends_with('-');
        is_label
            .then(|| Self(text.to_owned()))
            .ok_or_else(|| NameError::new(NameOf::Namespace, text))
    }
}

/// What a name was to be the name of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NameOf {
    Kind,
    Namespace,
    Glob,
}

/// Why a text is no kind, namespace or glob, and what to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameError {
    of: NameOf,
    /// The text, bounded, on one line.
    shown: String,
    /// What it may have been meant to be.
    meant: Option<String>,
}

impl NameError {
    fn new(of: NameOf, text: &str) -> Self {
        let meant = match of {
            NameOf::Kind => {
                let mut chars = text.chars();
                let first = chars.next().map(|it| it.to_ascii_uppercase());
                let spelled: String = first.into_iter().chain(chars).collect();
                (spelled != text && spelled.parse::<Kind>().is_ok()).then_some(spelled)
            }
            NameOf::Namespace | NameOf::Glob => None,
        };
        Self {
            of,
            shown: Visible(cut(text, SHOWN_MAX_BYTES)).to_string(),
            meant,
        }
    }
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = &self.shown;
        match (self.of, &self.meant) {
            (NameOf::Kind, Some(meant)) => {
                write!(f, "`{shown}` is no kind: write `{meant}`, as manifests do")
            }
            (NameOf::Kind, None) => write!(
                f,
                "`{shown}` is no kind: write it as manifests do, a capital and then letters and \
                 digits, for example `Pod`"
            ),
            (NameOf::Namespace, _) if shown.contains(['*', '?']) => write!(
                f,
                "`{shown}` is a glob, no namespace: write it into `cluster: {{include: [...]}}` \
                 instead"
            ),
            (NameOf::Namespace, _) => write!(
                f,
                "`{shown}` is no namespace: write 1 to {LABEL_MAX_BYTES} lower-case letters, \
                 digits and `-`, with no `-` at either end"
            ),
            (NameOf::Glob, _) => write!(
                f,
                "`{shown}` can match no namespace: write 1 to {LABEL_MAX_BYTES} lower-case \
                 letters, digits and `-`, with `*` for any characters and `?` for one"
            ),
        }
    }
}

impl std::error::Error for NameError {}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Glob").field(&self.text).finish()
    }
}

impl PartialEq for Glob {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Glob {}

impl Kind {
    /// The kind as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Namespace {
    /// The namespace as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

// For look-ups in sets: both order and compare as their text does.
impl std::borrow::Borrow<str> for Kind {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl std::borrow::Borrow<str> for Namespace {
    fn borrow(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests;
