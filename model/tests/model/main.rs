//! What must hold in whichever order threads go on.
//!
//! A model is a handful of threads that work on the host's own sources for a moment, and what is to be so
//! after it. The checker runs it again and again, each time in another order: half of the times any thread
//! goes on at each lock, atomic or condition, half of the times the same one as long as it can, but for two
//! places (PCT). That nobody can go on any more is a failure, too.
//!
//! What this cannot see: what a processor does behind a relaxed atomic (all of them are in one order here),
//! and a condition that wakes someone without cause.
//!
//! There is no model of what one thread owns: of the dirty set, the pictures and what is in flight, which are
//! the dispatcher's, and of the plugin set, which never changes.
//!
//! The tests run each model some hundreds of times, always in the same orders. `cargo xtask model ITERATIONS`
//! runs each so often in orders of its own. What fails prints its schedule, which is run again by
//!
//! ```text
//! PORTENT_MODEL_SCHEDULE=91... cargo test --package portent-model -- --exact NAME_OF_THE_TEST
//! ```
//!
//! with the same sources. With others the schedule fits no more, and it says so.
//!
//! Each model has been seen to fail on the wrong code. Where the primitives can be made wrong that is a test
//! here ([`check_caught`]); where the source had to be, the test's comment says what was wrong with it and in
//! which run it was found.

#![allow(clippy::unwrap_used, reason = "a test says what went wrong by failing")]
#![allow(clippy::print_stderr, reason = "a failure says in which run it was")]

use std::{
    env,
    num::NonZeroUsize,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    str::FromStr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use portent_model::sync::{Fault, with_fault};
use shuttle::{
    Config, Runner,
    scheduler::{PctScheduler, RandomScheduler, ReplayScheduler, Scheduler},
};

mod interner;
mod outbox;
mod outcomes;
mod store;
mod workers;

/// How often a model is run by each of two schedulers, unless told otherwise.
const ITERATIONS: usize = 200;

/// Preempts in two places. Few mistakes need more (Burckhardt et al., ASPLOS 2010), and the other
/// scheduler preempts anywhere.
const DEPTH: usize = 3;

fn var<T: FromStr>(name: &str) -> Option<T> {
    let value = env::var(name).ok()?;
    let value = value.parse();
    Some(value.unwrap_or_else(|_| panic!("{name} cannot be read")))
}

/// Runs a model in the orders of a scheduler, and says in which of them it failed.
fn run(scheduler: impl Scheduler + 'static, model: &Arc<impl Fn() + Send + Sync + 'static>) {
    let mut config = Config::new();
    // What it warns of is what the header says of relaxed atomics.
    config.silence_warnings = true;
    // Its own are too small for who writes JSON.
    config.stack_size = 256 << 10;
    let n_runs = Arc::new(AtomicUsize::new(0));
    let (counted, model) = (Arc::clone(&n_runs), Arc::clone(model));
    let runner = Runner::new(scheduler, config);
    let ran = catch_unwind(AssertUnwindSafe(|| {
        runner.run(move || {
            counted.fetch_add(1, Relaxed);
            model();
        })
    }));
    if let Err(failure) = ran {
        eprintln!("failed in run {}", n_runs.load(Relaxed));
        resume_unwind(failure);
    }
}

/// Wants that a model holds in all orders that are tried.
fn check(model: impl Fn() + Send + Sync + 'static) {
    let model = Arc::new(model);
    if let Some(schedule) = var::<String>("PORTENT_MODEL_SCHEDULE") {
        run(ReplayScheduler::new_from_encoded(&schedule), &model);
    } else if let Some(n) = var::<NonZeroUsize>("PORTENT_MODEL_ITERATIONS") {
        // None would be to hold whatever is.
        let n = n.get();
        run(PctScheduler::new(DEPTH, n), &model);
        run(RandomScheduler::new(n), &model);
    } else {
        in_the_same_orders(&model);
    }
}

fn in_the_same_orders(model: &Arc<impl Fn() + Send + Sync + 'static>) {
    run(PctScheduler::new_from_seed(1, DEPTH, ITERATIONS), model);
    run(RandomScheduler::new_from_seed(1, ITERATIONS), model);
}

/// Wants that a model does not hold with primitives that are wrong: or it shows nothing.
fn check_caught(fault: Fault, model: impl Fn() + Send + Sync + 'static) {
    let model = Arc::new(model);
    let work = || with_fault(fault, || in_the_same_orders(&model));
    let caught = catch_unwind(AssertUnwindSafe(work));
    assert!(caught.is_err(), "{fault:?} is not seen");
}
