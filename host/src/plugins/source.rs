//! A folder that plugins come from, looked at again and again.
//!
//! It says of which files something is to be read, and when: a file that is being written is
//! left alone until two looks find it the same, a file that is gone is given up only when two
//! regular looks miss it, and of a folder that cannot be read nothing is concluded at all. A
//! file is known by what the system says of it (device, inode, size, times of data and of the
//! inode), followed through symbolic links: so a write in place, a rename over it and kubelet's
//! swap of `..data` are all seen, and none of them is missed because sizes are equal. Whether
//! what is read is anything new is decided by its digest, by whoever reads.
//!
//! What bounds it: one entry for each `*.wasm` of the folder. It reads no content and keeps no
//! time.

use std::{
    collections::BTreeMap,
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

/// What the system says of a file; none if there is none.
type Mark = Option<[i128; 5]>;

/// A plugin's file and its settings, as the system tells them apart from what they were.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Marks {
    plugin: Mark,
    settings: Mark,
}

impl Marks {
    /// What they are now.
    #[must_use]
    pub(super) fn of(path: &Path) -> Self {
        let mark = |path: &Path| {
            let it = fs::metadata(path).ok()?;
            let nanos = |seconds: i64, nanos: i64| i128::from(seconds) << 32 | i128::from(nanos);
            Some([
                i128::from(it.dev()),
                i128::from(it.ino()),
                i128::from(it.size()),
                nanos(it.mtime(), it.mtime_nsec()),
                nanos(it.ctime(), it.ctime_nsec()),
            ])
        };
        Self {
            plugin: mark(path),
            settings: mark(&path.with_extension("yaml")),
        }
    }
}

/// Why a folder is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// It was time to, or someone asked.
    Regular,
    /// Something was not settled a moment ago.
    Settling,
}

/// What is known of a file.
#[derive(Debug)]
struct Known {
    /// As the look before found it.
    seen: Marks,
    /// As it was when it was read.
    taken: Option<Marks>,
    /// Regular looks in a row that missed it.
    n_missed: u32,
}

/// What a look found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Looked {
    /// Files to be read, which two looks found the same.
    pub(super) settled: Vec<(PathBuf, Marks)>,
    /// Files that are there no more.
    pub(super) gone: Vec<PathBuf>,
    /// Files that are not there at this look, the gone ones among them.
    pub(super) missing: Vec<PathBuf>,
    /// Whether it should be looked again soon: something is in the making.
    pub(super) is_unsettled: bool,
}

/// A folder of plugins.
#[derive(Debug)]
pub(super) struct Source {
    folder: PathBuf,
    files: BTreeMap<PathBuf, Known>,
}

/// Regular looks that must miss a file before it is gone: whoever replaces a file may remove it
/// first.
const MISSES: u32 = 2;

impl Source {
    /// Nothing is known yet.
    #[must_use]
    pub(super) fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            files: BTreeMap::new(),
        }
    }

    /// The folder.
    #[must_use]
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Looks.
    ///
    /// # Errors
    ///
    /// If the folder cannot be read. Then all is as it was.
    pub(super) fn look(&mut self, why: Why) -> io::Result<Looked> {
        let paths = plugin_files(&self.folder)?;
        let mut looked = Looked::default();
        for path in &paths {
            let marks = Marks::of(path);
            let Some(known) = self.files.get_mut(path) else {
                let known = Known {
                    seen: marks,
                    taken: None,
                    n_missed: 0,
                };
                self.files.insert(path.clone(), known);
                looked.is_unsettled = true;
                continue;
            };
            known.n_missed = 0;
            let is_settled = known.seen == marks;
            known.seen = marks;
            if known.taken == Some(marks) {
                continue;
            }
            if is_settled {
                looked.settled.push((path.clone(), marks));
            } else {
                looked.is_unsettled = true;
            }
        }
        self.files.retain(|path, known| {
            if paths.contains(path) {
                return true;
            }
            looked.missing.push(path.clone());
            known.n_missed += u32::from(why == Why::Regular);
            let is_gone = MISSES <= known.n_missed;
            if is_gone {
                looked.gone.push(path.clone());
            }
            !is_gone
        });
        Ok(looked)
    }

    /// A file was read while it was so, from its beginning to its end.
    pub(super) fn taken(&mut self, path: &Path, marks: Marks) {
        if let Some(known) = self.files.get_mut(path) {
            known.taken = Some(marks);
        }
    }
}

/// The plugins of a folder, in the order of their names.
pub(super) fn plugin_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths: Vec<_> = fs::read_dir(folder)?
        .map(|it| it.map(|it| it.path()))
        .collect::<io::Result<_>>()?;
    paths.retain(|it| it.extension().is_some_and(|it| it == "wasm"));
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests;
