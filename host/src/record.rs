//! What is kept of a Kubernetes Event, and of what identifies it.
//!
//! The full Event never exists here: [`decode`] borrows from the bytes that
//! came in, and [`Record`] copies out of them what a classifier or a reader can
//! need, into one allocation. An Event that has no identity, or claims to regard
//! an object that its writer could not vouch for, becomes no record at all but a
//! [`Rejected`], which is counted.

use std::{fmt, sync::Arc};

pub mod decode;
mod event_ref;
mod key;
mod report;
mod uid;

use decode::{WireEvent, WireRef};
pub use event_ref::EventRef;
pub use key::{IDENTITY_MAX_BYTES, ObjectKey};
pub use report::Report;
pub use uid::{Uid, UidRef};
use uuid::{Uuid, fmt::Hyphenated};

use crate::{
    interner::{Interner, Repeated},
    text,
};

/// Milliseconds since the Unix epoch; 0 when unknown.
pub type UnixMs = u64;

/// How much of an Event's text is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caps {
    /// Bytes of a note, cut at a character boundary. The server bounds notes to
    /// 1,024 bytes only where `eventTime` is set; 1 MB has been seen accepted.
    pub note_bytes: usize,
    /// Bytes of any other text that is no identity: reason, action, controller,
    /// instance, field path, type, API version, resource version. At most
    /// [`FIELD_MAX_BYTES`].
    pub field_bytes: usize,
}

/// What [`Caps::field_bytes`] may be at most.
pub const FIELD_MAX_BYTES: usize = 4 << 10;

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
pub(crate) const CLUSTER_KINDS: [&str; 1] = ["Node"];

/// The texts that are a record's own, in the order in which they are stored. The
/// note comes behind the last of them.
#[derive(Clone, Copy)]
enum Own {
    Uid,
    Namespace,
    Name,
    ResourceVersion,
    RelatedName,
    RelatedUid,
}

const N_OWN: usize = Own::RelatedUid as usize + 1;

/// The texts that say what kind of news it is: few for a whole cluster.
#[derive(Clone, Copy)]
enum Sort {
    ObjectApiVersion,
    FieldPath,
    EventType,
    Reason,
    Action,
    RelatedApiVersion,
    RelatedKind,
    RelatedNamespace,
}

/// The texts that say whose news it is: as many as there are nodes. The name of a
/// Node is its uid.
#[derive(Clone, Copy)]
enum Source {
    Controller,
    Instance,
    ObjectUid,
}

/// What is kept of one Event. Its memory is a fixed part and one text; what Event
/// after Event repeats is held once for all of them ([`Interner`]).
///
/// Times are claims of whoever wrote the Event: they order what is read and
/// never decide what is kept.
#[derive(Clone, PartialEq, Eq)]
pub struct Record {
    text: Arc<str>,
    sort: Arc<Repeated>,
    source: Arc<Repeated>,
    /// Its own, and its object's: nil where it is none, but a text among the others.
    uids: [Uuid; 2],
    created: UnixMs,
    first_seen: UnixMs,
    last_seen: UnixMs,
    count: u32,
    /// Where each [`Own`] ends in `text`. None of them is longer than
    /// [`IDENTITY_MAX_BYTES`] or [`FIELD_MAX_BYTES`].
    ends: [u16; N_OWN],
}

impl Record {
    /// Pares an Event down, and says which object it regards.
    ///
    /// # Errors
    ///
    /// If the Event lacks an identity, or regards what its namespace has no say
    /// about ([`Rejected`]).
    pub fn pare_down(
        wire: &WireEvent<'_>,
        caps: Caps,
        interner: &Interner,
    ) -> Result<(ObjectKey, Self), Rejected> {
        Self::pare_down_where(wire, caps, interner, |kind| CLUSTER_KINDS.contains(&kind))
    }

    /// The same, where it is known which kinds are of the cluster's scope.
    ///
    /// # Errors
    ///
    /// Likewise.
    pub fn pare_down_where(
        wire: &WireEvent<'_>,
        caps: Caps,
        interner: &Interner,
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
        let field_bytes = caps.field_bytes.min(FIELD_MAX_BYTES);
        let field = |text| text::cut(text, field_bytes);
        let or_else = |it, other| if str::is_empty(it) { other } else { it };
        // An object that is merely related is text for a reader, not a key.
        let related = &wire.related;
        let sort = interner.intern(&[
            field(&object.api_version),
            field(&object.field_path),
            field(&wire.event_type),
            field(&wire.reason),
            field(&wire.action),
            field(&related.api_version),
            field(&related.kind),
            field(&related.namespace),
        ]);
        let [(uid, uid_text), (object_uid, object_uid_text)] =
            [&*meta.uid, &**object_uid].map(|it| match UidRef::of(it) {
                Uid::Uuid(it) => (it, ""),
                Uid::Text(it) => (Uuid::nil(), it),
            });
        let source = interner.intern(&[
            field(or_else(&wire.controller, &wire.source.component)),
            field(or_else(&wire.instance, &wire.source.host)),
            object_uid_text,
        ]);
        let own: [&str; N_OWN] = [
            uid_text,
            &meta.namespace,
            &meta.name,
            field(&meta.resource_version),
            field(&related.name),
            field(&related.uid),
        ];
        let mut ends = [0; N_OWN];
        let mut end = 0;
        for (idx, it) in own.iter().enumerate() {
            end += it.len();
            ends[idx] = u16::try_from(end).unwrap_or(u16::MAX);
        }
        let note = text::cut(&wire.note, caps.note_bytes);
        let mut text = String::with_capacity(end + note.len());
        own.into_iter()
            .chain([note])
            .for_each(|it| text.push_str(it));
        let text = text.into();

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
            text,
            sort,
            source,
            uids: [uid, object_uid],
            created,
            first_seen,
            last_seen,
            count,
            ends,
        };
        Ok((key, record))
    }

    fn own(&self, field: Own) -> &str {
        let idx = field as usize;
        let start = if idx == 0 { 0 } else { self.ends[idx - 1] };
        self.text
            .get(start.into()..self.ends[idx].into())
            .unwrap_or_default()
    }

    fn sort(&self, field: Sort) -> &str {
        self.sort.part(field as usize)
    }

    fn source(&self, field: Source) -> &str {
        self.source.part(field as usize)
    }

    /// The Event's own uid; empty when unknown.
    #[must_use]
    pub fn uid(&self) -> UidRef<'_> {
        uid_of(self.uids[0], self.own(Own::Uid))
    }

    /// The Event's own namespace.
    #[must_use]
    pub fn namespace(&self) -> &str {
        self.own(Own::Namespace)
    }

    /// The Event's own name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.own(Own::Name)
    }

    /// The Event's resource version; opaque.
    #[must_use]
    pub fn resource_version(&self) -> &str {
        self.own(Own::ResourceVersion)
    }

    /// The uid of the object that it regards; a Node's is its name. Empty when
    /// the Event does not say.
    #[must_use]
    pub fn object_uid(&self) -> UidRef<'_> {
        uid_of(self.uids[1], self.source(Source::ObjectUid))
    }

    /// The API version of the object that it regards, for example `v1`.
    #[must_use]
    pub fn object_api_version(&self) -> &str {
        self.sort(Sort::ObjectApiVersion)
    }

    /// Part of the object that it regards, for example `spec.containers{main}`.
    #[must_use]
    pub fn field_path(&self) -> &str {
        self.sort(Sort::FieldPath)
    }

    /// `Normal`, `Warning`, or what else its writer put there.
    #[must_use]
    pub fn event_type(&self) -> &str {
        self.sort(Sort::EventType)
    }

    /// For machines, for example `FailedScheduling`.
    #[must_use]
    pub fn reason(&self) -> &str {
        self.sort(Sort::Reason)
    }

    /// What the reporter did, for example `Binding`.
    #[must_use]
    pub fn action(&self) -> &str {
        self.sort(Sort::Action)
    }

    /// For people. At most [`Caps::note_bytes`] long.
    #[must_use]
    pub fn note(&self) -> &str {
        self.text
            .get(self.ends[N_OWN - 1].into()..)
            .unwrap_or_default()
    }

    /// Who reported it, for example `kubelet`.
    #[must_use]
    pub fn controller(&self) -> &str {
        self.source(Source::Controller)
    }

    /// Which of them, often the name of its node.
    #[must_use]
    pub fn instance(&self) -> &str {
        self.source(Source::Instance)
    }

    /// The second object that it names: API version, kind, namespace, name and
    /// uid, all empty when there is none.
    #[must_use]
    pub fn related(&self) -> [&str; 5] {
        [
            self.sort(Sort::RelatedApiVersion),
            self.sort(Sort::RelatedKind),
            self.sort(Sort::RelatedNamespace),
            self.own(Own::RelatedName),
            self.own(Own::RelatedUid),
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

    /// Bytes of all its texts, as they are written.
    #[must_use]
    pub fn n_text_bytes(&self) -> usize {
        let uuids = self.uids.iter().filter(|it| !it.is_nil());
        let shared = self.sort.n_text_bytes() + self.source.n_text_bytes();
        self.text.len() + shared + Hyphenated::LENGTH * uuids.count()
    }

    /// What its texts cost in memory, those aside that it shares.
    #[must_use]
    pub fn n_own_bytes(&self) -> usize {
        // The counts of the text's users stand before it.
        16 + self.text.len() + self.sort.n_own_bytes() + self.source.n_own_bytes()
    }

    /// A reference that outlives the record, and shares its text.
    #[must_use]
    pub fn event_ref(&self) -> EventRef {
        EventRef {
            text: Arc::clone(&self.text),
            uid: self.uids[0],
            ends: [Own::Uid, Own::Namespace, Own::Name].map(|it| self.ends[it as usize]),
            note: self.ends[N_OWN - 1],
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

/// A uid as it is held.
fn uid_of(uuid: Uuid, text: &str) -> UidRef<'_> {
    if uuid.is_nil() {
        Uid::Text(text)
    } else {
        Uid::Uuid(uuid)
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
