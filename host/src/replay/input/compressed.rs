//! gzip and zstd, told by how they begin, since standard input has no name.
//!
//! Both may consist of several parts, one after the other: a log that is rotated
//! into one file, or what parallel compressors write. What is wrong with one shows
//! where it is read, behind all that could be made of what came before.

use std::io::{self, BufRead, Read};

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::{
    BlockDecodingStrategy, FrameDecoder,
    errors::{FrameDecoderError, ReadFrameHeaderError},
};

/// How much is read at once of what is compressed.
const CHUNK: usize = 64 << 10;

/// The text of an input, decompressed if it is compressed. Nothing is read before
/// somebody reads.
pub(super) struct Decompressed<R: Read>(Kind<R>);

/// An input that was looked at.
type Seen<R> = io::BufReader<io::Chain<io::Cursor<Vec<u8>>, R>>;

enum Kind<R: Read> {
    Unknown(R),
    Plain(io::Chain<io::Cursor<Vec<u8>>, R>),
    Gzip(Box<MultiGzDecoder<Seen<R>>>),
    Zstd(Box<Zstd<Seen<R>>>),
    /// Its first bytes could not be read.
    Gone,
}

impl<R: Read> Decompressed<R> {
    pub(super) fn new(from: R) -> Self {
        Self(Kind::Unknown(from))
    }
}

impl<R: Read> Kind<R> {
    fn of(mut from: R) -> io::Result<Self> {
        let mut start = Vec::with_capacity(4);
        from.by_ref().take(4).read_to_end(&mut start)?;
        let magic = start.clone();
        let from = io::Cursor::new(start).chain(from);
        let seen = |from| io::BufReader::with_capacity(CHUNK, from);
        Ok(match *magic {
            [0x1f, 0x8b, ..] => Self::Gzip(Box::new(MultiGzDecoder::new(seen(from)))),
            // The second is a frame without content, which some tools put first.
            [0x28, 0xb5, 0x2f, 0xfd] | [0x50..=0x5f, 0x2a, 0x4d, 0x18] => {
                Self::Zstd(Box::new(Zstd {
                    from: seen(from),
                    decoder: FrameDecoder::new(),
                    state: State::Between,
                }))
            }
            _ => Self::Plain(from),
        })
    }
}

impl<R: Read> Read for Decompressed<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        loop {
            match &mut self.0 {
                Kind::Plain(from) => return from.read(to),
                Kind::Gzip(from) => return from.read(to),
                Kind::Zstd(from) => return from.read(to),
                Kind::Gone => return Ok(0),
                Kind::Unknown(_) => {}
            }
            if let Kind::Unknown(from) = std::mem::replace(&mut self.0, Kind::Gone) {
                self.0 = Kind::of(from)?;
            }
        }
    }
}

/// zstd frames, one after the other.
struct Zstd<R> {
    from: R,
    decoder: FrameDecoder,
    state: State,
}

/// An empty block that is a frame's last, and as many bytes as its checksum has.
const LAST_BLOCK: &[u8] = &[1, 0, 0, 0, 0, 0, 0];

enum State {
    Between,
    Within,
    /// Nothing more can be decoded, but some is left to be read.
    Failed(io::Error),
}

impl<R: BufRead> Zstd<R> {
    /// Begins the next frame. False if there is none.
    fn begin(&mut self) -> io::Result<bool> {
        while !self.from.fill_buf()?.is_empty() {
            match self.decoder.reset(&mut self.from) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let mut skipped = self.from.by_ref().take(length.into());
                    io::copy(&mut skipped, &mut io::sink())?;
                }
                Err(err) => return Err(io::Error::other(err)),
            }
        }
        Ok(false)
    }

    /// Decodes until something can be read, or the frame is at its end.
    fn decode(&mut self) {
        while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
            let one = BlockDecodingStrategy::UptoBlocks(1);
            if let Err(err) = self.decoder.decode_blocks(&mut self.from, one) {
                self.state = State::Failed(io::Error::other(err));
                // The decoder keeps a window of what it decoded until the frame is
                // at its end. So it is told that it is.
                let all = BlockDecodingStrategy::All;
                if self.decoder.decode_blocks(LAST_BLOCK, all).is_err() {
                    return;
                }
            }
        }
    }

    fn is_intact(&self) -> bool {
        let wanted = self.decoder.get_checksum_from_data();
        wanted.is_none() || wanted == self.decoder.get_calculated_checksum()
    }
}

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        loop {
            if matches!(self.state, State::Between) {
                if !self.begin()? {
                    return Ok(0);
                }
                self.state = State::Within;
            }
            if matches!(self.state, State::Within) {
                self.decode();
            }
            let n = self.decoder.read(to)?;
            if 0 < n || to.is_empty() {
                return Ok(n);
            }
            match std::mem::replace(&mut self.state, State::Between) {
                State::Failed(err) => return Err(err),
                State::Within if !self.is_intact() => {
                    return Err(io::Error::other("the checksum is another"));
                }
                State::Within | State::Between => {}
            }
        }
    }
}
