//! What the EKS node monitoring agent writes on the Node: what it does not hold for fatal.
//!
//! ```text
//! reason AcceleratedHardwareReady
//! note   NvidiaXID31Warning: detected unknown XID-31 on the instance, review kernel logs for additional information.
//! ```
//!
//! The reason is the name of a Node condition; what happened is the first word of the note. What the agent
//! holds for fatal becomes that condition, and no Event. A number behind `DCGM` is DCGM's own and no Xid.
//! Facts: aws/eks-node-monitoring-agent, `monitors/` and `reasons.yaml`.

use crate::{
    action::Action,
    code::{self, Category},
    cursor::{Cursor, cut, decimal},
    grammar::Report,
    settings::Settings,
    statement::{Device, Statement, Sxid, Xid},
};

use Action::{Drain, FixUser, None as Nothing, Reset, RetryElsewhere};
use Category::{Config, Fault, UserError};

const AGENT: &str = "eks-node-monitoring-agent";

/// What a word means, whatever follows it.
#[rustfmt::skip]
const WORDS: [(&str, Category, &str, Action); 19] = [
    ("NvidiaThermalError",                Fault,     code::THERMAL,      Nothing),
    ("NvidiaPowerError",                  Fault,     code::POWER,        Nothing),
    ("NvidiaPCIeError",                   Fault,     code::PCIE,         Nothing),
    ("NvidiaDeviceCountMismatch",         Fault,     code::MISSING,      Drain),
    ("NvidiaExpectedDeviceCountMismatch", Fault,     code::MISSING,      Drain),
    ("NvidiaDoubleBitError",              Fault,     code::ECC,          Reset),
    ("NvidiaNVLinkError",                 Fault,     code::NVLINK,       Reset),
    ("NvidiaFabricError",                 Fault,     code::FABRIC,       Drain),
    ("NvidiaNCCLError",                   UserError, code::NCCL,         FixUser),
    ("DCGMDiagnosticFailure",             Fault,     code::DIAGNOSTIC,   Drain),
    ("DCGMError",                         Config,    code::DCGM_SERVICE, Nothing),
    ("FabricManagerNotRunning",           Config,    code::FABRIC,       RetryElsewhere),
    ("FabricManagerNotRunningWarning",    Config,    code::FABRIC,       Nothing),
    ("NeuronDMAError",                    Fault,     code::NEURON,       Drain),
    ("NeuronHBMUncorrectableError",       Fault,     code::NEURON,       Drain),
    ("NeuronNCUncorrectableError",        Fault,     code::NEURON,       Drain),
    ("NeuronSRAMUncorrectableError",      Fault,     code::NEURON,       Drain),
    ("NeuronHangOnCollectives",           Fault,     code::NEURON,       Drain),
    ("DCGMDiagnosticWarning",             Fault,     code::DIAGNOSTIC,   Nothing),
];

pub(crate) fn read(settings: &Settings, report: Report<'_>) -> Option<Statement> {
    if report.controller != AGENT {
        return None;
    }
    let (word, text) = cut(report.note, ": ")?;
    let mut at = Cursor(word);
    if at.maybe("NvidiaXID") {
        let number = at.number()?;
        at.tag("Warning").or_else(|| at.tag("Error"))?;
        at.end()?;
        let mut said = Cursor(text);
        said.tag("detected ")?;
        said.maybe("unknown ");
        said.tag("XID-")?;
        let is_it = said.number() == Some(number);
        return is_it.then(|| Xid::new(number).into_statement(settings, &Device::default()));
    }
    if at.maybe("DCGMHealthCode") {
        let number = at.number()?;
        at.end()?;
        text.strip_prefix("DCGM detected issues in health check system")?;
        let message = ["DCGM reports a health issue, code ", &number.to_string()].concat();
        let statement = Statement::new(Fault, code::DCGM, Nothing, message);
        return Some(
            statement
                .key(number.to_string())
                .attribute("dcgm_code", number),
        );
    }
    if at.maybe("DCGMFieldError") {
        let number = at.number()?;
        at.end()?;
        return field(settings, number, text);
    }
    if word == "NvidiaPageRetirement" {
        return pages(text);
    }
    let (_, category, code, action) = WORDS.iter().find(|(it, ..)| *it == word)?;
    let statement = Statement::new(*category, code, *action, text.trim_ascii_end());
    let is_neuron = *code == code::NEURON;
    Some(statement.key(if is_neuron { word } else { "" }))
}

/// `DCGM detected fieldID 856 with statusCode -1: SXID Fatal Error Code 12028`.
fn field(settings: &Settings, number: u32, text: &str) -> Option<Statement> {
    let mut at = Cursor(text);
    at.tag("DCGM detected fieldID ")?;
    at.number()?;
    at.tag(" with statusCode ")?;
    let behind = cut(at.0, ": ").map_or("", |(_, it)| it);
    let mut at = Cursor(behind);
    let fatal = if at.maybe("SXID Fatal Error Code ") {
        Some(true)
    } else {
        at.maybe("SXID Non-Fatal Error Code ").then_some(false)
    };
    let sxid = fatal.and_then(|_| decimal(at.0.trim_ascii()));
    let statement = match sxid {
        Some(number) => Sxid { number, fatal }.into_statement(settings, &Device::default()),
        None => Statement::new(Fault, code::DCGM, Nothing, text.trim_ascii_end())
            .key(["field-", &number.to_string()].concat()),
    };
    Some(statement.attribute("dcgm_field", number))
}

/// `detected 0 SBE, and 1 DBE page retirements`.
fn pages(text: &str) -> Option<Statement> {
    let mut at = Cursor(text);
    let n_double = if at.maybe("detected ") {
        at.number()?;
        at.tag(" SBE, and ")?;
        at.number()?
    } else {
        at.tag("page retirement threshold reached")?;
        1
    };
    let action = if n_double == 0 { Nothing } else { Reset };
    let message = text.trim_ascii_end();
    Some(Statement::new(Fault, code::PAGES, action, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(note: &str) -> Option<Statement> {
        let report = Report {
            kind: "Node",
            reason: "AcceleratedHardwareReady",
            controller: AGENT,
            note,
        };
        super::read(&Settings::default(), report)
    }

    #[track_caller]
    fn check(note: &str, category: Category, code: &str, action: Action) {
        let statement = read(note).unwrap();
        assert_eq!(
            (statement.category, statement.code, statement.action),
            (category, code, action),
            "{note}"
        );
    }

    #[test]
    fn an_xid_is_read_and_has_to_agree_with_its_word() {
        let note = "NvidiaXID31Warning: detected unknown XID-31 on the instance, review kernel logs for additional information.";
        check(note, UserError, "GpuXidError", FixUser);
        assert_eq!(read(note).unwrap().find("xid"), Some("31"));
        let note = "NvidiaXID79Error: detected XID-79 on the instance, review kernel logs for additional information.";
        check(note, Fault, "GpuFallenOffBus", Drain);
        assert_eq!(
            read("NvidiaXID31Warning: detected unknown XID-79 on the instance"),
            None
        );
    }

    #[test]
    fn a_number_of_dcgms_is_no_xid() {
        let note =
            "DCGMHealthCode95: DCGM detected issues in health check system with error code 95";
        check(note, Fault, "GpuDcgmWarning", Nothing);
        let statement = read(note).unwrap();
        assert_eq!(statement.find("dcgm_code"), Some("95"));
        assert_eq!(statement.find("xid"), None);

        let note = "DCGMFieldError112: DCGM detected fieldID 112 with statusCode -3: Clocks Throttle Reason \"hw_thermal\"";
        check(note, Fault, "GpuDcgmWarning", Nothing);
        assert_eq!(read(note).unwrap().find("dcgm_field"), Some("112"));
    }

    #[test]
    fn a_field_may_hold_an_sxid() {
        let note = "DCGMFieldError856: DCGM detected fieldID 856 with statusCode -1: SXID Fatal Error Code 20034";
        check(note, Fault, "GpuNvlinkError", RetryElsewhere);
        assert_eq!(read(note).unwrap().find("sxid"), Some("20034"));
        let note = "DCGMFieldError857: DCGM detected fieldID 857 with statusCode -1: SXID Non-Fatal Error Code 12028";
        check(note, Fault, "GpuNvlinkError", Nothing);
    }

    #[test]
    fn pages_are_retired_for_good_by_a_double_error_only() {
        check(
            "NvidiaPageRetirement: detected 0 SBE, and 1 DBE page retirements",
            Fault,
            "GpuPageRetirement",
            Reset,
        );
        check(
            "NvidiaPageRetirement: detected 2 SBE, and 0 DBE page retirements",
            Fault,
            "GpuPageRetirement",
            Nothing,
        );
    }

    #[test]
    fn every_other_word_has_its_meaning() {
        for (word, category, code, action) in WORDS {
            check(&[word, ": something"].concat(), category, code, action);
        }
    }

    #[test]
    fn another_form_is_not_ours() {
        for note in [
            "",
            "NvidiaXID31Warning",
            "NvidiaXIDWarning: detected unknown XID-31",
            "NvidiaXID31: detected unknown XID-31",
            "NvidiaXID31Warning: 31 problems",
            "DCGMHealthCode95: fine",
            "DCGMFieldError1: fine",
            "NvidiaPageRetirement: none",
            "SoftLockup: CPU stuck for 79s",
            "EBSVolumeIOPSExceeded: nvidia",
        ] {
            assert_eq!(read(note), None, "{note}");
        }
    }
}
