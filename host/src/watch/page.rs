//! One page of a LIST, item by item.
//!
//! A page of 500 Events of a megabyte each is half a gigabyte, and whoever may
//! write Events can make one. So no page is ever held: items are handed on as
//! they come, and what is around them, which has the continue token and the
//! resource version, is kept apart and read at the end.

use serde::Deserialize;

use super::{Failure, inflow::Inflow};
use crate::{
    record::decode::Text,
    scan::{Scan, Step},
};

/// What stands around the items is a few hundred bytes.
const AROUND_MAX: usize = 1 << 20;

/// What a page says of the whole.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct PageEnd {
    /// Of the whole listing.
    pub(super) resource_version: String,
    /// What to ask for the next page with; empty on the last.
    pub(super) next: String,
}

/// An item of a page.
pub(super) enum Item<'a> {
    /// Its bytes.
    Whole(&'a [u8]),
    /// It is longer than any Event can be.
    TooLong,
}

/// Reads a page to its end.
pub(super) async fn read(
    inflow: &mut Inflow<'_>,
    event_max: usize,
    mut on_item: impl FnMut(Item<'_>),
) -> Result<PageEnd, Failure> {
    let mut around = Vec::new();
    let mut scan = Scan::default();
    loop {
        let (step, n) = scan.run(inflow.held());
        around.extend_from_slice(inflow.slice(0..n));
        inflow.consume(n);
        if AROUND_MAX < around.len() {
            return Err(Failure::page("there is too much beside its items"));
        }
        match step {
            Step::List if around.get(scan.key()) == Some(b"\"items\"") => {
                items(inflow, event_max, &mut on_item).await?;
            }
            Step::List => {}
            Step::End => return end(&around),
            Step::More => {
                if !inflow.fill().await? {
                    return Err(Failure::page("it is cut off"));
                }
            }
            Step::Broken | Step::TooDeep => return Err(Failure::page("it is not JSON")),
        }
    }
}

/// Reads items up to the bracket that ends them.
async fn items(
    inflow: &mut Inflow<'_>,
    event_max: usize,
    on_item: &mut impl FnMut(Item<'_>),
) -> Result<(), Failure> {
    loop {
        let held = inflow.held();
        let n_between = held
            .iter()
            .take_while(|it| it.is_ascii_whitespace() || **it == b',')
            .count();
        let next = held.get(n_between).copied();
        inflow.consume(n_between);
        match next {
            Some(b']') => return Ok(()),
            Some(_) => item(inflow, event_max, on_item).await?,
            None => {
                if !inflow.fill().await? {
                    return Err(Failure::page("it is cut off"));
                }
            }
        }
    }
}

async fn item(
    inflow: &mut Inflow<'_>,
    event_max: usize,
    on_item: &mut impl FnMut(Item<'_>),
) -> Result<(), Failure> {
    let mut scan = Scan::default();
    let mut is_too_long = false;
    let mut at = 0;
    loop {
        let (step, n) = scan.run(&inflow.held()[at..]);
        at += n;
        if event_max < at {
            is_too_long = true;
            inflow.consume(at);
            at = 0;
        }
        match step {
            Step::List => {}
            Step::End => {
                let item = if is_too_long {
                    Item::TooLong
                } else {
                    Item::Whole(inflow.slice(0..at))
                };
                on_item(item);
                inflow.consume(at);
                return Ok(());
            }
            Step::More => {
                if !inflow.fill().await? {
                    return Err(Failure::page("it is cut off"));
                }
            }
            Step::Broken | Step::TooDeep => return Err(Failure::page("it is not JSON")),
        }
    }
}

fn end(around: &[u8]) -> Result<PageEnd, Failure> {
    #[derive(Deserialize)]
    struct Around<'a> {
        #[serde(borrow, default)]
        metadata: Metadata<'a>,
    }

    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Metadata<'a> {
        #[serde(borrow, rename = "resourceVersion")]
        resource_version: Text<'a>,
        #[serde(borrow, rename = "continue")]
        next: Text<'a>,
    }

    let Around { metadata } =
        serde_json::from_slice(around).map_err(|_| Failure::page("it is no list"))?;
    if metadata.resource_version.is_empty() && metadata.next.is_empty() {
        return Err(Failure::page("it has no resource version"));
    }
    Ok(PageEnd {
        resource_version: metadata.resource_version.to_string(),
        next: metadata.next.to_string(),
    })
}
