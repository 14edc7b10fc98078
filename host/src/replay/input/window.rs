//! What of a stream is held: from where the reader is, as far as it has to see.
//!
//! Nothing before that is kept. What is held grows only for what asks for more of
//! one line or item, and whoever asks has a cap; it is given back afterwards.

use std::{fmt, io};

use super::position::Place;

/// How much is held as a rule: enough for hundreds of Events, and little enough
/// to stay in a processor's cache.
const BASE: usize = 128 << 10;

/// What is given back when nothing is held.
const KEPT_MAX: usize = 1 << 20;

pub(super) struct Window<'a> {
    from: Box<dyn io::Read + 'a>,
    buffer: Vec<u8>,
    /// Of what is held within the buffer.
    start: usize,
    end: usize,
    here: Place,
    ended: Option<Ended>,
}

/// Why there is no more.
#[derive(Debug)]
enum Ended {
    Whole,
    Failed(io::Error),
}

impl fmt::Debug for Window<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Window")
            .field("here", &self.here)
            .finish_non_exhaustive()
    }
}

impl<'a> Window<'a> {
    pub(super) fn new(from: Box<dyn io::Read + 'a>) -> Self {
        Self {
            from,
            buffer: Vec::new(),
            start: 0,
            end: 0,
            here: Place::START,
            ended: None,
        }
    }

    /// What is held.
    pub(super) fn held(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    pub(super) fn held_mut(&mut self) -> &mut [u8] {
        &mut self.buffer[self.start..self.end]
    }

    /// Where the first byte that is held stands.
    pub(super) fn here(&self) -> Place {
        self.here
    }

    /// Whether it ended by an error.
    pub(super) fn has_failed(&self) -> bool {
        matches!(self.ended, Some(Ended::Failed(_)))
    }

    /// By what error it ended.
    pub(super) fn failure(&mut self) -> Option<io::Error> {
        match self.ended.replace(Ended::Whole) {
            Some(Ended::Failed(err)) => Some(err),
            Some(Ended::Whole) | None => None,
        }
    }

    /// Reads some more behind what is held. False if there is no more.
    pub(super) fn fill(&mut self) -> bool {
        if self.ended.is_some() {
            return false;
        }
        self.make_room();
        let read = loop {
            match self.from.read(&mut self.buffer[self.end..]) {
                Err(err) if err.kind() == io::ErrorKind::Interrupted => {}
                read => break read,
            }
        };
        match read {
            Ok(0) => self.ended = Some(Ended::Whole),
            Ok(n) => self.end += n,
            Err(err) => self.ended = Some(Ended::Failed(err)),
        }
        self.ended.is_none()
    }

    fn make_room(&mut self) {
        let n_held = self.end - self.start;
        if n_held == 0 {
            (self.start, self.end) = (0, 0);
            if KEPT_MAX < self.buffer.len() {
                self.buffer = Vec::new();
            }
        }
        if self.end < self.buffer.len() {
            return;
        }
        if n_held < self.buffer.len() / 2 {
            self.buffer.copy_within(self.start..self.end, 0);
        } else {
            let mut larger = Vec::with_capacity(BASE.max(2 * n_held));
            larger.extend_from_slice(self.held());
            larger.resize(larger.capacity(), 0);
            self.buffer = larger;
        }
        (self.start, self.end) = (0, n_held);
    }

    /// Lets go of the first of what is held.
    pub(super) fn consume(&mut self, n: usize) {
        self.here = self.here.after(&self.held()[..n]);
        self.start += n;
    }

    /// Lets go of what is at most the rest of this line.
    pub(super) fn consume_line(&mut self, n: usize) {
        // The only line end that can be among it is the last.
        if self.held()[..n].last() == Some(&b'\n') {
            self.here = Place {
                line: self.here.line + 1,
                column: 1,
            };
        } else {
            self.here.column += n;
        }
        self.start += n;
    }

    /// Lets go of bytes that take no column.
    pub(super) fn consume_mark(&mut self, n: usize) {
        self.start += n;
    }

    pub(super) fn consume_all(&mut self) {
        self.consume(self.end - self.start);
    }

    /// The offset behind the end of the line that goes on at `from`, or behind the
    /// last byte. `None` if that is not within so many bytes.
    pub(super) fn line_end(&mut self, from: usize, max: usize) -> Option<usize> {
        let mut seen = from;
        loop {
            let held = self.held();
            if let Some(n) = memchr::memchr(b'\n', &held[seen..]) {
                return Some(seen + n + 1);
            }
            seen = held.len();
            if max < seen {
                return None;
            }
            if !self.fill() {
                return Some(seen);
            }
        }
    }

    /// Lets go of the rest of the line, however long it is.
    pub(super) fn skip_line(&mut self) {
        loop {
            match memchr::memchr(b'\n', self.held()) {
                Some(n) => return self.consume_line(n + 1),
                None => self.consume_line(self.held().len()),
            }
            if !self.fill() {
                return;
            }
        }
    }

    /// The byte at an offset, if there is one.
    pub(super) fn byte(&mut self, at: usize) -> Option<u8> {
        while self.held().len() <= at {
            if !self.fill() {
                return None;
            }
        }
        self.held().get(at).copied()
    }

    /// Lets go of what is blank, and of line ends if they are, and returns what
    /// comes then.
    pub(super) fn skip_blank(&mut self, is_blank: impl Fn(u8) -> bool) -> Option<u8> {
        loop {
            let found = self.held().iter().position(|it| !is_blank(*it));
            self.consume(found.unwrap_or(self.held().len()));
            match found {
                Some(_) => return self.held().first().copied(),
                None if !self.fill() => return None,
                None => {}
            }
        }
    }
}
