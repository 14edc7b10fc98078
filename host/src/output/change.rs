//! What changed, as a sink or a stream carries it.

use schemars::JsonSchema;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::{AdditionalReason, Classifier, Finding, Object, Verdict};
use crate::{
    outcome::{self, Change, Delta, EndReason},
    subject::SubjectKey,
    text::hex,
};

/// What changed in what one classifier says of one subject.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChangeRecord<'a> {
    /// The process that counts; 0 for a replay.
    epoch: u64,
    /// Its place among the changes of that epoch, from 1.
    seq: u64,
    /// Whether the first listing produced it; never so in a replay.
    initial: bool,
    object: Object<'a>,
    classifier: Classifier<'a>,
    raised: Vec<Entry<Finding<'a>>>,
    changed: Vec<Entry<Finding<'a>>>,
    cleared: Vec<Entry<Cleared<'a>>>,
    /// Those that are new or say something else.
    additional_reasons: Vec<Entry<AdditionalReason<'a>>>,
    verdict: Option<Entry<Verdict<'a>>>,
}

/// A part of a change, with an id that is the same after a restart and on every
/// replica: a reader drops one whose id equals the last that it holds for the
/// same identity.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Entry<T> {
    id: String,
    #[serde(flatten)]
    entry: T,
}

/// A finding that does not hold any more.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Cleared<'a> {
    finding: Finding<'a>,
    reason: EndReason,
}

impl<'a> ChangeRecord<'a> {
    /// The change as a reader gets it.
    #[must_use]
    pub fn new(epoch: u64, seq: u64, initial: bool, change: &'a Change) -> Self {
        let Change {
            subject,
            api_version,
            classifier,
            version: _,
            delta,
        } = change;
        let Delta {
            raised,
            changed,
            cleared,
            additional_reasons,
            verdict,
        } = delta;
        let ids = Ids {
            subject,
            classifier: &classifier.name,
        };
        let held = |it: &'a outcome::Finding| Entry {
            id: ids.finding(it, "active"),
            entry: Finding::new(it),
        };
        Self {
            epoch,
            seq,
            initial,
            object: Object::new(subject, api_version),
            classifier: Classifier::new(classifier),
            raised: raised.iter().map(held).collect(),
            changed: changed.iter().map(held).collect(),
            cleared: cleared
                .iter()
                .map(|(it, reason)| Entry {
                    id: ids.finding(it, "cleared"),
                    entry: Cleared {
                        finding: Finding::new(it),
                        reason: *reason,
                    },
                })
                .collect(),
            additional_reasons: additional_reasons
                .iter()
                .map(|it| Entry {
                    id: ids.additional_reason(it),
                    entry: AdditionalReason::new(it),
                })
                .collect(),
            verdict: verdict.as_ref().map(|it| Entry {
                id: ids.verdict(it),
                entry: Verdict::new(it),
            }),
        }
    }
}

/// Makes the ids of a change's entries: a hash of whom it is about, who says it,
/// what makes it the same one, and what it says.
struct Ids<'a> {
    subject: &'a SubjectKey,
    classifier: &'a str,
}

impl Ids<'_> {
    fn finding(&self, it: &outcome::Finding, state: &str) -> String {
        let outcome::Identity {
            category,
            code,
            key,
        } = &it.identity;
        let (severity, blame) = (it.severity.as_str(), it.blame.as_str());
        let said = [category, code, key, state, severity, blame, &it.message];
        self.hash("finding", &said, &it.attributes)
    }

    fn additional_reason(&self, it: &outcome::AdditionalReason) -> String {
        let event = &it.event;
        let uid = event.uid().text();
        let whose = [event.namespace(), event.name(), &*uid];
        let (at, count) = (it.at.to_string(), it.report.count().to_string());
        let report = &it.report;
        let beside = [report.event_type(), report.reason(), report.controller()];
        let said: Vec<_> = whose
            .into_iter()
            .chain([it.text(), &at])
            .chain(beside)
            .chain([&*count])
            .collect();
        self.hash("additional-reason", &said, &it.attributes)
    }

    fn verdict(&self, it: &outcome::Verdict) -> String {
        let at = it.failure_at.to_string();
        let advice = [it.blame.as_str(), it.retry.as_str()];
        let avoid = it.avoid.iter().flat_map(|(key, value)| [&**key, value]);
        let said: Vec<_> = [&it.failure_code, &*at, &it.code, &it.message]
            .into_iter()
            .chain(advice)
            .chain(avoid)
            .collect();
        self.hash("verdict", &said, &it.attributes)
    }

    /// 128 bits of SHA-256 over the parts, each behind its length, so that no two
    /// lists of parts are the same bytes.
    fn hash(&self, what: &str, said: &[&str], attributes: &outcome::Attributes) -> String {
        let SubjectKey { object, uid } = self.subject;
        let uid = uid.as_ref().text();
        let whom = [object.namespace(), object.kind(), object.name(), &*uid];
        let mut hash = Sha256::new();
        let mut add = |part: &str| {
            hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_le_bytes());
            hash.update(part);
        };
        whom.into_iter()
            .chain([self.classifier, what])
            .chain(said.iter().copied())
            .for_each(&mut add);
        attributes
            .iter()
            .flat_map(|(key, value)| [key, value])
            .for_each(add);
        hex(hash.finalize().get(..16).unwrap_or_default())
    }
}
