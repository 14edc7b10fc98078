//! What an operator may say otherwise: what a number means, which resources are accelerators, and how one
//! rule is read about which Flyte's own versions differ.
//!
//! Parsed once a call, into a type that cannot be wrong; an error names the key, what is wrong with it and
//! what to write instead.

use crate::{action::Action, cursor::decimal, json::Json, level::Level, resource};

/// All of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    xids: Numbers,
    sxids: Numbers,
    /// None while the list is the plugin's own.
    accelerators: Option<Vec<String>>,
    pub(crate) user_xid: UserXid,
}

/// Each number once; there are few.
type Numbers = Vec<(u32, Said)>;

/// What the operator says about a number. What is none is left to the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) level: Option<Level>,
    pub(crate) action: Option<Action>,
}

/// Whose fault a failure is for which a workload's own Xid is the only explanation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum UserXid {
    /// The workload's, where the failure's code says nothing. Flyte's newest rule.
    #[default]
    Workload,
    /// Whose the failure says. Flyte's earlier rule.
    Failure,
}

impl UserXid {
    const ALL: [(&'static str, Self); 2] =
        [("workload", Self::Workload), ("failure", Self::Failure)];
}

impl Settings {
    pub(crate) fn xid(&self, number: u32) -> Said {
        of(&self.xids, number)
    }

    pub(crate) fn sxid(&self, number: u32) -> Said {
        of(&self.sxids, number)
    }

    /// Whether a resource is an accelerator.
    pub(crate) fn is_accelerator(&self, name: &str) -> bool {
        match &self.accelerators {
            None => resource::is_accelerator(name),
            Some(patterns) => patterns.iter().any(|it| resource::matches(it, name)),
        }
    }
}

impl portent_sdk::Settings for Settings {
    const SCHEMA: &'static str = include_str!("settings.schema.json");

    fn parse(json: &str) -> Result<Self, String> {
        if json == "{}" {
            return Ok(Self::default());
        }
        let Json::Object(entries) = Json::parse(json)? else {
            return Err("the settings are no object: write `{}` or keys and values".to_owned());
        };
        let mut settings = Self::default();
        for (key, value) in entries {
            match key.as_str() {
                "xid" => settings.xids = numbers("xid", value)?,
                "sxid" => settings.sxids = numbers("sxid", value)?,
                "accelerators" => settings.accelerators = Some(patterns(value)?),
                "user-xid" => settings.user_xid = one_of("user-xid", &value, &UserXid::ALL)?,
                _ => {
                    return Err(format!(
                        "{key}: there is no such setting; write one of xid, sxid, accelerators, user-xid"
                    ));
                }
            }
        }
        Ok(settings)
    }
}

fn of(numbers: &Numbers, number: u32) -> Said {
    let found = numbers.iter().find(|(it, _)| *it == number);
    found.map(|(_, said)| *said).unwrap_or_default()
}

/// What is said about each number.
fn numbers(key: &str, value: Json) -> Result<Numbers, String> {
    let Json::Object(entries) = value else {
        let kind = value.kind();
        return Err(format!(
            "{key}: `{kind}` is no object; write numbers and what they mean, as in {{\"63\": {{\"severity\": \"warn\"}}}}"
        ));
    };
    let said = entries.into_iter().map(|(number, value)| {
        let path = format!("{key}.{number}");
        let Some(number) = decimal(&number) else {
            return Err(format!(
                "{path}: `{number}` is no number; write one, as in \"63\""
            ));
        };
        Ok((number, said(&path, value)?))
    });
    said.collect()
}

fn said(path: &str, value: Json) -> Result<Said, String> {
    let Json::Object(entries) = value else {
        let kind = value.kind();
        return Err(format!(
            "{path}: `{kind}` is no object; write {{\"severity\": \"warn\", \"action\": \"none\"}}, or one of the two"
        ));
    };
    let mut said = Said::default();
    for (key, value) in entries {
        let path = format!("{path}.{key}");
        match key.as_str() {
            "severity" => {
                let words = Level::ALL.map(|it| (it.as_word(), it));
                said.level = Some(one_of(&path, &value, &words)?);
            }
            "action" => {
                let words = Action::ALL.map(|it| (it.as_word(), it));
                said.action = Some(one_of(&path, &value, &words)?);
            }
            _ => {
                return Err(format!(
                    "{path}: there is no such key; write severity or action"
                ));
            }
        }
    }
    Ok(said)
}

fn one_of<T: Copy>(path: &str, value: &Json, words: &[(&str, T)]) -> Result<T, String> {
    let found = words
        .iter()
        .find(|(word, _)| matches!(value, Json::Text(text) if text == word));
    found.map(|(_, it)| *it).ok_or_else(|| {
        let words: Vec<_> = words.iter().map(|(word, _)| *word).collect();
        let (kind, words) = (value.kind(), words.join(", "));
        format!("{path}: `{kind}` is none of {words}")
    })
}

fn patterns(value: Json) -> Result<Vec<String>, String> {
    let Json::List(values) = value else {
        let kind = value.kind();
        return Err(format!(
            "accelerators: `{kind}` is no list; write names, as in [\"nvidia.com/*\", \"amd.com/gpu\"]"
        ));
    };
    let patterns = values.into_iter().enumerate().map(|(index, value)| match value {
        Json::Text(text) if resource::is_pattern(&text) => Ok(text),
        other => {
            let kind = other.kind();
            Err(format!(
                "accelerators[{index}]: `{kind}` is no name of a resource; write one, as in \"amd.com/gpu\", \
                 with nothing or a `*` at its end"
            ))
        }
    });
    patterns.collect()
}

#[cfg(test)]
mod tests {
    use portent_sdk::Settings as _;

    use super::*;

    #[test]
    fn nothing_set_is_nothing_said() {
        assert_eq!(Settings::parse("{}"), Ok(Settings::default()));
        assert_eq!(Settings::parse(" { } "), Ok(Settings::default()));
        assert_eq!(Settings::default().xid(63), Said::default());
        assert!(Settings::default().is_accelerator("nvidia.com/gpu"));
    }

    #[test]
    fn what_is_said_about_a_number_stands() {
        let settings = Settings::parse(
            r#"{"xid": {"63": {"severity": "warn", "action": "none"}, "79": {"action": "rma"}},
                "sxid": {"12028": {"severity": "info"}}, "user-xid": "failure"}"#,
        )
        .unwrap();
        let want = Said {
            level: Some(Level::Warn),
            action: Some(Action::None),
        };
        assert_eq!(settings.xid(63), want);
        assert_eq!(settings.xid(79).action, Some(Action::Rma));
        assert_eq!(settings.xid(79).level, None);
        assert_eq!(settings.sxid(12028).level, Some(Level::Info));
        assert_eq!(settings.sxid(63), Said::default());
        assert_eq!(settings.user_xid, UserXid::Failure);
    }

    #[test]
    fn a_list_of_accelerators_replaces_the_plugins_own() {
        let settings = Settings::parse(r#"{"accelerators": ["example.com/fpga*"]}"#).unwrap();
        assert!(settings.is_accelerator("example.com/fpga-large"));
        assert!(!settings.is_accelerator("nvidia.com/gpu"));
    }

    #[track_caller]
    fn check_error(json: &str, want: &str) {
        let error = Settings::parse(json).unwrap_err();
        assert!(error.contains(want), "{json}: {error}");
    }

    #[test]
    fn an_error_names_the_key_and_what_to_write() {
        check_error("[]", "no object: write `{}`");
        check_error("", "no JSON: a value is expected at byte 0");
        check_error(
            r#"{"severity":{}}"#,
            "severity: there is no such setting; write one of xid, sxid",
        );
        check_error(r#"{"xid":7}"#, "xid: `7` is no object; write numbers");
        check_error(r#"{"xid":{"x":{}}}"#, "xid.x: `x` is no number");
        check_error(r#"{"sxid":{"+1":{}}}"#, "sxid.+1: `+1` is no number");
        check_error(
            r#"{"xid":{"63":"warn"}}"#,
            "xid.63: `warn` is no object; write {",
        );
        check_error(
            r#"{"xid":{"63":{"severity":"waning"}}}"#,
            "xid.63.severity: `waning` is none of user, info, warn, critical",
        );
        check_error(
            r#"{"xid":{"63":{"action":null}}}"#,
            "xid.63.action: `null` is none of none, fix-user, retry-same",
        );
        check_error(
            r#"{"xid":{"63":{"code":"x"}}}"#,
            "xid.63.code: there is no such key",
        );
        check_error(r#"{"accelerators":"a"}"#, "accelerators: `a` is no list");
        check_error(
            r#"{"accelerators":["a","*b"]}"#,
            "accelerators[1]: `*b` is no name of a resource",
        );
        check_error(
            r#"{"user-xid":true}"#,
            "user-xid: `true` is none of workload, failure",
        );
    }

    #[test]
    fn the_schema_and_the_parser_take_and_refuse_the_same() {
        let schema: serde_json::Value = serde_json::from_str(Settings::SCHEMA).unwrap();
        let schema = jsonschema::validator_for(&schema).unwrap();
        for (json, is_good) in [
            ("{}", true),
            (r#"{"xid":{}}"#, true),
            (r#"{"xid":{"63":{}}}"#, true),
            (
                r#"{"xid":{"63":{"severity":"critical","action":"rma"}}}"#,
                true,
            ),
            (r#"{"sxid":{"4294967295":{"action":"none"}}}"#, true),
            (r#"{"accelerators":[]}"#, true),
            (r#"{"accelerators":["amd.com/gpu","nvidia.com/*"]}"#, true),
            (r#"{"user-xid":"failure"}"#, true),
            ("[]", false),
            (r#"{"severity":{}}"#, false),
            (r#"{"xid":7}"#, false),
            (r#"{"xid":null}"#, false),
            (r#"{"xid":{"x":{}}}"#, false),
            (r#"{"xid":{"":{}}}"#, false),
            (r#"{"sxid":{"+1":{}}}"#, false),
            (r#"{"sxid":{"1.0":{}}}"#, false),
            (r#"{"xid":{"63":"warn"}}"#, false),
            (r#"{"xid":{"63":{"severity":"waning"}}}"#, false),
            (r#"{"xid":{"63":{"severity":1}}}"#, false),
            (r#"{"xid":{"63":{"action":null}}}"#, false),
            (r#"{"xid":{"63":{"code":"x"}}}"#, false),
            (r#"{"accelerators":"a"}"#, false),
            (r#"{"accelerators":["*b"]}"#, false),
            (r#"{"accelerators":["a b"]}"#, false),
            (r#"{"accelerators":["a**"]}"#, false),
            (r#"{"accelerators":[""]}"#, false),
            (r#"{"accelerators":[7]}"#, false),
            (r#"{"user-xid":true}"#, false),
            (r#"{"user-xid":"nobody"}"#, false),
        ] {
            let value = serde_json::from_str(json).unwrap();
            let found = [Settings::parse(json).is_ok(), schema.is_valid(&value)];
            assert_eq!(found, [is_good; 2], "{json}");
        }
    }

    #[test]
    fn the_schema_knows_every_word() {
        let schema: serde_json::Value = serde_json::from_str(Settings::SCHEMA).unwrap();
        let row = &schema["$defs"]["number"]["properties"];
        let levels: Vec<_> = Level::ALL.iter().map(|it| it.as_word()).collect();
        assert_eq!(row["severity"]["enum"], serde_json::json!(levels));
        let actions: Vec<_> = Action::ALL.iter().map(|it| it.as_word()).collect();
        assert_eq!(row["action"]["enum"], serde_json::json!(actions));
        let user_xid: Vec<_> = UserXid::ALL.iter().map(|(word, _)| *word).collect();
        assert_eq!(
            schema["properties"]["user-xid"]["enum"],
            serde_json::json!(user_xid)
        );
        assert_eq!(
            schema["properties"]["accelerators"]["default"],
            serde_json::json!(resource::ACCELERATORS)
        );
    }
}
