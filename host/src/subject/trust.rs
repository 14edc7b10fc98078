//! What the host can establish about where an Event came from.
//!
//! Whoever may create Events in a namespace writes what they say of themselves. The uid
//! of an object and the node of a pod are known from the object: what an Event claims is
//! held against that, and a classifier decides what to make of it.

use super::Subject;
use crate::record::{Record, UidRef};

/// How a claim of an Event compares with what the host knows itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agreement {
    /// The claim and the host's knowledge are equal.
    Same,
    /// They are not.
    Different,
    /// The host knows, and the Event makes no such claim.
    Absent,
    /// The host has nothing to compare with.
    Unknown,
}

/// What of an Event's claims could be checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trust {
    /// The uid that it regards.
    pub uid: Agreement,
    /// The node that reported it, against the one that its object runs on.
    pub node: Agreement,
}

impl Subject {
    /// What of the claims of one of its events could be checked, by the event's place.
    #[must_use]
    pub fn trust(&self, idx: usize) -> Trust {
        let event = &self.events[idx];
        if let Some(about) = self.about(idx) {
            return Trust {
                uid: uid(event.object_uid(), about.uid.as_ref()),
                node: node_itself(event, about.object.kind(), about.object.name()),
            };
        }
        let claimed = event.object_uid();
        let (uid, node) = match &self.pod {
            Some(pod) => {
                let claimed_node = event.instance();
                let node = match pod.node.as_deref() {
                    _ if claimed_node.is_empty() => Agreement::Absent,
                    Some(node) if node == claimed_node => Agreement::Same,
                    // A pod that is on no node yet has nobody there to report on it.
                    _ => Agreement::Different,
                };
                (uid(claimed, pod.uid.as_ref()), node)
            }
            None if self.is_disowned => (Agreement::Different, Agreement::Unknown),
            None => {
                let object = &self.key.object;
                let node = node_itself(event, object.kind(), object.name());
                (uid(claimed, self.key.uid.as_ref()), node)
            }
        };
        Trust { uid, node }
    }
}

fn uid(claimed: UidRef<'_>, known: UidRef<'_>) -> Agreement {
    match (claimed, known) {
        (_, known) if known.is_empty() => Agreement::Unknown,
        (claimed, _) if claimed.is_empty() => Agreement::Absent,
        (claimed, known) if claimed == known => Agreement::Same,
        _ => Agreement::Different,
    }
}

/// A Node is where it is. Of anything else that is no pod nobody knows where it runs.
fn node_itself(event: &Record, kind: &str, name: &str) -> Agreement {
    match event.instance() {
        _ if kind != "Node" => Agreement::Unknown,
        "" => Agreement::Absent,
        claimed if claimed == name => Agreement::Same,
        _ => Agreement::Different,
    }
}
