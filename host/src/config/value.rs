//! What the value of a key may be: how it is read, printed, and told to an editor.

use std::{net::SocketAddr, num::NonZeroUsize, ops::RangeInclusive};

use serde_json::{Map, Value as Json, json};

use super::human::{Period, Size};
use crate::yaml::{Node, What, text};

/// The value of a key that has a default.
pub(super) trait Value: PartialOrd + Sized {
    /// What to write, as it stands in errors and docs: `a size`.
    fn form() -> String;

    /// Whether [`form`](Self::form) names all that may be written, so that an
    /// example adds nothing.
    const IS_CHOICE: bool = false;

    fn read(node: &Node) -> Option<Self>;

    /// As YAML.
    fn show(&self) -> String;

    /// As JSON Schema, as far as that goes.
    fn schema(range: Option<&RangeInclusive<Self>>) -> Map<String, Json>;
}

/// The fields of an object that is written as JSON.
pub(super) fn fields(json: Json) -> Map<String, Json> {
    match json {
        Json::Object(fields) => fields,
        _ => Map::new(),
    }
}

macro_rules! integer {
    ($($type:ty),+) => {$(
        impl Value for $type {
            fn form() -> String {
                "a whole number".to_owned()
            }

            fn read(node: &Node) -> Option<Self> {
                match &node.what {
                    What::Number(it) => it.parse().ok(),
                    _ => None,
                }
            }

            fn show(&self) -> String {
                self.to_string()
            }

            fn schema(range: Option<&RangeInclusive<Self>>) -> Map<String, Json> {
                let mut fields = fields(json!({"type": "integer"}));
                if let Some(range) = range {
                    fields.insert("minimum".to_owned(), json!(range.start()));
                    fields.insert("maximum".to_owned(), json!(range.end()));
                }
                fields
            }
        }
    )+};
}

integer!(u32, usize, NonZeroUsize);

impl Value for Size {
    fn form() -> String {
        "a size".to_owned()
    }

    fn read(node: &Node) -> Option<Self> {
        match &node.what {
            What::Number(it) | What::Text(it) => it.parse().ok(),
            _ => None,
        }
    }

    fn show(&self) -> String {
        self.to_string()
    }

    /// The range is that of a plain number: no schema can compare units.
    fn schema(range: Option<&RangeInclusive<Self>>) -> Map<String, Json> {
        let mut fields = fields(json!({
            "type": ["integer", "string"],
            "pattern": "^[0-9]+(Ki|Mi|Gi)?$",
        }));
        if let Some(range) = range {
            fields.insert("minimum".to_owned(), json!(range.start().n_bytes()));
            fields.insert("maximum".to_owned(), json!(range.end().n_bytes()));
        }
        fields
    }
}

impl Value for Period {
    fn form() -> String {
        "a duration".to_owned()
    }

    fn read(node: &Node) -> Option<Self> {
        match &node.what {
            What::Text(it) => it.parse().ok(),
            _ => None,
        }
    }

    fn show(&self) -> String {
        self.to_string()
    }

    /// Without the range: no schema can compare units.
    fn schema(_: Option<&RangeInclusive<Self>>) -> Map<String, Json> {
        fields(json!({
            "type": "string",
            "pattern": "^([0-9]+h)?([0-9]+m)?([0-9]+s)?$",
            "minLength": 2,
        }))
    }
}

impl Value for bool {
    fn form() -> String {
        "`true` or `false`".to_owned()
    }

    const IS_CHOICE: bool = true;

    fn read(node: &Node) -> Option<Self> {
        match node.what {
            What::Bool(it) => Some(it),
            _ => None,
        }
    }

    fn show(&self) -> String {
        self.to_string()
    }

    fn schema(_: Option<&RangeInclusive<Self>>) -> Map<String, Json> {
        fields(json!({"type": "boolean"}))
    }
}

impl Value for SocketAddr {
    fn form() -> String {
        "an IP address and a port".to_owned()
    }

    fn read(node: &Node) -> Option<Self> {
        match &node.what {
            What::Text(it) => it.parse().ok(),
            _ => None,
        }
    }

    fn show(&self) -> String {
        text(&self.to_string())
    }

    fn schema(_: Option<&RangeInclusive<Self>>) -> Map<String, Json> {
        fields(json!({"type": "string", "pattern": ":[0-9]{1,5}$"}))
    }
}

/// Declares a value that is one of a few words.
macro_rules! choice {
    ($(#[doc = $about:literal])+ $name:ident {
        $($(#[doc = $doc:literal])+ $variant:ident = $word:literal,)+
    }) => {
        $(#[doc = $about])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl $name {
            const ALL: &[Self] = &[$(Self::$variant),+];

            /// The word that stands for it in a file.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        impl crate::config::value::Value for $name {
            fn form() -> String {
                let words: Vec<_> = Self::ALL.iter().map(|it| format!("`{}`", it.as_str())).collect();
                let (last, others) = words.split_last().expect("there is a word");
                format!("{} or {last}", others.join(", "))
            }

            const IS_CHOICE: bool = true;

            fn read(node: &crate::yaml::Node) -> Option<Self> {
                let word = node.scalar()?;
                Self::ALL.iter().copied().find(|it| it.as_str() == word)
            }

            fn show(&self) -> String {
                self.as_str().to_owned()
            }

            fn schema(
                _: Option<&std::ops::RangeInclusive<Self>>,
            ) -> serde_json::Map<String, serde_json::Value> {
                let words: Vec<_> = Self::ALL.iter().map(|it| it.as_str()).collect();
                crate::config::value::fields(serde_json::json!({"enum": words}))
            }
        }
    };
}

pub(super) use choice;

/// Texts as a list in YAML, on one line.
pub(super) fn list<T: ToString>(items: impl IntoIterator<Item = T>) -> String {
    let items: Vec<_> = items.into_iter().map(|it| text(&it.to_string())).collect();
    format!("[{}]", items.join(", "))
}
