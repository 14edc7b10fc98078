//! What is told of each plugin: which version serves, what is on its way, and what failed.
//!
//! Names, digests, states and reason codes: what an operator or a plugin's author chose, and
//! words of ours. Why exactly something failed is in the log, since that may quote settings.
//!
//! What bounds it: an entry for each file, and the last [`GONE_MAX`] versions that are over. It
//! decides nothing.

use std::{
    collections::{BTreeMap, VecDeque},
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::{Plugin, state::State};
use crate::{
    outcome::{Generation, Provenance},
    reason::Reason,
};

/// How many versions are told of that serve no more.
pub const GONE_MAX: usize = 16;

/// A version of a plugin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Version {
    /// What it calls itself; none if it was not asked yet.
    pub name: Option<Box<str>>,
    /// Its version, likewise.
    pub version: Option<Box<str>>,
    /// The digest of its component, if that could be read.
    pub digest: Option<Box<str>>,
    /// The digest of its settings, likewise.
    pub settings_digest: Option<Box<str>>,
    /// The contract that it was built for, if that is known.
    pub wit: Option<Box<str>>,
    /// The set that it was new in, if it ever served.
    pub generation: Option<Generation>,
}

impl Version {
    pub(super) fn of(provenance: &Provenance, generation: Option<Generation>) -> Self {
        Self {
            name: Some(provenance.name.clone()),
            version: Some(provenance.version.clone()),
            digest: Some(provenance.digest.clone()),
            settings_digest: Some(provenance.settings_digest.clone()),
            wit: Some(provenance.wit.clone()),
            generation,
        }
    }

    /// Of which only the digests are known.
    pub(super) fn tried(digests: Option<&[String; 2]>) -> Self {
        let digest = |idx: usize| digests.map(|it| it[idx].as_str().into());
        Self {
            digest: digest(0),
            settings_digest: digest(1),
            ..Self::default()
        }
    }
}

/// What is told of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// Its name, without its end.
    pub file: String,
    /// What serves.
    pub serving: Option<(Version, Serving)>,
    /// What the file holds, if that is not what serves.
    pub newest: Option<(Version, State)>,
}

/// How well a version serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Serving {
    /// Active, or quarantined.
    pub state: State,
    /// Whether it answered otherwise when it was asked again.
    pub is_impure: bool,
}

impl Default for Serving {
    fn default() -> Self {
        Self {
            state: State::Active,
            is_impure: false,
        }
    }
}

impl Serving {
    /// What is not well with it, if anything is.
    #[must_use]
    pub fn reason(self) -> Option<Reason> {
        let impure = self.is_impure.then_some(Reason::Impure);
        self.state.reason().or(impure)
    }
}

#[derive(Debug, Default)]
struct Entries {
    files: BTreeMap<PathBuf, Entry>,
    gone: VecDeque<(Version, State)>,
    n_swaps: u64,
    n_failures: BTreeMap<Reason, u64>,
}

/// What is told of all plugins.
#[derive(Debug, Default)]
pub struct Board(Mutex<Entries>);

impl Board {
    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, path: &Path, change: impl FnOnce(&mut Entry)) {
        let mut entries = self.lock();
        let entry = entries
            .files
            .entry(path.to_owned())
            .or_insert_with(|| Entry::of(path));
        change(entry);
    }

    pub(super) fn loading(&self, path: &Path, version: &Version, state: State) {
        self.change(path, |it| it.newest = Some((version.clone(), state)));
    }

    pub(super) fn serves(&self, path: &Path, version: Version) {
        let mut before = None;
        self.change(path, |it| {
            it.newest = None;
            before = it.serving.replace((version, Serving::default()));
        });
        self.lock().n_swaps += 1;
        if let Some((version, _)) = before {
            self.gone(version);
        }
    }

    pub(super) fn failed(&self, path: &Path, version: Version, state: State) {
        if let Some(reason) = state.reason() {
            *self.lock().n_failures.entry(reason).or_default() += 1;
        }
        self.change(path, |it| it.newest = Some((version, state)));
    }

    /// What serves is what the file holds.
    pub(super) fn settled(&self, path: &Path) {
        self.change(path, |it| it.newest = None);
    }

    pub(super) fn forget(&self, path: &Path) {
        self.lock().files.remove(path);
    }

    /// A plugin serves no more, and no other of its name does.
    pub(super) fn left(&self, plugin: &Plugin) {
        self.gone(Version::of(&plugin.provenance, Some(plugin.generation)));
        self.lock().n_swaps += 1;
    }

    fn gone(&self, version: Version) {
        let mut entries = self.lock();
        entries.gone.push_back((version, State::Draining));
        if GONE_MAX < entries.gone.len() {
            entries.gone.pop_front();
        }
    }

    /// The versions that are in calls yet, of those that serve no more.
    pub fn drained(&self, mut is_in_a_call: impl FnMut(&Version) -> bool) {
        for (version, state) in &mut self.lock().gone {
            if *state == State::Draining && !is_in_a_call(version) {
                *state = state.next(State::Retired).unwrap_or(*state);
            }
        }
    }

    /// How well a plugin that serves does so, by its name. Says so in the log when that changes.
    pub fn health(&self, name: &str, quarantine: Option<Reason>) {
        for entry in self.lock().files.values_mut() {
            let Some((version, Serving { state, .. })) = &mut entry.serving else {
                continue;
            };
            let is_quarantined = matches!(state, State::Quarantined(_));
            if version.name.as_deref() != Some(name) || is_quarantined == quarantine.is_some() {
                continue;
            }
            let next = quarantine.map_or(State::Active, State::Quarantined);
            if let Some(reason) = quarantine {
                tracing::error!(
                    classifier = name,
                    "quarantined, since its calls fail: {reason}; it is tried again now and then"
                );
            } else {
                tracing::info!(classifier = name, "well again, and out of quarantine");
            }
            *state = state.next(next).unwrap_or(*state);
        }
    }

    /// A version that serves answered otherwise when it was asked again.
    pub fn impure(&self, name: &str, generation: Generation) {
        for entry in self.lock().files.values_mut() {
            if let Some((version, serving)) = &mut entry.serving
                && version.name.as_deref() == Some(name)
                && version.generation == Some(generation)
            {
                serving.is_impure = true;
            }
        }
    }

    /// What is told, by file.
    #[must_use]
    pub fn entries(&self) -> Vec<Entry> {
        self.lock().files.values().cloned().collect()
    }

    /// The versions that serve no more, the oldest first.
    #[must_use]
    pub fn over(&self) -> Vec<(Version, State)> {
        self.lock().gone.iter().cloned().collect()
    }

    /// How often a plugin came, was replaced, or went.
    #[must_use]
    pub fn n_swaps(&self) -> u64 {
        self.lock().n_swaps
    }

    /// How often a version failed to load, by why.
    #[must_use]
    pub fn n_failures(&self) -> BTreeMap<Reason, u64> {
        self.lock().n_failures.clone()
    }
}
