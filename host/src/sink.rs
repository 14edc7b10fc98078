//! Changes on their way to someone who reads them.
//!
//! A reader may be slow or stop reading, and must hold up nobody. So what waits is
//! one change for each subject and classifier: a later one is folded into it, and
//! what was folded is counted. What waits is thereby bounded by what is held.
//!
//! Delivery is at least once, and each entry of a change has an id by which a
//! reader knows what it has seen already.

use std::{
    collections::{BTreeMap, HashMap},
    io::{self, Write},
    time::Duration,
};

use crate::{
    outcome::Change,
    output::{ChangeRecord, Framing, Writer},
    subject::SubjectKey,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        mpsc::{self, Receiver, RecvTimeoutError},
        thread,
    },
};

/// What waits to be written.
#[derive(Debug, Default)]
struct Waiting {
    /// By the order in which they came first.
    changes: BTreeMap<u64, (Change, bool)>,
    places: HashMap<(SubjectKey, Box<str>), u64>,
    n_pushed: u64,
    n_written: u64,
    n_folded: u64,
    n_dropped: u64,
    is_closed: bool,
    /// Why nothing more can be written.
    broken: Option<String>,
}

/// Changes that go to one reader.
#[derive(Clone, Debug, Default)]
pub struct Outbox(Arc<(Mutex<Waiting>, Condvar)>);

/// How an outbox is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Changes that wait.
    pub waiting: usize,
    /// Changes that were written.
    pub written: u64,
    /// Entries that nobody was told of, since a newer state took their place.
    pub folded: u64,
    /// Changes that nobody will be told of, since the reader is gone.
    pub dropped: u64,
}

impl Outbox {
    /// Puts a change in. It never waits for the reader.
    pub fn push(&self, change: Change, initial: bool) {
        let mut waiting = self.lock();
        if waiting.broken.is_some() {
            waiting.n_dropped += 1;
            return;
        }
        let key = (change.subject.clone(), change.classifier.name.clone());
        if let Some(place) = waiting.places.get(&key).copied()
            && let Some((earlier, was_initial)) = waiting.changes.get_mut(&place)
        {
            let n_folded = earlier.fold(change);
            *was_initial &= initial;
            waiting.n_folded += u64::try_from(n_folded).unwrap_or(u64::MAX);
            return;
        }
        waiting.n_pushed += 1;
        let place = waiting.n_pushed;
        waiting.places.insert(key, place);
        waiting.changes.insert(place, (change, initial));
        drop(waiting);
        self.0.1.notify_one();
    }

    /// How it is doing.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        let waiting = self.lock();
        Traffic {
            waiting: waiting.changes.len(),
            written: waiting.n_written,
            folded: waiting.n_folded,
            dropped: waiting.n_dropped,
        }
    }

    /// Starts a thread that writes what is put in, a line each.
    ///
    /// # Errors
    ///
    /// If the thread cannot be started.
    pub fn start(&self, epoch: u64, to: impl Write + Send + 'static) -> io::Result<Closer> {
        let (outbox, (done, is_done)) = (self.clone(), mpsc::channel());
        thread::Builder::new()
            .name("changes".to_owned())
            .spawn(move || {
                if let Err(err) = outbox.write_all(epoch, to) {
                    outbox.break_off(&err);
                }
                // Whoever waited may have given up.
                done.send(()).ok();
            })?;
        Ok(Closer {
            outbox: self.clone(),
            is_done,
        })
    }

    fn write_all(&self, epoch: u64, to: impl Write) -> io::Result<()> {
        let mut writer = Writer::new(io::BufWriter::new(to), Framing::Lines);
        while let Some((seq, change, initial)) = self.next(&mut writer)? {
            writer.write(&ChangeRecord::new(epoch, seq, initial, &change))?;
        }
        writer.finish()
    }

    /// The change that has waited longest; what is written already is handed on
    /// before anyone waits for more. `None` when no more will come.
    fn next<W: Write>(&self, writer: &mut Writer<W>) -> io::Result<Option<(u64, Change, bool)>> {
        let mut waiting = self.lock();
        loop {
            if let Some((_, (change, initial))) = waiting.changes.pop_first() {
                let key = (change.subject.clone(), change.classifier.name.clone());
                waiting.places.remove(&key);
                waiting.n_written += 1;
                return Ok(Some((waiting.n_written, change, initial)));
            }
            if waiting.is_closed {
                return Ok(None);
            }
            drop(waiting);
            writer.flush()?;
            waiting = self.lock();
            if waiting.changes.is_empty() && !waiting.is_closed {
                waiting = self
                    .0
                    .1
                    .wait(waiting)
                    .unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    fn break_off(&self, err: &io::Error) {
        let mut waiting = self.lock();
        let n_waiting = u64::try_from(waiting.changes.len()).unwrap_or(u64::MAX);
        waiting.n_dropped += n_waiting;
        waiting.changes.clear();
        waiting.places.clear();
        waiting.broken = Some(err.to_string());
        tracing::error!("changes cannot be written and are dropped from now on: {err}");
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends the thread of an outbox.
#[derive(Debug)]
pub struct Closer {
    outbox: Outbox,
    is_done: Receiver<()>,
}

impl Closer {
    /// Takes no more, and waits until all is written, but no longer than this.
    /// Says whether all is.
    #[must_use]
    pub fn close(self, within: Duration) -> bool {
        self.outbox.lock().is_closed = true;
        self.outbox.0.1.notify_one();
        self.is_done.recv_timeout(within) != Err(RecvTimeoutError::Timeout)
    }
}

#[cfg(test)]
mod tests;
