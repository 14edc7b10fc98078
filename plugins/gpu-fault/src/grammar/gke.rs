//! What GKE's device plugin writes on the Node about every Xid that NVML tells it.
//!
//! ```text
//! Caught XID error, XID=79, GPU UUID=GPU-6f3c.., Device ID=nvidia5
//! ```
//!
//! The UUID and the device are missing where NVML names none; both are lists, `a, b`, where an Xid regards
//! several. node-problem-detector writes the first part alone. Facts: container-engine-accelerators,
//! `health_checker.go`.

use crate::{
    cursor::{Cursor, cut, given},
    settings::Settings,
    statement::{Device, Statement, Xid},
};

pub(crate) fn read(settings: &Settings, note: &str) -> Option<Statement> {
    let mut at = Cursor(note);
    at.tag("Caught XID error, XID=")?;
    let number = at.number()?;
    let uuid = at.maybe(", GPU UUID=").then(|| {
        let (list, rest) = cut(at.0, ", Device ID=").unwrap_or((at.0, ""));
        let had_device = rest.len() < at.0.len() && list.len() < at.0.len();
        at.0 = rest;
        (list, had_device)
    });
    let (uuid, has_device) =
        uuid.map_or((None, false), |(list, it)| (given(list.trim_ascii()), it));
    let device = if has_device || at.maybe(", Device ID=") {
        given(std::mem::take(&mut at.0).trim_ascii())
    } else {
        None
    };
    at.end()?;
    let is_name = |it: &str| {
        it.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_/:., ".contains(&byte))
    };
    if !uuid.is_none_or(is_name) || !device.is_none_or(is_name) {
        return None;
    }
    let device = Device {
        uuid,
        id: device,
        ..Device::default()
    };
    Some(Xid::new(number).into_statement(settings, &device))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(note: &str, want: &[(&str, &str)]) {
        let statement = read(&Settings::default(), note).unwrap();
        for (key, value) in want {
            assert_eq!(statement.find(key), Some(*value), "{note}: {key}");
        }
    }

    #[track_caller]
    fn check_foreign(note: &str) {
        assert_eq!(read(&Settings::default(), note), None, "{note}");
    }

    #[test]
    fn every_form_is_read() {
        check("Caught XID error, XID=79", &[("xid", "79")]);
        check(
            "Caught XID error, XID=72, GPU UUID=GPU-1, Device ID=nvidia0",
            &[("xid", "72"), ("uuid", "GPU-1"), ("device", "nvidia0")],
        );
        check(
            "Caught XID error, XID=48, GPU UUID=GPU-1, GPU-2, Device ID=nvidia0, nvidia1",
            &[("uuid", "GPU-1, GPU-2"), ("device", "nvidia0, nvidia1")],
        );
        check(
            "Caught XID error, XID=31, GPU UUID=MIG-1f, Device ID=nvidia0/gi5",
            &[("uuid", "MIG-1f"), ("device", "nvidia0/gi5")],
        );
    }

    #[test]
    fn a_number_without_a_device_is_its_own_key() {
        let statement = read(&Settings::default(), "Caught XID error, XID=79").unwrap();
        assert_eq!(statement.key, "79");
        let note = "Caught XID error, XID=79, GPU UUID=GPU-1, Device ID=nvidia0";
        let statement = read(&Settings::default(), note).unwrap();
        assert_eq!(statement.key, "79/GPU-1");
    }

    #[test]
    fn another_form_is_not_ours() {
        check_foreign("");
        check_foreign("Caught XID error");
        check_foreign("Caught XID error, XID=");
        check_foreign("Caught XID error, XID=x");
        check_foreign("Caught XID error, XID=79 in a transaction");
        check_foreign("Caught XID error, XID=79, GPU UUID=GPU-1; DROP TABLE");
        check_foreign("log: Caught XID error, XID=79");
        check_foreign("caught xid error, xid=79");
    }
}
