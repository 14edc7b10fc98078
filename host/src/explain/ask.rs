//! Asks a cluster about one object, with the rights of who asks.
//!
//! Nothing is watched and nothing is kept. A right that is missing hides what it is about,
//! and the rest is explained without it.

use kube::Client;

use super::{Case, Hidden};
use crate::{
    pods::{Pod, decode::WirePod},
    record::{ObjectKey, decode::from_json},
    text::Visible,
    watch::{self, Class, Failure},
};

/// Where Events about objects without a namespace are.
const CLUSTER_EVENTS: &str = "default";

/// Why nothing could be gathered.
#[derive(Debug, thiserror::Error)]
pub enum NotAsked {
    /// The cluster does not answer, or not as one does.
    #[error("the cluster cannot be asked: {0}")]
    Failed(Failure),
    /// Nothing may be looked at.
    #[error("nothing may be looked at:{}", lines(.0))]
    Refused(Vec<Hidden>),
}

fn lines(all: &[Hidden]) -> String {
    let lines = all
        .iter()
        .map(|Hidden { what, why }| format!("\n  {}: {}", Visible(what), Visible(why)));
    lines.collect()
}

/// Gathers what a cluster knows of the object: its pod, if it is one, its Events, and
/// those of its node and its owner.
///
/// # Errors
///
/// If nothing could be asked at all, or nothing may be.
pub async fn ask(case: &mut Case, client: &Client, labels: &[String]) -> Result<(), NotAsked> {
    let object = case.object().clone();
    let mut is_any_seen = false;
    if object.kind() == "Pod" {
        match watch::get_pod(client, object.namespace(), object.name()).await {
            Ok(bytes) => {
                is_any_seen = true;
                put_pod(case, &bytes, labels);
            }
            // Nor would it answer to anything else.
            Err(failure) if matches!(failure.class, Class::Deadline | Class::Transport) => {
                return Err(NotAsked::Failed(failure));
            }
            Err(failure) => {
                let why = if failure.class == Class::NotFound {
                    is_any_seen = true;
                    "there is none, or none any more".to_owned()
                } else {
                    reason(&failure, "get pods", object.namespace())
                };
                case.hide(format!("the pod {object}"), why);
            }
        }
    }
    match list(case, client, &object).await {
        Ok(()) => is_any_seen = true,
        Err(it) if matches!(it.class, Class::Forbidden | Class::Unauthorized) => {}
        Err(failure) => return Err(NotAsked::Failed(failure)),
    }
    for around in case.around() {
        // What is hidden by it is said.
        drop(list(case, client, &around).await);
    }
    if is_any_seen {
        Ok(())
    } else {
        Err(NotAsked::Refused(std::mem::take(&mut case.hidden)))
    }
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
