//! JSON, as far as settings need it.
//!
//! A JSON parser from a registry is larger than the rest of this plugin, and settings come with every call:
//! this one knows objects, lists, strings and whole numbers, says where it stopped, and nests no deeper than
//! [`DEPTH_MAX`]. A test holds it against `serde_json`.

/// A value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Json {
    Object(Vec<(String, Json)>),
    List(Vec<Json>),
    Text(String),
    /// A number, `true`, `false` or `null`, as it is written: no setting takes one.
    Other(String),
}

/// Settings nest three deep.
const DEPTH_MAX: usize = 8;

impl Json {
    /// Reads a whole text.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut at = Reader { text, rest: text };
        let value = at.value(0)?;
        at.space();
        if at.rest.is_empty() {
            Ok(value)
        } else {
            Err(at.error("the end"))
        }
    }

    /// What it is, for a message.
    pub(crate) fn kind(&self) -> &str {
        match self {
            Self::Object(_) => "an object",
            Self::List(_) => "a list",
            Self::Text(text) => text,
            Self::Other(word) => word,
        }
    }
}

struct Reader<'a> {
    text: &'a str,
    rest: &'a str,
}

impl Reader<'_> {
    fn error(&self, wanted: &str) -> String {
        let read = self.text.len() - self.rest.len();
        format!("the settings are no JSON: {wanted} is expected at byte {read}")
    }

    fn space(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\r', '\n']);
    }

    fn eat(&mut self, byte: char) -> bool {
        self.space();
        match self.rest.strip_prefix(byte) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn need(&mut self, byte: char) -> Result<(), String> {
        if self.eat(byte) {
            Ok(())
        } else {
            Err(self.error(&format!("`{byte}`")))
        }
    }

    fn value(&mut self, depth: usize) -> Result<Json, String> {
        if depth == DEPTH_MAX {
            return Err(self.error("no deeper level"));
        }
        if self.eat('{') {
            let mut entries: Vec<(String, Json)> = Vec::new();
            if self.eat('}') {
                return Ok(Json::Object(entries));
            }
            loop {
                self.space();
                let key = self.string()?;
                self.need(':')?;
                let value = self.value(depth + 1)?;
                if entries.iter().any(|(it, _)| *it == key) {
                    return Err(format!("{key}: it is there twice; write it once"));
                }
                entries.push((key, value));
                if !self.eat(',') {
                    self.need('}')?;
                    return Ok(Json::Object(entries));
                }
            }
        }
        if self.eat('[') {
            let mut values = Vec::new();
            if self.eat(']') {
                return Ok(Json::List(values));
            }
            loop {
                values.push(self.value(depth + 1)?);
                if !self.eat(',') {
                    self.need(']')?;
                    return Ok(Json::List(values));
                }
            }
        }
        if self.rest.starts_with('"') {
            return self.string().map(Json::Text);
        }
        let is_part = |it: char| it.is_ascii_alphanumeric() || "+-.".contains(it);
        let rest = self.rest.trim_start_matches(is_part);
        let word = self.rest.strip_suffix(rest).unwrap_or_default();
        if word.is_empty() {
            return Err(self.error("a value"));
        }
        self.rest = rest;
        Ok(Json::Other(word.to_owned()))
    }

    fn string(&mut self) -> Result<String, String> {
        let Some(rest) = self.rest.strip_prefix('"') else {
            return Err(self.error("a string"));
        };
        self.rest = rest;
        let mut text = String::new();
        loop {
            let mut letters = self.rest.chars();
            let letter = letters.next();
            self.rest = letters.as_str();
            match letter {
                Some('"') => return Ok(text),
                Some('\\') => text.push(self.escaped()?),
                Some(it) if ' ' <= it => text.push(it),
                _ => return Err(self.error("`\"`")),
            }
        }
    }

    /// What follows a backslash.
    fn escaped(&mut self) -> Result<char, String> {
        let mut letters = self.rest.chars();
        let letter = letters.next();
        self.rest = letters.as_str();
        match letter {
            Some(it @ ('"' | '\\' | '/')) => Ok(it),
            Some('b') => Ok('\u{8}'),
            Some('f') => Ok('\u{c}'),
            Some('n') => Ok('\n'),
            Some('r') => Ok('\r'),
            Some('t') => Ok('\t'),
            Some('u') => {
                let first = self.hex()?;
                if !(0xd800..0xdc00).contains(&first) {
                    return char::from_u32(first).ok_or_else(|| self.error("a character"));
                }
                let Some(rest) = self.rest.strip_prefix("\\u") else {
                    return Err(self.error("`\\u`"));
                };
                self.rest = rest;
                let second = self.hex()?;
                let both = second
                    .checked_sub(0xdc00)
                    .filter(|it| *it < 0x400)
                    .and_then(|it| char::from_u32(0x1_0000 + ((first - 0xd800) << 10) + it));
                both.ok_or_else(|| self.error("a character"))
            }
            _ => Err(self.error("an escape")),
        }
    }

    fn hex(&mut self) -> Result<u32, String> {
        let digits = self
            .rest
            .get(..4)
            .filter(|it| it.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let Some(digits) = digits else {
            return Err(self.error("four hexadecimal digits"));
        };
        self.rest = self.rest.strip_prefix(digits).unwrap_or_default();
        u32::from_str_radix(digits, 16).map_err(|err| err.to_string())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn of(value: &Value) -> Json {
        match value {
            Value::Object(entries) => Json::Object(
                entries
                    .iter()
                    .map(|(key, it)| (key.clone(), of(it)))
                    .collect(),
            ),
            Value::Array(values) => Json::List(values.iter().map(of).collect()),
            Value::String(text) => Json::Text(text.clone()),
            other => Json::Other(other.to_string()),
        }
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            ".*".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(".*", inner, 0..4)
                    .prop_map(|it| Value::Object(it.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_serde_json_writes_is_read_as_it_was(value in values()) {
            prop_assert_eq!(Json::parse(&value.to_string()), Ok(of(&value)));
            prop_assert_eq!(
                Json::parse(&serde_json::to_string_pretty(&value).unwrap()),
                Ok(of(&value))
            );
        }

        #[test]
        fn no_text_does_harm(text in ".*") {
            prop_assert!(Json::parse(&text).is_ok() || Json::parse(&text).is_err());
        }

        #[test]
        fn what_looks_like_json_does_no_harm(text in r#"[\[\]{}",:\\u0-9a-f ]{0,40}"#) {
            if let Ok(value) = serde_json::from_str::<Value>(&text) {
                // Two keys alike are an error here, and the last one wins there.
                if let Ok(read) = Json::parse(&text) {
                    // A number is kept as it is written.
                    let is_number = value != *text.trim();
                    prop_assert!(read == of(&value) || is_number);
                }
            }
        }
    }

    #[test]
    fn escapes_are_read() {
        let text = r#""\"\\\/\b\f\n\r\t\u0041\ud83d\ude00""#;
        let want: String = serde_json::from_str(text).unwrap();
        assert_eq!(Json::parse(text), Ok(Json::Text(want)));
    }

    #[track_caller]
    fn check_error(text: &str, want: &str) {
        let error = Json::parse(text).unwrap_err();
        assert!(error.contains(want), "{text}: {error}");
    }

    #[test]
    fn an_error_says_where_and_what_is_expected() {
        check_error("", "a value is expected at byte 0");
        check_error("{", "a string is expected at byte 1");
        check_error(r#"{"a" 1}"#, "`:` is expected at byte 5");
        check_error(r#"{"a":1"#, "`}` is expected at byte 6");
        check_error("[1", "`]` is expected at byte 2");
        check_error("{} x", "the end is expected at byte 3");
        check_error(r#""\x""#, "an escape is expected");
        check_error(r#""\ud800x""#, "`\\u` is expected");
        check_error("\"a\nb\"", "`\"` is expected");
        check_error(r#"{"a":1,"a":2}"#, "a: it is there twice");
        check_error(
            &"[".repeat(100_000),
            "no deeper level is expected at byte 8",
        );
    }
}
