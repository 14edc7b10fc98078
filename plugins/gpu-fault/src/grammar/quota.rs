//! Pods that a controller may not create, because the namespace's quota of devices is used up.
//!
//! ```text
//! Error creating: pods "train-0" is forbidden: exceeded quota: gpu-quota, requested: requests.nvidia.com/gpu=8, used: requests.nvidia.com/gpu=40, limited: ..
//! ```
//!
//! Jobs, `ReplicaSet`s, `StatefulSet`s and `RayCluster`s put words of their own before it. What is requested is
//! listed where it exceeds the quota only. Facts: kube-apiserver, admission plugin `ResourceQuota`.

use crate::{
    action::Action,
    code::{self, Category},
    cursor::{Cursor, cut, pieces},
    grammar::Report,
    settings::Settings,
    statement::Statement,
};

/// Reasons under which controllers say that they could not create a pod.
pub(crate) const REASONS: [&str; 4] = [
    "FailedCreate",
    "FailedToCreateWorkerPod",
    "FailedToCreateHeadPod",
    "FailedCreatePod",
];

pub(crate) fn read(settings: &Settings, report: Report<'_>) -> Option<Statement> {
    if !REASONS.contains(&report.reason) {
        return None;
    }
    let (_, behind) = cut(report.note, "pods \"")?;
    let mut at = Cursor(behind);
    at.while_(|byte| byte.is_ascii_alphanumeric() || b".-".contains(&byte));
    at.tag("\" is forbidden: exceeded quota: ")?;
    let quota = at.until(", requested: ")?;
    let requested = at.until_or_rest(", used: ");
    let (resource, amount) = pieces(requested, ",").find_map(|it| {
        let (name, amount) = cut(it.trim_ascii(), "=")?;
        let name = name
            .strip_prefix("requests.")
            .or_else(|| name.strip_prefix("limits."))
            .unwrap_or(name);
        settings.is_accelerator(name).then_some((name, amount))
    })?;
    let message = ["the quota ", quota, " has no ", resource, " left"].concat();
    let statement = Statement::new(Category::Capacity, code::QUOTA, Action::None, message);
    Some(
        statement
            .key(resource)
            .attribute("resource", resource)
            .maybe("requested", Cursor(amount).number()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(note: &str) -> Option<Statement> {
        let report = Report {
            kind: "Job",
            reason: "FailedCreate",
            controller: "job-controller",
            note,
        };
        super::read(&Settings::default(), report)
    }

    #[test]
    fn a_quota_of_devices_is_read() {
        for before in [
            "Error creating: ",
            "create Pod a-0 in StatefulSet a failed error: ",
            "Failed to create worker Pod a/b, ",
        ] {
            let note = [
                before,
                "pods \"a-0\" is forbidden: exceeded quota: q, requested: cpu=1,requests.nvidia.com/gpu=8, used: \
                 requests.nvidia.com/gpu=40, limited: requests.nvidia.com/gpu=40",
            ]
            .concat();
            let statement = read(&note).unwrap();
            assert_eq!(
                (statement.category, statement.code),
                (Category::Capacity, "GpuQuotaExceeded")
            );
            assert_eq!(statement.find("resource"), Some("nvidia.com/gpu"));
            assert_eq!(statement.find("requested"), Some("8"));
        }
    }

    #[test]
    fn another_quota_or_form_is_not_ours() {
        for note in [
            "",
            "Error creating: pods \"nvidia.com\" is forbidden: exceeded quota: q, requested: cpu=8, used: requests.nvidia.com/gpu=1",
            "Error creating: pods \"a\" is forbidden: violates PodSecurity \"requests.nvidia.com/gpu=8\"",
            "Error creating: pods \"a b\" is forbidden: exceeded quota: q, requested: requests.nvidia.com/gpu=8",
            "exceeded quota: q, requested: requests.nvidia.com/gpu=8",
        ] {
            assert_eq!(read(note), None, "{note}");
        }
    }
}
