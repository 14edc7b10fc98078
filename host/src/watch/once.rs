//! What is asked of the server once, and not followed.
//!
//! As of a watch, no page is ever held: a LIST is read item by item.

use std::time::Duration;

use http_body_util::BodyExt as _;
use kube::{Client, api::ListParams, client::Body, core::Request};
use tokio::time::timeout;

use super::{
    Budget, Failure, Inflow,
    page::{self, Item},
    send_with,
};
use crate::record::{
    ObjectKey,
    decode::{WireEvent, from_json},
};

/// How long the server may take for an answer.
const ANSWER: Duration = Duration::from_secs(30);

/// How large a pod may be. etcd takes no more than 1.5 MiB, and JSON makes at most six
/// bytes of one.
const POD_MAX: usize = 16 << 20;

/// Items of a page.
const PAGE: u32 = 500;

/// The pod of this name, as the server writes it.
///
/// # Errors
///
/// If the server does not answer, or not to us.
pub async fn get_pod(client: &Client, namespace: &str, name: &str) -> Result<Vec<u8>, Failure> {
    let path = format!("/api/v1/namespaces/{namespace}/pods");
    let request = Request::new(path).get(name, &kube::api::GetParams::default());
    within(async {
        let body = send_with(client, request).await?;
        read_all(body, POD_MAX).await
    })
    .await
}

async fn within<T>(asking: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let answered = timeout(ANSWER, asking).await;
    answered.unwrap_or_else(|_| Err(Failure::deadline("answer", ANSWER)))
}

/// Tells of every Event that regards an object and is in a namespace.
///
/// # Errors
///
/// If the server does not answer, or not to us. What was told of until then is so.
pub async fn list_events(
    client: &Client,
    namespace: &str,
    object: &ObjectKey,
    mut on: impl FnMut(&WireEvent<'_>),
) -> Result<(), Failure> {
    let path = format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events");
    let selector = format!(
        "regarding.kind={},regarding.name={}",
        field_value(object.kind()),
        field_value(object.name())
    );
    let budget = Budget::new(32 << 20, 16 << 20);
    let mut next = String::new();
    loop {
        let params = ListParams {
            field_selector: Some(selector.clone()),
            limit: Some(PAGE),
            continue_token: (!next.is_empty()).then(|| next.clone()),
            ..ListParams::default()
        };
        let page = within(async {
            let body = send_with(client, Request::new(&path).list(&params)).await?;
            let mut inflow = Inflow::new(body, &budget);
            let on_item = |item: Item<'_>| {
                if let Item::Whole(bytes) = item
                    && let Ok(event) = from_json(bytes)
                {
                    on(&event);
                }
            };
            page::read(&mut inflow, budget.event_max, on_item).await
        });
        next = page.await?.next;
        if next.is_empty() {
            return Ok(());
        }
    }
}

/// A value in a field selector, with what would be a part of the selector escaped.
pub(super) fn field_value(text: &str) -> String {
    let text = text.replace('\\', "\\\\");
    text.replace(',', "\\,").replace('=', "\\=")
}

/// An answer of so many bytes at most.
pub(super) async fn read_all(mut body: Body, max: usize) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|err| Failure::transport(&err))?;
        if let Ok(data) = frame.into_data() {
            bytes.extend_from_slice(&data);
        }
        if max < bytes.len() {
            return Err(Failure::page(&format!(
                "the answer has more than {max} bytes"
            )));
        }
    }
    Ok(bytes)
}
