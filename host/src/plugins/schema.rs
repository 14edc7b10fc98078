//! Settings against the JSON Schema that their plugin describes them with.
//!
//! A schema is a guest's word. It is read as data of the 2020-12 dialect, never fetched from
//! anywhere, and its patterns are matched by an engine without backtracking. What it could make
//! the validator do is counted before the validator runs (`cost`): references that go round in
//! circles, and choices within choices that take twice as long with each.
//!
//! Bytes in, problems out: it knows no file. The program that serves has it done in a child
//! ([`apart`]), for what nobody thought of.

use std::{borrow::Cow, path::Path, time::Duration};

use jsonschema::{
    PatternOptions, ValidationError, Validator,
    error::{TypeKind, ValidationErrorKind as Kind},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    apart::{self, Bounds, Failure, Task},
    text::cut,
};

mod cost;

pub use cost::{DEPTH_MAX, EVALUATIONS_MAX, REFS_MAX, SCHEMAS_MAX};

/// One thing that is wrong with settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// The value that it is about, as a JSON pointer.
    pub at: String,
    /// Whether it is about the key of that value.
    pub is_key: bool,
    /// What is wrong, and what to write instead.
    pub what: String,
}

/// Why settings do not go with a schema.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Wrong {
    /// The schema is none, or one that is not held against anything.
    Schema(String),
    /// These things of the settings are wrong, and so many more.
    Settings(Vec<Problem>, usize),
}

/// Problems that are told. Who has more mends these first.
pub const PROBLEMS_MAX: usize = 8;

/// Bytes of a compiled pattern: what matches a name or an address has a tenth of it.
const PATTERN_MAX_BYTES: usize = 256 << 10;

/// Bytes of a value, and of a word of a schema, that a message shows.
const SHOWN_MAX_BYTES: usize = 64;

/// Entries of a schema that a message lists.
const LISTED_MAX: usize = 16;

/// Holds settings against a schema, both JSON.
///
/// # Errors
///
/// What is wrong with the schema; or with the settings, all at once.
pub fn check(schema: &[u8], settings: &[u8]) -> Result<(), Wrong> {
    let unread = |what: &str, err: serde_json::Error| Wrong::Schema(format!("{what}: {err}"));
    let schema: Value =
        serde_json::from_slice(schema).map_err(|err| unread("it is no JSON", err))?;
    let settings: Value =
        serde_json::from_slice(settings).map_err(|err| unread("the settings are no JSON", err))?;
    cost::bounded(&schema, &settings).map_err(Wrong::Schema)?;
    let validator = compile(&schema)?;
    let mut problems = Vec::new();
    for error in validator.iter_errors(&settings) {
        let n = problems.len();
        tell([&schema, &settings], &error, &mut problems);
        // Whatever it is, it is wrong.
        if problems.len() == n {
            problems.push(Problem {
                at: error.instance_path().as_str().to_owned(),
                is_key: false,
                what: format!("cannot be {}", shown(error.instance())),
            });
        }
    }
    if problems.is_empty() {
        return Ok(());
    }
    let n_more = problems.len().saturating_sub(PROBLEMS_MAX);
    problems.truncate(PROBLEMS_MAX);
    Err(Wrong::Settings(problems, n_more))
}

/// What the check may take in a child. What is let through was seen to take a tenth of it: a test
/// has the dearest.
const BOUNDS: Bounds = Bounds {
    memory_bytes: 512 << 20,
    time: Duration::from_secs(10),
};

/// As [`check`], in a child of this program, where it is bounded whatever the schema has found.
///
/// # Errors
///
/// As [`check`]; and that the schema takes more than it may.
pub(super) fn check_apart(program: &Path, schema: &str, settings: &str) -> Result<(), Wrong> {
    let input = serde_json::to_vec(&(schema, settings));
    let input = input.map_err(|err| Wrong::Schema(err.to_string()))?;
    let answer = apart::run(program, Task::CheckSettings, BOUNDS, &input);
    let answer = answer.map_err(|failure| match failure {
        Failure::Time => {
            let seconds = BOUNDS.time.as_secs();
            Wrong::Schema(format!(
                "to hold the settings against it takes over {seconds} s"
            ))
        }
        Failure::Memory => {
            let bytes = BOUNDS.memory_bytes;
            Wrong::Schema(format!(
                "to hold the settings against it takes over {bytes} bytes"
            ))
        }
        it => Wrong::Schema(format!("while the settings were held against it, {it}")),
    })?;
    let answer: Result<Result<(), Wrong>, _> = serde_json::from_slice(&answer);
    answer.unwrap_or_else(|err| {
        Err(Wrong::Schema(format!(
            "the child said something else: {err}"
        )))
    })
}

/// The child's side: the work of [`Task::CheckSettings`].
///
/// # Errors
///
/// If that is no schema and settings.
pub fn answer(input: &[u8]) -> Result<Vec<u8>, Failure> {
    let refused = |err: serde_json::Error| Failure::Refused(err.to_string());
    let (schema, settings): (String, String) = serde_json::from_slice(input).map_err(refused)?;
    serde_json::to_vec(&check(schema.as_bytes(), settings.as_bytes())).map_err(refused)
}

fn compile(schema: &Value) -> Result<Validator, Wrong> {
    jsonschema::draft202012::options()
        // Built without what fetches; this says so again, whatever features others turn on.
        .offline()
        .with_pattern_options(
            PatternOptions::regex()
                .size_limit(PATTERN_MAX_BYTES)
                .dfa_size_limit(PATTERN_MAX_BYTES),
        )
        .build(schema)
        .map_err(|err| {
            let at = match err.instance_path().as_str() {
                "" => String::new(),
                at => format!("{}: ", cut(at, 4 * SHOWN_MAX_BYTES)),
            };
            let what = err.masked_with("this").to_string();
            Wrong::Schema(format!("{at}{}", cut(&what, 4 * SHOWN_MAX_BYTES)))
        })
}

/// What is wrong, as its reader would put it.
fn tell(of: [&Value; 2], error: &ValidationError<'_>, to: &mut Vec<Problem>) {
    let [schema, settings] = of;
    let at = error.instance_path().as_str();
    let mut value = |what: String| {
        to.push(Problem {
            at: at.to_owned(),
            is_key: false,
            what,
        });
    };
    let shown = shown(error.instance());
    match error.kind() {
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            let known = known_keys(schema, error);
            for key in unexpected {
                to.push(Problem {
                    at: format!("{at}/{}", escaped(key)),
                    is_key: true,
                    what: unknown_key(key, &known),
                });
            }
        }
        // It is told at the mapping that has the key, as if that were all wrong.
        Kind::FalseSchema if refuses_keys(error) => {
            let keys = settings.pointer(at).and_then(Value::as_object);
            for (key, _) in keys.into_iter().flatten() {
                to.push(Problem {
                    at: format!("{at}/{}", escaped(key)),
                    is_key: true,
                    what: unknown_key(key, &[]),
                });
            }
        }
        Kind::PropertyNames { error: of_key } => {
            let key = of_key.instance().as_str().unwrap_or_default();
            let instead = instead(of_key);
            to.push(Problem {
                at: format!("{at}/{}", escaped(key)),
                is_key: true,
                what: format!("no key can be `{}`: {instead}", cut(key, SHOWN_MAX_BYTES)),
            });
        }
        Kind::Required { property } => {
            let key = property.as_str().unwrap_or_default();
            value(format!(
                "`{}` is missing: write it",
                cut(key, SHOWN_MAX_BYTES)
            ));
        }
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
            // Of the form that it is nearest to: that which finds least to say against it.
            let is_other_type = |it: &ValidationError<'_>| {
                matches!(it.kind(), Kind::Type { .. }) && it.instance_path().as_str() == at
            };
            let nearest = context
                .iter()
                .filter(|it| !it.is_empty() && !it.iter().any(is_other_type))
                .min_by_key(|it| it.len())
                .filter(|_| 1 < context.len());
            if let Some(nearest) = nearest {
                for it in nearest {
                    tell(of, it, to);
                }
            } else {
                let forms = context.iter().flatten().take(LISTED_MAX).map(instead);
                let forms = forms.collect::<Vec<_>>().join("; or ");
                value(format!("cannot be {shown}: {forms}"));
            }
        }
        _ => value(format!("cannot be {shown}: {}", instead(error))),
    }
}

/// What to write instead.
fn instead(error: &ValidationError<'_>) -> String {
    let instance = error.instance();
    let value = |it: &Value| shown(it);
    match error.kind() {
        Kind::Type { kind } => {
            let words = match kind {
                TypeKind::Single(it) => type_word(it.as_str()).to_owned(),
                TypeKind::Multiple(types) => {
                    let words = types.iter().map(|it| type_word(it.as_str()));
                    words.collect::<Vec<_>>().join(" or ")
                }
            };
            let is_word = !matches!(instance.as_ref(), Value::Object(_) | Value::Array(_));
            let quotes = if words == TEXT && is_word && !instance.is_null() {
                ", in quotes"
            } else {
                ""
            };
            format!("write {words}{quotes}")
        }
        Kind::Enum { options } => {
            let options: Vec<_> = options.as_array().into_iter().flatten().collect();
            let words: Vec<_> = options.iter().take(LISTED_MAX).map(|it| word(it)).collect();
            let more = if LISTED_MAX < options.len() {
                ", ..."
            } else {
                ""
            };
            let nearest = match instance.as_ref() {
                Value::String(it) => nearest(it, options.iter().filter_map(|it| it.as_str())),
                _ => None,
            };
            let mean = nearest.map_or_else(String::new, |it| format!("; did you mean `{it}`?"));
            format!("write one of {}{more}{mean}", words.join(", "))
        }
        Kind::Constant { expected_value } => format!("write {}", value(expected_value)),
        Kind::Minimum { limit } => format!("write a number from {} on", value(limit)),
        Kind::Maximum { limit } => format!("write a number up to {}", value(limit)),
        Kind::ExclusiveMinimum { limit } => format!("write a number over {}", value(limit)),
        Kind::ExclusiveMaximum { limit } => format!("write a number under {}", value(limit)),
        Kind::MultipleOf { multiple_of } => format!("write a multiple of {multiple_of}"),
        Kind::MinLength { limit } => format!("write {limit} characters or more"),
        Kind::MaxLength { limit } => format!("write {limit} characters at most"),
        Kind::MinItems { limit } => format!("write {limit} entries or more"),
        Kind::MaxItems { limit } => format!("write {limit} entries at most"),
        Kind::AdditionalItems { limit } => format!("write {limit} entries at most"),
        Kind::MinProperties { limit } => format!("write {limit} keys or more"),
        Kind::MaxProperties { limit } => format!("write {limit} keys at most"),
        Kind::UniqueItems => "write each entry once".to_owned(),
        Kind::Pattern { pattern } => {
            format!("write what matches `{}`", cut(pattern, 2 * SHOWN_MAX_BYTES))
        }
        Kind::FalseSchema => "leave it out".to_owned(),
        Kind::OneOfMultipleValid { .. } => {
            "it is more than one of the forms that it may have: write what is one".to_owned()
        }
        _ => {
            let what = error.masked_with("it").to_string();
            cut(&what, 4 * SHOWN_MAX_BYTES).to_owned()
        }
    }
}

const TEXT: &str = "a text";

fn type_word(json: &str) -> &str {
    match json {
        "object" => "a mapping",
        "array" => "a list",
        "string" => TEXT,
        "integer" => "a whole number",
        "number" => "a number",
        "boolean" => "true or false",
        "null" => "nothing",
        other => other,
    }
}

/// A value that is wrong.
fn shown(value: &Value) -> Cow<'static, str> {
    match value {
        Value::Object(_) => "a mapping".into(),
        Value::Array(_) => "a list".into(),
        Value::Null => "without a value".into(),
        word => {
            let word = word.to_string();
            format!("`{}`", cut(&word, SHOWN_MAX_BYTES)).into()
        }
    }
}

/// A value that may be written, as it may be.
fn word(value: &Value) -> String {
    let word = match value {
        Value::String(it) => it.clone(),
        it => it.to_string(),
    };
    cut(&word, SHOWN_MAX_BYTES).to_owned()
}

fn refuses_keys(error: &ValidationError<'_>) -> bool {
    let path = error.schema_path().as_str();
    let last = path.rsplit('/').next().unwrap_or_default();
    ["additionalProperties", "unevaluatedProperties"].contains(&last)
}

/// The keys that stand beside what refuses others.
fn known_keys<'a>(schema: &'a Value, error: &ValidationError<'_>) -> Vec<&'a str> {
    let path = error.schema_path().as_str();
    let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
    let properties = schema.pointer(&format!("{parent}/properties"));
    let properties = properties.and_then(Value::as_object);
    properties
        .into_iter()
        .flatten()
        .map(|(it, _)| &**it)
        .collect()
}

fn unknown_key(key: &str, known: &[&str]) -> String {
    if known.is_empty() {
        return "there is no such key: leave it out".to_owned();
    }
    if let Some(nearest) = nearest(key, known.iter().copied()) {
        return format!("there is no such key; did you mean `{nearest}`?");
    }
    let listed: Vec<_> = known
        .iter()
        .take(LISTED_MAX)
        .map(|it| cut(it, SHOWN_MAX_BYTES))
        .collect();
    let more = if LISTED_MAX < known.len() {
        ", ..."
    } else {
        ""
    };
    format!(
        "there is no such key; write one of {}{more}",
        listed.join(", ")
    )
}

/// How many letters may be other ones for a word to be meant, and of how many.
const TYPOS_MAX: usize = 2;
const WORD_MIN_LETTERS: usize = 4;

/// The word that was meant, if it is nearly one of these.
fn nearest<'a>(written: &str, words: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let is_short = |it: &str| it.len() <= SHOWN_MAX_BYTES;
    if !is_short(written) || written.chars().count() < WORD_MIN_LETTERS {
        return None;
    }
    let words = words.filter(|it| is_short(it)).take(1_000);
    let words = words.map(|it| (typos(written, it), it));
    let (n, word) = words.min_by_key(|(n, _)| *n)?;
    (n <= TYPOS_MAX).then_some(word)
}

/// Letters that have to be put in, left out or replaced to make one word the other.
fn typos(from: &str, to: &str) -> usize {
    let to: Vec<_> = to.chars().collect();
    let mut row: Vec<_> = (0..=to.len()).collect();
    for (n, letter) in from.chars().enumerate() {
        let mut before = row[0];
        row[0] = n + 1;
        for (idx, other) in to.iter().enumerate() {
            let replaced = before + usize::from(letter != *other);
            before = row[idx + 1];
            row[idx + 1] = replaced.min(before + 1).min(row[idx] + 1);
        }
    }
    row[to.len()]
}

/// A key as part of a JSON pointer.
fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests;
