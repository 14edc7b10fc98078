//! One set of plugins takes the place of another while batches are in flight.
//!
//! A batch carries its plugin, so it ends on the one that it began with, and nothing waits
//! for it: neither the swap nor anyone else. What a plugin waits for is its by name. A plugin
//! that is in both sets notices nothing. Of one that is new or another version, every live
//! subject that interests it is asked again, a slice at a time and behind what changes
//! meanwhile; a newer swap of it begins that anew. Of one that is in the new set no more the
//! findings end, a slice at a time; what comes of it yet is late, and counted.
//!
//! What bounds it: the backlog (`queue`), and of what is removed the subjects that anything is
//! held of. It loads nothing and calls no guest.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use super::{Batch, Change, Dispatcher, PluginSet, Queue};
use crate::{
    outcome::Generation,
    store::Seconds,
    subject::{SubjectKey, uids},
    sync::Arc,
};

/// How many objects of the store a slice of asking again looks at.
const SLICE: usize = 64;

/// What a swap did, by the names of plugins.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Swapped {
    /// Those that are served by another version, or with other settings.
    pub replaced: Vec<Box<str>>,
    /// Those that were not there.
    pub added: Vec<Box<str>>,
    /// Those that are there no more.
    pub removed: Vec<Box<str>>,
}

/// What held the path of the Events while one set took the place of another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// For how long, the last time.
    pub last: Duration,
    /// The longest time.
    pub longest: Duration,
    /// Batches that waited for it: a worker was free for each and its subjects were dirty, and it
    /// took [`HELD_MIN`] or longer.
    pub n_batches: u64,
}

/// How long is no wait. Subjects are left to gather for longer than that in any case.
pub const HELD_MIN: Duration = Duration::from_millis(1);

/// Whose findings end, and which of them.
#[derive(Debug)]
pub(super) struct Ending {
    /// What was said by then.
    before: Generation,
    /// Whom it is said of, as far as is known.
    of: Vec<SubjectKey>,
}

/// Plugins that serve no more.
#[derive(Debug, Default)]
pub(super) struct Leaving {
    /// What of each is in a call yet.
    pub(super) queues: BTreeMap<Box<str>, Queue>,
    endings: BTreeMap<Box<str>, Ending>,
}

impl Leaving {
    pub(super) fn is_empty(&self) -> bool {
        self.queues.is_empty() && self.endings.is_empty()
    }
}

impl Dispatcher {
    /// Serves with these plugins from now on. Whoever is in a call stays in it.
    pub fn swap(&mut self, next: Arc<PluginSet>) -> Swapped {
        self.hold(|it| it.exchange(next))
    }

    /// Does what nobody else can do anything beside, and takes note of who waited for it.
    fn hold<T>(&mut self, what: impl FnOnce(&mut Self) -> T) -> T {
        let (n_ready, began) = (self.n_batches_ready(), Instant::now());
        let done = what(self);
        let took = began.elapsed();
        self.held.last = took;
        self.held.longest = self.held.longest.max(took);
        if HELD_MIN <= took {
            self.held.n_batches += u64::try_from(n_ready).unwrap_or(u64::MAX);
        }
        done
    }

    /// How many batches could begin now, about: there is room for them, and subjects are dirty.
    fn n_batches_ready(&self) -> usize {
        let asked = self.queues.iter().filter(|it| it.may_be_asked(self.now));
        // An Event each at least.
        let batches = asked.map(|it| it.len().div_ceil(self.limits.batch_events.max(1)));
        batches.sum::<usize>().min(self.workers.room())
    }

    /// What swaps held up.
    #[must_use]
    pub fn held(&self) -> Held {
        self.held
    }

    fn exchange(&mut self, next: Arc<PluginSet>) -> Swapped {
        let mut swapped = Swapped::default();
        let queues = std::mem::take(&mut self.queues);
        let mut before: BTreeMap<Box<str>, (Generation, Queue)> = self
            .plugins
            .plugins
            .iter()
            .zip(queues)
            .map(|(it, queue)| (it.provenance.name.clone(), (it.generation, queue)))
            .collect();
        for plugin in &next.plugins {
            let name = &plugin.provenance.name;
            let queue = match before.remove(name) {
                Some((generation, queue)) if generation == plugin.generation => queue,
                Some((_, mut queue)) => {
                    queue.ask_again();
                    swapped.replaced.push(name.clone());
                    queue
                }
                None => {
                    // What is held of it is merged with what it says now.
                    self.leaving.endings.remove(name);
                    let mut queue = self.leaving.queues.remove(name).unwrap_or_default();
                    queue.since = plugin.generation;
                    queue.ask_again();
                    swapped.added.push(name.clone());
                    queue
                }
            };
            self.queues.push(queue);
        }
        for (name, (_, mut queue)) in before {
            queue.drop_waiting();
            if !queue.is_drained() {
                self.leaving.queues.insert(name.clone(), queue);
            }
            let ending = Ending {
                before: next.generation,
                of: self.outcomes.held_from(&name, next.generation),
            };
            self.leaving.endings.insert(name.clone(), ending);
            swapped.removed.push(name);
        }
        self.turn = 0;
        self.plugins = next;
        let plugins = self.plugins.plugins.iter();
        self.samples.keep(plugins.map(|it| Batch::lane_of(it)));
        self.share();
        for (plugin, queue) in self.plugins.plugins.iter().zip(&mut self.queues) {
            let name = &plugin.provenance.name;
            let is_asked_again = swapped.replaced.contains(name) || swapped.added.contains(name);
            if is_asked_again && plugin.description().failures {
                // A pod may have failed of which there is no record to walk over.
                for (object, pod) in self.pods.iter().filter(|(_, it)| it.failure.is_some()) {
                    queue.mark_again(&SubjectKey {
                        object: object.clone(),
                        uid: pod.uid.clone(),
                    });
                }
            }
        }
        swapped
    }

    /// The plugins that serve.
    #[must_use]
    pub fn plugins(&self) -> &Arc<PluginSet> {
        &self.plugins
    }

    /// A slice of what a swap left to do. Says what ended by it, and whether there is more
    /// to do at once: where the workers are behind, it waits for them.
    pub fn step(&mut self, now: Seconds) -> (Vec<Change>, bool) {
        self.now = now;
        let mut more = false;
        for queue in &mut self.queues {
            let Some(slice) = queue.walk_on() else {
                continue;
            };
            // What is confirmed meanwhile is filed further on, and met there.
            let (objects, at) = self.store.walk(slice.from, Seconds::MAX, SLICE);
            for object in objects {
                let uids = self.store.view(&object, |bucket| {
                    let uids = uids(bucket).into_iter();
                    uids.map(Into::into).collect::<Vec<_>>()
                });
                for uid in uids.into_iter().flatten() {
                    queue.mark_again(&SubjectKey {
                        object: object.clone(),
                        uid,
                    });
                }
            }
            more |= at.is_some();
            queue.walked(at);
        }
        let (changes, is_ending) = self.end_slice();
        (changes, more || is_ending)
    }

    fn end_slice(&mut self) -> (Vec<Change>, bool) {
        let mut changes = Vec::new();
        let Some(mut first) = self.leaving.endings.first_entry() else {
            return (changes, false);
        };
        let name = first.key().clone();
        let ending = first.get_mut();
        if ending.of.is_empty() {
            // A subject may have got another uid since it was looked.
            ending.of = self.outcomes.held_from(&name, ending.before);
        }
        if ending.of.is_empty() {
            first.remove();
        } else {
            let left = ending.of.len().saturating_sub(SLICE);
            for subject in ending.of.drain(left..) {
                let ended = self
                    .outcomes
                    .classifier_removed(&subject, &name, ending.before);
                changes.extend(ended);
            }
        }
        (changes, !self.leaving.endings.is_empty())
    }

    /// Asks nobody again that has not changed: the process is about to end.
    pub fn drop_backlog(&mut self) {
        self.queues.iter_mut().for_each(Queue::drop_backlog);
    }

    /// How many subjects wait only because a plugin is another, as far as is known, counted
    /// once for each plugin.
    #[must_use]
    pub fn n_backlog(&self) -> usize {
        self.queues.iter().map(Queue::n_backlog).sum()
    }

    /// Results that came after their plugin was removed.
    #[must_use]
    pub fn n_late(&self) -> u64 {
        self.n_late
    }
}

#[cfg(test)]
mod tests {
    use std::{num::NonZeroUsize, thread};

    use super::*;
    use crate::{record::ObjectKey, sandbox::Limits};

    /// A plugin's queue with so many dirty subjects, and two workers.
    fn dispatcher(n_dirty: usize) -> Dispatcher {
        let on_done: Arc<dyn Fn() + Send + Sync> = Arc::new(|| {});
        let mut it = Dispatcher::new(
            Arc::default(),
            Arc::default(),
            Arc::default(),
            Limits::default(),
            NonZeroUsize::new(2).unwrap(),
            &on_done,
        )
        .unwrap();
        let mut queue = Queue::default();
        for idx in 0..n_dirty {
            queue.mark(&SubjectKey {
                object: ObjectKey::new("ns", "Pod", &format!("p-{idx}")).unwrap(),
                uid: "u".into(),
            });
        }
        it.queues.push(queue);
        it
    }

    fn n_held(n_dirty: usize) -> u64 {
        let mut it = dispatcher(n_dirty);
        it.hold(|_| thread::sleep(HELD_MIN));
        assert!(HELD_MIN <= it.held().last);
        it.held().n_batches
    }

    #[test]
    fn batches_that_could_begin_while_a_swap_holds_the_path_are_counted() {
        // 64 subjects a batch, and room for eight batches.
        assert_eq!([0, 1, 64, 65, 130, 10_000].map(n_held), [0, 1, 1, 2, 3, 8]);
    }

    #[test]
    fn a_swap_that_is_no_longer_than_a_step_holds_up_nobody_and_the_longest_is_told() {
        let mut it = dispatcher(1);
        // On a busy machine one may be longer; that one is counted, and rightly.
        let is_short = |it: &mut Dispatcher| {
            let before = it.held().n_batches;
            it.hold(|_| ());
            let Held {
                last, n_batches, ..
            } = it.held();
            assert_eq!(before < n_batches, HELD_MIN <= last);
            last < HELD_MIN
        };
        assert!((0..100).any(|_| is_short(&mut it)));
        it.hold(|_| thread::sleep(2 * HELD_MIN));
        it.hold(|_| ());
        assert!(2 * HELD_MIN <= it.held().longest);
    }
}
