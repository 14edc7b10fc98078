//! What a document is, told by what is in it, and who is to know.
//!
//! A document is decoded once and without effect; only then is anybody told. So
//! whoever is not sure that a line is a document may simply try.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

use super::{
    Item, Origin, Problem, Reader,
    position::{Held, Place},
};
use crate::{
    pods::decode::WirePod,
    record::decode::{Fields as _, Taken, Text, WireEvent, from_json},
    text::{Visible, cut},
};

/// How much of what is wrong is told.
const PROBLEM_MAX_BYTES: usize = 300;

/// What the keys of a JSON object show.
#[derive(Debug, Default)]
pub(super) struct Document<'a> {
    event: WireEvent<'a>,
    api_version: Text<'a>,
    /// What a watch frame carries.
    framed: Option<&'a RawValue>,
    /// Of a list; those that were read one by one before are not among them.
    items: Option<Vec<&'a RawValue>>,
}

impl<'de> Deserialize<'de> for Document<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(DocumentVisitor)
    }
}

impl Document<'_> {
    /// Whether it is anything that we know of.
    pub(super) fn is_something(&self) -> bool {
        self.items.is_some()
            || self.framed.is_some()
            || !self.event.kind.is_empty()
            || !self.event.metadata.name.is_empty()
    }
}

struct DocumentVisitor;

impl<'de> Visitor<'de> for DocumentVisitor {
    type Value = Document<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an Event, a list of Events or a watch frame")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut document = Document::default();
        while let Some(key) = map.next_key::<Text<'de>>()? {
            match &*key {
                "items" => {
                    let items = map.next_value_seed(Items)?;
                    document.items.get_or_insert_default().extend(items);
                }
                "object" => document.framed = Some(map.next_value()?),
                "apiVersion" => document.api_version = map.next_value()?,
                key => {
                    if document.event.take(key, &mut map)? == Taken::No {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
            }
        }
        Ok(document)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
        Ok(Document {
            items: Some(Items.visit_seq(seq)?),
            ..Document::default()
        })
    }
}

struct Items;

impl<'de> DeserializeSeed<'de> for Items {
    type Value = Vec<&'de RawValue>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Items {
    type Value = Vec<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of Events")
    }

    /// Go writes an empty list as null.
    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Vec::new())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(items)
    }
}

/// An item of a list, or what a frame carries.
#[derive(Debug)]
struct Single<'a> {
    event: WireEvent<'a>,
    api_version: Text<'a>,
}

impl<'de> Deserialize<'de> for Single<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct SingleVisitor;

        impl<'de> Visitor<'de> for SingleVisitor {
            type Value = Single<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an Event")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let (mut event, mut api_version) = (WireEvent::default(), Text::default());
                while let Some(key) = map.next_key::<Text<'de>>()? {
                    if &*key == "apiVersion" {
                        api_version = map.next_value()?;
                    } else if event.take(&key, &mut map)? == Taken::No {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
                Ok(Single { event, api_version })
            }
        }

        from.deserialize_map(SingleVisitor)
    }
}

/// Tells the reader what was found.
#[derive(Debug)]
pub(super) struct Out<'r, R> {
    reader: &'r mut R,
    origin: Origin,
}

impl<'r, R: Reader> Out<'r, R> {
    pub(super) fn new(reader: &'r mut R, origin: Origin) -> Self {
        Self { reader, origin }
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.reader.is_stopped()
    }

    pub(super) fn origin(&self) -> Origin {
        self.origin
    }

    pub(super) fn problem(&mut self, place: Place, what: &dyn fmt::Display) {
        self.reader.problem(problem(place, what));
    }

    /// What could not be decoded.
    pub(super) fn failed(&mut self, held: Held<'_>, err: &serde_json::Error) {
        if err.is_data() {
            self.no_event(held.place_of(err), err);
        } else {
            self.problem(held.place_of(err), err);
        }
    }

    /// What is well-formed, and something else.
    pub(super) fn no_event(&mut self, place: Place, what: &dyn fmt::Display) {
        if self.origin.is_found() {
            self.reader.foreign();
        } else {
            self.problem(place, what);
        }
    }

    /// All that there is in a document. False if it cannot be decoded.
    pub(super) fn document(&mut self, held: Held<'_>) -> bool {
        match from_json(held.bytes) {
            Ok(document) => {
                self.decoded(held, document);
                true
            }
            Err(err) => {
                self.failed(held, &err);
                false
            }
        }
    }

    /// All that there is in a document that is decoded.
    pub(super) fn decoded(&mut self, held: Held<'_>, document: Document<'_>) {
        let Document {
            event,
            api_version,
            framed,
            items,
        } = document;
        let start = held.place_at(0);
        match (items, framed) {
            (Some(items), _) => {
                for it in items {
                    if self.is_stopped() {
                        return;
                    }
                    self.raw(held, it, Item::Put);
                }
            }
            (None, Some(object)) => match &*event.event_type {
                "ADDED" | "MODIFIED" => self.raw(held, object, Item::Put),
                "DELETED" => self.raw(held, object, Item::Deleted),
                // It carries a resource version and no Event.
                "BOOKMARK" => {}
                other => {
                    let what = format_args!(
                        "a watch frame of type `{}`: {}",
                        Visible(cut(other, 64)),
                        Visible(cut(object.get(), 200))
                    );
                    if other == "ERROR" {
                        self.problem(start, &what);
                    } else {
                        self.no_event(start, &what);
                    }
                }
            },
            (None, None) if event.kind.is_empty() && event.metadata.name.is_empty() => {
                let what = if self.origin.holds_pods() {
                    "neither a Pod, a list of Pods nor a watch frame"
                } else {
                    "neither an Event, a list of Events nor a watch frame"
                };
                self.no_event(start, &what);
            }
            (None, None) if self.origin.holds_pods() => self.pod(held, start),
            (None, None) => self.single(start, Single { event, api_version }, Item::Put),
        }
    }

    /// An item of a list.
    pub(super) fn item(&mut self, held: Held<'_>) {
        if self.origin.holds_pods() {
            return self.pod(held, held.place_at(0));
        }
        match from_json(held.bytes) {
            Ok(single) => self.single(held.place_at(0), single, Item::Put),
            Err(err) => self.failed(held, &err),
        }
    }

    /// An Event, or what stands where one should, within what is held.
    fn raw<'a>(
        &mut self,
        held: Held<'_>,
        raw: &'a RawValue,
        make: impl FnOnce(WireEvent<'a>) -> Item<'a>,
    ) {
        let place = held.place_of_part(raw.get());
        let part = Held {
            is: held.is,
            ..Held::piece(raw.get().as_bytes(), place)
        };
        if self.origin.holds_pods() {
            return self.pod(part, place);
        }
        match serde_json::from_str(raw.get()) {
            Ok(single) => self.single(place, single, make),
            Err(err) => self.failed(part, &err),
        }
    }

    /// A Pod, or what stands where one should.
    fn pod(&mut self, held: Held<'_>, place: Place) {
        let pod: WirePod<'_> = match from_json(held.bytes) {
            Ok(pod) => pod,
            Err(err) => return self.failed(held, &err),
        };
        if !pod.kind.is_empty() && &*pod.kind != "Pod" {
            let what = format_args!("of kind {}, no Pod", Visible(cut(&pod.kind, 64)));
            return self.no_event(place, &what);
        }
        let says_nothing = [&pod.kind, &pod.spec.node_name, &pod.status.phase]
            .map(|it| it.is_empty())
            == [true; 3];
        if says_nothing && self.origin.is_found() {
            return self.reader.foreign();
        }
        if let Err(why) = self.reader.pod(pod) {
            self.reader.refused(problem(place, &why));
        }
    }

    fn single<'a>(
        &mut self,
        place: Place,
        single: Single<'a>,
        make: impl FnOnce(WireEvent<'a>) -> Item<'a>,
    ) {
        let Single { event, api_version } = single;
        if !event.kind.is_empty() && &*event.kind != "Event" {
            let what = format_args!("a {}, not an Event", Visible(cut(&event.kind, 64)));
            return self.no_event(place, &what);
        }
        // The audit log's have the same kind.
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        if !matches!(group, "" | "events.k8s.io") {
            let what = format_args!(
                "an Event of {}, not of Kubernetes' API",
                Visible(cut(group, 64))
            );
            return self.no_event(place, &what);
        }
        let says_nothing = event.kind.is_empty()
            && event.regarding.kind.is_empty()
            && event.regarding.name.is_empty();
        if says_nothing && self.origin.is_found() {
            return self.reader.foreign();
        }
        if let Err(why) = self.reader.item(make(event)) {
            self.reader.refused(problem(place, &why));
        }
    }
}

fn problem(place: Place, what: &dyn fmt::Display) -> Problem {
    // serde_json names the place too, but within what it was given.
    let what = what.to_string();
    let what = what
        .rsplit_once(" at line ")
        .map_or(&*what, |(what, _)| what);
    Problem {
        line: place.line,
        column: place.column,
        what: Visible(cut(what, PROBLEM_MAX_BYTES)).to_string(),
    }
}
