//! Takes what is read to the replay, and keeps count of what cannot be used.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
};

use anyhow::Context as _;

use super::{ahead::Ahead, progress::Progress, sink::Filtered};
use crate::{
    cli::{eprintln_lossy, interrupt},
    record::{Rejected, decode::WireEvent},
    replay::{
        Replay, Tally,
        input::{self, Item, Problem},
    },
    store::Totals,
    text::Visible,
};

/// Which Events are considered.
#[derive(Debug)]
pub(super) struct Scope {
    /// Namespace and name; all when empty.
    objects: Vec<(String, String)>,
    /// All when empty.
    namespaces: Vec<String>,
}

impl Scope {
    pub(super) fn new(objects: Vec<String>, namespaces: Vec<String>) -> anyhow::Result<Self> {
        let objects = objects.into_iter().map(|it| {
            let (namespace, name) = it.split_once('/').with_context(|| {
                format!("--object {it}: write NAMESPACE/NAME, and /NAME for a Node")
            })?;
            Ok((namespace.to_owned(), name.to_owned()))
        });
        Ok(Self {
            objects: objects.collect::<anyhow::Result<_>>()?,
            namespaces,
        })
    }

    fn holds(&self, event: &WireEvent<'_>) -> bool {
        let (namespace, object) = (&*event.metadata.namespace, &event.regarding);
        (self.namespaces.is_empty() || self.namespaces.iter().any(|it| it == namespace))
            && (self.objects.is_empty()
                || self.objects.iter().any(|(namespace, name)| {
                    *name == *object.name && *namespace == *object.namespace
                }))
    }
}

/// Problems that are named one by one; the rest is counted.
const PROBLEMS_NAMED: u64 = 20;

/// Takes what is read.
pub(super) struct Intake<W: Write> {
    replay: Replay,
    sink: Filtered<W>,
    scope: Scope,
    interrupted: interrupt::Interrupted,
    progress: Option<Progress>,
    /// What is being read.
    name: String,
    share: Option<f64>,
    n_items: u64,
    n_out_of_scope: u64,
    n_problems: u64,
    n_named: u64,
}

/// What was read, and what became of it.
pub(super) struct Read {
    pub(super) n_items: u64,
    pub(super) n_problems: u64,
    n_out_of_scope: u64,
    n_failed_calls: u64,
    n_dropped: u64,
    n_records: usize,
    n_objects: usize,
    tally: Tally,
    totals: Totals,
}

impl<W: Write> Intake<W> {
    pub(super) fn new(
        replay: Replay,
        sink: Filtered<W>,
        scope: Scope,
        interrupted: interrupt::Interrupted,
    ) -> Self {
        Self {
            replay,
            sink,
            scope,
            interrupted,
            progress: None,
            name: String::new(),
            share: None,
            n_items: 0,
            n_out_of_scope: 0,
            n_problems: 0,
            n_named: 0,
        }
    }

    /// Reads all of these, one after the other.
    pub(super) fn read_all(&mut self, files: &[PathBuf], progress: Progress) -> anyhow::Result<()> {
        self.progress = Some(progress);
        for file in files {
            let name = Visible(&file.display().to_string()).to_string();
            let bytes =
                read(file, self.interrupted).with_context(|| format!("cannot read {name}"))?;
            self.name = name;
            input::read(&*bytes, self, input::Origin::Named)?;
        }
        Ok(())
    }

    /// Classifies what is left, and prints what waits for the end.
    pub(super) fn finish(mut self) -> anyhow::Result<Read> {
        // While the store still holds it.
        let (n_records, n_objects) = (
            self.replay.store().n_records(),
            self.replay.store().n_buckets(),
        );
        self.replay.finish(&mut self.sink);
        if let Some(progress) = &self.progress {
            progress.finish();
        }
        if PROBLEMS_NAMED < self.n_named {
            let more = self.n_named - PROBLEMS_NAMED;
            eprintln_lossy(format_args!(
                "{more} more lines or items could not be read or were refused"
            ));
        }
        let n_failed_calls = self.sink.n_failed_calls();
        let n_dropped = self.sink.finish(0 < self.n_items)?;
        Ok(Read {
            n_items: self.n_items,
            n_problems: self.n_problems,
            n_out_of_scope: self.n_out_of_scope,
            n_failed_calls,
            n_dropped,
            n_records,
            n_objects,
            tally: self.replay.tally().clone(),
            totals: self.replay.store().totals(),
        })
    }

    fn name(&mut self, problem: &Problem) {
        self.n_named += 1;
        if PROBLEMS_NAMED < self.n_named {
            return;
        }
        let say = || eprintln_lossy(format_args!("{}: {problem}", self.name));
        match &self.progress {
            Some(progress) => progress.above(say),
            None => say(),
        }
    }
}

fn read(file: &Path, interrupted: interrupt::Interrupted) -> io::Result<Vec<u8>> {
    let mut ahead = if file.as_os_str() == "-" {
        Ahead::of(io::stdin(), interrupted)?
    } else {
        Ahead::of(std::fs::File::open(file)?, interrupted)?
    };
    let mut bytes = Vec::new();
    io::Read::read_to_end(&mut ahead, &mut bytes)?;
    Ok(bytes)
}

impl<W: Write> input::Reader for Intake<W> {
    fn item(&mut self, item: Item<'_>) -> Result<(), Rejected> {
        self.n_items += 1;
        if let Some(progress) = &mut self.progress {
            let store = self.replay.store();
            progress.tell(self.n_items, || store.n_buckets(), self.share);
        }
        let (Item::Put(event) | Item::Deleted(event)) = &item;
        if !self.scope.holds(event) {
            self.n_out_of_scope += 1;
            return Ok(());
        }
        match item {
            Item::Put(event) => self.replay.put(&event, &mut self.sink),
            Item::Deleted(event) => {
                self.replay.delete(&event, &mut self.sink);
                Ok(())
            }
        }
    }

    fn problem(&mut self, problem: Problem) {
        self.n_problems += 1;
        self.name(&problem);
    }

    fn refused(&mut self, problem: Problem) {
        self.name(&problem);
    }

    fn foreign(&mut self) {}

    fn is_stopped(&self) -> bool {
        interrupt::is_set(self.interrupted)
    }
}

impl Read {
    /// Whether all of it could be read and classified.
    pub(super) fn is_complete(&self) -> bool {
        self.n_problems == 0
            && self.n_failed_calls == 0
            && self.n_dropped == 0
            && self.tally.n_rejected() == 0
    }

    /// Says on stderr what was read and what became of it.
    pub(super) fn summarise(&self) {
        let Self { tally, totals, .. } = self;
        let mut line = format!(
            "{} Events: {} stored, {} seen again",
            tally.received + self.n_out_of_scope,
            totals.stored,
            totals.merged
        );
        let refused: Vec<_> = tally
            .rejected
            .iter()
            .map(|(why, n)| format!("{n} {}", why.as_label()))
            .collect();
        if !refused.is_empty() {
            let n = tally.n_rejected().to_string();
            line.extend([", ", &n, " refused (", &refused.join(", "), ")"]);
        }
        let also = [
            (self.n_out_of_scope, "not asked for"),
            (totals.deleted, "deleted"),
            (totals.replaced, "replaced by another of the same name"),
            (tally.unknown_deletions, "deletions of unknown Events"),
            (self.n_problems, "lines or items not readable"),
            (tally.malformed_fields, "malformed fields taken as absent"),
            (self.n_failed_calls, "subjects not classified"),
        ];
        for (n, what) in also.into_iter().filter(|(n, _)| 0 < *n) {
            line.extend(["; ", what, ": ", &n.to_string()]);
        }
        eprintln_lossy(format_args!(
            "{line}. Live at the end: {} about {} objects.",
            self.n_records, self.n_objects
        ));
    }

    /// Says on stderr what left early, and what is lost, and which bound did it.
    pub(super) fn say_what_was_dropped(&self) {
        let Tally {
            left_early,
            left_full,
            ..
        } = self.tally;
        if 0 < left_early {
            eprintln_lossy(format_args!(
                "{left_early} objects were classified before the end, to stay within --store-bytes; what \
                 was said of them later is in further parts"
            ));
        }
        if 0 < left_full {
            eprintln_lossy(format_args!(
                "{left_full} times an object had more Events than are held of one; the rest is in further parts"
            ));
        }
        if 0 < self.n_dropped {
            eprintln_lossy(format_args!(
                "{} elements were dropped, since --tmp-bytes was used up",
                self.n_dropped
            ));
        }
    }
}
