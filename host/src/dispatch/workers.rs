//! Threads that guests are called on.
//!
//! They are our own, with stacks of a known size, since a guest that recurses
//! aborts the process on a small one. What they are given comes back in the
//! order in which it was given ([`Workers::next`]), or as it is done
//! ([`Workers::finished`]).
//!
//! Each job is of a lane, and no lane may have more threads than a cap: so whoever is slow in
//! one lane keeps a thread for the others.
//!
//! To wake a thread costs more than most calls of a guest. So one is woken for two
//! jobs, and whoever waits for results is told when a worker has nothing left to do.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt, io,
    num::NonZeroUsize,
    panic::{self, AssertUnwindSafe},
};

use crate::{
    sandbox::STACK_MIN_BYTES,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        mpsc::{self, Receiver},
        thread,
    },
};

/// Jobs that may be with the workers, for each of them: one that it works on,
/// and some so that it never waits for the next, nor for a slower neighbour.
const JOBS_PER_WORKER: usize = 4;

/// What waits for a worker. [`Workers::room`] bounds it.
struct Jobs<Job> {
    queue: Mutex<Queue<Job>>,
    more: Condvar,
}

struct Queue<Job> {
    waiting: VecDeque<(u64, Lane, Job)>,
    /// How many threads each lane has, where it has any: as many entries as threads at most.
    running: Vec<(Lane, usize)>,
    cap: usize,
    is_over: bool,
}

/// Whose a job is.
pub(super) type Lane = u64;

impl<Job> Queue<Job> {
    /// The place of the first job whose lane may have another thread.
    fn next(&self) -> Option<usize> {
        let may = |lane: Lane| self.n_running(lane) < self.cap;
        self.waiting.iter().position(|(_, lane, _)| may(*lane))
    }

    fn n_running(&self, lane: Lane) -> usize {
        let running = self.running.iter().find(|(it, _)| *it == lane);
        running.map_or(0, |(_, n)| *n)
    }

    fn begun(&mut self, lane: Lane) {
        match self.running.iter_mut().find(|(it, _)| *it == lane) {
            Some((_, n)) => *n += 1,
            None => self.running.push((lane, 1)),
        }
    }

    fn ended(&mut self, lane: Lane) {
        for (it, n) in &mut self.running {
            if *it == lane {
                *n -= 1;
            }
        }
        self.running.retain(|(_, n)| 0 < *n);
    }
}

impl<Job> Default for Jobs<Job> {
    fn default() -> Self {
        let queue = Queue {
            waiting: VecDeque::new(),
            running: Vec::new(),
            cap: usize::MAX,
            is_over: false,
        };
        Self {
            queue: Mutex::new(queue),
            more: Condvar::new(),
        }
    }
}

impl<Job> Jobs<Job> {
    fn lock(&self) -> MutexGuard<'_, Queue<Job>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a job. `None` when there will be no more.
    fn take(&self) -> Option<(u64, Lane, Job)> {
        let is_idle = |it: &mut Queue<Job>| it.next().is_none() && !it.is_over;
        let queue = self.more.wait_while(self.lock(), is_idle);
        let mut queue = queue.unwrap_or_else(PoisonError::into_inner);
        if queue.is_over {
            return None;
        }
        let idx = queue.next()?;
        let (ticket, lane, job) = queue.waiting.remove(idx)?;
        queue.begun(lane);
        Some((ticket, lane, job))
    }

    /// A job is done. Says whether there is none that this thread could go on with.
    fn done(&self, lane: Lane) -> bool {
        let mut queue = self.lock();
        queue.ended(lane);
        // It is this thread that goes on with what the lane has room for now, or with what
        // another was woken for, which then does.
        queue.next().is_none()
    }
}

/// A fixed number of threads that all do one thing.
pub(super) struct Workers<Job, Done> {
    jobs: Arc<Jobs<Job>>,
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
        let jobs = Arc::new(Jobs::default());
        let (finished, done) = mpsc::channel();
        let work = Arc::new(work);
        for idx in 0..n_workers.get() {
            let (jobs, finished, work) = (Arc::clone(&jobs), finished.clone(), Arc::clone(&work));
            let on_done = Arc::clone(on_done);
            thread::Builder::new()
                .name(format!("{name}-{idx}"))
                .stack_size(STACK_MIN_BYTES)
                .spawn(move || {
                    while let Some((ticket, lane, job)) = jobs.take() {
                        // A bug of ours must reach the caller, not leave it waiting.
                        let done = panic::catch_unwind(AssertUnwindSafe(|| work(job)));
                        if finished.send((ticket, done)).is_err() {
                            break;
                        }
                        if jobs.done(lane) {
                            on_done();
                        }
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

    /// How many jobs may be with the workers.
    pub(super) fn max_given(&self) -> usize {
        usize::try_from(self.max_given).unwrap_or(usize::MAX)
    }

    /// How many more jobs may be given now.
    pub(super) fn room(&self) -> usize {
        let room = self.max_given.saturating_sub(self.n_out());
        usize::try_from(room).unwrap_or(usize::MAX)
    }

    /// How many threads a lane may have from now on.
    pub(super) fn set_cap(&self, cap: NonZeroUsize) {
        self.jobs.lock().cap = cap.get();
        self.jobs.more.notify_all();
    }

    /// Gives jobs, each with its lane, to whichever workers are free first.
    pub(super) fn submit(&mut self, new: Vec<(Lane, Job)>) {
        let n_new = u64::try_from(new.len()).unwrap_or(u64::MAX);
        let mut jobs = self.jobs.lock();
        let tickets = self.n_given..;
        let new = tickets.zip(new);
        jobs.waiting
            .extend(new.map(|(ticket, (lane, job))| (ticket, lane, job)));
        // With those among them that wait behind a slow one.
        let n_waiting = jobs.waiting.len();
        drop(jobs);
        self.n_given += n_new;
        for _ in 0..n_waiting.div_ceil(2) {
            self.jobs.more.notify_one();
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

impl<Job, Done> Drop for Workers<Job, Done> {
    fn drop(&mut self) {
        self.jobs.lock().is_over = true;
        self.jobs.more.notify_all();
    }
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
        assert_eq!(workers.room(), 8);
        // The two at once, and then the other six.
        workers.submit(vec![(0, 0)]);
        workers.submit(vec![(0, 1)]);
        workers.submit((2..8).map(|it| (0, it)).collect());
        assert_eq!(workers.room(), 0);

        let results: Vec<_> = std::iter::from_fn(|| workers.next()).collect();

        assert_eq!(results, [0, 10, 20, 30, 40, 50, 60, 70]);
    }

    /// Two workers, where the job 0 goes on until it is let go.
    struct OneSlow {
        workers: Workers<u32, u32>,
        let_go: mpsc::Sender<()>,
        is_told: Receiver<()>,
    }

    impl OneSlow {
        fn start() -> Self {
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
            Self {
                workers: Workers::start("test", two, work, &on_done).unwrap(),
                let_go,
                is_told,
            }
        }

        /// The next that is done, whenever whoever waits is told of it.
        fn next_done(&mut self) -> u32 {
            loop {
                if let Some(done) = self.workers.finished() {
                    return done;
                }
                self.is_told.recv().unwrap();
            }
        }
    }

    #[test]
    fn results_can_be_taken_as_they_are_done_and_whoever_waits_is_told() {
        let mut it = OneSlow::start();
        it.workers.submit(vec![(0, 0)]);
        it.workers.submit(vec![(0, 1)]);
        assert_eq!(it.next_done(), 1);
        assert_eq!((it.workers.finished(), it.workers.n_out()), (None, 1));
        it.let_go.send(()).unwrap();
        assert_eq!((it.next_done(), it.workers.n_out()), (0, 0));
    }

    #[test]
    fn a_job_behind_a_slow_one_goes_to_another_worker_with_the_next() {
        let mut it = OneSlow::start();
        // One worker is woken for both.
        it.workers.submit(vec![(0, 0), (0, 1)]);
        it.workers.submit(vec![(0, 2)]);
        let mut done = [it.next_done(), it.next_done()];
        done.sort_unstable();
        assert_eq!(done, [1, 2]);
        it.let_go.send(()).unwrap();
        assert_eq!(it.next_done(), 0);
    }

    #[test]
    fn a_lane_that_is_at_its_cap_keeps_no_other_waiting_and_goes_on_when_it_may() {
        let mut it = OneSlow::start();
        it.workers.set_cap(NonZeroUsize::MIN);
        // The lane 7 has its thread with the first; the others of it wait, and lane 8 does not.
        it.workers.submit(vec![(7, 0), (7, 1), (7, 2), (8, 3)]);
        assert_eq!(it.next_done(), 3);
        assert_eq!((it.workers.finished(), it.workers.n_out()), (None, 3));
        it.let_go.send(()).unwrap();
        let mut done = [it.next_done(), it.next_done(), it.next_done()];
        done.sort_unstable();
        assert_eq!(done, [0, 1, 2]);
    }

    #[test]
    fn a_bug_in_a_worker_reaches_the_caller() {
        let one = NonZeroUsize::MIN;
        let work = |_: u32| -> u32 { panic!("bug") };
        let mut workers = Workers::start("test", one, work, &quiet()).unwrap();
        workers.submit(vec![(0, 1)]);
        let result = panic::catch_unwind(AssertUnwindSafe(|| workers.next()));
        assert!(result.is_err());
    }
}
