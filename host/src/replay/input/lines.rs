//! Lines: whole documents, of which a recording may have millions, and what is
//! none.
//!
//! A line that is one document is decoded where it lies in the buffer, and looked
//! at no further. Whatever is anything else goes the longer way, which comes to
//! the same end: so it does not matter how much of a line was there at once.

use serde_json::error::Category;

use super::{Input, Reader, document::Document, position::Held};
use crate::record::decode::from_json;

/// What is taken for a line to be tried at once; a longer one goes the long way.
/// Also as much of another line as is looked at to say what it is.
const LINE_MAX: usize = 64 << 10;

/// What is no text, by what stands at an offset from the start of the input.
const BINARY: [(usize, &[u8], &str); 7] = [
    (257, b"ustar", "a tar archive: unpack it first"),
    (0, b"PK\x03\x04", "a zip archive: unpack it first"),
    (0, b"\xfd7zXZ\0", "compressed with xz: decompress it first"),
    (0, b"BZh", "compressed with bzip2: decompress it first"),
    (0, b"\xff\xfe", "UTF-16: save it as UTF-8 first"),
    (0, b"\xfe\xff", "UTF-16: save it as UTF-8 first"),
    (0, b"k8s\0", "protobuf: ask for JSON or YAML"),
];

impl<R: Reader> Input<'_, '_, R> {
    /// Reads a line that is blank, or one document and nothing else. False if it
    /// is not; then nothing happened.
    pub(super) fn plain_line(&mut self) -> bool {
        let Some(end) = self.window.line_end(0, LINE_MAX) else {
            return false;
        };
        if end == 0 {
            return false;
        }
        let line = &self.window.held()[..end];
        let text = line.trim_ascii_start();
        let indent = line.len() - text.len();
        let text = text.trim_ascii_end();
        if !text.is_empty() {
            if !(text.starts_with(b"{") && text.ends_with(b"}")) || self.item_max < text.len() {
                return false;
            }
            let Ok(document) = from_json::<Document<'_>>(text) else {
                return false;
            };
            let mut place = self.window.here();
            place.column += indent;
            self.out.decoded(Held::piece(text, place), document);
        }
        self.window.consume_line(end);
        true
    }

    /// Reads a line that starts no JSON document. False if there is nothing in the
    /// input that can be read.
    pub(super) fn other_line(&mut self) -> bool {
        let end = self.window.line_end(0, LINE_MAX);
        let end = end.filter(|it| *it <= LINE_MAX);
        let n_seen = end.unwrap_or(LINE_MAX);
        let here = self.window.here();
        if self.window.held().starts_with(b"#") {
            self.window.skip_line();
            return true;
        }
        if here.column == 1 && self.yaml(n_seen) {
            return true;
        }
        let line = &self.window.held()[..n_seen];
        if (here.line, here.column) == (1, 1) {
            let at = |at: usize, magic: &[u8]| {
                line.get(at..).is_some_and(|line| line.starts_with(magic))
            };
            if let Some((.., what)) = BINARY.iter().find(|(offset, magic, _)| at(*offset, magic)) {
                self.out.problem(here, what);
                return false;
            }
        }
        match serde_json::from_slice::<Document<'_>>(line.trim_ascii_end()) {
            Err(err) if end.is_some() || err.classify() != Category::Eof => {
                self.out.failed(Held::piece(line, here), &err);
            }
            Err(_) | Ok(_) => self.out.no_event(
                here,
                &"neither an Event, a list of Events nor a watch frame",
            ),
        }
        self.window.skip_line();
        true
    }

    /// Reads what is behind a document on its line, unless it is another one. If
    /// it was told that something is wrong with the line, that is enough.
    pub(super) fn behind_document(&mut self, is_told: bool) {
        let is_blank = |it| matches!(it, b' ' | b'\t' | b'\r');
        match self.window.skip_blank(is_blank) {
            None | Some(b'\n' | b'{' | b'[') => return,
            Some(_) if is_told => {}
            Some(_) => self.out.problem(self.window.here(), &"trailing characters"),
        }
        self.window.skip_line();
    }
}
