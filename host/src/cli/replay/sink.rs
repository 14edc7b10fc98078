//! Where what comes of a replay goes: a table, JSON, or the changes as they come.

use std::{
    collections::BTreeSet,
    io::{self, Write},
};

use clap::ValueEnum;

use crate::{
    outcome::{Change, Held},
    output::{ChangeRecord, Element, Framing, Writer},
    record::ObjectKey,
    replay::{
        Listener,
        spill::Spill,
        table::{self, Clock, Digest, Style},
    },
    subject::SubjectKey,
};

/// Where it goes.
pub(super) enum Sink<W: Write> {
    /// The rows that matter most, at the end.
    Table {
        to: W,
        style: Style,
        clock: Clock,
        digest: Digest,
    },
    /// All elements, in order, at the end.
    Json {
        to: W,
        framing: Framing,
        spill: Spill,
    },
    /// Changes, as they come.
    Changes(Changes<W>),
}

/// Prints changes.
pub(super) struct Changes<W: Write> {
    to: ChangesTo<W>,
    seq: u64,
}

enum ChangesTo<W: Write> {
    People(W, Clock),
    Programs(Writer<W>),
}

impl<W: Write> Changes<W> {
    pub(super) fn new(to: W, framing: Option<Framing>, clock: Clock) -> Self {
        let to = match framing {
            None => ChangesTo::People(to, clock),
            Some(framing) => ChangesTo::Programs(Writer::new(to, framing)),
        };
        Self { to, seq: 0 }
    }

    fn write(&mut self, change: &Change) -> io::Result<()> {
        self.seq += 1;
        match &mut self.to {
            ChangesTo::People(to, clock) => table::write_change(to, change, clock),
            ChangesTo::Programs(to) => to.write(&ChangeRecord::new(0, self.seq, false, change)),
        }
    }
}

/// What of it is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Only {
    /// Findings and verdicts.
    Findings,
    /// Additional reasons: the history of the objects.
    Reasons,
}

/// A sink that is given what is wanted, and what it could not take.
pub(super) struct Filtered<W: Write> {
    sink: Sink<W>,
    only: Option<Only>,
    /// What it is about; anything if that is not said.
    about: Option<BTreeSet<ObjectKey>>,
    /// The first error of writing: nothing more is written after it.
    failed: Option<io::Error>,
    n_failed_calls: u64,
}

impl<W: Write> Filtered<W> {
    pub(super) fn new(sink: Sink<W>, only: Option<Only>) -> Self {
        Self {
            sink,
            only,
            about: None,
            failed: None,
            n_failed_calls: 0,
        }
    }

    /// From now on only what is about one of these objects is wanted.
    pub(super) fn only_about(&mut self, objects: BTreeSet<ObjectKey>) {
        self.about = Some(objects);
    }

    fn is_wanted(&self, subject: &SubjectKey) -> bool {
        let about = self.about.as_ref();
        about.is_none_or(|it| it.contains(&subject.object))
    }

    /// Subjects whose newest call failed.
    pub(super) fn n_failed_calls(&self) -> u64 {
        self.n_failed_calls
    }

    /// Prints what waits for the end, and says how many elements were dropped.
    pub(super) fn finish(self, has_events: bool) -> io::Result<u64> {
        if let Some(err) = self.failed {
            return Err(err);
        }
        match self.sink {
            Sink::Table {
                mut to,
                style,
                clock,
                digest,
            } => {
                if has_events {
                    digest.write(&mut to, style, &clock)?;
                }
                to.flush()?;
                Ok(0)
            }
            Sink::Json { to, framing, spill } => {
                let n_dropped = spill.n_dropped();
                let mut writer = Writer::new(to, framing);
                spill.finish(|json| writer.write_json(json))?;
                writer.finish()?;
                Ok(n_dropped)
            }
            Sink::Changes(Changes {
                to: ChangesTo::People(mut to, _),
                ..
            }) => {
                to.flush()?;
                Ok(0)
            }
            Sink::Changes(Changes {
                to: ChangesTo::Programs(to),
                ..
            }) => {
                to.finish()?;
                Ok(0)
            }
        }
    }
}

impl<W: Write> Listener for Filtered<W> {
    fn change(&mut self, mut change: Change) {
        if !self.is_wanted(&change.subject) {
            return;
        }
        let (Sink::Changes(changes), None) = (&mut self.sink, &self.failed) else {
            return;
        };
        let delta = &mut change.delta;
        match self.only {
            None => {}
            Some(Only::Findings) => delta.additional_reasons.clear(),
            Some(Only::Reasons) => {
                delta.raised.clear();
                delta.changed.clear();
                delta.cleared.clear();
                delta.verdict = None;
            }
        }
        if !delta.is_empty() {
            self.failed = changes.write(&change).err();
        }
    }

    fn element(&mut self, subject: &SubjectKey, held: &[Held]) {
        let n_failed = held.iter().filter(|it| it.error.is_some()).count();
        self.n_failed_calls += u64::try_from(n_failed).unwrap_or(u64::MAX);
        if self.failed.is_some() || !self.is_wanted(subject) {
            return;
        }
        let wanted;
        let held = match self.only {
            None => held,
            Some(only) => {
                wanted = held
                    .iter()
                    .filter_map(|it| part_of(it, only))
                    .collect::<Vec<_>>();
                &wanted
            }
        };
        match &mut self.sink {
            Sink::Table { digest, .. } => digest.add(subject, held),
            Sink::Json { spill, .. } => {
                // Written once, and kept in as much as it needs: what is given back of a longer piece lies
                // about between the pieces that stay.
                let mut json = Vec::with_capacity(JSON_BYTES);
                let added = held.iter().try_for_each(|it| {
                    json.clear();
                    serde_json::to_writer(&mut json, &Element::new(subject, it))?;
                    spill.add(subject, &it.classifier.name, &json)
                });
                self.failed = added.err();
            }
            Sink::Changes(_) => {}
        }
    }
}

/// As long as most elements are.
const JSON_BYTES: usize = 4 << 10;

/// What is wanted of what is held, unless that is nothing.
fn part_of(held: &Held, only: Only) -> Option<Held> {
    let mut held = held.clone();
    match only {
        Only::Findings => held.outcome.additional_reasons.clear(),
        Only::Reasons => {
            held.outcome.findings.clear();
            held.outcome.verdict = None;
        }
    }
    let is_empty = held.error.is_none()
        && held.outcome.findings.is_empty()
        && held.outcome.additional_reasons.is_empty()
        && held.outcome.verdict.is_none();
    (!is_empty).then_some(held)
}
