//! What Huawei CCE's device plugin writes on the Node, in both of its forms.
//!
//! ```text
//! Xid=79 on Device=nvidia3, UUID=GPU-6f3c.., SN=1320.., the device will go unhealthy.
//! Failed to determine gpu device uuid for Xid=74; Marking all devices as unhealthy.
//! Device=nvidia0, UUID=GPU-6f3c.., SN=1320.. has failed remapped rows; The device will go unhealthy.
//! GPUServerId=..; MemoryErrorType=FailedRemappedRows; Device=nvidia0; UUID=..; SN=..; Message=The device has ..
//! ```
//!
//! One of its reasons is Flyte's, too; Flyte's is about a pod. Facts: usermanual-cce, `cce_10_0779`, tables of
//! 2024 and 2025.

use crate::{
    action::Action,
    code::{self, Category},
    cursor::{Cursor, cut, given, has, pieces},
    grammar::Report,
    settings::Settings,
    statement::{Device, Statement, Xid},
};

pub(crate) fn read(settings: &Settings, report: Report<'_>) -> Option<Statement> {
    if report.note.starts_with("GPUServerId=") {
        return fields(settings, report);
    }
    match report.reason {
        "GPUXidError" => xid(settings, report.note),
        "GPUMemoryError" => memory(report.note),
        _ => warning(report.note),
    }
}

fn xid(settings: &Settings, note: &str) -> Option<Statement> {
    let mut at = Cursor(note);
    if at.maybe("Failed to determine gpu device uuid for Xid=") {
        let number = at.number()?;
        at.tag("; Marking all devices as unhealthy")?;
        return Some(Xid::new(number).into_statement(settings, &Device::default()));
    }
    at.tag("Xid=")?;
    let number = at.number()?;
    at.tag(" on ")?;
    let (device, serial) = device(&mut at)?;
    at.tag(", the device will go unhealthy")?;
    let statement = Xid::new(number).into_statement(settings, &device);
    Some(statement.maybe("serial", serial))
}

/// `Device=nvidia0, UUID=GPU-6f3c.., SN=1320000000001`.
fn device<'a>(at: &mut Cursor<'a>) -> Option<(Device<'a>, Option<&'a str>)> {
    let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:".contains(&byte);
    at.tag("Device=")?;
    let device = given(at.while_(is_of_name));
    at.tag(", UUID=")?;
    let uuid = given(at.while_(is_of_name));
    at.tag(", SN=")?;
    let serial = given(at.while_(is_of_name));
    let device = Device {
        uuid,
        id: device,
        ..Device::default()
    };
    Some((device, serial))
}

fn memory(note: &str) -> Option<Statement> {
    let mut at = Cursor(note);
    let (device, serial) = device(&mut at)?;
    let (code, message) = if at.maybe(" has failed remapped rows") {
        (
            code::ROW_REMAP_FAILED,
            "rows of memory could not be remapped",
        )
    } else if at.maybe(" has more than ") {
        at.number()?;
        if at.maybe(" retired pages caused by ") {
            (code::PAGES, "too many pages of memory are retired")
        } else {
            at.tag(" SRAM uncorrectable ecc errors")?;
            (code::ECC, "too many uncorrectable errors of the SRAM")
        }
    } else {
        return None;
    };
    let statement = Statement::new(Category::Fault, code, Action::Rma, message);
    Some(statement.on(&device).maybe("serial", serial))
}

fn warning(note: &str) -> Option<Statement> {
    let mut at = Cursor(note);
    let (device, serial) = device(&mut at)?;
    at.tag(" failed to get ")?;
    let what = at.until(" state")?;
    let message = ["the device plugin cannot read the state of its ", what].concat();
    let statement = Statement::new(Category::Fault, code::HEALTH, Action::None, message);
    Some(statement.on(&device).maybe("serial", serial))
}

/// The form of 2025: `KEY=VALUE; KEY=VALUE; Message=..`.
fn fields(settings: &Settings, report: Report<'_>) -> Option<Statement> {
    let (fields, message) = cut(report.note, "; Message=").unwrap_or((report.note, ""));
    let field = |key: &str| {
        let mut pairs = pieces(fields, "; ").filter_map(|it| cut(it, "="));
        pairs
            .find(|(it, _)| *it == key)
            .and_then(|(_, it)| given(it))
    };
    let device = Device {
        uuid: field("UUID"),
        id: field("Device"),
        ..Device::default()
    };
    // Only an error of the memory has a type of one.
    if field("MemoryErrorType").is_some() != (report.reason == "GPUMemoryError") {
        return None;
    }
    let statement = match report.reason {
        "GPUXidError" => {
            let number = ["Xid", "XidCode", "XID"].into_iter().find_map(field);
            let number = match number {
                Some(it) => Cursor(it).number()?,
                None => Cursor(cut(message, "Xid=")?.1).number()?,
            };
            Xid::new(number).into_statement(settings, &device)
        }
        "GPUMemoryError" => {
            let kind = field("MemoryErrorType")?;
            let code = if has(kind, "RemappedRows") {
                code::ROW_REMAP_FAILED
            } else if has(kind, "RetiredPages") {
                code::PAGES
            } else {
                code::ECC
            };
            Statement::new(Category::Fault, code, Action::Rma, said(message, kind)).on(&device)
        }
        _ => {
            let kind = ["HealthWarningType", "WarningType", "HealthErrorType"];
            let kind = kind.into_iter().find_map(field);
            let message = said(message, kind.unwrap_or("a warning about the device"));
            Statement::new(Category::Fault, code::HEALTH, Action::None, message).on(&device)
        }
    };
    Some(statement.maybe("serial", field("SN")))
}

fn said<'a>(message: &'a str, kind: &'a str) -> &'a str {
    given(message.trim_ascii()).unwrap_or(kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(reason: &str, note: &str) -> Option<Statement> {
        let report = Report {
            kind: "Node",
            reason,
            controller: "nvidia-gpu-device-plugin",
            note,
        };
        super::read(&Settings::default(), report)
    }

    #[test]
    fn an_xid_and_its_device_are_read() {
        let note = "Xid=79 on Device=nvidia3, UUID=GPU-1, SN=132, the device will go unhealthy.";
        let statement = read("GPUXidError", note).unwrap();
        assert_eq!(statement.code, "GpuFallenOffBus");
        assert_eq!(statement.key, "79/GPU-1");
        assert_eq!(statement.find("device"), Some("nvidia3"));
        assert_eq!(statement.find("serial"), Some("132"));

        let note =
            "Failed to determine gpu device uuid for Xid=74; Marking all devices as unhealthy.";
        assert_eq!(read("GPUXidError", note).unwrap().key, "74");
    }

    #[test]
    fn memory_that_is_worn_out_is_replaced() {
        for (note, code) in [
            (
                "Device=nvidia0, UUID=GPU-1, SN=1 has failed remapped rows; The device will go unhealthy.",
                "GpuRowRemapFailed",
            ),
            (
                "Device=nvidia0, UUID=GPU-1, SN=1 has more than 60 retired pages caused by both multiple \
                 single bit ecc error and double bit ecc error, DBE error number: 61, SBE error number: 79; \
                 The device will go unhealthy.",
                "GpuPageRetirement",
            ),
            (
                "Device=nvidia0, UUID=GPU-1, SN=1 has more than 4 SRAM uncorrectable ecc errors count; ..",
                "GpuEccUncorrectable",
            ),
            (
                "GPUServerId=s; MemoryErrorType=FailedRemappedRows; Device=nvidia0; UUID=GPU-1; SN=1; \
                 Message=The device has failed remapped rows, it will go unhealthy.",
                "GpuRowRemapFailed",
            ),
            (
                "GPUServerId=s; MemoryErrorType=OverThresholdRetiredPages; Device=nvidia0; UUID=GPU-1",
                "GpuPageRetirement",
            ),
        ] {
            let statement = read("GPUMemoryError", note).unwrap();
            assert_eq!(
                (statement.code, statement.action),
                (code, Action::Rma),
                "{note}"
            );
            assert_eq!(statement.find("uuid"), Some("GPU-1"));
            assert_eq!(statement.find("xid"), None);
        }
    }

    #[test]
    fn what_cannot_be_read_is_a_warning() {
        for what in ["fan", "power"] {
            let note = format!("Device=nvidia2, UUID=GPU-1, SN=1 failed to get {what} state.");
            let statement = read("GPUHealthWarning", &note).unwrap();
            assert_eq!(
                (statement.code, statement.action),
                ("GpuHealthWarning", Action::None)
            );
        }
    }

    #[test]
    fn an_xid_among_fields_is_read() {
        let note = "GPUServerId=s; Xid=79; Device=nvidia0; UUID=GPU-1; SN=1; Message=gone";
        assert_eq!(read("GPUXidError", note).unwrap().key, "79/GPU-1");
    }

    #[test]
    fn another_form_is_not_ours() {
        for (reason, note) in [
            ("GPUXidError", "Xid=79"),
            (
                "GPUXidError",
                "Xid=79 on the bus, the device will go unhealthy.",
            ),
            ("GPUXidError", "[gpu-health] [CRITICAL] Xid 79. xid=79"),
            ("GPUXidError", "GPUServerId=s; Device=nvidia0"),
            (
                "GPUMemoryError",
                "Device=nvidia0, UUID=GPU-1, SN=1 has a fan",
            ),
            ("GPUMemoryError", "GPUServerId=s; Device=nvidia0"),
            ("GPUHealthWarning", "Device=nvidia0 failed"),
        ] {
            assert_eq!(read(reason, note), None, "{note}");
        }
    }
}
