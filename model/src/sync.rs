//! What the sources under test share state with, in place of the host's `sync`.
//!
//! They can be made wrong ([`with_fault`]), so that a test sees that a model finds what is wrong in the
//! sources as they are.

use std::cell::Cell;

pub use shuttle::{
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak, atomic, mpsc},
    thread,
};

pub use crate::map::{DashMap, Entry};

/// What can be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The map lets go of its lock between the decision to remove and the removal.
    TwoStepRemoval,
    /// A condition tells one waiter of every second news only.
    EverySecondUnheard,
}

std::thread_local! {
    static FAULT: Cell<Option<Fault>> = const { Cell::new(None) };
}

/// Works with primitives that have a fault. What a model calls threads are all on the one that runs it.
pub fn with_fault<R>(fault: Fault, work: impl FnOnce() -> R) -> R {
    struct Repair;
    impl Drop for Repair {
        fn drop(&mut self) {
            FAULT.set(None);
        }
    }
    let _repair = Repair;
    FAULT.set(Some(fault));
    work()
}

pub(crate) fn has(fault: Fault) -> bool {
    FAULT.get() == Some(fault)
}

/// A condition that may be hard of hearing.
#[derive(Debug, Default)]
pub struct Condvar {
    condvar: shuttle::sync::Condvar,
    n_notified: std::sync::atomic::AtomicUsize,
}

#[allow(
    missing_docs,
    clippy::missing_errors_doc,
    reason = "they are those of the same names"
)]
impl Condvar {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    pub fn wait<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
    ) -> Result<MutexGuard<'a, T>, PoisonError<MutexGuard<'a, T>>> {
        self.condvar.wait(guard)
    }

    pub fn wait_while<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        condition: impl FnMut(&mut T) -> bool,
    ) -> Result<MutexGuard<'a, T>, PoisonError<MutexGuard<'a, T>>> {
        self.condvar.wait_while(guard, condition)
    }

    pub fn notify_one(&self) {
        let n = self
            .n_notified
            .fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        if n.is_multiple_of(2) || !has(Fault::EverySecondUnheard) {
            self.condvar.notify_one();
        }
    }

    pub fn notify_all(&self) {
        self.condvar.notify_all();
    }
}
