//! What a classifier says: findings, additional reasons, a verdict.
//!
//! The contract allows one finding an identity and one value a key; the constructors here see to both,
//! so that a loop over events gives a valid outcome.

use crate::{
    AdditionalReason, Attribute, Blame, Event, Failure, Finding, Outcome, Retry, Severity, Status,
    Verdict,
};

impl Finding {
    /// An active finding, nobody blamed, the only one of its code. It needs [`evidence`](Self::evidence).
    pub fn new(
        category: impl Into<String>,
        code: impl Into<String>,
        severity: Severity,
        message: impl Into<String>,
    ) -> Self {
        Self {
            category: category.into(),
            code: code.into(),
            key: String::new(),
            severity,
            status: Status::Active,
            blame: Blame::Unknown,
            message: message.into(),
            evidence: Vec::new(),
            attributes: Vec::new(),
        }
    }

    /// What tells it from others with this code, for example a device.
    #[must_use]
    pub fn key(self, key: impl Into<String>) -> Self {
        Self {
            key: key.into(),
            ..self
        }
    }

    /// Whose fault it is.
    #[must_use]
    pub fn blame(self, blame: Blame) -> Self {
        Self { blame, ..self }
    }

    /// It says that what it matches is over. See [`Status::Cleared`].
    #[must_use]
    pub fn cleared(self) -> Self {
        Self {
            status: Status::Cleared,
            ..self
        }
    }

    /// The subject's events that it rests on, by index.
    #[must_use]
    pub fn evidence(mut self, events: impl IntoIterator<Item = usize>) -> Self {
        self.evidence.extend(events.into_iter().map(to_index));
        self
    }

    /// Something extracted, for example `xid` and 79. A key that is there already gets the new value.
    #[must_use]
    pub fn attribute(mut self, key: impl Into<String>, value: impl ToString) -> Self {
        set(&mut self.attributes, key, value);
        self
    }

    /// The value of one of its attributes.
    #[must_use]
    pub fn find(&self, key: &str) -> Option<&str> {
        Attribute::find(&self.attributes, key)
    }

    fn is_the_same_as(&self, other: &Self) -> bool {
        self.key == other.key && self.code == other.code && self.category == other.category
    }
}

impl AdditionalReason {
    /// A line about one of the subject's events, by index: for example its note, when it was created.
    pub fn new(text: impl Into<String>, at: u64, event: usize) -> Self {
        Self {
            text: text.into(),
            at,
            event: to_index(event),
            attributes: Vec::new(),
        }
    }

    /// More about it. A key that is there already gets the new value.
    #[must_use]
    pub fn attribute(mut self, key: impl Into<String>, value: impl ToString) -> Self {
        set(&mut self.attributes, key, value);
        self
    }

    /// The value of one of its attributes.
    #[must_use]
    pub fn find(&self, key: &str) -> Option<&str> {
        Attribute::find(&self.attributes, key)
    }
}

impl Verdict {
    /// Whose fault a failure was, and whether to try again.
    pub fn new(
        code: impl Into<String>,
        message: impl Into<String>,
        blame: Blame,
        retry: Retry,
    ) -> Self {
        Self {
            code: code.into(),
            message: message.into(),
            blame,
            retry,
            avoid: Vec::new(),
            finding: None,
            attributes: Vec::new(),
        }
    }

    /// Where not to try again, for example `node` and its name. A key may be given more than once.
    #[must_use]
    pub fn avoid(mut self, key: impl Into<String>, value: impl ToString) -> Self {
        self.avoid.push(Attribute::new(key, value));
        self
    }

    /// The finding that decided, by its index in the outcome.
    #[must_use]
    pub fn finding(self, finding: usize) -> Self {
        Self {
            finding: Some(to_index(finding)),
            ..self
        }
    }

    /// More about it. A key that is there already gets the new value.
    #[must_use]
    pub fn attribute(mut self, key: impl Into<String>, value: impl ToString) -> Self {
        set(&mut self.attributes, key, value);
        self
    }
}

/// Nothing to say.
impl Default for Outcome {
    fn default() -> Self {
        Self {
            findings: Vec::new(),
            additional_reasons: Vec::new(),
            verdict: None,
            attributes: Vec::new(),
        }
    }
}

impl Outcome {
    /// Adds a finding. One of the same category, code and key that is there already is replaced, in its
    /// place, and the new one takes over its evidence: give findings in time order.
    pub fn fold(&mut self, mut finding: Finding) {
        match self
            .findings
            .iter_mut()
            .find(|before| before.is_the_same_as(&finding))
        {
            None => self.findings.push(finding),
            Some(before) => {
                let mut evidence = std::mem::take(&mut before.evidence);
                finding.evidence.retain(|event| !evidence.contains(event));
                evidence.append(&mut finding.evidence);
                *before = Finding {
                    evidence,
                    ..finding
                };
            }
        }
    }

    /// With this verdict on the subject's failure.
    #[must_use]
    pub fn verdict(self, verdict: Verdict) -> Self {
        Self {
            verdict: Some(verdict),
            ..self
        }
    }
}

impl From<Finding> for Outcome {
    fn from(finding: Finding) -> Self {
        Self {
            findings: vec![finding],
            ..Self::default()
        }
    }
}

/// Folds findings in time order, see [`Outcome::fold`].
impl FromIterator<Finding> for Outcome {
    fn from_iter<T: IntoIterator<Item = Finding>>(findings: T) -> Self {
        let mut outcome = Self::default();
        findings
            .into_iter()
            .for_each(|finding| outcome.fold(finding));
        outcome
    }
}

impl FromIterator<AdditionalReason> for Outcome {
    fn from_iter<T: IntoIterator<Item = AdditionalReason>>(reasons: T) -> Self {
        Self {
            additional_reasons: reasons.into_iter().collect(),
            ..Self::default()
        }
    }
}

impl Attribute {
    /// A key and its value as text.
    #[allow(
        clippy::needless_pass_by_value,
        reason = "`79` reads better than `&79`"
    )]
    pub fn new(key: impl Into<String>, value: impl ToString) -> Self {
        Self {
            key: key.into(),
            value: value.to_string(),
        }
    }

    /// The value of a key in a list, for example of `team` in `subject.labels`.
    #[must_use]
    pub fn find<'a>(attributes: &'a [Self], key: &str) -> Option<&'a str> {
        attributes
            .iter()
            .find(|it| it.key == key)
            .map(|it| it.value.as_str())
    }
}

impl Event {
    /// The value of one of its attributes.
    #[must_use]
    pub fn find(&self, key: &str) -> Option<&str> {
        Attribute::find(&self.attributes, key)
    }
}

impl Failure {
    /// The value of one of its attributes, for example of `exit-code`.
    #[must_use]
    pub fn find(&self, key: &str) -> Option<&str> {
        Attribute::find(&self.attributes, key)
    }
}

/// Keys are unique in a list: the last value stands.
pub(crate) fn set(list: &mut Vec<Attribute>, key: impl Into<String>, value: impl ToString) {
    let new = Attribute::new(key, value);
    match list.iter_mut().find(|it| it.key == new.key) {
        Some(it) => *it = new,
        None => list.push(new),
    }
}

/// What does not fit is out of range for the host as well, and refused there.
fn to_index(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(key: &str, message: &str, event: usize) -> Finding {
        Finding::new("gpu-fault", "GpuXidError", Severity::Warning, message)
            .key(key)
            .evidence([event])
    }

    #[test]
    fn findings_of_one_identity_fold_to_the_newest_with_all_evidence() {
        let outcome: Outcome = [
            finding("a", "first", 0),
            finding("b", "other", 1),
            finding("a", "second", 2),
        ]
        .into_iter()
        .collect();

        assert_eq!(outcome.findings.len(), 2);
        assert_eq!(outcome.findings[0].message, "second");
        assert_eq!(outcome.findings[0].evidence, [0, 2]);
        assert_eq!(outcome.findings[1].message, "other");
    }

    #[test]
    fn evidence_is_named_once() {
        let mut outcome = Outcome::from(finding("a", "first", 3));
        outcome.fold(finding("a", "second", 3).evidence([4]));
        assert_eq!(outcome.findings[0].evidence, [3, 4]);
    }

    #[test]
    fn a_key_holds_its_last_value() {
        let finding = finding("", "", 0).attribute("xid", 13).attribute("xid", 79);
        assert_eq!(finding.find("xid"), Some("79"));
        assert_eq!(finding.attributes.len(), 1);
        assert_eq!(finding.find("sxid"), None);
    }

    #[test]
    fn a_place_to_avoid_may_have_several_values() {
        let verdict = Verdict::new("GpuXidError", "", Blame::Platform, Retry::Elsewhere)
            .avoid("device", "GPU-1")
            .avoid("device", "GPU-2");
        assert_eq!(verdict.avoid.len(), 2);
    }
}
