//! Recorded Events, in whatever form they were recorded.
//!
//! A `List` as kubectl prints it, an API's `EventList`, single Events, JSON lines
//! of Events, watch frames: each document is told by what is in it. Nothing that
//! is wrong with one line or item costs the others: it is named by line and
//! column, and reading goes on behind it.

use std::fmt;

use serde::{
    Deserializer as _,
    de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

use crate::{
    record::{
        Rejected,
        decode::{Fields as _, Taken, Text, WireEvent},
    },
    text::{Visible, cut},
};

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
    /// The line, from 1.
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

/// Who takes what is read.
pub trait Reader {
    /// An Event. It may be refused.
    ///
    /// # Errors
    ///
    /// Why it was refused.
    fn item(&mut self, item: Item<'_>) -> Result<(), Rejected>;
    /// Something that is none.
    fn problem(&mut self, problem: Problem);
    /// Where the Event is that was refused, and why.
    fn refused(&mut self, problem: Problem);
}

/// Reads all of an input.
pub fn read(input: &[u8], reader: &mut impl Reader) {
    let start = if input.starts_with(b"\xef\xbb\xbf") {
        3
    } else {
        0
    };
    let mut source = Source {
        input,
        reader,
        n_found: 0,
        counted: (0, 1),
    };
    if first_line_is_whole(&input[start..]) || source.documents(start) == Form::Lines {
        source.lines(start);
    }
}

/// How documents follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Each on a line of its own.
    Lines,
    /// Over as many lines as they like.
    Documents,
}

fn is_whole(line: &[u8]) -> bool {
    serde_json::from_slice::<IgnoredAny>(line).is_ok()
}

fn is_blank(bytes: &[u8]) -> bool {
    bytes.iter().all(u8::is_ascii_whitespace)
}

/// Whether the first line that starts a document holds all of it, or can be the
/// start of none. What stands before it (a warning of kubectl's) says nothing.
fn first_line_is_whole(input: &[u8]) -> bool {
    let mut lines = input.split(|it| *it == b'\n');
    let first = lines.find(|it| matches!(it.trim_ascii_start().first(), Some(b'{' | b'[')));
    match serde_json::from_slice::<IgnoredAny>(first.unwrap_or_default()) {
        Ok(_) => true,
        Err(err) => first.is_none() || !err.is_eof(),
    }
}

fn has_whole_line(input: &[u8]) -> bool {
    let mut lines = input.split(|it| *it == b'\n');
    lines.any(|it| it.trim_ascii_start().starts_with(b"{") && is_whole(it))
}

struct Source<'a, 'r, R> {
    input: &'a [u8],
    reader: &'r mut R,
    n_found: usize,
    /// An offset and its line. Lines are counted on from here, or naming each of
    /// many problems would walk the whole input.
    counted: (usize, usize),
}

impl<'a, R: Reader> Source<'a, '_, R> {
    /// A document on each line, until one begins that goes over many.
    fn lines(&mut self, start: usize) {
        let mut at = start;
        let mut form = Form::Documents;
        for line in self.input[start..].split(|it| *it == b'\n') {
            // Tried once: what says that these are lines stays so.
            if form == Form::Documents && matches!(line.trim_ascii(), b"{" | b"[") {
                form = self.documents(at);
                if form == Form::Documents {
                    return;
                }
            }
            if !is_blank(line) {
                let mut json = serde_json::Deserializer::from_slice(line);
                let read = self.document(at, &mut json).and_then(|()| json.end());
                if let Err(err) = read {
                    self.problem(at + column_offset(&err), &err);
                }
            }
            at += line.len() + 1;
        }
    }

    /// Documents one after the other, over as many lines as they like. An error
    /// in one is told, and reading goes on at the next line that starts one. But
    /// where not even the first can be read, it may be the broken first line of
    /// many: then nothing is told.
    fn documents(&mut self, start: usize) -> Form {
        let (mut at, n_found) = (start, self.n_found);
        loop {
            at += self.input[at..].len() - self.input[at..].trim_ascii_start().len();
            let rest = &self.input[at..];
            if rest.is_empty() {
                return Form::Documents;
            }
            let is_first = is_blank(&self.input[start..at]);
            let mut json = serde_json::Deserializer::from_slice(rest);
            match self.document(at, &mut json) {
                Ok(()) => at += json_offset(rest, &mut json),
                Err(err) => {
                    if is_first && self.n_found == n_found && has_whole_line(rest) {
                        return Form::Lines;
                    }
                    let failed_at = at + offset(rest, err.line(), err.column());
                    self.problem(failed_at, &err);
                    let Some(next) = next_document(self.input, at, failed_at) else {
                        return Form::Documents;
                    };
                    at = next;
                }
            }
        }
    }

    /// One document, which begins at `at`.
    fn document(
        &mut self,
        at: usize,
        json: &mut serde_json::Deserializer<serde_json::de::SliceRead<'a>>,
    ) -> Result<(), serde_json::Error> {
        json.deserialize_any(DocumentVisitor { source: self, at })
    }

    fn problem(&mut self, at: usize, what: &dyn fmt::Display) {
        let problem = self.locate(at, what);
        self.reader.problem(problem);
    }

    fn locate(&mut self, at: usize, what: &dyn fmt::Display) -> Problem {
        let at = at.min(self.input.len());
        let (from, line) = if self.counted.0 <= at {
            self.counted
        } else {
            (0, 1)
        };
        let n_line_ends = self.input[from..at].split(|it| *it == b'\n').count() - 1;
        self.counted = (at, line + n_line_ends);
        let line_start = self.input[..at]
            .iter()
            .rposition(|it| *it == b'\n')
            .map_or(0, |it| it + 1);
        // serde_json names the place too, but within what it was given.
        let what = what.to_string();
        let what = what
            .rsplit_once(" at line ")
            .map_or(&*what, |(what, _)| what);
        Problem {
            line: self.counted.1,
            column: at - line_start + 1,
            what: Visible(cut(what, 300)).to_string(),
        }
    }

    /// An Event, or what stands where one should.
    fn raw_event(&mut self, raw: &'a RawValue, make: impl FnOnce(WireEvent<'a>) -> Item<'a>) {
        // Where it stands in the input, of which it is a part.
        let at = (raw.get().as_ptr() as usize).saturating_sub(self.input.as_ptr() as usize);
        match serde_json::from_str::<WireEvent<'a>>(raw.get()) {
            Ok(event) => self.event(at, event, make),
            Err(err) => {
                let failed_at = offset(raw.get().as_bytes(), err.line(), err.column());
                self.problem(at + failed_at, &err);
            }
        }
    }

    fn event(
        &mut self,
        at: usize,
        event: WireEvent<'a>,
        make: impl FnOnce(WireEvent<'a>) -> Item<'a>,
    ) {
        if event.kind.is_empty() || &*event.kind == "Event" {
            self.n_found += 1;
            if let Err(why) = self.reader.item(make(event)) {
                let problem = self.locate(at, &why);
                self.reader.refused(problem);
            }
        } else {
            self.problem(
                at,
                &format_args!("a {}, not an Event", Visible(cut(&event.kind, 64))),
            );
        }
    }
}

/// Reads a document as what its keys show it to be.
struct DocumentVisitor<'s, 'a, 'r, R> {
    source: &'s mut Source<'a, 'r, R>,
    at: usize,
}

impl<'a, R: Reader> Visitor<'a> for DocumentVisitor<'_, 'a, '_, R> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an Event, a list of Events or a watch frame")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<(), A::Error> {
        let mut event = WireEvent::default();
        let mut framed: Option<&'a RawValue> = None;
        let mut is_list = false;
        while let Some(key) = map.next_key::<Text<'a>>()? {
            match &*key {
                "items" => {
                    is_list = true;
                    map.next_value_seed(Items(self.source))?;
                }
                "object" => framed = Some(map.next_value()?),
                key => {
                    if event.take(key, &mut map)? == Taken::No {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
            }
        }
        match (is_list, framed) {
            (true, _) => self.source.n_found += 1,
            (false, Some(object)) => match &*event.event_type {
                "ADDED" | "MODIFIED" => self.source.raw_event(object, Item::Put),
                "DELETED" => self.source.raw_event(object, Item::Deleted),
                // It carries a resource version and no Event.
                "BOOKMARK" => self.source.n_found += 1,
                other => {
                    let what = format_args!(
                        "a watch frame of type `{}`: {}",
                        Visible(cut(other, 64)),
                        Visible(cut(object.get(), 200))
                    );
                    self.source.problem(self.at, &what);
                }
            },
            (false, None) if event.kind.is_empty() && event.metadata.name.is_empty() => {
                self.source.problem(
                    self.at,
                    &"neither an Event, a list of Events nor a watch frame",
                );
            }
            (false, None) => self.source.event(self.at, event, Item::Put),
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'a>>(self, seq: A) -> Result<(), A::Error> {
        Items(self.source).visit_seq(seq)
    }
}

/// Hands on the items of a list as they are read.
struct Items<'s, 'a, 'r, R>(&'s mut Source<'a, 'r, R>);

impl<'a, R: Reader> DeserializeSeed<'a> for Items<'_, 'a, '_, R> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'a>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'a, R: Reader> Visitor<'a> for Items<'_, 'a, '_, R> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of Events")
    }

    /// Go writes an empty list as null.
    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut seq: A) -> Result<(), A::Error> {
        while let Some(raw) = seq.next_element::<&'a RawValue>()? {
            self.0.raw_event(raw, Item::Put);
        }
        Ok(())
    }
}

/// Where in one line an error is, from 0.
fn column_offset(err: &serde_json::Error) -> usize {
    err.column().saturating_sub(1)
}

/// The offset of a line and column, both from 1.
fn offset(text: &[u8], line: usize, column: usize) -> usize {
    let before = text
        .split_inclusive(|it| *it == b'\n')
        .take(line.saturating_sub(1));
    before.map(<[u8]>::len).sum::<usize>() + column.saturating_sub(1)
}

/// How much of `rest` the document took that was just read from it.
fn json_offset(
    rest: &[u8],
    json: &mut serde_json::Deserializer<serde_json::de::SliceRead<'_>>,
) -> usize {
    // The only way that serde_json tells it: an error for what comes next.
    match json.end() {
        Ok(()) => rest.len(),
        Err(err) => offset(rest, err.line(), err.column()),
    }
}

/// The next line that starts a document, behind the one that began at `at` and
/// not before where that one failed.
fn next_document(input: &[u8], at: usize, failed_at: usize) -> Option<usize> {
    // The line end before what failed may be the one that is looked for.
    let from = failed_at.max(at + 1).min(input.len()) - 1;
    let found = input[from..].windows(2).position(|it| it == b"\n{");
    found.map(|it| from + it + 1)
}

#[cfg(test)]
mod tests;
