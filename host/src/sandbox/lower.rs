//! A subject as the contract has it, borrowed from its records.
//!
//! Only what the plugin's description says it reads is handed over: a text costs
//! some 50 ns to carry across, one that is none 12.

use super::{bindings::types, description::Reads};
use crate::{
    record::Record,
    subject::{Failure, Subject},
};

/// A subject for the guest, with its events.
///
/// What only a watch on pods could tell (node, phase, owner, labels) is none.
pub(super) fn subject<'a>(it: &'a Subject, events: &'a [types::Event<'a>]) -> types::Subject<'a> {
    types::Subject {
        object: types::ObjectRef {
            api_version: &it.api_version,
            kind: it.key.object.kind(),
            namespace: it.key.object.namespace(),
            name: it.key.object.name(),
            uid: &it.key.uid,
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

/// An event for the guest.
pub(super) fn event<'a>(it: &'a Record, subject: &Subject, reads: &Reads) -> types::Event<'a> {
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
        uid: known(reads.uid, it.uid()),
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
            uid: match (it.object_uid(), &*subject.key.uid) {
                (_, "") => types::Agreement::Unknown,
                ("", _) => types::Agreement::Absent,
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
