//! What one event says, whoever wrote it: the form into which every grammar reads.
//!
//! A grammar knows a producer's text; what follows from it (severity, blame, key) is decided here, once for
//! all of them, so that the same fault is the same finding whoever reports it.

use portent_sdk::{Attribute, Blame, Finding, Severity, Status};

use crate::{
    action::Action,
    code::{self, Category},
    level::Level,
    settings::Settings,
    table::{self, Remedy},
};

/// One statement. What the text does not say is left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Statement {
    pub(crate) category: Category,
    pub(crate) code: &'static str,
    pub(crate) key: String,
    pub(crate) severity: Severity,
    pub(crate) action: Action,
    pub(crate) status: Status,
    /// Codes that end with it, beside its own. Only a cleared one has any.
    pub(crate) ends: &'static [&'static str],
    /// One sentence for a person.
    pub(crate) message: String,
    pub(crate) attributes: Vec<Attribute>,
    /// Whether it was seen only by its effect: the kubelet or the runtime had no device to give.
    pub(crate) is_effect: bool,
}

impl Statement {
    /// An active one about a device that it does not name.
    pub(crate) fn new(
        category: Category,
        code: &'static str,
        action: Action,
        message: impl Into<String>,
    ) -> Self {
        let severity = match (category, action) {
            (Category::UserError, _) | (Category::Capacity, Action::None) => Severity::Info,
            (Category::Fault | Category::Config, action) if action.leaves() => Severity::Critical,
            _ => Severity::Warning,
        };
        Self {
            category,
            code,
            key: String::new(),
            severity,
            action,
            status: Status::Active,
            ends: &[],
            message: message.into(),
            attributes: vec![Attribute::new("action", action.as_word())],
            is_effect: false,
        }
    }

    pub(crate) fn key(self, key: impl Into<String>) -> Self {
        Self {
            key: key.into(),
            ..self
        }
    }

    /// It was seen by its effect only.
    pub(crate) fn effect(self) -> Self {
        Self {
            is_effect: true,
            ..self
        }
    }

    /// It says that this is over.
    pub(crate) fn cleared(self) -> Self {
        Self {
            status: Status::Cleared,
            ..self
        }
    }

    /// It says that this is over, and what has these codes too.
    pub(crate) fn cleared_with(self, ends: &'static [&'static str]) -> Self {
        Self {
            ends,
            ..self.cleared()
        }
    }

    #[allow(
        clippy::needless_pass_by_value,
        reason = "`79` reads better than `&79`"
    )]
    pub(crate) fn attribute(mut self, key: &str, value: impl ToString) -> Self {
        self.set(key, value.to_string());
        self
    }

    /// Apart from its generic half: see `cursor::find`.
    #[inline(never)]
    fn set(&mut self, key: &str, value: String) {
        match self.attributes.iter_mut().find(|it| it.key == key) {
            Some(it) => it.value = value,
            None => self.attributes.push(Attribute::new(key, value)),
        }
    }

    /// An attribute, where there is something to say.
    pub(crate) fn maybe(self, key: &str, value: Option<impl ToString>) -> Self {
        match value {
            Some(value) => self.attribute(key, value),
            None => self,
        }
    }

    pub(crate) fn find(&self, key: &str) -> Option<&str> {
        Attribute::find(&self.attributes, key)
    }

    /// Names the device, in attributes and, behind the number if there is one, in the key.
    #[inline(never)]
    pub(crate) fn on(self, device: &Device<'_>) -> Self {
        let name = device.best();
        let key = match (self.key.as_str(), name.as_deref()) {
            ("", name) => name.unwrap_or_default().to_owned(),
            (number, None) => number.to_owned(),
            (number, Some(name)) => [number, "/", name].concat(),
        };
        self.key(key)
            .maybe("uuid", device.uuid)
            .maybe("pci", device.pci)
            .maybe("gpu_index", device.index)
            .maybe("device", device.id)
    }

    fn blame(&self) -> Blame {
        match (self.category, self.action) {
            (Category::UserError, _) => Blame::Workload,
            // A number that the table does not know may be anybody's, and so may a full cluster.
            (Category::Fault | Category::Capacity, Action::None) => Blame::Unknown,
            _ => Blame::Platform,
        }
    }

    /// The findings that it makes: one, or one for each code that ends.
    pub(crate) fn into_findings(self, event: u32) -> impl Iterator<Item = Finding> {
        let blame = self.blame();
        let first = Finding {
            category: self.category.as_word().to_owned(),
            code: self.code.to_owned(),
            key: self.key,
            severity: self.severity,
            status: self.status,
            blame,
            message: self.message,
            evidence: vec![event],
            attributes: self.attributes,
        };
        let others: Vec<_> = self
            .ends
            .iter()
            .filter(|code| **code != first.code)
            .map(|code| Finding {
                code: (*code).to_owned(),
                ..first.clone()
            })
            .collect();
        std::iter::once(first).chain(others)
    }
}

/// What names a device, as far as the text does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Device<'a> {
    pub(crate) uuid: Option<&'a str>,
    pub(crate) pci: Option<&'a str>,
    pub(crate) index: Option<u32>,
    /// Of the plugin, for example `nvidia0`.
    pub(crate) id: Option<&'a str>,
}

impl Device<'_> {
    /// The best of its names.
    pub(crate) fn best(&self) -> Option<String> {
        let name = self.uuid.or(self.pci).map(str::to_owned);
        name.or_else(|| self.index.map(|it| it.to_string()))
            .or_else(|| self.id.map(str::to_owned))
    }
}

/// An Xid as a line tells it, before anything is made of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Xid<'a> {
    pub(crate) number: u32,
    /// For a 45: what came before it.
    pub(crate) root: Option<u32>,
    /// Whether the line calls it fatal, where it says.
    pub(crate) fatal: Option<bool>,
    /// Whether the line asks for a reset of the device.
    pub(crate) wants_reset: bool,
    /// For a 154: the action that is needed now.
    pub(crate) recovery: Option<&'a str>,
    /// The action that the producer recommends; it decides where the number alone does not.
    pub(crate) advised: Option<Action>,
}

impl Xid<'_> {
    pub(crate) fn new(number: u32) -> Self {
        Self {
            number,
            ..Self::default()
        }
    }

    /// What follows from it, by the tables and by what the operator says.
    pub(crate) fn into_statement(self, settings: &Settings, device: &Device<'_>) -> Statement {
        let number = self.root.unwrap_or(self.number);
        let row = table::xid(number);
        let said = settings.xid(number);
        let by_row = match row.remedy {
            Remedy::Known(action) if self.wants_reset && !action.leaves() => Action::Reset,
            Remedy::Known(action) => action,
            Remedy::ByWord => match self.fatal {
                Some(true) => Action::Reset,
                Some(false) => Action::None,
                // Better one reset too many than a link that stays broken.
                None => self.advised.unwrap_or(Action::Reset),
            },
            Remedy::ByText => match self.recovery {
                Some("GPU Reset Required") => Action::Reset,
                Some("None") | None => Action::None,
                Some(_) => Action::Drain,
            },
        };
        let action = said.action.unwrap_or(by_row);
        let level = said.level.unwrap_or(match row.remedy {
            Remedy::Known(_) if !action.leaves() => row.level,
            _ if action.leaves() => Level::Critical,
            _ => row.level,
        });
        let category = match (level, action) {
            (Level::User, _) | (_, Action::FixUser) => Category::UserError,
            _ => Category::Fault,
        };

        let mut message = ["Xid ", &number.to_string()].concat();
        if let Some(name) = row.name {
            message = [&message, " (", name, ")"].concat();
        }
        if let Some(recovery) = self.recovery {
            message = [&message, ": ", recovery].concat();
        }
        if let Some(name) = device.best() {
            message = [&message, " on ", &name].concat();
        }
        let statement = Statement::new(category, row.code, action, message)
            .key(number.to_string())
            .attribute("xid", self.number)
            .maybe("root_xid", self.root)
            .attribute("severity", level.as_word())
            .maybe("name", row.name)
            .maybe("fatal", self.fatal)
            .maybe("recovery", self.recovery)
            .on(device);
        let statement = Statement {
            severity: severity(category, level),
            ..statement
        };
        if self.recovery == Some("None") {
            statement.cleared()
        } else {
            statement
        }
    }
}

/// An `SXid` as a line tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sxid {
    pub(crate) number: u32,
    /// Whether the line calls it fatal, where it says.
    pub(crate) fatal: Option<bool>,
}

impl Sxid {
    /// What follows from it, by the tables and by what the operator says.
    pub(crate) fn into_statement(self, settings: &Settings, device: &Device<'_>) -> Statement {
        let row = table::sxid(self.number);
        let said = settings.sxid(self.number);
        let ends_work = self.fatal.or(row.map(|(is_fatal, _)| is_fatal));
        let by_row = if ends_work == Some(true) {
            Action::RetryElsewhere
        } else {
            Action::None
        };
        let action = said.action.unwrap_or(by_row);
        let level = said.level.unwrap_or(if action.leaves() {
            Level::Critical
        } else {
            Level::Warn
        });
        let category = match (level, action) {
            (Level::User, _) | (_, Action::FixUser) => Category::UserError,
            _ => Category::Fault,
        };
        let name = row.map(|(_, name)| name);
        let mut message = ["SXid ", &self.number.to_string()].concat();
        if let Some(name) = name {
            message = [&message, " (", name, ")"].concat();
        }
        if let Some(name) = device.best() {
            message = [&message, " on ", &name].concat();
        }
        let statement = Statement::new(category, code::NVLINK, action, message)
            .key(self.number.to_string())
            .attribute("sxid", self.number)
            .attribute("severity", level.as_word())
            .maybe("name", name)
            .maybe("fatal", self.fatal)
            .on(device);
        Statement {
            severity: severity(category, level),
            ..statement
        }
    }
}

/// How bad a level is in a finding.
pub(crate) fn severity(category: Category, level: Level) -> Severity {
    match level {
        _ if category == Category::UserError => Severity::Info,
        Level::User | Level::Info => Severity::Info,
        Level::Warn => Severity::Warning,
        Level::Critical => Severity::Critical,
    }
}
