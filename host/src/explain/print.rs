//! An explanation for a person: what happened, whose fault it was, what to do, and on
//! which evidence. Others' text is shown, and never obeyed.

use std::io::{self, Write};

use super::{Explanation, Hidden};
use crate::{
    outcome::{Blame, Finding, Held, Retry, Severity, Status, Verdict},
    record::{ObjectKey, Record, UnixMs},
    replay::table::{Clock, written},
    text::{Visible, cut},
};

/// How much of a note is shown as evidence.
const NOTE_MAX: usize = 300;

/// How an explanation may look.
#[derive(Clone, Debug)]
pub struct Look {
    /// Whether it may have colours.
    pub is_coloured: bool,
    /// How times are written.
    pub clock: Clock,
}

/// Prints an explanation.
///
/// # Errors
///
/// If it cannot be written.
pub fn print(to: &mut dyn Write, it: &Explanation, look: &Look) -> io::Result<()> {
    Printer {
        to,
        it,
        look,
        newest: newest(it),
    }
    .all()
}

struct Printer<'a> {
    to: &'a mut dyn Write,
    it: &'a Explanation,
    look: &'a Look,
    newest: UnixMs,
}

/// What times are relative to.
fn newest(it: &Explanation) -> UnixMs {
    let reasons = it.held.iter().flat_map(|it| &it.outcome.additional_reasons);
    let evidence = it.evidence.iter().map(|(_, it)| it.last_seen());
    let failed = it.failure.iter().map(|it| it.at);
    let times = reasons.map(|it| it.at).chain(evidence).chain(failed);
    times.max().unwrap_or(0)
}

impl Printer<'_> {
    fn all(mut self) -> io::Result<()> {
        self.who()?;
        self.verdict()?;
        self.findings()?;
        self.not_classified()?;
        self.history()?;
        self.hidden()
    }

    fn time(&self, at: UnixMs) -> String {
        written(at, &self.look.clock, self.newest)
    }

    /// A text in a colour (as ANSI numbers them), and bold.
    fn bold(&self, text: &str, colour: u8) -> String {
        if self.look.is_coloured {
            format!("\x1b[1;{colour}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }

    fn heading(&mut self, text: &str) -> io::Result<()> {
        let text = self.bold(text, 39);
        writeln!(self.to, "\n{text}")
    }

    fn who(&mut self) -> io::Result<()> {
        let mut line = shown(&self.it.subject.object);
        if let Some(pod) = &self.it.pod {
            let phase = pod.phase.map_or("of no known phase", |it| it.as_str());
            line.extend([": ", phase]);
            if let Some(node) = &pod.node {
                line.extend([", on ", &Visible(node).to_string()]);
            }
            if let Some(owner) = &pod.owner {
                let (kind, name) = (owner.object.kind(), owner.object.name());
                line.extend([", of ", &Visible(&format!("{kind}/{name}")).to_string()]);
            }
        }
        let line = self.bold(&line, 39);
        writeln!(self.to, "{line}")?;
        if let Some(failure) = &self.it.failure {
            let at = self.time(failure.at);
            write!(self.to, "failed with {} at {at}", Visible(&failure.code))?;
            if !failure.message.is_empty() {
                write!(self.to, ": {}", Visible(&failure.message))?;
            }
            writeln!(self.to)?;
        }
        Ok(())
    }

    fn verdict(&mut self) -> io::Result<()> {
        let verdicts = self.it.held.iter().filter_map(|it| {
            let verdict = it.outcome.verdict.as_deref()?;
            Some((verdict, &it.classifier.name))
        });
        let verdicts: Vec<_> = verdicts.collect();
        if verdicts.is_empty() {
            let is_pod = self.it.subject.object.kind() == "Pod";
            let line = if self.it.failure.is_some() {
                "No verdict: no plugin has an opinion on this failure."
            } else if is_pod && self.it.pod.is_some() {
                "No verdict: as far as is known it did not fail; if you know better, say --failure CODE."
            } else {
                "No verdict: it is not known what it failed with; if you know, say --failure CODE."
            };
            return writeln!(self.to, "\n{line}");
        }
        for (verdict, by) in verdicts {
            let Verdict { code, message, .. } = verdict;
            let line = format!("{}: {}", Visible(code), blame(verdict.blame));
            let line = self.bold(&line, 31);
            writeln!(self.to, "\n{line}")?;
            writeln!(self.to, "  {}", what_to_do(verdict))?;
            writeln!(self.to, "  {}  ({})", Visible(message), Visible(by))?;
        }
        Ok(())
    }

    fn findings(&mut self) -> io::Result<()> {
        let all = self.it.held.iter().flat_map(|it| &it.outcome.findings);
        let mut all: Vec<_> = all.collect();
        all.sort_by_key(|it| {
            let ends = it.status == Status::Cleared;
            (ends, std::cmp::Reverse((it.severity, it.last_seen())))
        });
        if all.is_empty() {
            return match (self.it.n_events, &self.it.pod) {
                (0, None) => writeln!(
                    self.to,
                    "\nNo Event of it is known. Are its name and its namespace right?"
                ),
                (1, _) => writeln!(self.to, "\nNo findings in 1 Event."),
                (n, _) => writeln!(self.to, "\nNo findings in {n} Events."),
            };
        }
        self.heading("Findings")?;
        for it in all {
            self.finding(it)?;
        }
        Ok(())
    }

    fn finding(&mut self, it: &Finding) -> io::Result<()> {
        let (word, colour) = match (it.status, it.severity) {
            (Status::Cleared, _) => ("cleared", 32),
            (_, Severity::Critical) => ("CRITICAL", 31),
            (_, Severity::Warning) => ("WARNING", 33),
            (_, Severity::Info) => ("INFO", 36),
        };
        let word = self.bold(&format!("{word:<8}"), colour);
        let code = if it.identity.code.is_empty() {
            &it.identity.category
        } else {
            &it.identity.code
        };
        let (code, message) = (Visible(code), Visible(&it.message));
        writeln!(self.to, "  {word}  {code}  {message}")?;
        let evidence = self.it.evidence.iter();
        let rests_on = |record: &Record| {
            let mut events = it.evidence.iter().map(|it| &it.event);
            events.any(|event| *event == record.event_ref())
        };
        for (object, record) in evidence.filter(|(_, it)| rests_on(it)) {
            self.event(object, record)?;
        }
        Ok(())
    }

    fn event(&mut self, object: &ObjectKey, record: &Record) -> io::Result<()> {
        let by = match record.controller() {
            "" => String::new(),
            by => format!(" by {}", Visible(by)),
        };
        let times = match record.count() {
            1 => String::new(),
            n => format!(", {n} times"),
        };
        let (reason, at) = (Visible(record.reason()), self.time(record.last_seen()));
        let object = shown(object);
        writeln!(self.to, "            {at}  {reason} on {object}{by}{times}")?;
        let note = Visible(cut(record.note(), NOTE_MAX)).to_string();
        writeln!(self.to, "            {note}")
    }

    fn not_classified(&mut self) -> io::Result<()> {
        for Held {
            classifier, error, ..
        } in &self.it.held
        {
            if let Some(it) = error {
                let (by, what) = (Visible(&classifier.name), Visible(&it.message));
                writeln!(self.to, "\nNot classified by {by}: {}: {what}", it.reason)?;
            }
        }
        Ok(())
    }

    fn history(&mut self) -> io::Result<()> {
        let reasons = self.it.held.iter();
        let mut reasons: Vec<_> = reasons
            .flat_map(|it| &it.outcome.additional_reasons)
            .collect();
        if reasons.is_empty() {
            return Ok(());
        }
        reasons.sort_by_key(|it| it.at);
        self.heading("What was said of it, in order")?;
        for it in reasons {
            let (at, text) = (self.time(it.at), Visible(it.text()));
            writeln!(self.to, "  {at}  {text}")?;
        }
        Ok(())
    }

    fn hidden(&mut self) -> io::Result<()> {
        if self.it.hidden.is_empty() {
            return Ok(());
        }
        self.heading("Not looked at")?;
        for Hidden { what, why } in &self.it.hidden {
            writeln!(self.to, "  {}: {}", Visible(what), Visible(why))?;
        }
        Ok(())
    }
}

fn blame(it: Blame) -> &'static str {
    match it {
        Blame::Unknown => "whose fault it was is not known",
        Blame::Workload => "the workload's own fault",
        Blame::Platform => "the platform's fault",
    }
}

fn what_to_do(it: &Verdict) -> String {
    let mut line = match it.retry {
        Retry::NoOpinion => "Whether to try again is not said",
        Retry::NotAtAll => "Trying again cannot help",
        Retry::SamePlace => "Try again, in the same place if you like",
        Retry::Elsewhere => "Try again elsewhere",
    }
    .to_owned();
    let avoid = it.avoid.iter();
    let avoid: Vec<_> = avoid
        .map(|(key, value)| format!("{} {}", Visible(key), Visible(value)))
        .collect();
    if !avoid.is_empty() {
        line.extend([", not on ", &avoid.join(", ")]);
    }
    line.push('.');
    line
}

fn shown(object: &ObjectKey) -> String {
    Visible(&object.to_string()).to_string()
}
