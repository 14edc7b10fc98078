//! Why no node is found for a pod that wants a device.
//!
//! ```text
//! 0/2 nodes are available: 1 Insufficient nvidia.com/gpu, 1 node(s) were unschedulable. preemption: 0/2 nodes ..
//! 0/1 nodes are unavailable: 1 hami-vgpuDeviceSharing error.                    (volcano)
//! 0/4 nodes are available: 3 node unregistered. preemption: ..                  (HAMi)
//! 0/4 nodes are available: 4 cannot allocate all claims.                        (claimed devices)
//! pod didn't trigger scale-up: 6 Insufficient nvidia.com/gpu, 1 max node group size reached
//! ```
//!
//! Schedulers have names of their own, so the form of the text decides: a head, then a list of counted
//! reasons, of which one has to be about an accelerator. A pod that waits has not failed: there is no verdict
//! on it. Facts: kube-scheduler, volcano, `HAMi`, cluster-autoscaler, karpenter.

use crate::{
    action::Action,
    code::{self, Category},
    cursor::{Cursor, cut, pieces},
    grammar::{Report, hami},
    resource,
    settings::Settings,
    statement::Statement,
};

pub(crate) fn read(settings: &Settings, report: Report<'_>) -> Option<Statement> {
    if report.reason == "NotTriggerScaleUp" {
        let mut at = Cursor(report.note);
        at.tag("pod didn't trigger scale-up")?;
        at.until(": ")?;
        return list(settings, at.0);
    }
    if let Some(reasons) = reasons(report.note) {
        return list(settings, reasons);
    }
    karpenter(settings, report)
}

/// The list of reasons, between the head and what is said about preemption.
fn reasons(note: &str) -> Option<&str> {
    // Volcano says something of the group first.
    let text = match cut(note, " tasks in gang unschedulable: ") {
        Some((_, behind)) => {
            let (_, origin) = cut(behind, "Origin reason is ")?;
            cut(origin, ": ")?.1
        }
        None => note,
    };
    let mut at = Cursor(text);
    if !at.maybe("all nodes are unavailable: ") {
        at.number()?;
        at.tag("/")?;
        at.number()?;
        at.tag(" nodes are available: ")
            .or_else(|| at.tag(" nodes are unavailable: "))?;
    }
    Some(at.until_or_rest(" preemption: "))
}

/// The first reason that is about an accelerator.
fn list(settings: &Settings, reasons: &str) -> Option<Statement> {
    pieces(reasons, ", ").find_map(|it| {
        let mut at = Cursor(it.trim_ascii());
        at.number()?;
        at.tag(" ")?;
        reason(settings, at.0.trim_ascii_end().trim_end_matches('.'))
    })
}

/// One reason, without its count.
fn reason(settings: &Settings, text: &str) -> Option<Statement> {
    if let Some(name) = text.strip_prefix("Insufficient ") {
        let is_ours = name.bytes().all(resource::is_part) && settings.is_accelerator(name);
        return is_ours.then(|| insufficient(name));
    }
    let too_few = |what: &str| {
        Statement::new(
            Category::Capacity,
            code::INSUFFICIENT,
            Action::None,
            ["no node has a free device: ", what].concat(),
        )
        .key(what)
    };
    match text {
        "node unregistered" => Some(Statement::new(
            Category::Config,
            code::NODE_UNREGISTERED,
            Action::None,
            "the devices of the nodes are not known to the scheduler",
        )),
        // Of claimed devices; of CCE; of aliyun's shared memory.
        "cannot allocate all claims"
        | "InsufficientResourceOnSingleGPU"
        | "Insufficient GPU Memory in one device" => Some(too_few(text)),
        _ if hami::is_reason(text) || text.ends_with("vgpuDeviceSharing error") => {
            Some(too_few(text))
        }
        _ => None,
    }
}

pub(crate) fn insufficient(resource: &str) -> Statement {
    Statement::new(
        Category::Capacity,
        code::INSUFFICIENT,
        Action::None,
        ["no node has enough of ", resource].concat(),
    )
    .key(resource)
    .attribute("resource", resource)
}

/// `.. no instance type satisfied resources {"cpu":"1","nvidia.com/gpu":"8"} ..`
fn karpenter(settings: &Settings, report: Report<'_>) -> Option<Statement> {
    if report.controller != "karpenter" {
        return None;
    }
    let behind = [
        "no instance type satisfied resources {",
        "no instance type has enough resources",
    ]
    .into_iter()
    .find_map(|it| cut(report.note, it))?
    .1;
    let resources = Cursor(behind).until_or_rest("}");
    let mut names = pieces(resources, "\"");
    names
        .find(|it| settings.is_accelerator(it))
        .map(insufficient)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_as(reason: &str, controller: &str, note: &str) -> Option<Statement> {
        let report = Report {
            kind: "Pod",
            reason,
            controller,
            note,
        };
        super::read(&Settings::default(), report)
    }

    fn read(note: &str) -> Option<Statement> {
        read_as("FailedScheduling", "default-scheduler", note)
    }

    #[track_caller]
    fn check(note: &str, resource: Option<&str>) {
        let statement = read(note).unwrap();
        assert_eq!(
            (statement.category, statement.code, statement.action),
            (Category::Capacity, "GpuInsufficient", Action::None),
            "{note}"
        );
        assert_eq!(statement.find("resource"), resource, "{note}");
    }

    #[test]
    fn a_resource_of_ours_that_no_node_has_is_read() {
        check(
            "0/12 nodes are available: 12 Insufficient nvidia.com/gpu.",
            Some("nvidia.com/gpu"),
        );
        check(
            "0/2 nodes are available: 1 Insufficient cpu, 1 Insufficient amd.com/gpu. preemption: 0/2 nodes are available",
            Some("amd.com/gpu"),
        );
        check(
            "0/8 nodes are available: 6 node(s) didn't match Pod's node affinity/selector, 2 Insufficient google.com/tpu.",
            Some("google.com/tpu"),
        );
        check(
            "all nodes are unavailable: 3 Insufficient nvidia.com/gpu.",
            Some("nvidia.com/gpu"),
        );
        check(
            "4/4 tasks in gang unschedulable: pod group is not ready, 4 Pending, 4 minAvailable. Origin reason is \
             job-0: 0/3 nodes are unavailable: 3 Insufficient nvidia.com/gpu.",
            Some("nvidia.com/gpu"),
        );
    }

    #[test]
    fn what_schedulers_of_devices_say_is_read() {
        check(
            "0/1 nodes are unavailable: 1 hami-vgpuDeviceSharing error.",
            None,
        );
        check(
            "0/4 nodes are available: 4 cannot allocate all claims. preemption: 0/4",
            None,
        );
        check("0/4 nodes are available: 4 CardInsufficientMemory.", None);
        check(
            "0/49 nodes are available: 49 InsufficientResourceOnSingleGPU.",
            None,
        );
        let statement =
            read("0/4 nodes are available: 3 node unregistered. preemption: 0/4").unwrap();
        assert_eq!(
            (statement.category, statement.code),
            (Category::Config, "GpuNodeUnregistered")
        );
    }

    #[test]
    fn autoscalers_are_read() {
        for note in [
            "pod didn't trigger scale-up (it wouldn't fit if a new node is added): 6 Insufficient nvidia.com/gpu",
            "pod didn't trigger scale-up: 1 max node group size reached, 2 Insufficient nvidia.com/gpu",
        ] {
            let statement = read_as("NotTriggerScaleUp", "cluster-autoscaler", note).unwrap();
            assert_eq!(statement.code, "GpuInsufficient");
        }
        let note = "Failed to schedule pod, incompatible with nodepool \"default\", no instance type satisfied \
            resources {\"cpu\":\"125m\",\"nvidia.com/gpu\":\"8\",\"pods\":\"3\"} and requirements x";
        let statement = read_as("FailedScheduling", "karpenter", note).unwrap();
        assert_eq!(statement.find("resource"), Some("nvidia.com/gpu"));
    }

    #[test]
    fn other_reasons_are_not_ours() {
        for note in [
            "",
            "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector. preemption: 0/3 nodes \
             are available: 3 Insufficient nvidia.com/gpu.",
            "0/3 nodes are available: 3 Insufficient cpu, 3 Insufficient memory.",
            "0/3 nodes are available: 3 Insufficient rdma/hca.",
            "0/3 nodes are available: 3 node(s) had untolerated taint {nvidia.com/gpu: present}.",
            "0/3 nodes are available: 3 node(s) had untolerated taint {Insufficient nvidia.com/gpu}.",
            "nodes are available: 3 Insufficient nvidia.com/gpu",
            "Insufficient nvidia.com/gpu",
            "skip schedule deleting pod: a/nvidia.com",
            "0/3 nodes are available: Insufficient nvidia.com/gpu",
        ] {
            assert_eq!(read(note), None, "{note}");
        }
        let note = "no instance type satisfied resources {\"nvidia.com/gpu\":\"8\"}";
        assert_eq!(read(note), None);
    }
}
