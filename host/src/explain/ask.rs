//! Asks a cluster about one object, with the rights of who asks.
//!
//! Nothing is watched and nothing is kept. A right that is missing hides what it is about,
//! and the rest is explained without it.

use kube::Client;

use super::Case;
use crate::{
    pods::{Pod, decode::WirePod},
    record::{ObjectKey, decode::from_json},
    watch::{self, Class, Failure},
};

/// Where Events about objects without a namespace are.
const CLUSTER_EVENTS: &str = "default";

/// Gathers what a cluster knows of the object: its pod, if it is one, its Events, and
/// those of its node and its owner.
///
/// # Errors
///
/// If nothing could be asked at all.
pub async fn ask(case: &mut Case, client: &Client, labels: &[String]) -> Result<(), Failure> {
    let object = case.object().clone();
    if object.kind() == "Pod" {
        match watch::get_pod(client, object.namespace(), object.name()).await {
            Ok(bytes) => put_pod(case, &bytes, labels),
            Err(failure) => {
                let why = match failure.class {
                    Class::NotFound => "there is none, or none any more".to_owned(),
                    _ => reason(&failure, "get pods", object.namespace()),
                };
                case.hide(format!("the pod {object}"), why);
            }
        }
    }
    if let Err(failure) = list(case, client, &object).await {
        let of_own = matches!(failure.class, Class::Forbidden | Class::Unauthorized);
        if !of_own {
            return Err(failure);
        }
    }
    for around in case.around() {
        // What is hidden by it is said.
        drop(list(case, client, &around).await);
    }
    Ok(())
}

/// The Events of one object.
async fn list(case: &mut Case, client: &Client, object: &ObjectKey) -> Result<(), Failure> {
    let namespace = match object.namespace() {
        "" => CLUSTER_EVENTS,
        it => it,
    };
    let mut n_refused = 0_usize;
    let listed = watch::list_events(client, namespace, object, |event| {
        n_refused += usize::from(case.put(event).is_err());
    })
    .await;
    if 0 < n_refused {
        let what = format!("{n_refused} Events that name {object}");
        case.hide(what, "they are forged, or have no identity".to_owned());
    }
    listed.inspect_err(|failure| {
        let why = reason(failure, "list events.events.k8s.io", namespace);
        case.hide(format!("the Events of {object}"), why);
    })
}

fn put_pod(case: &mut Case, bytes: &[u8], labels: &[String]) {
    let pod = from_json::<WirePod<'_>>(bytes);
    let pod = pod.map_err(|err| err.to_string());
    let pod = pod.and_then(|it| Pod::pare_down(&it, labels).map_err(|err| err.to_string()));
    match pod {
        Ok((object, pod)) => case.put_pod(&object, pod),
        Err(why) => case.hide(format!("the pod {}", case.object()), why),
    }
}

fn reason(failure: &Failure, right: &str, namespace: &str) -> String {
    match failure.class {
        Class::Forbidden => {
            format!("forbidden: it takes the right to {right} in the namespace {namespace}")
        }
        _ => failure.to_string(),
    }
}
