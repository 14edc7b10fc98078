//! A subject as the contract has it, borrowed from its records.
//!
//! Only what the plugin's description says it reads is handed over: a text costs
//! some 50 ns to carry across, one that is none 12.

use std::borrow::Cow;

use super::{bindings::types, description::Reads};
use crate::{pods::Failure, record::Record, subject::Subject};

/// The uids of a subject as they are written.
pub(super) struct Uids<'a> {
    own: Cow<'a, str>,
    /// Of its events; empty ones where nobody reads them.
    of_events: Vec<Cow<'a, str>>,
}

impl<'a> Uids<'a> {
    pub(super) fn of(it: &'a Subject, reads: &Reads) -> Self {
        let of_event = |it: &'a Record| {
            if reads.uid {
                it.uid().text()
            } else {
                Cow::default()
            }
        };
        Self {
            own: it.key.uid.as_ref().text(),
            of_events: it.events.iter().map(of_event).collect(),
        }
    }
}

/// The events of a subject for the guest.
pub(super) fn events<'a>(
    of: &'a Subject,
    uids: &'a Uids<'a>,
    reads: &Reads,
) -> impl Iterator<Item = types::Event<'a>> {
    let events = of.events.iter().zip(&uids.of_events);
    events.map(|(it, uid)| event(it, uid, of, reads))
}

/// A subject for the guest, with its events.
///
/// What only a watch on pods could tell (node, phase, owner, labels) is none.
pub(super) fn subject<'a>(
    it: &'a Subject,
    uids: &'a Uids<'a>,
    events: &'a [types::Event<'a>],
) -> types::Subject<'a> {
    types::Subject {
        object: types::ObjectRef {
            api_version: &it.api_version,
            kind: it.key.object.kind(),
            namespace: it.key.object.namespace(),
            name: it.key.object.name(),
            uid: &uids.own,
        },
        node: None,
        phase: None,
        owner: None,
        labels: &[],
        failure: it.failure.as_ref().map(failure),
        events,
        attributes: &[],
    }
}

fn event<'a>(
    it: &'a Record,
    own_uid: &'a str,
    subject: &Subject,
    reads: &Reads,
) -> types::Event<'a> {
    let known = |read: bool, text: &'a str| (read && !text.is_empty()).then_some(text);
    let [api_version, kind, namespace, name, uid] = it.related();
    let related = types::ObjectRef {
        api_version,
        kind,
        namespace,
        name,
        uid,
    };
    types::Event {
        event_type: it.event_type(),
        reason: it.reason(),
        note: it.note(),
        uid: known(reads.uid, own_uid),
        name: known(reads.name, it.name()),
        action: known(reads.action, it.action()),
        field_path: known(reads.field_path, it.field_path()),
        controller: known(reads.controller, it.controller()),
        instance: known(reads.instance, it.instance()),
        about: None,
        related: (reads.related && !kind.is_empty()).then_some(related),
        count: it.count(),
        created: it.created(),
        first_seen: it.first_seen(),
        last_seen: it.last_seen(),
        trust: types::Trust {
            uid: match (it.object_uid(), subject.key.uid.as_ref()) {
                (_, known) if known.is_empty() => types::Agreement::Unknown,
                (claimed, _) if claimed.is_empty() => types::Agreement::Absent,
                (claimed, known) if claimed == known => types::Agreement::Same,
                _ => types::Agreement::Different,
            },
            // What runs where is known only to who watches pods.
            node: types::Agreement::Unknown,
        },
        attributes: &[],
    }
}

fn failure(it: &Failure) -> types::Failure<'_> {
    types::Failure {
        code: &it.code,
        message: &it.message,
        blame: types::Blame::Unknown,
        permanent: false,
        at: it.at,
        attributes: &[],
    }
}
