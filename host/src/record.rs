//! What is kept of a Kubernetes Event, and of what identifies it.
//!
//! The full Event never exists here: [`decode`] borrows from the bytes that
//! came in, and [`Record`] copies out of them what a classifier or a reader can
//! need, into one allocation. An Event that has no identity, or claims to regard
//! an object that its writer could not vouch for, becomes no record at all but a
//! [`Rejected`], which is counted.

use std::{cmp::Ordering, fmt, sync::Arc};

pub mod decode;
mod key;

use decode::{WireEvent, WireRef};
pub use key::{IDENTITY_MAX_BYTES, ObjectKey};

use crate::text;

/// Milliseconds since the Unix epoch; 0 when unknown.
pub type UnixMs = u64;

/// Refers to an Event after its record may be gone.
///
/// It shares its text with the record that it was made of, or with nobody
/// ([`EventRef::detached`]).
#[derive(Clone)]
pub struct EventRef {
    /// Begins with uid, namespace and name.
    text: Arc<str>,
    ends: [u16; 3],
}

impl EventRef {
    /// Namespace of the Event itself.
    #[must_use]
    pub fn namespace(&self) -> &str {
        self.part(self.ends[0], self.ends[1])
    }

    /// Name of the Event itself.
    #[must_use]
    pub fn name(&self) -> &str {
        self.part(self.ends[1], self.ends[2])
    }

    /// Its uid, empty when unknown.
    #[must_use]
    pub fn uid(&self) -> &str {
        self.part(0, self.ends[0])
    }

    fn part(&self, start: u16, end: u16) -> &str {
        self.text.get(start.into()..end.into()).unwrap_or_default()
    }

    /// The same with a text of its own, for who holds it longer than the record
    /// and would hold the note with it.
    #[must_use]
    pub fn detached(&self) -> Self {
        Self {
            text: self.part(0, self.ends[2]).into(),
            ends: self.ends,
        }
    }

    fn parts(&self) -> (&str, &str, &str) {
        (self.namespace(), self.name(), self.uid())
    }
}

impl PartialEq for EventRef {
    fn eq(&self, other: &Self) -> bool {
        self.parts() == other.parts()
    }
}

impl Eq for EventRef {}

impl PartialOrd for EventRef {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for EventRef {
    fn cmp(&self, other: &Self) -> Ordering {
        self.parts().cmp(&other.parts())
    }
}

impl fmt::Debug for EventRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parts().fmt(f)
    }
}

/// How much of an Event's text is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caps {
    /// Bytes of a note, cut at a character boundary. The server bounds notes to
    /// 1,024 bytes only where `eventTime` is set; 1 MB has been seen accepted.
    pub note_bytes: usize,
    /// Bytes of any other text that is no identity: reason, action, controller,
    /// instance, field path, type, API version, resource version.
    pub field_bytes: usize,
}

impl Default for Caps {
    fn default() -> Self {
        Self {
            note_bytes: 2 << 10,
            field_bytes: 256,
        }
    }
}

/// Why an Event became no record. Each is the value of a counter's label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
pub enum Rejected {
    /// It has no name of its own.
    #[error("an Event without a name of its own")]
    NoName,
    /// It regards no object: the object's kind or name is empty.
    #[error("an Event that regards no object: the object's kind or name is empty")]
    NoObject,
    /// A namespace, kind, name or uid is longer than [`IDENTITY_MAX_BYTES`].
    #[error("an Event with a namespace, kind, name or uid of over {IDENTITY_MAX_BYTES} bytes")]
    IdentityTooLong,
    /// It regards an object in another namespace than its own. The server
    /// accepts that where `eventTime` is set, so that whoever may write Events
    /// in one namespace could speak about every other.
    #[error("forged: it regards an object in another namespace than its own")]
    ForgedNamespace,
    /// It regards an object without a namespace, or of a kind of the cluster's
    /// scope, and is not in one of the namespaces where such Events are written;
    /// or it regards a Pod without a namespace.
    #[error(
        "forged: it regards an object of the cluster's scope from a namespace where such Events \
         are not written, or a Pod without a namespace"
    )]
    ForgedScope,
}

impl Rejected {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::NoName,
        Self::NoObject,
        Self::IdentityTooLong,
        Self::ForgedNamespace,
        Self::ForgedScope,
    ];

    /// The label value.
    #[must_use]
    pub fn as_label(self) -> &'static str {
        match self {
            Self::NoName => "no-name",
            Self::NoObject => "no-object",
            Self::IdentityTooLong => "identity-too-long",
            Self::ForgedNamespace => "forged-namespace",
            Self::ForgedScope => "forged-scope",
        }
    }
}

/// Where Events about objects without a namespace are written: `default` by the
/// kubelet and the node controller, `kube-system` by some controllers.
const CLUSTER_EVENT_NAMESPACES: [&str; 2] = ["default", "kube-system"];

/// Kinds known to be of the cluster's scope.
const CLUSTER_KINDS: [&str; 1] = ["Node"];

/// The text fields of a record, in the order in which they are stored.
#[derive(Clone, Copy)]
#[expect(
    clippy::enum_variant_names,
    reason = "`fieldPath` is Kubernetes' name for it"
)]
enum Field {
    Uid,
    Namespace,
    Name,
    ResourceVersion,
    ObjectUid,
    ObjectApiVersion,
    FieldPath,
    EventType,
    Reason,
    Action,
    Note,
    Controller,
    Instance,
    RelatedApiVersion,
    RelatedKind,
    RelatedNamespace,
    RelatedName,
    RelatedUid,
}

const N_FIELDS: usize = Field::RelatedUid as usize + 1;

/// What is kept of one Event. Its memory is one shared text and a fixed part.
///
/// Times are claims of whoever wrote the Event: they order what is read and
/// never decide what is kept.
#[derive(Clone, PartialEq, Eq)]
pub struct Record {
    text: Arc<str>,
    /// Where each [`Field`] ends in `text`.
    ends: [u32; N_FIELDS],
    count: u32,
    created: UnixMs,
    first_seen: UnixMs,
    last_seen: UnixMs,
}

impl Record {
    /// Pares an Event down, and says which object it regards.
    ///
    /// # Errors
    ///
    /// If the Event lacks an identity, or regards what its namespace has no say
    /// about ([`Rejected`]).
    pub fn pare_down(wire: &WireEvent<'_>, caps: Caps) -> Result<(ObjectKey, Self), Rejected> {
        Self::pare_down_where(wire, caps, |kind| CLUSTER_KINDS.contains(&kind))
    }

    /// The same, where it is known which kinds are of the cluster's scope.
    ///
    /// # Errors
    ///
    /// Likewise.
    pub fn pare_down_where(
        wire: &WireEvent<'_>,
        caps: Caps,
        is_cluster_scoped: impl Fn(&str) -> bool,
    ) -> Result<(ObjectKey, Self), Rejected> {
        let (meta, object) = (&wire.metadata, &wire.regarding);
        if meta.name.is_empty() {
            return Err(Rejected::NoName);
        }
        if object.kind.is_empty() || object.name.is_empty() {
            return Err(Rejected::NoObject);
        }
        let identities = [&meta.name, &meta.namespace, &meta.uid, &object.uid];
        if identities.iter().any(|it| IDENTITY_MAX_BYTES < it.len()) {
            return Err(Rejected::IdentityTooLong);
        }
        let cluster_scoped = is_cluster_scoped(&object.kind);
        check_not_forged(&meta.namespace, object, cluster_scoped)?;
        let namespace = if cluster_scoped {
            ""
        } else {
            &object.namespace
        };
        let key = ObjectKey::new(namespace, &object.kind, &object.name)
            .ok_or(Rejected::IdentityTooLong)?;

        // A Node has no other identity in Events: the kubelet writes the Node's
        // name as the uid, other producers the uid proper, or none.
        let object_uid = if &*object.kind == "Node" {
            &object.name
        } else {
            &object.uid
        };
        let field = |text| text::cut(text, caps.field_bytes);
        let or_else = |it, other| if str::is_empty(it) { other } else { it };
        // An object that is merely related is text for a reader, not a key.
        let related = &wire.related;
        let fields: [&str; N_FIELDS] = [
            &meta.uid,
            &meta.namespace,
            &meta.name,
            field(&meta.resource_version),
            object_uid,
            field(&object.api_version),
            field(&object.field_path),
            field(&wire.event_type),
            field(&wire.reason),
            field(&wire.action),
            text::cut(&wire.note, caps.note_bytes),
            field(or_else(&wire.controller, &wire.source.component)),
            field(or_else(&wire.instance, &wire.source.host)),
            field(&related.api_version),
            field(&related.kind),
            field(&related.namespace),
            field(&related.name),
            field(&related.uid),
        ];
        let mut ends = [0; N_FIELDS];
        let mut end = 0;
        for (idx, it) in fields.iter().enumerate() {
            end += it.len();
            ends[idx] = u32::try_from(end).unwrap_or(u32::MAX);
        }

        let claimed_last = wire
            .series
            .last_observed_time
            .max(wire.last_timestamp)
            .max(wire.event_time);
        let last_seen = first_known([claimed_last, wire.first_timestamp, meta.creation_timestamp]);
        let first_seen = first_known([
            wire.first_timestamp,
            wire.event_time,
            meta.creation_timestamp,
            last_seen,
        ])
        .min(last_seen);
        let created = first_known([meta.creation_timestamp, first_seen]);
        let count = [wire.series.count, wire.count]
            .into_iter()
            .find(|it| 0 < *it)
            .unwrap_or(1);
        let record = Self {
            text: fields.concat().into(),
            ends,
            count,
            created,
            first_seen,
            last_seen,
        };
        Ok((key, record))
    }

    fn field(&self, field: Field) -> &str {
        let idx = field as usize;
        let start = if idx == 0 { 0 } else { self.ends[idx - 1] };
        self.text
            .get(start as usize..self.ends[idx] as usize)
            .unwrap_or_default()
    }

    /// The Event's own uid; empty when unknown.
    #[must_use]
    pub fn uid(&self) -> &str {
        self.field(Field::Uid)
    }

    /// The Event's own namespace.
    #[must_use]
    pub fn namespace(&self) -> &str {
        self.field(Field::Namespace)
    }

    /// The Event's own name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.field(Field::Name)
    }

    /// The Event's resource version; opaque.
    #[must_use]
    pub fn resource_version(&self) -> &str {
        self.field(Field::ResourceVersion)
    }

    /// The uid of the object that it regards; a Node's is its name. Empty when
    /// the Event does not say.
    #[must_use]
    pub fn object_uid(&self) -> &str {
        self.field(Field::ObjectUid)
    }

    /// The API version of the object that it regards, for example `v1`.
    #[must_use]
    pub fn object_api_version(&self) -> &str {
        self.field(Field::ObjectApiVersion)
    }

    /// Part of the object that it regards, for example `spec.containers{main}`.
    #[must_use]
    pub fn field_path(&self) -> &str {
        self.field(Field::FieldPath)
    }

    /// `Normal`, `Warning`, or what else its writer put there.
    #[must_use]
    pub fn event_type(&self) -> &str {
        self.field(Field::EventType)
    }

    /// For machines, for example `FailedScheduling`.
    #[must_use]
    pub fn reason(&self) -> &str {
        self.field(Field::Reason)
    }

    /// What the reporter did, for example `Binding`.
    #[must_use]
    pub fn action(&self) -> &str {
        self.field(Field::Action)
    }

    /// For people. At most [`Caps::note_bytes`] long.
    #[must_use]
    pub fn note(&self) -> &str {
        self.field(Field::Note)
    }

    /// Who reported it, for example `kubelet`.
    #[must_use]
    pub fn controller(&self) -> &str {
        self.field(Field::Controller)
    }

    /// Which of them, often the name of its node.
    #[must_use]
    pub fn instance(&self) -> &str {
        self.field(Field::Instance)
    }

    /// The second object that it names: API version, kind, namespace, name and
    /// uid, all empty when there is none.
    #[must_use]
    pub fn related(&self) -> [&str; 5] {
        [
            self.field(Field::RelatedApiVersion),
            self.field(Field::RelatedKind),
            self.field(Field::RelatedNamespace),
            self.field(Field::RelatedName),
            self.field(Field::RelatedUid),
        ]
    }

    /// How often it was seen. At least 1.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// When the Event object was created.
    #[must_use]
    pub fn created(&self) -> UnixMs {
        self.created
    }

    /// When it was first seen, as its reporter claims.
    #[must_use]
    pub fn first_seen(&self) -> UnixMs {
        self.first_seen
    }

    /// When it was last seen, as its reporter claims.
    #[must_use]
    pub fn last_seen(&self) -> UnixMs {
        self.last_seen
    }

    /// Takes a time that is later than now for now: no one has seen anything
    /// later. Says whether there was one.
    pub fn clamp(&mut self, now: UnixMs) -> bool {
        let times = [&mut self.created, &mut self.first_seen, &mut self.last_seen];
        let mut is_clamped = false;
        for it in times {
            is_clamped |= now < *it;
            *it = (*it).min(now);
        }
        is_clamped
    }

    /// Bytes of text that it holds.
    #[must_use]
    pub fn n_text_bytes(&self) -> usize {
        self.text.len()
    }

    /// A reference that outlives the record, and shares its text.
    #[must_use]
    pub fn event_ref(&self) -> EventRef {
        // No part is longer than `IDENTITY_MAX_BYTES`.
        let ends = [Field::Uid, Field::Namespace, Field::Name];
        EventRef {
            text: Arc::clone(&self.text),
            ends: ends.map(|it| u16::try_from(self.ends[it as usize]).unwrap_or(u16::MAX)),
        }
    }

    /// This version of an Event, seen after `earlier` of the same Event: when it
    /// was created stays, once it is known, it was last seen only ever later, the
    /// rest is new.
    #[must_use]
    pub fn after(mut self, earlier: &Self) -> Self {
        self.created = first_known([earlier.created, self.created]);
        let mut first_seen = [self.first_seen, earlier.first_seen];
        first_seen.sort_unstable();
        self.first_seen = first_known(first_seen);
        self.last_seen = self.last_seen.max(earlier.last_seen);
        self
    }
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Record")
            .field("name", &self.name())
            .field("reason", &self.reason())
            .field("note", &self.note())
            .field("count", &self.count)
            .field("last_seen", &self.last_seen)
            .finish_non_exhaustive()
    }
}

fn check_not_forged(
    event_namespace: &str,
    object: &WireRef<'_>,
    cluster_scoped: bool,
) -> Result<(), Rejected> {
    let (kind, namespace) = (&*object.kind, &*object.namespace);
    if !namespace.is_empty() && namespace != event_namespace {
        return Err(Rejected::ForgedNamespace);
    }
    if kind == "Pod" && namespace.is_empty() {
        return Err(Rejected::ForgedScope);
    }
    if (cluster_scoped || namespace.is_empty())
        && !CLUSTER_EVENT_NAMESPACES.contains(&event_namespace)
    {
        return Err(Rejected::ForgedScope);
    }
    Ok(())
}

/// The first time that is known, else 0.
fn first_known<const N: usize>(times: [UnixMs; N]) -> UnixMs {
    times.into_iter().find(|it| *it != 0).unwrap_or(0)
}

#[cfg(test)]
mod tests;
