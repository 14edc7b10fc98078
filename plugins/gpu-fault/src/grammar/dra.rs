//! Devices that are claimed (Dynamic Resource Allocation): claims that the kubelet cannot prepare, and pods
//! that a taint on their device evicts.
//!
//! ```text
//! Failed to prepare dynamic resources: prepare dynamic resources: DRA driver gpu.nvidia.com is not registered
//! Failed to prepare dynamic resources: NodePrepareResources failed for ResourceClaim c: error preparing devices for claim ns/c:uid: ..
//! Marking for deletion
//! ```
//!
//! A driver that is named and is none of an accelerator's makes it somebody else's. Most texts name none; a
//! claim is a claim for a device, and there it is taken for one of ours. Facts: kubernetes, kubelet
//! `cm/dra` and `devicetainteviction`.

use crate::{
    action::Action,
    code::{self, Category},
    cursor::{Cursor, cut, has},
    grammar::Report,
    statement::Statement,
};

/// Domains under which the drivers of accelerators are registered.
const DOMAINS: [&str; 8] = [
    "nvidia.com",
    "amd.com",
    "intel.com",
    "habana.ai",
    "google.com",
    "neuron.amazonaws.com",
    "neuron.aws.com",
    "furiosa.ai",
];

/// Reads the note of `FailedPrepareDynamicResources`.
pub(crate) fn prepare(note: &str) -> Option<Statement> {
    let mut at = Cursor(note);
    at.tag("Failed to prepare dynamic resources: ")?;
    at.maybe("prepare dynamic resources: ");
    let why = at.0.trim_ascii_end();
    if let Some(driver) = driver(why) {
        let mut prefixes = DOMAINS.into_iter().filter_map(|it| driver.strip_suffix(it));
        prefixes.find(|it| it.is_empty() || it.ends_with('.'))?;
    }
    let is_lost = has(why, "GPU is lost") || has(why, "fallen off the bus");
    let passes = why.starts_with("failed to fetch ResourceClaim ")
        || why.starts_with("fetch ResourceClaim ")
        || has(why, "context deadline exceeded")
        || has(why, "code = Unavailable");
    let statement = if is_lost {
        Statement::new(Category::Fault, code::FALLEN_OFF_BUS, Action::Drain, why)
    } else if passes {
        Statement::new(Category::Config, code::DRA, Action::RetrySame, why)
    } else {
        Statement::new(Category::Config, code::DRA, Action::RetryElsewhere, why)
    };
    Some(statement.maybe("driver", driver(why)).effect())
}

/// `DRA driver gpu.nvidia.com is not registered`, and what else names one.
fn driver(why: &str) -> Option<&str> {
    let behind = ["DRA driver ", "driver name ", "kubelet plugin "]
        .into_iter()
        .find_map(|it| cut(why, it))?
        .1;
    let name = Cursor(behind.trim_start_matches('"'))
        .while_(|byte| byte.is_ascii_alphanumeric() || b".-".contains(&byte));
    name.contains('.').then_some(name)
}

/// Reads what the controller that evicts for a device's taint says. Its type is `Normal`.
pub(crate) fn eviction(report: Report<'_>) -> Option<Statement> {
    let is_by_it = report.controller.starts_with("device-taint-eviction");
    let text = report.note.trim_ascii_end();
    let is = |start: &str| {
        text == start
            || text
                .strip_prefix(start)
                .is_some_and(|it| it.starts_with(" of Pod ") || it.starts_with(" Pod "))
    };
    let evicts = is("Marking for deletion");
    if !is_by_it || !(evicts || is("Cancelling deletion")) {
        return None;
    }
    let message = if evicts {
        "a device of the pod was tainted, and the pod evicted"
    } else {
        "the device of the pod is no longer tainted"
    };
    let statement = Statement::new(
        Category::Fault,
        code::TAINTED,
        Action::RetryElsewhere,
        message,
    );
    Some(if evicts {
        statement.effect()
    } else {
        statement.cleared()
    })
}

#[cfg(test)]
mod tests {
    use portent_sdk::Status;

    use super::*;

    fn read(why: &str) -> Option<Statement> {
        prepare(&["Failed to prepare dynamic resources: ", why].concat())
    }

    #[track_caller]
    fn check(why: &str, category: Category, code: &str, action: Action) {
        let statement = read(why).unwrap();
        assert_eq!(
            (statement.category, statement.code, statement.action),
            (category, code, action),
            "{why}"
        );
    }

    #[test]
    fn claims_that_cannot_be_prepared_are_read() {
        use Action::{Drain, RetryElsewhere, RetrySame};
        use Category::{Config, Fault};

        check(
            "prepare dynamic resources: DRA driver gpu.nvidia.com is not registered",
            Config,
            "GpuDraDriverError",
            RetryElsewhere,
        );
        check(
            "failed to fetch ResourceClaim c referenced by pod p: the server could not find the requested resource",
            Config,
            "GpuDraDriverError",
            RetrySame,
        );
        check(
            "NodePrepareResources failed: rpc error: code = DeadlineExceeded desc = context deadline exceeded",
            Config,
            "GpuDraDriverError",
            RetrySame,
        );
        check(
            "NodePrepareResources failed for ResourceClaim c: error preparing devices for claim ns/c:uid: unable to create MIG device",
            Config,
            "GpuDraDriverError",
            RetryElsewhere,
        );
        check(
            "NodePrepareResources failed for ResourceClaim c: nvml: GPU is lost",
            Fault,
            "GpuFallenOffBus",
            Drain,
        );
    }

    #[test]
    fn the_driver_of_something_else_is_not_ours() {
        assert_eq!(
            read("DRA driver hostpath.network.com is not registered"),
            None
        );
        assert_eq!(read("DRA driver gpu.notnvidia.com is not registered"), None);
        assert_eq!(read("DRA driver dra.net is not registered"), None);
        assert_eq!(prepare("DRA driver gpu.nvidia.com is not registered"), None);
    }

    fn evicted(controller: &str, note: &str) -> Option<Statement> {
        let reason = "DeviceTaintManagerEviction";
        eviction(Report {
            kind: "Pod",
            reason,
            controller,
            note,
        })
    }

    #[test]
    fn a_taint_evicts_and_its_end_ends_that() {
        let statement = evicted("device-taint-eviction", "Marking for deletion").unwrap();
        assert_eq!(
            (statement.status, statement.code),
            (Status::Active, "GpuDeviceTainted")
        );
        let over = evicted("device-taint-eviction", "Cancelling deletion").unwrap();
        assert_eq!(
            (over.status, over.code),
            (Status::Cleared, "GpuDeviceTainted")
        );
        assert_eq!(
            evicted("taint-eviction-controller", "Marking for deletion"),
            None
        );
        assert_eq!(
            evicted("device-taint-eviction", "Marking for deletion!"),
            None
        );
    }
}
