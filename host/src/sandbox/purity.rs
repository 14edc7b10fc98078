//! Whether a plugin is the pure function that the contract says it is.
//!
//! It is asked about the same subjects once more, in another order and in other batches, each in a
//! fresh instance: what differs rests on what stands beside a subject and not on the subject. That
//! would make outcomes depend on when batches happen to run, and no replay could repeat them.
//! Random numbers and clocks it cannot have; what is left is to peek at its neighbours.
//!
//! What bounds it: three calls, none of which begins after the given time. It changes nothing, and
//! what the guest logs meanwhile is dropped, since it has logged it before.

use std::time::Instant;

use super::{Guest, call::Spent};
use crate::{
    interner::Interner,
    outcome::{Finding, Outcome, Verdict},
    reason::Reason,
    subject::{Subject, SubjectKey},
    text::{Visible, cut},
};

/// That a plugin answered otherwise when it was asked again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Impurity {
    /// About whom.
    pub subject: SubjectKey,
    /// How it was asked, and what differed: bounded, on one line.
    pub what: String,
}

/// Bytes of what is said of a difference.
const WHAT_MAX_BYTES: usize = 400;

/// Bytes that are shown of a text that differs.
const SHOWN_MAX_BYTES: usize = 80;

impl Guest {
    /// Asks about these subjects again, of which it said this, and tells the first thing that it
    /// says otherwise. Of a single subject nothing can be told.
    #[must_use]
    pub fn impurity(&self, said: &[(&Subject, &Outcome)], until: Instant) -> Option<Impurity> {
        if said.len() < 2 {
            return None;
        }
        let interner = Interner::default();
        let backwards: Vec<_> = said.iter().rev().copied().collect();
        let (first, second) = said.split_at(said.len() / 2);
        let ways = [
            ("in another order", &*backwards),
            ("in a smaller batch", first),
            ("in a smaller batch", second),
        ];
        for (how, batch) in ways {
            if until <= Instant::now() {
                return None;
            }
            let found = |subject: &Subject, what: &str| {
                Some(Impurity {
                    subject: subject.key.clone(),
                    what: cut(&format!("{how} {what}"), WHAT_MAX_BYTES).to_owned(),
                })
            };
            let subjects: Vec<_> = batch.iter().map(|(it, _)| (*it).clone()).collect();
            let answers = match self.classify_again(&subjects, &interner, &mut Spent::default()) {
                Ok(answers) => answers,
                Err(failure) if may_be_the_hosts(failure.reason) => continue,
                Err(failure) => {
                    return found(batch.first()?.0, &format!("the call failed: {failure}"));
                }
            };
            for ((subject, was), is) in batch.iter().zip(answers) {
                let what = match is {
                    Ok(is) => difference(was, &is),
                    Err(failure) => Some(format!("it was no answer: {failure}")),
                };
                if let Some(what) = what {
                    return found(subject, &what);
                }
            }
        }
        None
    }
}

/// Whether a call may end so though the guest is pure: on another day its time would have
/// sufficed, and in another batch its share of the fuel.
fn may_be_the_hosts(reason: Reason) -> bool {
    matches!(reason, Reason::Deadline | Reason::OutOfFuel)
}

/// The first thing in which two outcomes differ.
fn difference(was: &Outcome, is: &Outcome) -> Option<String> {
    if was == is {
        return None;
    }
    let named = |it: &Finding| {
        let identity = &it.identity;
        let key = if identity.key.is_empty() { "" } else { " " };
        shown(&format!("{}{key}{}", identity.code, identity.key))
    };
    let by_identity = |of: &Outcome, it: &Finding| {
        let mut findings = of.findings.iter();
        findings
            .find(|other| other.identity == it.identity)
            .cloned()
    };
    for it in &was.findings {
        let Some(other) = by_identity(is, it) else {
            return Some(format!("it does not find {}", named(it)));
        };
        if let Some(what) = in_finding(it, &other) {
            return Some(format!("{what} of {}", named(it)));
        }
    }
    if let Some(it) = is.findings.iter().find(|it| by_identity(was, it).is_none()) {
        return Some(format!("it finds {}, too", named(it)));
    }
    if was.findings != is.findings {
        return Some("its findings have another order".to_owned());
    }
    if was.additional_reasons != is.additional_reasons {
        let lines = was.additional_reasons.iter().zip(&is.additional_reasons);
        let differs = lines.into_iter().find(|(was, is)| was != is);
        let [n_was, n_is] = [was, is].map(|it| it.additional_reasons.len());
        return Some(match differs {
            Some((was, is)) if was.text() != is.text() => {
                changed("an additional reason", was.text(), is.text())
            }
            Some((was, is)) if was.at != is.at => changed(
                "the time of an additional reason",
                &was.at.to_string(),
                &is.at.to_string(),
            ),
            Some(_) => "an additional reason tells of another Event, or more of it".to_owned(),
            None => format!("it has {n_is} additional reasons, and had {n_was}"),
        });
    }
    let code = |it: &Option<Box<Verdict>>| {
        let code = it.as_ref().map_or("none", |it| &it.code);
        code.to_owned()
    };
    if was.verdict != is.verdict {
        let [was, is] = [was, is].map(|it| code(&it.verdict));
        return Some(changed("the verdict", &was, &is));
    }
    Some("its attributes are others".to_owned())
}

fn in_finding(was: &Finding, is: &Finding) -> Option<String> {
    let words = |it: &Finding| [it.severity.as_str(), it.status.as_str(), it.blame.as_str()];
    let names = ["the severity", "the status", "the blame"];
    let mut words = names.iter().zip(words(was).into_iter().zip(words(is)));
    if let Some((name, (was, is))) = words.find(|(_, (was, is))| was != is) {
        return Some(changed(name, was, is));
    }
    if was.message != is.message {
        return Some(changed("the message", &was.message, &is.message));
    }
    if was.attributes != is.attributes {
        return Some("the attributes are others".to_owned());
    }
    (was.evidence != is.evidence).then(|| "the evidence is another".to_owned())
}

fn changed(what: &str, was: &str, is: &str) -> String {
    format!("{what} is `{}`, and was `{}`", shown(is), shown(was))
}

fn shown(text: &str) -> String {
    Visible(cut(text, SHOWN_MAX_BYTES)).to_string()
}
