//! What is known of the pods that are watched, or that came with a recording.
//!
//! An Event says what somebody claims; a pod's own object says which node it is on,
//! who owns it and how it ended. That is what an Event's claims are held against, what
//! joins a pod with what is said of its node, and what a verdict is about.
//!
//! The full Pod never exists: `decode` borrows the few fields from the bytes that came
//! in. Pods are known by name and uid, so that a recreated pod is another one.

use std::sync::Arc;

use crate::record::{ObjectKey, Uid, UnixMs};

pub mod decode;
mod table;

pub use table::{PODS_MAX, PodKey, PodPut, Pods};

/// What is kept of a Pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pod {
    /// Its uid.
    pub uid: Uid,
    /// The node that it was put on; `None` before that.
    pub node: Option<Arc<str>>,
    /// Its phase; `None` when it has none, or none that Kubernetes has.
    pub phase: Option<Phase>,
    /// Its controlling owner.
    pub owner: Option<ObjectRef>,
    /// Those of its labels that were asked for, in the order of their keys.
    pub labels: Box<[(Box<str>, Box<str>)]>,
    /// Its newest failure.
    pub failure: Option<Arc<Failure>>,
}

impl Pod {
    /// The node that it was put on.
    #[must_use]
    pub fn node_ref(&self) -> Option<ObjectRef> {
        let node = self.node.as_deref()?;
        Some(ObjectRef {
            api_version: "v1".into(),
            object: ObjectKey::new("", "Node", node)?,
            uid: node.into(),
        })
    }
}

/// Where a pod is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Not all of its containers were started yet.
    Pending,
    /// Some container runs, starts or is started again.
    Running,
    /// All containers ended well, and none is started again.
    Succeeded,
    /// All containers ended, one of them badly, and none is started again.
    Failed,
    /// Its node does not answer.
    Unknown,
}

impl Phase {
    /// As Kubernetes writes it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Running => "Running",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
            Self::Unknown => "Unknown",
        }
    }

    /// Whether nothing of it runs or will run again.
    #[must_use]
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }
}

/// An object that is not the subject itself, but its node or its owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectRef {
    /// For example `batch/v1`.
    pub api_version: Arc<str>,
    /// Which.
    pub object: ObjectKey,
    /// Its uid.
    pub uid: Uid,
}

/// A failure that is to be explained.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failure {
    /// For example `OOMKilled` or `137`.
    pub code: Box<str>,
    /// For a person.
    pub message: Box<str>,
    /// When it happened.
    pub at: UnixMs,
    /// More of it, for example `exit-code` and `137`.
    pub attributes: Box<[(&'static str, Box<str>)]>,
}

#[cfg(test)]
mod tests;
