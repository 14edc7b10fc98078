//! Makes sets of plugins out of what a folder holds, away from the path of the Events.
//!
//! A version that is new is read, held against its pin, inspected, compiled, asked what it is,
//! given its settings and tried, all on this side; whoever classifies is only ever handed a set
//! in which everything serves. A version that fails on the way costs only itself: the one before
//! it stays in the set. What has the digests that it had is no new version, whatever happened to
//! its file.
//!
//! What bounds it: the size of a file, the limits of a load (`sandbox`), and the compiled code of
//! all plugins together. It never waits for whoever takes its sets, and nobody waits for it.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::{Path, PathBuf},
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use super::{
    Plugin, PluginSet, read,
    settings::Settings,
    source::{Marks, Source, Why},
    state::State,
    status::{Board, Entry, Version},
};
use crate::{
    outcome::{Generation, Provenance},
    reason::{Reason, Step},
    sandbox::{Compilations, LoadFailure, STACK_MIN_BYTES, Sandbox},
    text::Visible,
};

/// What an operator decides of loading.
#[derive(Clone, Debug)]
pub struct Terms {
    /// Names of plugins, the first before the others.
    pub order: Vec<String>,
    /// The digest that the component of a file has to have, by the file's name without its end.
    pub pins: BTreeMap<String, String>,
    /// Bytes of compiled code of all plugins together.
    pub compiled_bytes: usize,
}

impl Default for Terms {
    fn default() -> Self {
        Self {
            order: Vec::new(),
            pins: BTreeMap::new(),
            compiled_bytes: 256 << 20,
        }
    }
}

/// What is known of a file.
#[derive(Debug, Default)]
struct File {
    serving: Option<Arc<Plugin>>,
    /// The digests of what was tried last, of the component and of the settings.
    tried: Option<[String; 2]>,
    /// Why that does not serve.
    failure: Option<LoadFailure>,
}

/// Loads what a folder holds.
#[derive(Debug)]
pub struct Loader {
    sandbox: Sandbox,
    source: Source,
    terms: Terms,
    files: BTreeMap<PathBuf, File>,
    generation: Generation,
    board: Arc<Board>,
    /// Whether the folder could be read last.
    is_readable: bool,
}

/// What a look at the folder came to.
#[derive(Debug, Default)]
pub struct Found {
    /// The set, if it is another than before.
    pub set: Option<Arc<PluginSet>>,
    /// Whether it should be looked again soon.
    pub is_unsettled: bool,
    /// Whether a file is missing that was there, and not given up yet.
    pub is_missing: bool,
}

/// How long a file has to stay the same before it is read. Whoever copies a file writes more
/// often than that; whoever does not is found out by the parser, and looked at again.
const SETTLE: Duration = Duration::from_millis(250);

impl Loader {
    /// Nothing is loaded yet.
    #[must_use]
    pub fn new(sandbox: Sandbox, folder: PathBuf, terms: Terms) -> Self {
        Self {
            sandbox,
            source: Source::new(folder),
            terms,
            files: BTreeMap::new(),
            generation: Generation::default(),
            board: Arc::default(),
            is_readable: true,
        }
    }

    /// What is told of the plugins.
    #[must_use]
    pub fn board(&self) -> &Arc<Board> {
        &self.board
    }

    /// What became of the components that were to be compiled.
    #[must_use]
    pub fn compilations(&self) -> &Arc<Compilations> {
        self.sandbox.compilations()
    }

    /// Loads what is there now, without waiting for it to settle: there is nothing that it
    /// could disturb.
    ///
    /// # Errors
    ///
    /// If the folder cannot be read.
    pub fn first(&mut self) -> io::Result<Arc<PluginSet>> {
        self.source.look(Why::Regular)?;
        let looked = self.source.look(Why::Settling)?;
        for (path, _) in looked.settled {
            // It is not marked as taken: the next look reads it again, and so sees what was
            // written to it within a tick of the file system's clock.
            self.load(&path, &BTreeSet::new());
        }
        self.generation = Generation(1);
        Ok(self.set())
    }

    /// Looks at the folder, and loads what is new in it.
    pub fn look(&mut self, why: Why) -> Found {
        let looked = match self.source.look(why) {
            Ok(looked) => looked,
            Err(error) => {
                if self.is_readable {
                    let folder = self.source.folder().display().to_string();
                    tracing::error!(
                        folder = %Visible(&folder),
                        "the plugin folder cannot be read, so all plugins stay as they are: {error}"
                    );
                }
                self.is_readable = false;
                return Found::default();
            }
        };
        self.is_readable = true;
        let mut is_unsettled = looked.is_unsettled;
        let is_missing = looked.gone.len() < looked.missing.len();
        let missing: BTreeSet<_> = looked.missing.into_iter().collect();
        let mut is_changed = false;
        for (path, marks) in looked.settled {
            let is_other = self.load(&path, &missing);
            is_changed |= is_other;
            let has_failed_to_read = self.files.get(&path).is_some_and(|it| {
                let failure = it.failure.as_ref();
                failure.is_some_and(|it| it.reason == Reason::ReadFailed)
            });
            if Marks::of(&path) != marks {
                // It was written while it was read: what was read may be neither.
                is_unsettled = true;
            } else if !has_failed_to_read {
                self.source.taken(&path, marks);
            }
        }
        for path in looked.gone {
            let shown = shown(&path);
            if let Some(file) = self.files.remove(&path)
                && let Some(was) = file.serving
            {
                is_changed = true;
                tracing::info!(path = %shown, classifier = %was.provenance.name, "plugin removed");
                self.board.left(&was);
            }
            self.board.forget(&path);
        }
        if is_changed {
            self.retry();
        }
        let set = is_changed.then(|| {
            self.generation.0 += 1;
            self.set()
        });
        Found {
            set,
            is_unsettled,
            is_missing,
        }
    }

    /// Tries those again that there was no name or no room for.
    fn retry(&mut self) {
        let is_due = |it: &File| {
            let reason = it.failure.as_ref().map(|it| it.reason);
            matches!(reason, Some(Reason::NameClash | Reason::OverBudget))
        };
        let due: Vec<_> = self.files.iter().filter(|(_, it)| is_due(it)).collect();
        let due: Vec<_> = due.into_iter().map(|(path, _)| path.clone()).collect();
        for path in due {
            self.load(&path, &BTreeSet::new());
        }
    }

    fn set(&self) -> Arc<PluginSet> {
        let mut set = PluginSet {
            plugins: Vec::new(),
            failed: Vec::new(),
            generation: self.generation,
        };
        for (path, file) in &self.files {
            set.plugins.extend(file.serving.clone());
            if let Some(failure) = &file.failure {
                set.failed.push((path.clone(), failure.clone()));
            }
        }
        set.prefer(&self.terms.order);
        Arc::new(set)
    }

    /// Loads a file if it is not what it was, and says whether the set is another by it.
    /// What is not there at the moment keeps its name from nobody.
    fn load(&mut self, path: &Path, missing: &BTreeSet<PathBuf>) -> bool {
        let mut life = State::Loading(Step::Discovered);
        let mut tried = None;
        let loaded = self.try_load(path, missing, &mut life, &mut tried);
        let file = self.files.entry(path.to_owned()).or_default();
        let shown = shown(path);
        let (plugin, version) = match loaded {
            Ok(Attempt::Same) => return false,
            Ok(Attempt::Back) => {
                tracing::info!(path = %shown, "what serves is what the file holds again");
                file.failure = None;
                file.tried = tried;
                self.board.settled(path);
                return false;
            }
            Ok(Attempt::New(plugin)) => {
                let version = Version::of(&plugin.provenance, Some(plugin.generation));
                (Ok(plugin), version)
            }
            Err(failure) => {
                if file.failure.as_ref() == Some(&failure) && file.tried == tried {
                    return false;
                }
                let version = Version::tried(tried.as_ref());
                (Err(failure), version)
            }
        };
        file.tried = tried;
        let before = file.serving.clone();
        match plugin {
            Ok(plugin) => {
                let provenance = &plugin.provenance;
                // What was there at the start is told by nobody's change.
                if self.generation != Generation::default() {
                    tracing::info!(
                        path = %shown,
                        classifier = %provenance.name,
                        version = %Visible(&provenance.version),
                        digest = %provenance.digest,
                        settings_digest = %provenance.settings_digest,
                        "plugin loaded"
                    );
                }
                file.failure = None;
                file.serving = Some(Arc::clone(&plugin));
                self.board.serves(path, version);
                // Whose name it has taken over was not there.
                for (other, file) in &mut self.files {
                    let has_name = |it: &Arc<Plugin>| it.provenance.name == plugin.provenance.name;
                    if other != path && file.serving.as_ref().is_some_and(has_name) {
                        file.serving = None;
                        self.board.forget(other);
                    }
                }
                if let Some(before) = before
                    && before.provenance.name != plugin.provenance.name
                {
                    self.board.left(&before);
                }
                true
            }
            Err(failure) => {
                let state = life.next(State::Failed(failure.reason)).unwrap_or(life);
                let serves = match &before {
                    Some(it) => format!("; version {} serves on", Visible(&it.provenance.version)),
                    None => String::new(),
                };
                tracing::error!(path = %shown, after = %life, "plugin not loaded: {failure}{serves}");
                file.failure = Some(failure);
                self.board.failed(path, version, state);
                false
            }
        }
    }

    fn try_load(
        &self,
        path: &Path,
        missing: &BTreeSet<PathBuf>,
        life: &mut State,
        tried: &mut Option<[String; 2]>,
    ) -> Result<Attempt, LoadFailure> {
        let known = self.files.get(path);
        let bytes = read(path, self.sandbox.limits().component_bytes)?;
        let settings = Settings::read(path)?;
        let digests = [&bytes[..], settings.json().as_bytes()].map(super::digest);
        let is_tried = known.is_some_and(|it| it.tried.as_ref() == Some(&digests));
        let serves = known.and_then(|it| it.serving.as_ref()).is_some_and(|it| {
            let it = &it.provenance;
            *it.digest == *digests[0] && *it.settings_digest == *digests[1]
        });
        *tried = Some(digests.clone());
        match known.and_then(|it| it.failure.as_ref()) {
            None if serves => return Ok(Attempt::Same),
            Some(_) if serves => return Ok(Attempt::Back),
            // The same bytes fail the same way; but a name may be free now, or room.
            Some(failure)
                if is_tried
                    && !matches!(failure.reason, Reason::NameClash | Reason::OverBudget) =>
            {
                return Err(failure.clone());
            }
            _ => {}
        }
        let board = &self.board;
        let version = Version::tried(tried.as_ref());
        let mut passed = |step| {
            // A step that cannot follow is a bug of ours; what was known then stays.
            *life = life.next(State::Loading(step)).unwrap_or(*life);
            board.loading(path, &version, *life);
        };
        passed(Step::Read);
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        if let Some(pin) = self.terms.pins.get(&*stem)
            && *pin != digests[0]
        {
            return Err(LoadFailure::new(
                Reason::PinMismatch,
                format!(
                    "it is {}, and plugins.pins wants {pin} of {stem}: put that file back, or \
                     change the pin and restart",
                    digests[0]
                ),
            ));
        }
        passed(Step::Verified);
        let go_with = |schema: &str| settings.go_with(&self.sandbox, schema);
        let given = settings.given(&go_with);
        let guest = self.sandbox.admit_in_steps(&bytes, given, &mut passed)?;
        let others = || {
            let others = self.files.iter().filter(|(other, _)| *other != path);
            others
                .filter(|(other, _)| !missing.contains(*other))
                .filter_map(|(_, it)| it.serving.as_ref())
        };
        let description = guest.description();
        let name = &description.name;
        if let Some(first) = others().find(|it| *it.provenance.name == **name) {
            return Err(name_clash(name, &first.path));
        }
        let sum: usize = others().map(|it| it.guest.n_compiled_bytes()).sum();
        let sum = sum.saturating_add(guest.n_compiled_bytes());
        if self.terms.compiled_bytes < sum {
            return Err(LoadFailure::new(
                Reason::OverBudget,
                format!(
                    "with its {} bytes of compiled code all plugins have {sum}, and plugins.bytes is \
                     {}: raise it, or remove a plugin",
                    guest.n_compiled_bytes(),
                    self.terms.compiled_bytes
                ),
            ));
        }
        let [digest, settings_digest] = digests;
        let provenance = Provenance {
            name: name.as_str().into(),
            version: description.version.as_str().into(),
            digest: digest.into(),
            settings_digest: settings_digest.into(),
            wit: guest.wit().into(),
        };
        *life = life.next(State::Active).unwrap_or(*life);
        Ok(Attempt::New(Arc::new(Plugin {
            path: path.to_owned(),
            n_bytes: bytes.len(),
            provenance: Arc::new(provenance),
            guest,
            generation: Generation(self.generation.0 + 1),
        })))
    }
}

/// What came of looking into a file.
enum Attempt {
    /// It holds what serves.
    Same,
    /// It holds what serves again, after it held something that does not.
    Back,
    /// It holds a version that may serve.
    New(Arc<Plugin>),
}

/// Two plugins of one name.
pub(super) fn name_clash(name: &str, first: &Path) -> LoadFailure {
    LoadFailure::new(
        Reason::NameClash,
        format!(
            "it calls itself `{name}`, as {} does, which was loaded first; remove one",
            shown(first)
        ),
    )
}

fn shown(path: &Path) -> String {
    Visible(&path.display().to_string()).to_string()
}

/// A thread that looks at the folder for as long as this lives.
#[derive(Debug)]
pub struct Looking {
    ask: mpsc::Sender<()>,
}

impl Looking {
    /// Looks every so often. `on_set` is called, from that thread, with each set that is
    /// another than the one before.
    ///
    /// # Errors
    ///
    /// If the thread cannot be started.
    pub fn start(
        mut loader: Loader,
        every: Duration,
        on_set: impl Fn(Arc<PluginSet>) + Send + 'static,
    ) -> io::Result<Self> {
        let (ask, asked) = mpsc::channel();
        thread::Builder::new()
            .name("load".to_owned())
            // Loading calls guests.
            .stack_size(STACK_MIN_BYTES)
            .spawn(move || {
                let (mut why, mut pause) = (Why::Settling, every);
                loop {
                    let mut is_asked = false;
                    match asked.recv_timeout(pause) {
                        Ok(()) => {
                            is_asked = true;
                            // No two looks are closer: what is written between two within a
                            // tick of the file system's clock would look the same to both.
                            thread::sleep(SETTLE.min(every));
                            why = Why::Regular;
                        }
                        Err(mpsc::RecvTimeoutError::Timeout) => {}
                        Err(mpsc::RecvTimeoutError::Disconnected) => return,
                    }
                    let found = loader.look(why);
                    if let Some(set) = found.set {
                        on_set(set);
                    }
                    (why, pause) = if is_asked && found.is_missing {
                        // Whoever asks is done with what was to be done: it is looked twice.
                        (Why::Regular, SETTLE.min(every))
                    } else if found.is_unsettled {
                        (Why::Settling, SETTLE.min(every))
                    } else {
                        (Why::Regular, every)
                    };
                }
            })?;
        Ok(Self { ask })
    }

    /// Has it look now.
    pub fn look(&self) {
        // If the thread is gone the process is about to be.
        self.ask.send(()).ok();
    }
}

/// What a file's entry of the board is called.
pub(super) fn entry_name(path: &Path) -> String {
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    Visible(&name).to_string()
}

impl Entry {
    /// Of a file of which nothing is known yet.
    pub(super) fn of(path: &Path) -> Self {
        Self {
            file: entry_name(path),
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests;
