//! What a classifier is and wants, said in one expression.

use crate::{Description, Interest};

impl Description {
    /// A classifier of this name (lower-case letters, digits and `-`) and what it is in one line.
    ///
    /// [`classifier!`](crate::classifier) fills in the version, and the schema of the settings.
    pub fn new(name: impl Into<String>, summary: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            version: String::new(),
            summary: summary.into(),
            interests: Vec::new(),
            failures: false,
            reads: Vec::new(),
            settings_schema: None,
            categories: Vec::new(),
            codes: Vec::new(),
            attributes: Vec::new(),
        }
    }

    /// Events that meet this are wanted, beside those of the interests given before. Give at least one.
    #[must_use]
    pub fn interest(mut self, interest: Interest) -> Self {
        self.interests.push(interest);
        self
    }

    /// Subjects with a failure are wanted without an event of interest too.
    #[must_use]
    pub fn failures(self) -> Self {
        Self {
            failures: true,
            ..self
        }
    }

    /// What is read of what is optional, for example `["event.instance", "subject.labels/team"]`. The
    /// rest comes as none, which is faster. All of it comes while nothing is named.
    #[must_use]
    pub fn reads<T: Into<String>>(mut self, names: impl IntoIterator<Item = T>) -> Self {
        extend(&mut self.reads, names);
        self
    }

    /// The categories that its findings carry.
    #[must_use]
    pub fn categories<T: Into<String>>(mut self, categories: impl IntoIterator<Item = T>) -> Self {
        extend(&mut self.categories, categories);
        self
    }

    /// The codes that its findings and verdicts carry.
    #[must_use]
    pub fn codes<T: Into<String>>(mut self, codes: impl IntoIterator<Item = T>) -> Self {
        extend(&mut self.codes, codes);
        self
    }
}

impl Interest {
    /// Every event, until a field narrows it. An event must meet each field that is given, and meets a
    /// field when it meets any of its entries.
    #[must_use]
    pub fn any() -> Self {
        Self {
            kinds: Vec::new(),
            event_types: Vec::new(),
            reasons: Vec::new(),
            reason_prefixes: Vec::new(),
            controllers: Vec::new(),
            note_contains: Vec::new(),
            attributes: Vec::new(),
        }
    }

    /// Of objects of these kinds, for example `["Pod"]`.
    #[must_use]
    pub fn kinds<T: Into<String>>(mut self, kinds: impl IntoIterator<Item = T>) -> Self {
        extend(&mut self.kinds, kinds);
        self
    }

    /// Of these types, for example `["Warning"]`. Some producers write others than Kubernetes' two.
    #[must_use]
    pub fn event_types<T: Into<String>>(mut self, types: impl IntoIterator<Item = T>) -> Self {
        extend(&mut self.event_types, types);
        self
    }

    /// With these reasons, for example `["Evicted"]`.
    #[must_use]
    pub fn reasons<T: Into<String>>(mut self, reasons: impl IntoIterator<Item = T>) -> Self {
        extend(&mut self.reasons, reasons);
        self
    }

    /// With reasons that start so, for example `["NodeHas"]`.
    #[must_use]
    pub fn reason_prefixes<T: Into<String>>(
        mut self,
        prefixes: impl IntoIterator<Item = T>,
    ) -> Self {
        extend(&mut self.reason_prefixes, prefixes);
        self
    }

    /// Reported by these, for example `["kubelet"]`.
    #[must_use]
    pub fn controllers<T: Into<String>>(
        mut self,
        controllers: impl IntoIterator<Item = T>,
    ) -> Self {
        extend(&mut self.controllers, controllers);
        self
    }

    /// With one of these in the note, for example `["Xid "]`.
    #[must_use]
    pub fn note_contains<T: Into<String>>(mut self, texts: impl IntoIterator<Item = T>) -> Self {
        extend(&mut self.note_contains, texts);
        self
    }
}

fn extend<T: Into<String>>(list: &mut Vec<String>, more: impl IntoIterator<Item = T>) {
    list.extend(more.into_iter().map(Into::into));
}
