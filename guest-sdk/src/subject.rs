//! Subjects and events as a test writes them, field by field where the default will not do.
//!
//! The defaults are what a host supplies that watches no pods: nothing optional, nothing compared.

use crate::outcome::set;
use crate::{Agreement, Blame, Event, Failure, ObjectRef, Subject, Trust};

impl Subject {
    /// A pod without events.
    pub fn pod(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self::new(ObjectRef::new("v1", "Pod", namespace, name))
    }

    /// Any object, without events.
    #[must_use]
    pub fn new(object: ObjectRef) -> Self {
        Self {
            object,
            node: None,
            phase: None,
            owner: None,
            labels: Vec::new(),
            failure: None,
            events: Vec::new(),
            attributes: Vec::new(),
        }
    }

    /// The object's uid.
    #[must_use]
    pub fn uid(mut self, uid: impl Into<String>) -> Self {
        self.object.uid = uid.into();
        self
    }

    /// The node it runs on.
    #[must_use]
    pub fn node(self, node: impl Into<String>) -> Self {
        Self {
            node: Some(node.into()),
            ..self
        }
    }

    /// Its phase, for example `Failed`.
    #[must_use]
    pub fn phase(self, phase: impl Into<String>) -> Self {
        Self {
            phase: Some(phase.into()),
            ..self
        }
    }

    /// Its controlling owner.
    #[must_use]
    pub fn owner(self, owner: ObjectRef) -> Self {
        Self {
            owner: Some(owner),
            ..self
        }
    }

    /// One of its labels.
    #[must_use]
    pub fn label(mut self, key: impl Into<String>, value: impl ToString) -> Self {
        set(&mut self.labels, key, value);
        self
    }

    /// Its failure.
    #[must_use]
    pub fn failure(self, failure: Failure) -> Self {
        Self {
            failure: Some(failure),
            ..self
        }
    }

    /// One event more. Give them as the host does: oldest first.
    #[must_use]
    pub fn event(mut self, event: Event) -> Self {
        self.events.push(event);
        self
    }
}

impl Event {
    /// An event of the type `Warning`.
    pub fn warning(reason: impl Into<String>, note: impl Into<String>) -> Self {
        Self::new("Warning", reason, note)
    }

    /// An event of the type `Normal`.
    pub fn normal(reason: impl Into<String>, note: impl Into<String>) -> Self {
        Self::new("Normal", reason, note)
    }

    /// An event of any type, seen once, at an unknown time.
    pub fn new(
        event_type: impl Into<String>,
        reason: impl Into<String>,
        note: impl Into<String>,
    ) -> Self {
        Self {
            event_type: event_type.into(),
            reason: reason.into(),
            note: note.into(),
            uid: None,
            name: None,
            action: None,
            field_path: None,
            controller: None,
            instance: None,
            about: None,
            related: None,
            count: 1,
            created: 0,
            first_seen: 0,
            last_seen: 0,
            trust: Trust::default(),
            attributes: Vec::new(),
        }
    }

    /// The Event's own uid.
    #[must_use]
    pub fn uid(self, uid: impl Into<String>) -> Self {
        Self {
            uid: Some(uid.into()),
            ..self
        }
    }

    /// The Event's own name.
    #[must_use]
    pub fn name(self, name: impl Into<String>) -> Self {
        Self {
            name: Some(name.into()),
            ..self
        }
    }

    /// What the reporter did, for example `Binding`.
    #[must_use]
    pub fn action(self, action: impl Into<String>) -> Self {
        Self {
            action: Some(action.into()),
            ..self
        }
    }

    /// The part of the object that it regards, for example `spec.containers{main}`.
    #[must_use]
    pub fn field_path(self, path: impl Into<String>) -> Self {
        Self {
            field_path: Some(path.into()),
            ..self
        }
    }

    /// Who reported it, for example `kubelet`.
    #[must_use]
    pub fn controller(self, controller: impl Into<String>) -> Self {
        Self {
            controller: Some(controller.into()),
            ..self
        }
    }

    /// Which of them, often the name of its node.
    #[must_use]
    pub fn instance(self, instance: impl Into<String>) -> Self {
        Self {
            instance: Some(instance.into()),
            ..self
        }
    }

    /// The object that it regards, when that is not the subject itself.
    #[must_use]
    pub fn about(self, object: ObjectRef) -> Self {
        Self {
            about: Some(object),
            ..self
        }
    }

    /// A second object that it names.
    #[must_use]
    pub fn related(self, object: ObjectRef) -> Self {
        Self {
            related: Some(object),
            ..self
        }
    }

    /// How often it was seen.
    #[must_use]
    pub fn count(self, count: u32) -> Self {
        Self { count, ..self }
    }

    /// When it was created, in milliseconds since 1970. First and last seen then as well, where these
    /// are not set.
    #[must_use]
    pub fn created(self, at: u64) -> Self {
        let or_at = |time| if time == 0 { at } else { time };
        Self {
            created: at,
            first_seen: or_at(self.first_seen),
            last_seen: or_at(self.last_seen),
            ..self
        }
    }

    /// When it was first seen.
    #[must_use]
    pub fn first_seen(self, at: u64) -> Self {
        Self {
            first_seen: at,
            ..self
        }
    }

    /// When it was last seen.
    #[must_use]
    pub fn last_seen(self, at: u64) -> Self {
        Self {
            last_seen: at,
            ..self
        }
    }

    /// What the host could check of its claims.
    #[must_use]
    pub fn trust(self, trust: Trust) -> Self {
        Self { trust, ..self }
    }
}

impl ObjectRef {
    /// An object without a uid. The namespace of one of the cluster's scope is empty.
    pub fn new(
        api_version: impl Into<String>,
        kind: impl Into<String>,
        namespace: impl Into<String>,
        name: impl Into<String>,
    ) -> Self {
        Self {
            api_version: api_version.into(),
            kind: kind.into(),
            namespace: namespace.into(),
            name: name.into(),
            uid: String::new(),
        }
    }

    /// A node; its uid is its name.
    pub fn node(name: impl Into<String>) -> Self {
        let name = name.into();
        Self {
            uid: name.clone(),
            ..Self::new("v1", "Node", "", name)
        }
    }

    /// Its uid.
    #[must_use]
    pub fn uid(self, uid: impl Into<String>) -> Self {
        Self {
            uid: uid.into(),
            ..self
        }
    }
}

impl Failure {
    /// A failure at this time, in milliseconds since 1970; nobody blamed, not permanent.
    pub fn new(code: impl Into<String>, message: impl Into<String>, at: u64) -> Self {
        Self {
            code: code.into(),
            message: message.into(),
            blame: Blame::Unknown,
            permanent: false,
            at,
            attributes: Vec::new(),
        }
    }

    /// Whose fault the reporter takes it for.
    #[must_use]
    pub fn blame(self, blame: Blame) -> Self {
        Self { blame, ..self }
    }

    /// The reporter holds that trying again cannot help.
    #[must_use]
    pub fn permanent(self) -> Self {
        Self {
            permanent: true,
            ..self
        }
    }

    /// More of it, for example `exit-code` and 137.
    #[must_use]
    pub fn attribute(mut self, key: impl Into<String>, value: impl ToString) -> Self {
        set(&mut self.attributes, key, value);
        self
    }
}

/// Nothing compared.
impl Default for Trust {
    fn default() -> Self {
        Self {
            uid: Agreement::Unknown,
            node: Agreement::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn creation_dates_what_is_not_dated() {
        let event = Event::warning("Failed", "").created(7);
        assert_eq!((event.first_seen, event.last_seen), (7, 7));

        let event = Event::warning("Failed", "").last_seen(9).created(7);
        assert_eq!((event.first_seen, event.last_seen), (7, 9));
    }

    #[test]
    fn a_node_is_its_own_uid() {
        let node = ObjectRef::node("gke-a3-17");
        assert_eq!(
            (node.uid.as_str(), node.namespace.as_str()),
            ("gke-a3-17", "")
        );
    }
}
