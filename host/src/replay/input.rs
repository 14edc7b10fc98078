//! Recorded Events, in whatever form they were recorded.
//!
//! A `List` as kubectl prints it, an API's `EventList`, single Events, JSON lines
//! of Events, watch frames, and the same in YAML as must-gather keeps it, plain or
//! compressed: each is told by what is in it. Nothing that is wrong with one line
//! or item costs the others: it is named by line and column, and reading goes on
//! behind it.
//!
//! A recording may be larger than memory, and a stream may never end. So no
//! document is held whole: a list goes item by item, and what is held at once is
//! one item or line, up to [`ITEM_MAX_BYTES`]. What is longer is skipped to its
//! end, and named. Decompression adds the window of its format: 32 KiB of gzip,
//! what a zstd frame asks for, up to 128 MiB. However much comes out of a small
//! file, no more than that is kept.

use std::{fmt, io};

use crate::{
    pods::decode::{self as pod, WirePod},
    record::{Rejected, decode::WireEvent},
};

mod compressed;
mod document;
mod files;
mod json;
mod lines;
mod list;
mod position;
mod window;
mod yaml;

pub use files::{NotFound, Source, Sources, sources};

use compressed::Decompressed;
use document::Out;
use position::Place;
use window::Window;

/// The most that a line or an item may have. etcd takes no more than 1.5 MiB of an
/// object, and JSON makes at most six bytes of one; the rest is for what holds it.
pub const ITEM_MAX_BYTES: usize = 16 << 20;

/// What items are not indented by, so that no more blanks are held.
const INDENT_MAX: usize = 256;

/// What an Event in the input says.
#[derive(Debug)]
pub enum Item<'a> {
    /// It exists.
    Put(WireEvent<'a>),
    /// It is deleted.
    Deleted(WireEvent<'a>),
}

/// Something in the input that could not be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The line, from 1, of what was decompressed.
    pub line: usize,
    /// The column in bytes, from 1.
    pub column: usize,
    /// What is wrong there.
    pub what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "line {}, column {}: {}",
            self.line, self.column, self.what
        )
    }
}

/// How an input came to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Somebody said that it holds Events: what is none is a problem.
    Named,
    /// It lay in a folder that was named. Other objects are no surprise there.
    Found,
    /// Somebody said that it holds Pods: what is none is a problem.
    Pods,
    /// It lay in a folder that somebody said holds Pods.
    PodsFound,
}

impl Origin {
    /// The same, of an input that is to hold Pods.
    #[must_use]
    pub fn of_pods(self) -> Self {
        match self {
            Self::Named | Self::Pods => Self::Pods,
            Self::Found | Self::PodsFound => Self::PodsFound,
        }
    }

    fn holds_pods(self) -> bool {
        matches!(self, Self::Pods | Self::PodsFound)
    }

    fn is_found(self) -> bool {
        matches!(self, Self::Found | Self::PodsFound)
    }
}

/// Who takes what is read.
pub trait Reader {
    /// An Event. It may be refused.
    ///
    /// # Errors
    ///
    /// Why it was refused.
    fn item(&mut self, item: Item<'_>) -> Result<(), Rejected>;
    /// A Pod, in an input that holds [Pods](Origin::of_pods). It may be refused.
    ///
    /// # Errors
    ///
    /// Why it was refused.
    fn pod(&mut self, pod: WirePod<'_>) -> Result<(), pod::Rejected>;
    /// Something that is none.
    fn problem(&mut self, problem: Problem);
    /// Where the Event is that was refused, and why.
    fn refused(&mut self, problem: Problem);
    /// A well-formed object of another kind, in an input that was
    /// [found](Origin::Found).
    fn foreign(&mut self);
    /// Whether nothing more is wanted; asked between items.
    fn is_stopped(&self) -> bool;
}

/// Reads all of an input, or until the reader has enough.
///
/// It may be compressed with gzip or zstd. What was read before it failed, or
/// ended too early, counts; the failure is a problem at the place that was reached.
///
/// # Errors
///
/// If not even its first bytes can be read.
pub fn read(from: impl io::Read, reader: &mut impl Reader, origin: Origin) -> io::Result<()> {
    read_capped(from, reader, origin, ITEM_MAX_BYTES)
}

/// Reads all of an input whose lines and items may have so many bytes.
fn read_capped(
    from: impl io::Read,
    reader: &mut impl Reader,
    origin: Origin,
    item_max: usize,
) -> io::Result<()> {
    let mut window = Window::new(Box::new(Decompressed::new(from)));
    if !window.fill()
        && let Some(err) = window.failure()
    {
        return Err(err);
    }
    let out = Out::new(reader, origin);
    Input {
        window,
        out,
        item_max,
    }
    .all();
    Ok(())
}

/// An input that is being read.
#[derive(Debug)]
struct Input<'a, 'r, R> {
    window: Window<'a>,
    out: Out<'r, R>,
    item_max: usize,
}

impl<R: Reader> Input<'_, '_, R> {
    fn all(&mut self) {
        const BOM: &[u8] = b"\xef\xbb\xbf";
        if (0..BOM.len()).all(|at| self.window.byte(at) == Some(BOM[at])) {
            self.window.consume_mark(BOM.len());
        }
        while !self.out.is_stopped() {
            if self.plain_line() {
                continue;
            }
            match self.window.skip_blank(|it| it.is_ascii_whitespace()) {
                Some(b'{' | b'[') => self.document(),
                Some(_) => {
                    if !self.other_line() {
                        break;
                    }
                }
                None => break,
            }
        }
        if let Some(err) = self.window.failure() {
            self.out
                .problem(self.window.here(), &format_args!("cut off: {err}"));
        }
    }

    /// Whether it is known why there is no more, so that what is not whole at the
    /// end is no surprise: reading failed, or was stopped.
    fn is_end_told(&self) -> bool {
        self.window.has_failed() || self.out.is_stopped()
    }

    fn too_large(&mut self, at: Place) {
        let what = format_args!(
            "a line or item of more than {} bytes, which is skipped",
            self.item_max
        );
        self.out.problem(at, &what);
    }
}

#[cfg(test)]
mod tests;
