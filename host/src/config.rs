//! What an operator decides: the configuration file of `portent run`.
//!
//! Whoever mends a file wants all of its faults at once, each with its place and
//! with what to write instead. A derived deserializer stops at the first, so the
//! file is parsed into a tree that knows its places (`yaml`), and that is read key
//! by key. Each key is declared once (`keys`); what reads it, what prints it, the
//! JSON Schema, the page in `docs` and the difference between two configurations
//! all follow from that.
//!
//! It reads no environment, asks nothing of a cluster and looks at no path that
//! it names. A file may have 1 MiB, and no aliases, so that it is no more than
//! it looks; no text of it is shown at length or as it is.

use std::{
    fmt,
    fs::File,
    io::{self, Read as _},
    num::NonZeroUsize,
    path::Path,
};

use crate::{sandbox::Limits, scope::Scope, text::Visible, yaml};

mod human;
mod keys;
mod print;
mod problems;
mod read;
mod schema;
mod value;

pub use human::{Period, Size};
pub use keys::{
    AdminConfig, ChangesConfig, Key, LogConfig, LogFormat, LogLevel, OutcomesConfig, PluginsConfig,
    PodsConfig, QuarantineConfig, StoreConfig, TakenUp, WatchConfig,
};
pub use problems::{Problem, Problems};
pub use yaml::Place;

use keys::keys;

/// The whole of a configuration: valid, with every default filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Whose Events are asked for.
    pub scope: Scope,
    /// Where the plugins are.
    pub plugins: PluginsConfig,
    /// Which Pods are watched.
    pub pods: PodsConfig,
    /// What is kept of the Events.
    pub store: StoreConfig,
    /// What is kept of what plugins say.
    pub outcomes: OutcomesConfig,
    /// How the API server is watched.
    pub watch: WatchConfig,
    /// How many threads classify, from 1 to 16; as many as there are processors, 16
    /// at most, if none.
    pub workers: Option<NonZeroUsize>,
    /// What plugins may use.
    pub limits: Limits,
    /// What is served to whoever runs it.
    pub admin: AdminConfig,
    /// Where changes of outcomes go.
    pub changes: ChangesConfig,
    /// What is logged.
    pub log: LogConfig,
}

/// Bytes of a configuration file. A `ConfigMap`, where such files live, holds 1 MiB.
const FILE_MAX_BYTES: u64 = 1 << 20;

impl Config {
    /// Reads a configuration file.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, or everything that is wrong with what it says.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let name = || Visible(&path.display().to_string()).to_string();
        let read = || -> io::Result<Vec<u8>> {
            let mut bytes = Vec::new();
            // One more than it may have, so that what is too long is not cut in silence.
            let mut file = File::open(path)?.take(FILE_MAX_BYTES + 1);
            file.read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        let bytes = read().map_err(|source| ConfigError::Unreadable {
            file: name(),
            source,
        })?;
        Self::parse(&bytes).map_err(|problems| ConfigError::Invalid {
            file: name(),
            problems,
        })
    }

    /// Makes a configuration of the text of a file.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with it, in the order of the text.
    pub fn parse(text: &[u8]) -> Result<Self, Problems> {
        let tree = yaml::parse(text, FILE_MAX_BYTES).map_err(|it| {
            let mut problems = Problems::default();
            problems.add(it.place, "", &it.what);
            problems
        })?;
        read::config(&tree)
    }

    /// A configuration with every default, of a made-up scope and folder.
    ///
    /// # Panics
    ///
    /// Never: that it is valid is held by a test.
    #[must_use]
    pub fn example() -> Self {
        Self::parse(EXAMPLE).expect("a test holds that it is valid")
    }

    /// Every key that a file may have, in the order in which they are explained.
    #[must_use]
    pub fn keys() -> &'static [Key] {
        keys()
    }

    /// Which keys of `next` say something else than those of this configuration.
    #[must_use]
    pub fn diff(&self, next: &Self) -> Diff {
        let mut diff = Diff::default();
        for key in keys() {
            if key.shown(self) != key.shown(next) {
                match key.taken_up {
                    TakenUp::Live => diff.live.push(key.path),
                    TakenUp::Restart => diff.restart.push(key.path),
                }
            }
        }
        diff
    }
}

/// What has to be said at the least, and is placeheld where there is nobody to say it.
const EXAMPLE: &[u8] = b"\
scope:
  namespaces: [my-namespace]
plugins:
  directory: /plugins
";

/// The keys, by their paths, in which two configurations differ.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diff {
    /// Those whose change is taken up at once.
    pub live: Vec<&'static str>,
    /// Those whose change needs a restart.
    pub restart: Vec<&'static str>,
}

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file could not be read.
    #[error("cannot read {file}")]
    Unreadable {
        /// Its path, on one line.
        file: String,
        /// Why.
        source: io::Error,
    },
    /// It was read, and this is wrong with it. Printed, each problem is a line
    /// that begins with `FILE:LINE:COLUMN:`.
    #[error("{}", Lines(file, problems))]
    Invalid {
        /// Its path, on one line.
        file: String,
        /// What is wrong.
        problems: Problems,
    },
}

struct Lines<'a>(&'a str, &'a Problems);

impl fmt::Display for Lines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(file, problems) = self;
        let n = problems.n();
        write!(f, "{file} has {n} problem{}", if n == 1 { "" } else { "s" })?;
        for it in problems.shown() {
            write!(f, "\n{file}:{it}")?;
        }
        let n_more = n - problems.shown().len();
        if 0 < n_more {
            write!(f, "\n{file}: and {n_more} more")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
