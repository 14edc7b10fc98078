//! A guest's answer, checked against the contract and the limits.
//!
//! The types have been checked by then; what is checked here is what types
//! cannot say: indices that exist, identities that come once, codes that were
//! declared. One subject's answer that breaks a rule costs that subject only.

use std::{collections::BTreeSet, sync::Arc};

use super::{bindings::types, description::Description, limits::Limits};
use crate::{
    interner::Interner,
    outcome::{
        AdditionalReason, Attributes, Blame, Evidence, Finding, Identity, Outcome, Retry, Severity,
        Status, Verdict,
    },
    reason::{CallFailure, Reason},
    record::Record,
    subject::Subject,
    text::{Visible, cut},
};

/// The outcome of a subject.
///
/// # Errors
///
/// The first rule that it breaks.
pub(super) fn outcome(
    raw: types::Outcome,
    subject: &Subject,
    description: &Description,
    limits: &Limits,
    interner: &Interner,
) -> Result<Outcome, CallFailure> {
    let check = Check {
        subject,
        description,
        limits,
        interner,
    };
    let types::Outcome {
        findings,
        additional_reasons,
        verdict,
        attributes,
    } = raw;
    at_most("findings", findings.len(), limits.findings_per_subject)?;
    let n_events = subject.events.len().max(1);
    at_most(
        "additional reasons",
        additional_reasons.len(),
        limits.additional_reasons_per_event.saturating_mul(n_events),
    )?;

    let findings: Vec<_> = findings
        .into_iter()
        .map(|it| check.finding(it))
        .collect::<Result<_, _>>()?;
    let mut identities = BTreeSet::new();
    if let Some(twice) = findings.iter().find(|it| !identities.insert(&it.identity)) {
        let Identity {
            category,
            code,
            key,
        } = &twice.identity;
        return Err(violation(format!(
            "two findings are {category}, {code}, {:?}; fold them into one",
            &**key
        )));
    }
    let reasons = additional_reasons
        .into_iter()
        .map(|it| check.additional_reason(it).map(Arc::new));
    let additional_reasons = reasons.collect::<Result<_, _>>()?;
    let verdict = verdict.map(|it| check.verdict(it, &findings)).transpose()?;
    let attributes = check.attributes("the outcome", &attributes)?;
    Ok(Outcome {
        findings,
        additional_reasons,
        verdict: verdict.map(Box::new),
        attributes,
    })
}

fn violation(message: String) -> CallFailure {
    CallFailure::new(Reason::ContractViolation, message)
}

/// What an answer is held against.
struct Check<'a> {
    subject: &'a Subject,
    description: &'a Description,
    limits: &'a Limits,
    interner: &'a Interner,
}

impl Check<'_> {
    fn finding(&self, raw: types::Finding) -> Result<Finding, CallFailure> {
        let types::Finding {
            category,
            code,
            key,
            severity,
            status,
            blame,
            message,
            evidence,
            attributes,
        } = raw;
        let status = match status {
            types::Status::Active => Status::Active,
            types::Status::Cleared => Status::Cleared,
        };
        if !self.description.categories.contains(&category) {
            return Err(undeclared("category", "categories", &category));
        }
        self.declared_code(&code, status == Status::Cleared)?;
        self.text("a finding's key", &key)?;
        self.text("a finding's message", &message)?;
        if evidence.is_empty() {
            return Err(violation(format!("the finding {code} has no evidence")));
        }
        let evidence = evidence.into_iter().map(|idx| {
            let is_own = self.subject.about(idx as usize).is_none();
            Ok(Evidence::of(self.event(idx)?, is_own))
        });
        let evidence = evidence.collect::<Result<_, CallFailure>>()?;
        Ok(Finding {
            attributes: self.attributes("a finding", &attributes)?,
            identity: Identity {
                category: category.into(),
                code: code.into(),
                key: key.into(),
            },
            severity: match severity {
                types::Severity::Info => Severity::Info,
                types::Severity::Warning => Severity::Warning,
                types::Severity::Critical => Severity::Critical,
            },
            status,
            blame: lift_blame(blame),
            message: message.into(),
            evidence,
        })
    }

    fn additional_reason(
        &self,
        raw: types::AdditionalReason,
    ) -> Result<AdditionalReason, CallFailure> {
        let types::AdditionalReason {
            text,
            at,
            event,
            attributes,
        } = raw;
        self.text("an additional reason's text", &text)?;
        let of = "an additional reason";
        let pairs = self.pairs(&attributes)?;
        // Most say the same as those of a thousand other Events.
        let attributes = Attributes::shared(pairs, self.interner).map_err(|key| twice(of, key))?;
        let event = self.event(event)?;
        Ok(AdditionalReason::new(text.into(), at, event, attributes))
    }

    fn verdict(&self, raw: types::Verdict, findings: &[Finding]) -> Result<Verdict, CallFailure> {
        let types::Verdict {
            code,
            message,
            blame,
            retry,
            avoid,
            finding,
            attributes,
        } = raw;
        let Some(failure) = &self.subject.failure else {
            return Err(violation(
                "a verdict on a subject without a failure".to_owned(),
            ));
        };
        if *code != *failure.code {
            self.declared_code(&code, false)?;
        }
        self.text("a verdict's message", &message)?;
        at_most("places to avoid", avoid.len(), self.limits.attributes)?;
        for it in &avoid {
            self.text("a place to avoid", &it.key)?;
            self.text("a place to avoid", &it.value)?;
        }
        let finding = finding.map(|idx| {
            let it = findings.get(idx as usize);
            it.map(|it| it.identity.clone()).ok_or_else(|| {
                violation(format!(
                    "the verdict names finding {idx} of {}",
                    findings.len()
                ))
            })
        });
        Ok(Verdict {
            failure_code: failure.code.clone(),
            failure_at: failure.at,
            code: code.into(),
            message: message.into(),
            blame: lift_blame(blame),
            retry: match retry {
                types::Retry::NoOpinion => Retry::NoOpinion,
                types::Retry::NotAtAll => Retry::NotAtAll,
                types::Retry::SamePlace => Retry::SamePlace,
                types::Retry::Elsewhere => Retry::Elsewhere,
            },
            avoid: avoid
                .into_iter()
                .map(|it| (it.key.into(), it.value.into()))
                .collect(),
            finding: finding.transpose()?,
            attributes: self.attributes("the verdict", &attributes)?,
        })
    }

    fn event(&self, idx: u32) -> Result<&Record, CallFailure> {
        let events = &self.subject.events;
        events.get(idx as usize).ok_or_else(|| {
            violation(format!(
                "names event {idx}, and the subject has {}",
                events.len()
            ))
        })
    }

    fn declared_code(&self, code: &str, may_be_empty: bool) -> Result<(), CallFailure> {
        if self.description.codes.contains(code) || (may_be_empty && code.is_empty()) {
            return Ok(());
        }
        Err(undeclared("code", "codes", code))
    }

    fn attributes(
        &self,
        of: &str,
        raw: &[types::AttributeResult],
    ) -> Result<Attributes, CallFailure> {
        Attributes::new(self.pairs(raw)?).map_err(|key| twice(of, key))
    }

    fn pairs<'a>(
        &self,
        raw: &'a [types::AttributeResult],
    ) -> Result<impl Iterator<Item = (&'a str, &'a str)>, CallFailure> {
        at_most("attributes", raw.len(), self.limits.attributes)?;
        for it in raw {
            self.text("an attribute", &it.key)?;
            self.text("an attribute", &it.value)?;
        }
        Ok(raw.iter().map(|it| (&*it.key, &*it.value)))
    }

    fn text(&self, what: &str, text: &str) -> Result<(), CallFailure> {
        if text.len() <= self.limits.text_bytes {
            return Ok(());
        }
        Err(CallFailure::new(
            Reason::OutputLimit,
            format!(
                "{what} has {} bytes, the limit text-bytes is {}",
                text.len(),
                self.limits.text_bytes
            ),
        ))
    }
}

fn twice(of: &str, key: &str) -> CallFailure {
    let key = Visible(cut(key, 64)).to_string();
    violation(format!("{of} has the attribute {key:?} twice"))
}

fn undeclared(what: &str, list: &str, it: &str) -> CallFailure {
    let it = Visible(cut(it, 64)).to_string();
    violation(format!(
        "the {what} {it:?} is not among the {list} that it declares"
    ))
}

fn at_most(what: &str, n: usize, limit: usize) -> Result<(), CallFailure> {
    if n <= limit {
        return Ok(());
    }
    let message = format!("{n} {what}, the limit is {limit}");
    Err(CallFailure::new(Reason::OutputLimit, message))
}

fn lift_blame(it: types::Blame) -> Blame {
    match it {
        types::Blame::Unknown => Blame::Unknown,
        types::Blame::Workload => Blame::Workload,
        types::Blame::Platform => Blame::Platform,
    }
}
