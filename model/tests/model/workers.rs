//! The threads that guests are called on.

use std::num::NonZeroUsize;

use portent_model::{
    dispatch::Workers,
    sync::{
        Arc, Fault, Mutex,
        mpsc::{self, Receiver},
        thread,
    },
};
use shuttle::rand::{Rng as _, thread_rng};

use super::{check, check_caught};

/// Workers, of which it is known when they have ended.
struct Watched {
    workers: Workers<u32, u32>,
    is_told: Receiver<()>,
    have_ended: Receiver<()>,
}

impl Watched {
    fn start(n_workers: usize, work: impl Fn(u32) + Send + Sync + 'static) -> Self {
        let (told, is_told) = mpsc::channel();
        let (alive, have_ended) = mpsc::channel::<()>();
        let work = move |it| {
            // It goes with the last of the threads that have it.
            let _alive = &alive;
            work(it);
            it
        };
        // Whoever waits may be gone.
        let on_done: Arc<dyn Fn() + Send + Sync> = Arc::new(move || {
            told.send(()).ok();
        });
        let n_workers = NonZeroUsize::new(n_workers).unwrap();
        Self {
            workers: Workers::start("test", n_workers, work, &on_done).unwrap(),
            is_told,
            have_ended,
        }
    }

    /// The next that is done, whenever whoever waits is told of it.
    fn next_done(&mut self) -> u32 {
        loop {
            if let Some(it) = self.workers.finished() {
                return it;
            }
            self.is_told.recv().unwrap();
        }
    }

    fn end(self) {
        let Self {
            workers,
            is_told: _,
            have_ended,
        } = self;
        drop(workers);
        assert!(have_ended.recv().is_err(), "they send nothing");
    }
}

/// Gives six jobs, in parts, and calls this between the parts.
fn submit_six(it: &mut Watched, mut between: impl FnMut(&mut Watched)) {
    let mut next = 0;
    while next < 6 {
        let end = thread_rng().gen_range(next..6) + 1;
        it.workers.submit((next..end).collect());
        next = end;
        between(it);
    }
}

/// Jobs are given in parts and taken as they are done.
fn as_they_are_done() {
    let worked = Arc::new(Mutex::new(Vec::new()));
    let all = Arc::clone(&worked);
    let mut it = Watched::start(2, move |it| all.lock().unwrap().push(it));
    let mut done = Vec::new();
    submit_six(&mut it, |it| done.extend(it.workers.finished()));
    while it.workers.n_out() != 0 {
        done.push(it.next_done());
    }
    let mut worked = worked.lock().unwrap().clone();
    for jobs in [&mut worked, &mut done] {
        jobs.sort_unstable();
        assert_eq!(*jobs, [0, 1, 2, 3, 4, 5]);
    }
    it.end();
}

/// Jobs are given in parts and taken in their order.
fn in_order() {
    let mut it = Watched::start(2, |_| thread::yield_now());
    let mut done = Vec::new();
    submit_six(&mut it, |it| {
        if thread_rng().r#gen::<bool>() {
            done.extend(it.workers.next());
        }
    });
    while let Some(it) = it.workers.next() {
        done.push(it);
    }
    assert_eq!(done, [0, 1, 2, 3, 4, 5]);
    it.end();
}

/// Who works on 0 waits for who works on 1.
fn slow_one() {
    let (let_go, held) = mpsc::channel();
    let (let_go, held) = (Mutex::new(let_go), Mutex::new(held));
    let mut it = Watched::start(2, move |it| match it {
        0 => held.lock().unwrap().recv().unwrap(),
        1 => let_go.lock().unwrap().send(()).unwrap(),
        _ => {}
    });
    it.workers.submit(vec![2]);
    it.workers.submit(vec![0]);
    it.workers.submit(vec![1]);
    let mut done = [it.next_done(), it.next_done(), it.next_done()];
    done.sort_unstable();
    assert_eq!(done, [0, 1, 2]);
    it.end();
}

/// Who works on 0 waits for who works on 1, which is of another lane and behind one that may not
/// have a thread yet.
fn lanes() {
    let (let_go, held) = mpsc::channel();
    let (let_go, held) = (Mutex::new(let_go), Mutex::new(held));
    let mut it = Watched::start(2, move |it| match it {
        0 => held.lock().unwrap().recv().unwrap(),
        1 => let_go.lock().unwrap().send(()).unwrap(),
        _ => {}
    });
    it.workers.set_cap(NonZeroUsize::MIN);
    it.workers.submit_in_lanes(vec![(7, 0), (7, 2)]);
    it.workers.submit_in_lanes(vec![(8, 1)]);
    let mut done = [it.next_done(), it.next_done(), it.next_done()];
    done.sort_unstable();
    assert_eq!(done, [0, 1, 2]);
    it.end();
}

/// Nobody waits for what was given.
fn given_up() {
    let mut it = Watched::start(2, |_| thread::yield_now());
    submit_six(&mut it, |_| {});
    it.workers.finished();
    it.end();
}

/// With half of the workers woken for an odd number it fails in run 3, with workers woken
/// before there is anything in run 9, with a look and then a wait in run 26, if whoever
/// waits is told before there is a result in run 7.
#[test]
fn each_job_is_done_once_and_whoever_waits_is_told() {
    check(as_they_are_done);
}

#[test]
fn a_worker_that_is_not_woken_is_seen_to_leave_jobs_waiting() {
    check_caught(Fault::EverySecondUnheard, as_they_are_done);
}

#[test]
fn results_come_in_the_order_of_the_jobs_whoever_is_first() {
    check(in_order);
}

/// If nobody is woken where jobs wait already it fails in run 30.
#[test]
fn a_job_that_is_given_apart_never_waits_for_a_slow_one() {
    check(slow_one);
}

/// With one worker woken at the end, [`as_they_are_done`] fails in run 5; with a look and
/// then a wait, this in run 24.
#[test]
fn workers_end_whatever_they_were_given() {
    check(given_up);
}

/// A worker that looks at the front of the line only never comes to 1.
#[test]
fn a_lane_at_its_cap_keeps_no_other_waiting() {
    check(lanes);
}
