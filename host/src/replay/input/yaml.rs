//! YAML, as must-gather and `kubectl -o yaml` write it.
//!
//! It is split by lines and their indentation before anything is parsed: a list
//! never has to be held whole, and one item that is no YAML costs only itself. For
//! that no item may refer to another: there are no aliases. What is parsed is made
//! JSON, and then is what that is.
//!
//! Where YAML was cut cannot be told, unless it was within a quoted text: what is
//! left of an item is an item.

use serde_json::Value;
use serde_saphyr::{
    UserMessageFormatter,
    options::{DuplicateKeyPolicy, NonFiniteFloatPolicy},
};

use super::{
    INDENT_MAX, Input, Origin, Reader,
    document::Out,
    position::{Held, Is, Place},
};

/// What a line is, by how it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    /// Blank, or a comment.
    Nothing,
    /// The start of an item of a sequence, indented by this.
    Dash(usize),
    /// Anything else, indented by this.
    Text(usize),
    /// What cannot be within a document: `---`, `...`, or the brace of JSON.
    Border,
    /// There is no more.
    End,
}

/// Lines that are put together.
#[derive(Debug)]
struct Chunk {
    place: Place,
    /// How much of what is held they are.
    len: usize,
    /// Whether they were over the cap, so that nothing of them is held.
    is_too_large: bool,
}

impl Chunk {
    fn at(place: Place) -> Self {
        Self {
            place,
            len: 0,
            is_too_large: false,
        }
    }
}

impl<R: Reader> Input<'_, '_, R> {
    /// Reads a YAML document if one begins with the line that is held, of which so
    /// much is enough to tell.
    pub(super) fn yaml(&mut self, n_seen: usize) -> bool {
        let line = &self.window.held()[..n_seen];
        if line.starts_with(b"%YAML") || line.starts_with(b"%TAG") {
            self.window.skip_line();
        } else if is_marker(line) {
            let rest = line[MARKER..].trim_ascii();
            if rest.is_empty() || rest.starts_with(b"#") {
                self.window.skip_line();
            } else {
                self.window.consume_line(MARKER);
            }
        } else if is_dash(line) || begins_with_key(line) {
            self.yaml_document();
        } else {
            return false;
        }
        true
    }

    fn yaml_document(&mut self) {
        if self.yaml_line(0) == Line::Dash(0) {
            return self.yaml_items(0);
        }
        let place = self.window.here();
        // The document up to the items of a list, once they were there.
        let mut before = Vec::new();
        let mut chunk = Chunk::at(place);
        while !matches!(self.yaml_line(chunk.len), Line::Border | Line::End) {
            let line = chunk.len;
            self.take_line(&mut chunk, before.len());
            if chunk.is_too_large || !is_items(&self.window.held()[line..chunk.len]) {
                continue;
            }
            while self.yaml_line(chunk.len) == Line::Nothing {
                self.take_line(&mut chunk, before.len());
            }
            if let Line::Dash(indent) = self.yaml_line(chunk.len) {
                before.extend_from_slice(&self.window.held()[..chunk.len]);
                self.window.consume(chunk.len);
                self.yaml_items(indent);
                chunk = Chunk::at(self.window.here());
            }
        }
        if chunk.is_too_large {
            self.too_large(place);
        } else if !self.is_cut(&chunk) && !self.out.is_stopped() {
            let piece = &self.window.held()[..chunk.len];
            if before.is_empty() {
                let held = Held::piece(piece, place);
                if let Some(json) = parsed(&mut self.out, held) {
                    self.out.document(Held::made(&json, place));
                }
            } else if !self.out.origin().is_found() {
                // What is wrong around the items; what is not was read already.
                let is = Is::Joint(before.len(), chunk.place);
                before.extend_from_slice(piece);
                let bytes = &before;
                parsed(&mut self.out, Held { bytes, place, is });
            }
        }
        self.window.consume(chunk.len);
    }

    /// Reads the items of a list, each of which begins with a dash indented by this.
    fn yaml_items(&mut self, indent: usize) {
        while self.yaml_line(0) == Line::Dash(indent) && !self.out.is_stopped() {
            let mut chunk = Chunk::at(self.window.here());
            loop {
                self.take_line(&mut chunk, 0);
                match self.yaml_line(chunk.len) {
                    Line::Nothing => {}
                    Line::Dash(more) | Line::Text(more) if indent < more => {}
                    Line::Dash(_) | Line::Text(_) | Line::Border | Line::End => break,
                }
            }
            let place = chunk.place.after(&[b' '; INDENT_MAX][..indent]);
            if chunk.is_too_large {
                self.too_large(place);
            } else if !self.is_cut(&chunk) {
                // What is behind the dash is the item.
                self.window.held_mut()[indent] = b' ';
                let held = Held::piece(&self.window.held()[..chunk.len], chunk.place);
                if let Some(json) = parsed(&mut self.out, held) {
                    self.out.item(Held::made(&json, place));
                }
            }
            self.window.consume(chunk.len);
        }
    }

    /// Whether the input failed within these lines.
    fn is_cut(&self, chunk: &Chunk) -> bool {
        self.is_end_told() && chunk.len == self.window.held().len()
    }

    /// What the line is that begins at `at`.
    fn yaml_line(&mut self, at: usize) -> Line {
        let mut indent = 0;
        while indent < INDENT_MAX && self.window.byte(at + indent) == Some(b' ') {
            indent += 1;
        }
        // Enough to see a marker.
        let _ = self.window.byte(at + indent + MARKER);
        let Some(line) = self.window.held().get(at + indent..) else {
            return Line::End;
        };
        match line.first() {
            None => Line::End,
            Some(b'\n' | b'\r' | b'#') => Line::Nothing,
            Some(b'{') if indent == 0 => Line::Border,
            Some(_) if indent == 0 && is_marker(line) => Line::Border,
            Some(_) if is_dash(line) => Line::Dash(indent),
            Some(_) => Line::Text(indent),
        }
    }

    /// Puts the next line to the others, of which so many bytes are elsewhere.
    fn take_line(&mut self, chunk: &mut Chunk, n_elsewhere: usize) {
        loop {
            let held = self.window.held();
            let found = memchr::memchr(b'\n', &held[chunk.len..]);
            chunk.len = found.map_or(held.len(), |it| chunk.len + it + 1);
            chunk.is_too_large |= self.item_max < n_elsewhere + chunk.len;
            if chunk.is_too_large {
                self.window.consume(chunk.len);
                chunk.len = 0;
            }
            if found.is_some() || !self.window.fill() {
                return;
            }
        }
    }
}

/// What these lines are as JSON. If they are no YAML, or were found and can hold no
/// Event, that is told.
fn parsed<R: Reader>(out: &mut Out<'_, R>, held: Held<'_>) -> Option<Vec<u8>> {
    // To parse a gigabyte of Pods would take a minute.
    let may_be_event = |it: &&[u8]| memchr::memmem::find(held.bytes, it).is_some();
    let wants: [&[u8]; 2] = [b"regarding", b"involvedObject"];
    if out.origin() == Origin::Found && !wants.iter().any(may_be_event) {
        out.no_event(held.place, &"no Event");
        return None;
    }
    let text = match str::from_utf8(held.bytes) {
        Ok(text) => text,
        Err(err) => {
            out.problem(held.place_at(err.valid_up_to()), &"invalid UTF-8");
            return None;
        }
    };
    let options = serde_saphyr::options! {
        // An alias makes much of little, and nobody who writes Events uses any.
        budget: serde_saphyr::budget! { max_aliases: 0 },
        duplicate_keys: DuplicateKeyPolicy::LastWins,
        strict_booleans: true,
        leading_zero_numbers_as_strings: true,
        underscored_numbers_as_strings: true,
        non_finite_float_policy: NonFiniteFloatPolicy::AsString,
        with_snippet: false,
    };
    let value = serde_saphyr::from_str_with_options::<Value>(text, options);
    let json = value.map_err(|err| {
        let line_start = |line: u64| {
            let lines = text.split_inclusive('\n');
            let before = usize::try_from(line.saturating_sub(1)).unwrap_or(usize::MAX);
            lines.take(before).map(str::len).sum::<usize>()
        };
        let offset = err.location().map_or(0, |it| line_start(it.line()));
        let what = err.render_with_formatter(&UserMessageFormatter);
        (held.place_at(offset), what)
    });
    let json =
        json.and_then(|it| serde_json::to_vec(&it).map_err(|err| (held.place, err.to_string())));
    json.map_err(|(place, what)| out.problem(place, &what)).ok()
}

fn is_dash(line: &[u8]) -> bool {
    line.starts_with(b"-") && line.get(1).is_none_or(u8::is_ascii_whitespace)
}

/// How long a marker is.
const MARKER: usize = 3;

/// Whether a document starts or ends with the line.
fn is_marker(line: &[u8]) -> bool {
    (line.starts_with(b"---") || line.starts_with(b"..."))
        && line.get(MARKER).is_none_or(u8::is_ascii_whitespace)
}

/// Whether the line is a key, and perhaps what it is.
fn begins_with_key(line: &[u8]) -> bool {
    let is_of_key = |it: &u8| it.is_ascii_alphanumeric() || matches!(it, b'_' | b'-' | b'.' | b'/');
    let n_key = line.iter().take_while(|it| is_of_key(it)).count();
    let (key, rest) = line.split_at(n_key);
    key.first().is_some_and(u8::is_ascii_alphabetic)
        && rest.first() == Some(&b':')
        && rest.get(1).is_none_or(u8::is_ascii_whitespace)
        // kubectl's, in a recording of both of its outputs.
        && key != b"Warning"
}

/// Whether the line is the key of a list's items, which come on the next.
fn is_items(line: &[u8]) -> bool {
    line.strip_prefix(b"items:").is_some_and(|rest| {
        let text = rest.trim_ascii_start();
        text.is_empty() || text.starts_with(b"#") && text.len() < rest.len()
    })
}
