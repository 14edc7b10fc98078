//! Takes up a changed configuration file, as far as a running process can.
//!
//! The file is read again when it is another one: a `ConfigMap` changes by a
//! symbolic link, which no watch on the file would see. A file with a mistake
//! changes nothing. What only a restart takes up is logged, and shows in a gauge
//! until the file says what the process does.

use std::{convert::Infallible, path::PathBuf, sync::atomic::Ordering::Relaxed, time::Duration};

use tokio::time::{MissedTickBehavior, interval};

use super::{Pipeline, bounds};
use crate::config::Config;

/// How often it is looked at. kubelet itself takes up to a minute.
const EVERY: Duration = Duration::from_secs(2);

/// What runs, and what the file said last.
pub(super) struct Reload {
    path: PathBuf,
    /// What the process began with, with the live keys as they are.
    running: Config,
    /// The bytes that were looked at last.
    seen: Option<Vec<u8>>,
    to: Pipeline,
    set_log_level: Box<dyn Fn(&str)>,
}

impl Reload {
    pub(super) fn new(
        path: PathBuf,
        running: Config,
        to: Pipeline,
        set_log_level: Box<dyn Fn(&str)>,
    ) -> Self {
        Self {
            seen: std::fs::read(&path).ok(),
            path,
            running,
            to,
            set_log_level,
        }
    }

    pub(super) async fn run(mut self) -> Infallible {
        let mut every = interval(EVERY);
        every.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            every.tick().await;
            self.look();
        }
    }

    fn look(&mut self) {
        // While a ConfigMap is swapped there may be no file at all for a moment.
        let Ok(bytes) = std::fs::read(&self.path) else {
            return;
        };
        if self.seen.as_ref() == Some(&bytes) {
            return;
        }
        self.seen = Some(bytes);
        let next = match Config::read(&self.path) {
            Ok(next) => next,
            Err(err) => {
                tracing::error!("the changed configuration is not taken up: {err}");
                return;
            }
        };
        let diff = self.running.diff(&next);
        if !diff.live.is_empty() {
            tracing::info!(keys = diff.live.join(", "), "changed keys are taken up");
            self.running.store = next.store.clone();
            self.running.log.level = next.log.level;
            (self.set_log_level)(next.log.level.as_str());
            self.to.live.borrow_mut().set_bounds(bounds(&next));
            self.to.wake.notify_one();
        }
        if !diff.restart.is_empty() {
            let keys = diff.restart.join(", ");
            tracing::warn!(keys, "changed keys need a restart");
        }
        let needs_restart = !diff.restart.is_empty();
        self.to.sources.needs_restart.store(needs_restart, Relaxed);
    }
}
