//! What an Xid means to Flyte: how bad it is, and the word for it.
//!
//! The rows are those of Flyte's package `gpufault` (flyteorg/flyte PR #7879). Vendors and clouds
//! disagree about several of them (63, 94 and 109 are examples); for reports in Flyte's format, Flyte's
//! word decides. An Xid without a row, one of a newer driver for instance, is worth a look and no more.

/// How bad a fault is, in Flyte's words and order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Severity {
    /// The workload did it; the device is healthy.
    User,
    /// Worth a look.
    Warn,
    /// The device, or what connects it, is at fault.
    Critical,
}

impl Severity {
    /// Reads the word as the agent writes it. Anything else is no severity.
    pub(crate) fn from_word(word: &str) -> Option<Self> {
        match word {
            "user" => Some(Self::User),
            "warn" => Some(Self::Warn),
            "critical" => Some(Self::Critical),
            _ => None,
        }
    }

    pub(crate) fn as_word(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Warn => "warn",
            Self::Critical => "critical",
        }
    }
}

const OTHER: &str = "GpuXidError";
const FALLEN_OFF_BUS: &str = "GpuFallenOffBus";
const ECC: &str = "GpuEccUncorrectable";
const ROW_REMAP: &str = "GpuRowRemapPending";
const NVLINK: &str = "GpuNvlinkError";
const GSP: &str = "GpuGspError";

/// Every word there is.
pub(crate) const CODES: [&str; 6] = [OTHER, FALLEN_OFF_BUS, ECC, ROW_REMAP, NVLINK, GSP];

/// By number. What is not here is [`DEFAULT`].
#[rustfmt::skip]
const XIDS: [(u32, Severity, &str); 16] = [
    ( 13, Severity::User,     OTHER),
    ( 31, Severity::User,     OTHER),
    ( 43, Severity::User,     OTHER),
    ( 45, Severity::User,     OTHER),
    ( 48, Severity::Critical, ECC),
    ( 62, Severity::Critical, OTHER),
    ( 63, Severity::Critical, ROW_REMAP),
    ( 64, Severity::Critical, ROW_REMAP),
    ( 74, Severity::Critical, NVLINK),
    ( 79, Severity::Critical, FALLEN_OFF_BUS),
    ( 94, Severity::Critical, ECC),
    ( 95, Severity::Critical, ECC),
    (109, Severity::Critical, OTHER),
    (119, Severity::Critical, GSP),
    (120, Severity::Critical, GSP),
    (140, Severity::Critical, ECC),
];

const DEFAULT: (Severity, &str) = (Severity::Warn, OTHER);

/// What an Xid means.
pub(crate) fn xid(number: u32) -> (Severity, &'static str) {
    XIDS.iter()
        .find(|(xid, ..)| *xid == number)
        .map_or(DEFAULT, |&(_, severity, code)| (severity, code))
}

/// What any `SXid` means: Flyte tells none from another, though NVIDIA calls some of them non-fatal.
pub(crate) const SXID: (Severity, &str) = (Severity::Critical, NVLINK);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_xid_has_one_row() {
        assert!(XIDS.is_sorted_by(|(one, ..), (next, ..)| one < next));
    }

    #[test]
    fn every_row_says_a_word_that_is_declared() {
        assert!(XIDS.iter().all(|(.., code)| CODES.contains(code)));
    }

    #[test]
    fn an_unknown_xid_is_neither_dropped_nor_escalated() {
        assert_eq!(xid(4242), (Severity::Warn, "GpuXidError"));
        assert_eq!(xid(92), (Severity::Warn, "GpuXidError"));
    }

    #[test]
    fn a_word_is_read_as_it_is_written() {
        for severity in [Severity::User, Severity::Warn, Severity::Critical] {
            assert_eq!(Severity::from_word(severity.as_word()), Some(severity));
        }
        assert_eq!(Severity::from_word("CRITICAL"), None);
        assert_eq!(Severity::from_word(""), None);
    }
}
