//! How what a replay prints is written: a table's cells, and times.

use comfy_table::{Attribute, Cell, Color, ContentArrangement, Table, presets};
use jiff::Timestamp;

use super::{Clock, Style};
use crate::{
    outcome::{AdditionalReason, Finding, Severity, Status, Verdict},
    record::{ObjectKey, UnixMs},
    text::Visible,
};

pub(super) fn history_row(object: String, at: String, line: &AdditionalReason) -> Vec<Cell> {
    let report = &line.report;
    let times = match report.count() {
        1 => String::new(),
        count => format!(" (x{count})"),
    };
    let event_type = Cell::new(Visible(report.event_type()));
    vec![
        Cell::new(object),
        Cell::new(at),
        if report.event_type() == "Warning" {
            event_type.fg(Color::Yellow)
        } else {
            event_type
        },
        Cell::new(Visible(report.reason())),
        Cell::new(Visible(report.controller())),
        Cell::new(format!("{}{times}", Visible(line.text()))),
    ]
}

/// Whose fault it was, and what to do, of an object that failed.
pub(super) fn verdict_row(object: &ObjectKey, at: String, it: &Verdict) -> Vec<Cell> {
    let avoid = it.avoid.iter();
    let avoid: Vec<_> = avoid
        .map(|(key, value)| format!("{} {}", Visible(key), Visible(value)))
        .collect();
    let avoid = if avoid.is_empty() {
        String::new()
    } else {
        format!(", avoid {}", avoid.join(", "))
    };
    vec![
        Cell::new(shown(object)).add_attribute(Attribute::Bold),
        Cell::new(at),
        Cell::new(Visible(&it.failure_code)),
        Cell::new(Visible(&it.code)),
        Cell::new(it.blame.as_str()),
        Cell::new(format!("{}{avoid}", it.retry.as_str())),
        Cell::new(Visible(&it.message)),
    ]
}

pub(super) fn table<const N: usize>(style: Style, header: [&str; N]) -> Table {
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

pub(super) fn severity(it: &Finding) -> Cell {
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

pub(super) fn code(it: &Finding) -> String {
    let code = if it.identity.code.is_empty() {
        &it.identity.category
    } else {
        &it.identity.code
    };
    Visible(code).to_string()
}

pub(super) fn shown(object: &ObjectKey) -> String {
    Visible(&object.to_string()).to_string()
}

/// A time to the second. A recording seldom spans more than a year, but whoever
/// reads it has to know which day.
pub(crate) fn written(at: UnixMs, clock: &Clock, newest: UnixMs) -> String {
    let time = i64::try_from(at).ok().filter(|it| *it != 0);
    let Some(time) = time.and_then(|it| Timestamp::from_millisecond(it).ok()) else {
        return "unknown".to_owned();
    };
    match clock {
        Clock::Utc => time.strftime("%m-%d %H:%M:%SZ").to_string(),
        Clock::Zone(zone) => time
            .to_zoned(zone.clone())
            .strftime("%m-%d %H:%M:%S")
            .to_string(),
        Clock::Relative => before(newest.saturating_sub(at) / 1_000),
    }
}

/// So many seconds before, in its two largest units.
pub(super) fn before(seconds: u64) -> String {
    match seconds {
        0 => "0s".to_owned(),
        1..60 => format!("-{seconds}s"),
        60..3_600 => format!("-{}m{:02}s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("-{}h{:02}m", seconds / 3_600, seconds / 60 % 60),
        _ => format!("-{}d{:02}h", seconds / 86_400, seconds / 3_600 % 24),
    }
}
