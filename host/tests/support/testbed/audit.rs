//! What kube-apiserver was asked, by its own account.

use std::fs;

use serde::Deserialize;

use super::{Testbed, until};

/// Who asked what, and not with which words. A watch is there twice: when it starts and when it ends.
pub(super) const POLICY: &str = "\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages:
  - RequestReceived
rules:
  - level: Metadata
";

/// A request, at one of its stages.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Entry {
    /// `ResponseStarted` for watches only, `ResponseComplete`, or `Panic`.
    pub(crate) stage: String,
    /// `list`, for example. For what is no resource, the method: `get`.
    pub(crate) verb: String,
    #[serde(rename = "requestURI")]
    pub(crate) uri: String,
    pub(crate) user: User,
    #[serde(default)]
    pub(crate) user_agent: String,
    /// What is asked for. `None` for what is no resource: `/version`, for example.
    pub(crate) object_ref: Option<ObjectRef>,
    pub(crate) response_status: Option<Status>,
}

/// Who asked.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct User {
    /// `system:serviceaccount:NAMESPACE:NAME` for a `ServiceAccount`.
    pub(crate) username: String,
}

/// What a request is for. What does not apply is empty.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ObjectRef {
    /// In the plural.
    pub(crate) resource: String,
    pub(crate) subresource: String,
    /// Empty for what is asked for at cluster scope.
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) api_group: String,
}

/// How it was answered.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Status {
    /// Of HTTP.
    #[serde(default)]
    pub(crate) code: u16,
}

impl Testbed {
    /// What this user has asked so far, in order. The entry of an answered request may be yet to come.
    pub(crate) fn audit(&self, user: &str) -> Vec<Entry> {
        let log = fs::read_to_string(self.file("audit.log")).unwrap_or_default();
        // The last line may be half written.
        let (whole, _) = log.rsplit_once('\n').unwrap_or_default();
        let entries = whole.lines().map(|line| {
            serde_json::from_str(line).unwrap_or_else(|err| panic!("audit log: {err}: {line}"))
        });
        entries
            .filter(|it: &Entry| it.user.username == user)
            .collect()
    }

    /// Waits until this user's requests have an entry like this, and returns all of them.
    pub(crate) async fn audit_with(
        &self,
        user: &str,
        is_it: impl Fn(&Entry) -> bool,
    ) -> Vec<Entry> {
        until("an entry of the audit log", || async {
            let entries = self.audit(user);
            entries.iter().any(&is_it).then_some(entries)
        })
        .await
    }
}
