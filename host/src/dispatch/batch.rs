//! One batch, come what may: each of its subjects gets a result.
//!
//! A batch that fails is halved until the subjects that make it fail are alone,
//! so that one poisonous subject costs one outcome and not those beside it. That
//! is bounded: fuel makes each call short, and after two deadlines in all the
//! subjects that were not tried alone share the failure.

use std::time::Instant;

use super::Results;
use crate::{
    outcome::Outcome,
    reason::CallFailure,
    sandbox::{Guest, Spent},
    subject::Subject,
};

/// Classifies the subjects. One with neither an event of interest nor a failure
/// gets the empty outcome without a call.
pub(super) fn classify(guest: &Guest, subjects: Vec<Subject>) -> (Results, Spent) {
    let is_asked = |it: &Subject| !it.events.is_empty() || it.failure.is_some();
    let (asked, silent): (Vec<_>, Vec<_>) = subjects.into_iter().partition(is_asked);
    let mut outcomes = Vec::with_capacity(asked.len());
    let until = Instant::now() + 2 * guest.deadline(&asked);
    let mut spent = Spent::default();
    halve(guest, &asked, until, &mut outcomes, &mut spent);
    let silent = silent.into_iter().map(|it| (it, Ok(Outcome::default())));
    let results = asked.into_iter().zip(outcomes).chain(silent).collect();
    (results, spent)
}

fn halve(
    guest: &Guest,
    subjects: &[Subject],
    until: Instant,
    outcomes: &mut Vec<Result<Outcome, CallFailure>>,
    spent: &mut Spent,
) {
    if subjects.is_empty() {
        return;
    }
    match guest.classify(subjects, spent) {
        Ok(of_each) => outcomes.extend(of_each),
        Err(failure) if subjects.len() == 1 => outcomes.push(Err(failure)),
        Err(mut failure) if until <= Instant::now() => {
            failure
                .message
                .push_str("; there was no time to find out which subject made it");
            outcomes.extend(subjects.iter().map(|_| Err(failure.clone())));
        }
        Err(_) => {
            let (first, second) = subjects.split_at(subjects.len() / 2);
            halve(guest, first, until, outcomes, spent);
            halve(guest, second, until, outcomes, spent);
        }
    }
}
