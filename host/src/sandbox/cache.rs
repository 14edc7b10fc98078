//! Compiled code on a disk, so that a start compiles nothing.
//!
//! Code in here is run as it is, so the folder is this user's alone: one that others may write to,
//! or that is another's, is not used, nor is such a file in it. An entry says what it was made of
//! (component, engine, version, processor) and has a checksum. What is not exactly that is a miss:
//! it is counted by why, compiled anew and written over. So a cache can be cut, scrambled, mixed up
//! or removed, and costs time. It protects from accidents and from other users, and not from this
//! one, who could as well replace the program.
//!
//! Several processes may share a folder: an entry appears as a whole, under its name.
//!
//! What bounds it: the bytes of its entries ([`Cache::BYTES`]). What was used longest ago goes first.
//! A folder that cannot be written costs only itself, and is told of once.

use std::{
    ffi::OsStr,
    fmt::Write as _,
    fs::{self, DirBuilder, File, Metadata},
    hash::{Hash as _, Hasher},
    io::{self, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _},
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::{Duration, SystemTime},
};

use sha2::{Digest as _, Sha256};
use wasmtime::Engine;

use crate::text::Visible;

/// Why code was not taken from the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Miss {
    /// There is none.
    Absent,
    /// It is not what was written, or not all of it.
    Damaged,
    /// It was made of something else, or by another engine.
    Foreign,
    /// Others may have written it.
    Untrusted,
    /// The system does not hand it out.
    Unreadable,
}

impl Miss {
    /// All of them.
    pub const ALL: &[Self] = &[
        Self::Absent,
        Self::Damaged,
        Self::Foreign,
        Self::Untrusted,
        Self::Unreadable,
    ];

    /// The word, as it stands in labels.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::Damaged => "damaged",
            Self::Foreign => "foreign",
            Self::Untrusted => "untrusted",
            Self::Unreadable => "unreadable",
        }
    }
}

/// What an entry is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key([u8; 32]);

impl Key {
    /// Of a component, by its digest, and what would compile it here.
    pub(super) fn new(component: &[u8; 32], engine: &Engine) -> Self {
        let mut all = Digesting(Sha256::new());
        all.write(component);
        engine.precompile_compatibility_hash().hash(&mut all);
        env!("CARGO_PKG_VERSION").hash(&mut all);
        std::env::consts::ARCH.hash(&mut all);
        std::env::consts::OS.hash(&mut all);
        Self(all.0.finalize().into())
    }

    fn name(&self) -> String {
        let mut name = String::new();
        for it in self.0 {
            // Text takes whatever is written.
            write!(name, "{it:02x}").ok();
        }
        name + ENDING
    }
}

/// Hashes so that two that agree are the same, by whatever compiler this was built.
struct Digesting(Sha256);

impl Hasher for Digesting {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        let digest = self.0.clone().finalize();
        digest.first_chunk().map_or(0, |it| u64::from_le_bytes(*it))
    }
}

const ENDING: &str = ".code";

/// What a file has that is being written.
const UNFINISHED: &str = ".part";

/// Nobody writes for longer. What is older was left behind.
const UNFINISHED_MAX: Duration = Duration::from_mins(10);

/// What stands before the code: what this is, what it is made of, its length and its checksum.
const MAGIC: &[u8; 16] = b"portent code 1\n\0";
const HEADER_BYTES: usize = MAGIC.len() + 32 + 8 + 32;

fn header(key: &Key, code: &[u8]) -> Vec<u8> {
    let n_bytes = u64::try_from(code.len()).unwrap_or(u64::MAX);
    let checksum = Sha256::digest(code);
    [&MAGIC[..], &key.0, &n_bytes.to_le_bytes(), &checksum].concat()
}

/// A folder of compiled code.
#[derive(Debug)]
pub struct Cache {
    folder: PathBuf,
    max_bytes: u64,
    has_told: AtomicBool,
}

impl Cache {
    /// Bytes that a cache may have: some thirty guests in JavaScript or Python, and thousands in Rust.
    pub const BYTES: u64 = 512 << 20;

    /// The cache in this folder, which is made if it is not there, with so many bytes at most.
    #[must_use]
    pub fn new(folder: PathBuf, max_bytes: u64) -> Self {
        let cache = Self {
            folder,
            max_bytes,
            has_told: AtomicBool::new(false),
        };
        if cache.is_ours() {
            cache.tidy(None);
        }
        cache
    }

    /// Says, once, why it is of no use.
    fn tell(&self, why: &dyn std::fmt::Display) {
        if !self.has_told.swap(true, Relaxed) {
            tracing::warn!(
                folder = %Visible(&self.folder.display().to_string()),
                "the cache of compiled plugins (plugins.cache) {why}; plugins are compiled as if there were none"
            );
        }
    }

    /// Whether the folder is one that only this user may write to. Makes it if it is not there.
    fn is_ours(&self) -> bool {
        let made = DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.folder);
        let found = made.and_then(|()| fs::metadata(&self.folder));
        match found {
            Ok(it) if is_private(&it) => true,
            Ok(it) => {
                self.tell(&format_args!(
                    "is not used, since others may write to it: it has the mode {:03o} and the owner {}, \
                     and has to have 700 and {}",
                    it.mode() & 0o777,
                    it.uid(),
                    rustix::process::geteuid().as_raw()
                ));
                false
            }
            Err(err) => {
                self.tell(&format_args!("cannot be used: {err}"));
                false
            }
        }
    }

    /// The code of this key, if there is some that can be trusted.
    pub(super) fn get(&self, key: &Key) -> Result<Vec<u8>, Miss> {
        if !self.is_ours() {
            return Err(Miss::Untrusted);
        }
        let path = self.folder.join(key.name());
        let of = |err: io::Error| match err.kind() {
            io::ErrorKind::NotFound => Miss::Absent,
            _ => Miss::Unreadable,
        };
        // The folder is ours, so that nobody exchanges the file between two looks at it.
        let found = fs::symlink_metadata(&path).map_err(of)?;
        if !found.is_file() || !is_private(&found) {
            self.tell(&format_args!(
                "has an entry that others may have written, {}",
                key.name()
            ));
            return Err(Miss::Untrusted);
        }
        let header_bytes = HEADER_BYTES as u64;
        let code_bytes = found.len().checked_sub(header_bytes);
        let code_bytes = code_bytes.filter(|it| *it <= self.max_bytes);
        let code_bytes = code_bytes.ok_or(Miss::Damaged)?;
        let mut file = File::open(&path).map_err(of)?;
        let mut found = [0; HEADER_BYTES];
        file.read_exact(&mut found).map_err(|_| Miss::Damaged)?;
        let mut code = Vec::new();
        let room = usize::try_from(code_bytes).map_err(|_| Miss::Damaged)?;
        code.try_reserve_exact(room).map_err(|_| Miss::Unreadable)?;
        (&mut file)
            .take(code_bytes)
            .read_to_end(&mut code)
            .map_err(|_| Miss::Unreadable)?;
        let wanted = header(key, &code);
        if found != *wanted {
            let of_another = MAGIC.len()..MAGIC.len() + 32;
            let is_whole =
                found.starts_with(MAGIC) && found[of_another.end..] == wanted[of_another.end..];
            return Err(if is_whole {
                Miss::Foreign
            } else {
                Miss::Damaged
            });
        }
        // That it was used just now is for the order in which entries go.
        file.set_modified(now()).ok();
        Ok(code)
    }

    /// Keeps code.
    pub(super) fn put(&self, key: &Key, code: &[u8]) {
        let n_bytes = u64::try_from(HEADER_BYTES + code.len()).unwrap_or(u64::MAX);
        if self.max_bytes < n_bytes || !self.is_ours() {
            return;
        }
        // Room first, so that there is never more than there may be.
        self.tidy(Some((key, n_bytes)));
        if let Err(err) = self.write(key, code) {
            self.tell(&format_args!("cannot be written: {err}"));
        }
    }

    fn write(&self, key: &Key, code: &[u8]) -> io::Result<()> {
        // With the mode 600; it is removed if anything goes wrong.
        let mut file = tempfile::Builder::new()
            .suffix(UNFINISHED)
            .tempfile_in(&self.folder)?;
        file.write_all(&header(key, code))?;
        file.write_all(code)?;
        file.persist(self.folder.join(key.name()))?;
        Ok(())
    }

    /// Removes what was left behind, and what was used longest ago until there is room for what comes.
    fn tidy(&self, coming: Option<(&Key, u64)>) {
        let Ok(entries) = fs::read_dir(&self.folder) else {
            return;
        };
        let mut kept = Vec::new();
        for entry in entries.flatten() {
            let path = entry.path();
            let Ok(found) = entry.metadata() else {
                continue;
            };
            // What is not of our making is left alone.
            if !found.is_file() {
                continue;
            }
            let used = found.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            if has_ending(&path, UNFINISHED) {
                let age = now().duration_since(used).unwrap_or_default();
                if UNFINISHED_MAX < age {
                    fs::remove_file(&path).ok();
                }
            } else if has_ending(&path, ENDING) {
                kept.push((used, path, found.len()));
            }
        }
        kept.sort();
        // What comes takes the place of what has its name.
        let (replaced, coming) = match coming {
            Some((key, n_bytes)) => (self.folder.join(key.name()), n_bytes),
            None => (PathBuf::new(), 0),
        };
        let sum: u64 = kept.iter().map(|(.., n_bytes)| n_bytes).sum();
        let replaced_bytes = kept.iter().find(|(_, it, _)| *it == replaced);
        let mut sum = sum + coming - replaced_bytes.map_or(0, |it| it.2);
        for (_, path, n_bytes) in kept.into_iter().filter(|(_, it, _)| *it != replaced) {
            if sum <= self.max_bytes {
                break;
            }
            if fs::remove_file(&path).is_ok() {
                sum -= n_bytes;
            }
        }
    }
}

/// Whether something is this user's, and nobody else's to write.
fn is_private(it: &Metadata) -> bool {
    it.uid() == rustix::process::geteuid().as_raw() && it.mode() & 0o022 == 0
}

fn has_ending(path: &Path, ending: &str) -> bool {
    let name = path.file_name().map(OsStr::to_string_lossy);
    name.is_some_and(|it| it.ends_with(ending))
}

#[expect(
    clippy::disallowed_methods,
    reason = "files have the time of day at which they were used; nothing that comes out depends on it"
)]
fn now() -> SystemTime {
    SystemTime::now()
}

#[cfg(test)]
mod tests;
