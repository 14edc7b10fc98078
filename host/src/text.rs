//! Text that others wrote: how long it may be, and how it is shown.
//!
//! Notes come from anyone who may create Events, messages from anyone who may
//! hand us a plugin. Text is bounded where it enters ([`cut`]). It is kept as
//! it was written, since classifiers parse it and JSON has its own escapes;
//! what goes to a terminal or a log line goes through [`Visible`] first.

use std::{
    error::Error,
    fmt::{self, Write as _},
};

/// The longest prefix of `text` that fits in `max_bytes` and ends at a
/// character boundary.
#[must_use]
pub fn cut(text: &str, max_bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(max_bytes))
        .unwrap_or(text)
}

/// An error and what it came of, in a line. Some errors say that themselves, and some
/// go on below with an excerpt.
#[must_use]
pub fn in_a_line(err: &dyn Error) -> String {
    let first_line = |it: &dyn Error| it.to_string().lines().next().unwrap_or("").to_owned();
    let mut line = first_line(err);
    let mut source = err.source();
    while let Some(it) = source {
        let cause = first_line(it);
        if !line.contains(&cause) {
            line = format!("{line}: {cause}");
        }
        source = it.source();
    }
    line
}

/// Shows a text on one line, with every character that a terminal would obey
/// (control, bidirectional override, zero width) written out instead.
#[derive(Clone, Copy, Debug)]
pub struct Visible<'a>(pub &'a str);

impl fmt::Display for Visible<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for it in self.0.chars() {
            match it {
                '\n' => f.write_str("\\n")?,
                '\r' => f.write_str("\\r")?,
                '\t' => f.write_str("\\t")?,
                it if obeyed(it) => write!(f, "\\u{{{:x}}}", u32::from(it))?,
                it => f.write_char(it)?,
            }
        }
        Ok(())
    }
}

/// Whether a terminal acts on the character, or hides it, rather than show it.
/// The ranges are Unicode's `Cc`, its line and paragraph separators, and the
/// format characters that reorder or hide text (UAX 9, and U+200B to U+200F,
/// U+2060 to U+206F, U+FEFF, the interlinear marks and the tag block).
fn obeyed(it: char) -> bool {
    it.is_control()
        || matches!(it,
            '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}')
}

/// Lower-case hexadecimal.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    let digit = |it: u8| char::from_digit(it.into(), 16).unwrap_or_default();
    bytes
        .iter()
        .flat_map(|it| [digit(it >> 4), digit(it & 0xf)])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_cut(text: &str, max_bytes: usize, want: &str) {
        assert_eq!(cut(text, max_bytes), want);
    }

    #[test]
    fn a_cut_is_never_within_a_character() {
        check_cut("grün", 3, "gr");
        check_cut("grün", 4, "grü");
        check_cut("grün", 5, "grün");
        check_cut("grün", 500, "grün");
        check_cut("ü", 1, "");
    }

    #[track_caller]
    fn check_visible(text: &str, want: &str) {
        assert_eq!(Visible(text).to_string(), want);
    }

    #[test]
    fn what_a_terminal_obeys_is_written_out() {
        check_visible("plain \u{1f980} text", "plain \u{1f980} text");
        check_visible("a\nb\tc\0", "a\\nb\\tc\\u{0}");
        check_visible("\u{1b}[31mred", "\\u{1b}[31mred");
        check_visible("user\u{202e}nimda", "user\\u{202e}nimda");
        check_visible("\u{9b}2J", "\\u{9b}2J");
        check_visible("zero\u{200b}width", "zero\\u{200b}width");
    }
}
