//! Elements in order, more of them than fit in memory.
//!
//! They come as subjects leave, and are wanted by object, classifier and time.
//! What fits is kept and sorted at the end; what does not goes to temporary
//! files, each sorted, which are merged at the end. A subject that left more than
//! once has several elements, which get their numbers then: in the order in which
//! they came.
//!
//! Memory is bounded by [`Bounds::memory_bytes`], the files by
//! [`Bounds::file_bytes`]; what is over is dropped and counted. The files have no
//! names, so that nothing is left of them however the process ends.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, binary_heap::PeekMut},
    fs::File,
    io::{self, BufReader, BufWriter, Read, Seek as _, Write},
    path::PathBuf,
};

use crate::{record::ObjectKey, subject::SubjectKey};

/// How much may wait for the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes in memory.
    pub memory_bytes: usize,
    /// Bytes in temporary files.
    pub file_bytes: u64,
    /// Where those are.
    pub folder: PathBuf,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            memory_bytes: 32 << 20,
            file_bytes: 16 << 30,
            folder: std::env::temp_dir(),
        }
    }
}

/// What orders elements.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    subject: SubjectKey,
    classifier: Box<str>,
}

/// An element as JSON, and where it belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    key: Key,
    json: Box<[u8]>,
}

/// What an entry costs beside its JSON: its key, about.
const ENTRY_BYTES: usize = 256;

/// Takes elements in any order and gives them back in theirs.
#[derive(Debug)]
pub struct Spill {
    bounds: Bounds,
    entries: Vec<Entry>,
    n_bytes: usize,
    runs: Vec<File>,
    n_file_bytes: u64,
    n_dropped: u64,
}

impl Spill {
    /// Nothing is in it yet.
    #[must_use]
    pub fn new(bounds: Bounds) -> Self {
        let (entries, runs) = (Vec::new(), Vec::new());
        Self {
            bounds,
            entries,
            n_bytes: 0,
            runs,
            n_file_bytes: 0,
            n_dropped: 0,
        }
    }

    /// How many elements were dropped because the files would have grown over
    /// their bound.
    #[must_use]
    pub fn n_dropped(&self) -> u64 {
        self.n_dropped
    }

    /// Adds an element, which is a JSON object.
    ///
    /// # Errors
    ///
    /// If a temporary file cannot be written.
    pub fn add(&mut self, subject: &SubjectKey, classifier: &str, json: &[u8]) -> io::Result<()> {
        self.n_bytes += json.len() + ENTRY_BYTES;
        let key = Key {
            subject: subject.clone(),
            classifier: classifier.into(),
        };
        self.entries.push(Entry {
            key,
            json: json.into(),
        });
        if self.bounds.memory_bytes < self.n_bytes {
            self.write_run()
        } else {
            Ok(())
        }
    }

    fn write_run(&mut self) -> io::Result<()> {
        // Stable: of one subject, the earlier element stays the earlier.
        self.entries.sort_by(|a, b| a.key.cmp(&b.key));
        let mut run = BufWriter::new(tempfile::tempfile_in(&self.bounds.folder)?);
        for it in self.entries.drain(..) {
            let n_bytes = u64::try_from(it.json.len() + ENTRY_BYTES).unwrap_or(u64::MAX);
            if self.bounds.file_bytes < self.n_file_bytes.saturating_add(n_bytes) {
                self.n_dropped += 1;
                continue;
            }
            self.n_file_bytes += n_bytes;
            it.write(&mut run)?;
        }
        self.n_bytes = 0;
        let mut run = run.into_inner()?;
        run.rewind()?;
        self.runs.push(run);
        Ok(())
    }

    /// Hands out all elements: by object, uid and classifier, and of one subject
    /// in the order in which they came, numbered where there are several.
    ///
    /// # Errors
    ///
    /// If a temporary file cannot be read, or `each` fails.
    pub fn finish(mut self, mut each: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        self.entries.sort_by(|a, b| a.key.cmp(&b.key));
        let mut merge = Merge::new(self.runs, self.entries)?;
        let mut part = 0_u64;
        let mut next = merge.next()?;
        while let Some(it) = next {
            next = merge.next()?;
            let is_split = next.as_ref().is_some_and(|next| next.key == it.key);
            part = if is_split || 0 < part { part + 1 } else { 0 };
            match (part, it.json.strip_suffix(b"}")) {
                (1.., Some(open)) => {
                    let numbered =
                        [open, b",\"part\":", part.to_string().as_bytes(), b"}"].concat();
                    each(&numbered)?;
                }
                _ => each(&it.json)?,
            }
            if !is_split {
                part = 0;
            }
        }
        Ok(())
    }
}

impl Entry {
    fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let Key {
            subject: SubjectKey { object, uid },
            classifier,
        } = &self.key;
        for text in [
            object.namespace(),
            object.kind(),
            object.name(),
            &*uid.as_ref().text(),
            classifier,
        ] {
            write_bytes(to, text.as_bytes())?;
        }
        write_bytes(to, &self.json)
    }

    /// The next entry; `None` at the end.
    fn read(from: &mut BufReader<File>) -> io::Result<Option<Self>> {
        let Some(namespace) = read_bytes(from)? else {
            return Ok(None);
        };
        let mut text = || {
            read_bytes(from)?
                .and_then(|it| String::from_utf8(it).ok())
                .ok_or_else(damaged)
        };
        let namespace = String::from_utf8(namespace).map_err(|_| damaged())?;
        let (kind, name, uid, classifier) = (text()?, text()?, text()?, text()?);
        let object = ObjectKey::new(&namespace, &kind, &name).ok_or_else(damaged)?;
        let subject = SubjectKey {
            object,
            uid: uid.as_str().into(),
        };
        let json = read_bytes(from)?.ok_or_else(damaged)?.into();
        Ok(Some(Self {
            key: Key {
                subject,
                classifier: classifier.into(),
            },
            json,
        }))
    }
}

fn damaged() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "a temporary file was changed by someone else",
    )
}

fn write_bytes(to: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    let n = u32::try_from(bytes.len()).map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge))?;
    to.write_all(&n.to_le_bytes())?;
    to.write_all(bytes)
}

fn read_bytes(from: &mut BufReader<File>) -> io::Result<Option<Vec<u8>>> {
    let mut n = [0; 4];
    match from.read_exact(&mut n) {
        Ok(()) => {}
        Err(err) if err.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(err) => return Err(err),
    }
    let mut bytes = vec![0; u32::from_le_bytes(n) as usize];
    from.read_exact(&mut bytes)?;
    Ok(Some(bytes))
}

/// The runs and what is in memory, merged. An earlier run holds earlier elements.
struct Merge {
    runs: Vec<BufReader<File>>,
    in_memory: std::vec::IntoIter<Entry>,
    /// The first entry of each source that has one left.
    heads: BinaryHeap<Reverse<Head>>,
}

struct Head {
    entry: Entry,
    source: usize,
}

impl Merge {
    fn new(runs: Vec<File>, in_memory: Vec<Entry>) -> io::Result<Self> {
        let runs = runs.into_iter().map(BufReader::new).collect();
        let mut merge = Self {
            runs,
            in_memory: in_memory.into_iter(),
            heads: BinaryHeap::new(),
        };
        for source in 0..=merge.runs.len() {
            if let Some(entry) = merge.read(source)? {
                merge.heads.push(Reverse(Head { entry, source }));
            }
        }
        Ok(merge)
    }

    fn read(&mut self, source: usize) -> io::Result<Option<Entry>> {
        match self.runs.get_mut(source) {
            Some(run) => Entry::read(run),
            None => Ok(self.in_memory.next()),
        }
    }

    fn next(&mut self) -> io::Result<Option<Entry>> {
        let Some(Reverse(Head { source, .. })) = self.heads.peek() else {
            return Ok(None);
        };
        let source = *source;
        let following = self.read(source)?;
        let Some(mut first) = self.heads.peek_mut() else {
            return Ok(None);
        };
        let entry = match following {
            Some(entry) => std::mem::replace(&mut first.0.entry, entry),
            None => PeekMut::pop(first).0.entry,
        };
        Ok(Some(entry))
    }
}

impl PartialEq for Head {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Head {}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Head {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (&self.entry.key, self.source).cmp(&(&other.entry.key, other.source))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn subject(name: &str) -> SubjectKey {
        SubjectKey {
            object: ObjectKey::new("ns", "Pod", name).unwrap(),
            uid: "u".into(),
        }
    }

    /// What comes out of a spill with these bounds.
    fn spilled(bounds: Bounds, elements: &[(String, String)]) -> (Vec<String>, u64) {
        let mut spill = Spill::new(bounds);
        for (idx, (name, classifier)) in elements.iter().enumerate() {
            let json = format!(r#"{{"name":"{name}","by":"{classifier}","at":{idx}}}"#);
            spill
                .add(&subject(name), classifier, json.as_bytes())
                .unwrap();
        }
        let mut out = Vec::new();
        let n_dropped = spill.n_dropped();
        spill
            .finish(|it| {
                out.push(String::from_utf8(it.to_vec()).unwrap());
                Ok(())
            })
            .unwrap();
        (out, n_dropped)
    }

    fn element(name: &str, classifier: &str) -> (String, String) {
        (name.to_owned(), classifier.to_owned())
    }

    #[test]
    fn a_subject_that_left_more_than_once_has_numbered_parts() {
        let elements = [
            element("b", "x"),
            element("a", "x"),
            element("b", "x"),
            element("b", "w"),
        ];
        let (out, n_dropped) = spilled(
            Bounds {
                memory_bytes: 0,
                ..Bounds::default()
            },
            &elements,
        );
        assert_eq!(n_dropped, 0);
        assert_eq!(
            out,
            [
                r#"{"name":"a","by":"x","at":1}"#,
                r#"{"name":"b","by":"w","at":3}"#,
                r#"{"name":"b","by":"x","at":0,"part":1}"#,
                r#"{"name":"b","by":"x","at":2,"part":2}"#,
            ]
        );
    }

    #[test]
    fn what_is_over_the_bound_of_the_files_is_dropped_and_counted() {
        let elements = [element("a", "x"), element("b", "x"), element("c", "x")];
        let of = |file_bytes| {
            spilled(
                Bounds {
                    memory_bytes: 0,
                    file_bytes,
                    ..Bounds::default()
                },
                &elements,
            )
        };
        let each = u64::try_from(r#"{"name":"a","by":"x","at":1}"#.len() + ENTRY_BYTES).unwrap();
        assert_eq!(of(3 * each).1, 0);
        let (out, n_dropped) = of(3 * each - 1);
        assert_eq!((out.len(), n_dropped), (2, 1));
    }

    #[test]
    fn a_folder_that_is_not_there_is_an_error() {
        let bounds = Bounds {
            memory_bytes: 0,
            folder: "no-such-folder".into(),
            ..Bounds::default()
        };
        assert!(Spill::new(bounds).add(&subject("a"), "x", b"{}").is_err());
    }

    proptest! {
        /// However much fits in memory, the same comes out.
        #[test]
        fn memory_makes_no_difference(
            names in prop::collection::vec(("[a-e]", "[x-z]"), 0..40),
            memory_bytes in 0..4_000_usize,
        ) {
            let all_in_memory = spilled(Bounds::default(), &names);
            let on_disk = spilled(Bounds { memory_bytes, ..Bounds::default() }, &names);
            prop_assert_eq!(&all_in_memory, &on_disk);
            prop_assert_eq!(all_in_memory.0.len(), names.len());
        }
    }
}
