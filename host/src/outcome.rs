//! What a classifier says of a subject, and what is held of all that was said.
//!
//! These are the contract's words in the host's own types, so that nothing but
//! the sandbox knows how they crossed. What is held is in [`Outcomes`], and how a
//! new outcome meets it is the one thing in here that is not plain: see `merge`.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

use crate::record::{EventRef, Record, Report, UnixMs};

mod attributes;
mod change;
mod merge;
mod table;

pub use attributes::Attributes;
pub use change::Change;
pub use merge::Delta;
pub use table::{Dropped, Generation, Held, Outcomes, RETAINED_FOR};

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
        /// Nothing that it rests on was live for a day.
        Expired = "expired",
        /// Its object was deleted some time ago.
        ObjectGone = "object-gone",
        /// More is held than may be, and its namespace holds most.
        OverBytes = "over-bytes",
        /// Its classifier was removed.
        ClassifierRemoved = "classifier-removed",
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

/// An Event that a finding rests on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// Which one.
    pub event: EventRef,
    /// When it was last seen, as its reporter claims.
    pub last_seen: UnixMs,
    /// Whether its record is still in the store.
    pub live: bool,
    /// Whether it regards the object of the finding, and not its node or its owner.
    pub is_own: bool,
}

impl Identity {
    fn n_bytes(&self) -> usize {
        self.category.len() + self.code.len() + self.key.len()
    }
}

impl Evidence {
    /// With the text that it has of its own ([`EventRef::detached`]).
    fn n_bytes(&self) -> usize {
        size_of::<Self>() + 16 + self.event.n_text_bytes()
    }

    /// A live record as evidence.
    #[must_use]
    pub fn of(record: &Record, is_own: bool) -> Self {
        Self {
            // A finding outlives its Events, and what they say with them.
            event: record.event_ref().detached(),
            last_seen: record.last_seen(),
            live: true,
            is_own,
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

    fn n_bytes(&self) -> usize {
        let evidence = self.evidence.iter().map(Evidence::n_bytes);
        size_of::<Self>()
            + self.identity.n_bytes()
            + self.message.len()
            + self.attributes.n_bytes()
            + evidence.sum::<usize>()
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
#[derive(Clone, Debug)]
pub struct AdditionalReason {
    /// Where it is not the note of its Event, whose text it shares.
    own_text: Option<Box<str>>,
    /// When it happened.
    pub at: UnixMs,
    /// The Event that it tells of.
    pub event: EventRef,
    /// What that Event says beside its note.
    pub report: Report,
    /// What the plugin has to say beside the line.
    pub attributes: Attributes,
}

impl AdditionalReason {
    /// A line that tells of this Event.
    #[must_use]
    pub fn new(text: Box<str>, at: UnixMs, event: &Record, attributes: Attributes) -> Self {
        Self {
            own_text: (*text != *event.note()).then_some(text),
            at,
            event: event.event_ref(),
            report: event.report(),
            attributes,
        }
    }

    /// The line.
    #[must_use]
    pub fn text(&self) -> &str {
        self.own_text
            .as_deref()
            .unwrap_or_else(|| self.event.note())
    }
}

impl PartialEq for AdditionalReason {
    /// Of one Event with two notes it may tell two things.
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
            && (self.at, &self.event, &self.report, &self.attributes)
                == (other.at, &other.event, &other.report, &other.attributes)
    }
}

impl Eq for AdditionalReason {}

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
    /// A change tells of most of them once more.
    pub additional_reasons: Vec<Arc<AdditionalReason>>,
    /// For a subject with a failure only.
    pub verdict: Option<Box<Verdict>>,
    /// What a later host may understand.
    pub attributes: Attributes,
}

impl AdditionalReason {
    /// Without the Event's text, which is its record's.
    fn n_bytes(&self) -> usize {
        let own_text = self.own_text.as_ref().map_or(0, |it| it.len());
        size_of::<Self>() + 24 + own_text + self.attributes.n_bytes()
    }
}

impl Verdict {
    fn n_bytes(&self) -> usize {
        let avoid = self
            .avoid
            .iter()
            .map(|(key, value)| size_of::<(Box<str>, Box<str>)>() + key.len() + value.len());
        size_of::<Self>()
            + self.failure_code.len()
            + self.code.len()
            + self.message.len()
            + avoid.sum::<usize>()
            + self.finding.as_ref().map_or(0, Identity::n_bytes)
            + self.attributes.n_bytes()
    }
}

impl Outcome {
    /// What it costs in memory beside itself, about.
    fn n_bytes(&self) -> usize {
        let findings = self.findings.iter().map(Finding::n_bytes);
        let reasons = self.additional_reasons.iter().map(|it| it.n_bytes());
        findings.sum::<usize>()
            + reasons.sum::<usize>()
            + self.verdict.as_deref().map_or(0, Verdict::n_bytes)
            + self.attributes.n_bytes()
    }
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

#[cfg(test)]
mod tests;
