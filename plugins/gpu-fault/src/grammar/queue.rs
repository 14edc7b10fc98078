//! Why Kueue does not let a workload in that wants devices.
//!
//! ```text
//! couldn't assign flavors to pod set main: insufficient unused quota for nvidia.com/gpu in flavor h100, 8 more needed
//! couldn't assign flavors to pod set job: resource nvidia.com/gpu unavailable in ClusterQueue
//! ```
//!
//! Facts: kubernetes-sigs/kueue, `flavorassigner.go`.

use crate::{
    action::Action,
    code::{self, Category},
    cursor::{cut, cut_last, pieces},
    grammar::Report,
    settings::Settings,
    statement::Statement,
};

pub(crate) fn read(settings: &Settings, report: Report<'_>) -> Option<Statement> {
    let behind = report
        .note
        .strip_prefix("couldn't assign flavors to pod set ")?;
    // Several pod sets are told one behind the other.
    let (_, reasons) = cut(behind, ": ")?;
    let resource = pieces(reasons, ", ")
        .flat_map(|it| pieces(it, "; "))
        .find_map(|it| {
            let it = cut_last(it, ": ").map_or(it, |(_, it)| it).trim_ascii();
            let named = [
                "insufficient unused quota for ",
                "insufficient quota for ",
                "resource ",
            ]
            .into_iter()
            .find_map(|start| it.strip_prefix(start))?;
            let (name, rest) = cut(named, " ").unwrap_or((named, ""));
            let is_it =
                !it.starts_with("resource ") || rest.starts_with("unavailable in ClusterQueue");
            (is_it && settings.is_accelerator(name)).then_some(name)
        })?;
    let message = ["the queue has no quota left for ", resource].concat();
    let statement = Statement::new(Category::Capacity, code::QUOTA, Action::None, message);
    Some(statement.key(resource).attribute("resource", resource))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(note: &str) -> Option<Statement> {
        let report = Report {
            kind: "Workload",
            reason: "Pending",
            controller: "kueue-admission",
            note,
        };
        super::read(&Settings::default(), report)
    }

    #[test]
    fn quota_that_is_used_up_is_read() {
        for reasons in [
            "main: insufficient unused quota for nvidia.com/gpu in flavor h100, 8 more needed",
            "main: insufficient unused quota for cpu in flavor a, 1 more needed, insufficient unused quota for \
             nvidia.com/gpu in flavor a, 1 more needed",
            "main: insufficient quota for nvidia.com/gpu in flavor a, request > maximum capacity (8 > 0)",
            "job: resource nvidia.com/gpu unavailable in ClusterQueue",
            "a: insufficient unused quota for cpu in flavor a, 1 more needed; b: insufficient unused quota for \
             nvidia.com/gpu in flavor a, 1 more needed",
        ] {
            let note = ["couldn't assign flavors to pod set ", reasons].concat();
            let statement = read(&note).unwrap();
            assert_eq!(
                (statement.category, statement.code),
                (Category::Capacity, "GpuQuotaExceeded"),
                "{note}"
            );
            assert_eq!(statement.find("resource"), Some("nvidia.com/gpu"));
        }
    }

    #[test]
    fn other_reasons_are_not_ours() {
        for note in [
            "",
            "couldn't assign flavors to pod set job: resource cpu unavailable in ClusterQueue",
            "couldn't assign flavors to pod set gpu: insufficient unused quota for cpu in flavor nvidia.com/gpu, 1 more",
            "couldn't assign flavors to pod set job: resource nvidia.com/gpu is fine",
            "insufficient unused quota for nvidia.com/gpu in flavor a",
        ] {
            assert_eq!(read(note), None, "{note}");
        }
    }
}
