//! Where something stands in the input, whatever was done with it since.
//!
//! What is decoded may be a piece of the input, a document without its items, or
//! YAML that was made JSON. People look for what is wrong in the text that they
//! have: decompressed, from its first line on.

/// A line and a column in bytes, both from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) line: usize,
    pub(super) column: usize,
}

impl Place {
    pub(super) const START: Self = Self { line: 1, column: 1 };

    /// The place behind these bytes.
    pub(super) fn after(self, bytes: &[u8]) -> Self {
        match memchr::memrchr(b'\n', bytes) {
            None => Self {
                column: self.column + bytes.len(),
                ..self
            },
            Some(last) => Self {
                line: self.line + memchr::memchr_iter(b'\n', bytes).count(),
                column: bytes.len() - last,
            },
        }
    }
}

/// Bytes to decode, and where they stand.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held<'a> {
    pub(super) bytes: &'a [u8],
    /// Of the first byte.
    pub(super) place: Place,
    pub(super) is: Is,
}

/// What the bytes have to do with the input.
#[derive(Clone, Copy, Debug)]
pub(super) enum Is {
    /// A piece of it.
    Piece,
    /// Two pieces of it, of which the second begins at this offset and place. What
    /// was between them is decoded already.
    Joint(usize, Place),
    /// Made from it. Only where it begins is known.
    Made,
}

impl<'a> Held<'a> {
    pub(super) fn piece(bytes: &'a [u8], place: Place) -> Self {
        let is = Is::Piece;
        Self { bytes, place, is }
    }

    pub(super) fn made(bytes: &'a [u8], place: Place) -> Self {
        let is = Is::Made;
        Self { bytes, place, is }
    }

    pub(super) fn place_at(&self, offset: usize) -> Place {
        let offset = offset.min(self.bytes.len());
        match self.is {
            Is::Made => self.place,
            Is::Joint(at, place) if at <= offset => place.after(&self.bytes[at..offset]),
            Is::Piece | Is::Joint(..) => self.place.after(&self.bytes[..offset]),
        }
    }

    /// Where `serde_json` found an error in the bytes.
    pub(super) fn place_of(&self, err: &serde_json::Error) -> Place {
        let lines = self.bytes.split_inclusive(|it| *it == b'\n');
        let before: usize = lines
            .take(err.line().saturating_sub(1))
            .map(<[u8]>::len)
            .sum();
        self.place_at(before + err.column().saturating_sub(1))
    }

    /// Where a part of the bytes stands.
    pub(super) fn place_of_part(&self, part: &str) -> Place {
        let start = self.bytes.as_ptr().addr();
        self.place_at(part.as_ptr().addr().saturating_sub(start))
    }
}
