//! What `NVSentinel`'s monitors write on the Node: what they do not hold for fatal.
//!
//! ```text
//! reason SysLogsXIDErrorIsNotHealthy    type SysLogsXIDError
//! note   ErrorCode:31 PCI:0001:00:00 GPU_UUID:GPU-6f3c.. kernel: [16450076.4] NVRM: Xid (PCI:0001:00:00): 31, .. Recommended Action=NONE;
//! note   ErrorCode:DCGM_FR_PCI_REPLAY_RATE GPU:0 Pcie error on GPU 0 Recommended Action=UNKNOWN;
//! ```
//!
//! The reason is the name of a check and its result. Codes and what is affected come first, then a text in
//! words, which may quote the kernel's line, then the action; what is fatal becomes a Node condition and no
//! Event. Facts: NVIDIA/NVSentinel, `process_node_events.go`.

use crate::{
    action::Action,
    code::{self, Category},
    cursor::{Cursor, cut, cut_last, decimal, given},
    grammar::{Report, kernel},
    settings::Settings,
    statement::{Device, Statement, Sxid, Xid},
};

const NOT_HEALTHY: &str = "IsNotHealthy";
const HEALTHY: &str = "IsHealthy";

/// What a check looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Check {
    Xid,
    Sxid,
    FallenOff,
    /// One of DCGM's, by the word for what it finds.
    Watch(Category, &'static str),
}

/// The check that a reason names, if it is one about devices.
pub(crate) fn check(reason: &str) -> Option<Check> {
    let name = reason
        .strip_suffix(NOT_HEALTHY)
        .or_else(|| reason.strip_suffix(HEALTHY))?;
    let fault = |code| Some(Check::Watch(Category::Fault, code));
    match name {
        "SysLogsXIDError" | "GpuXidError" | "GpuXidWatch" => Some(Check::Xid),
        "SysLogsSXIDError" | "NvswitchErrorFromKmsgWatch" | "NvswitchErrorWatch" => {
            Some(Check::Sxid)
        }
        "SysLogsGPUFallenOff" => Some(Check::FallenOff),
        "GpuThermalWatch" => fault(code::THERMAL),
        "GpuPowerWatch" => fault(code::POWER),
        "GpuPcieWatch" => fault(code::PCIE),
        "GpuMemWatch" => fault(code::ECC),
        "GpuInforomWatch" => fault(code::INFOROM),
        "GpuNvlinkWatch" | "GpuNvswitchFatalWatch" | "GpuNvswitchNonfatalWatch" => {
            fault(code::NVLINK)
        }
        "GpuDcgmConnectivityFailure" => Some(Check::Watch(Category::Config, code::DCGM_SERVICE)),
        // SMs, micro-controllers, drivers, CPU sets, and what the repeats of an Xid tell.
        name if name.starts_with("Gpu")
            || name.ends_with("XidError")
            || name.ends_with("XIDError") =>
        {
            fault(code::HEALTH)
        }
        _ => None,
    }
}

/// A note, taken apart.
struct Parts<'a> {
    /// The first.
    code: &'a str,
    device: Device<'a>,
    link: Option<&'a str>,
    nvswitch: Option<&'a str>,
    text: &'a str,
    action: Option<Action>,
}

impl<'a> Parts<'a> {
    fn parse(note: &'a str) -> Option<Self> {
        let (rest, action) = match cut_last(note, "Recommended Action=") {
            Some((rest, word)) => (rest, Some(word.trim_ascii_end().trim_end_matches(';'))),
            // The end is cut.
            None => (note, None),
        };
        let mut parts = Self {
            code: "",
            device: Device::default(),
            link: None,
            nvswitch: None,
            text: rest.trim_ascii(),
            action: action.and_then(recommended),
        };
        while let Some((word, rest)) = cut(parts.text, " ").or(Some((parts.text, ""))) {
            let Some((kind, value)) = cut(word, ":").filter(|(_, it)| !it.is_empty()) else {
                break;
            };
            match kind {
                "ErrorCode" if parts.code.is_empty() => parts.code = value,
                "ErrorCode" => {}
                "PCI" => parts.device.pci = Some(value),
                "GPU_UUID" => parts.device.uuid = Some(value),
                "GPU" | "gpu" => match decimal(value) {
                    Some(index) => parts.device.index = Some(index),
                    None => parts.device.uuid = Some(value),
                },
                "NVSWITCH" => parts.nvswitch = Some(value),
                "NVLINK" | "LINK" => parts.link = Some(value),
                // Another entity, not the first word of a sentence: `kernel:` has no value.
                kind if kind.bytes().all(|it| it.is_ascii_uppercase() || it == b'_') => {}
                _ => break,
            }
            parts.text = rest.trim_ascii_start();
        }
        (!parts.code.is_empty() || action.is_some()).then_some(parts)
    }
}

/// What the word for an action asks for. None where it asks for nothing that is known.
fn recommended(word: &str) -> Option<Action> {
    match word {
        "NONE" | "UNKNOWN" | "CUSTOM" => Some(Action::None),
        "COMPONENT_RESET" => Some(Action::Reset),
        "CONTACT_SUPPORT" | "REPLACE_VM" => Some(Action::Rma),
        "NODE_REBOOT" | "RESTART_VM" | "RESTART_BM" | "RUN_FIELDDIAG" | "RUN_DCGMEUD" => {
            Some(Action::Drain)
        }
        _ => None,
    }
}

pub(crate) fn read(settings: &Settings, report: Report<'_>) -> Option<Statement> {
    let check = check(report.reason)?;
    if !report.reason.ends_with(NOT_HEALTHY) {
        return Some(healthy(check));
    }
    let parts = Parts::parse(report.note)?;
    let statement = match check {
        Check::Xid => xid(settings, &parts)?,
        Check::Sxid => sxid(settings, &parts)?,
        Check::FallenOff => {
            let message = "GPU has fallen off the bus";
            Statement::new(
                Category::Fault,
                code::FALLEN_OFF_BUS,
                Action::Drain,
                message,
            )
            .on(&parts.device)
        }
        Check::Watch(..) if parts.code == "DCGM_FR_XID_ERROR" => {
            let (_, behind) = cut(parts.text, "Detected XID ")?;
            let number = Cursor(behind).number()?;
            Xid::new(number).into_statement(settings, &parts.device)
        }
        Check::Watch(category, code) => {
            // A name of DCGM's, where there is one. A number is another check's.
            let is_of_name = |it: u8| it.is_ascii_uppercase() || it.is_ascii_digit() || it == b'_';
            let is_number = parts.code.starts_with(|it: char| it.is_ascii_digit());
            if is_number || !parts.code.bytes().all(is_of_name) {
                return None;
            }
            let action = parts.action.unwrap_or(Action::None);
            let message = given(parts.text).unwrap_or(parts.code);
            Statement::new(category, code, action, message)
                .maybe("error_code", given(parts.code))
                .on(&parts.device)
        }
    };
    Some(
        statement
            .maybe("link", parts.link)
            .maybe("nvswitch", parts.nvswitch),
    )
}

/// The numbers of a switch are greater than those of a device.
const FIRST_SXID: u32 = 10_000;

fn xid(settings: &Settings, parts: &Parts<'_>) -> Option<Statement> {
    let number = decimal(parts.code).filter(|it| *it < FIRST_SXID)?;
    let by_number = Xid {
        advised: parts.action,
        wants_reset: kernel::wants_reset(parts.text),
        ..Xid::new(number)
    };
    let quoted = kernel::quoted_xid(parts.text);
    // A line that the end of the note cuts says nothing more.
    let Some(by_line) = quoted.and_then(|it| kernel::xid(settings, it, parts.action)) else {
        return Some(by_number.into_statement(settings, &parts.device));
    };
    if by_line.find("xid").and_then(decimal) != Some(number) {
        return None;
    }
    // By the name that the monitor has for the device, which is better than the line's.
    let (number, _) = cut(&by_line.key, "/").unwrap_or((&by_line.key, ""));
    let key = number.to_owned();
    let is_named = parts.device.best().is_some();
    Some(if is_named {
        by_line.key(key).on(&parts.device)
    } else {
        by_line
    })
}

fn sxid(settings: &Settings, parts: &Parts<'_>) -> Option<Statement> {
    let number = decimal(parts.code).filter(|it| FIRST_SXID <= *it)?;
    if let Some(line) = kernel::quoted_sxid(parts.text) {
        let by_line = kernel::sxid(settings, line)?;
        return (by_line.find("sxid") == Some(parts.code)).then_some(by_line);
    }
    let sxid = Sxid {
        number,
        fatal: None,
    };
    let device = match (parts.device.best(), parts.nvswitch) {
        (None, Some(nvswitch)) => Device {
            id: Some(nvswitch),
            ..parts.device
        },
        _ => parts.device,
    };
    Some(kernel::polarity(
        sxid.into_statement(settings, &device),
        parts.text,
    ))
}

/// What a check says when it is well again: what it found before is over, on whatever device.
fn healthy(check: Check) -> Statement {
    let over = |code| {
        Statement::new(
            Category::Fault,
            code,
            Action::None,
            "the check is healthy again",
        )
    };
    match check {
        Check::Xid => over(code::XID).cleared_with(&code::OF_XIDS),
        Check::Sxid => over(code::NVLINK).cleared(),
        Check::FallenOff => over(code::FALLEN_OFF_BUS).cleared(),
        Check::Watch(category, code) => Statement {
            category,
            ..over(code).cleared()
        },
    }
}

#[cfg(test)]
mod tests {
    use portent_sdk::Status;

    use super::*;

    fn read(check: &str, note: &str) -> Option<Statement> {
        let report = Report {
            kind: "Node",
            reason: &[check, "IsNotHealthy"].concat(),
            controller: "syslog-health-monitor",
            note,
        };
        super::read(&Settings::default(), report)
    }

    #[track_caller]
    fn check_says(check: &str, note: &str, code: &str, action: Action, want: &[(&str, &str)]) {
        let statement = read(check, note).unwrap();
        assert_eq!((statement.code, statement.action), (code, action), "{note}");
        for (key, value) in want {
            assert_eq!(statement.find(key), Some(*value), "{note}: {key}");
        }
    }

    #[test]
    fn an_xid_is_read_with_what_it_affects() {
        check_says(
            "SysLogsXIDError",
            "ErrorCode:13 PCI:0000:cb:00 GPU_UUID:GPU-1 Graphics SM Warp Exception Recommended Action=NONE;",
            "GpuXidError",
            Action::FixUser,
            &[("xid", "13"), ("pci", "0000:cb:00"), ("uuid", "GPU-1")],
        );
        check_says(
            "GpuXidError",
            "ErrorCode:79 gpu:0 XID error occured Recommended Action=NODE_REBOOT;",
            "GpuFallenOffBus",
            Action::Drain,
            &[("xid", "79"), ("gpu_index", "0")],
        );
    }

    #[test]
    fn a_quoted_line_says_more_and_is_not_counted_twice() {
        let note = "ErrorCode:145 PCI:0000:cb:00 GPU_UUID:GPU-1 kernel: [1.2] NVRM: Xid (PCI:0000:cb:00): 145, \
            RLW_RXPIPE Nonfatal XC0 i0 Link 13 (0x0 0x8) Recommended Action=NONE;";
        check_says(
            "SysLogsXIDError",
            note,
            "GpuXidError",
            Action::None,
            &[("link", "13"), ("fatal", "false"), ("uuid", "GPU-1")],
        );
        assert_eq!(read("SysLogsXIDError", note).unwrap().key, "145/GPU-1");
    }

    #[test]
    fn a_quoted_line_with_another_number_is_nobodys() {
        let note = "ErrorCode:31 PCI:0000:cb:00 NVRM: Xid (PCI:0000:cb:00): 79, pid=1 Recommended Action=NONE;";
        assert_eq!(read("SysLogsXIDError", note), None);
    }

    #[test]
    fn a_text_that_asks_for_a_reset_gets_one() {
        let note = "ErrorCode:94 GPU_UUID:GPU-1 Contained: SM (0x1). RST: No, D-RST: No Recommended Action=NONE;";
        check_says(
            "SysLogsXIDError",
            note,
            "GpuEccUncorrectable",
            Action::RetrySame,
            &[],
        );
        let note = "ErrorCode:94 GPU_UUID:GPU-1 Contained: SM (0x1). RST: No, D-RST: Yes Recommended Action=NONE;";
        check_says(
            "SysLogsXIDError",
            note,
            "GpuEccUncorrectable",
            Action::Reset,
            &[],
        );
    }

    #[test]
    fn where_the_number_does_not_decide_the_recommendation_does() {
        let note =
            |action: &str| format!("ErrorCode:145 PCI:0000:cb:00 Recommended Action={action};");
        let read = |action| read("SysLogsXIDError", &note(action)).unwrap().action;
        assert_eq!(read("NONE"), Action::None);
        assert_eq!(read("COMPONENT_RESET"), Action::Reset);
    }

    #[test]
    fn an_sxid_is_no_xid() {
        check_says(
            "SysLogsSXIDError",
            "ErrorCode:24007 NVSWITCH:0 NVLINK:30 sourcetrack timeout Recommended Action=CONTACT_SUPPORT;",
            "GpuNvlinkError",
            Action::RetryElsewhere,
            &[("sxid", "24007"), ("nvswitch", "0"), ("link", "30")],
        );
        check_says(
            "SysLogsSXIDError",
            "ErrorCode:20034 PCI:0000:c3:00.0 GPU_UUID:GPU-1 kernel: [1.2] nvidia-nvswitch0: SXid \
             (PCI:0000:c3:00.0): 20034, Non-fatal, Link 30 LTSSM Recommended Action=NONE;",
            "GpuNvlinkError",
            Action::None,
            &[("sxid", "20034"), ("fatal", "false")],
        );
    }

    #[test]
    fn what_was_deactivated_is_over() {
        let note = "ErrorCode:28002 NVSWITCH:0 Therm Warn Deactivated Recommended Action=NONE;";
        let statement = read("NvswitchErrorFromKmsgWatch", note).unwrap();
        assert_eq!(statement.status, Status::Cleared);
        assert_eq!(statement.key, "28001/0");
        assert_eq!(statement.find("sxid"), Some("28002"));
        let note = "ErrorCode:28001 NVSWITCH:0 Therm Warn Activated Recommended Action=NONE;";
        let statement = read("NvswitchErrorFromKmsgWatch", note).unwrap();
        assert_eq!(
            (statement.status, statement.key.as_str()),
            (Status::Active, "28001/0")
        );
    }

    #[test]
    fn a_watch_of_dcgms_is_read_by_its_name_and_its_action() {
        check_says(
            "GpuPcieWatch",
            "ErrorCode:DCGM_FR_PCI_REPLAY_RATE GPU:0 Pcie error on GPU 0 Recommended Action=UNKNOWN;",
            "GpuPcieError",
            Action::None,
            &[
                ("gpu_index", "0"),
                ("error_code", "DCGM_FR_PCI_REPLAY_RATE"),
            ],
        );
        check_says(
            "GpuInforomWatch",
            "ErrorCode:DCGM_FR_CORRUPT_INFOROM GPU:0 A corrupt InfoROM has been detected in GPU 0. Recommended Action=COMPONENT_RESET;",
            "GpuInfoRomCorrupted",
            Action::Reset,
            &[],
        );
        check_says(
            "GpuSmWatch",
            "ErrorCode:DCGM_FR_XID_ERROR GPU:4 PCI:0000:c4:00.0 Detected XID 31 for GPU 4 .Recommended Action=NONE;",
            "GpuXidError",
            Action::FixUser,
            &[("xid", "31"), ("gpu_index", "4")],
        );
        check_says(
            "SysLogsGPUFallenOff",
            "ErrorCode:GPU_FALLEN_OFF PCI:0000:c4:00 gone Recommended Action=NONE;",
            "GpuFallenOffBus",
            Action::Drain,
            &[("pci", "0000:c4:00")],
        );
    }

    #[test]
    fn a_healthy_check_ends_what_it_found() {
        let report = Report {
            kind: "Node",
            reason: "SysLogsXIDErrorIsHealthy",
            controller: "syslog-health-monitor",
            note: "No Health Failures",
        };
        let statement = super::read(&Settings::default(), report).unwrap();
        assert_eq!(statement.status, Status::Cleared);
        assert_eq!(statement.into_findings(0).count(), code::OF_XIDS.len());
    }

    #[test]
    fn a_cut_note_is_read_as_far_as_it_goes() {
        check_says(
            "SysLogsXIDError",
            "ErrorCode:119 PCI:0002:00:00 GPU_UUID:GPU-1 kernel: [164500",
            "GpuGspError",
            Action::Reset,
            &[("uuid", "GPU-1")],
        );
    }

    #[test]
    fn another_form_or_another_check_is_not_ours() {
        assert_eq!(read("SysLogsXIDError", "something is wrong with 79"), None);
        assert_eq!(
            read("SysLogsXIDError", "ErrorCode:x Recommended Action=NONE;"),
            None
        );
        assert_eq!(check("InfiniBandStateCheckIsNotHealthy"), None);
        assert_eq!(check("SysLogsNICDriverErrorIsNotHealthy"), None);
        assert_eq!(check("KubeletIsNotHealthy"), None);
        assert_eq!(check("IsNotHealthy"), None);
    }
}
