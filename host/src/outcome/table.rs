//! The outcome table: what is held of each subject, from each classifier.
//!
//! It outlives the records that it rests on, so a new outcome is merged into
//! what is held and never just assigned: a fault stays a fault when its Event is
//! gone and a harmless one comes.
//!
//! An outcome that holds no finding, additional reason, verdict or error is not
//! stored. Findings are few; additional reasons live and die with their records,
//! so what bounds the table is the store beside it and the limits on what one
//! call may say.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

use dashmap::{DashMap, Entry};

use super::{
    EndReason, Outcome, Provenance, Status,
    change::Change,
    merge::{self, Delta, Ended},
};
use crate::{
    reason::CallFailure,
    record::{EventRef, ObjectKey},
    store::Version,
    subject::{Subject, SubjectKey},
};

/// Counts the plugin sets of a process; a result of an older one is late.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Generation(pub u64);

/// What is held of one subject from one classifier.
#[derive(Clone, Debug)]
pub struct Held {
    /// Who said it.
    pub classifier: Arc<Provenance>,
    /// The API version of the object.
    pub api_version: Arc<str>,
    /// What is held to be so.
    pub outcome: Outcome,
    /// How the newest call failed, if it did: then `outcome` is the last good
    /// one.
    pub error: Option<CallFailure>,
    /// Whether there was a good one.
    pub ever_classified: bool,
    version: Version,
    generation: Generation,
    pub(super) cleared_for: Vec<Ended>,
}

impl Held {
    fn is_empty(&self) -> bool {
        self.error.is_none()
            && self.outcome.findings.is_empty()
            && self.outcome.additional_reasons.is_empty()
            && self.outcome.verdict.is_none()
    }
}

/// What is held of all subjects.
#[derive(Debug, Default)]
pub struct Outcomes {
    table: DashMap<SubjectKey, Vec<Held>>,
    /// How many there are; the table's own count takes all of its locks.
    n_subjects: AtomicUsize,
}

impl Outcomes {
    /// Merges what a classifier said of a subject. `None` if that changes
    /// nothing, or came too late: the subject or the plugin set is newer.
    #[must_use = "a change that nobody is told of is lost"]
    pub fn merge(
        &self,
        subject: &Subject,
        classifier: &Arc<Provenance>,
        generation: Generation,
        said: Result<Outcome, CallFailure>,
    ) -> Option<Change> {
        let mut delta = Delta::default();
        let entry = self.table.entry(subject.key.clone());
        let entry = entry.and_modify(|held| {
            if !held.iter().any(|it| it.classifier.name == classifier.name) {
                held.push(Held::new(subject, classifier));
            }
        });
        let mut all = match entry {
            Entry::Occupied(all) => all,
            Entry::Vacant(slot) => {
                self.n_subjects.fetch_add(1, Relaxed);
                slot.insert_entry(vec![Held::new(subject, classifier)])
            }
        };
        if let Some(held) = all
            .get_mut()
            .iter_mut()
            .find(|it| it.classifier.name == classifier.name)
            && held.version <= subject.version
            && held.generation <= generation
        {
            held.version = subject.version;
            held.generation = generation;
            held.classifier = Arc::clone(classifier);
            held.api_version = Arc::clone(&subject.api_version);
            match said {
                Ok(outcome) => {
                    held.error = None;
                    held.ever_classified = true;
                    delta = merge::merge(held, outcome, subject);
                }
                // A failed call ends nothing: what was last known stays.
                Err(failure) => held.error = Some(failure),
            }
        }
        all.get_mut().retain(|it| !it.is_empty());
        if all.get().is_empty() {
            all.remove();
            self.n_subjects.fetch_sub(1, Relaxed);
        }
        (!delta.is_empty()).then(|| Change {
            subject: subject.key.clone(),
            api_version: Arc::clone(&subject.api_version),
            classifier: Arc::clone(classifier),
            version: subject.version,
            delta,
        })
    }

    /// Whether anything is held of a subject from a classifier.
    #[must_use]
    pub fn holds(&self, subject: &SubjectKey, classifier: &Provenance) -> bool {
        self.table
            .get(subject)
            .is_some_and(|it| it.iter().any(|it| it.classifier.name == classifier.name))
    }

    /// Whether a finding of a subject that holds rests on an Event.
    #[must_use]
    pub fn rests_on(&self, subject: &SubjectKey, event: &EventRef) -> bool {
        self.table.get(subject).is_some_and(|all| {
            let mut findings = all.iter().flat_map(|it| &it.outcome.findings);
            findings.any(|it| {
                it.status == Status::Active && it.evidence.iter().any(|it| it.event == *event)
            })
        })
    }

    /// Notes that an Event's record is gone. Its additional reasons go with it,
    /// and so does a cleared finding once nothing of it is live. Findings that
    /// hold stay: that an Event expired says nothing about what it reported.
    pub fn event_gone(&self, subject: &SubjectKey, event: &EventRef) {
        let removed = self.table.remove_if_mut(subject, |_, all| {
            for held in all.iter_mut() {
                merge::event_gone(held, event);
            }
            all.retain(|it| !it.is_empty());
            all.is_empty()
        });
        if removed.is_some() {
            self.n_subjects.fetch_sub(1, Relaxed);
        }
    }

    /// Gives what is held of a subject without a uid to the one that turned out
    /// to be it, and says what thereby ends under the old key.
    #[must_use = "a change that nobody is told of is lost"]
    pub fn fold(&self, from: &SubjectKey, into: &SubjectKey) -> Vec<Change> {
        let Some((_, folded)) = self.table.remove(from) else {
            return Vec::new();
        };
        let changes = folded.iter().filter_map(|held| {
            let findings = held.outcome.findings.iter();
            let active = findings.filter(|it| it.status == Status::Active);
            let cleared: Vec<_> = active.map(|it| (it.clone(), EndReason::Folded)).collect();
            (!cleared.is_empty()).then(|| Change {
                subject: from.clone(),
                api_version: Arc::clone(&held.api_version),
                classifier: Arc::clone(&held.classifier),
                version: held.version,
                delta: Delta {
                    cleared,
                    ..Delta::default()
                },
            })
        });
        let changes = changes.collect();
        self.n_subjects.fetch_sub(1, Relaxed);
        let mut all = match self.table.entry(into.clone()) {
            Entry::Occupied(all) => all.into_ref(),
            Entry::Vacant(slot) => {
                self.n_subjects.fetch_add(1, Relaxed);
                slot.insert(Vec::new())
            }
        };
        for held in folded {
            match all
                .iter_mut()
                .find(|it| it.classifier.name == held.classifier.name)
            {
                Some(known) => merge::fold(known, held),
                None => all.push(held),
            }
        }
        changes
    }

    /// Gives back the room of what is held no more.
    pub fn shrink(&self) {
        self.table.shrink_to_fit();
    }

    /// How many subjects anything is held of.
    #[must_use]
    pub fn n_subjects(&self) -> usize {
        self.n_subjects.load(Relaxed)
    }

    /// Looks at all that is held, a subject at a time. `look` must not call the
    /// table.
    pub fn for_each(&self, mut look: impl FnMut(&SubjectKey, &[Held])) {
        for it in &self.table {
            look(it.key(), it.value());
        }
    }

    /// What is held of a subject.
    #[must_use]
    pub fn held(&self, subject: &SubjectKey) -> Vec<Held> {
        self.table
            .get(subject)
            .map_or_else(Vec::new, |it| it.clone())
    }

    /// The objects that anything is held of, in order. Walks the whole table.
    #[must_use]
    pub fn objects(&self) -> Vec<ObjectKey> {
        let mut objects: Vec<_> = self
            .table
            .iter()
            .map(|it| it.key().object.clone())
            .collect();
        objects.sort();
        objects.dedup();
        objects
    }

    /// Gives away what is held of a subject, by classifier.
    #[must_use = "what is taken is held no more"]
    pub fn take(&self, subject: &SubjectKey) -> Vec<Held> {
        let Some((_, mut held)) = self.table.remove(subject) else {
            return Vec::new();
        };
        self.n_subjects.fetch_sub(1, Relaxed);
        held.sort_by(|a, b| a.classifier.name.cmp(&b.classifier.name));
        held
    }

    /// Gives away all that is held, by object, uid and classifier.
    #[must_use = "what is taken is held no more"]
    pub fn take_all(&self) -> Vec<(SubjectKey, Vec<Held>)> {
        let mut subjects: Vec<_> = self.table.iter().map(|it| it.key().clone()).collect();
        subjects.sort();
        let held = subjects.into_iter().map(|it| {
            let held = self.take(&it);
            (it, held)
        });
        held.collect()
    }
}

impl Held {
    fn new(subject: &Subject, classifier: &Arc<Provenance>) -> Self {
        Self {
            classifier: Arc::clone(classifier),
            api_version: Arc::clone(&subject.api_version),
            outcome: Outcome::default(),
            error: None,
            ever_classified: false,
            version: Version::default(),
            generation: Generation::default(),
            cleared_for: Vec::new(),
        }
    }
}
