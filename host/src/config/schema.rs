//! The JSON Schema of a file, for editors and charts.
//!
//! It is made of the table of the keys, and says less than [`Config::parse`]
//! checks: ranges of what has a unit, and what two keys may not say together.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value as Json, json};

use super::{
    Config,
    keys::{Key, joined, keys, names_in, sections},
    print::explained,
    value::fields,
};

impl JsonSchema for Config {
    fn schema_name() -> Cow<'static, str> {
        "Config".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        Schema::from(section("", &Self::example()))
    }
}

fn section(path: &str, example: &Config) -> Map<String, Json> {
    let properties = names_in(path).into_iter().map(|name| {
        let full = joined(path, name);
        let schema = match keys().iter().find(|it| it.path == full) {
            Some(key) => value(key, example),
            None => section(&full, example),
        };
        (name.to_owned(), Json::Object(schema))
    });
    let about = sections().into_iter().find(|(it, _)| *it == path);
    let mut schema = fields(json!({
        "description": about.map_or("The configuration file of `portent run`.", |(_, about)| about),
        "type": "object",
        "properties": properties.collect::<Map<_, _>>(),
        "additionalProperties": false,
    }));
    schema.extend(fields(match path {
        "" => json!({"required": ["scope", "plugins"]}),
        "plugins" => json!({"required": ["directory"]}),
        "scope" => json!({"oneOf": [{"required": ["namespaces"]}, {"required": ["cluster"]}]}),
        "scope.cluster" => json!({}),
        // Everything in it may be commented out.
        _ => json!({"type": ["object", "null"]}),
    }));
    schema
}

fn value(key: &Key, example: &Config) -> Map<String, Json> {
    let mut schema = key.schema.clone();
    schema.insert("description".to_owned(), json!(explained(key)));
    let shown = key.shown(example);
    if let Some(default) = shown.filter(|it| key.default.as_ref() == Some(it)) {
        let json = serde_saphyr::from_str::<Json>(&default);
        schema.extend(json.ok().map(|it| ("default".to_owned(), it)));
    }
    schema
}
