//! Lines of the kernel's log, which node-problem-detector hands on as they are and others quote.
//!
//! ```text
//! NVRM: Xid (PCI:0000:3b:00 GPU-I:05 GPU-CI:01): 31, pid=7194, name=python, Ch 00000002, intr 00000000. MMU Fault: ...
//! NVRM: Xid (PCI:0000:3b:00): 45, pid=20971, name=python, Ch 00000010 caused by previous Xid 79
//! NVRM: Xid (PCI:0000:01:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)
//! NVRM: Xid (PCI:0018:01:00): 145, RLW_RXPIPE Nonfatal XC0 i0 Link 13 (0x0409a0c2 0x00000008 ...)
//! nvidia-nvswitch0: SXid (PCI:0000:05:00.0): 20034, Fatal, Link 63 LTSSM Fault Up
//! ```
//!
//! The number is the first one behind the first `): `: whoever names a process `a): 79, x` writes behind it.
//! What a switch's driver adds in lines of the same number (`Severity ..`, `Data ..`) is not said twice.

use crate::{
    action::Action,
    code::{self, Category},
    cursor::{Cursor, cut, cut_last, decimal, given, has},
    settings::Settings,
    statement::{Device, Statement, Sxid, Xid},
    table,
};

const NVRM: &str = "NVRM: ";
const XID: &str = "NVRM: Xid (";
const SWITCH: &str = "nvidia-nvswitch";

/// Reads a note that is a line of the log, with or without what a log puts before it.
pub(crate) fn read(settings: &Settings, note: &str) -> Option<Statement> {
    let line = without_time(note);
    if line.starts_with(XID) {
        xid(settings, line, None)
    } else if line.starts_with(SWITCH) {
        sxid(settings, line)
    } else {
        line.strip_prefix(NVRM).and_then(|_| without_number(line))
    }
}

/// The first Xid that a text quotes: where another has put words of its own before the line.
pub(crate) fn quoted_xid(note: &str) -> Option<&str> {
    let (_, line) = cut(note, XID)?;
    // Where it begins in the text.
    let start = note.len() - line.len() - XID.len();
    note.get(start..)
}

/// The first `SXid` that a text quotes.
pub(crate) fn quoted_sxid(note: &str) -> Option<&str> {
    let (_, line) = cut(note, SWITCH)?;
    let start = note.len() - line.len() - SWITCH.len();
    note.get(start..)
}

/// What is left behind `kernel: `, `<3>` and `[16450076.435595] `, each of which may be there.
fn without_time(note: &str) -> &str {
    let mut at = Cursor(note.trim_ascii_start());
    at.maybe("kernel: ");
    for (open, close) in [("<", ">"), ("[", "]")] {
        let mut inside = at;
        if inside.maybe(open) {
            inside.while_(|byte| byte.is_ascii_digit() || b" .".contains(&byte));
            if inside.maybe(close) {
                at = inside;
            }
        }
    }
    at.0.trim_ascii_start()
}

/// An Xid's line, from `NVRM` on. `advised` is what somebody who quotes it recommends.
pub(crate) fn xid(settings: &Settings, line: &str, advised: Option<Action>) -> Option<Statement> {
    let line = line.lines().next().unwrap_or_default();
    let mut at = Cursor(line);
    at.tag(XID)?;
    at.maybe("PCI:");
    let place = at.until("): ")?;
    let mut place = Cursor(place);
    let pci = given(place.while_(is_of_pci))?;
    let gi = place.maybe(" GPU-I:").then(|| place.number()).flatten();
    let ci = place.maybe(" GPU-CI:").then(|| place.number()).flatten();
    place.end()?;
    finish(settings, at, pci, gi, ci, advised)
}

fn finish(
    settings: &Settings,
    mut at: Cursor<'_>,
    pci: &str,
    gi: Option<u32>,
    ci: Option<u32>,
    advised: Option<Action>,
) -> Option<Statement> {
    let number = at.number()?;
    // A number that the end of the note cuts is another number.
    at.tag(", ").or_else(|| at.tag(","))?;
    let pid = at.maybe("pid=").then(|| at.until_or_rest(", "));
    let process = at.maybe("name=").then(|| at.until_or_rest(", "));
    let text = at.0;

    let root = (number == 45).then(|| root(text)).flatten();
    let recovery = (number == 154).then(|| recovery(text)).flatten();
    let link = (144..=150)
        .contains(&number)
        .then(|| Nvlink5::parse(text))
        .flatten();
    let device = Device {
        pci: Some(pci),
        ..Device::default()
    };
    let xid = Xid {
        root,
        recovery,
        fatal: link.map(|it| it.fatal),
        wants_reset: wants_reset(text),
        advised,
        ..Xid::new(number)
    };
    let mut statement = xid
        .into_statement(settings, &device)
        .maybe("mig_gi", gi)
        .maybe("mig_ci", ci)
        .maybe("pid", pid.and_then(|it| Cursor(it).number()))
        .maybe("process", process.filter(|it| *it != "<unknown>"));
    if let Some(link) = link {
        statement = statement
            .attribute("nvlink_unit", link.unit)
            .maybe("link", link.link)
            .maybe(
                "advice",
                table::nvlink5(number, link.unit, link.info, link.status),
            );
    }
    if let Some([gpc, tpc, sm]) = multiprocessor(text) {
        statement = statement
            .attribute("gpc", gpc)
            .attribute("tpc", tpc)
            .attribute("sm", sm);
    }
    Some(statement)
}

/// `RST: No, D-RST: Yes`: whether the device, or all of them, want a reset.
pub(crate) fn wants_reset(text: &str) -> bool {
    has(text, "RST: Yes")
}

fn is_of_pci(byte: u8) -> bool {
    byte.is_ascii_hexdigit() || b":.".contains(&byte)
}

/// ` caused by previous Xid 79`, at the end of the line.
fn root(text: &str) -> Option<u32> {
    let (_, behind) = cut_last(text, " caused by previous Xid ")?;
    let mut at = Cursor(behind);
    let number = at.number()?;
    at.maybe(".");
    at.end()?;
    Some(number)
}

/// The second parentheses: the action that is needed now.
fn recovery(text: &str) -> Option<&str> {
    let mut at = Cursor(text);
    at.tag("GPU recovery action changed from ")?;
    at.until(") to 0x")?;
    at.while_(|byte| byte.is_ascii_hexdigit());
    at.tag(" (")?;
    at.until(")").and_then(given)
}

/// `(GPC 7, TPC 7, SM 0)`: where on the die.
fn multiprocessor(text: &str) -> Option<[u32; 3]> {
    let (_, behind) = cut(text, "(GPC ")?;
    let mut at = Cursor(behind);
    let gpc = at.number()?;
    at.tag(", TPC ")?;
    let tpc = at.number()?;
    at.tag(", SM ")?;
    let sm = at.number()?;
    at.tag(")")?;
    Some([gpc, tpc, sm])
}

/// `RLW_RXPIPE Nonfatal XC0 i0 Link 13 (0x0409a0c2 0x00000008 0x..`
#[derive(Clone, Copy)]
struct Nvlink5<'a> {
    unit: &'a str,
    fatal: bool,
    link: Option<u32>,
    info: u32,
    status: u32,
}

impl<'a> Nvlink5<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let mut at = Cursor(text);
        let unit = at.while_(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        at.tag(" ")?;
        let fatal = match at.until_or_rest(" ") {
            "Fatal" => true,
            "Nonfatal" | "Non-fatal" => false,
            _ => return None,
        };
        let mut words = Cursor(at.until_or_rest("("));
        let link = words.until("Link ").and_then(|_| words.number());
        let mut word = || {
            at.maybe(" ");
            at.tag("0x")?;
            let digits = at.while_(|byte| byte.is_ascii_hexdigit());
            u32::from_str_radix(digits, 16).ok()
        };
        // Zeroes match no row.
        let (info, status) = (word().unwrap_or(0), word().unwrap_or(0));
        Some(Self {
            unit: given(unit)?,
            fatal,
            link,
            info,
            status,
        })
    }
}

/// The line of an `NVSwitch`.
pub(crate) fn sxid(settings: &Settings, line: &str) -> Option<Statement> {
    let line = line.lines().next().unwrap_or_default();
    let mut at = Cursor(line);
    at.tag(SWITCH)?;
    let switch = at.number()?;
    at.tag(": SXid (")?;
    at.maybe("PCI:");
    let mut place = Cursor(at.until("): ")?);
    let pci = given(place.while_(is_of_pci))?;
    place.end()?;
    let number = at.number()?;
    at.tag(", ").or_else(|| at.tag(","))?;
    // Lines that follow with the same number have neither word.
    let fatal = match at.until_or_rest(",").trim_ascii() {
        "Fatal" => true,
        "Non-fatal" | "Nonfatal" => false,
        _ => return None,
    };
    let text = at.0.trim_ascii_start();
    let mut behind = Cursor(text);
    let of_link = behind.maybe("Link ").then(|| behind.number()).flatten();
    let device = Device {
        pci: Some(pci),
        ..Device::default()
    };
    let sxid = Sxid {
        number,
        fatal: Some(fatal),
    };
    let statement = sxid
        .into_statement(settings, &device)
        .attribute("nvswitch", switch)
        .maybe("link", of_link);
    Some(polarity(statement, text))
}

/// Some numbers say that what another one said is over: 28002 (`Therm Warn Deactivated`) of 28001, for
/// example. It ends that one on the same device.
pub(crate) fn polarity(statement: Statement, text: &str) -> Statement {
    if !text.trim_ascii_end().ends_with("Deactivated") {
        return statement;
    }
    let device = cut(&statement.key, "/").map_or("", |(_, it)| it);
    let number = statement.find("sxid").and_then(decimal);
    let activated = number.map_or(0, |it| it.saturating_sub(1)).to_string();
    let key = if device.is_empty() {
        activated
    } else {
        [&activated, "/", device].concat()
    };
    statement.key(key).cleared()
}

/// What the driver says without a number.
fn without_number(line: &str) -> Option<Statement> {
    // The text may be several lines long, each with the driver's name before it.
    let text = line.strip_prefix(NVRM)?;
    let pci = place(text);
    let device = Device {
        pci,
        ..Device::default()
    };
    let statement = if has(text, "fallen off the bus") {
        Statement::new(
            Category::Fault,
            code::FALLEN_OFF_BUS,
            Action::Drain,
            "GPU has fallen off the bus",
        )
    } else if has(text, "RmInitAdapter failed!") {
        Statement::new(
            Category::Fault,
            code::INIT,
            Action::Drain,
            "the driver could not initialise the GPU",
        )
    } else if text.starts_with("API mismatch: ") {
        Statement::new(
            Category::Config,
            code::DRIVER,
            Action::RetryElsewhere,
            "versions of the driver's parts differ",
        )
    } else {
        return None;
    };
    Some(statement.on(&device))
}

/// `GPU 0000:c5:00.0: ...`, `The NVIDIA GPU 0000:01:00.0 ...`.
fn place(text: &str) -> Option<&str> {
    let mut at = Cursor(text);
    at.maybe("The NVIDIA ");
    at.tag("GPU ")?;
    at.maybe("at PCI:");
    let pci = at.while_(is_of_pci);
    given(pci.trim_end_matches([':', '.']))
}

#[cfg(test)]
mod tests;
