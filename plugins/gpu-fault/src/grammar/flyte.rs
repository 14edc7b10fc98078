//! The note that Flyte's node agent writes on the pod: a sentence, then fields.
//!
//! ```text
//! [gpu-health] [CRITICAL] Xid 79 (GPU has fallen off the bus) on GPU 0 GPU-<uuid>. xid=79 severity=critical gpu_uuid=GPU-<uuid> gpu_index=0 pci=0000:3b:00.0 node=<node> pid=1234 process=python
//! [gpu-health] [CRITICAL] SXid 12028 on NVSwitch 0000:05:00.0. sxid=12028 severity=critical pci=0000:05:00.0 node=<node>
//! ```
//!
//! The fields decide and the sentence is shown. A note that is not wholly of this form is somebody
//! else's and never guessed at. Nothing is copied here: a fault borrows from its note.

use portent_sdk::Attribute;

use crate::{
    action::Action,
    code::{self, Category},
    cursor::{cut, decimal, given, pieces},
    level::Level,
    settings::Settings,
    statement::{Device, Statement, severity},
    table::{self, Remedy},
};

/// What every note begins with.
pub(crate) const PREFIX: &str = "[gpu-health]";

/// Who reported the number: a device's driver or an `NVSwitch`'s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Xid,
    Sxid,
}

/// One report. What the note leaves empty is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fault<'a> {
    kind: Kind,
    number: u32,
    code: &'static str,
    level: Level,
    remedy: Remedy,
    /// For a person, without the prefix and the full stop. It may be empty.
    sentence: &'a str,
    /// What the sentence has in parentheses after the number.
    name: Option<&'a str>,
    uuid: Option<&'a str>,
    gpu_index: Option<u32>,
    pci: Option<&'a str>,
    node: Option<&'a str>,
    pid: Option<u32>,
    process: Option<&'a str>,
}

impl<'a> Fault<'a> {
    /// Reads a note. None when it is not of this form or has no number.
    ///
    /// The severity is the table's. A known word in the note may lower it, for the agent has seen the
    /// kernel's line; it never raises it, for anyone who may create Events writes the note.
    fn parse(note: &'a str) -> Option<Self> {
        let rest = note.strip_prefix(PREFIX)?.trim_ascii_end();
        let (kind, (sentence, fields)) = match cut(rest, " xid=") {
            Some(parts) => (Kind::Xid, parts),
            None => (Kind::Sxid, cut(rest, " sxid=")?),
        };

        let mut fields = pieces(fields, " ");
        let mut number = fields.next()?;
        let (mut severity, mut uuid, mut gpu_index) = ("", "", "");
        let (mut pci, mut node_name, mut pid, mut process) = ("", "", "", "");
        // Nothing but the space that the agent writes, and replaces in the name of a process: whoever
        // runs a process called `a\u{b}xid=13` must not write a field.
        for (key, value) in fields.filter_map(|field| cut(field, "=")) {
            let last = match (kind, key) {
                (Kind::Xid, "xid") | (Kind::Sxid, "sxid") => &mut number,
                (_, "severity") => &mut severity,
                (_, "gpu_uuid") => &mut uuid,
                (_, "gpu_index") => &mut gpu_index,
                (_, "pci") => &mut pci,
                (_, "node") => &mut node_name,
                (_, "pid") => &mut pid,
                (_, "process") => &mut process,
                _ => continue,
            };
            *last = value;
        }

        let number = decimal(number)?;
        let (worst, code, remedy) = match kind {
            Kind::Xid => {
                let row = table::xid(number);
                (row.flyte, row.code, row.remedy)
            }
            // Flyte tells none from another, though NVIDIA calls some of them non-fatal.
            Kind::Sxid => (Level::Critical, code::NVLINK, Remedy::ByWord),
        };
        let level = Level::from_word(severity).filter(|it| *it != Level::Info);
        let sentence = without_level(sentence);
        Some(Self {
            kind,
            number,
            code,
            level: level.map_or(worst, |it| it.min(worst)),
            remedy,
            sentence,
            name: name(sentence),
            uuid: given(uuid),
            gpu_index: decimal(gpu_index),
            pci: given(pci),
            node: given(node_name),
            pid: decimal(pid),
            process: given(process),
        })
    }
}

/// Reads a note. What Flyte's rule says of it stands, but for what the operator says.
pub(crate) fn read(settings: &Settings, note: &str) -> Option<Statement> {
    Fault::parse(note).map(|fault| fault.into_statement(settings))
}

impl Fault<'_> {
    fn into_statement(self, settings: &Settings) -> Statement {
        let (word, said) = match self.kind {
            Kind::Xid => ("xid", settings.xid(self.number)),
            Kind::Sxid => ("sxid", settings.sxid(self.number)),
        };
        let level = said.level.unwrap_or(self.level);
        let by_level = match level {
            Level::User => Action::FixUser,
            Level::Info | Level::Warn => Action::None,
            // The table tells a reset from a drain; that the place is left is Flyte's to say.
            Level::Critical => match self.remedy {
                Remedy::Known(action) if action.leaves() => action,
                _ => Action::RetryElsewhere,
            },
        };
        let action = said.action.unwrap_or(by_level);
        let category = match (level, action) {
            (Level::User, _) | (_, Action::FixUser) => Category::UserError,
            _ => Category::Fault,
        };
        let number = self.number.to_string();
        let device = Device {
            uuid: self.uuid,
            pci: self.pci,
            index: self.gpu_index,
            id: None,
        };
        let key = match device.best() {
            Some(name) => [&number, "/", &name].concat(),
            None => number.clone(),
        };
        let statement = Statement::new(category, self.code, action, self.message(&number));
        Statement {
            key,
            severity: severity(category, level),
            attributes: self.attributes(word, number, level),
            ..statement
        }
    }

    /// The agent's own sentence, or the least that can be said.
    fn message(&self, number: &str) -> String {
        if !self.sentence.is_empty() {
            return self.sentence.to_owned();
        }
        match self.kind {
            Kind::Xid => ["Xid ", number].concat(),
            Kind::Sxid => ["SXid ", number].concat(),
        }
    }

    /// What the report names.
    fn attributes(&self, word: &str, number: String, level: Level) -> Vec<Attribute> {
        let mut attributes = Vec::with_capacity(9);
        attributes.push(Attribute {
            key: word.to_owned(),
            value: number,
        });
        attributes.push(Attribute::new("severity", level.as_word()));
        for (key, value) in [
            ("name", self.name),
            ("uuid", self.uuid),
            ("pci", self.pci),
            ("node", self.node),
            ("process", self.process),
        ] {
            attributes.extend(value.map(|value| Attribute::new(key, value)));
        }
        for (key, value) in [("gpu_index", self.gpu_index), ("pid", self.pid)] {
            attributes.extend(value.map(|value| Attribute::new(key, value)));
        }
        attributes
    }
}

/// ` [CRITICAL] Xid 79 on GPU 0.` is `Xid 79 on GPU 0`.
fn without_level(sentence: &str) -> &str {
    let sentence = sentence.trim_ascii();
    let sentence = match sentence.strip_prefix('[').and_then(|rest| cut(rest, "]")) {
        Some((_, rest)) => rest.trim_ascii_start(),
        None => sentence,
    };
    sentence.strip_suffix('.').unwrap_or(sentence)
}

/// What is in the parentheses after `Xid 79`, up to the one that closes them.
fn name(sentence: &str) -> Option<&str> {
    let rest = sentence
        .strip_prefix('S')
        .unwrap_or(sentence)
        .strip_prefix("Xid ")?;
    let rest = rest.trim_start_matches(|letter: char| letter.is_ascii_digit());
    let inside = rest.strip_prefix(" (")?;
    let mut open = 1_u32;
    let end = inside.bytes().position(|byte| {
        match byte {
            b'(' => open += 1,
            b')' => open -= 1,
            _ => {}
        }
        open == 0
    })?;
    given(inside.split_at(end).0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTE: &str = "[gpu-health] [CRITICAL] Xid 79 (GPU has fallen off the bus) on GPU 0 \
        GPU-6f3c. xid=79 severity=critical gpu_uuid=GPU-6f3c gpu_index=0 pci=0000:3b:00.0 \
        node=ip-10-0-0-1 pid=1234 process=python";

    #[test]
    fn a_whole_note_is_read() {
        let want = Fault {
            kind: Kind::Xid,
            number: 79,
            code: "GpuFallenOffBus",
            level: Level::Critical,
            remedy: Remedy::Known(Action::Drain),
            sentence: "Xid 79 (GPU has fallen off the bus) on GPU 0 GPU-6f3c",
            name: Some("GPU has fallen off the bus"),
            uuid: Some("GPU-6f3c"),
            gpu_index: Some(0),
            pci: Some("0000:3b:00.0"),
            node: Some("ip-10-0-0-1"),
            pid: Some(1234),
            process: Some("python"),
        };
        assert_eq!(Fault::parse(NOTE), Some(want));
    }

    #[test]
    fn an_nvswitch_reports_an_sxid() {
        let fault = Fault::parse(
            "[gpu-health] [CRITICAL] SXid 12028 on NVSwitch 0000:05:00.0. sxid=12028 \
             severity=critical pci=0000:05:00.0 node=n1",
        )
        .unwrap();
        assert_eq!((fault.kind, fault.number), (Kind::Sxid, 12028));
        assert_eq!(
            (fault.level, fault.code),
            (Level::Critical, "GpuNvlinkError")
        );
        assert_eq!(
            (fault.sentence, fault.name),
            ("SXid 12028 on NVSwitch 0000:05:00.0", None)
        );
    }

    #[track_caller]
    fn check_foreign(note: &str) {
        assert_eq!(Fault::parse(note), None, "{note}");
    }

    #[test]
    fn a_note_of_another_form_is_not_ours() {
        check_foreign("");
        check_foreign("Xid 79");
        check_foreign("[gpu-health] something without a machine tail");
        check_foreign("[gpu-health] GPU-6f3c: XID: NVRM: Xid (PCI:0000:3b:00): 79, pid=1");
        check_foreign("say [gpu-health] Xid 79. xid=79");
        check_foreign("[GPU-HEALTH] Xid 79. xid=79");
        check_foreign("[gpu-health] Xid 79. XID=79");
        check_foreign(
            "Xid=79 on Device=nvidia3, UUID=GPU-6f3c, SN=1, the device will go unhealthy.",
        );
        check_foreign("Failed to determine gpu device uuid for Xid=74; Marking all as unhealthy.");
    }

    #[test]
    fn without_a_number_it_is_not_ours() {
        check_foreign("[gpu-health] [WARN] Xid ?? xid=notanumber severity=warn");
        check_foreign("[gpu-health] xid=");
        check_foreign("[gpu-health] xid= 79");
        check_foreign("[gpu-health] xid=+79");
        check_foreign("[gpu-health] xid=79, severity=warn");
        check_foreign("[gpu-health] xid=99999999999");
        check_foreign("[gpu-health] xid=79 xid=x");
    }

    #[track_caller]
    fn check_severity(tail: &str, want: Level) {
        let note = ["[gpu-health] [CRITICAL] ? ", tail].concat();
        assert_eq!(Fault::parse(&note).unwrap().level, want, "{tail}");
    }

    #[test]
    fn the_note_may_lower_the_severity_and_never_raise_it() {
        check_severity("xid=79 severity=warn", Level::Warn);
        check_severity("xid=79 severity=user", Level::User);
        check_severity("sxid=12028 severity=warn", Level::Warn);
        check_severity("xid=92 severity=critical", Level::Warn);
        check_severity("xid=13 severity=critical", Level::User);
    }

    #[test]
    fn without_a_known_severity_the_table_decides() {
        check_severity("xid=79", Level::Critical);
        check_severity("xid=79 severity=", Level::Critical);
        check_severity("xid=79 severity=fatal", Level::Critical);
        check_severity("xid=79 severity=info", Level::Critical);
        check_severity("xid=31 severity=fatal", Level::User);
        check_severity("sxid=1", Level::Critical);
    }

    #[test]
    fn of_two_values_the_last_wins_and_unknown_keys_do_not_matter() {
        let fault =
            Fault::parse("[gpu-health] ? xid=13 xid=79 pci=a link=3 word pci=b node=n node=")
                .unwrap();
        assert_eq!((fault.number, fault.pci, fault.node), (79, Some("b"), None));
    }

    #[test]
    fn an_sxid_beside_an_xid_is_an_unknown_key() {
        let fault = Fault::parse("[gpu-health] ? sxid=12028 xid=79").unwrap();
        assert_eq!((fault.kind, fault.number), (Kind::Xid, 79));
        let fault = Fault::parse("[gpu-health] ? xid=79 sxid=12028").unwrap();
        assert_eq!((fault.kind, fault.number), (Kind::Xid, 79));
    }

    #[test]
    fn a_process_cannot_name_itself_into_another_field() {
        for space in ["\t", "\n", "\u{b}", "\u{c}", "\u{85}", "\u{a0}", "\u{2028}"] {
            let process = ["python", "xid=13", "severity=user"].join(space);
            let note = ["[gpu-health] ? xid=79 process=", &process].concat();
            let fault = Fault::parse(&note).unwrap();
            assert_eq!((fault.number, fault.process), (79, Some(process.as_str())));
        }
    }

    #[test]
    fn a_garbled_number_is_left_out() {
        let fault = Fault::parse("[gpu-health] ? xid=79 gpu_index=-1 pid=12x").unwrap();
        assert_eq!((fault.gpu_index, fault.pid), (None, None));
    }

    #[track_caller]
    fn check_name(sentence: &str, want: Option<&str>) {
        let note = ["[gpu-health] [WARN] ", sentence, ". xid=1"].concat();
        let fault = Fault::parse(&note).unwrap();
        assert_eq!((fault.sentence, fault.name), (sentence, want));
    }

    #[test]
    fn the_name_is_what_the_first_parentheses_hold() {
        check_name("Xid 1 (one) on GPU 0", Some("one"));
        check_name(
            "Xid 1 (one (of two)) on GPU 0 (three)",
            Some("one (of two)"),
        );
        check_name("Xid 1 ()", None);
        check_name("Xid 1 (one", None);
        check_name("Xid 1 on GPU 0 (one)", None);
        check_name("Xid 1", None);
        check_name("", None);
    }
}
