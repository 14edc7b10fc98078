//! Which subjects are to be classified, and the way from there to an outcome.
//!
//! A subject that has changed is *dirty* for each plugin that may care. Marking
//! is cheap and repeated marks are one; classifying takes a batch of dirty
//! subjects of one plugin to a worker thread.
//!
//! There are two ways to have it done. Whoever replays a recording waits
//! ([`Dispatcher::settle`], [`Dispatcher::drain`]), and results are merged in the
//! order in which the batches were taken, so that what comes out does not depend
//! on how many workers there are. Whoever watches a cluster never waits: it gives
//! what is dirty to whichever worker is free ([`Dispatcher::submit`]) and takes
//! what is done ([`Dispatcher::collect`]), in any order, since a slow plugin must
//! not hold up the others; the outcome table tells which result is newer.
//!
//! There is no timer in here: whatever is dirty when a worker is free is taken. What
//! bounds the dirty set is the store: a subject is in it once for each plugin.
//! Pictures of what left the store before it was classified are bounded by
//! [`PICTURES_MAX`].
//!
//! Plugins can be swapped for others at any time ([`Dispatcher::swap`]).

use std::{
    hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher},
    num::NonZeroUsize,
    sync::Arc,
};

use crate::{
    outcome::{Change, Generation, Outcome, Outcomes},
    plugins::{Plugin, PluginSet},
    pods::{Pod, PodKey, PodPut, Pods},
    reason::{CallFailure, Reason},
    record::{EventRef, ObjectKey, Record, Uid, UidRef},
    sandbox::{Impurity, Limits, Spent},
    store::{Bucket, Seconds, Store, may_equal},
    subject::{Subject, SubjectKey},
};

mod batch;
mod dirty;
mod health;
mod queue;
mod samples;
mod swap;
mod workers;

pub use health::{BAD_MAX, Pauses, SUBJECTS_MIN, WINDOW};
pub use samples::SAMPLE_EVERY;
pub use swap::{HELD_MIN, Held, Swapped};

use batch::Answer;
use queue::{From, Queue};
use samples::Samples;
use swap::Leaving;
use workers::Workers;

/// Keeps what is dirty, and classifies it.
#[derive(Debug)]
pub struct Dispatcher {
    store: Arc<Store>,
    outcomes: Arc<Outcomes>,
    plugins: Arc<PluginSet>,
    /// One for each plugin, in their order.
    queues: Vec<Queue>,
    /// Those that serve no more.
    leaving: Leaving,
    n_late: u64,
    samples: Samples,
    pauses: Pauses,
    held: Held,
    /// How many batches of each plugin are with the workers, where any is.
    out: Vec<(Arc<Plugin>, usize)>,
    /// Whose turn it is.
    turn: usize,
    /// What time it is, for who is left alone for a while.
    now: Seconds,
    workers: Workers<Batch, Done>,
    limits: Limits,
    pods: Pods,
    failure_code: Option<Box<str>>,
    n_workers: NonZeroUsize,
}

/// How many pictures a plugin may be behind with.
pub const PICTURES_MAX: usize = 4_096;

/// Subjects for one call of one plugin.
#[derive(Debug)]
struct Batch {
    /// Which queue it is from.
    queue: usize,
    plugin: Arc<Plugin>,
    subjects: Vec<Subject>,
    /// Whether it is asked about once more.
    is_sample: bool,
}

impl Batch {
    /// A plugin's own, and another's after a swap: what hangs in the old version holds up
    /// nothing of the new.
    fn lane(&self) -> u64 {
        Self::lane_of(&self.plugin)
    }

    fn lane_of(plugin: &Plugin) -> u64 {
        let hasher = BuildHasherDefault::<DefaultHasher>::default();
        hasher.hash_one((&plugin.provenance.name, plugin.generation.0))
    }
}

/// A batch that is done.
struct Done {
    plugin: Arc<Plugin>,
    results: Results,
    spent: Spent,
    is_sample: bool,
    again: Option<Result<(), Impurity>>,
}

/// A batch that is done, for whoever counts.
#[derive(Debug)]
pub struct Report<'a> {
    /// Whose it was.
    pub plugin: &'a Plugin,
    /// What it used up.
    pub spent: Spent,
    /// How its subjects failed that did.
    pub failures: &'a [Reason],
    /// If it was asked about again: whether the plugin said the same.
    pub is_same: Option<bool>,
}

/// What came of a batch, subject by subject.
type Results = Vec<(Subject, Result<Outcome, CallFailure>)>;

impl Dispatcher {
    /// A dispatcher with this many worker threads. `on_done` is called from them
    /// whenever there is something to [`collect`](Self::collect).
    ///
    /// # Errors
    ///
    /// If a thread cannot be started.
    pub fn new(
        store: Arc<Store>,
        outcomes: Arc<Outcomes>,
        plugins: Arc<PluginSet>,
        limits: Limits,
        n_workers: NonZeroUsize,
        on_done: &Arc<dyn Fn() + Send + Sync>,
    ) -> std::io::Result<Self> {
        let queues = plugins.plugins.iter().map(|_| Queue::default()).collect();
        let of_outcomes = Arc::clone(&outcomes);
        let work = move |it: Batch| {
            let interner = of_outcomes.interner();
            let guest = &it.plugin.guest;
            let Answer {
                results,
                spent,
                again,
            } = batch::classify(guest, interner, it.subjects, it.is_sample);
            Done {
                plugin: it.plugin,
                results,
                spent,
                is_sample: it.is_sample,
                again,
            }
        };
        let workers = Workers::start("classify", n_workers, work, on_done)?;
        let dispatcher = Self {
            store,
            outcomes,
            plugins,
            queues,
            leaving: Leaving::default(),
            n_late: 0,
            samples: Samples::default(),
            pauses: Pauses::default(),
            held: Held::default(),
            out: Vec::new(),
            turn: 0,
            now: 0,
            workers,
            limits,
            pods: Pods::default(),
            failure_code: None,
            n_workers,
        };
        dispatcher.share();
        Ok(dispatcher)
    }

    /// Keeps a worker from each plugin, if there is another that may want it.
    fn share(&self) {
        let all_but_one = NonZeroUsize::new(self.n_workers.get() - 1);
        let cap = match &self.plugins.plugins[..] {
            [] | [_] => self.n_workers,
            _ => all_but_one.unwrap_or(NonZeroUsize::MIN),
        };
        self.workers.set_cap(cap);
    }

    /// From now on every object is taken to have failed with this code.
    pub fn assume_failure(&mut self, code: &str) {
        self.failure_code = Some(code.into());
    }

    /// The pods that subjects are known by.
    #[must_use]
    pub fn pods(&self) -> &Pods {
        &self.pods
    }

    /// From now on a plugin whose calls fail is left alone for so long.
    pub fn set_pauses(&mut self, pauses: Pauses) {
        self.pauses = pauses;
    }

    /// From now on at most so many pods become known.
    pub fn set_pods_max(&mut self, max: usize) {
        self.pods.set_max(max);
    }

    /// Takes up a pod as it is now, and marks it for each plugin that may say something
    /// else of it now.
    pub fn put_pod(&mut self, object: &ObjectKey, pod: Pod) -> PodPut {
        let uid = pod.uid.clone();
        let version = self.store.next_version();
        let put = self.pods.put(object, pod, version);
        if let (PodPut::Changed(before), Some((now, _))) =
            (&put, self.pods.get(object, uid.as_ref()))
        {
            for (plugin, queue) in self.plugins.plugins.iter().zip(&mut self.queues) {
                if plugin.description().reads.differs(before.as_deref(), now) {
                    // What names no uid may be its own.
                    for uid in [uid.clone(), Uid::default()] {
                        queue.mark(&SubjectKey {
                            object: object.clone(),
                            uid,
                        });
                    }
                }
            }
        }
        put
    }

    /// Forgets a pod. What was said of it stands.
    pub fn forget_pod(&mut self, object: &ObjectKey, uid: UidRef<'_>) -> Option<Arc<Pod>> {
        self.pods.remove(object, uid)
    }

    /// The failed pods that are on this node, or that this object owns: what is said of it
    /// is said of them, too.
    #[must_use]
    pub fn around(&self, object: &ObjectKey) -> Vec<SubjectKey> {
        let has_failed = |(pod, uid): &&PodKey| {
            let known = self.pods.get(pod, uid.as_ref());
            self.failure_code.is_some() || known.is_some_and(|(it, _)| it.failure.is_some())
        };
        let failed = self.pods.around(object).filter(has_failed);
        let subject = |(object, uid): &PodKey| SubjectKey {
            object: object.clone(),
            uid: uid.clone(),
        };
        failed.map(subject).collect()
    }

    /// Marks a subject dirty for each plugin that is interested in one of these
    /// records of it.
    pub fn mark(&mut self, subject: &SubjectKey, records: &[&Record]) {
        for (plugin, queue) in self.plugins.plugins.iter().zip(&mut self.queues) {
            if records
                .iter()
                .any(|it| plugin.description().wants(&subject.object, it))
            {
                queue.mark(subject);
            }
        }
    }

    /// Marks the failed pods around an object for each plugin that is interested in one of
    /// these records of it, and is given them.
    pub fn mark_around(&mut self, object: &ObjectKey, records: &[&Record]) {
        let around = self.around(object);
        if around.is_empty() {
            return;
        }
        for (plugin, queue) in self.plugins.plugins.iter().zip(&mut self.queues) {
            let description = plugin.description();
            if description.reads.surroundings()
                && records.iter().any(|it| description.wants(object, it))
            {
                for it in &around {
                    queue.mark(it);
                }
            }
        }
    }

    /// Marks a subject dirty for every plugin: its records are others now.
    pub fn mark_moved(&mut self, subject: &SubjectKey) {
        for queue in &mut self.queues {
            queue.mark(subject);
        }
    }

    /// Whether any plugin has yet to see what is known of this subject.
    #[must_use]
    pub fn is_dirty(&self, subject: &SubjectKey) -> bool {
        self.queues.iter().any(|it| it.is_dirty(subject))
    }

    /// Classifies these subjects now, for the plugins that have yet to see them.
    pub fn settle(&mut self, subjects: &[SubjectKey], on_change: &mut dyn FnMut(Change)) {
        // As it is for most Events: they move nobody.
        if subjects.is_empty() {
            return;
        }
        let mut only: Vec<_> = self.queues.iter().map(|_| Queue::default()).collect();
        for (all, only) in self.queues.iter_mut().zip(&mut only) {
            for subject in subjects.iter().filter(|it| all.dirty.remove(it)) {
                only.mark(subject);
            }
        }
        self.run(only, on_change);
    }

    /// Classifies all that is dirty.
    pub fn drain(&mut self, on_change: &mut dyn FnMut(Change)) {
        let all = self.queues.iter_mut().map(std::mem::take).collect();
        self.run(all, on_change);
    }

    fn run(&mut self, mut queues: Vec<Queue>, on_change: &mut dyn FnMut(Change)) {
        self.turn = 0;
        loop {
            // Taken as workers get free, so that only a few batches exist at once.
            for _ in 0..self.workers.room() {
                let Some(batch) = self.next_batch(&mut queues) else {
                    break;
                };
                self.workers.submit(vec![(batch.lane(), batch)]);
            }
            let Some(done) = self.workers.next() else {
                break;
            };
            self.samples.back(&done);
            self.merge(&done.plugin, done.results, on_change);
        }
    }

    /// Gives what is dirty to workers, as long as they have room.
    pub fn submit(&mut self) {
        let mut queues = std::mem::take(&mut self.queues);
        let mut batches = Vec::new();
        for _ in 0..self.workers.room() {
            let Some(batch) = self.next_batch(&mut queues) else {
                break;
            };
            if let Some(queue) = queues.get_mut(batch.queue) {
                queue.begun(&batch.subjects);
            }
            match self
                .out
                .iter_mut()
                .find(|(it, _)| Arc::ptr_eq(it, &batch.plugin))
            {
                Some((_, n)) => *n += 1,
                None => self.out.push((Arc::clone(&batch.plugin), 1)),
            }
            batches.push((batch.lane(), batch));
        }
        self.workers.submit(batches);
        self.queues = queues;
    }

    /// Takes what workers have done, and tells what changed by it.
    pub fn collect(
        &mut self,
        on_change: &mut dyn FnMut(Change),
        on_report: &mut dyn FnMut(Report<'_>),
    ) {
        while let Some(done) = self.workers.finished() {
            self.samples.back(&done);
            let Done {
                plugin,
                results,
                spent,
                again,
                ..
            } = done;
            let failed = results.iter().filter_map(|(_, it)| it.as_ref().err());
            let failures: Vec<_> = failed.map(|it| it.reason).collect();
            on_report(Report {
                plugin: &plugin,
                spent,
                failures: &failures,
                is_same: again.map(|it| it.is_ok()),
            });
            for (it, n) in &mut self.out {
                if Arc::ptr_eq(it, &plugin) {
                    *n -= 1;
                }
            }
            self.out.retain(|(_, n)| 0 < *n);
            if self.landed(&plugin, &results) {
                self.merge(&plugin, results, on_change);
            } else {
                self.n_late += u64::try_from(results.len()).unwrap_or(u64::MAX);
            }
        }
    }

    /// Takes note that a call is over, and says whether what came of it is taken. An older
    /// version's answer is: its subjects were in no other call, and the newer version is
    /// asked after it. That of a plugin that was removed is not.
    fn landed(&mut self, plugin: &Plugin, results: &Results) -> bool {
        let name = &plugin.provenance.name;
        let plugins = &self.plugins.plugins;
        let place = plugins.iter().position(|it| it.provenance.name == *name);
        let serving = place.map(|idx| plugins[idx].generation);
        let queue = place.and_then(|idx| self.queues.get_mut(idx));
        if let Some(queue) = queue {
            queue.all_landed(results);
            if serving == Some(plugin.generation) {
                queue.note_health(results, self.now, self.pauses);
            }
            return queue.since <= plugin.generation;
        }
        if let Some(queue) = self.leaving.queues.get_mut(name) {
            queue.all_landed(results);
            if queue.is_drained() {
                self.leaving.queues.remove(name);
            }
        }
        false
    }

    fn n_out(&self, plugin: &Arc<Plugin>) -> usize {
        let out = self.out.iter().find(|(it, _)| Arc::ptr_eq(it, plugin));
        out.map_or(0, |(_, n)| *n)
    }

    /// Whether any batch of a plugin of this name and generation is with the workers.
    #[must_use]
    pub fn is_out(&self, name: &str, generation: Generation) -> bool {
        let is_it = |it: &Plugin| *it.provenance.name == *name && it.generation == generation;
        self.out.iter().any(|(it, _)| is_it(it))
    }

    /// Gives back the room of what waits no more.
    pub fn shrink(&mut self) {
        self.queues.iter_mut().for_each(Queue::shrink);
        self.pods.shrink();
    }

    /// Whether nothing is dirty, and nothing is with the workers.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.workers.n_out() == 0
            && self.leaving.is_empty()
            && self.queues.iter().all(Queue::is_empty)
    }

    /// How many subjects wait, counted once for each plugin.
    #[must_use]
    pub fn n_waiting(&self) -> usize {
        self.queues.iter().map(Queue::len).sum()
    }

    /// How many batches are with the workers, or back and not collected.
    #[must_use]
    pub fn n_with_workers(&self) -> u64 {
        self.workers.n_out()
    }

    /// How many of these wait for a worker, and for nothing else.
    #[must_use]
    pub fn n_ready(&self) -> usize {
        let asked = self.queues.iter().filter(|it| it.may_be_asked(self.now));
        asked.map(Queue::len).sum()
    }

    /// The plugins that are left alone for a while since their calls failed, by name, each with
    /// why; and those that are not.
    pub fn health(&self) -> impl Iterator<Item = (&str, Option<Reason>)> {
        let plugins = self.plugins.plugins.iter();
        let queues = self.queues.iter().map(Queue::quarantine);
        plugins.map(|it| &*it.provenance.name).zip(queues)
    }

    /// The plugins that answered otherwise when they were asked again, by name and generation.
    pub fn impure(&self) -> impl Iterator<Item = (&str, Generation)> {
        let plugins = self.plugins.plugins.iter();
        let impure = plugins.filter(|it| self.samples.is_impure(it));
        impure.map(|it| (&*it.provenance.name, it.generation))
    }

    /// Keeps a picture of a subject that is about to lose a record, for the plugins
    /// that have yet to see it: or what it reported would never be heard of. Says
    /// how many pictures there was no room for.
    pub fn keep_picture(&mut self, subject: &SubjectKey) -> u64 {
        let mut n_lost = 0;
        let plugins = Arc::clone(&self.plugins);
        let mut queues = std::mem::take(&mut self.queues);
        for (plugin, queue) in plugins.plugins.iter().zip(&mut queues) {
            if !queue.is_dirty(subject) {
                continue;
            }
            let Some(picture) = self.picture(plugin, subject) else {
                continue;
            };
            if PICTURES_MAX <= queue.pictures.len() {
                n_lost += 1;
                continue;
            }
            queue.pictured(picture);
        }
        self.queues = queues;
        n_lost
    }

    fn merge(&self, plugin: &Plugin, results: Results, on_change: &mut dyn FnMut(Change)) {
        for (subject, said) in results {
            let (provenance, generation) = (&plugin.provenance, plugin.generation);
            let change = self.outcomes.merge(&subject, provenance, generation, said);
            self.look_again(&subject);
            change.into_iter().for_each(&mut *on_change);
        }
    }

    /// A record may have gone while its subject was in a call: nobody will say so again.
    fn look_again(&self, subject: &Subject) {
        let own = (&subject.key.object, subject.of_bucket);
        let around = subject.around.iter();
        let around = around.map(|(object, version)| (object, version.unwrap_or_default()));
        let pictured: Vec<_> = std::iter::once(own).chain(around).collect();
        let version = |object| self.store.view(object, Bucket::version).unwrap_or_default();
        if pictured.iter().all(|(object, was)| version(object) == *was) {
            return;
        }
        let mut live: Vec<EventRef> = Vec::new();
        for (object, _) in pictured {
            self.store.view(object, |bucket| {
                live.extend(bucket.records().iter().map(|it| it.record.event_ref()));
            });
        }
        let may_be = |it: &EventRef, event: &EventRef| {
            let is_named = it.name() == event.name() && it.namespace() == event.namespace();
            is_named && may_equal(it.uid(), event.uid())
        };
        let is_live = |event: &EventRef| live.iter().any(|it| may_be(it, event));
        self.outcomes.look_again(&subject.key, is_live);
    }

    /// The next batch, of the plugin whose turn it is.
    fn next_batch(&mut self, queues: &mut [Queue]) -> Option<Batch> {
        // Of those that go with the workers, some are kept for other plugins.
        let is_shared = 1 < queues.len();
        let room_of_one = self.workers.max_given() - self.n_workers.get();
        for _ in 0..queues.len() {
            let idx = self.turn % queues.len();
            self.turn += 1;
            let plugin = Arc::clone(&self.plugins.plugins[idx]);
            let queue = &mut queues[idx];
            let is_full = is_shared && self.n_out(&plugin) >= room_of_one;
            if is_full || !queue.may_be_asked(self.now) {
                continue;
            }
            let order = queue.order();
            let (mut subjects, mut n_events, mut n_bytes) = (Vec::new(), 0, 0);
            while n_events < self.limits.batch_events && n_bytes < self.limits.batch_bytes {
                let picture = queue.next_picture().map(|it| (it, None));
                let mut next = order.iter();
                let next = picture.or_else(|| {
                    next.find_map(|from| Some((self.next_of(&plugin, queue, *from)?, Some(*from))))
                });
                let Some((subject, from)) = next else {
                    break;
                };
                n_events += subject.events.len().max(1);
                n_bytes += subject.n_bytes();
                let is_full =
                    self.limits.batch_events < n_events || self.limits.batch_bytes < n_bytes;
                if is_full && !subjects.is_empty() {
                    if from.is_none() {
                        queue.pictures.push_front(subject);
                    }
                    break;
                }
                if let Some(from) = from {
                    queue.pop(from);
                }
                subjects.push(subject);
            }
            if !subjects.is_empty() {
                let is_asked = |it: &&Subject| batch::is_asked(it);
                let n_asked = subjects.iter().filter(is_asked).count();
                return Some(Batch {
                    is_sample: self.samples.is_due(&plugin, n_asked),
                    queue: idx,
                    plugin,
                    subjects,
                });
            }
        }
        None
    }

    /// The subject that has waited longest of these. It is left where it is.
    fn next_of(&self, plugin: &Plugin, queue: &mut Queue, from: From) -> Option<Subject> {
        loop {
            let key = queue.peek(from)?;
            match self.picture(plugin, &key) {
                Some(subject) => return Some(subject),
                None => queue.pop(from),
            }
        }
    }

    /// The subject as it is now, for this plugin. `None` if there is nothing to
    /// say about it: its records are gone, which is no evidence of anything, or
    /// none of them is of interest and nothing is held that they could end; and if it
    /// failed, the plugin does not ask for those without.
    fn picture(&self, plugin: &Plugin, key: &SubjectKey) -> Option<Subject> {
        let (object, description) = (&key.object, plugin.description());
        let subject = self.store.view(object, |bucket| {
            Subject::of(key.clone(), bucket, |it| description.wants(object, it))
        });
        let has_records = matches!(subject, Some(Some(_)));
        let mut subject = if let Some(it) = subject.flatten() {
            it
        } else {
            // A pod that failed, and that nothing is said of but at its node. One that goes by no
            // uid is nobody without a record.
            self.pods.get(object, key.uid.as_ref())?;
            Subject::without_records(key.clone())
        };
        if !self.pods.is_empty() || self.failure_code.is_some() {
            subject.know(&self.pods, self.failure_code.as_deref());
            // What is said of its node and its owner is told once: to the pod by its uid.
            if description.reads.surroundings() && !key.uid.is_empty() {
                subject.surround(&self.store, |of, it| description.wants(&of.object, it));
            }
        }
        let has_failed = subject.failure.is_some();
        let is_wanted = !subject.events.is_empty()
            || (has_failed && description.failures)
            || (has_records && self.outcomes.holds(key, &plugin.provenance));
        is_wanted.then_some(subject)
    }
}
