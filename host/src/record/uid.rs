//! The uid of an Event, or of an object.
//!
//! The server makes UUIDs, and writes them in 36 bytes that say 16. Each record has
//! two. So a UUID is held as such, where it is written as the server writes it, and
//! anything else as the text that it is: a uid that came is the uid that goes out,
//! byte by byte.

use std::{borrow::Cow, cmp::Ordering, fmt, sync::Arc};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, Serializer};
use uuid::{Uuid, fmt::Hyphenated};

/// A uid; the empty text where it is unknown.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub enum Uid<T = Arc<str>> {
    /// A UUID, written in lower case and with hyphens. Not the nil UUID.
    Uuid(Uuid),
    /// Anything else. The kubelet writes a Node's name.
    Text(T),
}

/// A uid whose text is another's.
pub type UidRef<'a> = Uid<&'a str>;

impl<'a> UidRef<'a> {
    /// The uid that is written so.
    #[must_use]
    pub fn of(text: &'a str) -> Self {
        // Of the forms that are read, only the one with hyphens has this length.
        let is_written_so =
            text.len() == Hyphenated::LENGTH && !text.bytes().any(|it| it.is_ascii_uppercase());
        let uuid = is_written_so.then(|| Uuid::try_parse(text).ok()).flatten();
        let uuid = uuid.filter(|it| !it.is_nil());
        uuid.map_or(Self::Text(text), Self::Uuid)
    }

    /// As it is written.
    #[must_use]
    pub fn text(self) -> Cow<'a, str> {
        match self {
            Self::Uuid(it) => it.hyphenated().to_string().into(),
            Self::Text(it) => it.into(),
        }
    }
}

impl<T: AsRef<str>> Uid<T> {
    /// Whether it is unknown.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Text(it) if it.as_ref().is_empty())
    }

    /// The same, borrowed.
    #[must_use]
    pub fn as_ref(&self) -> UidRef<'_> {
        match self {
            Self::Uuid(it) => Uid::Uuid(*it),
            Self::Text(it) => Uid::Text(it.as_ref()),
        }
    }

    fn write<R>(&self, write: impl FnOnce(&str) -> R) -> R {
        match self {
            Self::Uuid(it) => write(it.hyphenated().encode_lower(&mut buffer())),
            Self::Text(it) => write(it.as_ref()),
        }
    }
}

fn buffer() -> [u8; Hyphenated::LENGTH] {
    [0; Hyphenated::LENGTH]
}

impl Default for Uid {
    fn default() -> Self {
        "".into()
    }
}

impl From<UidRef<'_>> for Uid {
    fn from(uid: UidRef<'_>) -> Self {
        match uid {
            Uid::Uuid(it) => Self::Uuid(it),
            Uid::Text(it) => Self::Text(it.into()),
        }
    }
}

impl<'a> From<&'a str> for UidRef<'a> {
    fn from(text: &'a str) -> Self {
        Self::of(text)
    }
}

impl From<&str> for Uid {
    fn from(text: &str) -> Self {
        UidRef::of(text).into()
    }
}

/// In the order of what is written.
impl<T: AsRef<str> + Eq> Ord for Uid<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Uuid(a), Self::Uuid(b)) => a.cmp(b),
            _ => self.write(|a| other.write(|b| a.cmp(b))),
        }
    }
}

impl<T: AsRef<str> + Eq> PartialOrd for Uid<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T: AsRef<str>> PartialEq<str> for Uid<T> {
    fn eq(&self, other: &str) -> bool {
        self.write(|it| it == other)
    }
}

impl<T: AsRef<str>> PartialEq<&str> for Uid<T> {
    fn eq(&self, other: &&str) -> bool {
        *self == **other
    }
}

impl<T: AsRef<str>> fmt::Display for Uid<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(|it| f.pad(it))
    }
}

impl<T: AsRef<str>> fmt::Debug for Uid<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(|it| fmt::Debug::fmt(it, f))
    }
}

impl<T: AsRef<str>> Serialize for Uid<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.write(|it| to.serialize_str(it))
    }
}

impl<T> JsonSchema for Uid<T> {
    fn schema_name() -> Cow<'static, str> {
        String::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }

    fn inline_schema() -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uid_is_written_as_it_came() {
        for (text, is_uuid) in [
            ("0a1b2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4d", true),
            ("ffffffff-ffff-ffff-ffff-ffffffffffff", true),
            // All that reads as a UUID and is not written like one.
            ("00000000-0000-0000-0000-000000000000", false),
            ("0A1b2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4d", false),
            ("0a1b2c3d4e5f4a6b8c7d9e0f1a2b3c4d", false),
            ("{0a1b2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4d}", false),
            ("urn:uuid:0a1b2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4d", false),
            ("0a1b2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4", false),
            ("0a1b2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4g", false),
            ("gpu-node-7", false),
            ("", false),
        ] {
            let uid = UidRef::of(text);
            assert_eq!(matches!(uid, Uid::Uuid(_)), is_uuid, "{text}");
            assert_eq!(uid.text(), text);
            assert_eq!(uid.to_string(), text);
            assert_eq!(serde_json::to_value(uid).unwrap(), text);
            assert_eq!(<Uid>::from(uid).as_ref(), uid);
            assert!(uid == *text);
            assert_eq!(uid.is_empty(), text.is_empty());
        }
    }

    #[test]
    fn uids_stand_in_the_order_of_what_is_written() {
        let texts = [
            "",
            "0",
            "0a1b2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4d",
            "0a1b2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4e",
            "0b",
            "ffffffff-ffff-ffff-ffff-ffffffffffff",
            "gpu-node-7",
        ];
        assert!(texts.is_sorted());
        assert!(texts.map(UidRef::of).is_sorted());
    }
}
