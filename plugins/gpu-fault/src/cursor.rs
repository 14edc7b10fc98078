//! A place in a note, and what may come next.
//!
//! Every grammar is written with it: each step names what the producer writes there, and the first that
//! does not fit ends the attempt. It borrows and never copies, looks at each byte a bounded number of
//! times, and cuts only where it has compared whole characters.

/// What is left of a note.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'a>(pub(crate) &'a str);

impl<'a> Cursor<'a> {
    /// Exactly this.
    pub(crate) fn tag(&mut self, tag: &str) -> Option<()> {
        self.0 = self.0.strip_prefix(tag)?;
        Some(())
    }

    /// Exactly this, if it is there. Says whether it was.
    pub(crate) fn maybe(&mut self, tag: &str) -> bool {
        self.tag(tag).is_some()
    }

    /// A number: all the digits here, of which there is at least one.
    pub(crate) fn number(&mut self) -> Option<u32> {
        let digits = self.while_(|byte| byte.is_ascii_digit());
        decimal(digits)
    }

    /// What is before the next of these, which is passed over too.
    pub(crate) fn until(&mut self, end: &str) -> Option<&'a str> {
        let (before, after) = cut(self.0, end)?;
        self.0 = after;
        Some(before)
    }

    /// What is before the next of these, or all that is left where there is none.
    pub(crate) fn until_or_rest(&mut self, end: &str) -> &'a str {
        match self.until(end) {
            Some(before) => before,
            None => std::mem::take(&mut self.0),
        }
    }

    /// The bytes for which this holds; none of them may be part of a longer character.
    pub(crate) fn while_(&mut self, holds: impl Fn(u8) -> bool) -> &'a str {
        let end = self
            .0
            .bytes()
            .position(|byte| !byte.is_ascii() || !holds(byte));
        let (taken, rest) = self.0.split_at(end.unwrap_or(self.0.len()));
        #[cfg(test)]
        work::done(taken.len());
        self.0 = rest;
        taken
    }

    /// Nothing is left, white space aside.
    pub(crate) fn end(&self) -> Option<()> {
        self.0.trim_ascii().is_empty().then_some(())
    }
}

/// Where a text has another for the first time.
///
/// That and what stands on it is `str`'s own, written once: the standard library's search is generic, and each
/// use of it would be another kilobyte of the plugin. What is looked for is short and ours, so the time is
/// linear in the text.
#[inline(never)]
fn find(text: &str, what: &str) -> Option<usize> {
    let (first, rest) = what.as_bytes().split_first()?;
    let bytes = text.as_bytes();
    let mut behind = 0;
    let place = loop {
        let Some(next) = bytes.get(behind..)?.iter().position(|byte| byte == first) else {
            break None;
        };
        behind += next + 1;
        if bytes.get(behind..)?.starts_with(rest) {
            break Some(behind - 1);
        }
    };
    #[cfg(test)]
    work::done(place.unwrap_or(text.len()));
    place
}

/// How many bytes were looked at: the tests' measure of time.
#[cfg(test)]
pub(crate) mod work {
    use std::cell::Cell;

    thread_local! {
        static BYTES: Cell<usize> = const { Cell::new(0) };
    }

    pub(super) fn done(bytes: usize) {
        BYTES.set(BYTES.get() + bytes);
    }

    /// Since this was asked for the last time.
    pub(crate) fn take() -> usize {
        BYTES.replace(0)
    }
}

/// As `str::contains`.
pub(crate) fn has(text: &str, what: &str) -> bool {
    find(text, what).is_some()
}

/// As `str::split_once`.
#[inline(never)]
pub(crate) fn cut<'a>(text: &'a str, at: &str) -> Option<(&'a str, &'a str)> {
    let place = find(text, at)?;
    Some((text.get(..place)?, text.get(place + at.len()..)?))
}

/// As `str::rsplit_once`.
#[inline(never)]
pub(crate) fn cut_last<'a>(text: &'a str, at: &str) -> Option<(&'a str, &'a str)> {
    let mut last = None;
    let mut rest = text;
    while let Some((_, behind)) = cut(rest, at) {
        last = Some(behind);
        rest = behind;
    }
    let behind = last?;
    let before = text.len() - behind.len() - at.len();
    Some((text.get(..before)?, behind))
}

/// As `str::split`.
pub(crate) fn pieces<'a>(text: &'a str, at: &'static str) -> impl Iterator<Item = &'a str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let (piece, behind) = cut(text, at).map_or((text, None), |(it, rest)| (it, Some(rest)));
        rest = behind;
        Some(piece)
    })
}

/// Digits alone: `parse` would take a sign as well.
pub(crate) fn decimal(digits: &str) -> Option<u32> {
    let is_decimal = digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| is_decimal)
}

/// None where there is nothing.
pub(crate) fn given(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_step_that_does_not_fit_moves_nothing() {
        let mut at = Cursor("XID=79, rest");
        assert_eq!(at.tag("xid"), None);
        assert_eq!(at.until(";"), None);
        assert_eq!(at.0, "XID=79, rest");
        assert!(at.maybe("XID="));
        assert_eq!(at.number(), Some(79));
        assert_eq!(at.until_or_rest(", "), "");
        assert_eq!(at.until_or_rest(", "), "rest");
        assert_eq!(at.end(), Some(()));
    }

    proptest! {
        #[test]
        fn searches_find_what_those_of_str_find(text in "[ab,=é ]{0,24}", what in "[ab,=é ]{1,3}") {
            prop_assert_eq!(has(&text, &what), text.contains(&what));
            prop_assert_eq!(cut(&text, &what), text.split_once(&what));
        }

        #[test]
        fn the_last_one_and_the_pieces_are_those_of_str(text in "[ab, é]{0,24}") {
            prop_assert_eq!(cut_last(&text, ", "), text.rsplit_once(", "));
            let of_str: Vec<_> = text.split(", ").collect();
            prop_assert_eq!(pieces(&text, ", ").collect::<Vec<_>>(), of_str);
        }
    }

    #[test]
    fn a_number_is_digits_and_fits() {
        assert_eq!(Cursor("+79").number(), None);
        assert_eq!(Cursor("").number(), None);
        assert_eq!(Cursor("99999999999").number(), None);
        assert_eq!(Cursor("079x").number(), Some(79));
        assert_eq!(Cursor("\u{664}").number(), None);
    }
}
