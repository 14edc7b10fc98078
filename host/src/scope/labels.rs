//! Label keys and selectors that cannot be wrong.
//!
//! A selector comes as text from whoever configures, in the grammar of `kubectl -l`:
//! `app=trainer,tier!=test,action,!canary,run in (a, b),zone notin (c)`. It is read
//! here and not by the server alone, so that a mistake is told with its place before
//! anything is asked. What is sent is made anew from what was understood.
//!
//! A selector never changes, and is bounded by the length of its text.

use std::{collections::BTreeSet, fmt, str::FromStr};

use super::names::is_subdomain;
use crate::text::{Visible, cut};

/// Bytes of a selector's text: it goes into the address of each request.
pub const SELECTOR_MAX_BYTES: usize = 4 << 10;

/// Bytes of a label's value, and of a key's name behind its prefix.
const NAME_MAX_BYTES: usize = 63;

/// How much of a wrong text an error shows.
const SHOWN_MAX_BYTES: usize = 64;

/// The key of a label: a name of 1 to 63 letters, digits, `-`, `_` and `.`, with a letter
/// or digit at either end; before it, if anything, a DNS subdomain and `/`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LabelKey(String);

/// Which objects are meant, by their labels. Without a requirement, all are.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LabelSelector {
    requirements: BTreeSet<Requirement>,
}

/// What a label has to be. Of an object that has not that label, only `IsNot` and `Absent` are
/// true.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Requirement {
    key: LabelKey,
    is: Is,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Is {
    Present,
    Absent,
    /// Invariant: never empty.
    In(BTreeSet<String>),
    /// Invariant: never empty.
    NotIn(BTreeSet<String>),
}

/// Why a text is no selector, or no key of a label, and what to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelError {
    what: String,
}

impl LabelError {
    fn new(what: impl fmt::Display) -> Self {
        Self {
            what: what.to_string(),
        }
    }
}

impl fmt::Display for LabelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for LabelError {}

impl LabelKey {
    /// The key as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for LabelKey {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for LabelKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for LabelKey {
    type Err = LabelError;

    fn from_str(text: &str) -> Result<Self, LabelError> {
        let (prefix, name) = match text.split_once('/') {
            Some((prefix, name)) => (Some(prefix), name),
            None => (None, text),
        };
        if !is_name(name) || !prefix.is_none_or(is_subdomain) {
            let shown = Visible(cut(text, SHOWN_MAX_BYTES));
            return Err(LabelError::new(format_args!(
                "`{shown}` is no key of a label: write 1 to {NAME_MAX_BYTES} letters, digits, `-`, `_` \
                 and `.`, with a letter or digit at either end, and before that nothing or a domain \
                 and `/`, for example `app` or `example.com/run`"
            )));
        }
        Ok(Self(text.to_owned()))
    }
}

/// Whether it is what keys end in and values are, if they are not empty.
fn is_name(text: &str) -> bool {
    let is_end = |it: Option<char>| it.is_some_and(|it| it.is_ascii_alphanumeric());
    text.len() <= NAME_MAX_BYTES
        && is_end(text.chars().next())
        && is_end(text.chars().next_back())
        && text
            .bytes()
            .all(|it| it.is_ascii_alphanumeric() || b"-_.".contains(&it))
}

impl FromStr for LabelSelector {
    type Err = LabelError;

    fn from_str(text: &str) -> Result<Self, LabelError> {
        if SELECTOR_MAX_BYTES < text.len() {
            return Err(LabelError::new(format_args!(
                "it has {} bytes: write a selector of at most {SELECTOR_MAX_BYTES}",
                text.len()
            )));
        }
        let mut requirements = BTreeSet::new();
        let mut reader = Reader { text, at: 0 };
        reader.pass_space();
        while reader.at < text.len() {
            requirements.insert(reader.requirement()?);
            if reader.at == text.len() {
                break;
            }
            if !reader.take(",") {
                return Err(reader.expected("`,` and another requirement, or nothing more"));
            }
            if reader.at == text.len() {
                return Err(reader.expected("another requirement behind the `,`, or no `,`"));
            }
        }
        Ok(Self { requirements })
    }
}

/// Reads a selector. Wherever it stands, there is no space in front of it.
struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn pass_space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_ascii_start().len();
    }

    fn take(&mut self, sign: &str) -> bool {
        let is_there = self.rest().starts_with(sign);
        if is_there {
            self.at += sign.len();
            self.pass_space();
        }
        is_there
    }

    /// What goes on to the next sign or space, and where that begins.
    fn word(&mut self) -> (&'a str, usize) {
        let (rest, began) = (self.rest(), self.at);
        let is_end = |it: char| it.is_ascii_whitespace() || "=!<>(),".contains(it);
        let word = rest.split(is_end).next().unwrap_or_default();
        self.at += word.len();
        self.pass_space();
        (word, began)
    }

    fn requirement(&mut self) -> Result<Requirement, LabelError> {
        let is_absent = self.take("!");
        let began = self.at;
        let (word, _) = self.word();
        if word.is_empty() {
            self.at = began;
            return Err(self.expected("the key of a label, for example `app=trainer`"));
        }
        let key = word.parse().map_err(|err| self.wrong(began, &err))?;
        let is = if is_absent {
            Is::Absent
        } else if self.take("!=") {
            Is::NotIn([self.value()?].into())
        } else if self.take("==") || self.take("=") {
            Is::In([self.value()?].into())
        } else if self.rest().is_empty() || self.rest().starts_with(',') {
            Is::Present
        } else {
            let began = self.at;
            match self.word().0 {
                "in" => Is::In(self.values("in")?),
                "notin" => Is::NotIn(self.values("notin")?),
                _ => {
                    self.at = began;
                    return Err(self.expected(
                        "`=`, `!=`, `in (A, B)`, `notin (A, B)` or nothing behind the key",
                    ));
                }
            }
        };
        Ok(Requirement { key, is })
    }

    fn value(&mut self) -> Result<String, LabelError> {
        let (word, began) = self.word();
        if word.is_empty() || is_name(word) {
            return Ok(word.to_owned());
        }
        let shown = Visible(cut(word, SHOWN_MAX_BYTES));
        let what = LabelError::new(format_args!(
            "`{shown}` is the value of no label: write at most {NAME_MAX_BYTES} letters, digits, `-`, \
             `_` and `.`, with a letter or digit at either end"
        ));
        Err(self.wrong(began, &what))
    }

    /// What is in the parentheses.
    fn values(&mut self, behind: &str) -> Result<BTreeSet<String>, LabelError> {
        let example = format!("`(A, B)` behind `{behind}`");
        if !self.take("(") || self.rest().starts_with(')') {
            return Err(self.expected(&example));
        }
        let mut values = BTreeSet::new();
        loop {
            values.insert(self.value()?);
            if self.take(")") {
                return Ok(values);
            }
            if !self.take(",") {
                return Err(self.expected("`,` and another value, or `)`"));
            }
        }
    }

    fn wrong(&self, at: usize, what: &LabelError) -> LabelError {
        let before = self.text.get(..at).unwrap_or_default();
        let n = before.chars().count() + 1;
        LabelError::new(format_args!("at its character {n}: {what}"))
    }

    fn expected(&self, what: &str) -> LabelError {
        let found = match self.rest() {
            "" => "it ends".to_owned(),
            rest => format!("`{}` is wrong", Visible(cut(rest, SHOWN_MAX_BYTES))),
        };
        self.wrong(
            self.at,
            &LabelError::new(format_args!("{found}: write {what}")),
        )
    }
}

impl LabelSelector {
    /// Whether every object is meant.
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.requirements.is_empty()
    }
}

impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (idx, Requirement { key, is }) in self.requirements.iter().enumerate() {
            if idx != 0 {
                f.write_str(",")?;
            }
            let (values, one, many) = match is {
                Is::Present => {
                    write!(f, "{key}")?;
                    continue;
                }
                Is::Absent => {
                    write!(f, "!{key}")?;
                    continue;
                }
                Is::In(values) => (values, "=", "in"),
                Is::NotIn(values) => (values, "!=", "notin"),
            };
            let values: Vec<_> = values.iter().map(String::as_str).collect();
            match values[..] {
                [value] => write!(f, "{key}{one}{value}")?,
                _ => write!(f, "{key} {many} ({})", values.join(","))?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, want: &str) {
        let selector: LabelSelector = text.parse().unwrap();
        assert_eq!(selector.to_string(), want, "{text}");
        assert_eq!(want.parse(), Ok(selector), "{want}");
    }

    #[track_caller]
    fn check_error(text: &str, want: &str) {
        let err = text.parse::<LabelSelector>().unwrap_err().to_string();
        assert!(err.starts_with(want), "{text}: {err}");
    }

    #[test]
    fn what_kubectl_takes_is_taken_and_printed_in_one_form() {
        check("", "");
        check("  ", "");
        check("app=trainer", "app=trainer");
        check("app == trainer", "app=trainer");
        check("app!=trainer", "app!=trainer");
        check("app != trainer", "app!=trainer");
        check("app", "app");
        check("!app", "!app");
        check("! app", "!app");
        check("app=", "app=");
        check("a in (x),b notin ( y )", "a=x,b!=y");
        check("run in (b, a,b)", "run in (a,b)");
        check("run in (,a)", "run in (,a)");
        check("run notin(b,a)", "run notin (a,b)");
        check("example.com/run=a_b.c-1", "example.com/run=a_b.c-1");
        check("z , b=1,a , z", "a,b=1,z");
        check("in in (in, notin)", "in in (in,notin)");
        check("notin,in=in", "in=in,notin");
        assert!("".parse::<LabelSelector>().unwrap().is_all());
        assert!(!"a".parse::<LabelSelector>().unwrap().is_all());
    }

    #[test]
    fn a_mistake_is_told_with_its_place_and_what_to_write() {
        check_error(
            "app=a b",
            "at its character 7: `b` is wrong: write `,` and another",
        );
        check_error(
            "app=a,",
            "at its character 7: it ends: write another requirement",
        );
        check_error(
            ",app",
            "at its character 1: `,app` is wrong: write the key of a label",
        );
        check_error("!", "at its character 2: it ends: write the key of a label");
        check_error(
            "app>3",
            "at its character 4: `>3` is wrong: write `=`, `!=`, `in",
        );
        check_error(
            "app is a",
            "at its character 5: `is a` is wrong: write `=`, `!=`, `in",
        );
        check_error(
            "app in a",
            "at its character 8: `a` is wrong: write `(A, B)` behind `in`",
        );
        check_error(
            "app in ()",
            "at its character 9: `)` is wrong: write `(A, B)` behind `in`",
        );
        check_error(
            "app notin (a",
            "at its character 13: it ends: write `,` and another value",
        );
        check_error(
            "app in (a b)",
            "at its character 11: `b)` is wrong: write `,` and",
        );
        check_error(
            "-app",
            "at its character 1: `-app` is no key of a label: write 1 to 63",
        );
        check_error(
            "a/b/c=1",
            "at its character 1: `a/b/c` is no key of a label",
        );
        check_error(
            "A.com/c=1",
            "at its character 1: `A.com/c` is no key of a label",
        );
        check_error(
            "app=-a",
            "at its character 5: `-a` is the value of no label: write at most 63",
        );
        check_error("app=ä", "at its character 5: `ä` is the value of no label");
        check_error("ü=ä", "at its character 1: `ü` is no key of a label");
        check_error(
            "a=b\u{1b}[2J",
            "at its character 3: `b\\u{1b}[2J` is the value of no label",
        );
        check_error(
            "!a=b",
            "at its character 3: `=b` is wrong: write `,` and another",
        );
    }

    #[test]
    fn lengths_are_those_of_the_server() {
        let is_key = |text: &str| text.parse::<LabelKey>().is_ok();
        let is_value = |value: &str| format!("a={value}").parse::<LabelSelector>().is_ok();
        for (n, is_it) in [(1, true), (63, true), (64, false)] {
            let name = "x".repeat(n);
            assert_eq!((is_key(&name), is_value(&name)), (is_it, is_it), "{n}");
            assert_eq!(is_key(&format!("example.com/{name}")), is_it, "{n}");
        }
        assert!(!is_key("") && !is_key("/a") && !is_key("a/"));
        let label = "x".repeat(63);
        let domain = [&*label, &*label, &*label, &*"x".repeat(61)].join(".");
        assert!(is_key(&format!("{domain}/a")));
        assert!(!is_key(&format!("{domain}x/a")));

        let selector = |n: usize| "a,".repeat(n / 2 - 1) + &"a".repeat(2 + n % 2);
        let of = |n| selector(n).parse::<LabelSelector>();
        assert!(of(SELECTOR_MAX_BYTES).is_ok());
        let err = of(SELECTOR_MAX_BYTES + 1).unwrap_err().to_string();
        assert_eq!(err, "it has 4097 bytes: write a selector of at most 4096");
    }

    proptest! {
        #[test]
        fn whatever_is_understood_is_printed_as_it_is_understood(text in "[a-c/.=!<>(), \u{e4}notin-]{0,24}") {
            if let Ok(it) = text.parse::<LabelSelector>() {
                prop_assert_eq!(it.to_string().parse(), Ok(it));
            }
        }
    }
}
