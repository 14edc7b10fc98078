//! How far a long replay is, for who waits at a terminal.
//!
//! Nothing is shown where stderr is no terminal, nor for what takes less than a
//! second.

use std::{
    io::{self, IsTerminal as _},
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// From when on it is worth to be shown.
const PATIENCE: Duration = Duration::from_secs(1);

/// How often a human reads a number.
const EVERY: Duration = Duration::from_millis(200);

/// A line that says how far it is.
pub(super) struct Progress {
    bar: ProgressBar,
    start: Instant,
    last: Instant,
}

impl Progress {
    pub(super) fn new(quiet: bool) -> Self {
        let is_shown = !quiet && io::stderr().is_terminal();
        let target = if is_shown {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(None, target);
        bar.set_style(
            ProgressStyle::with_template("{msg}").unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
        let now = Instant::now();
        Self {
            bar,
            start: now,
            last: now,
        }
    }

    /// Says how far it is, if it is time to say something again.
    pub(super) fn tell(
        &mut self,
        n_events: u64,
        n_objects: impl Fn() -> usize,
        share: Option<f64>,
    ) {
        if self.bar.is_hidden() {
            return;
        }
        let now = Instant::now();
        let taken = now - self.start;
        if taken < PATIENCE || now - self.last < EVERY {
            return;
        }
        self.last = now;
        let rate = u128::from(n_events) * 1_000 / taken.as_millis().max(1);
        let share = share.map_or_else(String::new, |it| {
            format!(", {:.0} %", (it * 100.0).min(100.0))
        });
        self.bar.set_message(format!(
            "{n_events} Events, {rate}/s, {} objects{share}",
            n_objects()
        ));
    }

    /// Writes something else, above the line.
    pub(super) fn above(&self, write: impl FnOnce()) {
        self.bar.suspend(write);
    }

    /// Takes the line away.
    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
