//! Who may say what about a pod: Flyte's rule, in the host's terms.
//!
//! Anyone who may create Events in a namespace writes every field of one. The host says what of an event's
//! claims it could check: the uid of the object, and the node that it was reported from. A claim that is known
//! to be false, or is missing where every true event has it, makes it no report at all.
//!
//! * An agent writes on the pod from the pod's node: uid and node have to fit. So does the kubelet.
//! * A monitor of a node reports from that node. Its Node's uid proves nothing: some write the name there, some
//!   the uid, and the host knows the name.
//! * A scheduler, a queue or a controller runs anywhere: the uid has to fit, the node says nothing.

use portent_sdk::{Agreement, Subject, Trust};

/// Where an event's writer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Writer {
    /// On the node of the pod that it writes about.
    OnPodsNode,
    /// On the node that it writes about.
    OnNode,
    /// Anywhere.
    Anywhere,
}

impl Writer {
    /// Who writes an event of this reason about an object of this kind.
    pub(crate) fn of(kind: &str, reason: &str, controller: &str) -> Self {
        let is_agent = matches!(reason, "GPUXidError" | "GPUSXidError");
        match kind {
            "Node" => Self::OnNode,
            "Pod" if is_agent || controller == "kubelet" => Self::OnPodsNode,
            _ => Self::Anywhere,
        }
    }

    /// Whether to believe it. `has_run` is false of a pod that is known never to have had a node.
    pub(crate) fn is_believed(
        self,
        trust: Trust,
        instance: Option<&str>,
        node: Option<&str>,
        has_run: bool,
    ) -> bool {
        use Agreement::{Absent, Different};

        let fits = |it: Agreement| !matches!(it, Different | Absent);
        match self {
            Self::OnPodsNode => has_run && fits(trust.uid) && fits(trust.node),
            // Newer recorders put their own name before the node's.
            Self::OnNode => {
                let is_there = instance
                    .zip(node)
                    .is_some_and(|(it, node)| it.ends_with(node));
                trust.node != Different || is_there
            }
            Self::Anywhere => fits(trust.uid),
        }
    }
}

/// Whether a subject may have had a device: a pod that the host watches, for it knows the phase, and that was
/// never given a node, has not.
pub(crate) fn has_run(subject: &Subject) -> bool {
    subject.object.kind != "Pod" || subject.phase.is_none() || subject.node.is_some()
}

#[cfg(test)]
mod tests;
