//! Which subjects are to be classified, and the way from there to an outcome.
//!
//! A subject that has changed is *dirty* for each plugin that may care. Marking
//! is cheap and repeated marks are one; classifying takes a batch of dirty
//! subjects of one plugin to a worker thread. Results are merged in the order in
//! which the batches were taken, whatever order the workers finish in, so that
//! what comes out does not depend on how many there are.
//!
//! There is no timer: whatever is dirty when a worker is free is taken. What
//! bounds the dirty set is the store: a subject is in it once for each plugin.

use std::{num::NonZeroUsize, sync::Arc};

use crate::{
    outcome::{Change, Outcome, Outcomes},
    plugins::{Plugin, PluginSet},
    reason::CallFailure,
    record::Record,
    sandbox::Limits,
    store::Store,
    subject::{Subject, SubjectKey},
};

mod batch;
mod dirty;
mod workers;

use dirty::DirtySet;
use workers::Workers;

/// Keeps what is dirty, and classifies it.
#[derive(Debug)]
pub struct Dispatcher {
    store: Arc<Store>,
    outcomes: Arc<Outcomes>,
    plugins: Arc<PluginSet>,
    /// One for each plugin, in their order.
    dirty: Vec<DirtySet>,
    workers: Workers<Batch, (Arc<Plugin>, Results)>,
    limits: Limits,
}

/// Subjects for one call of one plugin.
#[derive(Debug)]
struct Batch {
    plugin: Arc<Plugin>,
    subjects: Vec<Subject>,
}

/// What came of a batch, subject by subject.
type Results = Vec<(Subject, Result<Outcome, CallFailure>)>;

impl Dispatcher {
    /// A dispatcher with this many worker threads.
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
    ) -> std::io::Result<Self> {
        let dirty = plugins
            .plugins
            .iter()
            .map(|_| DirtySet::default())
            .collect();
        let workers = Workers::start("classify", n_workers, |it: Batch| {
            let results = batch::classify(&it.plugin.guest, it.subjects);
            (it.plugin, results)
        })?;
        Ok(Self {
            store,
            outcomes,
            plugins,
            dirty,
            workers,
            limits,
        })
    }

    /// Marks a subject dirty for each plugin that is interested in one of these
    /// records of it.
    pub fn mark(&mut self, subject: &SubjectKey, records: &[&Record]) {
        for (plugin, dirty) in self.plugins.plugins.iter().zip(&mut self.dirty) {
            if records
                .iter()
                .any(|it| plugin.description().wants(&subject.object, it))
            {
                dirty.mark(subject);
            }
        }
    }

    /// Marks a subject dirty for every plugin: its records are others now.
    pub fn mark_moved(&mut self, subject: &SubjectKey) {
        for dirty in &mut self.dirty {
            dirty.mark(subject);
        }
    }

    /// Whether any plugin has yet to see what is known of this subject.
    #[must_use]
    pub fn is_dirty(&self, subject: &SubjectKey) -> bool {
        self.dirty.iter().any(|it| it.contains(subject))
    }

    /// Classifies these subjects now, for the plugins that have yet to see them.
    pub fn settle(&mut self, subjects: &[SubjectKey], on_change: &mut dyn FnMut(Change)) {
        let mut only: Vec<_> = self.dirty.iter().map(|_| DirtySet::default()).collect();
        for (all, only) in self.dirty.iter_mut().zip(&mut only) {
            for subject in subjects.iter().filter(|it| all.remove(it)) {
                only.mark(subject);
            }
        }
        self.run(only, on_change);
    }

    /// Classifies all that is dirty.
    pub fn drain(&mut self, on_change: &mut dyn FnMut(Change)) {
        let all = self.dirty.iter_mut().map(std::mem::take).collect();
        self.run(all, on_change);
    }

    fn run(&mut self, mut dirty: Vec<DirtySet>, on_change: &mut dyn FnMut(Change)) {
        let mut turn = 0;
        loop {
            // Taken as workers get free, so that only a few batches exist at once.
            while self.workers.has_room() {
                let Some(batch) = self.next_batch(&mut dirty, &mut turn) else {
                    break;
                };
                self.workers.submit(batch);
            }
            let Some((plugin, results)) = self.workers.next() else {
                break;
            };
            for (subject, said) in results {
                let provenance = &plugin.provenance;
                let generation = self.plugins.generation;
                let change = self.outcomes.merge(&subject, provenance, generation, said);
                change.into_iter().for_each(&mut *on_change);
            }
        }
    }

    /// The next batch, of the plugin whose turn it is.
    fn next_batch(&self, dirty: &mut [DirtySet], turn: &mut usize) -> Option<Batch> {
        for _ in 0..dirty.len() {
            let idx = *turn % dirty.len();
            *turn += 1;
            let plugin = &self.plugins.plugins[idx];
            let (mut subjects, mut n_events, mut n_bytes) = (Vec::new(), 0, 0);
            while n_events < self.limits.batch_events && n_bytes < self.limits.batch_bytes {
                let Some(key) = dirty[idx].peek() else { break };
                let Some(subject) = self.picture(plugin, key) else {
                    dirty[idx].pop();
                    continue;
                };
                n_events += subject.events.len().max(1);
                n_bytes += subject.n_bytes();
                let is_full =
                    self.limits.batch_events < n_events || self.limits.batch_bytes < n_bytes;
                if is_full && !subjects.is_empty() {
                    break;
                }
                dirty[idx].pop();
                subjects.push(subject);
            }
            if !subjects.is_empty() {
                return Some(Batch {
                    plugin: Arc::clone(plugin),
                    subjects,
                });
            }
        }
        None
    }

    /// The subject as it is now, for this plugin. `None` if there is nothing to
    /// say about it: its records are gone, which is no evidence of anything, or
    /// none of them is of interest and nothing is held that they could end.
    fn picture(&self, plugin: &Plugin, key: &SubjectKey) -> Option<Subject> {
        let object = &key.object;
        let subject = self.store.view(object, |bucket| {
            Subject::of(key.clone(), bucket, |it| {
                plugin.description().wants(object, it)
            })
        });
        let subject = subject.flatten()?;
        let is_wanted = !subject.events.is_empty() || self.outcomes.holds(key, &plugin.provenance);
        is_wanted.then_some(subject)
    }
}
