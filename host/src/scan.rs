//! Where a JSON value ends, found while it is read.
//!
//! It looks at strings, escapes and brackets only: what is within them is for the
//! decoder to judge. But it must not run over the end of a value that is damaged,
//! or one missing quote would cost all that follows. So it stops where no value
//! goes on: at a line end within a string, a bracket that closes another, and a
//! string, object or list where none may stand. Whatever is valid goes through.
//! It holds nothing but where it is.

use std::ops::Range;

/// Nobody nests deeper: `serde_json` goes no deeper either, and a kilobyte of
/// brackets must not be worth more.
const DEPTH_MAX: u32 = 128;

/// As much as is passed over at once.
const INDENT: [u8; 4] = *b"    ";

/// A place at which the scan stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The value goes on behind the bytes.
    More,
    /// Behind the bracket that opens a list, at the top or of a top object's key.
    List,
    /// Behind the value.
    End,
    /// At the byte with which it cannot go on.
    Broken,
    /// At the bracket that is one too many.
    TooDeep,
}

/// What stands before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum After {
    #[default]
    Nothing,
    Open,
    Comma,
    Colon,
    Value,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Within {
    #[default]
    Structure,
    Text,
    Escape,
}

/// A scan under way.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scan {
    depth: u32,
    /// A bit for each open bracket, the innermost lowest: whether it is a list's.
    lists: u128,
    after: After,
    within: Within,
    n_seen: usize,
    /// The last string within the top object only.
    top_text: Range<usize>,
}

impl Scan {
    /// How many bytes it went through.
    pub(crate) fn n_seen(&self) -> usize {
        self.n_seen
    }

    /// Whether it is in a list and in nothing else.
    pub(crate) fn is_in_top_list(&self) -> bool {
        self.depth == 1 && self.is_in_list()
    }

    /// Where the key, with its quotes, stands whose list was opened.
    pub(crate) fn key(&self) -> Range<usize> {
        self.top_text.clone()
    }

    fn is_in_list(&self) -> bool {
        0 < self.depth && self.lists & 1 == 1
    }

    /// Goes on with these bytes, and says how many of them it went through.
    pub(crate) fn run(&mut self, bytes: &[u8]) -> (Step, usize) {
        let (step, n) = self.step(bytes);
        self.n_seen += n;
        (step, n)
    }

    fn step(&mut self, bytes: &[u8]) -> (Step, usize) {
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            if self.within != Within::Structure {
                match self.text(bytes, at) {
                    Ok(next) => at = next,
                    Err(failed_at) => return (Step::Broken, failed_at),
                }
                if self.depth == 0 && self.within == Within::Structure {
                    return (Step::End, at);
                }
                continue;
            }
            // Only a bare number or word is still open here.
            if self.depth == 0
                && self.after == After::Value
                && matches!(
                    byte,
                    b' ' | b'\t' | b'\r' | b'\n' | b',' | b']' | b'}' | b':'
                )
            {
                return (Step::End, at);
            }
            match byte {
                // Nearly half of what kubectl prints is indentation.
                b'\n' => {
                    while bytes[at + 1..].first_chunk() == Some(&INDENT) {
                        at += INDENT.len();
                    }
                }
                b' ' | b'\t' | b'\r' => {}
                b'"' => {
                    if self.after == After::Value {
                        return (Step::Broken, at);
                    }
                    self.within = Within::Text;
                    if self.depth == 1 {
                        self.top_text.start = self.n_seen + at;
                    }
                }
                b'{' | b'[' => {
                    let may_stand = match self.after {
                        After::Nothing | After::Colon => true,
                        After::Open | After::Comma => self.is_in_list(),
                        After::Value => false,
                    };
                    if !may_stand {
                        return (Step::Broken, at);
                    }
                    if self.depth == DEPTH_MAX {
                        return (Step::TooDeep, at);
                    }
                    let is_at_top = self.depth == 0 || self.depth == 1 && !self.is_in_list();
                    self.depth += 1;
                    self.lists = self.lists << 1 | u128::from(byte == b'[');
                    self.after = After::Open;
                    if byte == b'[' && is_at_top {
                        return (Step::List, at + 1);
                    }
                }
                b'}' | b']' => {
                    if self.depth == 0 || self.is_in_list() != (byte == b']') {
                        return (Step::Broken, at);
                    }
                    self.depth -= 1;
                    self.lists >>= 1;
                    self.after = After::Value;
                    if self.depth == 0 {
                        return (Step::End, at + 1);
                    }
                }
                b',' | b':' if self.depth == 0 => return (Step::Broken, at),
                b',' => self.after = After::Comma,
                b':' => self.after = After::Colon,
                _ => self.after = After::Value,
            }
            at += 1;
        }
        (Step::More, at)
    }

    /// Goes on in a string, to behind its end or that of the bytes; or fails at a
    /// line end, which no string holds.
    fn text(&mut self, bytes: &[u8], at: usize) -> Result<usize, usize> {
        if self.within == Within::Escape && bytes[at] != b'\n' {
            self.within = Within::Text;
            return Ok(at + 1);
        }
        let Some(n) = memchr::memchr3(b'"', b'\\', b'\n', &bytes[at..]) else {
            return Ok(bytes.len());
        };
        let found = at + n;
        match bytes[found] {
            b'"' => {
                self.within = Within::Structure;
                self.after = After::Value;
                if self.depth == 1 {
                    self.top_text.end = self.n_seen + found + 1;
                }
            }
            b'\\' => self.within = Within::Escape,
            _ => return Err(found),
        }
        Ok(found + 1)
    }
}
