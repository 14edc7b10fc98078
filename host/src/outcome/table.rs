//! The outcome table: what is held of each subject, from each classifier.
//!
//! It outlives the records that it rests on, so a new outcome is merged into
//! what is held and never just assigned: a fault stays a fault when its Event is
//! gone and a harmless one comes.
//!
//! An outcome that holds no finding, additional reason, verdict or error is not
//! stored. Additional reasons live and die with their records; findings and
//! verdicts outlive them, for a day. What bounds it all are its bytes
//! ([`Outcomes::bound`]): the namespace that holds most gives first, and what has
//! nothing but additional reasons goes before what has findings.

use super::{
    EndReason, Finding, Identity, Outcome, Provenance, Status,
    change::Change,
    merge::{self, Delta, Ended},
};
use crate::{
    files::{self, Files, Place, Seconds},
    interner::Interner,
    reason::CallFailure,
    record::{EventRef, ObjectKey},
    store::Version,
    subject::{Subject, SubjectKey},
    sync::{
        Arc, DashMap, Entry as Slot, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
};

/// Counts the plugin sets of a process. A plugin has that of the set that it was new in; what
/// an older version of it says is late once the newer has spoken.
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
    /// The findings that hold and of which nothing is live, and since when; and the
    /// verdict, as none of them, when nothing is that it rests on.
    retained: Vec<(Option<Identity>, Seconds)>,
}

/// How long a finding holds of which nothing is live any more: a day. What it was
/// about may be fixed, and nobody would have said so.
pub const RETAINED_FOR: Seconds = 24 * 60 * 60;

impl Held {
    fn is_empty(&self) -> bool {
        self.error.is_none()
            && self.outcome.findings.is_empty()
            && self.outcome.additional_reasons.is_empty()
            && self.outcome.verdict.is_none()
    }
}

impl files::Key for SubjectKey {
    fn namespace(&self) -> &str {
        self.object.namespace()
    }
}

/// What is held of one subject. Invariant: never empty.
#[derive(Debug)]
struct Entry {
    held: Vec<Held>,
    n_bytes: usize,
    lasts: bool,
    place: Place,
    of_namespace: Arc<AtomicUsize>,
}

/// What an entry costs beside what is held: itself, its slot in a table, of which between
/// seven and fourteen of sixteen are in use, its place in the files, where a leaf has
/// six of eleven in use, and an API version. The key of its object is the store's.
const ENTRY_BYTES: usize = size_of::<Entry>()
    + (size_of::<(SubjectKey, Box<Entry>)>() + 1) * 8 / 5
    + size_of::<(Place, SubjectKey)>() * 11 / 6
    + 10
    + API_VERSION_BYTES;

/// Counts, and a short text.
const API_VERSION_BYTES: usize = 24;

/// What is held of all subjects.
#[derive(Debug, Default)]
pub struct Outcomes {
    /// Behind a pointer: what is empty of a table is a third of it.
    table: DashMap<SubjectKey, Box<Entry>>,
    /// How many there are; the table's own count takes all of its locks.
    n_subjects: AtomicUsize,
    n_bytes: AtomicUsize,
    /// What it is by the clock of whoever owns this.
    now: AtomicU32,
    /// Subjects that have nothing but additional reasons, in the order in which they
    /// came. These two are locked within the lock of an entry's shard, never the
    /// other way round.
    passing: Mutex<Files<SubjectKey>>,
    /// Those with a finding, a verdict or an error: by when the first of their
    /// findings was last live, at the end those of which all is live.
    lasting: Mutex<Files<SubjectKey>>,
    dropped: [AtomicU64; 2],
    interner: Interner,
}

/// How many subjects had to leave the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// With nothing but additional reasons.
    pub passing: u64,
    /// With findings, a verdict or an error.
    pub lasting: u64,
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
        let mut entry = match self.table.entry(subject.key.clone()) {
            Slot::Occupied(entry) => entry,
            Slot::Vacant(slot) => {
                let entry = self.filed(&subject.key);
                slot.insert_entry(Box::new(entry))
            }
        };
        let all = &mut entry.get_mut().held;
        if !all.iter().any(|it| it.classifier.name == classifier.name) {
            // Most subjects have one or two, and there are many subjects.
            all.reserve_exact(1);
            all.push(Held::new(subject, classifier));
        }
        if let Some(held) = all
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
        if self.changed(&subject.key, entry.get_mut()) {
            entry.remove();
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
        self.table.get(subject).is_some_and(|it| {
            let mut held = it.held.iter();
            held.any(|it| it.classifier.name == classifier.name)
        })
    }

    /// Whether anything is held of a subject.
    #[must_use]
    pub fn holds_any(&self, subject: &SubjectKey) -> bool {
        self.table.get(subject).is_some()
    }

    /// Whether a finding of a subject that holds rests on an Event.
    #[must_use]
    pub fn rests_on(&self, subject: &SubjectKey, event: &EventRef) -> bool {
        self.table.get(subject).is_some_and(|all| {
            let mut findings = all.held.iter().flat_map(|it| &it.outcome.findings);
            findings.any(|it| {
                it.status == Status::Active && it.evidence.iter().any(|it| it.event == *event)
            })
        })
    }

    /// Notes that an Event's record is gone. Its additional reasons go with it,
    /// and so does a cleared finding once nothing of it is live. Findings that
    /// hold stay: that an Event expired says nothing about what it reported.
    pub fn event_gone(&self, subject: &SubjectKey, event: &EventRef) {
        self.table.remove_if_mut(subject, |_, entry| {
            for held in &mut entry.held {
                merge::event_gone(held, event);
            }
            self.changed(subject, entry)
        });
    }

    /// Notes that no record of a subject is left: it will not be asked about again, so
    /// that the last call failed is of no use to anyone.
    pub fn records_gone(&self, subject: &SubjectKey) {
        self.table.remove_if_mut(subject, |_, entry| {
            for held in &mut entry.held {
                held.error = None;
            }
            self.changed(subject, entry)
        });
    }

    /// Notes which Events have a record yet: some may have gone while what rests on
    /// them was in the making.
    pub fn look_again(&self, subject: &SubjectKey, is_live: impl Fn(&EventRef) -> bool) {
        self.table.remove_if_mut(subject, |_, entry| {
            for held in &mut entry.held {
                let mut gone: Vec<_> = merge::events(held).filter(|it| !is_live(it)).collect();
                gone.dedup();
                for it in &gone {
                    merge::event_gone(held, it);
                }
            }
            self.changed(subject, entry)
        });
    }

    /// Gives what is held of a subject without a uid to the one that turned out
    /// to be it, and says what thereby ends under the old key.
    #[must_use = "a change that nobody is told of is lost"]
    pub fn fold(&self, from: &SubjectKey, into: &SubjectKey) -> Vec<Change> {
        let folded = self.take_out(from);
        let ended = folded
            .iter()
            .filter_map(|it| it.end(from, EndReason::Folded, |_| true));
        let changes = ended.collect();
        if folded.is_empty() {
            return changes;
        }
        let mut entry = match self.table.entry(into.clone()) {
            Slot::Occupied(entry) => entry,
            Slot::Vacant(slot) => {
                let entry = self.filed(into);
                slot.insert_entry(Box::new(entry))
            }
        };
        let all = &mut entry.get_mut().held;
        for held in folded {
            match all
                .iter_mut()
                .find(|it| it.classifier.name == held.classifier.name)
            {
                Some(known) => merge::fold(known, held),
                None => all.push(held),
            }
        }
        if self.changed(into, entry.get_mut()) {
            entry.remove();
        }
        changes
    }

    /// Ends all that is held of a subject whose object was deleted, and says what that was.
    #[must_use = "a change that nobody is told of is lost"]
    pub fn object_gone(&self, subject: &SubjectKey) -> Vec<Change> {
        let held = self.take_out(subject);
        let ended = held.iter();
        let ended = ended.filter_map(|it| it.end(subject, EndReason::ObjectGone, |_| true));
        ended.collect()
    }

    /// The subjects of which anything is held that this classifier said before a generation.
    /// Walks the whole table: some milliseconds for a full one.
    #[must_use]
    pub fn held_from(&self, classifier: &str, before: Generation) -> Vec<SubjectKey> {
        let is_from = |it: &Held| *it.classifier.name == *classifier && it.generation < before;
        let entries = self.table.iter();
        let held = entries.filter(|it| it.held.iter().any(is_from));
        held.map(|it| it.key().clone()).collect()
    }

    /// Ends what a classifier said of a subject before a generation, since it is removed, and
    /// says what that was.
    #[must_use = "a change that nobody is told of is lost"]
    pub fn classifier_removed(
        &self,
        subject: &SubjectKey,
        classifier: &str,
        before: Generation,
    ) -> Option<Change> {
        let mut change = None;
        self.table.remove_if_mut(subject, |_, entry| {
            entry.held.retain(|it| {
                let goes = *it.classifier.name == *classifier && it.generation < before;
                if goes {
                    change = it.end(subject, EndReason::ClassifierRemoved, |_| true);
                }
                !goes
            });
            self.changed(subject, entry)
        });
        change
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
            look(it.key(), &it.held);
        }
    }

    /// What is held of a subject.
    #[must_use]
    pub fn held(&self, subject: &SubjectKey) -> Vec<Held> {
        self.table
            .get(subject)
            .map_or_else(Vec::new, |it| it.held.clone())
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
        let mut held = self.take_out(subject);
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

impl Outcomes {
    /// What all of it costs in memory, about.
    #[must_use]
    pub fn n_bytes(&self) -> usize {
        self.n_bytes.load(Relaxed) + self.interner.n_bytes()
    }

    /// Where what is said over and over is held once.
    #[must_use]
    pub fn interner(&self) -> &Interner {
        &self.interner
    }

    /// How many subjects had to leave so far.
    #[must_use]
    pub fn dropped(&self) -> Dropped {
        let [passing, lasting] = &self.dropped;
        Dropped {
            passing: passing.load(Relaxed),
            lasting: lasting.load(Relaxed),
        }
    }

    /// Says what time it is: from then on findings are without a live Event that lose
    /// their last.
    pub fn set_now(&self, now: Seconds) {
        self.now.store(now, Relaxed);
    }

    /// Lets go of subjects while there is more than so many bytes, of at most `max` of
    /// them. Says what ended by it, and whether there is more to let go of.
    #[must_use = "a change that nobody is told of is lost"]
    pub fn bound(&self, max_bytes: usize, max: usize) -> (Vec<Change>, bool) {
        let mut changes = Vec::new();
        for _ in 0..max {
            if self.n_bytes() <= max_bytes {
                return (changes, false);
            }
            let first = |lasts| self.files(lasts).first_of_largest(1).pop();
            let Some((_, subject)) = first(false).or_else(|| first(true)) else {
                return (changes, false);
            };
            let held = self.take_out(&subject);
            let lasts = held.iter().any(Held::lasts);
            self.dropped[usize::from(lasts)].fetch_add(1, Relaxed);
            let ended = held
                .iter()
                .filter_map(|it| it.end(&subject, EndReason::OverBytes, |_| true));
            changes.extend(ended);
        }
        (changes, max_bytes < self.n_bytes())
    }

    /// Ends the findings of which nothing was live since [`RETAINED_FOR`], of at most
    /// `max` subjects. Says whether there are more.
    #[must_use = "a change that nobody is told of is lost"]
    pub fn expire(&self, max: usize) -> (Vec<Change>, bool) {
        let Some(since) = self.now.load(Relaxed).checked_sub(RETAINED_FOR) else {
            return (Vec::new(), false);
        };
        let due = self.files(true).before(since, max);
        let mut changes = Vec::new();
        for subject in &due {
            self.table.remove_if_mut(subject, |_, entry| {
                for held in &mut entry.held {
                    let over: Vec<_> = held
                        .retained
                        .extract_if(.., |(_, at)| *at < since)
                        .map(|(identity, _)| identity)
                        .collect();
                    let is_over =
                        |it: &Finding| over.iter().flatten().any(|over| *over == it.identity);
                    changes.extend(held.end(subject, EndReason::Expired, is_over));
                    held.outcome.findings.retain(|it| !is_over(it));
                    if over.contains(&None) {
                        held.outcome.verdict = None;
                    }
                }
                self.changed(subject, entry)
            });
        }
        (changes, due.len() == max)
    }

    fn files(&self, lasts: bool) -> MutexGuard<'_, Files<SubjectKey>> {
        let files = if lasts { &self.lasting } else { &self.passing };
        files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An entry for a subject, with nothing in it yet.
    fn filed(&self, key: &SubjectKey) -> Entry {
        self.n_subjects.fetch_add(1, Relaxed);
        let (place, of_namespace) = self.files(false).file(key.clone(), 0);
        Entry {
            held: Vec::new(),
            n_bytes: 0,
            lasts: false,
            place,
            of_namespace,
        }
    }

    /// Counts and files an entry that is other than it was, under its lock. Says
    /// whether there is nothing in it any more: then it is to be removed.
    fn changed(&self, key: &SubjectKey, entry: &mut Entry) -> bool {
        let now = self.now.load(Relaxed);
        for held in &mut entry.held {
            held.note_retained(now);
        }
        entry.held.retain(|it| !it.is_empty());
        let is_empty = entry.held.is_empty();
        let n_bytes = if is_empty {
            0
        } else {
            ENTRY_BYTES + entry.held.iter().map(Held::n_bytes).sum::<usize>()
        };
        let lasts = entry.held.iter().any(Held::lasts);
        let retained = entry.held.iter().flat_map(|it| &it.retained);
        let second = match retained.map(|(_, at)| *at).min() {
            Some(at) => at,
            None if lasts => Seconds::MAX,
            None => 0,
        };
        let moves = (lasts, second) != (entry.lasts, entry.place.second);
        if is_empty || moves {
            self.count(entry, 0);
            self.files(entry.lasts).take(key, entry.place);
        }
        if is_empty {
            self.n_subjects.fetch_sub(1, Relaxed);
            return true;
        }
        if moves {
            let (place, of_namespace) = self.files(lasts).file(key.clone(), second);
            (entry.lasts, entry.place, entry.of_namespace) = (lasts, place, of_namespace);
        }
        self.count(entry, n_bytes);
        false
    }

    fn count(&self, entry: &mut Entry, n_bytes: usize) {
        for total in [&self.n_bytes, &*entry.of_namespace] {
            total.fetch_add(n_bytes, Relaxed);
            total.fetch_sub(entry.n_bytes, Relaxed);
        }
        entry.n_bytes = n_bytes;
    }

    fn take_out(&self, key: &SubjectKey) -> Vec<Held> {
        let mut held = Vec::new();
        self.table.remove_if_mut(key, |_, entry| {
            held = std::mem::take(&mut entry.held);
            self.changed(key, entry)
        });
        held
    }
}

impl Held {
    /// Whether it outlives the records.
    fn lasts(&self) -> bool {
        self.error.is_some() || !self.outcome.findings.is_empty() || self.outcome.verdict.is_some()
    }

    fn note_retained(&mut self, now: Seconds) {
        let findings = &self.outcome.findings;
        // As it is for most: what is retained was found, or judged.
        if findings.is_empty() && self.outcome.verdict.is_none() && self.retained.is_empty() {
            return;
        }
        let holds = |it: &&Finding| it.status == Status::Active;
        let rests_on_what_is_live = |id: &Identity| {
            let mut live = findings.iter().filter(holds).filter(|it| !it.is_retained());
            live.any(|it| it.identity == *id)
        };
        let verdict = self.outcome.verdict.as_deref();
        let verdict = verdict.filter(|it| !it.finding.as_ref().is_some_and(rests_on_what_is_live));
        let retained = findings.iter().filter(holds).filter(|it| it.is_retained());
        let retained = retained.map(|it| Some(&it.identity));
        let mut retained = retained.chain(verdict.map(|_| None)).peekable();
        if self.retained.is_empty() && retained.peek().is_none() {
            return;
        }
        let since = retained.map(|it| {
            let known = self.retained.iter().find(|(id, _)| id.as_ref() == it);
            (it.cloned(), known.map_or(now, |(_, at)| *at))
        });
        self.retained = since.collect();
    }

    /// That some of its findings hold no more.
    fn end(
        &self,
        subject: &SubjectKey,
        why: EndReason,
        is_over: impl Fn(&Finding) -> bool,
    ) -> Option<Change> {
        let findings = self.outcome.findings.iter();
        let over = findings.filter(|it| it.status == Status::Active && is_over(it));
        let cleared: Vec<_> = over.map(|it| (it.clone(), why)).collect();
        (!cleared.is_empty()).then(|| Change {
            subject: subject.clone(),
            api_version: Arc::clone(&self.api_version),
            classifier: Arc::clone(&self.classifier),
            version: self.version,
            delta: Delta {
                cleared,
                ..Delta::default()
            },
        })
    }

    fn n_bytes(&self) -> usize {
        let ended = self.cleared_for.iter().map(Ended::n_bytes);
        let error = self.error.iter().map(|it| it.message.len());
        size_of::<Self>()
            + self.outcome.n_bytes()
            + ended.sum::<usize>()
            + error.sum::<usize>()
            + self.retained.len() * size_of::<(Option<Identity>, Seconds)>()
    }

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
            retained: Vec::new(),
        }
    }
}
