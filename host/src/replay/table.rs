//! What replay prints for people.
//!
//! What matters first comes first: findings, worst and latest on top, then calls
//! that failed, then the history of the objects, those with findings before the
//! rest. Notes are other people's text: they are shown, and never obeyed.

use std::{
    cmp::Reverse,
    collections::BTreeMap,
    io::{self, Write},
};

use comfy_table::{Attribute, Cell, Color, ContentArrangement, Table, presets};
use jiff::Timestamp;

use crate::{
    outcome::{AdditionalReason, Change, EndReason, Finding, Held, Severity, Status},
    record::{ObjectKey, UnixMs},
    subject::SubjectKey,
    text::Visible,
};

/// Lines of history that are printed; how many more there are is said.
const HISTORY_MAX: usize = 120;

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

/// Prints all that is held.
///
/// # Errors
///
/// If it cannot be written.
pub fn write(to: &mut dyn Write, held: &[(SubjectKey, Held)], style: Style) -> io::Result<()> {
    let mut findings: Vec<_> = held
        .iter()
        .flat_map(|(subject, held)| {
            held.outcome
                .findings
                .iter()
                .map(move |it| (subject, held, it))
        })
        .collect();
    findings.sort_by_key(|(subject, _, it)| {
        (
            it.status,
            Reverse(it.severity),
            Reverse(it.last_seen()),
            *subject,
            it.identity.clone(),
        )
    });

    if findings.is_empty() {
        writeln!(to, "No findings.")?;
    } else {
        let mut table = table(
            style,
            [
                "SEVERITY",
                "LAST SEEN",
                "OBJECT",
                "FINDING",
                "BLAME",
                "WHAT",
            ],
        );
        for (subject, _, it) in &findings {
            table.add_row(vec![
                severity(it),
                Cell::new(minute(it.last_seen())),
                Cell::new(shown(&subject.object)),
                Cell::new(code(it)),
                Cell::new(it.blame.as_str()),
                Cell::new(Visible(&it.message)),
            ]);
        }
        writeln!(to, "{}", table.trim_fmt())?;
    }

    let failed: Vec<_> = held
        .iter()
        .filter_map(|(subject, held)| Some((subject, held, held.error.as_ref()?)))
        .collect();
    if !failed.is_empty() {
        let mut table = table(style, ["NOT CLASSIFIED", "BY", "WHY", "WHAT HAPPENED"]);
        for (subject, held, error) in failed {
            table.add_row(vec![
                Cell::new(shown(&subject.object)),
                Cell::new(&held.classifier.name),
                Cell::new(error.reason),
                Cell::new(&error.message),
            ]);
        }
        writeln!(to, "\n{}", table.trim_fmt())?;
    }
    write_history(to, held, style)
}

/// Prints the additional reasons, object by object.
fn write_history(to: &mut dyn Write, held: &[(SubjectKey, Held)], style: Style) -> io::Result<()> {
    let mut objects = BTreeMap::<&SubjectKey, (Option<Severity>, Vec<&AdditionalReason>)>::new();
    for (subject, held) in held {
        let (worst, lines) = objects.entry(subject).or_default();
        let active = held
            .outcome
            .findings
            .iter()
            .filter(|it| it.status == Status::Active);
        *worst = (*worst).max(active.map(|it| it.severity).max());
        lines.extend(&held.outcome.additional_reasons);
    }
    objects.retain(|_, (_, lines)| !lines.is_empty());
    let mut objects: Vec<_> = objects.into_iter().collect();
    objects.sort_by_key(|(subject, (worst, _))| (Reverse(*worst), *subject));

    let (mut n_lines, mut n_left_out, mut n_objects_left_out) = (0, 0, 0);
    let mut table = table(style, ["OBJECT", "AT", "TYPE", "REASON", "FROM", "WHAT"]);
    for (subject, (_, mut lines)) in objects {
        if HISTORY_MAX < n_lines + lines.len() && 0 < n_lines {
            n_left_out += lines.len();
            n_objects_left_out += 1;
            continue;
        }
        n_lines += lines.len();
        lines.sort_by_key(|it| it.at);
        for (idx, it) in lines.into_iter().enumerate() {
            let attribute = |key| it.attributes.get(key).unwrap_or_default();
            let warns = attribute("type") == "Warning";
            let times = match attribute("count") {
                "" | "1" => String::new(),
                count => format!(" (x{})", Visible(count)),
            };
            table.add_row(vec![
                Cell::new(if idx == 0 {
                    shown(&subject.object)
                } else {
                    String::new()
                }),
                Cell::new(minute(it.at)),
                if warns {
                    Cell::new("Warning").fg(Color::Yellow)
                } else {
                    Cell::new(Visible(attribute("type")))
                },
                Cell::new(Visible(attribute("reason"))),
                Cell::new(Visible(attribute("component"))),
                Cell::new(format!("{}{times}", Visible(&it.text))),
            ]);
        }
    }
    if 0 < n_lines {
        writeln!(to, "\n{}", table.trim_fmt())?;
    }
    if 0 < n_left_out {
        writeln!(
            to,
            "\n{n_objects_left_out} more objects have {n_left_out} more lines of history: -o json shows them all."
        )?;
    }
    Ok(())
}

/// Prints a change, a line for each part of it.
///
/// # Errors
///
/// If it cannot be written.
pub fn write_change(to: &mut dyn Write, change: &Change) -> io::Result<()> {
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
        writeln!(to, "  {}  {object}  {}", minute(it.at), Visible(&it.text))?;
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

fn table<const N: usize>(style: Style, header: [&str; N]) -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_header(header.map(|it| Cell::new(it).add_attribute(Attribute::Bold)));
    match style {
        Style::Terminal => table
            .set_content_arrangement(ContentArrangement::Dynamic)
            .enforce_styling(),
        Style::Colourless => table
            .set_content_arrangement(ContentArrangement::Dynamic)
            .force_no_tty(),
        Style::Plain => table
            .set_content_arrangement(ContentArrangement::Disabled)
            .force_no_tty(),
    };
    table
}

fn severity(it: &Finding) -> Cell {
    if it.status == Status::Cleared {
        return Cell::new("cleared").fg(Color::Green);
    }
    let cell = Cell::new(it.severity.as_str().to_uppercase());
    match it.severity {
        Severity::Critical => cell.fg(Color::Red).add_attribute(Attribute::Bold),
        Severity::Warning => cell.fg(Color::Yellow),
        Severity::Info => cell.fg(Color::Cyan),
    }
}

fn code(it: &Finding) -> String {
    let code = if it.identity.code.is_empty() {
        &it.identity.category
    } else {
        &it.identity.code
    };
    Visible(code).to_string()
}

fn shown(object: &ObjectKey) -> String {
    Visible(&object.to_string()).to_string()
}

/// A time to the second, in UTC; a recording seldom spans more than a day, but
/// who reads it has to know which.
fn minute(at: UnixMs) -> String {
    let time = i64::try_from(at).ok().filter(|it| *it != 0);
    match time.and_then(|it| Timestamp::from_millisecond(it).ok()) {
        Some(time) => time.strftime("%m-%d %H:%M:%SZ").to_string(),
        None => "unknown".to_owned(),
    }
}
