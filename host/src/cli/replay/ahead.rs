//! Reads ahead on a thread of its own.
//!
//! A read of a pipe may wait for as long as whoever writes it likes, and Ctrl-C
//! must not. And reading and unpacking can go on while what was read is
//! classified. At most [`CHUNKS`] of [`CHUNK_BYTES`] are read ahead.

use std::{
    io::{self, Read},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc::{self, Receiver, RecvTimeoutError},
    },
    thread,
    time::Duration,
};

use crate::cli::interrupt::{self, Interrupted};

const CHUNKS: usize = 4;
const CHUNK_BYTES: usize = 256 << 10;

/// How long Ctrl-C may go unnoticed where nothing comes.
const PATIENCE: Duration = Duration::from_millis(50);

/// What another thread reads. When the process is interrupted it ends with what
/// was read by then, and nothing of that is lost.
pub(super) struct Ahead {
    chunks: Receiver<io::Result<Vec<u8>>>,
    chunk: Vec<u8>,
    n_taken: usize,
    interrupted: Interrupted,
    /// Set when it ended for that reason.
    ended_early: Arc<AtomicBool>,
}

impl Ahead {
    /// Starts to read. `ended_early` is set if an interrupt ends it.
    pub(super) fn of(
        mut from: impl Read + Send + 'static,
        interrupted: Interrupted,
        ended_early: Arc<AtomicBool>,
    ) -> io::Result<Self> {
        let (filled, chunks) = mpsc::sync_channel(CHUNKS);
        thread::Builder::new()
            .name("read".to_owned())
            .spawn(move || {
                while !interrupt::is_set(interrupted) {
                    let mut chunk = vec![0; CHUNK_BYTES];
                    let read = from.read(&mut chunk);
                    let is_last = !matches!(read, Ok(1..));
                    let read = read.map(|n| {
                        chunk.truncate(n);
                        chunk
                    });
                    // Nobody takes it any more: there is nothing left to read for.
                    if filled.send(read).is_err() || is_last {
                        break;
                    }
                }
            })?;
        let (chunk, n_taken) = (Vec::new(), 0);
        Ok(Self {
            chunks,
            chunk,
            n_taken,
            interrupted,
            ended_early,
        })
    }

    /// The next chunk; an empty one at the end.
    fn next(&self) -> io::Result<Vec<u8>> {
        loop {
            match self.chunks.recv_timeout(PATIENCE) {
                Ok(chunk) => return chunk,
                // What was read before is still taken: it is there at once.
                Err(RecvTimeoutError::Timeout) if !interrupt::is_set(self.interrupted) => {}
                // Or the other thread has ended, which it does after the end too.
                Err(_) => {
                    self.ended_early
                        .fetch_or(interrupt::is_set(self.interrupted), Relaxed);
                    return Ok(Vec::new());
                }
            }
        }
    }
}

impl Read for Ahead {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if self.n_taken == self.chunk.len() {
            (self.chunk, self.n_taken) = (self.next()?, 0);
        }
        let rest = self.chunk.get(self.n_taken..).unwrap_or_default();
        let n = rest.len().min(to.len());
        to[..n].copy_from_slice(&rest[..n]);
        self.n_taken += n;
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Waits for as long as the other end is there.
    struct Silent(Receiver<()>);

    impl Read for Silent {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            self.0.recv().map_or(Ok(0), |()| Ok(0))
        }
    }

    /// Reads one byte, and then fails.
    struct Broken(bool);

    impl Read for Broken {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            if std::mem::replace(&mut self.0, true) {
                return Err(io::Error::other("gone"));
            }
            to[0] = b'x';
            Ok(1)
        }
    }

    #[test]
    fn what_is_read_ahead_is_what_is_there() {
        static NEVER: AtomicBool = AtomicBool::new(false);
        let text: Vec<u8> = (0..=255).cycle().take(3 * CHUNK_BYTES + 7).collect();
        let mut read = Vec::new();
        let ended_early = Arc::<AtomicBool>::default();
        let mut ahead = Ahead::of(
            io::Cursor::new(text.clone()),
            &NEVER,
            Arc::clone(&ended_early),
        )
        .unwrap();
        ahead.read_to_end(&mut read).unwrap();
        assert!(read == text);
        assert_eq!(
            ahead.read(&mut [0; 8]).unwrap(),
            0,
            "asked again it is still the end"
        );
        assert!(!ended_early.load(Relaxed));
    }

    #[test]
    fn an_interrupt_ends_what_would_wait_for_ever() {
        static PRESSED: AtomicBool = AtomicBool::new(true);
        let (_writer, silent) = mpsc::channel::<()>();
        let ended_early = Arc::<AtomicBool>::default();
        let mut ahead = Ahead::of(Silent(silent), &PRESSED, Arc::clone(&ended_early)).unwrap();
        assert_eq!(ahead.read(&mut [0; 8]).unwrap(), 0);
        assert!(ended_early.load(Relaxed));
    }

    #[test]
    fn an_error_comes_where_it_happened() {
        static NEVER: AtomicBool = AtomicBool::new(false);
        let mut ahead = Ahead::of(Broken(false), &NEVER, Arc::default()).unwrap();
        assert_eq!(ahead.read(&mut [0; 8]).unwrap(), 1);
        assert_eq!(ahead.read(&mut [0; 8]).unwrap_err().to_string(), "gone");
    }
}
