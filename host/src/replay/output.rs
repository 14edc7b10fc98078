//! What replay prints for programs.
//!
//! This is an interface: objects may gain keys, and never lose or change them.
//! Its JSON Schema is made from these types, stands in `docs/schema`, and a test
//! keeps the two the same.

use std::io::{self, Write};

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use sha2::{Digest as _, Sha256};

use crate::{
    outcome::{
        self, Blame, Change, EndReason, Held, Provenance, Retry, Severity, Status, merge::Delta,
    },
    record::{EventRef, UnixMs},
    subject::SubjectKey,
    text::hex,
};

/// RFC 3339 in UTC, `1970-01-01T00:00:00Z` when unknown.
#[derive(Clone, Copy, Debug, JsonSchema)]
#[schemars(transparent)]
pub struct Time(#[schemars(with = "String", extend("format" = "date-time"))] UnixMs);

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
    uid: &'a str,
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
    event: Event<'a>,
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
    uid: &'a str,
}

/// How a call failed.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Error<'a> {
    /// A code; `docs/reasons.md` lists them.
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
                    .map(AdditionalReason::new)
                    .collect(),
                verdict: outcome.verdict.as_ref().map(Verdict::new),
                attributes: Attributes(&outcome.attributes),
                stale: held.error.is_some(),
            }),
            error: held.error.as_ref().map(|it| Error {
                reason: it.reason.as_str(),
                message: &it.message,
            }),
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
            uid: &subject.uid,
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
            text: &it.text,
            at: Time(it.at),
            event: Event::new(&it.event),
            attributes: Attributes(&it.attributes),
        }
    }
}

impl<'a> Verdict<'a> {
    fn new(it: &'a outcome::Verdict) -> Self {
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
            namespace: &it.namespace,
            name: &it.name,
            uid: &it.uid,
        }
    }
}

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
pub struct Entry<T> {
    id: String,
    #[serde(flatten)]
    entry: T,
}

/// A finding that does not hold any more.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Cleared<'a> {
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
        let EventRef {
            namespace,
            name,
            uid,
        } = &it.event;
        let said = [namespace, name, uid, &*it.text, &it.at.to_string()];
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
        let object = &self.subject.object;
        let whom = [
            object.namespace(),
            object.kind(),
            object.name(),
            &*self.subject.uid,
        ];
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

/// How JSON values follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// One array.
    Array,
    /// One value a line.
    Lines,
}

/// Writes values one after the other.
#[derive(Debug)]
pub struct Writer<W> {
    to: W,
    framing: Framing,
    n_written: u64,
}

impl<W: Write> Writer<W> {
    /// Nothing is written yet.
    pub fn new(to: W, framing: Framing) -> Self {
        Self {
            to,
            framing,
            n_written: 0,
        }
    }

    /// Writes a value.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn write(&mut self, value: &impl Serialize) -> io::Result<()> {
        match (self.framing, self.n_written) {
            (Framing::Array, 0) => self.to.write_all(b"[\n")?,
            (Framing::Array, _) => self.to.write_all(b",\n")?,
            (Framing::Lines, _) => {}
        }
        serde_json::to_writer(&mut self.to, value)?;
        if self.framing == Framing::Lines {
            self.to.write_all(b"\n")?;
        }
        self.n_written += 1;
        Ok(())
    }

    /// Writes what is left to write.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn finish(mut self) -> io::Result<()> {
        match (self.framing, self.n_written) {
            (Framing::Array, 0) => self.to.write_all(b"[]\n")?,
            (Framing::Array, _) => self.to.write_all(b"\n]\n")?,
            (Framing::Lines, _) => {}
        }
        self.to.flush()
    }
}

#[cfg(test)]
mod tests;
