//! The plugins that are loaded: read from a folder, admitted, in one set.
//!
//! A plugin is a file `NAME.wasm`; `NAME.yaml` beside it holds its settings. A
//! plugin that cannot be loaded costs only itself: what is wrong with it is
//! reported, and the others serve. The set never changes once it is made: who goes on
//! loading (`loader`) makes another of it.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use sha2::{Digest as _, Sha256};

mod loader;
pub mod schema;
mod settings;
mod source;
mod state;
mod status;

pub use loader::{Found, Loader, Looking, Terms};
pub use source::Why;
pub use state::{Impossible, State};
pub use status::{Board, Entry, GONE_MAX, Serving, Version};

use settings::Settings;

use crate::{
    outcome::{Generation, Provenance},
    reason::Reason,
    sandbox::{Description, Guest, LoadFailure, Reads, Sandbox},
    text::hex,
};

/// A loaded plugin.
#[derive(Debug)]
pub struct Plugin {
    /// The file that it came from.
    pub path: PathBuf,
    /// Bytes of that file.
    pub n_bytes: usize,
    /// Who it is, exactly.
    pub provenance: Arc<Provenance>,
    /// What classifies.
    pub guest: Guest,
    /// The set that it was new in. What an older one of its name says is late.
    pub generation: Generation,
}

impl Plugin {
    /// What it says that it is.
    #[must_use]
    pub fn description(&self) -> &Description {
        self.guest.description()
    }

    /// Reads and admits a plugin, with the settings beside it.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn load(sandbox: &Sandbox, path: &Path) -> Result<Self, LoadFailure> {
        let bytes = read(path, sandbox.limits().component_bytes)?;
        let settings = Settings::read(path)?;
        let go_with = |schema: &str| settings.go_with(sandbox, schema);
        let guest = sandbox.admit_in_steps(&bytes, settings.given(&go_with), &mut |_| {})?;
        let description = guest.description();
        let provenance = Provenance {
            name: description.name.as_str().into(),
            version: description.version.as_str().into(),
            digest: digest(&bytes).into(),
            settings_digest: digest(settings.json().as_bytes()).into(),
            wit: guest.wit().into(),
        };
        let n_bytes = bytes.len();
        Ok(Self {
            path: path.to_owned(),
            n_bytes,
            provenance: Arc::new(provenance),
            guest,
            generation: Generation(1),
        })
    }
}

/// All plugins of a folder, in the order of their file names.
#[derive(Debug, Default)]
pub struct PluginSet {
    /// Those that serve.
    pub plugins: Vec<Arc<Plugin>>,
    /// Those that could not be loaded, and why.
    pub failed: Vec<(PathBuf, LoadFailure)>,
    /// Which set of the process this is.
    pub generation: Generation,
}

impl PluginSet {
    /// The labels that any of them names among what it reads, each once.
    #[must_use]
    pub fn labels_read(&self) -> Vec<String> {
        let reads = self.plugins.iter().map(|it| &it.description().reads);
        let names = reads.flat_map(Reads::names);
        let labels = names.filter_map(|it| it.strip_prefix("subject.labels/"));
        let labels: BTreeSet<_> = labels.map(str::to_owned).collect();
        labels.into_iter().collect()
    }

    /// Loads every `*.wasm` of a folder.
    ///
    /// # Errors
    ///
    /// If the folder cannot be read. A plugin that cannot be loaded is no error:
    /// it is among the [`failed`](Self::failed).
    pub fn load(sandbox: &Sandbox, folder: &Path) -> io::Result<Self> {
        let paths = source::plugin_files(folder)?;
        let mut set = Self {
            generation: Generation(1),
            ..Self::default()
        };
        for path in paths {
            let loaded = Plugin::load(sandbox, &path).and_then(|plugin| {
                let name = &plugin.provenance.name;
                match set.plugins.iter().find(|it| it.provenance.name == *name) {
                    None => Ok(plugin),
                    Some(first) => Err(loader::name_clash(name, &first.path)),
                }
            });
            match loaded {
                Ok(plugin) => set.plugins.push(Arc::new(plugin)),
                Err(failure) => set.failed.push((path, failure)),
            }
        }
        Ok(set)
    }
}

impl PluginSet {
    /// Puts the plugins of these names first, in this order: of two that have an
    /// opinion the first has the last word. The others follow by their file names.
    pub fn prefer(&mut self, order: &[String]) {
        let place = |it: &Arc<Plugin>| {
            let name = &*it.provenance.name;
            order.iter().position(|it| it == name).unwrap_or(usize::MAX)
        };
        self.plugins.sort_by_key(place);
    }
}

/// Reads a file, but no more of it than the limit: a plugin folder may hold
/// anything, and a large file is told by its length before it is in memory.
fn read(path: &Path, limit: usize) -> Result<Vec<u8>, LoadFailure> {
    let failed = |err: io::Error| LoadFailure::new(Reason::ReadFailed, err.to_string());
    let file = fs::metadata(path).map_err(failed)?;
    // A pipe or a device may have no end.
    if !file.is_file() {
        let message = "it is no regular file";
        return Err(LoadFailure::new(Reason::ReadFailed, message));
    }
    let (n_bytes, limit) = (file.len(), u64::try_from(limit).unwrap_or(u64::MAX));
    if limit < n_bytes {
        let message = format!("{n_bytes} bytes, the limit component-bytes is {limit}");
        return Err(LoadFailure::new(Reason::TooLarge, message));
    }
    fs::read(path).map_err(failed)
}

fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", hex(&Sha256::digest(bytes)))
}

#[cfg(test)]
mod tests;
