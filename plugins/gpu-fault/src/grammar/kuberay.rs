//! What `KubeRay` forwards from a node to the clusters and jobs that have pods on it.
//!
//! ```text
//! reason XIDError/node-problem-detector
//! note   Node event observed on Node "node-1" (reason: XIDError, source: node-problem-detector): Caught XID error, XID=79
//! ```
//!
//! It is unwrapped, not read: what is inside is the text of somebody else, who is named. Facts: `KubeRay`'s
//! event forwarder.

use crate::{
    cursor::{Cursor, cut},
    grammar::Report,
};

/// What every note begins with.
pub(crate) const PREFIX: &str = "Node event observed on Node \"";

/// What was forwarded, and from which node.
pub(crate) struct Forwarded<'a> {
    pub(crate) node: &'a str,
    pub(crate) report: Report<'a>,
}

pub(crate) fn read(outer: Report<'_>) -> Option<Forwarded<'_>> {
    let mut at = Cursor(outer.note);
    at.tag(PREFIX)?;
    let node = at.until("\" (reason: ")?;
    let reason = at.until(", source: ")?;
    let source = at.until("): ")?;
    // The reason says the same as the note, where it says both.
    let agrees = match cut(outer.reason, "/") {
        Some((outer, by)) => outer == reason && source.starts_with(by),
        None => true,
    };
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-.".contains(&byte);
    let is_node = !node.is_empty() && node.bytes().all(is_name);
    (agrees && is_node).then_some(Forwarded {
        node,
        report: Report {
            kind: "Node",
            reason,
            controller: source,
            note: at.0,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outer<'a>(reason: &'a str, note: &'a str) -> Report<'a> {
        Report {
            kind: "RayCluster",
            reason,
            controller: "",
            note,
        }
    }

    #[test]
    fn what_is_inside_is_taken_out() {
        let note = "Node event observed on Node \"node-1\" (reason: XIDError, source: npd): Caught XID error, XID=79";
        for reason in ["XIDError/npd", "NodeEvent"] {
            let forwarded = read(outer(reason, note)).unwrap();
            assert_eq!(forwarded.node, "node-1");
            let want = Report {
                kind: "Node",
                reason: "XIDError",
                controller: "npd",
                note: "Caught XID error, XID=79",
            };
            assert_eq!(forwarded.report, want);
        }
    }

    #[test]
    fn reason_and_note_have_to_agree() {
        let note = "Node event observed on Node \"node-1\" (reason: XIDError, source: npd): Caught XID error, XID=79";
        assert!(read(outer("NodeReady/npd", note)).is_none());
        assert!(read(outer("XIDError/kubelet", note)).is_none());
    }

    #[test]
    fn another_form_is_not_ours() {
        for note in [
            "",
            "Node event observed on Node \"node-1\"",
            "Node event observed on Node \"\" (reason: XIDError, source: npd): x",
            "Node event observed on Node \"a b\" (reason: XIDError, source: npd): x",
            "Node event observed on Node \"node-1\" (reason: XIDError): x",
            "x Node event observed on Node \"node-1\" (reason: XIDError, source: npd): x",
        ] {
            assert!(read(outer("XIDError", note)).is_none(), "{note}");
        }
    }
}
