//! The frames of a watch: a line each.

use super::inflow::Inflow;

/// A line, without its end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// As many bytes of what is held, and the line end behind them.
    Whole(usize),
    /// It was longer than any Event can be, and is gone.
    TooLong,
}

/// Finds lines.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// How much of what is held has no line end.
    n_searched: usize,
    is_too_long: bool,
}

impl Lines {
    /// The next line of what has come, to be consumed with its end by the caller.
    pub(super) fn next(&mut self, inflow: &mut Inflow<'_>, event_max: usize) -> Option<Line> {
        let held = inflow.held();
        let found = memchr::memchr(b'\n', held.get(self.n_searched..).unwrap_or_default())
            .map(|it| self.n_searched + it);
        self.n_searched = 0;
        match found {
            Some(end) if self.is_too_long || event_max < end => {
                self.is_too_long = false;
                inflow.consume(end + 1);
                Some(Line::TooLong)
            }
            Some(end) => Some(Line::Whole(end)),
            None if event_max < held.len() => {
                self.is_too_long = true;
                let n = held.len();
                inflow.consume(n);
                None
            }
            None => {
                self.n_searched = held.len();
                None
            }
        }
    }
}
