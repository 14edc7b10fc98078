//! What is written for programs, by a replay and by a sink.
//!
//! This is an interface: objects may gain keys, and never lose or change them.
//! Its JSON Schema is made from these types, stands in `docs/schema`, and a test
//! keeps the two the same.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use crate::{
    outcome::{self, Blame, Held, Provenance, Retry, Severity, Status},
    record::{EventRef, Report, UidRef, UnixMs},
    subject::SubjectKey,
};

mod change;
mod write;

pub use change::ChangeRecord;
pub use write::{Framing, Writer};

/// RFC 3339 in UTC, `1970-01-01T00:00:00Z` when unknown.
#[derive(Clone, Copy, Debug, JsonSchema)]
#[schemars(transparent)]
pub struct Time(#[schemars(with = "String", extend("format" = "date-time"))] UnixMs);

impl Time {
    /// This time.
    #[must_use]
    pub fn new(at: UnixMs) -> Self {
        Self(at)
    }
}

impl std::fmt::Display for Time {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let time = i64::try_from(self.0)
            .ok()
            .and_then(|it| Timestamp::from_millisecond(it).ok());
        time.unwrap_or(Timestamp::UNIX_EPOCH).fmt(f)
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

/// What one classifier says of one subject.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Element<'a> {
    object: Object<'a>,
    classifier: Classifier<'a>,
    /// Null when no call has succeeded.
    outcome: Option<Outcome<'a>>,
    /// How the newest call failed, if it did.
    error: Option<Error<'a>>,
    /// Which part this is, from 1, where a subject had to leave before the end of
    /// the input and came again: then there are several, in order of time.
    #[serde(skip_serializing_if = "Option::is_none")]
    part: Option<u64>,
}

/// The object that is spoken of.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Object<'a> {
    /// Empty when unknown.
    api_version: &'a str,
    kind: &'a str,
    /// Empty for an object of the cluster's scope.
    namespace: &'a str,
    name: &'a str,
    /// Empty when unknown; a Node's is its name.
    uid: UidRef<'a>,
}

/// Who speaks.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Classifier<'a> {
    name: &'a str,
    version: &'a str,
    /// Of the component: `sha256:` and hexadecimal.
    digest: &'a str,
    /// Of its settings as JSON: `sha256:` and hexadecimal.
    settings_digest: &'a str,
    /// The package of the contract that it was built for.
    wit: &'a str,
}

/// What is held to be so.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Outcome<'a> {
    findings: Vec<Finding<'a>>,
    additional_reasons: Vec<AdditionalReason<'a>>,
    verdict: Option<Verdict<'a>>,
    attributes: Attributes<'a>,
    /// Whether a newer call failed, so that this is the last good outcome.
    stale: bool,
}

/// A typed, coded statement with evidence.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Finding<'a> {
    category: &'a str,
    code: &'a str,
    key: &'a str,
    severity: Severity,
    status: Status,
    blame: Blame,
    message: &'a str,
    /// Whether none of its evidence is live any more.
    retained: bool,
    evidence: Vec<Event<'a>>,
    attributes: Attributes<'a>,
}

/// One line of an object's history.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdditionalReason<'a> {
    text: &'a str,
    at: Time,
    event: Reported<'a>,
    attributes: Attributes<'a>,
}

/// Whose fault a failure was, and whether and where to try again.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Verdict<'a> {
    failure: Failure<'a>,
    code: &'a str,
    message: &'a str,
    blame: Blame,
    retry: Retry,
    /// Where not to try again. A key may come more than once.
    avoid: Vec<Place<'a>>,
    finding: Option<Identity<'a>>,
    attributes: Attributes<'a>,
}

/// The failure that a verdict is about.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Failure<'a> {
    code: &'a str,
    at: Time,
}

/// Somewhere not to try again.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Place<'a> {
    key: &'a str,
    value: &'a str,
}

/// What makes a finding the same one.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Identity<'a> {
    category: &'a str,
    code: &'a str,
    key: &'a str,
}

/// Refers to an Event, which may be gone.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Event<'a> {
    namespace: &'a str,
    name: &'a str,
    /// Empty when unknown.
    uid: UidRef<'a>,
}

/// The Event that a line tells of, and what it says beside its note.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Reported<'a> {
    namespace: &'a str,
    name: &'a str,
    /// Empty when unknown.
    uid: UidRef<'a>,
    /// `Normal`, `Warning`, or what else its writer put there.
    #[serde(rename = "type")]
    event_type: &'a str,
    /// For machines, for example `FailedScheduling`.
    reason: &'a str,
    /// Who reported it, for example `kubelet`; empty when unknown.
    controller: &'a str,
    /// How often it was seen. At least 1.
    count: u32,
}

/// How a call failed.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Error<'a> {
    /// A code; `docs/replay.md` lists them.
    reason: &'a str,
    /// What the plugin did, for a person.
    message: &'a str,
}

/// Keys and values, all of them text.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(transparent)]
#[serde(transparent)]
pub struct Attributes<'a>(
    #[schemars(with = "std::collections::BTreeMap<String, String>")] &'a outcome::Attributes,
);

impl<'a> Element<'a> {
    /// What is held of a subject.
    #[must_use]
    pub fn new(subject: &'a SubjectKey, held: &'a Held) -> Self {
        let outcome = &held.outcome;
        Self {
            object: Object::new(subject, &held.api_version),
            classifier: Classifier::new(&held.classifier),
            outcome: held.ever_classified.then(|| Outcome {
                findings: outcome.findings.iter().map(Finding::new).collect(),
                additional_reasons: outcome
                    .additional_reasons
                    .iter()
                    .map(|it| AdditionalReason::new(it))
                    .collect(),
                verdict: outcome.verdict.as_deref().map(Verdict::new),
                attributes: Attributes(&outcome.attributes),
                stale: held.error.is_some(),
            }),
            error: held.error.as_ref().map(|it| Error {
                reason: it.reason.as_str(),
                message: &it.message,
            }),
            part: None,
        }
    }
}

impl<'a> Object<'a> {
    fn new(subject: &'a SubjectKey, api_version: &'a str) -> Self {
        let object = &subject.object;
        Self {
            api_version,
            kind: object.kind(),
            namespace: object.namespace(),
            name: object.name(),
            uid: subject.uid.as_ref(),
        }
    }
}

impl<'a> Classifier<'a> {
    fn new(it: &'a Provenance) -> Self {
        Self {
            name: &it.name,
            version: &it.version,
            digest: &it.digest,
            settings_digest: &it.settings_digest,
            wit: &it.wit,
        }
    }
}

impl<'a> Finding<'a> {
    fn new(it: &'a outcome::Finding) -> Self {
        Self {
            category: &it.identity.category,
            code: &it.identity.code,
            key: &it.identity.key,
            severity: it.severity,
            status: it.status,
            blame: it.blame,
            message: &it.message,
            retained: it.is_retained(),
            evidence: it.evidence.iter().map(|it| Event::new(&it.event)).collect(),
            attributes: Attributes(&it.attributes),
        }
    }
}

impl<'a> AdditionalReason<'a> {
    fn new(it: &'a outcome::AdditionalReason) -> Self {
        Self {
            text: it.text(),
            at: Time(it.at),
            event: Reported::new(&it.event, &it.report),
            attributes: Attributes(&it.attributes),
        }
    }
}

impl<'a> Reported<'a> {
    fn new(it: &'a EventRef, report: &'a Report) -> Self {
        Self {
            namespace: it.namespace(),
            name: it.name(),
            uid: it.uid(),
            event_type: report.event_type(),
            reason: report.reason(),
            controller: report.controller(),
            count: report.count(),
        }
    }
}

impl<'a> Verdict<'a> {
    /// What a plugin says of a failure.
    #[must_use]
    pub fn new(it: &'a outcome::Verdict) -> Self {
        Self {
            failure: Failure {
                code: &it.failure_code,
                at: Time(it.failure_at),
            },
            code: &it.code,
            message: &it.message,
            blame: it.blame,
            retry: it.retry,
            avoid: it
                .avoid
                .iter()
                .map(|(key, value)| Place { key, value })
                .collect(),
            finding: it.finding.as_ref().map(Identity::new),
            attributes: Attributes(&it.attributes),
        }
    }
}

impl<'a> Identity<'a> {
    fn new(it: &'a outcome::Identity) -> Self {
        Self {
            category: &it.category,
            code: &it.code,
            key: &it.key,
        }
    }
}

impl<'a> Event<'a> {
    fn new(it: &'a EventRef) -> Self {
        Self {
            namespace: it.namespace(),
            name: it.name(),
            uid: it.uid(),
        }
    }
}
