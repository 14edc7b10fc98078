//! An explanation for programs. As all that is written for them it may gain keys, and
//! never loses or changes one.

use schemars::JsonSchema;
use serde::Serialize;

use super::Explanation;
use crate::{
    output::{Element, Time, Verdict},
    pods::{Failure, Phase, Pod},
    record::{ObjectKey, Record, UidRef},
};

/// What happened to an object, whose fault it was, and what to do.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Explained<'a> {
    object: Object<'a>,
    /// The pod as the cluster has it; null when it is none, or not known.
    pod: Option<PodState<'a>>,
    /// How it failed, as its status or the caller has it; null when it did not.
    failure: Option<Failed<'a>>,
    /// The verdict of the first plugin that has one.
    verdict: Option<Verdict<'a>>,
    /// What each plugin says.
    elements: Vec<Element<'a>>,
    /// The Events that findings rest on, the latest first.
    evidence: Vec<Evidence<'a>>,
    /// How many Events of it, its node and its owner there were.
    events: usize,
    /// What could not be looked at.
    hidden: Vec<Hidden<'a>>,
}

/// An object.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Object<'a> {
    kind: &'a str,
    /// Empty for an object of the cluster's scope.
    namespace: &'a str,
    name: &'a str,
    /// Empty when unknown; a Node's is its name.
    uid: UidRef<'a>,
}

/// Where a pod is, and in which state.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodState<'a> {
    phase: Option<&'a str>,
    node: Option<&'a str>,
    /// Its controlling owner.
    owner: Option<Object<'a>>,
}

/// A failure.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Failed<'a> {
    code: &'a str,
    message: &'a str,
    at: Time,
}

/// An Event that a finding rests on.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Evidence<'a> {
    namespace: &'a str,
    name: &'a str,
    /// Empty when unknown.
    uid: UidRef<'a>,
    regarding: Object<'a>,
    reason: &'a str,
    /// Empty when unknown.
    controller: &'a str,
    count: u32,
    last_seen: Time,
    note: &'a str,
}

/// Something that could not be looked at.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Hidden<'a> {
    what: &'a str,
    why: &'a str,
}

impl<'a> Explained<'a> {
    /// What is written of an explanation.
    #[must_use]
    pub fn new(it: &'a Explanation) -> Self {
        let verdict = it.held.iter().find_map(|it| it.outcome.verdict.as_deref());
        let elements = it.held.iter().map(|held| Element::new(&it.subject, held));
        let evidence = it.evidence.iter();
        let hidden = it.hidden.iter().map(|it| Hidden {
            what: &it.what,
            why: &it.why,
        });
        Self {
            object: Object::new(&it.subject.object, it.subject.uid.as_ref()),
            pod: it.pod.as_deref().map(PodState::new),
            failure: it.failure.as_ref().map(Failed::new),
            verdict: verdict.map(Verdict::new),
            elements: elements.collect(),
            evidence: evidence.map(|(of, it)| Evidence::new(of, it)).collect(),
            events: it.n_events,
            hidden: hidden.collect(),
        }
    }
}

impl<'a> Object<'a> {
    fn new(it: &'a ObjectKey, uid: UidRef<'a>) -> Self {
        Self {
            kind: it.kind(),
            namespace: it.namespace(),
            name: it.name(),
            uid,
        }
    }
}

impl<'a> PodState<'a> {
    fn new(it: &'a Pod) -> Self {
        let owner = it.owner.as_ref();
        Self {
            phase: it.phase.map(Phase::as_str),
            node: it.node.as_deref(),
            owner: owner.map(|it| Object::new(&it.object, it.uid.as_ref())),
        }
    }
}

impl<'a> Failed<'a> {
    fn new(it: &'a Failure) -> Self {
        Self {
            code: &it.code,
            message: &it.message,
            at: Time::new(it.at),
        }
    }
}

impl<'a> Evidence<'a> {
    fn new(of: &'a ObjectKey, it: &'a Record) -> Self {
        Self {
            namespace: it.namespace(),
            name: it.name(),
            uid: it.uid(),
            regarding: Object::new(of, it.object_uid()),
            reason: it.reason(),
            controller: it.controller(),
            count: it.count(),
            last_seen: Time::new(it.last_seen()),
            note: it.note(),
        }
    }
}
