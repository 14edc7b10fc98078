//! What is watched: Events, or Pods. One loop serves both.
//!
//! They differ in where they are, in what selects them, and in what one is like on
//! the wire. What the loop does about a failure is the same for both. There are these
//! two and no others, so that nothing comes in that is not read lazily from its bytes.

use std::fmt;

use serde::Deserialize;

use crate::{
    pods::decode::WirePod,
    record::decode::WireEvent,
    scope::{Namespace, PodWatch, Watch},
};

/// What a watch asks for.
pub trait Resource: sealed::Asked {}

impl Resource for Watch {}

impl Resource for PodWatch {}

/// Which watch it is, whatever of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Watched {
    /// Events about a kind.
    Events(Watch),
    /// Pods.
    Pods(PodWatch),
}

impl Watched {
    /// Where; in all namespaces if there is none.
    #[must_use]
    pub fn namespace(&self) -> Option<&Namespace> {
        match self {
            Self::Events(it) => it.namespace.as_ref(),
            Self::Pods(it) => it.namespace.as_ref(),
        }
    }

    /// What is asked for: the value of a label.
    #[must_use]
    pub fn resource(&self) -> &'static str {
        match self {
            Self::Events(_) => "events",
            Self::Pods(_) => "pods",
        }
    }

    /// The kind of the objects that are told of.
    #[must_use]
    pub fn kind(&self) -> &str {
        match self {
            Self::Events(it) => it.kind.as_str(),
            Self::Pods(_) => "Pod",
        }
    }
}

impl fmt::Display for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Events(it) => it.fmt(f),
            Self::Pods(it) => it.fmt(f),
        }
    }
}

pub(super) mod sealed {
    use super::{Deserialize, Watched, fmt};

    /// How the loop asks, and what it understands.
    pub trait Asked {
        /// One of them, as it comes.
        type Wire<'a>: Deserialize<'a> + fmt::Debug;

        /// What one of them is called.
        const NAME: &'static str;

        /// Where they are.
        fn path(&self) -> String;

        /// What selects them, by fields.
        fn field_selector(&self) -> Option<String>;

        /// What selects them, by labels.
        fn label_selector(&self) -> Option<String>;

        /// The version of one.
        fn version<'w>(wire: &'w Self::Wire<'_>) -> &'w str;

        fn watched(self) -> Watched;
    }
}

impl sealed::Asked for Watch {
    type Wire<'a> = WireEvent<'a>;

    const NAME: &'static str = "Event";

    fn path(&self) -> String {
        match &self.namespace {
            Some(namespace) => format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events"),
            None => "/apis/events.k8s.io/v1/events".to_owned(),
        }
    }

    fn field_selector(&self) -> Option<String> {
        Some(Watch::field_selector(self))
    }

    fn label_selector(&self) -> Option<String> {
        None
    }

    fn version<'w>(wire: &'w WireEvent<'_>) -> &'w str {
        &wire.metadata.resource_version
    }

    fn watched(self) -> Watched {
        Watched::Events(self)
    }
}

impl sealed::Asked for PodWatch {
    type Wire<'a> = WirePod<'a>;

    const NAME: &'static str = "Pod";

    fn path(&self) -> String {
        match &self.namespace {
            Some(namespace) => format!("/api/v1/namespaces/{namespace}/pods"),
            None => "/api/v1/pods".to_owned(),
        }
    }

    fn field_selector(&self) -> Option<String> {
        None
    }

    fn label_selector(&self) -> Option<String> {
        (!self.selector.is_all()).then(|| self.selector.to_string())
    }

    fn version<'w>(wire: &'w WirePod<'_>) -> &'w str {
        &wire.metadata.resource_version
    }

    fn watched(self) -> Watched {
        Watched::Pods(self)
    }
}
