//! What replay prints for people.
//!
//! What matters first comes first: why what failed did, and what to do; findings that hold, worst and latest on top,
//! the platform's before the workload's; then subjects that could not be
//! classified; then the history of the objects, those with findings before the
//! rest. Notes are other people's text: they are shown, and never obeyed.
//!
//! However much there is to say, [`Digest`] holds the rows that matter most, and
//! counts the others.

use std::{
    cmp::Reverse,
    collections::BTreeMap,
    io::{self, Write},
    sync::Arc,
};

use comfy_table::Cell;
use jiff::tz::TimeZone;

mod cells;

use crate::{
    outcome::{
        AdditionalReason, Blame, Change, EndReason, Finding, Held, Severity, Status, Verdict,
    },
    reason::CallFailure,
    record::{ObjectKey, UnixMs},
    subject::SubjectKey,
    text::Visible,
};

pub(crate) use cells::written;
use cells::{code, history_row, severity, shown, table, verdict_row};

/// Rows that are printed unless said otherwise.
pub const ROWS_MAX: usize = 1_000;

/// How a table may look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// As wide as the terminal, with colours.
    Terminal,
    /// As wide as the terminal, without.
    Colourless,
    /// As wide as it needs to be, without colours.
    Plain,
}

/// How times are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Clock {
    /// In UTC.
    Utc,
    /// In a time zone.
    Zone(TimeZone),
    /// As the time before the newest that is printed.
    Relative,
}

/// The rows that matter most, of however many there are.
#[derive(Debug)]
pub struct Digest {
    rows: BTreeMap<Rank, Row>,
    rows_max: usize,
    n_seen: u64,
    left_out: LeftOut,
}

/// What there were no rows left for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct LeftOut {
    verdicts: u64,
    findings: u64,
    failures: u64,
    history: u64,
}

/// What comes before what; the least matters most.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    section: Section,
    /// Of the row, or of the worst finding of its object.
    severity: Reverse<Option<Severity>>,
    is_platform: Reverse<bool>,
    /// Lines of one object stay together; other rows go by time.
    object: Option<ObjectKey>,
    at: Reverse<UnixMs>,
    /// Makes it unique, and keeps equal ones in the order in which they came.
    n: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Section {
    Verdict,
    Active,
    Cleared,
    NotClassified,
    History,
}

#[derive(Debug)]
enum Row {
    Verdict(ObjectKey, Box<Verdict>),
    Finding(ObjectKey, Finding),
    NotClassified(ObjectKey, Box<str>, CallFailure),
    History(ObjectKey, Arc<AdditionalReason>),
}

impl Digest {
    /// A digest of at most this many rows.
    #[must_use]
    pub fn new(rows_max: usize) -> Self {
        Self {
            rows: BTreeMap::new(),
            rows_max,
            n_seen: 0,
            left_out: LeftOut::default(),
        }
    }

    /// Takes what is held of a subject.
    pub fn add(&mut self, subject: &SubjectKey, held: &[Held]) {
        let object = &subject.object;
        let findings = || held.iter().flat_map(|it| &it.outcome.findings);
        let worst = findings()
            .filter(|it| it.status == Status::Active)
            .map(|it| it.severity)
            .max();
        // Of several opinions the first is the subject's.
        if let Some(it) = held.iter().find_map(|it| it.outcome.verdict.as_ref()) {
            let rank = Rank {
                is_platform: Reverse(it.blame == Blame::Platform),
                ..Rank::new(Section::Verdict, worst, it.failure_at)
            };
            self.put(rank, || Row::Verdict(object.clone(), it.clone()));
        }
        for it in findings() {
            let section = match it.status {
                Status::Active => Section::Active,
                Status::Cleared => Section::Cleared,
            };
            let rank = Rank {
                is_platform: Reverse(it.blame == Blame::Platform),
                ..Rank::new(section, Some(it.severity), it.last_seen())
            };
            self.put(rank, || Row::Finding(object.clone(), it.clone()));
        }
        for it in held {
            if let Some(failure) = &it.error {
                let rank = Rank::new(Section::NotClassified, None, 0);
                let name = it.classifier.name.clone();
                self.put(rank, || {
                    Row::NotClassified(object.clone(), name, failure.clone())
                });
            }
            for line in &it.outcome.additional_reasons {
                let object = object.clone();
                let rank = Rank {
                    object: Some(object.clone()),
                    ..Rank::new(Section::History, worst, line.at)
                };
                self.put(rank, || Row::History(object, Arc::clone(line)));
            }
        }
    }

    fn put(&mut self, rank: Rank, row: impl FnOnce() -> Row) {
        self.n_seen += 1;
        let rank = Rank {
            n: self.n_seen,
            ..rank
        };
        let left_out = if self.rows.len() < self.rows_max {
            self.rows.insert(rank, row());
            return;
        } else if self
            .rows
            .last_key_value()
            .is_some_and(|(last, _)| rank < *last)
        {
            let last = self.rows.pop_last();
            self.rows.insert(rank, row());
            last.map(|(rank, _)| rank.section)
        } else {
            Some(rank.section)
        };
        match left_out {
            Some(Section::Verdict) => self.left_out.verdicts += 1,
            Some(Section::Active | Section::Cleared) => self.left_out.findings += 1,
            Some(Section::NotClassified) => self.left_out.failures += 1,
            Some(Section::History) => self.left_out.history += 1,
            None => {}
        }
    }

    /// Prints it.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn write(&self, to: &mut dyn Write, style: Style, clock: &Clock) -> io::Result<()> {
        let newest = self.rows.keys().map(|it| it.at.0).max().unwrap_or(0);
        let time = |at| written(at, clock, newest);
        let (mut verdicts, mut findings, mut failures, mut history) = (
            table(
                style,
                ["FAILED", "AT", "WITH", "VERDICT", "BLAME", "RETRY", "WHY"],
            ),
            table(
                style,
                [
                    "SEVERITY",
                    "LAST SEEN",
                    "OBJECT",
                    "FINDING",
                    "BLAME",
                    "WHAT",
                ],
            ),
            table(style, ["NOT CLASSIFIED", "BY", "WHY", "WHAT HAPPENED"]),
            table(style, ["OBJECT", "AT", "TYPE", "REASON", "FROM", "WHAT"]),
        );
        let mut lines: Vec<(&Rank, &ObjectKey, &AdditionalReason)> = Vec::new();
        for (rank, row) in &self.rows {
            match row {
                Row::Verdict(object, it) => {
                    verdicts.add_row(verdict_row(object, time(it.failure_at), it));
                }
                Row::Finding(object, it) => {
                    findings.add_row(vec![
                        severity(it),
                        Cell::new(time(it.last_seen())),
                        Cell::new(shown(object)),
                        Cell::new(code(it)),
                        Cell::new(it.blame.as_str()),
                        Cell::new(Visible(&it.message)),
                    ]);
                }
                Row::NotClassified(object, by, failure) => {
                    let cells = [shown(object), by.to_string(), failure.reason.to_string()];
                    let cells = cells.into_iter().chain([failure.message.clone()]);
                    failures.add_row(cells.map(Cell::new).collect::<Vec<_>>());
                }
                Row::History(object, line) => lines.push((rank, object, line)),
            }
        }
        // The latest were kept; they are read from the first.
        lines.sort_by_key(|(rank, ..)| (rank.severity, &rank.object, Reverse(rank.at), rank.n));
        let mut last = None;
        for (_, object, line) in lines {
            let name = if last == Some(object) {
                String::new()
            } else {
                shown(object)
            };
            last = Some(object);
            history.add_row(history_row(name, time(line.at), line));
        }

        if !verdicts.is_empty() {
            writeln!(to, "{}\n", verdicts.trim_fmt())?;
        }
        if findings.is_empty() && self.left_out.findings == 0 {
            writeln!(to, "No findings.")?;
        } else {
            writeln!(to, "{}", findings.trim_fmt())?;
        }
        for table in [failures, history].iter().filter(|it| !it.is_empty()) {
            writeln!(to, "\n{}", table.trim_fmt())?;
        }
        let LeftOut {
            verdicts,
            findings,
            failures,
            history,
        } = self.left_out;
        for (n, what) in [
            (verdicts, "verdicts"),
            (findings, "findings"),
            (failures, "subjects that were not classified"),
            (history, "lines of history"),
        ] {
            if 0 < n {
                writeln!(to, "\nNot shown: {n} more {what}; -o json has them all.")?;
            }
        }
        Ok(())
    }
}

impl Rank {
    fn new(section: Section, severity: Option<Severity>, at: UnixMs) -> Self {
        Self {
            section,
            severity: Reverse(severity),
            is_platform: Reverse(false),
            object: None,
            at: Reverse(at),
            n: 0,
        }
    }
}

/// Prints a change, a line for each part of it.
///
/// # Errors
///
/// If it cannot be written.
pub fn write_change(to: &mut dyn Write, change: &Change, clock: &Clock) -> io::Result<()> {
    let object = shown(&change.subject.object);
    let mut line = |sign: &str, what: &str, it: &Finding, why: &str| {
        let severity = it.severity.as_str();
        let code = code(it);
        writeln!(
            to,
            "{sign} {what:<8} {severity:<8} {code}  {object}  {}{why}",
            Visible(&it.message)
        )
    };
    for it in &change.delta.raised {
        line("+", "raised", it, "")?;
    }
    for it in &change.delta.changed {
        line("~", "changed", it, "")?;
    }
    for (it, reason) in &change.delta.cleared {
        let why = match reason {
            EndReason::Cleared => "",
            other => &format!("  ({})", other.as_str()),
        };
        line("-", "cleared", it, why)?;
    }
    for it in &change.delta.additional_reasons {
        let at = written(it.at, clock, it.at);
        writeln!(to, "  {at}  {object}  {}", Visible(it.text()))?;
    }
    if let Some(it) = &change.delta.verdict {
        writeln!(
            to,
            "= verdict  {}  {object}  {}, retry {}: {}",
            Visible(&it.code),
            it.blame.as_str(),
            it.retry.as_str(),
            Visible(&it.message)
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
