//! Threads that guests are called on.
//!
//! They are our own, with stacks of a known size, since a guest that recurses
//! aborts the process on a small one. What they are given comes back in the
//! order in which it was given ([`Workers::next`]), or as it is done
//! ([`Workers::finished`]).

use std::{
    collections::BTreeMap,
    fmt, io,
    num::NonZeroUsize,
    panic::{self, AssertUnwindSafe},
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{self, Receiver, Sender},
    },
    thread,
};

use crate::sandbox::STACK_MIN_BYTES;

/// Jobs that may be with the workers, for each of them: one that it works on,
/// and some so that it never waits for the next, nor for a slower neighbour.
const JOBS_PER_WORKER: usize = 4;

/// A fixed number of threads that all do one thing.
pub(super) struct Workers<Job, Done> {
    jobs: Sender<(u64, Job)>,
    done: Receiver<(u64, thread::Result<Done>)>,
    /// Finished before one that was given earlier.
    early: BTreeMap<u64, thread::Result<Done>>,
    n_given: u64,
    n_returned: u64,
    max_given: u64,
}

impl<Job: Send + 'static, Done: Send + 'static> Workers<Job, Done> {
    /// Starts the threads. They end when this is dropped. `on_done` is called
    /// whenever there is something to take.
    pub(super) fn start(
        name: &str,
        n_workers: NonZeroUsize,
        work: impl Fn(Job) -> Done + Send + Sync + 'static,
        on_done: &Arc<dyn Fn() + Send + Sync>,
    ) -> io::Result<Self> {
        // Bounded by `has_room`.
        let (jobs, given) = mpsc::channel::<(u64, Job)>();
        let (finished, done) = mpsc::channel();
        let given = Arc::new(Mutex::new(given));
        let work = Arc::new(work);
        for idx in 0..n_workers.get() {
            let (given, finished, work) = (Arc::clone(&given), finished.clone(), Arc::clone(&work));
            let on_done = Arc::clone(on_done);
            thread::Builder::new()
                .name(format!("{name}-{idx}"))
                .stack_size(STACK_MIN_BYTES)
                .spawn(move || {
                    loop {
                        let job = given.lock().unwrap_or_else(PoisonError::into_inner).recv();
                        let Ok((ticket, job)) = job else { break };
                        // A bug of ours must reach the caller, not leave it waiting.
                        let done = panic::catch_unwind(AssertUnwindSafe(|| work(job)));
                        if finished.send((ticket, done)).is_err() {
                            break;
                        }
                        on_done();
                    }
                })?;
        }
        let max_given = u64::try_from(n_workers.get() * JOBS_PER_WORKER).unwrap_or(u64::MAX);
        Ok(Self {
            jobs,
            done,
            early: BTreeMap::new(),
            n_given: 0,
            n_returned: 0,
            max_given,
        })
    }

    /// Whether another job should be given now.
    pub(super) fn has_room(&self) -> bool {
        self.n_given - self.n_returned < self.max_given
    }

    /// Gives a job to whichever worker is free first.
    pub(super) fn submit(&mut self, job: Job) {
        // The workers hold the receiver for as long as `self` holds the sender.
        if self.jobs.send((self.n_given, job)).is_ok() {
            self.n_given += 1;
        }
    }

    /// How many jobs are with the workers, or done and not taken.
    pub(super) fn n_out(&self) -> u64 {
        self.n_given - self.n_returned
    }

    /// What came of a job that is done, whichever was done first. `None` when
    /// none is. Who takes in this order must not take in the other.
    pub(super) fn finished(&mut self) -> Option<Done> {
        let (_, done) = self.done.try_recv().ok()?;
        self.n_returned += 1;
        Some(unwound(done))
    }

    /// What came of the job that was given longest ago. `None` when there is none.
    pub(super) fn next(&mut self) -> Option<Done> {
        if self.n_returned == self.n_given {
            return None;
        }
        let done = loop {
            if let Some(done) = self.early.remove(&self.n_returned) {
                break done;
            }
            let (ticket, done) = self.done.recv().ok()?;
            self.early.insert(ticket, done);
        };
        self.n_returned += 1;
        Some(unwound(done))
    }
}

/// A bug of ours goes on where its result would.
fn unwound<Done>(done: thread::Result<Done>) -> Done {
    done.unwrap_or_else(|bug| panic::resume_unwind(bug))
}

impl<Job, Done> fmt::Debug for Workers<Job, Done> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workers")
            .field("n_given", &self.n_given)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    fn quiet() -> Arc<dyn Fn() + Send + Sync> {
        Arc::new(|| {})
    }

    #[test]
    fn results_come_in_the_order_of_the_jobs() {
        // The first job cannot end before the second has begun.
        let both = Arc::new(Barrier::new(2));
        let work = move |it: u32| {
            if it < 2 {
                both.wait();
            }
            it * 10
        };
        let mut workers =
            Workers::start("test", NonZeroUsize::new(2).unwrap(), work, &quiet()).unwrap();
        for it in 0..8 {
            assert!(workers.has_room());
            workers.submit(it);
        }
        assert!(!workers.has_room());

        let results: Vec<_> = std::iter::from_fn(|| workers.next()).collect();

        assert_eq!(results, [0, 10, 20, 30, 40, 50, 60, 70]);
    }

    #[test]
    fn results_can_be_taken_as_they_are_done_and_whoever_waits_is_told() {
        // The first job cannot end before the second has.
        let (let_go, held) = mpsc::channel();
        let (told, is_told) = mpsc::channel();
        let held = Mutex::new(held);
        let work = move |it: u32| {
            if it == 0 {
                held.lock().unwrap().recv().unwrap();
            }
            it
        };
        let on_done: Arc<dyn Fn() + Send + Sync> = Arc::new(move || told.send(()).unwrap());
        let two = NonZeroUsize::new(2).unwrap();
        let mut workers = Workers::start("test", two, work, &on_done).unwrap();
        workers.submit(0);
        workers.submit(1);
        is_told.recv().unwrap();
        assert_eq!(workers.finished(), Some(1));
        assert_eq!((workers.finished(), workers.n_out()), (None, 1));

        let_go.send(()).unwrap();

        is_told.recv().unwrap();
        assert_eq!((workers.finished(), workers.n_out()), (Some(0), 0));
    }

    #[test]
    fn a_bug_in_a_worker_reaches_the_caller() {
        let one = NonZeroUsize::MIN;
        let work = |_: u32| -> u32 { panic!("bug") };
        let mut workers = Workers::start("test", one, work, &quiet()).unwrap();
        workers.submit(1);
        let result = panic::catch_unwind(AssertUnwindSafe(|| workers.next()));
        assert!(result.is_err());
    }
}
