//! A subject as the contract has it, borrowed from its records.
//!
//! Only what the plugin's description says it reads is handed over: a text costs
//! some 50 ns to carry across, one that is none 12.

use std::borrow::Cow;

use super::{bindings::types, description::Reads};
use crate::{
    pods::{Failure, Phase},
    record::{ObjectKey, Record},
    subject::{Agreement, Subject},
};

/// The uids of a subject as they are written.
pub(super) struct Uids<'a> {
    own: Cow<'a, str>,
    /// Of its events; empty ones where nobody reads them.
    of_events: Vec<Cow<'a, str>>,
    /// Of what its events are about; none where all are about itself.
    of_about: Vec<Cow<'a, str>>,
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
        let of_about = |idx| it.about(idx).map(|it| it.uid.as_ref().text());
        let places = if it.around.is_empty() {
            0..0
        } else {
            0..it.events.len()
        };
        Self {
            own: it.key.uid.as_ref().text(),
            of_events: it.events.iter().map(of_event).collect(),
            of_about: places
                .map(|idx| of_about(idx).unwrap_or_default())
                .collect(),
        }
    }
}

/// The events of a subject for the guest.
pub(super) fn events<'a>(
    of: &'a Subject,
    uids: &'a Uids<'a>,
    reads: &Reads,
) -> impl Iterator<Item = types::Event<'a>> {
    uids.of_events.iter().enumerate().map(|(idx, uid)| {
        let about_uid = uids.of_about.get(idx).map_or("", |it| it);
        event(of, idx, uid, about_uid, reads)
    })
}

/// What of a subject is made for the call, and only borrowed by it.
pub(super) struct Context<'a> {
    labels: Vec<types::AttributeParam<'a>>,
    owner_uid: Cow<'a, str>,
    failure: Vec<types::AttributeParam<'a>>,
}

impl<'a> Context<'a> {
    pub(super) fn of(it: &'a Subject, reads: &Reads) -> Self {
        let mut context = Self {
            labels: Vec::new(),
            owner_uid: Cow::default(),
            failure: Vec::new(),
        };
        if let Some(pod) = &it.pod {
            let labels = pod.labels.iter().filter(|(key, _)| reads.label(key));
            let labels = labels.map(|(key, value)| types::AttributeParam { key, value });
            context.labels = labels.collect();
            if let Some(owner) = pod.owner.as_ref().filter(|_| reads.owner) {
                context.owner_uid = owner.uid.as_ref().text();
            }
        }
        if let Some(failure) = &it.failure {
            let attributes = failure.attributes.iter();
            let attributes = attributes.map(|(key, value)| types::AttributeParam { key, value });
            context.failure = attributes.collect();
        }
        context
    }
}

/// A subject for the guest, with its events.
pub(super) fn subject<'a>(
    it: &'a Subject,
    uids: &'a Uids<'a>,
    context: &'a Context<'a>,
    reads: &Reads,
    events: &'a [types::Event<'a>],
) -> types::Subject<'a> {
    let pod = it.pod.as_deref();
    let owner = pod.and_then(|it| it.owner.as_ref()).filter(|_| reads.owner);
    let phase = pod.and_then(|it| it.phase).filter(|_| reads.phase);
    types::Subject {
        object: types::ObjectRef {
            api_version: &it.api_version,
            ..object_ref(&it.key.object, &uids.own)
        },
        node: pod.and_then(|it| it.node.as_deref()).filter(|_| reads.node),
        phase: phase.map(Phase::as_str),
        owner: owner.map(|it| types::ObjectRef {
            api_version: &it.api_version,
            ..object_ref(&it.object, &context.owner_uid)
        }),
        labels: &context.labels,
        failure: it
            .failure
            .as_deref()
            .map(|it| failure(it, &context.failure)),
        events,
        attributes: &[],
    }
}

fn object_ref<'a>(object: &'a ObjectKey, uid: &'a str) -> types::ObjectRef<'a> {
    types::ObjectRef {
        api_version: "",
        kind: object.kind(),
        namespace: object.namespace(),
        name: object.name(),
        uid,
    }
}

fn event<'a>(
    of: &'a Subject,
    idx: usize,
    own_uid: &'a str,
    about_uid: &'a str,
    reads: &Reads,
) -> types::Event<'a> {
    let it = &of.events[idx];
    let known = |read: bool, text: &'a str| (read && !text.is_empty()).then_some(text);
    let [api_version, kind, namespace, name, uid] = it.related();
    let related = types::ObjectRef {
        api_version,
        kind,
        namespace,
        name,
        uid,
    };
    let trust = of.trust(idx);
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
        about: of.about(idx).map(|it| types::ObjectRef {
            api_version: &it.api_version,
            ..object_ref(&it.object, about_uid)
        }),
        related: (reads.related && !kind.is_empty()).then_some(related),
        count: it.count(),
        created: it.created(),
        first_seen: it.first_seen(),
        last_seen: it.last_seen(),
        trust: types::Trust {
            uid: agreement(trust.uid),
            node: agreement(trust.node),
        },
        attributes: &[],
    }
}

fn agreement(it: Agreement) -> types::Agreement {
    match it {
        Agreement::Same => types::Agreement::Same,
        Agreement::Different => types::Agreement::Different,
        Agreement::Absent => types::Agreement::Absent,
        Agreement::Unknown => types::Agreement::Unknown,
    }
}

/// Nobody has said yet whose fault it was: that is what is asked.
fn failure<'a>(it: &'a Failure, attributes: &'a [types::AttributeParam<'a>]) -> types::Failure<'a> {
    types::Failure {
        code: &it.code,
        message: &it.message,
        blame: types::Blame::Unknown,
        permanent: false,
        at: it.at,
        attributes,
    }
}
