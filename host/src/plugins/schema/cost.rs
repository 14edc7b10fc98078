//! What a schema could make a validator do, counted before it does.
//!
//! First the schema alone: how deep it is, how many schemas are in it, and that each reference is
//! to one of them. Then the schema with the settings: each pair of a schema and a value that would
//! meet is weighed once and counted as often as it would come, so that what doubles with each of
//! thirty steps is refused after thirty steps of this.
//!
//! What bounds it: itself, by the limits that it holds others to.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::text::{Visible, cut};

/// How deep schemas may be in each other, and how long a way of references and choices about one
/// value may be: written by people they are some five deep.
pub const DEPTH_MAX: usize = 64;

/// Schemas in a schema, `true` and `false` among them.
pub const SCHEMAS_MAX: usize = 10_000;

/// References in a schema.
pub const REFS_MAX: usize = 1_000;

/// Values that schemas may be held against, each as often as it is, with all that is in it.
pub const EVALUATIONS_MAX: u64 = 1_000_000;

const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// Keywords that hold one schema, about the value itself.
const SAME: [&str; 4] = ["not", "if", "then", "else"];
/// A list of them.
const SAME_LIST: [&str; 3] = ["allOf", "anyOf", "oneOf"];
/// One for each value of a mapping, or each entry of a list.
const OF_VALUES: [&str; 2] = ["additionalProperties", "unevaluatedProperties"];
const OF_ITEMS: [&str; 3] = ["items", "contains", "unevaluatedItems"];
/// A mapping of them.
const BY_NAME: [&str; 4] = [
    "properties",
    "patternProperties",
    "dependentSchemas",
    "$defs",
];

/// Says why it is not held against the settings, if it is not.
pub(super) fn bounded(schema: &Value, settings: &Value) -> Result<(), String> {
    let mut of_schema = OfSchema::default();
    of_schema.look(schema, "", 0)?;
    for (target, at) in &of_schema.refs {
        if !of_schema.places.contains_key(target) {
            return Err(format!(
                "{}/$ref: `{}` is no schema of this one: write `#` or `#/$defs/NAME`",
                shown(at),
                shown(target)
            ));
        }
    }
    let mut meeting = Meeting {
        places: &of_schema.places,
        sizes: HashMap::new(),
        costs: HashMap::new(),
    };
    let cost = meeting.cost(schema, settings, 0)?;
    if EVALUATIONS_MAX < cost {
        return Err(TOO_MUCH.to_owned());
    }
    Ok(())
}

const TOO_MUCH: &str =
    "to hold the settings against it takes over 1000000 steps: nest fewer choices in each other";

fn shown(text: &str) -> String {
    Visible(cut(text, 128)).to_string()
}

/// The schemas in a schema, by their JSON pointers.
#[derive(Default)]
struct OfSchema<'a> {
    places: HashMap<String, &'a Value>,
    /// What is referred to, and from where.
    refs: Vec<(String, String)>,
}

impl<'a> OfSchema<'a> {
    fn look(&mut self, schema: &'a Value, at: &str, depth: usize) -> Result<(), String> {
        if DEPTH_MAX < depth {
            return Err(format!("{}: schemas are over {DEPTH_MAX} deep", shown(at)));
        }
        if SCHEMAS_MAX <= self.places.len() {
            return Err(format!("there are over {SCHEMAS_MAX} schemas in it"));
        }
        self.places.insert(at.to_owned(), schema);
        let Value::Object(words) = schema else {
            return match schema {
                Value::Bool(_) if !at.is_empty() => Ok(()),
                _ => Err(format!("{}: it is no schema: write a mapping", shown(at))),
            };
        };
        self.check_words(words, at)?;
        for (place, it) in within(words) {
            self.look(it, &format!("{at}/{place}"), depth + 1)?;
        }
        Ok(())
    }

    fn check_words(&mut self, words: &Map<String, Value>, at: &str) -> Result<(), String> {
        if let Some(dialect) = words.get("$schema") {
            let is_known = dialect
                .as_str()
                .is_some_and(|it| it.trim_end_matches('#') == DIALECT);
            if !is_known {
                return Err(format!("{}/$schema: write `{DIALECT}`", shown(at)));
            }
        }
        let elsewhere = ["$dynamicRef", "$recursiveRef"].into_iter();
        let elsewhere = elsewhere.chain((!at.is_empty()).then_some("$id"));
        for word in elsewhere {
            if words.contains_key(word) {
                return Err(format!(
                    "{}/{word}: what it refers to would depend on others: write `$ref` and `$defs`",
                    shown(at)
                ));
            }
        }
        if let Some(to) = words.get("$ref") {
            let target = to.as_str().and_then(|it| it.strip_prefix('#'));
            let Some(target) = target.filter(|it| it.is_empty() || it.starts_with('/')) else {
                return Err(format!(
                    "{}/$ref: `{}` is somewhere else, and nothing is fetched: write `#/$defs/NAME`",
                    shown(at),
                    shown(to.as_str().unwrap_or("?"))
                ));
            };
            if REFS_MAX <= self.refs.len() {
                return Err(format!("there are over {REFS_MAX} references in it"));
            }
            self.refs.push((target.to_owned(), at.to_owned()));
        }
        Ok(())
    }
}

/// The schemas right below one, with the rest of their JSON pointers.
fn within(words: &Map<String, Value>) -> Vec<(String, &Value)> {
    let mut found = Vec::new();
    for word in SAME
        .iter()
        .chain(&OF_VALUES)
        .chain(&OF_ITEMS)
        .chain(&["propertyNames"])
    {
        found.extend(words.get(*word).map(|it| ((*word).to_owned(), it)));
    }
    for word in SAME_LIST.iter().chain(&["prefixItems"]) {
        let list = words.get(*word).and_then(Value::as_array);
        let list = list.into_iter().flatten().enumerate();
        found.extend(list.map(|(idx, it)| (format!("{word}/{idx}"), it)));
    }
    for word in BY_NAME {
        let by_name = words.get(word).and_then(Value::as_object);
        let by_name = by_name.into_iter().flatten();
        found.extend(by_name.map(|(name, it)| (format!("{word}/{}", super::escaped(name)), it)));
    }
    found
}

/// A schema with a value: where both are, which neither leaves meanwhile.
type Pair = (*const Value, *const Value);

struct Meeting<'a> {
    places: &'a HashMap<String, &'a Value>,
    sizes: HashMap<*const Value, u64>,
    /// None while it is counted.
    costs: HashMap<Pair, Option<u64>>,
}

impl Meeting<'_> {
    /// Values in a value, with itself.
    fn size(&mut self, value: &Value) -> u64 {
        if let Some(size) = self.sizes.get(&std::ptr::from_ref(value)) {
            return *size;
        }
        let size = 1 + match value {
            Value::Object(entries) => entries.values().map(|it| self.size(it)).sum::<u64>(),
            Value::Array(items) => items.iter().map(|it| self.size(it)).sum(),
            _ => 0,
        };
        self.sizes.insert(value, size);
        size
    }

    /// What it takes to hold a schema against a value, after so many others about the same.
    fn cost(&mut self, schema: &Value, value: &Value, depth: usize) -> Result<u64, String> {
        let Value::Object(words) = schema else {
            return Ok(1);
        };
        if DEPTH_MAX < depth {
            return Err(format!(
                "over {DEPTH_MAX} references and choices lead from one to the other"
            ));
        }
        let pair: Pair = (schema, value);
        match self.costs.get(&pair) {
            Some(Some(cost)) => return Ok(*cost),
            Some(None) => return Err("it refers to itself without end".to_owned()),
            None => {}
        }
        if EVALUATIONS_MAX < u64::try_from(self.costs.len()).unwrap_or(u64::MAX) {
            return Err(TOO_MUCH.to_owned());
        }
        self.costs.insert(pair, None);
        let same = self.same(words, value, depth)?;
        // What says that the rest is not looked at has to look what is, once more.
        let is_again = words.keys().any(|it| it.starts_with("unevaluated"));
        let same = if is_again {
            same.saturating_mul(4)
        } else {
            same
        };
        let below = self.below(words, value)?;
        let own = self.size(value).saturating_add(n_choices(words));
        let cost = own.saturating_add(same).saturating_add(below);
        self.costs.insert(pair, Some(cost));
        Ok(cost)
    }

    /// The schemas that are about the same value.
    fn same(
        &mut self,
        words: &Map<String, Value>,
        value: &Value,
        depth: usize,
    ) -> Result<u64, String> {
        let mut same = Vec::new();
        if let Some(to) = words.get("$ref").and_then(Value::as_str) {
            same.extend(self.places.get(to.trim_start_matches('#')).copied());
        }
        same.extend(SAME.iter().filter_map(|it| words.get(*it)));
        for word in SAME_LIST {
            same.extend(
                words
                    .get(word)
                    .and_then(Value::as_array)
                    .into_iter()
                    .flatten(),
            );
        }
        let dependent = words.get("dependentSchemas").and_then(Value::as_object);
        same.extend(dependent.into_iter().flat_map(Map::values));
        let mut cost = 0_u64;
        for it in same {
            cost = cost.saturating_add(self.cost(it, value, depth + 1)?);
        }
        Ok(cost)
    }

    /// The schemas that are about what is in a value.
    fn below(&mut self, words: &Map<String, Value>, value: &Value) -> Result<u64, String> {
        let mut cost = 0_u64;
        let mut add = |it: u64| cost = cost.saturating_add(it);
        match value {
            Value::Object(entries) => {
                let by_name = |word| words.get(word).and_then(Value::as_object);
                for (name, it) in by_name("properties").into_iter().flatten() {
                    if let Some(value) = entries.get(name) {
                        add(self.cost(it, value, 0)?);
                    }
                }
                let patterns = by_name("patternProperties");
                let each = patterns.into_iter().flat_map(Map::values);
                let each = each.chain(OF_VALUES.iter().filter_map(|it| words.get(*it)));
                for it in each {
                    for value in entries.values() {
                        add(self.cost(it, value, 0)?);
                    }
                }
                if let Some(names) = words.get("propertyNames") {
                    let of_one = self.cost(names, &Value::Null, 0)?;
                    add(of_one.saturating_mul(u64::try_from(entries.len()).unwrap_or(u64::MAX)));
                }
            }
            Value::Array(items) => {
                let first = words.get("prefixItems").and_then(Value::as_array);
                for (it, value) in first.into_iter().flatten().zip(items) {
                    add(self.cost(it, value, 0)?);
                }
                for it in OF_ITEMS.iter().filter_map(|it| words.get(*it)) {
                    for value in items {
                        add(self.cost(it, value, 0)?);
                    }
                }
            }
            _ => {}
        }
        Ok(cost)
    }
}

/// What one value is compared with.
fn n_choices(words: &Map<String, Value>) -> u64 {
    let choices = words.get("enum").and_then(Value::as_array);
    u64::try_from(choices.map_or(0, Vec::len)).unwrap_or(u64::MAX)
}
