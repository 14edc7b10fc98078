//! Names that cannot be wrong: kinds, namespaces, and globs of the latter.

use std::{fmt, str::FromStr};

use crate::text::{Visible, cut};

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

/// How many characters a DNS subdomain may have.
const SUBDOMAIN_MAX_BYTES: usize = 253;

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

/// Whether it may stand between the dots of a domain; of how long that is, Kubernetes says nothing.
fn is_part(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|it| char_idx(it).is_some())
        && !text.starts_with('-')
        && !text.ends_with('-')
}

/// Whether it is a DNS subdomain, as Kubernetes sees it.
pub(super) fn is_subdomain(text: &str) -> bool {
    text.len() <= SUBDOMAIN_MAX_BYTES && text.split('.').all(is_part)
}

impl FromStr for Namespace {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let is_namespace = is_part(text) && text.len() <= LABEL_MAX_BYTES;
        is_namespace
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
    /// The kind that is cluster-scoped whatever the configuration says.
    pub(super) fn node() -> Self {
        Self("Node".to_owned())
    }

    /// The kind as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Namespace {
    /// Where the Events about kinds without a namespace are.
    pub(super) fn of_cluster_events() -> Self {
        Self("default".to_owned())
    }

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
