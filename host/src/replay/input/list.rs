//! The items of a list, one by one.
//!
//! Where one is damaged so that its end cannot be told, the next is looked for
//! where one would begin: people and programs write all items of a list alike.

use super::{
    INDENT_MAX, Input, Reader,
    json::{judged, wrong_with},
    position::{Held, Place},
};
use crate::scan::{Scan, Step};

/// What was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// The items: the bracket that ends them comes next.
    Items,
    /// The document: another one comes next, or nothing.
    Document,
}

/// How the items stand.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Layout {
    /// Each begins a line, indented by this.
    Lines(usize),
    /// On one line. Each begins like this, with its first key.
    Inline(Vec<u8>),
}

/// As much of the start of an item as may tell others.
const START_MAX: usize = 64;

impl<R: Reader> Input<'_, '_, R> {
    /// Reads the items of a list, from behind its opening bracket on.
    pub(super) fn list(&mut self) -> Left {
        let mut layout = None;
        let mut wants_comma = false;
        let mut place = self.window.here();
        loop {
            if self.out.is_stopped() {
                return Left::Document;
            }
            let next = self.window.skip_blank(|it| it.is_ascii_whitespace());
            let starts_line = place.line < self.window.here().line;
            let indent = self.window.here().column - 1;
            match next {
                None => {
                    if !self.is_end_told() {
                        self.out
                            .problem(place, &"cut off: EOF while parsing a list");
                    }
                    return Left::Document;
                }
                Some(b']') => return Left::Items,
                Some(b',') if wants_comma => {
                    self.window.consume(1);
                    wants_comma = false;
                }
                Some(b',' | b'}' | b':') => {
                    self.out.problem(self.window.here(), &"expected value");
                    wants_comma = false;
                    if self.skip_to_item(layout.as_ref()) == Left::Document {
                        return Left::Document;
                    }
                }
                Some(_) if !wants_comma => {
                    if layout.is_none() {
                        layout = Some(self.layout(starts_line.then_some(indent)));
                    }
                    match self.list_item(layout.as_ref()) {
                        Some(Left::Document) => return Left::Document,
                        // What was skipped may end with a comma.
                        Some(Left::Items) => {}
                        None => wants_comma = true,
                    }
                }
                Some(byte) => {
                    self.out.problem(self.window.here(), &"expected `,` or `]`");
                    wants_comma = false;
                    // At the start of a line it is rather a document of its own.
                    if byte == b'{' && starts_line && indent == 0
                        || byte != b'{' && self.skip_to_item(layout.as_ref()) == Left::Document
                    {
                        return Left::Document;
                    }
                }
            }
            place = self.window.here();
        }
    }

    /// How the items stand of which the first is held, indented by this if it
    /// starts a line.
    fn layout(&mut self, indent: Option<usize>) -> Layout {
        if let Some(indent) = indent.filter(|it| *it <= INDENT_MAX) {
            return Layout::Lines(indent);
        }
        let (mut start, mut n_quotes) = (Vec::new(), 0);
        while let Some(byte) = self.window.byte(start.len())
            && start.len() < START_MAX
        {
            start.push(byte);
            n_quotes += u8::from(byte == b'"');
            if n_quotes == 2 {
                return Layout::Inline(start);
            }
        }
        Layout::Inline(Vec::new())
    }

    /// Reads one item. If it has no end that can be told, goes to the next.
    fn list_item(&mut self, layout: Option<&Layout>) -> Option<Left> {
        let place = self.window.here();
        let mut scan = Scan::default();
        let mut at = 0;
        loop {
            let (step, n) = scan.run(&self.window.held()[at..]);
            at += n;
            if self.item_max < at {
                return self.skip_item(place, scan, step, at, layout);
            }
            match step {
                Step::List => {}
                Step::More if self.window.fill() => {}
                Step::More => {
                    if !self.is_end_told() {
                        let held = Held::piece(&self.window.held()[..at], place);
                        let (place, what) = wrong_with(held, step, "cut off: ");
                        self.out.problem(place, &what);
                    }
                    self.window.consume_all();
                    return Some(Left::Document);
                }
                Step::End => {
                    let held = Held::piece(&self.window.held()[..at], place);
                    self.out.item(held);
                    self.window.consume(at);
                    return None;
                }
                Step::Broken | Step::TooDeep => {
                    let held = self.window.held();
                    let held = Held::piece(&held[..judged(held, at)], place);
                    let (place, what) = wrong_with(held, step, "");
                    self.out.problem(place, &what);
                    return Some(self.skip_to_item(layout));
                }
            }
        }
    }

    /// Names an item that is too long, and lets go of it to its end.
    fn skip_item(
        &mut self,
        place: Place,
        mut scan: Scan,
        mut step: Step,
        at: usize,
        layout: Option<&Layout>,
    ) -> Option<Left> {
        self.too_large(place);
        self.window.consume(at);
        loop {
            match step {
                Step::End => return None,
                Step::Broken | Step::TooDeep => return Some(self.skip_to_item(layout)),
                Step::More if !self.window.fill() => return Some(Left::Document),
                Step::More | Step::List => {}
            }
            let n;
            (step, n) = scan.run(self.window.held());
            self.window.consume(n);
        }
    }

    /// Goes on where the next item seems to begin, or what is behind the list.
    fn skip_to_item(&mut self, layout: Option<&Layout>) -> Left {
        match layout {
            Some(Layout::Lines(indent)) => self.skip_to_item_line(*indent),
            Some(Layout::Inline(start)) if !start.is_empty() => self.skip_to_item_in_line(start),
            Some(Layout::Inline(_)) | None => {
                self.window.skip_line();
                Left::Document
            }
        }
    }

    fn skip_to_item_line(&mut self, indent: usize) -> Left {
        let mut last = b'\0';
        loop {
            let held = self.window.held();
            let line_end = memchr::memchr(b'\n', held);
            let line = &held[..line_end.unwrap_or(held.len())];
            last = line.trim_ascii_end().last().copied().unwrap_or(last);
            self.window
                .consume(line_end.map_or(line.len(), |it| it + 1));
            if line_end.is_none() {
                if !self.window.fill() {
                    return Left::Document;
                }
                continue;
            }
            let is_blank = |it| matches!(it, b' ' | b'\t');
            let mut n_blank = 0;
            while n_blank <= indent && self.window.byte(n_blank).is_some_and(is_blank) {
                n_blank += 1;
            }
            match self.window.byte(n_blank) {
                Some(b'{') if n_blank == indent && (indent != 0 || last == b',') => {
                    return Left::Items;
                }
                Some(b'{') if n_blank == 0 => return Left::Document,
                Some(b']') if n_blank < indent => return Left::Items,
                _ => {}
            }
        }
    }

    fn skip_to_item_in_line(&mut self, start: &[u8]) -> Left {
        const BEFORE: [&[u8]; 2] = [b",", b", "];
        loop {
            let held = self.window.held();
            let line_end = memchr::memchr(b'\n', held);
            let line = &held[..line_end.unwrap_or(held.len())];
            let mut starts = memchr::memmem::find_iter(line, start);
            if let Some(at) =
                starts.find(|it| BEFORE.iter().any(|before| line[..*it].ends_with(before)))
            {
                self.window.consume(at);
                return Left::Items;
            }
            if let Some(at) = line_end {
                self.window.consume(at + 1);
                return Left::Document;
            }
            // It may begin among the last bytes.
            let keep = line.len().min(start.len() + 1);
            self.window.consume(line.len() - keep);
            if !self.window.fill() {
                self.window.consume_all();
                return Left::Document;
            }
        }
    }
}
