//! What node-problem-detector writes on the Node, with the rules of several vendors and clouds.
//!
//! ```text
//! Node condition XIDErrors is now: True, reason: XIDErrors, message: "NVRM: Xid (PCI:0001:00:00): 79, .."
//! NVRM: Xid (PCI:0000:3b:00): 43, pid=1045242, name=pt_main_thread, Ch 00000008
//! ```
//!
//! A rule is permanent (a Node condition that comes and goes) or temporary (the line that it matched). Which
//! rules there are is a matter of configuration; those of AKS, ACK, AMD and AWS Neuron are known here by the
//! names of their conditions, and the kernel's lines by their form, whatever the rule is called. Facts: AKS,
//! `gpu-health-monitoring`; ACK, node auto repair; ROCm/gpu-operator, `configs/npd`; aws-neuron, problem
//! detector.

use crate::{
    action::Action,
    code::{self, Category},
    cursor::{Cursor, cut, decimal, given, has},
    grammar::{Report, kernel},
    settings::Settings,
    statement::{Device, Statement, Xid},
};

use Action::{Drain, None as Nothing, Reset, RetryElsewhere, Rma};
use Category::{Config, Fault};

/// What a condition means while it is true.
#[rustfmt::skip]
const CONDITIONS: [(&str, Category, &str, Action); 42] = [
    // AKS, and the node health checks for its virtual machines.
    ("XIDErrors",                        Fault,  code::XID,              Drain),
    ("XIDErrorsAlwaysFail",              Fault,  code::XID,              Drain),
    ("XIDError",                         Fault,  code::XID,              Drain),
    ("GPUMissing",                       Fault,  code::MISSING,          Drain),
    ("NVLinkStatusInactive",             Fault,  code::NVLINK,           Drain),
    ("NVLinkB200Inactive",               Fault,  code::NVLINK,           Drain),
    ("NVLinkDown",                       Fault,  code::NVLINK,           Drain),
    ("GPUNVLinkCRCFlitErrors",           Fault,  code::NVLINK,           Nothing),
    ("GPUNVLinkCRCDataErrors",           Fault,  code::NVLINK,           Nothing),
    ("GPUNVLinkReplayErrors",            Fault,  code::NVLINK,           Nothing),
    ("IBLinkFlapping",                   Fault,  code::NETWORK_LINK,     RetryElsewhere),
    ("GPUClockThrottling",               Fault,  code::CLOCKS,           Nothing),
    ("GPUThrottle",                      Fault,  code::CLOCKS,           Nothing),
    ("GPUThermalViolation",              Fault,  code::THERMAL,          Nothing),
    ("GPUPowerViolation",                Fault,  code::POWER,            Nothing),
    ("GPUPCIeReplayErrors",              Fault,  code::PCIE,             Nothing),
    ("GPUECCErrors",                     Fault,  code::ECC,              Reset),
    ("GPUECC",                           Fault,  code::ECC,              Reset),
    ("GPUECCDoubleVolatile",             Fault,  code::ECC,              Reset),
    ("GPUECCDoubleRetired",              Fault,  code::PAGES,            Reset),
    ("GPUECCSingleRetired",              Fault,  code::PAGES,            Nothing),
    ("GPUECCSingleVolatileRate",         Fault,  code::HEALTH,           Nothing),
    ("GPUECCRemapPending",               Fault,  code::ROW_REMAP,        Reset),
    ("GPUECCRemapFailure",               Fault,  code::ROW_REMAP_FAILED, Rma),
    ("UnhealthyNvidiaDevicePlugin",      Config, code::DEVICE_PLUGIN,    RetryElsewhere),
    ("UnhealthyNvidiaDCGMServices",      Config, code::DCGM_SERVICE,     Nothing),
    ("DcgmExporterUnavailable",          Config, code::DCGM_SERVICE,     Nothing),
    ("UnhealthyNvidiaGridLicenseStatus", Config, code::SETUP,            Nothing),
    ("GPUVbiosMismatch",                 Config, code::SETUP,            Nothing),
    ("GPUVbiosInconsistent",             Config, code::SETUP,            Nothing),
    ("GPUDriverProblem",                 Config, code::DRIVER,           RetryElsewhere),
    ("NvidiaSmiProblem",                 Config, code::DRIVER,           RetryElsewhere),
    ("NvidiaDeviceFilesProblem",         Config, code::DRIVER,           RetryElsewhere),
    ("TempIMEXProblem",                  Config, code::FABRIC,           RetryElsewhere),
    // ACK; its conditions for single Xids have their number in their names.
    ("NvidiaDeviceLost",                 Fault,  code::FALLEN_OFF_BUS,   Drain),
    ("NvidiaRemappingRowsFailed",        Fault,  code::ROW_REMAP_FAILED, Rma),
    ("NvidiaRemappingRowsRequireReset",  Fault,  code::ROW_REMAP,        Reset),
    ("NvidiaPendingRetiredPages",        Fault,  code::PAGES,            Reset),
    ("NvidiaInfoRomCorrupted",           Fault,  code::INFOROM,          Rma),
    ("NvidiaPowerCableErr",              Fault,  code::POWER,            Rma),
    // A count of devices, as some write it themselves.
    ("GPUProblem",                       Fault,  code::UNHEALTHY,        Drain),
    // AWS Neuron.
    ("NeuronHealth",                     Fault,  code::NEURON,           Drain),
];

/// What AMD's conditions begin with; the rest is the name of an error in AMD's service guide.
const AMD: &str = "AMDGPU";

pub(crate) fn read(settings: &Settings, report: Report<'_>) -> Option<Statement> {
    if report.controller.is_empty() {
        return None;
    }
    match Change::parse(report.note) {
        Some(change) => of_condition(settings, &change),
        None => kernel::read(settings, report.note).or_else(|| neuron(report.reason, report.note)),
    }
}

/// A Node condition that changed.
struct Change<'a> {
    condition: &'a str,
    status: &'a str,
    reason: &'a str,
    message: &'a str,
}

impl<'a> Change<'a> {
    fn parse(note: &'a str) -> Option<Self> {
        let mut at = Cursor(note);
        at.tag("Node condition ")?;
        let condition = at.until(" is now: ")?;
        let status = at.until(", reason: ")?;
        let reason = at.until_or_rest(", message: ");
        let message = at.0.trim_ascii();
        let message = message.strip_prefix('"').unwrap_or(message);
        Some(Self {
            condition,
            status,
            reason,
            message: message.strip_suffix('"').unwrap_or(message),
        })
    }
}

fn of_condition(settings: &Settings, change: &Change<'_>) -> Option<Statement> {
    let is_over = match change.status {
        "True" => false,
        "False" => true,
        // Nobody knows.
        _ => return None,
    };
    let statement = meaning(settings, change)?;
    if !is_over {
        return Some(statement);
    }
    // Whatever the device was, and whichever of the codes it had.
    let number = Cursor(&statement.key).until_or_rest("/");
    let is_number = number.bytes().all(|byte| byte.is_ascii_digit()) && statement.code != code::RAS;
    let any_device = statement.clone().key(if is_number { number } else { "" });
    Some(match statement.code {
        code::XID if change.condition.starts_with("XIDError") => {
            any_device.key("").cleared_with(&code::OF_XIDS)
        }
        _ => any_device.key("").cleared(),
    })
}

fn meaning(settings: &Settings, change: &Change<'_>) -> Option<Statement> {
    let message = given(change.message).unwrap_or(change.reason);
    // ACK has a condition for each of the numbers that it isolates.
    let number = Cursor(change.condition)
        .0
        .strip_prefix("NvidiaXID")
        .and_then(|it| it.strip_suffix("Error"))
        .and_then(decimal);
    if let Some(number) = number {
        let by_line = kernel::quoted_xid(message).and_then(|it| kernel::xid(settings, it, None));
        let by_number = || Xid::new(number).into_statement(settings, &Device::default());
        return Some(by_line.unwrap_or_else(by_number));
    }
    if change.condition.starts_with(AMD) {
        let afid = afid(message);
        let statement = Statement::new(Fault, code::RAS, Drain, message).maybe("afid", afid);
        let key = afid.map_or(change.condition.to_owned(), |it| it.to_string());
        return Some(statement.key(key).attribute("condition", change.condition));
    }
    let known = CONDITIONS.iter().find(|(it, ..)| *it == change.condition);
    let (_, category, code, action) = known?;
    if *code == code::NEURON {
        let text = if has(message, NEURON) {
            message
        } else {
            change.reason
        };
        return Some(neuron_error(change.reason, text));
    }
    if *code == code::XID || *code == code::NVLINK {
        let by_line = kernel::quoted_xid(message).and_then(|it| kernel::xid(settings, it, None));
        let by_switch = || kernel::quoted_sxid(message).and_then(|it| kernel::sxid(settings, it));
        if let Some(statement) = by_line.or_else(by_switch) {
            return Some(statement);
        }
    }
    let statement = Statement::new(*category, code, *action, message);
    Some(statement.attribute("condition", change.condition))
}

/// `AFID 30`: AMD's number for what happened.
fn afid(text: &str) -> Option<u32> {
    let lower = text.to_ascii_lowercase();
    let (_, behind) = cut(&lower, "afid")?;
    let mut at = Cursor(behind);
    at.while_(|byte| b" :=[(s".contains(&byte));
    at.number()
}

/// What the driver of a Neuron device puts before the word for its error.
const NEURON: &str = "NEURON_HW_ERR=";

/// A temporary rule of the Neuron problem detector: its reason names the word that the line has.
fn neuron(reason: &str, note: &str) -> Option<Statement> {
    let named = reason.strip_prefix("NeuronHasError_")?;
    let (before, behind) = cut(note, NEURON)?;
    let is_its_own = before.is_empty() || before.ends_with(' ');
    let word = Cursor(behind).while_(is_of_word);
    (is_its_own && word == named).then(|| neuron_error(reason, note))
}

fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn neuron_error(reason: &str, text: &str) -> Statement {
    let word = cut(text, NEURON).map(|(_, behind)| Cursor(behind).while_(is_of_word));
    let word = word.or_else(|| reason.strip_prefix("NeuronHasError_"));
    let device = cut(text, "nd-id=").and_then(|(_, it)| Cursor(it).number());
    let message = ["Neuron device: ", word.unwrap_or(text)].concat();
    let statement = Statement::new(Fault, code::NEURON, Drain, message).maybe("error_code", word);
    match device {
        Some(device) => statement
            .key(device.to_string())
            .attribute("device", ["neuron", &device.to_string()].concat()),
        None => statement,
    }
}

#[cfg(test)]
mod tests {
    use portent_sdk::Status;

    use super::*;

    fn read(reason: &str, note: &str) -> Option<Statement> {
        let report = Report {
            kind: "Node",
            reason,
            controller: "kernel-monitor",
            note,
        };
        super::read(&Settings::default(), report)
    }

    fn condition(name: &str, status: &str, message: &str) -> Option<Statement> {
        let note = format!(
            "Node condition {name} is now: {status}, reason: {name}, message: \"{message}\""
        );
        read(name, &note)
    }

    #[test]
    fn every_condition_has_its_meaning() {
        for (name, category, code, action) in CONDITIONS {
            let statement = condition(name, "True", "something").unwrap();
            assert_eq!(
                (statement.category, statement.code, statement.action),
                (category, code, action),
                "{name}"
            );
        }
    }

    #[test]
    fn a_condition_is_named_once() {
        let names: std::collections::BTreeSet<_> = CONDITIONS.iter().map(|(it, ..)| it).collect();
        assert_eq!(names.len(), CONDITIONS.len());
    }

    #[test]
    fn a_line_in_the_message_says_more() {
        let line = "NVRM: Xid (PCI:0001:00:00): 79, pid=<unknown>, name=<unknown>, GPU has fallen off the bus.";
        let statement = condition("XIDErrors", "True", line).unwrap();
        assert_eq!(
            (statement.code, statement.key.as_str()),
            ("GpuFallenOffBus", "79/0001:00:00")
        );
    }

    #[test]
    fn what_is_no_longer_true_ends_what_was() {
        let statement = condition("GPUMissing", "False", "8 GPUs found").unwrap();
        assert_eq!(
            (statement.status, statement.code, statement.key.as_str()),
            (Status::Cleared, "GpuMissing", "")
        );
        let statement = condition("XIDErrors", "False", "no Xid").unwrap();
        assert_eq!(statement.into_findings(0).count(), code::OF_XIDS.len());
        assert_eq!(condition("GPUMissing", "Unknown", ""), None);
    }

    #[test]
    fn a_condition_for_one_number_is_that_number() {
        let statement = condition("NvidiaXID74Error", "True", "").unwrap();
        assert_eq!(
            (statement.code, statement.key.as_str()),
            ("GpuNvlinkError", "74")
        );
    }

    #[test]
    fn an_afid_is_read_and_is_no_xid() {
        for message in [
            "inband RAS error CPER_SEVERITY_FATAL AFID 30",
            "gpu: 0 AFID: 30",
            "afid=30 over threshold",
            "AFIDs [30]",
        ] {
            let statement = condition("AMDGPUDeviceInternalError", "True", message).unwrap();
            assert_eq!(statement.find("afid"), Some("30"), "{message}");
            assert_eq!(statement.find("xid"), None);
        }
        let statement = condition("AMDGPUXgmi", "True", "threshold 79 crossed").unwrap();
        assert_eq!(
            (statement.find("afid"), statement.key.as_str()),
            (None, "AMDGPUXgmi")
        );
    }

    #[test]
    fn a_neuron_device_is_named() {
        let line =
            "kernel: NEURON_HW_ERR=HBM_UNCORRECTABLE_ERROR instance-id=i-0 hostname=h nd-id=3";
        let statement = condition("NeuronHealth", "True", line).unwrap();
        assert_eq!(statement.find("device"), Some("neuron3"));
        assert_eq!(
            statement.find("error_code"),
            Some("HBM_UNCORRECTABLE_ERROR")
        );
        let statement = read(
            "NeuronHasError_DMA_ERROR",
            "NEURON_HW_ERR=DMA_ERROR nd-id=0",
        )
        .unwrap();
        assert_eq!(
            (statement.code, statement.key.as_str()),
            ("NeuronHardwareError", "0")
        );
    }

    #[test]
    fn other_conditions_and_lines_are_not_ours() {
        for name in [
            "KernelDeadlock",
            "ReadonlyFilesystem",
            "GPU",
            "MemoryPressure",
            "NvidiaXIDxError",
        ] {
            assert_eq!(
                condition(name, "True", "NVRM: Xid (PCI:0001:00:00): 79, x"),
                None,
                "{name}"
            );
        }
        for note in [
            "",
            "Node condition",
            "Node condition GPUMissing is now: True",
            "task nvidia-smi:79 blocked for more than 120 seconds",
            "Memory cgroup out of memory: Killed process 79 (cuda)",
        ] {
            assert_eq!(read("TaskHung", note), None, "{note}");
        }
    }
}
