//! What a plugin says of itself, checked.
//!
//! Interests are evaluated here, natively, before anything crosses to the guest:
//! an event that nobody is interested in costs nothing.

use std::collections::BTreeSet;

use super::bindings::described;
use crate::{
    pods::Pod,
    record::{ObjectKey, Record},
    text::Visible,
};

/// What a classifier is and wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// Its name: lower-case letters, digits and `-`.
    pub name: String,
    /// Its version, as it says.
    pub version: String,
    /// One line for a person.
    pub summary: String,
    /// What it wants to be asked about. Never empty.
    pub interests: Vec<Interest>,
    /// Whether it wants failed subjects without an event of interest too.
    pub failures: bool,
    /// What it reads of what is optional.
    pub reads: Reads,
    /// JSON Schema of its settings.
    pub settings_schema: Option<String>,
    /// Every category that a finding of it may carry.
    pub categories: BTreeSet<String>,
    /// Every code that a finding or a verdict of it may carry.
    pub codes: BTreeSet<String>,
}

/// An event is of interest when it meets every field. A field is met by any of
/// its entries; an empty field is met by all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interest {
    /// Kinds of the object that it regards.
    pub kinds: Vec<String>,
    /// Its type.
    pub event_types: Vec<String>,
    /// Its reason.
    pub reasons: Vec<String>,
    /// What its reason may start with.
    pub reason_prefixes: Vec<String>,
    /// Its reporting controller.
    pub controllers: Vec<String>,
    /// What its note may contain.
    pub note_contains: Vec<String>,
}

/// What of an event interests are told by, looked up once for all of them.
struct Asked<'a> {
    kind: &'a str,
    event_type: &'a str,
    reason: &'a str,
    controller: &'a str,
    note: &'a str,
}

impl Interest {
    /// What is told by a short text comes first: most events fail one of these.
    fn is_met_by(&self, it: &Asked<'_>) -> bool {
        let equal =
            |field: &[String], it: &str| field.is_empty() || field.iter().any(|want| want == it);
        let any = |field: &[String], is_met: &dyn Fn(&str) -> bool| {
            field.is_empty() || field.iter().any(|want| is_met(want))
        };
        equal(&self.reasons, it.reason)
            && equal(&self.kinds, it.kind)
            && equal(&self.event_types, it.event_type)
            && equal(&self.controllers, it.controller)
            && any(&self.reason_prefixes, &|want| it.reason.starts_with(want))
            && any(&self.note_contains, &|want| it.note.contains(want))
    }
}

impl Description {
    /// Whether the event meets every field of any of its interests.
    #[must_use]
    pub fn wants(&self, object: &ObjectKey, record: &Record) -> bool {
        let asked = Asked {
            kind: object.kind(),
            event_type: record.event_type(),
            reason: record.reason(),
            controller: record.controller(),
            note: record.note(),
        };
        self.interests.iter().any(|it| it.is_met_by(&asked))
    }
}

/// What of the optional fields crosses.
#[expect(
    clippy::struct_excessive_bools,
    reason = "one for each field that may cross"
)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reads {
    names: BTreeSet<String>,
    pub(super) uid: bool,
    pub(super) name: bool,
    pub(super) action: bool,
    pub(super) field_path: bool,
    pub(super) controller: bool,
    pub(super) instance: bool,
    pub(super) related: bool,
    pub(super) about: bool,
    pub(super) node: bool,
    pub(super) phase: bool,
    pub(super) owner: bool,
    pub(super) labels: bool,
}

/// Every name that `reads` may hold. The records of the contract cannot grow
/// within 0.1, so neither can this.
const READABLE: [&str; 14] = [
    "event.uid",
    "event.name",
    "event.action",
    "event.field-path",
    "event.controller",
    "event.instance",
    "event.about",
    "event.related",
    "event.attributes",
    "subject.node",
    "subject.phase",
    "subject.owner",
    "subject.labels",
    "subject.attributes",
];

impl Reads {
    fn new(names: Vec<String>) -> Result<Self, String> {
        let unknown = names
            .iter()
            .find(|it| !READABLE.contains(&&***it) && !it.starts_with("subject.labels/"));
        if let Some(unknown) = unknown {
            let known = READABLE.join(", ");
            return Err(format!(
                "reads names `{}`, which nothing is called; write one of {known} or subject.labels/KEY",
                Visible(unknown)
            ));
        }
        let names: BTreeSet<_> = names.into_iter().collect();
        let reads = |name| names.is_empty() || names.contains(name);
        Ok(Self {
            uid: reads("event.uid"),
            name: reads("event.name"),
            action: reads("event.action"),
            field_path: reads("event.field-path"),
            controller: reads("event.controller"),
            instance: reads("event.instance"),
            related: reads("event.related"),
            about: reads("event.about"),
            node: reads("subject.node"),
            phase: reads("subject.phase"),
            owner: reads("subject.owner"),
            labels: reads("subject.labels"),
            names,
        })
    }

    /// Whether it is given events of other objects.
    #[must_use]
    pub fn surroundings(&self) -> bool {
        self.about
    }

    /// Whether a pod is another one now for who reads this: its failure and what an Event's
    /// claims are held against are for all.
    #[must_use]
    pub fn differs(&self, before: Option<&Pod>, now: &Pod) -> bool {
        before.is_none_or(|before| {
            before.failure != now.failure
                || before.node != now.node
                || (self.phase && before.phase != now.phase)
                || ((self.owner || self.about) && before.owner != now.owner)
                || ((self.labels || !self.names.is_empty()) && before.labels != now.labels)
        })
    }

    /// Whether it is given this label.
    pub(super) fn label(&self, key: &str) -> bool {
        let is_named = |it: &str| it.strip_prefix("subject.labels/") == Some(key);
        self.labels || self.names().any(is_named)
    }

    /// The names, as the plugin gave them; none when it reads all.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }
}

/// A name in outcomes, metrics and configuration: a DNS label (RFC 1123) that
/// begins with a letter.
const NAME_MAX_BYTES: usize = 63;

/// Bytes of any other text of a description.
const TEXT_MAX_BYTES: usize = 4 << 10;

/// Bytes of a settings schema.
const SCHEMA_MAX_BYTES: usize = 256 << 10;

/// Entries of any list of a description.
const LIST_MAX: usize = 1_000;

/// Entries of the lists of all interests together. Each Event is held against them by the host itself, where no
/// fuel is spent: 100,000 texts to look for took 5 ms an Event.
const ENTRIES_MAX: usize = 1_000;

impl TryFrom<described::Description> for Description {
    type Error = String;

    /// What is wrong with it is for the plugin's author: what, and what to write
    /// instead.
    fn try_from(raw: described::Description) -> Result<Self, String> {
        let described::Description {
            name,
            version,
            summary,
            interests,
            failures,
            reads,
            settings_schema,
            categories,
            codes,
            attributes: _,
        } = raw;
        if !is_name(&name) {
            return Err(format!(
                "the name `{}` must be 1 to {NAME_MAX_BYTES} lower-case letters, digits and `-`, \
                 beginning with a letter",
                Visible(crate::text::cut(&name, NAME_MAX_BYTES)),
            ));
        }
        if interests.is_empty() {
            return Err(
                "it is interested in nothing; declare at least one interest (one without \
                        any field means every event)"
                    .to_owned(),
            );
        }
        if SCHEMA_MAX_BYTES < settings_schema.as_ref().map_or(0, String::len) {
            return Err(format!("settings-schema is over {SCHEMA_MAX_BYTES} bytes"));
        }
        let interests = interests.into_iter().map(|it| Interest {
            kinds: it.kinds,
            event_types: it.event_types,
            reasons: it.reasons,
            reason_prefixes: it.reason_prefixes,
            controllers: it.controllers,
            note_contains: it.note_contains,
        });
        let interests: Vec<_> = interests.collect();
        let lists = interests.iter().flat_map(|it| {
            [
                &it.kinds,
                &it.event_types,
                &it.reasons,
                &it.reason_prefixes,
                &it.controllers,
                &it.note_contains,
            ]
        });
        let n_entries: usize = lists.clone().map(Vec::len).sum();
        if ENTRIES_MAX < n_entries {
            return Err(format!(
                "its interests have {n_entries} entries in all, the most is {ENTRIES_MAX}; a prefix \
                 says much with one"
            ));
        }
        for list in lists.chain([&categories, &codes, &reads]) {
            if LIST_MAX < list.len() {
                return Err(format!(
                    "a list has {} entries, the most is {LIST_MAX}",
                    list.len()
                ));
            }
            if list.iter().any(|it| TEXT_MAX_BYTES < it.len()) {
                return Err(format!("an entry of a list is over {TEXT_MAX_BYTES} bytes"));
            }
        }
        if LIST_MAX < interests.len() {
            return Err(format!(
                "{} interests, the most is {LIST_MAX}",
                interests.len()
            ));
        }
        if TEXT_MAX_BYTES < version.len().max(summary.len()) {
            return Err(format!("version or summary is over {TEXT_MAX_BYTES} bytes"));
        }
        for (what, list) in [("categories", &categories), ("codes", &codes)] {
            if list.iter().any(String::is_empty) {
                return Err(format!("{what} holds an empty one"));
            }
        }
        Ok(Self {
            name,
            version: Visible(&version).to_string(),
            summary: Visible(&summary).to_string(),
            interests,
            failures,
            reads: Reads::new(reads)?,
            settings_schema,
            categories: categories.into_iter().collect(),
            codes: codes.into_iter().collect(),
        })
    }
}

/// Whether a plugin may call itself so.
pub(crate) fn is_name(name: &str) -> bool {
    name.len() <= NAME_MAX_BYTES
        && name.starts_with(|it: char| it.is_ascii_lowercase())
        && name
            .chars()
            .all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '-')
}
