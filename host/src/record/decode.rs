//! An Event as it came over the wire, borrowed from the bytes.
//!
//! Both spellings are read, that of `events.k8s.io/v1` and that of core/v1: they
//! are two views of one stored object. Nothing in here fails for what a field
//! holds: an unknown field is skipped, a malformed one counts as absent and is
//! counted ([`WireEvent::n_malformed`]). Only bytes that are no JSON object are
//! an error, and that is the caller's to name.

use std::{borrow::Cow, fmt, marker::PhantomData};

use jiff::Timestamp;
use serde::{
    Deserialize, Deserializer,
    de::{self, IgnoredAny, MapAccess, SeqAccess, Visitor},
};

use super::UnixMs;

/// Reads a value that borrows from its JSON.
///
/// That the JSON is UTF-8 is looked at once, and not for each of its texts. What is
/// not may still do: a text that nobody reads is not looked at.
///
/// # Errors
///
/// If the bytes are not JSON, or not what is wanted.
pub fn from_json<'de, T: Deserialize<'de>>(json: &'de [u8]) -> serde_json::Result<T> {
    match str::from_utf8(json) {
        Ok(json) => serde_json::from_str(json),
        Err(_) => serde_json::from_slice(json),
    }
}

/// A text; empty when absent, null or no text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text<'a>(Cow<'a, str>);

impl std::ops::Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

/// `metadata`.
#[derive(Debug, Default)]
pub struct WireMeta<'a> {
    /// The Event's name.
    pub name: Text<'a>,
    /// The Event's namespace.
    pub namespace: Text<'a>,
    /// The Event's uid.
    pub uid: Text<'a>,
    /// Opaque.
    pub resource_version: Text<'a>,
    /// When the server stored it first.
    pub creation_timestamp: UnixMs,
    n_malformed: u32,
}

/// `regarding` (core: `involvedObject`) and `related`.
#[derive(Debug, Default)]
pub struct WireRef<'a> {
    /// For example `v1`.
    pub api_version: Text<'a>,
    /// For example `Pod`.
    pub kind: Text<'a>,
    /// Empty for an object of the cluster's scope.
    pub namespace: Text<'a>,
    /// For example `train-0`.
    pub name: Text<'a>,
    /// Empty when the writer did not know it.
    pub uid: Text<'a>,
    /// For example `spec.containers{main}`.
    pub field_path: Text<'a>,
    n_malformed: u32,
}

/// `deprecatedSource` (core: `source`).
#[derive(Debug, Default)]
pub struct WireSource<'a> {
    /// For example `kubelet`.
    pub component: Text<'a>,
    /// The node that it ran on.
    pub host: Text<'a>,
    n_malformed: u32,
}

/// `series`.
#[derive(Debug, Default)]
pub struct WireSeries {
    /// How often; 0 when absent.
    pub count: u32,
    /// When last; 0 when absent.
    pub last_observed_time: UnixMs,
    n_malformed: u32,
}

/// An Event, with its core/v1 names in brackets.
#[derive(Debug, Default)]
pub struct WireEvent<'a> {
    /// `Event`; list items carry none.
    pub kind: Text<'a>,
    /// Who it is.
    pub metadata: WireMeta<'a>,
    /// What it is about (`involvedObject`).
    pub regarding: WireRef<'a>,
    /// What else it names.
    pub related: WireRef<'a>,
    /// `Normal`, `Warning`, or anything.
    pub event_type: Text<'a>,
    /// For machines.
    pub reason: Text<'a>,
    /// What was done.
    pub action: Text<'a>,
    /// For people (`message`).
    pub note: Text<'a>,
    /// Who reports (`reportingComponent`).
    pub controller: Text<'a>,
    /// Which of them.
    pub instance: Text<'a>,
    /// Who reported, the old way (`source`).
    pub source: WireSource<'a>,
    /// Repetitions, the new way.
    pub series: WireSeries,
    /// Repetitions, the old way (`count`); 0 when absent.
    pub count: u32,
    /// When, the new way; 0 when null.
    pub event_time: UnixMs,
    /// First time, the old way (`firstTimestamp`).
    pub first_timestamp: UnixMs,
    /// Last time, the old way (`lastTimestamp`).
    pub last_timestamp: UnixMs,
    n_malformed: u32,
}

impl WireEvent<'_> {
    /// How many of the fields that we read held something else than they may.
    #[must_use]
    pub fn n_malformed(&self) -> u32 {
        self.n_malformed
            + self.metadata.n_malformed
            + self.regarding.n_malformed
            + self.related.n_malformed
            + self.source.n_malformed
            + self.series.n_malformed
    }
}

/// A JSON object that is read field by field. What it does not know it must
/// leave to the caller.
pub(crate) trait Fields<'de>: Default {
    /// Takes the value of `key`, if it is one of its own.
    fn take<A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<Taken, A::Error>;
}

/// Whether a key was one of ours, so that its value is consumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    Yes,
    No,
}

/// Says which key goes into which field: each is read leniently, and what is not of
/// its type is counted in `n_malformed`.
macro_rules! fields {
    ($type:ty { $($($name:literal)|+ => $field:ident,)* }) => {
        impl<'de> $crate::record::decode::Fields<'de> for $type {
            fn take<A: serde::de::MapAccess<'de>>(
                &mut self,
                key: &str,
                map: &mut A,
            ) -> Result<$crate::record::decode::Taken, A::Error> {
                use $crate::record::decode::{Lenient, Taken};

                match key {
                    $($($name)|+ => {
                        let Lenient { value, malformed } = map.next_value()?;
                        self.$field = value;
                        self.n_malformed += u32::from(malformed);
                        Ok(Taken::Yes)
                    })*
                    _ => Ok(Taken::No),
                }
            }
        }

        impl<'de> $crate::record::decode::Value<'de> for $type {
            fn from_map<A: serde::de::MapAccess<'de>>(mut map: A) -> Result<Option<Self>, A::Error> {
                use $crate::record::decode::{Fields as _, Taken, Text};

                let mut value = Self::default();
                while let Some(key) = map.next_key::<Text<'de>>()? {
                    if value.take(&key, &mut map)? == Taken::No {
                        map.next_value::<serde::de::IgnoredAny>()?;
                    }
                }
                Ok(Some(value))
            }
        }
    };
}

/// Says what a JSON object as a whole is, which nothing but an object can be.
macro_rules! document {
    ($type:ident, $what:literal) => {
        impl<'de: 'a, 'a> serde::Deserialize<'de> for $type<'a> {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                struct ObjectOnly;

                impl<'de> serde::de::Visitor<'de> for ObjectOnly {
                    type Value = $type<'de>;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str($what)
                    }

                    fn visit_map<A: serde::de::MapAccess<'de>>(
                        self,
                        map: A,
                    ) -> Result<Self::Value, A::Error> {
                        use $crate::record::decode::Value as _;

                        Ok($type::from_map(map)?.unwrap_or_default())
                    }
                }

                from.deserialize_map(ObjectOnly)
            }
        }
    };
}

pub(crate) use {document, fields};

fields!(WireMeta<'de> {
    "name" => name,
    "namespace" => namespace,
    "uid" => uid,
    "resourceVersion" => resource_version,
    "creationTimestamp" => creation_timestamp,
});

fields!(WireRef<'de> {
    "apiVersion" => api_version,
    "kind" => kind,
    "namespace" => namespace,
    "name" => name,
    "uid" => uid,
    "fieldPath" => field_path,
});

fields!(WireSource<'de> {
    "component" => component,
    "host" => host,
});

fields!(WireSeries {
    "count" => count,
    "lastObservedTime" => last_observed_time,
});

fields!(WireEvent<'de> {
    "kind" => kind,
    "metadata" => metadata,
    "regarding" | "involvedObject" => regarding,
    "related" => related,
    "type" => event_type,
    "reason" => reason,
    "action" => action,
    "note" | "message" => note,
    "reportingController" | "reportingComponent" => controller,
    "reportingInstance" => instance,
    "deprecatedSource" | "source" => source,
    "series" => series,
    "deprecatedCount" | "count" => count,
    "eventTime" => event_time,
    "deprecatedFirstTimestamp" | "firstTimestamp" => first_timestamp,
    "deprecatedLastTimestamp" | "lastTimestamp" => last_timestamp,
});

document!(WireEvent, "an Event");

/// What a lenient field can be read from; `None` says "not this".
pub(crate) trait Value<'de>: Default {
    fn from_borrowed(text: &'de str) -> Option<Self> {
        Self::from_text(text)
    }

    fn from_text(_: &str) -> Option<Self> {
        None
    }

    fn from_number(_: u64) -> Option<Self> {
        None
    }

    fn from_negative(_: i64) -> Option<Self> {
        None
    }

    fn from_bool(_: bool) -> Option<Self> {
        None
    }

    fn from_seq<A: SeqAccess<'de>>(mut seq: A) -> Result<Option<Self>, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn from_map<A: MapAccess<'de>>(mut map: A) -> Result<Option<Self>, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    /// Reads it, whatever it is.
    fn read<D: Deserializer<'de>>(from: D) -> Result<Lenient<Self>, D::Error> {
        from.deserialize_any(LenientVisitor(PhantomData))
    }
}

impl<'de> Value<'de> for Text<'de> {
    fn from_borrowed(text: &'de str) -> Option<Self> {
        Some(Self(Cow::Borrowed(text)))
    }

    fn from_text(text: &str) -> Option<Self> {
        Some(Self(Cow::Owned(text.to_owned())))
    }
}

impl Value<'_> for UnixMs {
    /// RFC 3339. A time before 1970 is as unknown as one that cannot be read:
    /// Go writes the year 1 for "none".
    fn from_text(text: &str) -> Option<Self> {
        let millis = match of_whole_second(text.as_bytes()) {
            Some(seconds) => seconds.saturating_mul(1_000),
            None => text.parse::<Timestamp>().ok()?.as_millisecond(),
        };
        u64::try_from(millis).ok()
    }
}

/// The seconds since 1970 of `2026-09-01T01:01:00Z`, as the server writes nearly all times: a third of
/// the price of reading what else a time may look like. `None` for anything else.
fn of_whole_second(text: &[u8]) -> Option<i64> {
    const FORM: &[u8; 20] = b"dddd-dd-ddTdd:dd:ddZ";
    let text: &[u8; 20] = text.try_into().ok()?;
    let fits = |(of_form, it): (&u8, &u8)| match of_form {
        b'd' => it.is_ascii_digit(),
        _ => of_form == it,
    };
    if !FORM.iter().zip(text).all(fits) {
        return None;
    }
    let two = |at: usize| 10 * (text[at] - b'0') + (text[at + 1] - b'0');
    let int = |at: usize| i8::try_from(two(at)).ok();
    let year = 100 * i16::from(two(0)) + i16::from(two(2));
    let day = jiff::civil::Date::new(year, int(5)?, int(8)?).ok()?;
    let time = jiff::civil::Time::new(int(11)?, int(14)?, int(17)?, 0).ok()?;
    let at = jiff::tz::Offset::UTC
        .to_timestamp(day.to_datetime(time))
        .ok()?;
    Some(at.as_second())
}

impl Value<'_> for u32 {
    fn from_number(number: u64) -> Option<Self> {
        Some(u32::try_from(number).unwrap_or(u32::MAX))
    }
}

impl Value<'_> for i64 {
    fn from_number(number: u64) -> Option<Self> {
        number.try_into().ok()
    }

    fn from_negative(number: i64) -> Option<Self> {
        Some(number)
    }
}

impl Value<'_> for bool {
    fn from_bool(it: bool) -> Option<Self> {
        Some(it)
    }
}

/// A value, or the default when it is null or of another type.
pub(crate) struct Lenient<T> {
    pub(crate) value: T,
    pub(crate) malformed: bool,
}

impl<'de, T: Value<'de>> Deserialize<'de> for Lenient<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        T::read(from)
    }
}

struct LenientVisitor<T>(PhantomData<T>);

impl<'de, T: Value<'de>> Visitor<'de> for LenientVisitor<T> {
    type Value = Lenient<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(Lenient {
            value: T::default(),
            malformed: false,
        })
    }

    fn visit_borrowed_str<E: de::Error>(self, it: &'de str) -> Result<Self::Value, E> {
        Ok(lenient(T::from_borrowed(it)))
    }

    fn visit_str<E: de::Error>(self, it: &str) -> Result<Self::Value, E> {
        Ok(lenient(T::from_text(it)))
    }

    fn visit_u64<E: de::Error>(self, it: u64) -> Result<Self::Value, E> {
        Ok(lenient(T::from_number(it)))
    }

    fn visit_i64<E: de::Error>(self, it: i64) -> Result<Self::Value, E> {
        Ok(lenient(T::from_negative(it)))
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<Self::Value, E> {
        Ok(lenient(None))
    }

    fn visit_bool<E: de::Error>(self, it: bool) -> Result<Self::Value, E> {
        Ok(lenient(T::from_bool(it)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
        Ok(lenient(T::from_seq(seq)?))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        Ok(lenient(T::from_map(map)?))
    }
}

fn lenient<T: Default>(value: Option<T>) -> Lenient<T> {
    Lenient {
        malformed: value.is_none(),
        value: value.unwrap_or_default(),
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Ok(Lenient::<Text<'de>>::deserialize(from)?.value)
    }
}
