//! The bytes of an answer as they come, and what of them is not used yet.
//!
//! A page or a watch is read a piece at a time: what is held is one Event, never
//! a page of them. Events are small, but whoever may write Events may write one
//! of over a megabyte, so what a stream holds without asking is little
//! ([`FREE_BYTES`]); for more it waits its turn at a [`Budget`] that all streams
//! share. What is longer than the longest that etcd can hold is let go of.

use std::{
    mem,
    ops::Range,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll::Ready, Waker},
    time::Duration,
};

use http_body_util::BodyExt as _;
use kube::client::Body;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    task::yield_now,
    time::sleep,
};

use super::Failure;

/// What a stream may hold without asking.
const FREE_BYTES: usize = 128 << 10;

/// How long a pause lasts before more news is read: to wake up for an Event costs many
/// times what the Event does.
const PAUSE: Duration = Duration::from_millis(6);

/// After as much as this there is no pause: it is more than news.
const MANY_BYTES: usize = 64 << 10;

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
    /// What came since there was a pause, in bytes.
    n_unpaused: usize,
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
            n_unpaused: 0,
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
            yield_now().await;
        }
        let piece = self.body.frame().await;
        self.take(piece.map(|it| it.map(|it| it.into_data().unwrap_or_default())))
    }

    /// Reads on, in a watch: what is there already, else what comes after a pause.
    /// `on_pause` is told that there is no more for now. `false` at the end.
    pub(super) async fn fill_news(&mut self, on_pause: impl FnOnce()) -> Result<bool, Failure> {
        // Whoever reads the connection may have more of it in hand: a second look.
        for is_second in [false, true] {
            if self.ended || FREE_BYTES < self.held().len() {
                break;
            }
            if is_second {
                yield_now().await;
            }
            let mut nobody = Context::from_waker(Waker::noop());
            if let Ready(piece) = Pin::new(&mut self.body.frame()).poll(&mut nobody) {
                self.settle();
                return self.take(piece.map(|it| it.map(|it| it.into_data().unwrap_or_default())));
            }
        }
        on_pause();
        let n_bytes = mem::take(&mut self.n_unpaused);
        if 0 < n_bytes && n_bytes < MANY_BYTES {
            sleep(PAUSE).await;
        }
        self.fill().await
    }

    fn take(&mut self, piece: Option<kube::Result<impl AsRef<[u8]>>>) -> Result<bool, Failure> {
        match piece {
            Some(Ok(data)) => {
                self.n_unpaused += data.as_ref().len();
                self.held.extend_from_slice(data.as_ref());
            }
            Some(Err(err)) => return Err(Failure::transport(&err)),
            None => self.ended = true,
        }
        Ok(!self.ended)
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

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::{
        super::lines::{Line, Lines},
        *,
    };

    const LARGE: usize = FREE_BYTES + 1;

    fn budget() -> Budget {
        Budget::new(2 * LARGE, 2 * LARGE)
    }

    /// An answer of which this has come, and this is still to come.
    fn inflow<'a>(budget: &'a Budget, came: &[u8], to_come: &[u8]) -> Inflow<'a> {
        let mut it = Inflow::new(Body::from(to_come.to_vec()), budget);
        assert!(it.take(Some(Ok(came))).unwrap());
        it
    }

    #[test]
    fn large_events_take_turns_and_give_back_what_they_took() {
        let budget = budget();
        let large = vec![b'x'; LARGE];
        let mut one = inflow(&budget, &large, b"y");
        let mut other = inflow(&budget, &large, b"z");
        assert!(one.fill().now_or_never().unwrap().unwrap());

        // There is more of the other, but no turn for it, however it is asked.
        assert!(other.fill().now_or_never().is_none());
        assert!(other.fill_news(|| {}).now_or_never().is_none());
        assert_eq!(other.held().len(), LARGE);

        // It is used up, and another answer needs none of it.
        one.consume(LARGE + 1);
        assert!(!one.fill().now_or_never().unwrap().unwrap());
        assert!(one.held.capacity() <= FREE_BYTES);
        assert!(other.fill().now_or_never().unwrap().unwrap());
        assert_eq!(other.held().len(), LARGE + 1);
    }

    #[test]
    fn a_line_without_end_is_let_go_of_as_it_comes() {
        let max = 1_000;
        let budget = budget();
        let mut inflow = inflow(&budget, b"", b"");
        let mut lines = Lines::default();
        for _ in 0..100 {
            inflow.take(Some(Ok([b'x'; 300]))).unwrap();
            assert_eq!(lines.next(&mut inflow, max), None);
            assert!(inflow.held().len() <= max);
            inflow.settle();
        }
        inflow.take(Some(Ok(b"x\nyy\n"))).unwrap();
        assert_eq!(lines.next(&mut inflow, max), Some(Line::TooLong));
        assert_eq!(lines.next(&mut inflow, max), Some(Line::Whole(2)));
        assert_eq!(inflow.slice(0..2), b"yy");
    }

    #[test]
    fn behind_news_there_is_a_pause_and_behind_nothing_or_much_there_is_none() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        let _inside = runtime.enter();
        let budget = budget();
        for (n_bytes, is_pause) in [(0, false), (1, true), (MANY_BYTES, false)] {
            let mut inflow = inflow(&budget, &vec![b'x'; n_bytes], b"");
            // Nothing more is in hand.
            inflow.ended = true;
            let mut n_told = 0;
            let more = inflow.fill_news(|| n_told += 1).now_or_never();
            assert_eq!((n_told, more.is_none()), (1, is_pause), "{n_bytes} bytes");
        }
    }
}
