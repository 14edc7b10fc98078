//! One batch, come what may: each of its subjects gets a result.
//!
//! A batch that fails is halved until the subjects that make it fail are alone,
//! so that one poisonous subject costs one outcome and not those beside it. That
//! is bounded: fuel makes each call short, and after two deadlines in all the
//! subjects that were not tried alone share the failure. Within the same time a batch that is a
//! sample is asked about again.

use std::time::Instant;

use super::Results;
use crate::{
    interner::Interner,
    outcome::Outcome,
    reason::CallFailure,
    sandbox::{Guest, Impurity, Spent},
    subject::Subject,
};

/// What came of a batch.
pub(super) struct Answer {
    pub(super) results: Results,
    pub(super) spent: Spent,
    /// If it was asked again: whether it said otherwise.
    pub(super) again: Option<Result<(), Impurity>>,
}

/// Classifies the subjects. One with neither an event of interest nor a failure
/// gets the empty outcome without a call.
pub(super) fn classify(
    guest: &Guest,
    interner: &Interner,
    subjects: Vec<Subject>,
    is_sample: bool,
) -> Answer {
    let (asked, silent): (Vec<_>, Vec<_>) = subjects.into_iter().partition(is_asked);
    let mut classified = Classified {
        guest,
        interner,
        until: Instant::now() + 2 * guest.deadline(&asked),
        outcomes: Vec::with_capacity(asked.len()),
        spent: Spent::default(),
    };
    classified.halve(&asked);
    let Classified {
        outcomes,
        spent,
        until,
        ..
    } = classified;
    let again = if is_sample {
        let said = asked.iter().zip(&outcomes);
        let said = said.filter_map(|(it, said)| Some((it, said.as_ref().ok()?)));
        let said: Vec<_> = said.collect();
        // Of one, nothing can be told.
        (1 < said.len()).then(|| guest.impurity(&said, until).map_or(Ok(()), Err))
    } else {
        None
    };
    let silent = silent.into_iter().map(|it| (it, Ok(Outcome::default())));
    let results = asked.into_iter().zip(outcomes).chain(silent).collect();
    Answer {
        results,
        spent,
        again,
    }
}

/// Whether a plugin has anything to say of it.
pub(super) fn is_asked(subject: &Subject) -> bool {
    !subject.events.is_empty() || subject.failure.is_some()
}

/// What of a batch is classified.
struct Classified<'a> {
    guest: &'a Guest,
    interner: &'a Interner,
    until: Instant,
    outcomes: Vec<Result<Outcome, CallFailure>>,
    spent: Spent,
}

impl Classified<'_> {
    fn halve(&mut self, subjects: &[Subject]) {
        if subjects.is_empty() {
            return;
        }
        match self
            .guest
            .classify(subjects, self.interner, &mut self.spent)
        {
            Ok(of_each) => self.outcomes.extend(of_each),
            Err(failure) if subjects.len() == 1 => self.outcomes.push(Err(failure)),
            Err(mut failure) if self.until <= Instant::now() => {
                failure
                    .message
                    .push_str("; there was no time to find out which subject made it");
                let failed = subjects.iter().map(|_| Err(failure.clone()));
                self.outcomes.extend(failed);
            }
            Err(_) => {
                let (first, second) = subjects.split_at(subjects.len() / 2);
                self.halve(first);
                self.halve(second);
            }
        }
    }
}
