//! The bytes of an answer as they come, and what of them is not used yet.
//!
//! A page or a watch is read a piece at a time: what is held is one Event, never
//! a page of them. Events are small, but whoever may write Events may write one
//! of over a megabyte, so what a stream holds without asking is little
//! ([`FREE_BYTES`]); for more it waits its turn at a [`Budget`] that all streams
//! share. What is longer than the longest that etcd can hold is let go of.

use std::{ops::Range, sync::Arc};

use http_body_util::BodyExt as _;
use kube::client::Body;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::Failure;

/// What a stream may hold without asking.
const FREE_BYTES: usize = 128 << 10;

/// How often a stream that never has to wait lets others have a turn.
const PIECES_A_TURN: u32 = 32;

/// How many large Events all streams together may hold.
#[derive(Clone, Debug)]
pub struct Budget {
    large: Arc<Semaphore>,
    /// The longest Event, in bytes.
    pub(super) event_max: usize,
}

impl Budget {
    /// A budget of `bytes` for Events of at most `event_max` bytes each; it is
    /// for one of them at least.
    #[must_use]
    pub fn new(bytes: usize, event_max: usize) -> Self {
        let n_large = (bytes / event_max.max(1)).clamp(1, Semaphore::MAX_PERMITS);
        Self {
            large: Arc::new(Semaphore::new(n_large)),
            event_max,
        }
    }
}

/// An answer that is being read.
pub(super) struct Inflow<'a> {
    body: Body,
    held: Vec<u8>,
    /// Where in `held` begins what is not used yet.
    start: usize,
    budget: &'a Budget,
    turn: Option<OwnedSemaphorePermit>,
    ended: bool,
    n_pieces: u32,
}

impl<'a> Inflow<'a> {
    pub(super) fn new(body: Body, budget: &'a Budget) -> Self {
        Self {
            body,
            held: Vec::new(),
            start: 0,
            budget,
            turn: None,
            ended: false,
            n_pieces: 0,
        }
    }

    /// What came and is not used yet.
    pub(super) fn held(&self) -> &[u8] {
        &self.held[self.start..]
    }

    /// A part of it.
    pub(super) fn slice(&self, range: Range<usize>) -> &[u8] {
        &self.held()[range]
    }

    /// Lets go of its first bytes.
    pub(super) fn consume(&mut self, n: usize) {
        self.start = (self.start + n).min(self.held.len());
    }

    /// Reads on. `false` at the end.
    pub(super) async fn fill(&mut self) -> Result<bool, Failure> {
        if self.ended {
            return Ok(false);
        }
        self.settle();
        if FREE_BYTES < self.held().len() && self.turn.is_none() {
            // The semaphore is never closed, so this fails for nobody.
            self.turn = Arc::clone(&self.budget.large).acquire_owned().await.ok();
        }
        self.n_pieces += 1;
        if self.n_pieces.is_multiple_of(PIECES_A_TURN) {
            tokio::task::yield_now().await;
        }
        loop {
            match self.body.frame().await {
                Some(Ok(frame)) => {
                    let Ok(data) = frame.into_data() else {
                        continue;
                    };
                    self.held.extend_from_slice(&data);
                    return Ok(true);
                }
                Some(Err(err)) => return Err(Failure::transport(&err)),
                None => {
                    self.ended = true;
                    return Ok(false);
                }
            }
        }
    }

    /// Gives back what large Events that are used up needed.
    fn settle(&mut self) {
        self.held.drain(..self.start);
        self.start = 0;
        if self.held.len() <= FREE_BYTES {
            self.held.shrink_to(FREE_BYTES);
            self.turn = None;
        }
    }
}
