//! Whether a plugin is to be called at all.
//!
//! A plugin whose calls fail again and again is left alone for a while, so that the others and
//! the processor are not its victims: it is quarantined. Then one batch is tried; if that is
//! well the plugin is, and if not the pause doubles. What it has yet to classify waits, and is
//! bounded by the store. One poisonous subject is no reason, however often it comes: several
//! subjects have to fail. Another version of the plugin begins anew.
//!
//! What bounds it: [`WINDOW`] batches. It stops no call, and knows no time but that it is told.

use std::{
    collections::{BTreeSet, VecDeque},
    hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher},
};

use super::Results;
use crate::{reason::Reason, store::Seconds};

/// How many batches are remembered.
pub const WINDOW: usize = 16;

/// How many of these have to be bad.
pub const BAD_MAX: usize = 8;

/// On how many subjects they have to have failed.
pub const SUBJECTS_MIN: usize = 4;

/// How long a plugin is left alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pauses {
    /// At first.
    pub first: Seconds,
    /// At most.
    pub longest: Seconds,
}

impl Default for Pauses {
    fn default() -> Self {
        Self {
            first: 10,
            longest: 10 * 60,
        }
    }
}

/// A batch that is back.
#[derive(Debug)]
struct Batch {
    /// Why it was bad, if it was.
    bad: Option<Reason>,
    /// A subject that it was bad for, by its hash.
    subject: u64,
}

/// Of one plugin.
#[derive(Debug, Default)]
pub(super) struct Health {
    window: VecDeque<Batch>,
    quarantine: Option<Quarantine>,
}

#[derive(Debug)]
struct Quarantine {
    reason: Reason,
    pause: Seconds,
    until: Seconds,
    is_probed: bool,
}

/// Whether the guest is to blame, or what it was given may be.
fn is_crash(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::Panic
            | Reason::Trap
            | Reason::StackOverflow
            | Reason::OutOfFuel
            | Reason::Deadline
            | Reason::MemoryLimit
            | Reason::OutputLimit
            | Reason::BadOutput
            | Reason::InstantiateFailed
    )
}

impl Health {
    /// Whether it may be given a batch now.
    pub(super) fn may_be_asked(&self, now: Seconds) -> bool {
        let quarantine = self.quarantine.as_ref();
        quarantine.is_none_or(|it| it.until <= now && !it.is_probed)
    }

    /// It is given one.
    pub(super) fn begun(&mut self) {
        if let Some(it) = &mut self.quarantine {
            it.is_probed = true;
        }
    }

    /// Why it is quarantined, if it is.
    pub(super) fn quarantine(&self) -> Option<Reason> {
        self.quarantine.as_ref().map(|it| it.reason)
    }

    /// A batch is back.
    pub(super) fn landed(&mut self, results: &Results, now: Seconds, pauses: Pauses) {
        let failed = results.iter().filter_map(|(subject, it)| {
            let failure = it.as_ref().err()?;
            is_crash(failure.reason).then_some((subject, failure.reason))
        });
        let failed: Vec<_> = failed.collect();
        // One that is bad for most of its subjects.
        let bad = failed.last().filter(|_| results.len() < 2 * failed.len());
        let hasher = BuildHasherDefault::<DefaultHasher>::default();
        let batch = Batch {
            bad: bad.map(|(_, reason)| *reason),
            subject: bad.map_or(0, |(subject, _)| hasher.hash_one(&subject.key)),
        };
        match (&mut self.quarantine, batch.bad) {
            (Some(it), Some(reason)) if it.is_probed => {
                it.reason = reason;
                it.pause = it.pause.saturating_mul(2).min(pauses.longest);
                it.until = now.saturating_add(it.pause);
                it.is_probed = false;
            }
            (Some(it), None) if it.is_probed => *self = Self::default(),
            // It was with a worker when the others failed.
            (Some(_), _) => {}
            (None, _) => self.note(batch, now, pauses),
        }
    }

    fn note(&mut self, batch: Batch, now: Seconds, pauses: Pauses) {
        if self.window.len() == WINDOW {
            self.window.pop_front();
        }
        let reason = batch.bad;
        self.window.push_back(batch);
        let bad = self.window.iter().filter(|it| it.bad.is_some());
        let subjects: BTreeSet<_> = bad.clone().map(|it| it.subject).collect();
        if let Some(reason) = reason
            && BAD_MAX <= bad.count()
            && SUBJECTS_MIN <= subjects.len()
        {
            self.quarantine = Some(Quarantine {
                reason,
                pause: pauses.first,
                until: now.saturating_add(pauses.first),
                is_probed: false,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        outcome::Outcome,
        reason::CallFailure,
        record::ObjectKey,
        subject::{Subject, SubjectKey},
    };

    /// A batch of one subject, that failed so or did not.
    fn batch(pod: usize, failed: Option<Reason>) -> Results {
        let key = SubjectKey {
            object: ObjectKey::new("ns", "Pod", &format!("p-{pod}")).unwrap(),
            uid: "u".into(),
        };
        let result = match failed {
            None => Ok(Outcome::default()),
            Some(reason) => Err(CallFailure::new(reason, "")),
        };
        vec![(Subject::without_records(key), result)]
    }

    const PAUSES: Pauses = Pauses {
        first: 10,
        longest: 600,
    };

    fn quarantined(at: Seconds) -> Health {
        let mut health = Health::default();
        for pod in 0..BAD_MAX {
            assert!(health.may_be_asked(at));
            health.landed(&batch(pod, Some(Reason::Trap)), at, PAUSES);
        }
        assert_eq!(health.quarantine(), Some(Reason::Trap));
        health
    }

    #[test]
    fn a_plugin_that_fails_on_many_subjects_is_left_alone_and_one_batch_fewer_is_not_enough() {
        let health = quarantined(5);
        assert!(!health.may_be_asked(5 + PAUSES.first - 1));
        assert!(health.may_be_asked(5 + PAUSES.first));

        let mut health = Health::default();
        for pod in 0..BAD_MAX - 1 {
            health.landed(&batch(pod, Some(Reason::Trap)), 5, PAUSES);
        }
        assert_eq!(health.quarantine(), None);
    }

    #[test]
    fn a_poisonous_subject_is_no_reason_however_often_it_comes_nor_is_an_error_of_the_guests_own() {
        let mut health = Health::default();
        for idx in 0..10 * WINDOW {
            health.landed(
                &batch(idx % (SUBJECTS_MIN - 1), Some(Reason::OutOfFuel)),
                5,
                PAUSES,
            );
            health.landed(&batch(idx, Some(Reason::GuestError)), 5, PAUSES);
        }
        assert_eq!(health.quarantine(), None);
    }

    #[test]
    fn failures_between_which_enough_goes_well_are_no_reason() {
        let mut health = Health::default();
        for idx in 0..10 * WINDOW {
            // Seven of sixteen.
            let is_bad = idx % WINDOW < BAD_MAX - 1;
            health.landed(&batch(idx, is_bad.then_some(Reason::Trap)), 5, PAUSES);
        }
        assert_eq!(health.quarantine(), None);
    }

    #[test]
    fn one_batch_is_tried_after_the_pause_which_doubles_up_to_its_bound_until_it_is_well() {
        let mut health = quarantined(0);
        let (mut now, mut pause) = (PAUSES.first, PAUSES.first);
        for _ in 0..10 {
            assert!(health.may_be_asked(now));
            health.begun();
            // One at a time.
            assert!(!health.may_be_asked(now));
            health.landed(&batch(0, Some(Reason::Deadline)), now, PAUSES);
            pause = (2 * pause).min(PAUSES.longest);
            assert!(!health.may_be_asked(now + pause - 1));
            now += pause;
        }
        assert_eq!(pause, PAUSES.longest);
        assert_eq!(health.quarantine(), Some(Reason::Deadline));
        health.begun();
        health.landed(&batch(0, None), now, PAUSES);
        assert_eq!(health.quarantine(), None);
        assert!(health.may_be_asked(now));
    }

    #[test]
    fn what_was_with_a_worker_when_it_was_quarantined_says_nothing_more() {
        let mut health = quarantined(0);
        health.landed(&batch(100, None), 1, PAUSES);
        health.landed(&batch(100, Some(Reason::Trap)), 2, PAUSES);
        assert!(health.quarantine().is_some());
        assert!(health.may_be_asked(PAUSES.first));
    }

    #[test]
    fn the_pauses_are_those_that_an_operator_decides() {
        let pauses = Pauses {
            first: 3,
            longest: 4,
        };
        let mut health = Health::default();
        for pod in 0..BAD_MAX {
            health.landed(&batch(pod, Some(Reason::Trap)), 0, pauses);
        }
        assert_eq!([2, 3].map(|it| health.may_be_asked(it)), [false, true]);
        health.begun();
        health.landed(&batch(0, Some(Reason::Trap)), 3, pauses);
        assert_eq!([6, 7].map(|it| health.may_be_asked(it)), [false, true]);
    }
}
