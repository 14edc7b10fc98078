//! What is said of settings that do not go with a schema, and what no schema gets done.

use serde_json::json;

use super::*;
use crate::sandbox::on_guest_stack;

fn wrong(schema: &Value, settings: &Value) -> Wrong {
    let [schema, settings] = [schema, settings].map(ToString::to_string);
    on_guest_stack(|| check(schema.as_bytes(), settings.as_bytes())).unwrap_err()
}

#[track_caller]
fn check_settings(schema: &Value, settings: &Value, want: &[&str]) {
    let Wrong::Settings(problems, n_more) = wrong(schema, settings) else {
        panic!(
            "the schema itself is refused: {:?}",
            wrong(schema, settings)
        );
    };
    assert_eq!(n_more, 0);
    let said: Vec<_> = problems
        .iter()
        .map(|it| format!("{} {}", it.at, it.what))
        .collect();
    assert_eq!(said, want, "{settings}");
}

#[track_caller]
fn check_schema(schema: &Value, want: &str) {
    let found = wrong(schema, &json!({"a": 1}));
    let Wrong::Schema(what) = &found else {
        panic!("{found:?}");
    };
    assert!(what.contains(want), "{what}");
}

#[track_caller]
fn check_good(schema: &Value, settings: &Value) {
    let [schema, settings] = [schema, settings].map(ToString::to_string);
    let found = on_guest_stack(|| check(schema.as_bytes(), settings.as_bytes()));
    assert_eq!(found, Ok(()), "{schema}");
}

fn of_one(word: &Value) -> Value {
    json!({"type": "object", "properties": {"a": word}})
}

#[test]
fn what_is_wrong_is_told_with_what_to_write() {
    for (word, value, want) in [
        (
            json!({"type": "string"}),
            json!(63),
            "cannot be `63`: write a text, in quotes",
        ),
        (
            json!({"type": "string"}),
            json!({}),
            "cannot be a mapping: write a text",
        ),
        (
            json!({"type": ["integer", "null"]}),
            json!("63"),
            "cannot be `\"63\"`: write nothing or a whole number",
        ),
        (
            json!({"type": "boolean"}),
            json!("on"),
            "cannot be `\"on\"`: write true or false",
        ),
        (
            json!({"type": "object"}),
            json!([1]),
            "cannot be a list: write a mapping",
        ),
        (
            json!({"enum": ["info", "warn", 7]}),
            json!("wran"),
            "cannot be `\"wran\"`: write one of info, warn, 7; did you mean `warn`?",
        ),
        (
            json!({"enum": ["info"]}),
            json!(null),
            "cannot be without a value: write one of info",
        ),
        (json!({"const": 7}), json!(8), "cannot be `8`: write `7`"),
        (
            json!({"minimum": 1}),
            json!(0),
            "cannot be `0`: write a number from `1` on",
        ),
        (
            json!({"exclusiveMaximum": 1}),
            json!(1),
            "cannot be `1`: write a number under `1`",
        ),
        (
            json!({"maxLength": 2}),
            json!("abc"),
            "cannot be `\"abc\"`: write 2 characters at most",
        ),
        (
            json!({"pattern": "^[0-9]+$"}),
            json!("x"),
            "cannot be `\"x\"`: write what matches `^[0-9]+$`",
        ),
        (
            json!({"items": {"type": "string"}, "minItems": 2}),
            json!(["x"]),
            "cannot be a list: write 2 entries or more",
        ),
        (json!(false), json!(1), "cannot be `1`: leave it out"),
        (
            json!({"anyOf": [{"type": "string"}, {"type": "integer"}]}),
            json!(true),
            "cannot be `true`: write a text, in quotes; or write a whole number",
        ),
    ] {
        check_settings(
            &of_one(&word),
            &json!({"a": value}),
            &[&format!("/a {want}")],
        );
    }
}

#[test]
fn a_key_that_is_none_is_told_which_was_meant_or_which_there_are() {
    let schema = json!({
        "properties": {"severity": {}, "action": {}}, "additionalProperties": false,
    });
    check_settings(
        &schema,
        &json!({"sevrity": 1, "x/y": 2}),
        &[
            "/sevrity there is no such key; did you mean `severity`?",
            "/x~1y there is no such key; write one of action, severity",
        ],
    );
    check_settings(
        &json!({"additionalProperties": false}),
        &json!({"a": 1}),
        &["/a there is no such key: leave it out"],
    );
    check_settings(
        &json!({"propertyNames": {"pattern": "^[0-9]+$"}, "required": ["7"]}),
        &json!({"x": 1}),
        &[
            " `7` is missing: write it",
            "/x no key can be `x`: write what matches `^[0-9]+$`",
        ],
    );
}

#[test]
fn behind_a_reference_and_in_the_nearest_of_several_forms_it_is_told_as_well() {
    let schema = json!({
        "$defs": {"rule": {"properties": {"level": {"enum": ["info"]}}, "additionalProperties": false}},
        "additionalProperties": {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/rule"}]},
    });
    check_settings(
        &schema,
        &json!({"a": {"levl": 1}, "b": {"level": "warn"}}),
        &[
            "/a/levl there is no such key; did you mean `level`?",
            "/b/level cannot be `\"warn\"`: write one of info",
        ],
    );
}

#[test]
fn more_than_eight_problems_are_counted() {
    let settings: Value = (0..PROBLEMS_MAX + 2)
        .map(|it| (format!("k{it}"), json!(1)))
        .collect();
    let found = wrong(
        &json!({"additionalProperties": {"type": "string"}}),
        &settings,
    );
    let Wrong::Settings(problems, n_more) = found else {
        panic!("{found:?}");
    };
    assert_eq!((problems.len(), n_more), (PROBLEMS_MAX, 2));
}

#[test]
fn what_is_no_schema_is_told_with_its_place() {
    check_schema(&json!(7), "it is no schema: write a mapping");
    check_schema(&json!([]), "it is no schema");
    check_schema(&json!({"type": "txt"}), "/type: ");
    check_schema(&of_one(&json!({"minimum": "x"})), "/properties/a/minimum: ");
    check_schema(&of_one(&json!({"pattern": "("})), "/properties/a/pattern: ");
    check_schema(&of_one(&json!([])), "/properties/a: it is no schema");
    // What takes an engine that goes back and forth.
    check_schema(
        &of_one(&json!({"pattern": "(?=a)b"})),
        "/properties/a/pattern: ",
    );
    check_schema(
        &of_one(&json!({"pattern": "(a)\\1"})),
        "/properties/a/pattern: ",
    );
    check_schema(
        &of_one(&json!({"pattern": "((a{999}){999}){999}"})),
        "/properties/a/pattern: ",
    );
    check_schema(
        &json!({"$schema": "http://json-schema.org/draft-07/schema#"}),
        "/$schema: write `https://json-schema.org/draft/2020-12/schema`",
    );
}

#[test]
fn nothing_is_fetched_and_what_is_not_there_is_told() {
    for elsewhere in [
        "http://127.0.0.1:1/x",
        "file:///etc/passwd",
        "other.json",
        "https://json-schema.org/draft/2020-12/schema",
        "#name",
    ] {
        check_schema(&of_one(&json!({"$ref": elsewhere})), "nothing is fetched");
    }
    check_schema(
        &of_one(&json!({"$ref": "#/$defs/none"})),
        "is no schema of this one",
    );
    // A place in it that is no schema.
    check_schema(
        &of_one(&json!({"$ref": "#/properties", "default": {}})),
        "is no schema of this one",
    );
    check_schema(&of_one(&json!({"$id": "http://x/"})), "/properties/a/$id");
    check_schema(
        &of_one(&json!({"$dynamicRef": "#x"})),
        "/properties/a/$dynamicRef",
    );
    // Its own name is one, and nothing asks for it.
    check_good(
        &json!({"$id": "http://127.0.0.1:1/x", "$ref": "#/$defs/a", "$defs": {"a": true}}),
        &json!({}),
    );
}

#[test]
fn what_refers_to_itself_without_end_is_refused_and_what_goes_down_with_the_settings_is_not() {
    check_schema(&json!({"$ref": "#"}), "without end");
    check_schema(
        &json!({"$defs": {"a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"not": {"$ref": "#/$defs/a"}}}, "$ref": "#/$defs/a"}),
        "without end",
    );
    // Where no settings lead to it, too: it is compiled, and bothers nobody.
    check_good(
        &json!({"properties": {"never": {"$ref": "#/properties/never"}}}),
        &json!({}),
    );
    let tree = json!({"properties": {"a": {"$ref": "#"}}, "additionalProperties": false});
    check_good(&tree, &json!({"a": {"a": {"a": {}}}}));
    check_settings(
        &tree,
        &json!({"a": {"b": 1}}),
        &["/a/b there is no such key; write one of a"],
    );
}

/// Each step is the next one twice.
fn doubling(n: usize, word: &str) -> Value {
    let mut defs = json!({"s0": {"type": "string"}});
    for it in 1..=n {
        let next = json!({"$ref": format!("#/$defs/s{}", it - 1)});
        defs[format!("s{it}")] = json!({word: [next, next]});
    }
    json!({"$defs": defs, "$ref": format!("#/$defs/s{n}")})
}

#[test]
fn what_doubles_with_each_step_is_refused_before_it_is_tried() {
    for word in ["anyOf", "allOf", "oneOf"] {
        check_schema(&doubling(30, word), "over 1000000 steps");
        let few = doubling(8, word);
        assert!(
            matches!(wrong(&few, &json!({})), Wrong::Settings(..)),
            "{word}"
        );
    }
    // Down a list in a list, where each level is looked at twice.
    let twice = json!({"items": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}});
    let mut deep = json!([]);
    for _ in 0..20 {
        deep = json!([deep]);
    }
    let found = wrong(
        &json!({"properties": {"a": twice["items"]}, "items": twice["items"]}),
        &json!({"a": deep}),
    );
    assert!(
        matches!(&found, Wrong::Schema(it) if it.contains("steps")),
        "{found:?}"
    );
}

/// What is let through takes far less than a child may, and in this process, too.
#[test]
fn the_dearest_schema_that_is_let_through_is_held_against_settings_in_time() {
    // 300,000 evaluations, and errors of as many.
    let dear = doubling(16, "anyOf");
    let began = std::time::Instant::now();
    assert!(matches!(wrong(&dear, &json!({})), Wrong::Settings(..)));
    let took = began.elapsed();
    assert!(took < BOUNDS.time, "{took:?}");
    println!("{took:?}");
}

#[test]
fn what_a_child_says_is_what_is_said_here() {
    let schema = of_one(&json!({"type": "string"})).to_string();
    let input = serde_json::to_vec(&(&schema, "{\"a\":1}")).unwrap();
    let answer: Result<(), Wrong> = serde_json::from_slice(&answer(&input).unwrap()).unwrap();
    assert_eq!(answer, check(schema.as_bytes(), b"{\"a\":1}"));
    assert!(matches!(answer, Err(Wrong::Settings(..))));
}

/// As deep as it may be is held against settings, on the stack that it has; deeper is refused.
#[test]
fn how_deep_and_how_many_is_bounded_on_both_sides() {
    let nested = |n: usize| {
        (0..n).fold(
            json!({"type": "object"}),
            |it, _| json!({"not": {"not": it}}),
        )
    };
    check_good(&nested(DEPTH_MAX / 2), &json!({}));
    check_schema(&nested(DEPTH_MAX / 2 + 1), "over 64 deep");

    let chain = |n: usize| {
        let defs = (0..n).map(|it| {
            (
                format!("s{it}"),
                json!({"$ref": format!("#/$defs/s{}", it + 1)}),
            )
        });
        let mut defs: Value = defs.collect();
        defs[format!("s{n}")] = json!(true);
        json!({"$defs": defs, "properties": {"never": {"$ref": "#/$defs/s0"}}})
    };
    check_good(&chain(REFS_MAX - 1), &json!({}));
    check_schema(&chain(REFS_MAX), "over 1000 references");
    let refs = |n: usize| json!({"$defs": {"x": true}, "properties": (0..n).map(|it| (it.to_string(), json!({"$ref": "#/$defs/x"}))).collect::<Value>()});
    check_good(&refs(REFS_MAX), &json!({}));

    let many = |n: usize| json!({"properties": (0..n).map(|it| (it.to_string(), json!(true))).collect::<Value>()});
    check_good(&many(SCHEMAS_MAX - 1), &json!({}));
    check_schema(&many(SCHEMAS_MAX), "over 10000 schemas");
}

#[test]
fn what_a_schema_or_a_setting_says_is_shown_in_part() {
    let long = "x".repeat(10_000);
    let schema = json!({
        "properties": {"a": {"enum": [long]}, "b": {"pattern": "y".repeat(5_000)}},
        "additionalProperties": false,
    });
    let Wrong::Settings(problems, _) = wrong(
        &schema,
        &json!({"a": "x".repeat(9_999), "b": long, long.as_str(): 1}),
    ) else {
        panic!("it is a schema");
    };
    assert_eq!(problems.len(), 3);
    for it in problems {
        assert!(it.what.len() < 600, "{it:?}");
    }
}
