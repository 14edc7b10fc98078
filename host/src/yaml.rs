//! The text of a file as a tree in which everything knows its place.
//!
//! The configuration and the settings of plugins are read through it, so that an error in either
//! names a line, and so that both are the same YAML: `on` is a text, a date is a text, and a
//! number is one as far as JSON has it.
//!
//! What bounds it: no text over what its caller allows is parsed, no alias is followed, and nodes
//! and depth are counted as they are read. Text that is no YAML is one problem, since nobody
//! knows what follows it.

use std::{fmt, ops::Range};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor},
};
use serde_saphyr::{
    Location, MessageFormatter as _, Spanned, UserMessageFormatter,
    budget::BudgetBreach,
    options::{DuplicateKeyPolicy, MergeKeyPolicy, NonFiniteFloatPolicy},
};

use crate::text::cut;

/// Somewhere in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// From 1.
    pub line: u64,
    /// In characters, from 1.
    pub column: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// Why a text has no tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NoTree {
    /// Where.
    pub place: Place,
    /// Why, and what to write instead.
    pub what: String,
}

/// A value, and where it begins.
#[derive(Debug)]
pub(crate) struct Node {
    pub place: Place,
    pub what: What,
    /// The number that it is, as far as JSON has it: `0x1f` is one, and `.inf` is a text.
    pub number: Option<serde_json::Number>,
    /// Its bytes in the text, as far as they are known.
    span: Range<usize>,
}

/// What a node is.
#[derive(Debug)]
pub(crate) enum What {
    Nothing,
    Bool(bool),
    /// As it is written.
    Number(String),
    Text(String),
    List(Vec<Node>),
    /// In the order of the text. A key may be anything, and there more than once.
    Mapping(Vec<(Node, Node)>),
}

/// Nodes of a file. The keys of the configuration are some 60; the rest is for names.
const NODES_MAX: usize = 50_000;

/// How deep nodes may be in each other: a glob is 4 deep.
const DEPTH_MAX: usize = 16;

/// The tree of a text that has so many bytes at most.
pub(crate) fn parse(text: &[u8], max_bytes: u64) -> Result<Node, NoTree> {
    let wrong = |place, what: &str| NoTree {
        place,
        what: what.to_owned(),
    };
    if max_bytes < u64::try_from(text.len()).unwrap_or(u64::MAX) {
        let what = format!("it is over {max_bytes} bytes, which is all that it may have");
        return Err(wrong(Place::START, &what));
    }
    let text = str::from_utf8(text).map_err(|err| {
        let before = String::from_utf8_lossy(&text[..err.valid_up_to()]);
        let line = before.rsplit('\n').next().unwrap_or_default();
        let place = Place {
            line: count(before.matches('\n').count()) + 1,
            column: count(line.chars().count()) + 1,
        };
        wrong(place, "a byte here is no UTF-8: save the file as UTF-8")
    })?;
    // Not everyone's editor leaves it out, and places are easier without.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_aliases: 0,
            max_documents: 1,
            max_depth: DEPTH_MAX,
            max_nodes: NODES_MAX,
        },
        duplicate_keys: DuplicateKeyPolicy::PassThrough,
        merge_keys: MergeKeyPolicy::AsOrdinary,
        strict_booleans: true,
        leading_zero_numbers_as_strings: true,
        underscored_numbers_as_strings: true,
        reject_unsupported_tags: true,
        non_finite_float_policy: NonFiniteFloatPolicy::AsString,
        with_snippet: false,
    };
    let mut tree: Node = serde_saphyr::from_str_with_options(text, options).map_err(|err| {
        let place = err.location().map_or(Place::START, Place::from);
        wrong(place, &no_tree(&err))
    })?;
    tree.spell_numbers(text);
    Ok(tree)
}

fn no_tree(err: &serde_saphyr::Error) -> String {
    let serde_saphyr::Error::Budget { breach, .. } = err else {
        let what = UserMessageFormatter.format_message(err);
        return format!("this is no YAML: {what}");
    };
    match breach {
        BudgetBreach::Aliases { .. } => {
            "this is an alias, which is not followed: write out what it stands for".to_owned()
        }
        BudgetBreach::Documents { .. } => {
            "a second document begins here: write one into a file".to_owned()
        }
        BudgetBreach::Depth { .. } => {
            format!("this is {DEPTH_MAX} deep in others, where no key is: write it higher up")
        }
        _ => format!("there are over {NODES_MAX} values up to here: write fewer"),
    }
}

fn count(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}

impl Node {
    /// Makes numbers what they are in the text, since a message that quotes `1e3`
    /// as `1000.0` helps nobody.
    fn spell_numbers(&mut self, text: &str) {
        match &mut self.what {
            What::Number(it) => {
                let read = std::mem::take(it);
                let written = text.get(self.span.clone()).unwrap_or(&read);
                let number = |it| serde_json::from_str(it).ok();
                self.number = number(written).or_else(|| number(&read));
                written.clone_into(it);
            }
            What::List(items) => items.iter_mut().for_each(|it| it.spell_numbers(text)),
            What::Mapping(entries) => {
                for (key, value) in entries {
                    key.spell_numbers(text);
                    value.spell_numbers(text);
                }
            }
            What::Nothing | What::Bool(_) | What::Text(_) => {}
        }
    }

    /// The value of the key with this path, and where the key is. The first, if it
    /// is there more than once.
    pub(crate) fn entry(&self, path: &str) -> Option<(Place, &Self)> {
        let mut entry = (self.place, self);
        for name in path.split('.') {
            let What::Mapping(entries) = &entry.1.what else {
                return None;
            };
            let (key, value) = entries
                .iter()
                .find(|(key, _)| matches!(&key.what, What::Text(it) if it == name))?;
            entry = (key.place, value);
        }
        Some(entry)
    }

    /// The value of the key with this path.
    pub(crate) fn at(&self, path: &str) -> Option<&Self> {
        self.entry(path).map(|(_, value)| value)
    }

    /// A value of one word, as text.
    pub(crate) fn scalar(&self) -> Option<String> {
        match &self.what {
            What::Bool(it) => Some(it.to_string()),
            What::Number(it) | What::Text(it) => Some(it.clone()),
            What::Nothing | What::List(_) | What::Mapping(_) => None,
        }
    }

    /// Why it will not do, as the beginning of a sentence.
    pub(crate) fn not_this(&self) -> String {
        match &self.what {
            What::Nothing => "has no value".to_owned(),
            What::Bool(it) => format!("cannot be `{it}`"),
            What::Number(it) => format!("cannot be `{}`", cut(it, SHOWN_MAX_BYTES)),
            // With quotes, if it is they that are wrong.
            What::Text(it) => format!("cannot be `{}`", text(cut(it, SHOWN_MAX_BYTES))),
            What::List(_) => "cannot be a list".to_owned(),
            What::Mapping(_) => "cannot be a mapping".to_owned(),
        }
    }
}

/// A text as YAML: as it is where that would be read as this text, else in quotes.
pub(crate) fn text(text: &str) -> String {
    // A list takes fewer characters as they are than a line does, and other ones.
    let tried = parse(format!("line: {text}\nlist: [{text}]").as_bytes(), u64::MAX);
    let is_read_back = |node: &Node| matches!(&node.what, What::Text(it) if it == text);
    let on_line = |tree: &Node| tree.at("line").is_some_and(is_read_back);
    let in_list = |tree: &Node| match tree.at("list").map(|it| &it.what) {
        Some(What::List(items)) => items.len() == 1 && items.iter().all(is_read_back),
        _ => false,
    };
    if tried.is_ok_and(|tree| on_line(&tree) && in_list(&tree)) {
        return text.to_owned();
    }
    // YAML takes fewer characters as they are than JSON does.
    let escaped = text.chars().map(|it| match it {
        '"' | '\\' => format!("\\{it}"),
        ' '..='~' => it.to_string(),
        it => format!("\\U{:08x}", u32::from(it)),
    });
    format!("\"{}\"", escaped.collect::<String>())
}

/// How much of a wrong value a message shows.
const SHOWN_MAX_BYTES: usize = 64;

impl Place {
    pub(crate) const START: Self = Self { line: 1, column: 1 };
}

impl From<Location> for Place {
    fn from(it: Location) -> Self {
        Self {
            line: it.line().max(1),
            column: it.column().max(1),
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<What>::deserialize(from)?;
        let span = spanned.referenced.span();
        let idx = |it: Option<u64>| it.and_then(|it| usize::try_from(it).ok());
        let start = idx(span.byte_offset()).unwrap_or(usize::MAX);
        let len = idx(span.byte_len()).unwrap_or(0);
        Ok(Self {
            place: spanned.referenced.into(),
            what: spanned.value,
            number: None,
            span: start..start.saturating_add(len),
        })
    }
}

impl<'de> Deserialize<'de> for What {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(OfAnyForm)
    }
}

struct OfAnyForm;

impl<'de> Visitor<'de> for OfAnyForm {
    type Value = What;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<What, E> {
        Ok(What::Nothing)
    }

    fn visit_none<E>(self) -> Result<What, E> {
        Ok(What::Nothing)
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<What, D::Error> {
        What::deserialize(from)
    }

    fn visit_bool<E>(self, it: bool) -> Result<What, E> {
        Ok(What::Bool(it))
    }

    fn visit_i64<E>(self, it: i64) -> Result<What, E> {
        Ok(What::Number(it.to_string()))
    }

    fn visit_u64<E>(self, it: u64) -> Result<What, E> {
        Ok(What::Number(it.to_string()))
    }

    fn visit_i128<E>(self, it: i128) -> Result<What, E> {
        Ok(What::Number(it.to_string()))
    }

    fn visit_u128<E>(self, it: u128) -> Result<What, E> {
        Ok(What::Number(it.to_string()))
    }

    fn visit_f64<E>(self, it: f64) -> Result<What, E> {
        Ok(What::Number(it.to_string()))
    }

    fn visit_str<E>(self, it: &str) -> Result<What, E> {
        Ok(What::Text(it.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<What, A::Error> {
        let mut list = Vec::new();
        while let Some(it) = items.next_element()? {
            list.push(it);
        }
        Ok(What::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<What, A::Error> {
        let mut mapping = Vec::new();
        while let Some(it) = entries.next_entry()? {
            mapping.push(it);
        }
        Ok(What::Mapping(mapping))
    }
}
