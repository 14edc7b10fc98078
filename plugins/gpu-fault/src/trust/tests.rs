//! Flyte's table of sixteen cases, and the writers that Flyte has not.

use portent_sdk::{Agreement, Agreement::*, Event, ObjectRef, Outcome};

use super::*;
use crate::settings::Settings;

const NOTE: &str = "[gpu-health] [CRITICAL] Xid 79. xid=79 severity=critical";

/// What the host knows of a pod: whether it watches it, and the node that it found.
#[derive(Clone, Copy)]
enum Known {
    /// Nothing: the pod is not watched.
    Nothing,
    /// Its uid and node.
    Node,
    /// Its uid, and that no node was ever assigned.
    NoNode,
}

fn outcome(known: Known, uid: Agreement, node: Agreement) -> Outcome {
    let pod = Subject::pod("ml-team", "train-0");
    let pod = match known {
        Known::Nothing => pod,
        Known::Node => pod.uid("u").phase("Failed").node("n1"),
        Known::NoNode => pod.uid("u").phase("Pending"),
    };
    let event = Event::warning("GPUXidError", NOTE).trust(Trust { uid, node });
    crate::classify(&Settings::default(), &pod.event(event))
}

#[track_caller]
fn check(known: Known, uid: Agreement, node: Agreement, is_believed: bool) {
    let n_findings = outcome(known, uid, node).findings.len();
    assert_eq!(n_findings == 1, is_believed, "{uid:?} {node:?}");
}

#[test]
fn an_agents_report_is_believed_as_flyte_believes_it() {
    // The pod's uid and node are known. What the event says of both is the same, another, or nothing.
    check(Known::Node, Same, Same, true);
    check(Known::Node, Same, Different, false);
    check(Known::Node, Same, Absent, false);
    check(Known::Node, Different, Same, false);
    check(Known::Node, Different, Different, false);
    check(Known::Node, Different, Absent, false);
    check(Known::Node, Absent, Same, false);
    check(Known::Node, Absent, Different, false);
    check(Known::Node, Absent, Absent, false);
    // The uid is known, and that there is no node: nothing about a device is true of it.
    check(Known::NoNode, Same, Unknown, false);
    check(Known::NoNode, Different, Unknown, false);
    check(Known::NoNode, Absent, Unknown, false);
    // Nothing is known, or the uid alone, from other events: its name has to do.
    check(Known::Nothing, Unknown, Unknown, true);
    check(Known::Nothing, Same, Unknown, true);
    check(Known::Nothing, Different, Unknown, false);
    check(Known::Nothing, Absent, Unknown, false);
}

#[test]
fn the_kubelet_is_believed_like_an_agent() {
    let writer = Writer::of("Pod", "UnexpectedAdmissionError", "kubelet");
    assert_eq!(writer, Writer::OnPodsNode);
}

#[test]
fn a_scheduler_has_no_node() {
    let writer = Writer::of("Pod", "FailedScheduling", "default-scheduler");
    for node in [Same, Different, Absent, Unknown] {
        for (uid, want) in [
            (Same, true),
            (Unknown, true),
            (Different, false),
            (Absent, false),
        ] {
            let trust = Trust { uid, node };
            // A pod that waits never had a node.
            assert_eq!(
                writer.is_believed(trust, None, None, false),
                want,
                "{uid:?}"
            );
        }
    }
}

#[test]
fn a_monitor_reports_from_the_node_and_may_write_the_uid_as_it_likes() {
    let writer = Writer::of("Node", "XIDError", "nvidia-gpu-device-plugin");
    for uid in [Same, Different, Absent, Unknown] {
        for (node, want) in [
            (Same, true),
            (Unknown, true),
            (Absent, true),
            (Different, false),
        ] {
            let trust = Trust { uid, node };
            assert_eq!(
                writer.is_believed(trust, None, Some("n1"), true),
                want,
                "{node:?}"
            );
        }
    }
    let trust = Trust {
        uid: Same,
        node: Different,
    };
    assert!(writer.is_believed(trust, Some("agent-n1"), Some("n1"), true));
    assert!(!writer.is_believed(trust, Some("agent-n2"), Some("n1"), true));
}

#[test]
fn what_is_said_of_the_pods_node_is_believed_by_the_node() {
    let event = Event::warning("XIDError", "Caught XID error, XID=79")
        .controller("nvidia-gpu-device-plugin")
        .about(ObjectRef::node("n1"));
    let with = |node| {
        let trust = Trust { uid: Unknown, node };
        let pod = Subject::pod("ml-team", "train-0").event(event.clone().trust(trust));
        crate::classify(&Settings::default(), &pod).findings.len()
    };
    assert_eq!((with(Same), with(Unknown), with(Different)), (1, 1, 0));
}
