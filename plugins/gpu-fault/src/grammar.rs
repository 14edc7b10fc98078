//! Which producer wrote an event, and what it says.
//!
//! A grammar is chosen by the kind of the object, by the reason and by who reported it, never by a word in
//! the text: `xid` is a transaction to a database, and 79 is a size. Then the text has to have the form of
//! its producer. What no grammar reads wholly yields nothing, since a wrong fault costs more than a missed
//! one. The type of an event is never asked for: `NVSentinel` writes the name of a check there, and a device
//! taint evicts with `Normal`.

use crate::{settings::Settings, statement::Statement};

mod cce;
mod cdi;
mod dra;
mod eks;
mod flyte;
mod gke;
mod hami;
mod kernel;
mod kubelet;
mod kuberay;
mod npd;
mod nvsentinel;
mod queue;
mod quota;
mod runtime;
mod scheduler;

pub(crate) use flyte::PREFIX as FLYTE_PREFIX;
pub(crate) use kuberay::PREFIX as KUBERAY_PREFIX;
pub(crate) use quota::REASONS as QUOTA_REASONS;

/// What client-go's recorder puts before a note when it folds several Events into one.
const COMBINED: &str = "(combined from similar events): ";

/// Kinds of the objects to which `KubeRay` forwards what is said about their nodes.
pub(crate) const RAY_KINDS: [&str; 3] = ["RayCluster", "RayJob", "RayService"];

/// An event as a grammar sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Report<'a> {
    /// Kind of the object that it regards.
    pub(crate) kind: &'a str,
    pub(crate) reason: &'a str,
    /// Who reported it; empty when unknown.
    pub(crate) controller: &'a str,
    pub(crate) note: &'a str,
}

/// What an event says, if it is one of ours.
pub(crate) fn read(settings: &Settings, report: Report<'_>) -> Option<Statement> {
    let note = report.note.strip_prefix(COMBINED).unwrap_or(report.note);
    let report = Report { note, ..report };
    match report.kind {
        "Pod" => of_pod(settings, report),
        "Node" => of_node(settings, report),
        "Workload" => queue::read(settings, report),
        kind if RAY_KINDS.contains(&kind) && note.starts_with(KUBERAY_PREFIX) => {
            let forwarded = kuberay::read(report)?;
            // What was forwarded was folded before or not at all.
            let note = forwarded.report.note;
            let inner = Report {
                note: note.strip_prefix(COMBINED).unwrap_or(note),
                ..forwarded.report
            };
            let statement = of_node(settings, inner)?;
            Some(statement.attribute("node", forwarded.node))
        }
        "PodGroup" => scheduler::read(settings, report),
        _ => quota::read(settings, report),
    }
}

fn of_pod(settings: &Settings, report: Report<'_>) -> Option<Statement> {
    let is_by_kubelet = report.controller == "kubelet";
    match report.reason {
        "GPUXidError" | "GPUSXidError" => flyte::read(settings, report.note),
        "UnexpectedAdmissionError" if is_by_kubelet => kubelet::admission(settings, report.note),
        "Failed" | "FailedCreatePodSandBox" if is_by_kubelet => {
            cdi::read(settings, report.note).or_else(|| runtime::read(report.note))
        }
        "FailedPrepareDynamicResources" if is_by_kubelet => dra::prepare(report.note),
        "DeviceTaintManagerEviction" => dra::eviction(report),
        "FailedScheduling" | "NotTriggerScaleUp" | "Unschedulable" => {
            scheduler::read(settings, report)
        }
        "FilteringFailed" => hami::read(report),
        reason if is_by_kubelet => {
            let resource = reason.strip_prefix("OutOf")?;
            kubelet::out_of(settings, resource, report.note)
        }
        _ => None,
    }
}

/// Who reports about nodes and never about their devices: what they write under a reason of ours is
/// somebody else's text.
const NO_MONITORS: [&str; 10] = [
    "kubelet",
    "kube-proxy",
    "node-controller",
    "cloud-node-controller",
    "cloud-node-lifecycle-controller",
    "node-lifecycle-controller",
    "taint-eviction-controller",
    "default-scheduler",
    "cluster-autoscaler",
    "karpenter",
];

fn of_node(settings: &Settings, report: Report<'_>) -> Option<Statement> {
    if NO_MONITORS.contains(&report.controller) {
        return None;
    }
    match report.reason {
        "XIDError" => gke::read(settings, report.note),
        "GPUXidError" | "GPUMemoryError" | "GPUHealthWarning" => cce::read(settings, report),
        "AcceleratedHardwareReady" => eks::read(settings, report),
        reason if nvsentinel::check(reason).is_some() => nvsentinel::read(settings, report),
        _ => None,
    }
    .or_else(|| npd::read(settings, report))
}
