//! Whether a field selector selects what it should.
//!
//! A selector with a wrong value selects nothing, for ever, and looks like a quiet
//! cluster. So one Event of the kind is taken from a LIST without the selector: a
//! LIST with the selector and its name must have it, and one with the kind in
//! another spelling must not.

use kube::{Client, api::ListParams, core::Request};
use serde::Deserialize;

use super::{
    Asked as _, Failure,
    once::{field_value, read_all},
    send_with,
};
use crate::{
    record::{UnixMs, decode::WireEvent},
    scope::Watch,
};

/// What a check came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// It selects what it should, and nothing else.
    Proven,
    /// There is no Event of that kind to prove it on.
    Unproven,
    /// It does not.
    Broken(String),
}

/// What was seen of the Events of a watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspection {
    /// Whether its selector selects.
    pub selection: Selection,
    /// When that of them was last seen that was not seen for longest, as they claim.
    pub oldest_seen: Option<UnixMs>,
}

/// How many Events are looked through for one of the kind.
const LOOK_AT: u32 = 500;

/// How large an answer may be.
const ANSWER_MAX: usize = 64 << 20;

#[derive(Deserialize)]
struct List<'a> {
    #[serde(borrow)]
    items: Vec<WireEvent<'a>>,
}

/// Checks the selector of a watch.
///
/// # Errors
///
/// If the server does not answer, or not to us.
pub async fn self_check(client: &Client, watch: &Watch) -> Result<Selection, Failure> {
    Ok(inspect(client, watch).await?.selection)
}

/// Checks the selector of a watch, and looks at how old its Events are.
///
/// # Errors
///
/// If the server does not answer, or not to us.
pub async fn inspect(client: &Client, watch: &Watch) -> Result<Inspection, Failure> {
    let all = list(client, watch, None, LOOK_AT).await?;
    let all: List<'_> = parse(&all)?;
    let last_seen = |it: &WireEvent<'_>| {
        let times = [
            it.metadata.creation_timestamp,
            it.series.last_observed_time,
            it.last_timestamp,
            it.event_time,
        ];
        times.into_iter().max().unwrap_or(0)
    };
    Ok(Inspection {
        selection: select(client, watch, &all).await?,
        oldest_seen: all.items.iter().map(last_seen).filter(|it| *it != 0).min(),
    })
}

async fn select(client: &Client, watch: &Watch, all: &List<'_>) -> Result<Selection, Failure> {
    let kind = watch.kind.as_str();
    let Some(event) = all.items.iter().find(|it| &*it.regarding.kind == kind) else {
        return Ok(Selection::Unproven);
    };
    // The name of an object could hold what a selector takes for its own.
    let name = field_value(&event.regarding.name);
    let of = |kind: &str| format!("regarding.kind={kind},regarding.name={name}");

    let found = list(client, watch, Some(of(kind)), 1).await?;
    if parse::<List<'_>>(&found)?.items.is_empty() {
        // It may have gone in between; it has not if it is there without the kind.
        let still = format!("regarding.name={name}");
        let still = list(client, watch, Some(still), 1).await?;
        if parse::<List<'_>>(&still)?.items.is_empty() {
            return Ok(Selection::Unproven);
        }
        let what = format!("regarding.kind={kind} does not select an Event about a {kind}");
        return Ok(Selection::Broken(what));
    }
    let mut other = kind.to_owned();
    if let Some(first) = other.get_mut(..1) {
        first.make_ascii_lowercase();
    }
    let found = list(client, watch, Some(of(&other)), 1).await?;
    if parse::<List<'_>>(&found)?.items.is_empty() {
        Ok(Selection::Proven)
    } else {
        let what = format!("regarding.kind={other} selects Events about a {kind}");
        Ok(Selection::Broken(what))
    }
}

fn parse<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, Failure> {
    serde_json::from_slice(bytes).map_err(|_| Failure::page("it is no list of Events"))
}

async fn list(
    client: &Client,
    watch: &Watch,
    selector: Option<String>,
    limit: u32,
) -> Result<Vec<u8>, Failure> {
    let params = ListParams {
        field_selector: selector,
        limit: Some(limit),
        ..ListParams::default()
    };
    let request = Request::new(watch.path()).list(&params);
    let body = send_with(client, request).await?;
    read_all(body, ANSWER_MAX).await
}
