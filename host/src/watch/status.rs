//! How a watch is doing: what readiness, metrics and logs tell of it.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use tokio::{sync::Notify, time::timeout};

use super::{Class, Failure, Watched};

/// What a watch does now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// It waits for its turn to LIST.
    #[default]
    Waiting,
    /// It reads a LIST.
    Listing,
    /// It follows the changes.
    Watching,
    /// It failed, and waits to try again.
    Failing(Failure),
}

impl Phase {
    /// The label of the gauge.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Listing => "listing",
            Self::Watching => "watching",
            Self::Failing(failure) if failure.class.is_refusal() => "refused",
            Self::Failing(_) => "failing",
        }
    }

    /// The values that the label may have.
    pub const LABELS: [&str; 5] = ["waiting", "listing", "watching", "refused", "failing"];
}

/// How one watch is doing. Written by the watch, read by whoever asks.
#[derive(Debug)]
pub struct Status {
    watch: Watched,
    phase: Mutex<Phase>,
    has_listed: AtomicBool,
    was_refused: AtomicBool,
    /// LISTs begun.
    pub lists: AtomicU64,
    /// Watches begun.
    pub watches: AtomicU64,
    /// Items and frames that are no Event, or no Pod, at all.
    pub undecodable: AtomicU64,
    /// Items and frames that are longer than any object can be.
    pub too_long: AtomicU64,
    failures: [AtomicU64; Class::ALL.len()],
    /// There may be an answer that was none before.
    told: Notify,
}

impl Status {
    pub(super) fn new(watch: Watched) -> Self {
        Self {
            watch,
            phase: Mutex::default(),
            has_listed: AtomicBool::new(false),
            was_refused: AtomicBool::new(false),
            lists: AtomicU64::new(0),
            watches: AtomicU64::new(0),
            undecodable: AtomicU64::new(0),
            too_long: AtomicU64::new(0),
            failures: Default::default(),
            told: Notify::new(),
        }
    }

    /// What it watches.
    #[must_use]
    pub fn watch(&self) -> &Watched {
        &self.watch
    }

    /// What it does now.
    #[must_use]
    pub fn phase(&self) -> Phase {
        let phase = self.phase.lock().unwrap_or_else(PoisonError::into_inner);
        phase.clone()
    }

    /// Whether it has read a LIST to its end, ever.
    #[must_use]
    pub fn has_listed(&self) -> bool {
        self.has_listed.load(Relaxed)
    }

    /// Whether it has got an answer: a LIST, or a refusal.
    #[must_use]
    pub fn is_answered(&self) -> bool {
        self.has_listed() || self.was_refused.load(Relaxed)
    }

    /// Waits until it has got an answer.
    async fn answered(&self) {
        loop {
            let told = self.told.notified();
            if self.is_answered() {
                return;
            }
            told.await;
        }
    }

    /// How often it failed, by class.
    pub fn failures(&self) -> impl Iterator<Item = (Class, u64)> {
        let counts = self.failures.iter().map(|it| it.load(Relaxed));
        Class::ALL.iter().copied().zip(counts)
    }

    /// What there is to say of it beside its name; of a failure its class, since a
    /// server's message may name what is nobody else's business.
    #[must_use]
    pub fn tell(&self) -> String {
        let phase = self.phase();
        let mut said = phase.as_str().to_owned();
        if let Phase::Failing(failure) = &phase {
            said = format!("{said} ({})", failure.class.as_str());
        }
        if !self.has_listed() {
            said.push_str(", never listed");
        }
        said
    }

    pub(super) fn enter(&self, phase: Phase) {
        match &phase {
            Phase::Waiting => {}
            Phase::Listing => {
                self.lists.fetch_add(1, Relaxed);
            }
            Phase::Watching => {
                self.watches.fetch_add(1, Relaxed);
            }
            Phase::Failing(failure) => {
                if failure.class.is_refusal() {
                    self.was_refused.store(true, Relaxed);
                    self.told.notify_waiters();
                }
                let count = Class::ALL
                    .iter()
                    .zip(&self.failures)
                    .find(|(class, _)| **class == failure.class);
                if let Some((_, count)) = count {
                    count.fetch_add(1, Relaxed);
                }
            }
        }
        // What is routine is no phase that anyone should look at.
        if matches!(&phase, Phase::Failing(failure) if failure.class == Class::Gone) {
            return;
        }
        let mut held = self.phase.lock().unwrap_or_else(PoisonError::into_inner);
        // To try again is no success yet: a watch that is refused stays refused.
        if matches!(*held, Phase::Failing(_)) && matches!(phase, Phase::Waiting | Phase::Listing) {
            return;
        }
        *held = phase;
    }

    pub(super) fn listed(&self) {
        self.has_listed.store(true, Relaxed);
        self.told.notify_waiters();
        *self.phase.lock().unwrap_or_else(PoisonError::into_inner) = Phase::Listing;
    }
}

/// Whether all watches have an answer and one of them at least is a LIST of Events, for Pods
/// alone tell nothing; with none, nothing is awaited.
#[must_use]
pub fn is_ready<'a>(all: impl IntoIterator<Item = &'a Status>) -> bool {
    let (mut n_watches, mut n_listed) = (0, 0);
    for it in all {
        if !it.is_answered() {
            return false;
        }
        n_watches += 1;
        let is_of_events = matches!(it.watch(), Watched::Events(_));
        n_listed += u32::from(it.has_listed() && is_of_events);
    }
    n_watches == 0 || 0 < n_listed
}

/// Waits until all watches have an answer, or for so long. Says whether they have.
pub async fn answered_within(all: &[Arc<Status>], patience: Duration) -> bool {
    let answered = async {
        for it in all {
            it.answered().await;
        }
    };
    timeout(patience, answered).await.is_ok()
}
