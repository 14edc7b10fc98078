//! GPU faults that Flyte's node agent reports on the pod that ran on the device.
//!
//! Each producer has its own grammar, in a file of its own; an event that none of them reads wholly
//! yields nothing, since a wrong fault costs more than a missed one. What bounds the output is the
//! input: at most one finding an event. No verdict yet, and nothing is read of other objects.

use portent_sdk::{
    Agreement, Attribute, Blame, Description, Event, Finding, Interest, Outcome, Severity, Status,
    Subject, classifier,
};

mod flyte;
mod table;

use flyte::{Fault, Kind};

/// The device, or what connects it, is at fault or in doubt.
const FAULT: &str = "gpu-fault";

/// The workload did it; the device is healthy.
const USER_ERROR: &str = "gpu-user-error";

classifier!(
    classify,
    Description::new(
        "gpu-fault",
        "GPU faults that a node agent reports on the pod"
    )
    .interest(
        Interest::any()
            .kinds(["Pod"])
            .reasons(["GPUXidError", "GPUSXidError"])
            .note_contains([flyte::PREFIX])
    )
    .reads(["subject.node"])
    .categories([FAULT, USER_ERROR])
    .codes(table::CODES)
);

fn classify(subject: &Subject) -> Outcome {
    let mut reports: Vec<Report<'_>> = Vec::new();
    for (index, event) in (0..).zip(&subject.events) {
        if !is_about(event) {
            continue;
        }
        let Some(fault) = Fault::parse(&event.note) else {
            continue;
        };
        match reports
            .iter_mut()
            .find(|report| is_the_same(&report.fault, &fault))
        {
            Some(report) => {
                report.evidence.push(index);
                if event.last_seen >= report.last_seen {
                    report.fault = fault;
                    report.last_seen = event.last_seen;
                }
            }
            None => reports.push(Report {
                fault,
                last_seen: event.last_seen,
                evidence: vec![index],
            }),
        }
    }
    let node = subject.node.as_deref();
    reports
        .into_iter()
        .map(|report| report.into_finding(node))
        .collect()
}

/// What several events say of one fault.
struct Report<'a> {
    /// As the event that was seen last says it.
    fault: Fault<'a>,
    last_seen: u64,
    /// All of them.
    evidence: Vec<u32>,
}

/// The agent names the pod by uid and reports from its node. A claim that the host knows to be false is
/// a forgery, or regards a predecessor of the pod.
fn is_about(event: &Event) -> bool {
    event.trust.uid != Agreement::Different && event.trust.node != Agreement::Different
}

/// Whether two faults have one identity, which is `Finding`'s: category, code and key.
fn is_the_same(one: &Fault<'_>, other: &Fault<'_>) -> bool {
    category(one) == category(other)
        && one.code == other.code
        && one.number == other.number
        && Device::of(one) == Device::of(other)
}

fn category(fault: &Fault<'_>) -> &'static str {
    match fault.severity {
        table::Severity::User => USER_ERROR,
        table::Severity::Warn | table::Severity::Critical => FAULT,
    }
}

/// What names the device: the best name that the report has for it.
#[derive(PartialEq, Eq)]
enum Device<'a> {
    Uuid(&'a str),
    Pci(&'a str),
    Index(u32),
    Unknown,
}

impl<'a> Device<'a> {
    fn of(fault: &Fault<'a>) -> Self {
        match *fault {
            Fault {
                uuid: Some(uuid), ..
            } => Self::Uuid(uuid),
            Fault { pci: Some(pci), .. } => Self::Pci(pci),
            Fault {
                gpu_index: Some(index),
                ..
            } => Self::Index(index),
            _ => Self::Unknown,
        }
    }
}

/// Number and device: `79/GPU-6f3c..`, else `79/0000:3b:00.0`, else `79/0`, else `79`.
///
/// Different numbers often share a code, and one number on two devices is two faults; repeats of one
/// fold. Reports of one fault that name its device in different ways do not fold.
fn key(number: &str, device: &Device<'_>) -> String {
    match device {
        Device::Uuid(name) | Device::Pci(name) => [number, "/", name].concat(),
        Device::Index(index) => [number, "/", &index.to_string()].concat(),
        Device::Unknown => number.to_owned(),
    }
}

impl Report<'_> {
    fn into_finding(self, node_of_pod: Option<&str>) -> Finding {
        let Self {
            fault, evidence, ..
        } = self;
        let number = fault.number.to_string();
        let (severity, blame) = match fault.severity {
            table::Severity::User => (Severity::Info, Blame::Workload),
            // A number that the table does not know may be anybody's.
            table::Severity::Warn => (Severity::Warning, Blame::Unknown),
            table::Severity::Critical => (Severity::Critical, Blame::Platform),
        };
        Finding {
            category: category(&fault).to_owned(),
            code: fault.code.to_owned(),
            key: key(&number, &Device::of(&fault)),
            severity,
            status: Status::Active,
            blame,
            message: message(&fault, &number),
            evidence,
            attributes: attributes(&fault, number, node_of_pod),
        }
    }
}

/// The agent's own sentence, or the least that can be said.
fn message(fault: &Fault<'_>, number: &str) -> String {
    if !fault.sentence.is_empty() {
        return fault.sentence.to_owned();
    }
    match fault.kind {
        Kind::Xid => ["Xid ", number].concat(),
        Kind::Sxid => ["SXid ", number].concat(),
    }
}

/// What the report names; where it names no node, the pod's own, which is the device's.
fn attributes(fault: &Fault<'_>, number: String, node_of_pod: Option<&str>) -> Vec<Attribute> {
    let kind = match fault.kind {
        Kind::Xid => "xid",
        Kind::Sxid => "sxid",
    };
    let mut attributes = Vec::with_capacity(9);
    attributes.push(Attribute {
        key: kind.to_owned(),
        value: number,
    });
    attributes.push(Attribute::new("severity", fault.severity.as_word()));
    for (key, value) in [
        ("name", fault.name),
        ("uuid", fault.uuid),
        ("pci", fault.pci),
        ("node", fault.node.or(node_of_pod)),
        ("process", fault.process),
    ] {
        attributes.extend(value.map(|value| Attribute::new(key, value)));
    }
    for (key, value) in [("gpu_index", fault.gpu_index), ("pid", fault.pid)] {
        attributes.extend(value.map(|value| Attribute::new(key, value)));
    }
    attributes
}

#[cfg(test)]
mod tests;
