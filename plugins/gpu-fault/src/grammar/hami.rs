//! Why `HAMi`'s scheduler, which shares devices between pods, finds none.
//!
//! ```text
//! reason FilteringFailed
//! note   no available node, 3 nodes do not meet
//! note   2 nodes CardInsufficientMemory(node-a,node-b)
//! ```
//!
//! Facts: Project-HAMi/HAMi, `scheduler/event.go` and `device/common`.

use crate::{
    action::Action,
    code::{self, Category},
    cursor::Cursor,
    grammar::Report,
    statement::Statement,
};

/// Its words for why a node or a card does not fit.
const REASONS: [&str; 13] = [
    "NodeInsufficientDevice",
    "AllocatedCardsInsufficientRequest",
    "NodeUnfitPod",
    "NumaNotFit",
    "CardTypeMismatch",
    "CardUuidMismatch",
    "CardTimeSlicingExhausted",
    "CardComputeUnitsExhausted",
    "CardInsufficientMemory",
    "CardInsufficientCore",
    "CardNotFoundCustomFilterRule",
    "ExclusiveDeviceAllocateConflict",
    "ResourceQuotaNotFit",
];

pub(crate) fn is_reason(text: &str) -> bool {
    REASONS.contains(&text)
}

pub(crate) fn read(report: Report<'_>) -> Option<Statement> {
    if report.controller != "hami-scheduler" {
        return None;
    }
    let mut at = Cursor(report.note);
    let why = if at.maybe("no available node, ") {
        let is_all = at.0.starts_with("all node scores do not meet");
        (is_all || at.number().is_some()).then_some("no node fits")?
    } else {
        at.number()?;
        at.tag(" nodes ")?;
        let word = at.while_(|byte| byte.is_ascii_alphanumeric());
        is_reason(word).then_some(word)?
    };
    let message = ["no node has a free device: ", why].concat();
    let statement = Statement::new(
        Category::Capacity,
        code::INSUFFICIENT,
        Action::None,
        message,
    );
    Some(statement.key(why))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(controller: &str, note: &str) -> Option<Statement> {
        super::read(Report {
            kind: "Pod",
            reason: "FilteringFailed",
            controller,
            note,
        })
    }

    #[test]
    fn both_forms_are_read() {
        for note in [
            "no available node, 3 nodes do not meet",
            "no available node, all node scores do not meet",
            "2 nodes CardInsufficientMemory(node-a,node-b)",
        ] {
            let statement = read("hami-scheduler", note).unwrap();
            assert_eq!(
                (statement.category, statement.code),
                (Category::Capacity, "GpuInsufficient")
            );
        }
    }

    #[test]
    fn another_form_is_not_ours() {
        for note in [
            "",
            "pod gpu-pod does not request any resource",
            "calcScore failed for pod gpu",
            "2 nodes SomethingElse(node-a)",
        ] {
            assert_eq!(read("hami-scheduler", note), None, "{note}");
        }
        assert_eq!(
            read(
                "default-scheduler",
                "no available node, 3 nodes do not meet"
            ),
            None
        );
    }
}
