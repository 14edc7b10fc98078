//! Which files there are to read.
//!
//! All of it is known before anything is read: a name that is misspelt must not
//! come out after an hour. What is kept is a name for each file.

use std::{
    collections::HashSet,
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use super::{Origin, compressed::Decompressed};
use crate::text::Visible;

/// A path that is not there, or cannot be looked at.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {name}")]
pub struct NotFound {
    name: String,
    #[source]
    why: io::Error,
}

/// Inputs, in the order in which they are to be read.
#[derive(Debug, Default)]
pub struct Sources {
    each: Vec<Source>,
    n_read: Arc<AtomicU64>,
}

impl Sources {
    /// Each of them, in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Source> {
        self.each.iter()
    }

    /// How many bytes they have, compressed if they are, if that is known of all.
    #[must_use]
    pub fn n_bytes(&self) -> Option<u64> {
        self.each.iter().map(Source::n_bytes).sum()
    }

    /// How many of these bytes were read so far; counted on by whoever reads.
    #[must_use]
    pub fn n_read(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.n_read)
    }
}

impl<'a> IntoIterator for &'a Sources {
    type Item = &'a Source;
    type IntoIter = std::slice::Iter<'a, Source>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// An input.
#[derive(Debug)]
pub struct Source {
    name: String,
    /// `None` is standard input.
    path: Option<PathBuf>,
    n_bytes: Option<u64>,
    origin: Origin,
    n_read: Arc<AtomicU64>,
}

impl Source {
    /// What to call it in a message.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many bytes it has, compressed if it is; `None` where that shows only when
    /// it is read.
    #[must_use]
    pub fn n_bytes(&self) -> Option<u64> {
        self.n_bytes
    }

    /// Whether it was named, or found in a folder.
    #[must_use]
    pub fn origin(&self) -> Origin {
        self.origin
    }

    /// Opens it. What is read of it is decompressed, and may be read on another
    /// thread; nothing is before somebody asks.
    ///
    /// # Errors
    ///
    /// If it cannot be opened.
    pub fn open(&self) -> io::Result<impl Read + Send + use<>> {
        let from: Box<dyn Read + Send> = match &self.path {
            None => Box::new(io::stdin()),
            Some(path) => Box::new(File::open(path)?),
        };
        let n_read = Arc::clone(&self.n_read);
        Ok(Decompressed::new(Counted { from, n_read }))
    }
}

/// Counts what is read.
struct Counted<R> {
    from: R,
    n_read: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let n = self.from.read(to)?;
        self.n_read.fetch_add(n as u64, Relaxed);
        Ok(n)
    }
}

/// What these paths lead to; `-` is standard input. Of a folder all that is in it
/// and below, by its name: JSON, JSON lines and YAML, plain or compressed. What
/// several names or links lead to comes once. A file or folder in it that cannot be
/// read comes as well, and says so when it is read.
///
/// # Errors
///
/// The first path that does not exist.
pub fn sources(paths: &[PathBuf]) -> Result<Sources, NotFound> {
    let mut sources = Sources::default();
    let mut seen = HashSet::new();
    for path in paths {
        if path.as_os_str() == "-" {
            sources.push(None, None, Origin::Named);
            continue;
        }
        let file = fs::metadata(path).map_err(|why| NotFound {
            name: shown(path),
            why,
        })?;
        if file.is_dir() {
            sources.walk(path, &mut seen);
        } else {
            if let Ok(path) = path.canonicalize() {
                seen.insert(path);
            }
            let n_bytes = file.is_file().then_some(file.len());
            sources.push(Some(path), n_bytes, Origin::Named);
        }
    }
    Ok(sources)
}

impl Sources {
    /// Takes what is in a folder, and in those below, in the order of the paths.
    fn walk(&mut self, folder: &Path, seen: &mut HashSet<PathBuf>) {
        // A link may lead to a folder that it is in.
        if folder.canonicalize().is_ok_and(|it| !seen.insert(it)) {
            return;
        }
        let entries = fs::read_dir(folder).and_then(|it| {
            let paths = it.map(|it| it.map(|it| it.path()));
            paths.collect::<io::Result<Vec<_>>>()
        });
        let Ok(mut paths) = entries else {
            return self.push(Some(folder), None, Origin::Found);
        };
        paths.sort_unstable();
        for path in paths {
            match fs::metadata(&path) {
                Ok(it) if it.is_dir() => self.walk(&path, seen),
                _ if !has_events(&path) => {}
                Ok(it) if it.is_file() => {
                    if path.canonicalize().is_ok_and(|it| seen.insert(it)) {
                        self.push(Some(&path), Some(it.len()), Origin::Found);
                    }
                }
                // To open a pipe might wait for ever.
                Ok(_) => {}
                Err(_) => self.push(Some(&path), None, Origin::Found),
            }
        }
    }

    fn push(&mut self, path: Option<&Path>, n_bytes: Option<u64>, origin: Origin) {
        self.each.push(Source {
            name: path.map_or_else(|| "standard input".to_owned(), shown),
            path: path.map(Path::to_owned),
            n_bytes,
            origin,
            n_read: Arc::clone(&self.n_read),
        });
    }
}

fn shown(path: &Path) -> String {
    Visible(&path.display().to_string()).to_string()
}

/// Whether a file may have Events, by its name.
fn has_events(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    let name = name.to_string_lossy().to_ascii_lowercase();
    let packed = [".gz", ".zst"].iter().find_map(|it| name.strip_suffix(it));
    let plain = packed.unwrap_or(&name);
    let endings = [".json", ".jsonl", ".ndjson", ".yaml", ".yml"];
    endings.iter().any(|it| plain.ends_with(it))
}
