//! The words: every category and code that a finding or a verdict may carry.
//!
//! Flyte's where Flyte has one, words of the same kind otherwise. `docs/gpu-faults.md` says what each means;
//! a test holds that none is missing there.

/// Whose affair a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Category {
    /// The device, or what connects it, is at fault or in doubt.
    Fault,
    /// The workload did it; the device is healthy.
    UserError,
    /// There is no free device, or no quota for one.
    Capacity,
    /// Driver, plugin or container runtime keep a healthy device from being used.
    Config,
}

impl Category {
    pub(crate) const ALL: [Self; 4] = [Self::Fault, Self::UserError, Self::Capacity, Self::Config];

    pub(crate) fn as_word(self) -> &'static str {
        match self {
            Self::Fault => "gpu-fault",
            Self::UserError => "gpu-user-error",
            Self::Capacity => "gpu-capacity",
            Self::Config => "gpu-config",
        }
    }
}

/// Declares each word as a constant, and the list of all.
macro_rules! codes {
    ($($name:ident = $word:literal;)*) => {
        $(pub(crate) const $name: &str = $word;)*

        /// Every word there is.
        pub(crate) const ALL: [&str; [$($word),*].len()] = [$($word),*];
    };
}

codes! {
    // Flyte's.
    XID = "GpuXidError";
    FALLEN_OFF_BUS = "GpuFallenOffBus";
    ECC = "GpuEccUncorrectable";
    ROW_REMAP = "GpuRowRemapPending";
    NVLINK = "GpuNvlinkError";
    GSP = "GpuGspError";

    // Faults that have no Xid where they are told.
    MISSING = "GpuMissing";
    UNHEALTHY = "GpuUnhealthy";
    TAINTED = "GpuDeviceTainted";
    NVML = "GpuNvmlError";
    INIT = "GpuInitFailed";
    PAGES = "GpuPageRetirement";
    ROW_REMAP_FAILED = "GpuRowRemapFailed";
    INFOROM = "GpuInfoRomCorrupted";
    RAS = "GpuRasError";
    NEURON = "NeuronHardwareError";
    FABRIC = "GpuFabricError";
    NETWORK_LINK = "GpuNetworkLinkFlapping";
    DIAGNOSTIC = "GpuDiagnosticFailed";
    THERMAL = "GpuThermalViolation";
    POWER = "GpuPowerViolation";
    CLOCKS = "GpuClockThrottled";
    PCIE = "GpuPcieError";
    DCGM = "GpuDcgmWarning";
    HEALTH = "GpuHealthWarning";

    // What a workload does wrong without an Xid.
    REQUEST = "GpuRequestInvalid";
    REQUIREMENT = "GpuRequirementUnmet";
    NCCL = "GpuNcclSegfault";

    // Too few.
    INSUFFICIENT = "GpuInsufficient";
    ALLOCATION = "GpuAllocationFailed";
    QUOTA = "GpuQuotaExceeded";

    // What stands between a healthy device and its user.
    DEVICE_PLUGIN = "GpuDevicePluginUnavailable";
    DRIVER = "GpuDriverError";
    RUNTIME = "GpuRuntimeMissing";
    TOOLKIT = "GpuContainerToolkitError";
    CDI = "GpuCdiUnresolvable";
    DRA = "GpuDraDriverError";
    NODE_UNREGISTERED = "GpuNodeUnregistered";
    DCGM_SERVICE = "GpuDcgmUnavailable";
    SETUP = "GpuNodeMisconfigured";
}

/// What an Xid may be called.
pub(crate) const OF_XIDS: [&str; 6] = [XID, FALLEN_OFF_BUS, ECC, ROW_REMAP, NVLINK, GSP];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_word_is_declared_once() {
        assert_eq!(ALL.iter().collect::<BTreeSet<_>>().len(), ALL.len());
    }

    #[test]
    fn what_an_xid_may_be_called_is_declared() {
        assert!(OF_XIDS.iter().all(|code| ALL.contains(code)));
    }
}
