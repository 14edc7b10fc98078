//! Which pods are watched, and what that decides about Events.
//!
//! With a pod selector, what is kept follows the selected pods: their Events, and those of
//! their nodes and their owners. An Event that comes before its pod waits a while. A pod
//! that is over takes its Events with it, and a pod that is deleted some time later what
//! was said of it.
//!
//! What bounds it: pods by their number ([`PodBounds::max`]), what waits by its number
//! ([`WAITING_MAX`]) and its time, and what is remembered of deleted pods by time.

use std::{
    collections::{BTreeSet, HashMap, HashSet, VecDeque},
    sync::{Arc, atomic::Ordering::Relaxed},
};

use super::{Live, SLICE, count, subject};
use crate::{
    pods::{PODS_MAX, Phase, Pod, PodKey, PodPut, Pods, decode::WirePod},
    record::{ObjectKey, Record},
    store::{Confirmation, Removal, Seconds},
    subject::assigned,
};

/// How long what concerns the selected pods is held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodBounds {
    /// Labels that are kept.
    pub labels: Vec<Box<str>>,
    /// How many pods are known at most.
    pub max: usize,
    /// How long after its end the Events of a pod are kept.
    pub grace: Seconds,
    /// How long an Event waits for its pod.
    pub wait: Seconds,
    /// How long after its deletion what was said of a pod is kept.
    pub outcome_grace: Seconds,
}

impl Default for PodBounds {
    fn default() -> Self {
        Self {
            labels: Vec::new(),
            max: PODS_MAX,
            grace: 10 * 60,
            wait: 30,
            outcome_grace: 2 * 60 * 60,
        }
    }
}

/// How many Events wait for their pods at most: eight seconds of the busiest cluster that
/// was measured (484 a second, kubernetes#141022), and 14 MB if all are as large as can be.
/// With one more the one that waited longest waits no more.
pub const WAITING_MAX: usize = 4_096;

/// What is known of the ends of pods, and what waits for their beginning.
#[derive(Debug, Default)]
pub(super) struct Watched {
    pub(super) bounds: PodBounds,
    /// The watch and the LIST that confirmed each pod last.
    confirmed: HashMap<PodKey, (u16, u32)>,
    /// Pods that are over and whose Events are held, in the order in which they were.
    ending: VecDeque<(Seconds, PodKey)>,
    /// Pods that are over and known.
    ended: HashMap<PodKey, End>,
    /// Pods that are not known any more and of which something is held, in the order in
    /// which they were deleted, about.
    held: VecDeque<(Seconds, PodKey)>,
    waiting: HashMap<ObjectKey, VecDeque<Waiting>>,
    /// The objects that Events wait for, an entry for each Event, in order.
    queue: VecDeque<(Seconds, ObjectKey)>,
}

/// How a pod is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct End {
    deleted: Option<Seconds>,
    /// Whether its Events are gone, and no more are taken.
    is_past_grace: bool,
}

/// An Event whose pod is not known yet.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) record: Record,
    pub(super) confirmed: Confirmation,
}

impl Watched {
    /// Notes that a pod exists.
    fn confirm(&mut self, key: &PodKey, is_over: bool, confirmed: Confirmation) {
        let by = (confirmed.watch, confirmed.listing);
        self.confirmed.insert(key.clone(), by);
        if is_over {
            self.end(key, confirmed.at);
        }
    }

    /// Notes that a pod is deleted. Says whether its Events are gone already.
    fn delete(&mut self, key: &PodKey, at: Seconds) -> bool {
        self.confirmed.remove(key);
        self.end(key, at);
        let end = self.ended.entry(key.clone()).or_default();
        end.deleted.get_or_insert(at);
        end.is_past_grace
    }

    fn end(&mut self, key: &PodKey, at: Seconds) {
        if !self.ended.contains_key(key) {
            self.ended.insert(key.clone(), End::default());
            self.ending.push_back((at, key.clone()));
        }
    }

    /// The pods of a watch that an older LIST had, and this one has not.
    pub(super) fn unconfirmed(&self, watch: u16, listing: u32) -> Vec<PodKey> {
        let is_older = |by: &(u16, u32)| by.0 == watch && by.1 < listing;
        let older = self.confirmed.iter().filter(|(_, by)| is_older(by));
        let older: BTreeSet<_> = older.map(|(key, _)| key.clone()).collect();
        older.into_iter().collect()
    }

    /// Whether the Events of a pod are wanted no more.
    pub(super) fn is_past_grace(&self, key: &PodKey) -> bool {
        self.ended.get(key).is_some_and(|it| it.is_past_grace)
    }

    /// A pod whose Events are to go, of those that were over long enough ago.
    fn next_past_grace(&mut self, now: Seconds) -> Option<PodKey> {
        pop_due(&mut self.ending, now, self.bounds.grace)
    }

    /// Notes that the Events of a pod are gone. Says whether it is deleted.
    fn past_grace(&mut self, key: &PodKey) -> bool {
        self.ended.get_mut(key).is_some_and(|end| {
            end.is_past_grace = true;
            end.deleted.is_some()
        })
    }

    /// Forgets a pod that is deleted, of which something is held or not.
    fn forget(&mut self, key: &PodKey, is_held: bool) {
        let deleted = self.ended.remove(key).and_then(|it| it.deleted);
        if let Some(at) = deleted.filter(|_| is_held) {
            self.held.push_back((at, key.clone()));
        }
    }

    /// A pod of which nothing is to be held any more.
    fn next_over(&mut self, now: Seconds) -> Option<PodKey> {
        pop_due(&mut self.held, now, self.bounds.outcome_grace)
    }

    /// Lets an Event wait for its pod. Says how many wait no more in its place.
    pub(super) fn wait(
        &mut self,
        object: &ObjectKey,
        record: Record,
        confirmed: Confirmation,
    ) -> usize {
        let n_before = self.queue.len();
        while WAITING_MAX <= self.queue.len() {
            self.pop_waiting();
        }
        self.queue.push_back((confirmed.at, object.clone()));
        let waiting = self.waiting.entry(object.clone()).or_default();
        waiting.push_back(Waiting { record, confirmed });
        n_before + 1 - self.queue.len()
    }

    /// How many of what waits waited in vain.
    pub(super) fn expire_waiting(&mut self, now: Seconds) -> usize {
        let n_before = self.queue.len();
        while self
            .queue
            .front()
            .is_some_and(|(since, _)| since.saturating_add(self.bounds.wait) <= now)
        {
            self.pop_waiting();
        }
        n_before - self.queue.len()
    }

    /// What waits for something to be known of these objects, in order for each.
    pub(super) fn waiting_for(&mut self, objects: &[ObjectKey]) -> Vec<(ObjectKey, Waiting)> {
        let mut found = Vec::new();
        let mut known = HashSet::new();
        for object in objects {
            let Some(waiting) = self.waiting.remove(object) else {
                continue;
            };
            found.extend(waiting.into_iter().map(|it| (object.clone(), it)));
            known.insert(object);
        }
        if !known.is_empty() {
            self.queue.retain(|(_, object)| !known.contains(object));
        }
        found
    }

    /// Drops what waits of an Event that is deleted. Says how many.
    pub(super) fn drop_waiting(
        &mut self,
        object: &ObjectKey,
        is_it: impl Fn(&Record) -> bool,
    ) -> usize {
        let Some(waiting) = self.waiting.get_mut(object) else {
            return 0;
        };
        let n_before = waiting.len();
        waiting.retain(|it| !is_it(&it.record));
        let n = n_before - waiting.len();
        if waiting.is_empty() {
            self.waiting.remove(object);
        }
        // One place in the queue is as good as another of the same object.
        let mut n_left = n;
        self.queue.retain(|(_, it)| {
            let goes = 0 < n_left && it == object;
            n_left -= usize::from(goes);
            !goes
        });
        n
    }

    /// How many Events wait.
    pub(super) fn n_waiting(&self) -> usize {
        self.queue.len()
    }

    /// Gives back the room of what is gone.
    pub(super) fn shrink(&mut self) {
        self.confirmed.shrink_to_fit();
        self.ended.shrink_to_fit();
        self.waiting.shrink_to_fit();
    }

    fn pop_waiting(&mut self) {
        let Some((_, object)) = self.queue.pop_front() else {
            return;
        };
        if let Some(waiting) = self.waiting.get_mut(&object) {
            waiting.pop_front();
            if waiting.is_empty() {
                self.waiting.remove(&object);
            }
        }
    }
}

fn pop_due(
    queue: &mut VecDeque<(Seconds, PodKey)>,
    now: Seconds,
    after: Seconds,
) -> Option<PodKey> {
    let (at, _) = queue.front()?;
    if now < at.saturating_add(after) {
        return None;
    }
    queue.pop_front().map(|(_, key)| key)
}

/// What of the live path is about pods.
impl Live {
    /// From now on only what concerns selected pods is kept, and it is these that are put.
    pub fn watch_pods(&mut self, bounds: PodBounds) {
        self.dispatcher.set_pods_max(bounds.max);
        self.watched.get_or_insert_default().bounds = bounds;
    }

    /// The pods that are known.
    #[must_use]
    pub fn pods(&self) -> &Pods {
        self.dispatcher.pods()
    }

    /// A pod that exists.
    pub fn put_pod(&mut self, wire: &WirePod<'_>, confirmed: Confirmation) {
        self.counters.pods_received.fetch_add(1, Relaxed);
        if let Some((object, pod)) = self.pare_down_pod(wire) {
            self.know_pod(&object, pod, confirmed);
        }
    }

    /// A pod that is deleted, or is not selected any more, as it was last: perhaps it ended
    /// by that.
    pub fn delete_pod(&mut self, wire: &WirePod<'_>, confirmed: Confirmation) {
        let Some((object, pod)) = self.pare_down_pod(wire) else {
            return;
        };
        let key = (object.clone(), pod.uid.clone());
        self.know_pod(&object, pod, confirmed);
        self.pod_gone(&key, confirmed.at);
    }

    /// A LIST of pods is read to its end, at this time: what only an earlier one had is
    /// deleted.
    pub fn sweep_pods(&mut self, watch: u16, listing: u32, at: Seconds) {
        let unconfirmed = self
            .watched
            .as_ref()
            .map(|it| it.unconfirmed(watch, listing));
        for key in unconfirmed.iter().flatten() {
            self.pod_gone(key, at);
        }
    }

    /// The watches of pods have ended, since no plugin is interested in anything. No pod is known
    /// any more, which says nothing of whether it is there; what was found of it stays.
    pub fn unwatch_pods(&mut self) {
        let Some(watched) = &mut self.watched else {
            return;
        };
        let deleted: Vec<_> = watched.ended.keys().cloned().collect();
        let known: Vec<_> = watched.confirmed.drain().map(|(key, _)| key).collect();
        watched.ending = VecDeque::new();
        let n_waiting = watched.queue.len();
        watched.waiting = HashMap::new();
        watched.queue = VecDeque::new();
        self.counters
            .unselected
            .fetch_add(count(n_waiting), Relaxed);
        for key in deleted.iter().chain(&known) {
            self.forget_pod(key);
        }
        self.count_pods();
    }

    fn pod_gone(&mut self, key: &PodKey, at: Seconds) {
        let watched = self.watched.as_mut();
        if watched.is_some_and(|it| it.delete(key, at)) {
            self.forget_pod(key);
        }
    }

    /// Forgets a pod that is deleted and whose Events are gone.
    fn forget_pod(&mut self, key: &PodKey) {
        let (object, uid) = key;
        self.dispatcher.forget_pod(object, uid.as_ref());
        self.count_pods();
        let is_held = self.outcomes.holds_any(&subject(object, uid));
        if let Some(watched) = &mut self.watched {
            watched.forget(key, is_held);
        }
    }

    fn pare_down_pod(&self, wire: &WirePod<'_>) -> Option<(ObjectKey, Pod)> {
        let watched = self.watched.as_ref()?;
        let Ok((object, pod)) = Pod::pare_down(wire, &watched.bounds.labels) else {
            self.counters.pods_rejected.fetch_add(1, Relaxed);
            return None;
        };
        let is_in_scope = self.scope.admits_namespace(object.namespace());
        is_in_scope.then_some((object, pod))
    }

    fn know_pod(&mut self, object: &ObjectKey, pod: Pod, confirmed: Confirmation) {
        let Some(watched) = &mut self.watched else {
            return;
        };
        let key = (object.clone(), pod.uid.clone());
        let mut concerned = vec![object.clone()];
        concerned.extend(pod.node_ref().map(|it| it.object));
        concerned.extend(pod.owner.as_ref().map(|it| it.object.clone()));
        let ends = pod.phase.is_some_and(Phase::is_terminal);
        match self.dispatcher.put_pod(object, pod) {
            PodPut::Full => {
                self.counters.pods_over.fetch_add(1, Relaxed);
                return;
            }
            PodPut::Unchanged => watched.confirm(&key, ends, confirmed),
            PodPut::Changed(before) => {
                watched.confirm(&key, ends, confirmed);
                if let Some(before) = before {
                    // The node and the owner of a pod never change once it has them.
                    let knew_node = before.node.is_some();
                    concerned.retain(|it| !knew_node && it.kind() == "Node");
                }
                for (object, it) in watched.waiting_for(&concerned) {
                    self.keep(&object, &it.record, it.confirmed);
                }
            }
        }
        self.count_pods();
    }

    /// Whether an Event concerns a selected pod. If it may yet, it waits.
    pub(super) fn select(
        &mut self,
        object: ObjectKey,
        record: Record,
        confirmed: Confirmation,
    ) -> Option<(ObjectKey, Record)> {
        let Some(watched) = &mut self.watched else {
            return Some((object, record));
        };
        let pods = self.dispatcher.pods();
        let is_kept = |key: &PodKey| !watched.is_past_grace(key);
        let (is_known, is_wanted) = if object.kind() == "Pod" {
            let of_name = pods.named(&object);
            let uid = record.object_uid();
            let is_it = |it: &&Pod| uid.is_empty() || it.uid.as_ref() == uid;
            let mut known = of_name.filter(is_it).peekable();
            let is_known = known.peek().is_some();
            (
                is_known,
                known.any(|it| is_kept(&(object.clone(), it.uid.clone()))),
            )
        } else {
            let mut around = pods.around(&object).peekable();
            (around.peek().is_some(), around.any(is_kept))
        };
        if is_wanted {
            return Some((object, record));
        }
        let n_in_vain = if is_known {
            1
        } else {
            watched.wait(&object, record, confirmed)
        };
        self.counters
            .unselected
            .fetch_add(count(n_in_vain), Relaxed);
        self.count_pods();
        None
    }

    /// Lets go of what pods leave behind that are over, and of what waited too long. Says
    /// whether there is more.
    pub(super) fn end_pods(&mut self, now: Seconds) -> bool {
        let Some(watched) = &mut self.watched else {
            return false;
        };
        let n_in_vain = watched.expire_waiting(now);
        if 0 < n_in_vain {
            self.counters
                .unselected
                .fetch_add(count(n_in_vain), Relaxed);
            self.count_pods();
        }
        for _ in 0..SLICE {
            let Some(watched) = &mut self.watched else {
                return false;
            };
            if let Some(key) = watched.next_past_grace(now) {
                let is_deleted = watched.past_grace(&key);
                self.let_go_of_events(&key);
                if is_deleted {
                    self.forget_pod(&key);
                }
            } else if let Some(key) = watched.next_over(now) {
                let gone = self.outcomes.object_gone(&subject(&key.0, &key.1));
                self.changes.extend(gone);
            } else {
                return false;
            }
        }
        true
    }

    /// Lets go of the records of a pod, and of those of its node and its owner if no other
    /// pod needs them.
    fn let_go_of_events(&mut self, (object, uid): &PodKey) {
        let own = self.store.view(object, |bucket| {
            let of_each = assigned(bucket).into_iter().zip(bucket.records());
            let own = of_each.filter(|(of, _)| *of == uid.as_ref());
            own.map(|(_, it)| it.sequence).collect::<BTreeSet<_>>()
        });
        let own = own.unwrap_or_default();
        self.remove(object, Removal::ObjectGone, |it| own.contains(&it.sequence));
        let pod = self.pods().get(object, uid.as_ref());
        let Some(pod) = pod.map(|(pod, _)| Arc::clone(pod)) else {
            return;
        };
        let owner = pod.owner.as_ref().map(|it| it.object.clone());
        for around in pod.node_ref().map(|it| it.object).into_iter().chain(owner) {
            let is_past = |it: &PodKey| self.watched.as_ref().is_some_and(|w| w.is_past_grace(it));
            let is_needed = !self.pods().around(&around).all(is_past);
            if !is_needed {
                self.remove(&around, Removal::ObjectGone, |_| true);
            }
        }
    }

    /// Tells whoever counts what is held of pods.
    pub(super) fn count_pods(&self) {
        let n = self.watched.as_ref().map_or(0, Watched::n_waiting);
        self.counters.waiting.store(count(n), Relaxed);
        self.counters.pods.store(count(self.pods().len()), Relaxed);
    }
}
