//! JSON documents over as many lines as they like, and on one that is too long to
//! be decoded at once.
//!
//! Of a list only the document around its items is held, of anything else all of
//! it. Where a document is damaged, reading goes on at the next that can be told:
//! damaged lines must not be taken for the start of a document that goes on, nor
//! the pieces of a damaged document for lines.

use serde::de::IgnoredAny;

use super::{
    Input, Reader,
    document::Document,
    list::Left,
    position::{Held, Is, Place},
};
use crate::scan::{Scan, Step};

/// A document that is being read.
#[derive(Debug)]
struct Around {
    place: Place,
    /// What was before the items of the last list; empty if there was none.
    before: Vec<u8>,
    /// What the scan had seen where the window begins.
    n_before: usize,
}

impl Around {
    /// What it is before and in the window.
    fn held<'a>(&'a mut self, bytes: &'a [u8], here: Place) -> Held<'a> {
        if self.before.is_empty() {
            return Held::piece(bytes, self.place);
        }
        let at = self.before.len();
        self.before.extend_from_slice(bytes);
        Held {
            bytes: &self.before,
            place: self.place,
            is: Is::Joint(at, here),
        }
    }
}

impl<R: Reader> Input<'_, '_, R> {
    /// Reads the document that begins with the first byte that is held.
    pub(super) fn document(&mut self) {
        let mut around = Around {
            place: self.window.here(),
            before: Vec::new(),
            n_before: 0,
        };
        let mut scan = Scan::default();
        let mut at = 0;
        loop {
            let (step, n) = scan.run(&self.window.held()[at..]);
            at += n;
            if self.item_max < around.before.len() + at {
                return self.skip_document(around.place, scan, step, at);
            }
            match step {
                Step::More if self.window.fill() => {}
                Step::More => return self.cut_document(around, at),
                Step::List if is_of_items(self.window.held(), &scan, around.n_before) => {
                    around.before.extend_from_slice(&self.window.held()[..at]);
                    around.n_before = scan.n_seen();
                    self.window.consume(at);
                    at = 0;
                    if self.list() == Left::Document {
                        return;
                    }
                }
                Step::List => {}
                Step::End => {
                    let (bytes, here) = (&self.window.held()[..at], self.window.here());
                    let is_told = !self.out.document(around.held(bytes, here));
                    self.window.consume(at);
                    return self.behind_document(is_told);
                }
                Step::Broken | Step::TooDeep => return self.broken_document(around, step, at),
            }
        }
    }

    /// Names a document that is too long, and lets go of it to its end.
    fn skip_document(&mut self, place: Place, mut scan: Scan, mut step: Step, at: usize) {
        self.too_large(place);
        self.window.consume(at);
        loop {
            match step {
                Step::End => return self.behind_document(true),
                Step::Broken | Step::TooDeep => return self.skip_to_document(),
                Step::More if !self.window.fill() => return,
                Step::More | Step::List => {}
            }
            let n;
            (step, n) = scan.run(self.window.held());
            self.window.consume(n);
        }
    }

    /// The input ends within a document.
    fn cut_document(&mut self, mut around: Around, at: usize) {
        if !self.is_end_told() {
            if around.before.is_empty() && self.resume_at_whole_line(at) {
                return;
            }
            let (bytes, here) = (&self.window.held()[..at], self.window.here());
            let held = around.held(bytes, here);
            let (place, what) = wrong_with(held, Step::More, "cut off: ");
            self.out.problem(place, &what);
        }
        self.window.consume_all();
    }

    /// A document that cannot go on with the byte at `at`.
    fn broken_document(&mut self, mut around: Around, step: Step, at: usize) {
        let held = self.window.held();
        let is_one_line = memchr::memchr(b'\n', &held[..at]).is_none();
        if around.before.is_empty() && !is_one_line && self.resume_at_whole_line(at) {
            return;
        }
        let (held, here) = (self.window.held(), self.window.here());
        let held = around.held(&held[..judged(held, at)], here);
        let (place, what) = wrong_with(held, step, "");
        self.out.problem(place, &what);
        if is_one_line && around.before.is_empty() {
            self.window.skip_line();
        } else {
            self.window.consume(at);
            self.skip_to_document();
        }
    }

    /// Goes on at the first line in what is held, behind its first, that is a whole
    /// document: the first one was cut, and what followed taken for a part of it.
    fn resume_at_whole_line(&mut self, seen: usize) -> bool {
        let held = self.window.held();
        let mut lines = memchr::memchr_iter(b'\n', &held[..seen]).map(|it| it + 1);
        let is_whole = |start: usize| {
            let rest = &held[start..];
            if !rest.starts_with(b"{") {
                return false;
            }
            let end = memchr::memchr(b'\n', rest);
            serde_json::from_slice::<Document<'_>>(&rest[..end.unwrap_or(rest.len())])
                .is_ok_and(|it| it.is_something())
        };
        let Some(start) = lines.find(|it| is_whole(*it)) else {
            return false;
        };
        let first = Held::piece(&held[..start], self.window.here());
        let (place, what) = wrong_with(first, Step::More, "");
        self.out.problem(place, &what);
        self.window.consume(start);
        true
    }

    /// Goes on at the next line that starts a document, which may be this one.
    pub(super) fn skip_to_document(&mut self) {
        while self.window.here().column != 1 || self.window.byte(0) != Some(b'{') {
            self.window.skip_line();
            if self.window.byte(0).is_none() {
                return;
            }
        }
    }
}

/// Whether the list that was opened is all of the document, or its `items`.
fn is_of_items(held: &[u8], scan: &Scan, n_before: usize) -> bool {
    let key = scan.key();
    scan.is_in_top_list()
        || key.start.checked_sub(n_before).is_some_and(|start| {
            let key = held.get(start..key.end - n_before).unwrap_or_default();
            // It may be spelt with escapes.
            key == b"\"items\""
                || key.contains(&b'\\')
                    && serde_json::from_slice::<String>(key).is_ok_and(|it| it == "items")
        })
}

/// How much of what is held shows what is wrong with a value that cannot go on
/// with the byte at `at`: not that byte if it only begins something else, behind
/// a value that was cut.
pub(super) fn judged(held: &[u8], at: usize) -> usize {
    let before = memchr::memrchr(b'\n', &held[..at]).map(|it| &held[it..at]);
    let begins_line = before.is_some_and(|it| it.trim_ascii().is_empty());
    match held[at] {
        b'\n' => at,
        b'{' if begins_line => at,
        _ => at + 1,
    }
}

/// Where something is wrong with what cannot be decoded, and what, with `cut`
/// before it if it only ends too early.
pub(super) fn wrong_with(held: Held<'_>, step: Step, cut: &str) -> (Place, String) {
    let text = Held {
        bytes: held.bytes.trim_ascii_end(),
        ..held
    };
    match serde_json::from_slice::<IgnoredAny>(text.bytes) {
        _ if step == Step::TooDeep => {
            let bracket = held.bytes.len().saturating_sub(1);
            (held.place_at(bracket), "nested too deep".to_owned())
        }
        Err(err) if err.is_eof() => (text.place_of(&err), format!("{cut}{err}")),
        Err(err) => (text.place_of(&err), err.to_string()),
        Ok(IgnoredAny) => (
            text.place_at(text.bytes.len()),
            format!("{cut}expected a value, `,` or the end of what was begun"),
        ),
    }
}
