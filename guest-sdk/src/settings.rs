//! Settings are parsed at the edge, once a call, into a type that cannot be wrong.
//!
//! The SDK brings no JSON parser: which one is worth its size is the plugin's to say.

/// What the operator may set. The host keeps nothing between calls: settings come with each.
///
/// ```
/// use portent_sdk::{Description, Interest, Outcome, Settings, Subject, classifier};
///
/// struct Threshold(u32);
///
/// impl Settings for Threshold {
///     const SCHEMA: &'static str =
///         r#"{"type":"object","properties":{"threshold":{"type":"integer"}}}"#;
///
///     fn parse(json: &str) -> Result<Self, String> {
///         // Any JSON parser will do; this one is an example's.
///         let Some(rest) = json.strip_prefix(r#"{"threshold":"#) else { return Ok(Self(3)) };
///         let text = rest.trim_end_matches('}');
///         text.parse().map(Self).map_err(|_| format!("threshold: `{text}` is no whole number"))
///     }
/// }
///
/// fn classify(Threshold(threshold): &Threshold, subject: &Subject) -> Outcome {
///     subject.events.iter().filter(|event| event.count >= *threshold);
///     // ..
///     # Outcome::default()
/// }
///
/// classifier!(
///     classify,
///     Description::new("back-off", "Containers that cannot start").interest(Interest::any()),
///     settings = Threshold
/// );
/// # fn main() {
/// # assert!(Threshold::parse(r#"{"threshold":x}"#).is_err());
/// # assert!(Threshold::parse("{}").is_ok_and(|threshold| threshold.0 == 3));
/// # }
/// ```
pub trait Settings: Sized {
    /// JSON Schema (2020-12) of the settings, for example `{"type":"object"}`.
    const SCHEMA: &'static str;

    /// Reads the settings: JSON, `{}` when none are given.
    ///
    /// # Errors
    ///
    /// Name the key, what is wrong with it and what to write instead, for example
    /// ``severity.63: `waning` is none of user, warn, critical``.
    fn parse(json: &str) -> Result<Self, String>;
}

/// Accepts the empty object only, so that a setting for a classifier that has none is not lost in silence.
pub(crate) fn parse_none(json: &str) -> Result<(), String> {
    let json = json.trim_matches(WHITESPACE);
    let inside = json
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'));
    if inside.is_some_and(|inside| inside.trim_matches(WHITESPACE).is_empty()) {
        Ok(())
    } else {
        Err("this classifier takes no settings: leave them out or write `{}`".to_owned())
    }
}

/// JSON's own, which is less than Unicode's.
const WHITESPACE: [char; 4] = [' ', '\t', '\r', '\n'];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &str, accepted: bool) {
        assert_eq!(parse_none(json).is_ok(), accepted, "{json:?}");
    }

    #[test]
    fn no_settings_are_an_empty_object() {
        check("{}", true);
        check(" {\n\t}\r\n", true);
    }

    #[test]
    fn a_setting_is_refused_where_there_is_none() {
        check(r#"{"threshold":3}"#, false);
        check("{{}}", false);
        check("[]", false);
        check("null", false);
        check("{", false);
        check("}", false);
        check("{\u{a0}}", false);
        check("", false);
    }

    #[test]
    fn the_refusal_says_what_to_write() {
        let error = parse_none("null").unwrap_err();
        assert!(
            error.contains("takes no settings") && error.contains("`{}`"),
            "{error}"
        );
    }
}
