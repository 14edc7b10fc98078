//! Every key, declared once: its name, type, default, range and meaning, and when
//! a change of it is taken up.
//!
//! What is declared here is all that there is. A file with another key is refused,
//! and the tables of others (docs, schema, difference) are made of this one.

use std::{
    fmt, net::SocketAddr, num::NonZeroUsize, ops::RangeInclusive, path::PathBuf, str::FromStr,
    sync::LazyLock,
};

use serde_json::{Map, Value as Json};

use super::{
    Config,
    human::{Period, Size},
    read::Reader,
    value::{Value, choice},
};
use crate::{
    scope::{LabelKey, LabelSelector},
    text::{Visible, cut},
};

mod by_hand;

/// When a changed key is taken up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakenUp {
    /// By the running process.
    Live,
    /// By the next one.
    Restart,
}

impl TakenUp {
    /// As it stands in the docs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Restart => "restart",
        }
    }
}

/// A key of the configuration, for whoever explains it.
#[derive(Clone, Debug)]
pub struct Key {
    /// Its name behind those of what it is in: `store.bytes`.
    pub path: &'static str,
    /// What it decides, in sentences.
    pub meaning: &'static str,
    /// What its value is: `a size`.
    pub form: String,
    /// What it is if it is not there; none if it has to be.
    pub default: Option<String>,
    /// What it may be, both ends included, if that is a range.
    pub range: Option<(String, String)>,
    /// When a change of it is taken up.
    pub taken_up: TakenUp,
    pub(super) schema: Map<String, Json>,
    show: fn(&Config) -> Option<String>,
}

impl Key {
    /// Its value in a configuration, as YAML on one line; none if it is not set.
    #[must_use]
    pub fn shown(&self, config: &Config) -> Option<String> {
        (self.show)(config)
    }

    fn of<T: Value>(
        path: &'static str,
        meaning: &'static str,
        taken_up: TakenUp,
        default: &T,
        range: Option<&RangeInclusive<T>>,
        show: fn(&Config) -> Option<String>,
    ) -> Self {
        Self {
            path,
            meaning: meaning.trim_ascii(),
            form: T::form(),
            default: Some(default.show()),
            range: range.map(|it| (it.start().show(), it.end().show())),
            taken_up,
            schema: T::schema(range),
            show,
        }
    }
}

/// A section declares its keys in the order of the file: whether a change is taken
/// up `Live` or by a `Restart`, the default, and the range if there is one.
macro_rules! section {
    ($(#[doc = $about:literal])+ $section:ident in $at:ident {
        $($(#[doc = $doc:literal])+
        $field:ident: $type:ty = $name:literal, $taken_up:ident, $default:expr $(, $range:expr)?;)+
    }) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $section {
            $(
                $(#[doc = $doc])+
                #[doc = concat!(
                    "\n\nDefault `", stringify!($default), "`", $(", range `", stringify!($range), "`",)?
                    ", a change: `", stringify!($taken_up), "`."
                )]
                pub $field: $type,
            )+
        }

        impl Default for $section {
            fn default() -> Self {
                Self { $($field: $default,)+ }
            }
        }

        impl $section {
            const ABOUT: (&str, &str) = (stringify!($at), concat!($($about),+).trim_ascii());

            fn keys(keys: &mut Vec<Key>) {
                $(
                    let range: [RangeInclusive<$type>; _] = [$($range)?];
                    keys.push(Key::of::<$type>(
                        concat!(stringify!($at), ".", $name),
                        concat!($($doc),+),
                        TakenUp::$taken_up,
                        &$default,
                        range.first(),
                        |it| Some(it.$at.$field.show()),
                    ));
                )+
            }

            /// Reads its keys; what is wrong is told, and the default instead.
            pub(super) fn read(reader: &mut Reader<'_>) -> Self {
                Self {
                    $($field: {
                        let range: [RangeInclusive<$type>; _] = [$($range)?];
                        let path = concat!(stringify!($at), ".", $name);
                        reader.value(path, $default, range.first())
                    },)+
                }
            }
        }
    };
}

/// Where the plugins are, and which of them has the last word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginsConfig {
    /// The folder of the plugins. It has to be set.
    pub directory: PathBuf,
    /// Names of plugins, the first before the others.
    pub order: Vec<String>,
    /// Digests that files have to have, each by the file's name.
    pub pins: Vec<Pin>,
    /// How often the folder is looked at.
    pub poll: Period,
    /// Bytes of compiled code of all plugins together.
    pub bytes: Size,
    /// The folder in which compiled code is kept, if it is.
    pub cache: Option<PathBuf>,
    /// How long a plugin is left alone whose calls fail.
    pub quarantine: QuarantineConfig,
}

/// How long a plugin is left alone whose calls fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuarantineConfig {
    /// At first.
    pub pause: Period,
    /// At most: it doubles up to this.
    pub pause_max: Period,
}

impl Default for QuarantineConfig {
    fn default() -> Self {
        Self {
            pause: Period::seconds(10),
            pause_max: Period::minutes(10),
        }
    }
}

/// The digest that the component of a file has to have.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pin {
    /// The file's name, without its end.
    pub file: String,
    /// `sha256:` and 64 digits.
    pub digest: String,
}

impl FromStr for Pin {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_digit = |it: char| it.is_ascii_digit() || ('a'..='f').contains(&it);
        let parts = text.split_once('=').filter(|(file, digest)| {
            let hex = digest.strip_prefix("sha256:").unwrap_or_default();
            !file.is_empty() && hex.len() == 64 && hex.chars().all(is_digit)
        });
        let (file, digest) = parts.ok_or_else(|| {
            let shown = Visible(cut(text, 128));
            format!(
                "`{shown}` is no pin: write `NAME=sha256:` and 64 digits, as `portent plugin check \
                 NAME.wasm` prints them"
            )
        })?;
        Ok(Self {
            file: file.to_owned(),
            digest: digest.to_owned(),
        })
    }
}

impl fmt::Display for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.file, self.digest)
    }
}

/// What the keys of [`PluginsConfig`] may be.
pub(super) mod plugins {
    use super::{Period, RangeInclusive, Size};

    pub(in crate::config) const POLL_DEFAULT: Period = Period::seconds(5);

    pub(in crate::config) const POLL: RangeInclusive<Period> =
        Period::seconds(1)..=Period::hours(1);

    /// Ours have 1 MiB each; one in Python has about 60.
    pub(in crate::config) const BYTES_DEFAULT: Size = Size::mib(256);

    pub(in crate::config) const BYTES: RangeInclusive<Size> = Size::mib(1)..=Size::gib(8);

    /// For both pauses of the quarantine.
    pub(in crate::config) const PAUSE: RangeInclusive<Period> =
        Period::seconds(1)..=Period::hours(24);
}

section! {
    /// What is kept of the Events.
    StoreConfig in store {
        /// Bytes of all records. What is over has to leave, of the namespace that holds most.
        bytes: Size = "bytes", Live, Size::mib(256), Size::mib(1)..=Size::gib(64);
        /// Records of one object. A noisy object loses its own and no other's.
        records_per_object: usize = "recordsPerObject", Live, 64, 1..=10_000;
        /// Objects that have a record. With one more, one of the namespace that holds most has to leave.
        objects: usize = "objects", Live, 1_000_000, 1..=100_000_000;
        /// How long a record is kept after the API server last confirmed it. At least the server's `--event-ttl` and 2m.
        time_to_live: Period = "timeToLive", Live, Period::minutes(65), Period::seconds(1)..=Period::hours(168);
        /// Bytes of an Event's note. The rest is cut, at the end of a character.
        note_bytes: Size = "noteBytes", Restart, Size::kib(2), Size::bytes(64)..=Size::kib(64);
    }
}

section! {
    /// What is kept of what plugins say.
    OutcomesConfig in outcomes {
        /// Bytes of all outcomes. What is over leaves, of the namespace that holds most: what has additional reasons only goes first.
        bytes: Size = "bytes", Live, Size::mib(32), Size::mib(1)..=Size::gib(64);
        /// How long findings and verdicts stay once their object is deleted.
        grace: Period = "grace", Restart, Period::hours(2), Period::minutes(1)..=Period::hours(168);
    }
}

/// Which Pods are watched, and what is kept of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodsConfig {
    /// Which Pods; none are watched if there is no selector.
    pub selector: Option<LabelSelector>,
    /// Keys of the labels that are kept, each once.
    pub labels: Vec<LabelKey>,
    /// How long the Events of a Pod stay that has ended or is deleted.
    pub grace: Period,
    /// How long an Event stays that comes before the Pod that it is about.
    pub wait: Period,
    /// How many Pods are kept.
    pub max: usize,
}

impl Default for PodsConfig {
    fn default() -> Self {
        Self {
            selector: None,
            labels: Vec::new(),
            grace: Period::minutes(10),
            wait: Period::seconds(30),
            max: 100_000,
        }
    }
}

/// What the keys of [`PodsConfig`] may be.
pub(super) mod pods {
    use super::{Period, RangeInclusive};

    /// How many keys of labels there may be.
    pub(in crate::config) const LABELS_MAX: usize = 32;

    /// Flyte's window: an Event may be as much later than the failure that it explains.
    pub(in crate::config) const GRACE: RangeInclusive<Period> =
        Period::minutes(2)..=Period::hours(24);

    pub(in crate::config) const WAIT: RangeInclusive<Period> =
        Period::seconds(1)..=Period::minutes(10);

    pub(in crate::config) const MAX: RangeInclusive<usize> = 1..=10_000_000;
}

section! {
    /// How the API server is watched.
    WatchConfig in watch {
        /// How long one watch lasts before the next goes on from where it ended, about: each draws its own.
        timeout: Period = "timeout", Restart, Period::minutes(45), Period::seconds(1)..=Period::hours(24);
        /// How long a page of a LIST may take.
        list_deadline: Period = "listDeadline", Restart, Period::seconds(60), Period::seconds(1)..=Period::hours(1);
        /// How long the answer to a watch may take to begin.
        start_deadline: Period = "startDeadline", Restart, Period::seconds(15), Period::seconds(1)..=Period::minutes(10);
        /// The longest pause after a failure. Pauses double up to it, and are drawn from zero to that.
        backoff_max: Period = "backoffMax", Restart, Period::seconds(30), Period::seconds(1)..=Period::hours(1);
        /// Events asked for in one page of a LIST.
        page_size: u32 = "pageSize", Restart, 500, 1..=10_000;
        /// LISTs at once.
        lists: usize = "lists", Restart, 4, 1..=64;
        /// Bytes of all large Events that are read at once, over all watches: one over 128Ki waits for its turn. At least one is.
        pages_bytes: Size = "pagesBytes", Restart, Size::mib(32), Size::mib(1)..=Size::gib(1);
        /// Bytes of one Event on the wire. A longer one is skipped and counted; etcd holds none that is.
        line_bytes: Size = "lineBytes", Restart, Size::mib(16), Size::kib(64)..=Size::mib(256);
    }
}

section! {
    /// What is served to whoever runs it.
    AdminConfig in admin {
        /// Where `/livez`, `/readyz` and `/metrics` are served, without authentication; port 0 is any that is free.
        listen: SocketAddr = "listen", Restart, SocketAddr::from(([127, 0, 0, 1], 8081));
    }
}

section! {
    /// Where changes of outcomes go.
    ChangesConfig in changes {
        /// Whether changes go to standard output, as JSON lines.
        stdout: bool = "stdout", Restart, true;
    }
}

section! {
    /// What is logged, to standard error.
    LogConfig in log {
        /// The least severe that is logged.
        level: LogLevel = "level", Live, LogLevel::Info;
        /// How a line is written.
        format: LogFormat = "format", Restart, LogFormat::Text;
    }
}

choice! {
    /// How severe a line of the log is.
    LogLevel {
        /// Someone must act.
        Error = "error",
        /// It was coped with.
        Warn = "warn",
        /// It begins, changes or ends.
        Info = "info",
        /// What happens again and again.
        Debug = "debug",
        /// Everything.
        Trace = "trace",
    }
}

choice! {
    /// How a line of the log is written.
    LogFormat {
        /// For people.
        Text = "text",
        /// For programs: an object.
        Json = "json",
    }
}

/// What `workers` may be: as many as there are pooled instances of a guest.
pub(super) const WORKERS: RangeInclusive<NonZeroUsize> =
    NonZeroUsize::MIN..=NonZeroUsize::MIN.saturating_add(15);

/// What holds keys, by its path, with what it is about.
pub(super) fn sections() -> Vec<(&'static str, &'static str)> {
    vec![
        (
            "scope",
            "Whose Events are asked for: either `namespaces` or `cluster`, times `kinds`.",
        ),
        (
            "scope.cluster",
            "All namespaces that the globs admit, each kind in one watch; `{}` is all of them.",
        ),
        (
            "plugins",
            "Where the plugins are, and which of them has the last word.",
        ),
        (
            "plugins.quarantine",
            "How long a plugin is left alone whose calls fail. What is to be classified waits meanwhile.",
        ),
        (
            "pods",
            "Which Pods are watched, so that only what is said of them, of their nodes and of their owners is kept.",
        ),
        StoreConfig::ABOUT,
        OutcomesConfig::ABOUT,
        WatchConfig::ABOUT,
        AdminConfig::ABOUT,
        ChangesConfig::ABOUT,
        LogConfig::ABOUT,
    ]
}

/// Every key, in the order of the file.
pub(super) fn keys() -> &'static [Key] {
    static KEYS: LazyLock<Vec<Key>> = LazyLock::new(table);
    &KEYS
}

fn table() -> Vec<Key> {
    let mut keys = by_hand::scope();
    keys.extend(by_hand::of_plugins());
    keys.extend(by_hand::pods());
    StoreConfig::keys(&mut keys);
    OutcomesConfig::keys(&mut keys);
    WatchConfig::keys(&mut keys);
    keys.push(by_hand::workers());
    keys.push(by_hand::limits());
    AdminConfig::keys(&mut keys);
    ChangesConfig::keys(&mut keys);
    LogConfig::keys(&mut keys);
    keys
}

/// The path of a key in what has this path.
pub(super) fn joined(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}

/// The names of what may be directly in what has this path.
pub(super) fn names_in(path: &str) -> Vec<&'static str> {
    let below = |key: &'static Key| match path {
        "" => Some(key.path),
        _ => key.path.strip_prefix(path)?.strip_prefix('.'),
    };
    let mut names: Vec<_> = keys()
        .iter()
        .filter_map(below)
        .filter_map(|it| it.split('.').next())
        .collect();
    names.dedup();
    names
}
