//! A Pod as it came over the wire, borrowed from the bytes, and what is kept of it.
//!
//! It is read as Events are (`record::decode`): an unknown field is skipped, a
//! malformed one counts as absent, and only bytes that are no JSON object are an
//! error. A Pod lists its containers, owners and labels, as many as its writer likes:
//! of the lists what matters is picked out as they are read, and labels are not read
//! before somebody asks for some. So what is held of a Pod has a size that does not
//! depend on the Pod, and each of its texts has a bound.
//!
//! It never says when a failure is over: it says which one the status tells of.

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

use super::{Failure, ObjectRef, Phase, Pod};
use crate::{
    record::{
        CLUSTER_KINDS, IDENTITY_MAX_BYTES, ObjectKey, UidRef, UnixMs,
        decode::{Lenient, Text, Value, document, fields},
    },
    text::cut,
};

/// Bytes that are kept of what a failure says to a person.
pub const MESSAGE_MAX_BYTES: usize = 1 << 10;

/// Bytes that are kept of a failure's code, and of each text of its attributes.
pub const CODE_MAX_BYTES: usize = 253;

/// Bytes that are kept of a label's value. The server takes no longer one.
pub const LABEL_MAX_BYTES: usize = 63;

/// The code of a failed Pod that does not say of what.
const UNKNOWN: &str = "Unknown";

/// Why there is nothing to keep of a Pod. Each is the value of a counter's label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
pub enum Rejected {
    /// It has no name, no namespace or no uid: it is not one that a server has.
    #[error("a Pod without a name, a namespace or a uid")]
    NoIdentity,
    /// Its name, namespace or uid is longer than [`IDENTITY_MAX_BYTES`].
    #[error("a Pod with a name, namespace or uid of over {IDENTITY_MAX_BYTES} bytes")]
    IdentityTooLong,
}

/// `metadata`.
#[derive(Debug, Default)]
pub struct WireMeta<'a> {
    /// The Pod's name.
    pub name: Text<'a>,
    /// The Pod's namespace.
    pub namespace: Text<'a>,
    /// The Pod's uid.
    pub uid: Text<'a>,
    /// Opaque.
    pub resource_version: Text<'a>,
    /// When the server stored it first.
    pub creation_timestamp: UnixMs,
    /// When it is to be gone, once somebody has asked for that; 0 before.
    pub deletion_timestamp: UnixMs,
    labels: Labels<'a>,
    owner: Controller<'a>,
    n_malformed: u32,
}

/// `spec`.
#[derive(Debug, Default)]
pub struct WireSpec<'a> {
    /// The node that it was put on; empty before that.
    pub node_name: Text<'a>,
    n_malformed: u32,
}

/// `status`.
#[derive(Debug, Default)]
pub struct WireStatus<'a> {
    /// For example `Running`.
    pub phase: Text<'a>,
    /// Why the Pod as a whole is as it is, for example `Evicted`; mostly empty.
    pub reason: Text<'a>,
    /// The same, for people.
    pub message: Text<'a>,
    /// When a kubelet took it on.
    pub start_time: UnixMs,
    conditions: Conditions,
    init_containers: Containers<'a>,
    containers: Containers<'a>,
    n_malformed: u32,
}

/// A Pod.
#[derive(Debug, Default)]
pub struct WirePod<'a> {
    /// `Pod`; items of a list of Pods carry none.
    pub kind: Text<'a>,
    /// Who it is.
    pub metadata: WireMeta<'a>,
    /// What was asked for.
    pub spec: WireSpec<'a>,
    /// What became of it.
    pub status: WireStatus<'a>,
    n_malformed: u32,
}

/// `labels`, unread.
#[derive(Debug, Default)]
struct Labels<'a>(Option<&'a RawValue>);

/// That of `ownerReferences` which has the Pod in its care.
#[derive(Debug, Default)]
struct Controller<'a> {
    found: Option<OwnerReference<'a>>,
    n_malformed: u32,
}

/// One of `ownerReferences`.
#[derive(Debug, Default)]
struct OwnerReference<'a> {
    api_version: Text<'a>,
    kind: Text<'a>,
    name: Text<'a>,
    uid: Text<'a>,
    controller: bool,
    n_malformed: u32,
}

/// Of `conditions`, when one of them changed last.
#[derive(Debug, Default)]
struct Conditions {
    newest: UnixMs,
    n_malformed: u32,
}

#[derive(Debug, Default)]
struct Condition {
    last_transition_time: UnixMs,
    n_malformed: u32,
}

/// Of `containerStatuses` or `initContainerStatuses`, how they ended. A debug container
/// is no part of the workload: how it ends is nobody's failure, so
/// `ephemeralContainerStatuses` is not read.
#[derive(Debug, Default)]
struct Containers<'a> {
    /// Of those that ended badly, the one that did first.
    first_bad: Option<Ended<'a>>,
    /// The newest bad end, though the container may run again.
    newest_bad: Option<Ended<'a>>,
    /// When the last of them ended, well or badly.
    newest_end: UnixMs,
    n_malformed: u32,
}

/// The end of a container.
#[derive(Clone, Debug)]
struct Ended<'a> {
    container: Text<'a>,
    how: Terminated<'a>,
    /// It was not started since.
    is_last: bool,
}

#[derive(Debug, Default)]
struct Container<'a> {
    name: Text<'a>,
    state: State<'a>,
    last_state: State<'a>,
    n_malformed: u32,
}

#[derive(Debug, Default)]
struct State<'a> {
    terminated: Terminated<'a>,
    n_malformed: u32,
}

/// `terminated`; when it is absent it is like a good end at an unknown time.
#[derive(Clone, Debug, Default)]
struct Terminated<'a> {
    exit_code: i64,
    signal: i64,
    reason: Text<'a>,
    message: Text<'a>,
    finished_at: UnixMs,
    n_malformed: u32,
}

fields!(WireMeta<'de> {
    "name" => name,
    "namespace" => namespace,
    "uid" => uid,
    "resourceVersion" => resource_version,
    "creationTimestamp" => creation_timestamp,
    "deletionTimestamp" => deletion_timestamp,
    "labels" => labels,
    "ownerReferences" => owner,
});

fields!(WireSpec<'de> {
    "nodeName" => node_name,
});

fields!(WireStatus<'de> {
    "phase" => phase,
    "reason" => reason,
    "message" => message,
    "startTime" => start_time,
    "conditions" => conditions,
    "initContainerStatuses" => init_containers,
    "containerStatuses" => containers,
});

fields!(WirePod<'de> {
    "kind" => kind,
    "metadata" => metadata,
    "spec" => spec,
    "status" => status,
});

fields!(OwnerReference<'de> {
    "apiVersion" => api_version,
    "kind" => kind,
    "name" => name,
    "uid" => uid,
    "controller" => controller,
});

fields!(Condition {
    "lastTransitionTime" => last_transition_time,
});

fields!(Container<'de> {
    "name" => name,
    "state" => state,
    "lastState" => last_state,
});

fields!(State<'de> {
    "terminated" => terminated,
});

fields!(Terminated<'de> {
    "exitCode" => exit_code,
    "signal" => signal,
    "reason" => reason,
    "message" => message,
    "finishedAt" => finished_at,
});

document!(WirePod, "a Pod");

impl<'de> Value<'de> for Labels<'de> {
    fn read<D: Deserializer<'de>>(from: D) -> Result<Lenient<Self>, D::Error> {
        let raw = <&RawValue>::deserialize(from)?;
        let is_map = raw.get().starts_with('{');
        Ok(Lenient {
            value: Self(is_map.then_some(raw)),
            malformed: !is_map && raw.get() != "null",
        })
    }
}

impl<'de> Value<'de> for Controller<'de> {
    fn from_seq<A: SeqAccess<'de>>(seq: A) -> Result<Option<Self>, A::Error> {
        let mut it = Self::default();
        it.n_malformed = each(seq, |reference: OwnerReference<'de>| {
            let n_malformed = reference.n_malformed;
            if reference.controller && it.found.is_none() {
                it.found = Some(reference);
            }
            n_malformed
        })?;
        Ok(Some(it))
    }
}

impl<'de> Value<'de> for Conditions {
    fn from_seq<A: SeqAccess<'de>>(seq: A) -> Result<Option<Self>, A::Error> {
        let mut it = Self::default();
        it.n_malformed = each(seq, |condition: Condition| {
            it.newest = it.newest.max(condition.last_transition_time);
            condition.n_malformed
        })?;
        Ok(Some(it))
    }
}

impl<'de> Value<'de> for Containers<'de> {
    fn from_seq<A: SeqAccess<'de>>(seq: A) -> Result<Option<Self>, A::Error> {
        let mut it = Self::default();
        it.n_malformed = each(seq, |container: Container<'de>| {
            let (name, n_malformed) = (container.name, container.n_malformed);
            let states = [(container.state, true), (container.last_state, false)];
            let mut n_malformed_in = 0;
            for (state, is_last) in states {
                n_malformed_in += state.n_malformed + state.terminated.n_malformed;
                it.newest_end = it.newest_end.max(state.terminated.finished_at);
                if state.terminated.exit_code != 0 {
                    it.ended_badly(&Ended {
                        container: name.clone(),
                        how: state.terminated,
                        is_last,
                    });
                }
            }
            n_malformed + n_malformed_in
        })?;
        Ok(Some(it))
    }
}

impl<'a> Containers<'a> {
    fn ended_badly(&mut self, end: &Ended<'a>) {
        first(&mut self.first_bad, end, Ended::how_late);
        first(&mut self.newest_bad, end, Ended::how_old);
    }
}

impl Ended<'_> {
    /// That of the end of all before that of one that was started again; what ended at an
    /// unknown time comes behind.
    fn how_late(&self) -> (bool, UnixMs) {
        let at = self.how.finished_at;
        (!self.is_last, if at == 0 { UnixMs::MAX } else { at })
    }

    fn how_old(&self) -> (UnixMs, bool) {
        (UnixMs::MAX - self.how.finished_at, !self.is_last)
    }

    fn failure(&self, otherwise: UnixMs) -> Failure {
        let how = &self.how;
        let exit_code = how.exit_code.to_string();
        let code = match &*how.reason {
            "" => &exit_code,
            reason => reason,
        };
        let name = cut(&self.container, CODE_MAX_BYTES);
        let ended = format!("container {name} exited with {exit_code}");
        let message = match &*how.message {
            "" => &ended,
            message => message,
        };
        let signal = (how.signal != 0).then(|| how.signal.to_string());
        let attributes = [
            ("container", &*self.container),
            ("exit-code", &exit_code),
            ("signal", signal.as_deref().unwrap_or_default()),
            ("reason", &how.reason),
        ];
        let attributes = attributes.into_iter().filter(|(_, it)| !it.is_empty());
        Failure {
            code: cut(code, CODE_MAX_BYTES).into(),
            message: cut(message, MESSAGE_MAX_BYTES).into(),
            at: first_known([how.finished_at, otherwise]),
            attributes: attributes
                .map(|(name, it)| (name, cut(it, CODE_MAX_BYTES).into()))
                .collect(),
        }
    }
}

impl WirePod<'_> {
    /// How many of the fields that we read held something else than they may.
    #[must_use]
    pub fn n_malformed(&self) -> u32 {
        let (meta, status) = (&self.metadata, &self.status);
        self.n_malformed
            + meta.n_malformed
            + meta.owner.n_malformed
            + self.spec.n_malformed
            + status.n_malformed
            + status.conditions.n_malformed
            + status.init_containers.n_malformed
            + status.containers.n_malformed
    }

    /// The object that it is.
    ///
    /// # Errors
    ///
    /// If that cannot be said.
    pub fn key(&self) -> Result<ObjectKey, Rejected> {
        let meta = &self.metadata;
        let identities = [&meta.name, &meta.namespace, &meta.uid];
        if identities.iter().any(|it| it.is_empty()) {
            return Err(Rejected::NoIdentity);
        }
        if identities.iter().any(|it| IDENTITY_MAX_BYTES < it.len()) {
            return Err(Rejected::IdentityTooLong);
        }
        ObjectKey::new(&meta.namespace, "Pod", &meta.name).ok_or(Rejected::IdentityTooLong)
    }

    fn phase(&self) -> Option<Phase> {
        let all = [
            Phase::Pending,
            Phase::Running,
            Phase::Succeeded,
            Phase::Failed,
            Phase::Unknown,
        ];
        all.into_iter()
            .find(|it| it.as_str() == &*self.status.phase)
    }

    fn owner(&self) -> Option<ObjectRef> {
        let it = self.metadata.owner.found.as_ref()?;
        let is_in_bounds = [&it.api_version, &it.uid]
            .iter()
            .all(|it| it.len() <= IDENTITY_MAX_BYTES);
        if !is_in_bounds || it.kind.is_empty() || it.name.is_empty() {
            return None;
        }
        // A static Pod is owned by its Node.
        let is_in_namespace = !CLUSTER_KINDS.contains(&&*it.kind);
        let namespace = if is_in_namespace {
            &*self.metadata.namespace
        } else {
            ""
        };
        Some(ObjectRef {
            api_version: (*it.api_version).into(),
            object: ObjectKey::new(namespace, &it.kind, &it.name)?,
            uid: UidRef::of(&it.uid).into(),
        })
    }

    /// What its status says that it failed of.
    fn failure(&self) -> Option<Failure> {
        let (meta, status) = (&self.metadata, &self.status);
        let both = [&status.init_containers, &status.containers];
        let newest_end = both.iter().map(|it| it.newest_end).max().unwrap_or(0);
        let at = first_known([
            newest_end,
            status.conditions.newest,
            meta.deletion_timestamp,
            status.start_time,
            meta.creation_timestamp,
        ]);
        let mut bad = None;
        match self.phase() {
            Some(Phase::Succeeded) => return None,
            Some(Phase::Failed) if status.reason.is_empty() => {
                for end in both.iter().filter_map(|it| it.first_bad.as_ref()) {
                    first(&mut bad, end, Ended::how_late);
                }
            }
            Some(Phase::Failed) => {}
            _ => {
                for end in both.iter().filter_map(|it| it.newest_bad.as_ref()) {
                    first(&mut bad, end, Ended::how_old);
                }
                return bad.map(|it| it.failure(at));
            }
        }
        if let Some(end) = bad {
            return Some(end.failure(at));
        }
        let code = if status.reason.is_empty() {
            UNKNOWN
        } else {
            &*status.reason
        };
        Some(Failure {
            code: cut(code, CODE_MAX_BYTES).into(),
            message: cut(&status.message, MESSAGE_MAX_BYTES).into(),
            at,
            attributes: Box::default(),
        })
    }
}

impl Pod {
    /// What is kept of a Pod, of its labels those of `keep`.
    ///
    /// # Errors
    ///
    /// If it cannot be said which Pod it is.
    pub fn pare_down(
        wire: &WirePod<'_>,
        keep: &[impl AsRef<str>],
    ) -> Result<(ObjectKey, Self), Rejected> {
        let object = wire.key()?;
        let node = &*wire.spec.node_name;
        let is_node = !node.is_empty() && node.len() <= IDENTITY_MAX_BYTES;
        let pod = Self {
            uid: UidRef::of(&wire.metadata.uid).into(),
            node: is_node.then(|| node.into()),
            phase: wire.phase(),
            owner: wire.owner(),
            labels: wire.metadata.labels.kept(keep),
            failure: wire.failure().map(Into::into),
        };
        Ok((object, pod))
    }
}

impl Labels<'_> {
    /// Those of them that are asked for, in the order of their keys. Of two with one key
    /// the last is meant.
    fn kept(&self, keep: &[impl AsRef<str>]) -> Box<[(Box<str>, Box<str>)]> {
        struct Kept<'k, K> {
            keep: &'k [K],
            found: Vec<(&'k str, Box<str>)>,
        }

        impl<'de, 'k, K: AsRef<str>> Visitor<'de> for Kept<'k, K> {
            type Value = Vec<(&'k str, Box<str>)>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("labels")
            }

            fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Self::Value, A::Error> {
                while let Some(key) = map.next_key::<Text<'de>>()? {
                    let Some(kept) = self.keep.iter().find(|it| it.as_ref() == &*key) else {
                        map.next_value::<IgnoredAny>()?;
                        continue;
                    };
                    self.found.retain(|(it, _)| *it != kept.as_ref());
                    let it = map.next_value::<Lenient<Text<'de>>>()?;
                    if !it.malformed {
                        let value = cut(&it.value, LABEL_MAX_BYTES).into();
                        self.found.push((kept.as_ref(), value));
                    }
                }
                Ok(self.found)
            }
        }

        let Some(raw) = self.0.filter(|_| !keep.is_empty()) else {
            return Box::default();
        };
        let kept = Kept {
            keep,
            found: Vec::new(),
        };
        let mut found = serde_json::Deserializer::from_str(raw.get())
            .deserialize_map(kept)
            .unwrap_or_default();
        found.sort_unstable();
        found
            .into_iter()
            .map(|(key, it)| (key.into(), it))
            .collect()
    }
}

/// Reads a list item by item. `on_item` says how many of the fields of one are malformed,
/// and an item that is none counts as one.
fn each<'de, A: SeqAccess<'de>, T: Value<'de>>(
    mut seq: A,
    mut on_item: impl FnMut(T) -> u32,
) -> Result<u32, A::Error> {
    let mut n_malformed = 0_u32;
    while let Some(Lenient { value, malformed }) = seq.next_element()? {
        n_malformed = n_malformed.saturating_add(u32::from(malformed) + on_item(value));
    }
    Ok(n_malformed)
}

/// Puts an end in the place of another if it comes before that.
fn first<'a, T: Ord>(
    place: &mut Option<Ended<'a>>,
    end: &Ended<'a>,
    order: impl Fn(&Ended<'a>) -> T,
) {
    if place.as_ref().is_none_or(|it| order(end) < order(it)) {
        *place = Some(end.clone());
    }
}

/// The first time that is known, else 0.
fn first_known<const N: usize>(times: [UnixMs; N]) -> UnixMs {
    times.into_iter().find(|it| *it != 0).unwrap_or(0)
}

#[cfg(test)]
mod tests;
