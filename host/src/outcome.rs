//! What classifiers said, of whom, and what changed.
//!
//! The outcome table outlives the records that it rests on, so a new outcome is
//! merged into what is held and never just assigned: a fault stays a fault when
//! its Event is gone and a harmless one comes (see [`mod@merge`] for the rules).
//!
//! An outcome that holds no finding, additional reason, verdict or error is not
//! stored. Findings are few; additional reasons live and die with their
//! records, so what bounds the table is the store beside it and the limits on
//! what one call may say.

use std::{cmp::Reverse, sync::Arc};

use dashmap::{DashMap, Entry};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use crate::{
    reason::CallFailure,
    record::{EventRef, Record, UnixMs},
    store::Version,
    subject::{Subject, SubjectKey},
};

pub mod merge;

use merge::Delta;

/// Declares a word of the contract: its values, and how they are spelt there.
macro_rules! word {
    ($(#[doc = $doc:literal])+ $name:ident { $($(#[doc = $value_doc:literal])+ $value:ident = $text:literal,)+ }) => {
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
        pub enum $name {
            $($(#[doc = $value_doc])+ #[serde(rename = $text)] $value,)+
        }

        impl $name {
            /// As it is spelt in the contract and in output.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$value => $text,)+
                }
            }
        }
    };
}

word! {
    /// How bad a finding is.
    Severity {
        /// Worth knowing.
        Info = "info",
        /// Worth a look.
        Warning = "warning",
        /// Somebody or something has to act.
        Critical = "critical",
    }
}

word! {
    /// Whether what a finding states holds.
    Status {
        /// It holds, as far as its evidence tells.
        Active = "active",
        /// What it matches is over, as of its evidence.
        Cleared = "cleared",
    }
}

word! {
    /// Whose fault it was.
    Blame {
        /// Nobody can tell.
        Unknown = "unknown",
        /// The workload's own.
        Workload = "workload",
        /// The platform's.
        Platform = "platform",
    }
}

word! {
    /// Whether and where to try again.
    Retry {
        /// What the failure says stands.
        NoOpinion = "no-opinion",
        /// Trying again cannot help.
        NotAtAll = "not-at-all",
        /// The same node and device will do.
        SamePlace = "same-place",
        /// Somewhere that `avoid` does not name.
        Elsewhere = "elsewhere",
    }
}

word! {
    /// Why a finding does not hold any more.
    EndReason {
        /// A cleared finding that matches it is at least as new.
        Cleared = "cleared",
        /// All that it rested on is live, and its classifier no longer says so.
        NotYielded = "not-yielded",
        /// Its subject had no uid; now it has one, and speaks for itself.
        Folded = "folded",
    }
}

/// What makes a finding the same one within its subject and classifier.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity {
    /// For example `gpu-fault`.
    pub category: Box<str>,
    /// For example `GpuFallenOffBus`. Empty only in a cleared finding, where it
    /// matches all of the category.
    pub code: Box<str>,
    /// For example a device. Empty when there can be only one, and in a cleared
    /// finding that matches all of the code.
    pub key: Box<str>,
}

/// Keys and values, sorted; a key comes once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes(Vec<(Box<str>, Box<str>)>);

impl Attributes {
    /// Attributes of these.
    ///
    /// # Errors
    ///
    /// The first key that comes twice.
    pub fn new<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, &'a str> {
        let mut pairs: Vec<_> = pairs.into_iter().collect();
        pairs.sort_unstable();
        if let Some(twice) = pairs.windows(2).find(|it| it[0].0 == it[1].0) {
            return Err(twice[0].0);
        }
        Ok(Self(
            pairs
                .into_iter()
                .map(|(key, value)| (key.into(), value.into()))
                .collect(),
        ))
    }

    /// The value of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.iter()
            .find(|(it, _)| *it == key)
            .map(|(_, value)| value)
    }

    /// All of them, by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (&**key, &**value))
    }
}

impl Serialize for Attributes {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.iter())
    }
}

/// An Event that a finding rests on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// Which one.
    pub event: EventRef,
    /// When it was last seen, as its reporter claims.
    pub last_seen: UnixMs,
    /// Whether its record is still in the store.
    pub live: bool,
}

impl Evidence {
    /// A live record as evidence.
    #[must_use]
    pub fn of(record: &Record) -> Self {
        Self {
            event: record.event_ref(),
            last_seen: record.last_seen(),
            live: true,
        }
    }
}

/// How many Events a finding refers to at most: the newest.
pub const EVIDENCE_MAX: usize = 16;

/// A typed, coded statement with evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What makes it the same one.
    pub identity: Identity,
    /// How bad it is.
    pub severity: Severity,
    /// Whether it holds.
    pub status: Status,
    /// Whose fault it is.
    pub blame: Blame,
    /// One sentence for a person.
    pub message: Box<str>,
    /// What was extracted.
    pub attributes: Attributes,
    /// What it rests on, newest first. At most [`EVIDENCE_MAX`].
    pub evidence: Vec<Evidence>,
}

impl Finding {
    /// Whether nothing that it rests on is live any more.
    #[must_use]
    pub fn is_retained(&self) -> bool {
        !self.evidence.iter().any(|it| it.live)
    }

    /// When the newest of its evidence was last seen.
    #[must_use]
    pub fn last_seen(&self) -> UnixMs {
        self.evidence
            .iter()
            .map(|it| it.last_seen)
            .max()
            .unwrap_or(0)
    }

    /// Whether it says the same as another of its identity. Evidence is no part
    /// of what it says.
    fn says_the_same(&self, other: &Self) -> bool {
        (self.severity, self.status, self.blame) == (other.severity, other.status, other.blame)
            && self.message == other.message
            && self.attributes == other.attributes
    }
}

/// One human-readable line of an object's history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdditionalReason {
    /// The line.
    pub text: Box<str>,
    /// When it happened.
    pub at: UnixMs,
    /// The Event that it tells of.
    pub event: EventRef,
    /// For example `reason` and `type`.
    pub attributes: Attributes,
}

/// For a failed subject: whose fault, retry or not, and where not to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The code of the failure that it is about.
    pub failure_code: Box<str>,
    /// When that failure was.
    pub failure_at: UnixMs,
    /// For example `GpuFallenOffBus`.
    pub code: Box<str>,
    /// For a person.
    pub message: Box<str>,
    /// Whose fault it was.
    pub blame: Blame,
    /// Whether and where to try again.
    pub retry: Retry,
    /// Where not to; keys may repeat.
    pub avoid: Vec<(Box<str>, Box<str>)>,
    /// The finding that decided.
    pub finding: Option<Identity>,
    /// More of it.
    pub attributes: Attributes,
}

/// What one classifier says of one subject.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// No two of one identity.
    pub findings: Vec<Finding>,
    /// In the order in which a person should read them.
    pub additional_reasons: Vec<AdditionalReason>,
    /// For a subject with a failure only.
    pub verdict: Option<Verdict>,
    /// What a later host may understand.
    pub attributes: Attributes,
}

/// Which plugin said something, exactly.
#[derive(Debug, PartialEq, Eq)]
pub struct Provenance {
    /// The classifier's name, from its description.
    pub name: Box<str>,
    /// Its version, from its description.
    pub version: Box<str>,
    /// `sha256:` and the digest of the component.
    pub digest: Box<str>,
    /// `sha256:` and the digest of its settings as JSON.
    pub settings_digest: Box<str>,
    /// The package of the contract that it was built for, for example
    /// `portent:classifier@0.1.0`.
    pub wit: Box<str>,
}

/// Counts the plugin sets of a process; a result of an older one is late.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Generation(pub u64);

/// What is held of one subject from one classifier.
#[derive(Clone, Debug)]
pub struct Held {
    /// Who said it.
    pub classifier: Arc<Provenance>,
    /// The API version of the object.
    pub api_version: Arc<str>,
    /// What is held to be so.
    pub outcome: Outcome,
    /// How the newest call failed, if it did: then `outcome` is the last good
    /// one.
    pub error: Option<CallFailure>,
    /// Whether there was a good one.
    pub ever_classified: bool,
    version: Version,
    generation: Generation,
    cleared_for: Vec<merge::Ended>,
}

impl Held {
    fn is_empty(&self) -> bool {
        self.error.is_none()
            && self.outcome.findings.is_empty()
            && self.outcome.additional_reasons.is_empty()
            && self.outcome.verdict.is_none()
    }
}

/// What a merge changed, as sinks and streams see it.
#[derive(Clone, Debug)]
pub struct Change {
    /// Whom it is about.
    pub subject: SubjectKey,
    /// The API version of the object.
    pub api_version: Arc<str>,
    /// Who says so.
    pub classifier: Arc<Provenance>,
    /// What is different.
    pub delta: Delta,
}

/// What is held of all subjects.
#[derive(Debug, Default)]
pub struct Outcomes {
    table: DashMap<SubjectKey, Vec<Held>>,
}

impl Outcomes {
    /// Merges what a classifier said of a subject. `None` if that changes
    /// nothing, or came too late: the subject or the plugin set is newer.
    pub fn merge(
        &self,
        subject: &Subject,
        classifier: &Arc<Provenance>,
        generation: Generation,
        said: Result<Outcome, CallFailure>,
    ) -> Option<Change> {
        let mut delta = Delta::default();
        let entry = self.table.entry(subject.key.clone());
        let entry = entry.and_modify(|held| {
            if !held.iter().any(|it| it.classifier.name == classifier.name) {
                held.push(Held::new(subject, classifier));
            }
        });
        let mut all = match entry {
            Entry::Occupied(all) => all,
            Entry::Vacant(slot) => slot.insert_entry(vec![Held::new(subject, classifier)]),
        };
        if let Some(held) = all
            .get_mut()
            .iter_mut()
            .find(|it| it.classifier.name == classifier.name)
            && held.version <= subject.version
            && held.generation <= generation
        {
            held.version = subject.version;
            held.generation = generation;
            held.classifier = Arc::clone(classifier);
            held.api_version = Arc::clone(&subject.api_version);
            match said {
                Ok(outcome) => {
                    held.error = None;
                    held.ever_classified = true;
                    delta = merge::merge(held, outcome, subject);
                }
                // A failed call ends nothing: what was last known stays.
                Err(failure) => held.error = Some(failure),
            }
        }
        all.get_mut().retain(|it| !it.is_empty());
        if all.get().is_empty() {
            all.remove();
        }
        (!delta.is_empty()).then(|| Change {
            subject: subject.key.clone(),
            api_version: Arc::clone(&subject.api_version),
            classifier: Arc::clone(classifier),
            delta,
        })
    }

    /// Whether anything is held of a subject from a classifier.
    #[must_use]
    pub fn holds(&self, subject: &SubjectKey, classifier: &Provenance) -> bool {
        self.table
            .get(subject)
            .is_some_and(|it| it.iter().any(|it| it.classifier.name == classifier.name))
    }

    /// Notes that an Event's record is gone. Its additional reasons go with it,
    /// and so does a cleared finding once nothing of it is live. Findings that
    /// hold stay: that an Event expired says nothing about what it reported.
    pub fn event_gone(&self, subject: &SubjectKey, event: &EventRef) {
        self.table.remove_if_mut(subject, |_, all| {
            for held in all.iter_mut() {
                merge::event_gone(held, event);
            }
            all.retain(|it| !it.is_empty());
            all.is_empty()
        });
    }

    /// Gives what is held of a subject without a uid to the one that turned out
    /// to be it, and says what thereby ends under the old key.
    pub fn fold(&self, from: &SubjectKey, into: &SubjectKey) -> Vec<Change> {
        let Some((_, folded)) = self.table.remove(from) else {
            return Vec::new();
        };
        let changes = folded.iter().filter_map(|held| {
            let findings = held.outcome.findings.iter();
            let active = findings.filter(|it| it.status == Status::Active);
            let cleared: Vec<_> = active.map(|it| (it.clone(), EndReason::Folded)).collect();
            (!cleared.is_empty()).then(|| Change {
                subject: from.clone(),
                api_version: Arc::clone(&held.api_version),
                classifier: Arc::clone(&held.classifier),
                delta: Delta {
                    cleared,
                    ..Delta::default()
                },
            })
        });
        let changes = changes.collect();
        let mut all = self.table.entry(into.clone()).or_default();
        for held in folded {
            match all
                .iter_mut()
                .find(|it| it.classifier.name == held.classifier.name)
            {
                Some(known) => merge::fold(known, held),
                None => all.push(held),
            }
        }
        changes
    }

    /// How many subjects anything is held of.
    #[must_use]
    pub fn n_subjects(&self) -> usize {
        self.table.len()
    }

    /// All that is held, by object, uid and classifier: for the end of a run.
    #[must_use]
    pub fn sorted(&self) -> Vec<(SubjectKey, Held)> {
        let mut all: Vec<_> = self
            .table
            .iter()
            .flat_map(|it| {
                let key = it.key().clone();
                it.value()
                    .iter()
                    .map(|held| (key.clone(), held.clone()))
                    .collect::<Vec<_>>()
            })
            .collect();
        all.sort_by(|(one, a), (other, b)| {
            one.cmp(other)
                .then_with(|| a.classifier.name.cmp(&b.classifier.name))
        });
        all
    }
}

impl Held {
    fn new(subject: &Subject, classifier: &Arc<Provenance>) -> Self {
        Self {
            classifier: Arc::clone(classifier),
            api_version: Arc::clone(&subject.api_version),
            outcome: Outcome::default(),
            error: None,
            ever_classified: false,
            version: Version::default(),
            generation: Generation::default(),
            cleared_for: Vec::new(),
        }
    }
}

/// Puts evidence in order, newest first, each Event once, and keeps
/// [`EVIDENCE_MAX`].
fn newest_evidence(mut evidence: Vec<Evidence>) -> Vec<Evidence> {
    evidence
        .sort_by(|a, b| (Reverse(a.last_seen), &a.event).cmp(&(Reverse(b.last_seen), &b.event)));
    let mut newest: Vec<Evidence> = Vec::with_capacity(evidence.len().min(EVIDENCE_MAX));
    for it in evidence {
        if newest.len() == EVIDENCE_MAX {
            break;
        }
        if !newest.iter().any(|known| known.event == it.event) {
            newest.push(it);
        }
    }
    newest
}

#[cfg(test)]
mod tests;
