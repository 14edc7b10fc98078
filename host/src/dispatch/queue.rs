//! What waits for one plugin, and what of it is in a call.
//!
//! It is the plugin's by name: a new version takes over what waits for the old one, and a
//! subject that is in a call of the old one waits for that to end, so that the newer of two
//! answers is always merged last. What waits because of a new version (the backlog) comes
//! behind what waits because it changed.
//!
//! What bounds it is the store, where a subject is once; pictures are bounded by
//! [`PICTURES_MAX`](super::PICTURES_MAX), and what is put into the backlog ahead of the
//! workers by [`BACKLOG_MAX`]. It never forgets a subject that changed, but with its plugin.

use std::collections::{HashMap, HashSet, VecDeque};

use foldhash::quality::RandomState;

use super::{
    Results,
    dirty::DirtySet,
    health::{Health, Pauses},
};
use crate::{
    outcome::Generation,
    reason::Reason,
    store::{Seconds, Walk},
    subject::{Subject, SubjectKey},
};

/// How many subjects are in the backlog before the walk over the store waits for the
/// workers. It is some batches' worth, and no picture of the store.
pub(super) const BACKLOG_MAX: usize = 1_024;

/// One batch of so many begins with the backlog, so that it ends even where what changes
/// would fill every batch.
const BACKLOG_EVERY: u32 = 8;

/// What waits for one plugin.
#[derive(Debug, Default)]
pub(super) struct Queue {
    pub(super) dirty: DirtySet,
    /// What is to be asked again only because the plugin is another.
    backlog: DirtySet,
    /// How far the store was walked for the backlog; none when it was to its end.
    walk: Option<Place>,
    /// Subjects as they were before they lost a record that the plugin has not
    /// seen yet.
    pub(super) pictures: VecDeque<Subject>,
    /// How often a subject is in the call that it is in: as it is, and as pictures of it.
    in_flight: HashMap<SubjectKey, u32, RandomState>,
    /// Dirty again while they were in flight: a subject is in one call at a time.
    again: HashSet<SubjectKey, RandomState>,
    n_batches: u32,
    health: Health,
    /// What an older plugin of the name says was said before it was removed.
    pub(super) since: Generation,
}

/// How far a walk over the store is.
#[derive(Debug)]
enum Place {
    Beginning,
    Behind(Walk),
}

/// A slice of a walk that is to be done now.
#[derive(Debug)]
pub(super) struct Slice {
    pub(super) from: Option<Walk>,
}

/// Where a subject waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum From {
    Dirty,
    Backlog,
}

impl Queue {
    /// It has changed.
    pub(super) fn mark(&mut self, subject: &SubjectKey) {
        if !self.again.contains(subject) {
            self.backlog.remove(subject);
            self.dirty.mark(subject);
        }
    }

    /// It has not changed, but may be told otherwise now.
    pub(super) fn mark_again(&mut self, subject: &SubjectKey) {
        if !self.is_dirty(subject) {
            self.backlog.mark(subject);
        }
    }

    /// Whether it has changed since the plugin saw it.
    pub(super) fn is_dirty(&self, subject: &SubjectKey) -> bool {
        self.dirty.contains(subject) || self.again.contains(subject)
    }

    /// All that it will be asked about is in a picture now.
    pub(super) fn pictured(&mut self, picture: Subject) {
        self.dirty.remove(&picture.key);
        self.again.remove(&picture.key);
        self.pictures.push_back(picture);
    }

    /// The picture that has waited longest, of a subject that is in no call: the newer of
    /// two results may be merged and forgotten before the older is there, which then stood.
    pub(super) fn next_picture(&mut self) -> Option<Subject> {
        let is_free = |it: &Subject| !self.in_flight.contains_key(&it.key);
        let idx = self.pictures.iter().position(is_free)?;
        self.pictures.remove(idx)
    }

    /// In which order the next batch is to be made.
    pub(super) fn order(&self) -> [From; 2] {
        if self.n_batches % BACKLOG_EVERY == BACKLOG_EVERY - 1 {
            [From::Backlog, From::Dirty]
        } else {
            [From::Dirty, From::Backlog]
        }
    }

    fn set(&mut self, from: From) -> &mut DirtySet {
        match from {
            From::Dirty => &mut self.dirty,
            From::Backlog => &mut self.backlog,
        }
    }

    /// Who of these has waited longest and is in no call; it is left where it is.
    pub(super) fn peek(&mut self, from: From) -> Option<SubjectKey> {
        loop {
            let key = self.set(from).peek()?.clone();
            if !self.in_flight.contains_key(&key) {
                return Some(key);
            }
            self.set(from).pop();
            self.again.insert(key);
        }
    }

    /// Takes out who has waited longest.
    pub(super) fn pop(&mut self, from: From) {
        self.set(from).pop();
    }

    /// A call of these begins.
    pub(super) fn begun(&mut self, subjects: &[Subject]) {
        self.health.begun();
        self.n_batches = self.n_batches.wrapping_add(1);
        for it in subjects {
            *self.in_flight.entry(it.key.clone()).or_default() += 1;
        }
    }

    /// A call of these is over.
    pub(super) fn all_landed(&mut self, results: &Results) {
        for (subject, _) in results {
            self.landed(&subject.key);
        }
    }

    /// What a call of the version that serves came to.
    pub(super) fn note_health(&mut self, results: &Results, now: Seconds, pauses: Pauses) {
        self.health.landed(results, now, pauses);
    }

    /// Whether the plugin may be given a batch now.
    pub(super) fn may_be_asked(&self, now: Seconds) -> bool {
        self.health.may_be_asked(now)
    }

    /// Why the plugin is left alone, if it is.
    pub(super) fn quarantine(&self) -> Option<Reason> {
        self.health.quarantine()
    }

    fn landed(&mut self, subject: &SubjectKey) {
        let Some(n) = self.in_flight.get_mut(subject) else {
            return;
        };
        *n -= 1;
        if *n == 0 {
            self.in_flight.remove(subject);
            if self.again.remove(subject) {
                self.dirty.mark(subject);
            }
        }
    }

    /// Whether none of it is in a call.
    pub(super) fn is_drained(&self) -> bool {
        self.in_flight.is_empty()
    }

    /// Everything is to be asked again, from the beginning: what was left to ask of an
    /// older version is asked of this one.
    pub(super) fn ask_again(&mut self) {
        self.backlog = DirtySet::default();
        self.walk = Some(Place::Beginning);
        self.health = Health::default();
    }

    /// Nothing is asked again that has not changed.
    pub(super) fn drop_backlog(&mut self) {
        self.backlog = DirtySet::default();
        self.walk = None;
    }

    /// Nobody will be asked any more. What is in a call is in it.
    pub(super) fn drop_waiting(&mut self) {
        self.drop_backlog();
        self.dirty = DirtySet::default();
        self.pictures = VecDeque::new();
        self.again = HashSet::default();
    }

    /// Where the walk over the store goes on, if it may now.
    pub(super) fn walk_on(&mut self) -> Option<Slice> {
        if BACKLOG_MAX <= self.backlog.len() {
            return None;
        }
        let from = match self.walk.take()? {
            Place::Beginning => None,
            Place::Behind(it) => Some(it),
        };
        Some(Slice { from })
    }

    /// Where the walk goes on next.
    pub(super) fn walked(&mut self, to: Option<Walk>) {
        self.walk = to.map(Place::Behind);
    }

    /// Whether nothing waits, nor will.
    pub(super) fn is_empty(&self) -> bool {
        let waits = [&self.dirty, &self.backlog];
        waits.iter().all(|it| it.peek().is_none())
            && self.pictures.is_empty()
            && self.walk.is_none()
    }

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.dirty.len() + self.backlog.len() + self.pictures.len() + self.again.len()
    }

    /// How many wait because the plugin is another, as far as the store was walked.
    pub(super) fn n_backlog(&self) -> usize {
        self.backlog.len()
    }

    /// Gives back the room of what waits no more.
    pub(super) fn shrink(&mut self) {
        self.dirty.shrink();
        self.backlog.shrink();
        self.pictures.shrink_to_fit();
        self.in_flight.shrink_to_fit();
        self.again.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::ObjectKey;

    fn subject(name: &str) -> SubjectKey {
        SubjectKey {
            object: ObjectKey::new("ns", "Pod", name).unwrap(),
            uid: "u".into(),
        }
    }

    #[test]
    fn who_changes_while_in_the_backlog_comes_with_those_that_changed() {
        let mut queue = Queue::default();
        for name in ["a", "b"] {
            queue.mark_again(&subject(name));
        }
        queue.mark(&subject("b"));
        assert_eq!(queue.peek(From::Dirty), Some(subject("b")));
        assert_eq!(queue.peek(From::Backlog), Some(subject("a")));
        queue.mark_again(&subject("b"));
        assert_eq!((queue.len(), queue.n_backlog()), (2, 1));
    }

    #[test]
    fn the_backlog_comes_first_now_and_then() {
        let mut queue = Queue::default();
        let mut n_first = 0;
        for _ in 0..4 * BACKLOG_EVERY {
            n_first += u32::from(queue.order()[0] == From::Backlog);
            queue.begun(&[]);
        }
        assert_eq!(n_first, 4);
    }

    #[test]
    fn who_is_in_a_call_of_the_old_version_waits_for_its_end() {
        let mut queue = Queue::default();
        let subject = subject("a");
        queue.begun(&[Subject::without_records(subject.clone())]);
        queue.ask_again();
        queue.mark_again(&subject);
        assert_eq!(queue.peek(From::Backlog), None);
        assert!(!queue.is_drained());
        queue.landed(&subject);
        assert_eq!(queue.peek(From::Dirty), Some(subject));
        assert!(queue.is_drained());
    }

    #[test]
    fn a_walk_waits_while_the_backlog_is_full() {
        let mut queue = Queue::default();
        queue.ask_again();
        for idx in 0..BACKLOG_MAX {
            queue.mark_again(&subject(&format!("p-{idx}")));
        }
        assert!(queue.walk_on().is_none() && !queue.is_empty());
        queue.pop(From::Backlog);
        assert!(queue.walk_on().is_some());
    }
}
