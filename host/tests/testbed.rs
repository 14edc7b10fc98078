//! The control plane that tests run against, and what a watch of Events rests on: said by a real API server.

#![allow(clippy::unwrap_used, reason = "a test says what went wrong by failing")]

mod support;

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use futures_util::{Stream, StreamExt as _};
use kube::{Client, core::WatchEvent};
use serde_json::{Value, json};
use support::testbed::{self, Options, Testbed, core_event, event, get, post, until};
use tokio::time::timeout;

/// The path of a namespace's Events.
fn events_of(namespace: &str) -> String {
    format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events")
}

/// The path of those that a selector finds. `=` is the only character of one that has to be escaped.
fn selected(namespace: &str, selector: &str) -> String {
    let selector = selector.replace('=', "%3D");
    format!("{}?fieldSelector={selector}", events_of(namespace))
}

/// The names of the objects that the Events of a list regard, in no order.
fn regarded(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().unwrap();
    let mut names: Vec<_> = items
        .iter()
        .map(|it| it["regarding"]["name"].as_str().unwrap())
        .collect();
    names.sort_unstable();
    names
}

/// Watches from a resourceVersion on, for two minutes at most.
async fn watch(
    admin: &Client,
    path: &str,
    version: &str,
) -> kube::Result<impl Stream<Item = WatchEvent<Value>> + use<>> {
    let mark = if path.contains('?') { '&' } else { '?' };
    let path = format!("{path}{mark}watch=true&resourceVersion={version}&timeoutSeconds=120");
    let request = http::Request::get(path).body(Vec::new()).unwrap();
    let frames = admin.request_events(request).await?;
    Ok(frames.map(Result::unwrap).boxed_local())
}

#[tokio::test]
async fn a_server_says_which_version_it_is() {
    let Some(testbed) = Testbed::shared().await else {
        return;
    };
    let version = testbed.admin().await.apiserver_version().await.unwrap();
    assert_eq!(version.major, "1", "{version:?}");
    assert!(!version.git_version.starts_with("v0."), "{version:?}");
}

#[tokio::test]
async fn regarding_kind_filters_a_list_and_a_watch() {
    let Some(testbed) = Testbed::shared().await else {
        return;
    };
    testbed.namespace("kinds", &[]).await;
    let admin = testbed.admin().await;
    testbed
        .write([
            core_event("kinds", "Pod", "pod-1", 1),
            event("kinds", "Pod", "pod-2", 1),
            core_event("kinds", "Job", "job-1", 1),
            event("kinds", "Job", "job-2", 1),
        ])
        .await;
    let all = get(&admin, &events_of("kinds")).await.unwrap();
    assert_eq!(regarded(&all), ["job-1", "job-2", "pod-1", "pod-2"]);
    let pods = selected("kinds", "regarding.kind=Pod");
    let listed = get(&admin, &pods).await.unwrap();
    assert_eq!(regarded(&listed), ["pod-1", "pod-2"]);

    let version = listed["metadata"]["resourceVersion"].as_str().unwrap();
    let mut frames = watch(&admin, &pods, version).await.unwrap();
    testbed.write([event("kinds", "Job", "job-3", 1)]).await;
    testbed.write([event("kinds", "Pod", "pod-3", 1)]).await;
    let Some(WatchEvent::Added(first)) = frames.next().await else {
        panic!("an Event was added, and nothing else happened");
    };
    assert_eq!(first["regarding"]["name"], "pod-3");
}

#[tokio::test]
async fn a_kind_in_lower_case_is_accepted_and_matches_nothing() {
    let Some(testbed) = Testbed::shared().await else {
        return;
    };
    testbed.namespace("lower-case", &[]).await;
    let admin = testbed.admin().await;
    testbed
        .write([core_event("lower-case", "Pod", "pod-1", 1)])
        .await;
    for (selector, want) in [
        ("regarding.kind=Pod", &["pod-1"][..]),
        ("regarding.kind=pod", &[]),
    ] {
        let listed = get(&admin, &selected("lower-case", selector)).await;
        assert_eq!(regarded(&listed.unwrap()), want, "{selector}");
    }
}

#[tokio::test]
async fn an_unknown_label_is_refused() {
    let Some(testbed) = Testbed::shared().await else {
        return;
    };
    let admin = testbed.admin().await;
    // That is what core/v1 calls it.
    let path = selected("default", "involvedObject.kind=Pod");
    assert_eq!(get(&admin, &path).await, Err(400));
    let Err(kube::Error::Api(refused)) = watch(&admin, &path, "0").await.map(drop) else {
        panic!("the watch was not refused");
    };
    assert_eq!(refused.code, 400);
    assert!(
        refused
            .message
            .contains("field label not supported: involvedObject.kind"),
        "{refused}"
    );
}

#[tokio::test]
async fn what_was_written_as_core_v1_comes_with_deprecated_fields() {
    let Some(testbed) = Testbed::shared().await else {
        return;
    };
    testbed.namespace("shapes", &[]).await;
    let admin = testbed.admin().await;
    let written = core_event("shapes", "Pod", "pod-1", 1);
    testbed.write([written.clone()]).await;
    let listed = get(&admin, &events_of("shapes")).await.unwrap();
    let read = &listed["items"][0];
    for (of_events, of_core) in [
        ("/regarding", "/involvedObject"),
        ("/note", "/message"),
        ("/reason", "/reason"),
        ("/type", "/type"),
        ("/deprecatedSource", "/source"),
        ("/deprecatedFirstTimestamp", "/firstTimestamp"),
        ("/deprecatedLastTimestamp", "/lastTimestamp"),
        ("/deprecatedCount", "/count"),
    ] {
        assert_eq!(
            read.pointer(of_events),
            written.pointer(of_core),
            "{of_events} in {read}"
        );
    }
    assert_eq!(read["eventTime"], Value::Null);
    for absent in [
        "series",
        "action",
        "reportingController",
        "reportingInstance",
    ] {
        assert!(read.get(absent).is_none(), "{absent} in {read}");
    }
}

#[tokio::test]
async fn events_that_expire_together_are_deleted_at_one_version() {
    let options = Options {
        event_ttl: Duration::from_secs(20),
        ..Options::default()
    };
    let Some(testbed) = Testbed::start(options).await else {
        return;
    };
    testbed.namespace("expiry", &[]).await;
    let admin = testbed.admin().await;
    let path = events_of("expiry");
    let events = (0..10).map(|number| core_event("expiry", "Pod", "pod-1", number));
    testbed.write(events).await;
    let listed = get(&admin, &path).await.unwrap();
    assert_eq!(regarded(&listed).len(), 10);

    let version = listed["metadata"]["resourceVersion"].as_str().unwrap();
    let frames = watch(&admin, &path, version).await.unwrap();
    let deleted: Vec<Value> = frames
        .map(|frame| match frame {
            WatchEvent::Deleted(event) => event,
            other => panic!("nothing else happens here: {other:?}"),
        })
        .take(10)
        .collect()
        .await;
    let names: BTreeSet<_> = deleted
        .iter()
        .map(|it| it["metadata"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(names.len(), 10);
    // A server begins a new lease now and then: one that does so among these ten makes two versions of them.
    let versions: BTreeSet<_> = deleted
        .iter()
        .map(|it| it["metadata"]["resourceVersion"].as_str().unwrap())
        .collect();
    assert!(versions.len() <= 2, "{versions:?}");
    let listed = get(&admin, &path).await.unwrap();
    assert!(regarded(&listed).is_empty());
}

#[tokio::test]
async fn a_watch_from_a_compacted_version_gets_one_frame_that_says_so() {
    let options = Options {
        compaction: Duration::from_secs(5),
        ..Options::default()
    };
    let Some(testbed) = Testbed::start(options).await else {
        return;
    };
    testbed.namespace("quiet", &[]).await;
    let admin = testbed.admin().await;
    testbed
        .write([core_event("quiet", "Pod", "pod-1", 1)])
        .await;
    let path = events_of("quiet");
    let listed = get(&admin, &path).await.unwrap();
    let version = listed["metadata"]["resourceVersion"].as_str().unwrap();
    let (admin, path) = (&admin, &path);
    let mut number = 0;
    let status = until("a compaction", || {
        number += 1;
        // What goes on elsewhere makes the version of a quiet namespace an old one.
        let elsewhere = testbed.write([core_event("default", "Pod", "pod-1", number)]);
        async move {
            elsewhere.await;
            let mut frames = watch(admin, path, version).await.unwrap();
            match timeout(Duration::from_secs(1), frames.next()).await {
                Err(_) => None,
                Ok(Some(WatchEvent::Error(status))) => {
                    assert!(frames.next().await.is_none(), "it is the last frame");
                    Some(status)
                }
                Ok(other) => panic!("nothing happens in this namespace: {other:?}"),
            }
        }
    })
    .await;
    assert_eq!(status.code, 410);
    assert_eq!(status.reason, "Expired");
}

#[tokio::test]
async fn the_scheduler_says_why_a_pod_does_not_fit() {
    let Some(testbed) = Testbed::shared().await else {
        return;
    };
    testbed.schedule().await;
    testbed.namespace("scheduling", &[]).await;
    let admin = testbed.admin().await;
    let pod = json!({
        "metadata": { "name": "pod-1" },
        "spec": { "containers": [{ "name": "main", "image": "none" }] },
    });
    let pod = post(&admin, "/api/v1/namespaces/scheduling/pods", &pod).await;
    let path = selected("scheduling", "regarding.kind=Pod");
    let event = until("an Event of kube-scheduler", || async {
        let listed = get(&admin, &path).await.unwrap();
        listed["items"].get(0).cloned()
    })
    .await;
    assert_eq!(event["reason"], "FailedScheduling", "{event}");
    assert_eq!(event["reportingController"], "default-scheduler", "{event}");
    assert_eq!(event["regarding"]["uid"], pod["metadata"]["uid"], "{event}");
    assert!(event["eventTime"].is_string(), "{event}");
}

#[tokio::test]
async fn a_killed_server_comes_back_with_what_it_had() {
    let Some(mut testbed) = Testbed::start(Options::default()).await else {
        return;
    };
    // Not in `default`: the server writes Events there about itself as it starts.
    testbed.namespace("kept", &[]).await;
    testbed.write([core_event("kept", "Pod", "pod-1", 1)]).await;
    let admin = testbed.admin().await;
    let path = events_of("kept");
    let before = get(&admin, &path).await.unwrap();
    testbed.kill_apiserver();
    let request = http::Request::get(&path).body(Vec::new()).unwrap();
    let refused = admin.request::<Value>(request).await;
    assert!(!matches!(refused, Ok(_) | Err(kube::Error::Api(_))));

    testbed.start_apiserver().await;
    // The same client, since it is the same address.
    let after = get(&admin, &path).await.unwrap();
    assert_eq!(regarded(&before), ["pod-1"]);
    assert_eq!(before["items"], after["items"]);
}

#[tokio::test]
async fn the_audit_log_says_who_asked_for_what() {
    let Some(testbed) = Testbed::shared().await else {
        return;
    };
    testbed.namespace("audited", &[]).await;
    let account = testbed.account("audited", "default").await;
    let client = testbed::client(&account.kubeconfig).await;
    let path = selected("audited", "regarding.kind=Pod");
    assert_eq!(get(&client, &path).await, Err(403));
    let entries = testbed.audit_with(&account.user, |_| true).await;
    let [entry] = &entries[..] else {
        panic!("one request has one entry: {entries:?}");
    };
    assert_eq!(entry.verb, "list");
    assert_eq!(entry.uri, path);
    assert_eq!(entry.stage, "ResponseComplete");
    let asked_for = entry.object_ref.as_ref().unwrap();
    assert_eq!(asked_for.resource, "events");
    assert_eq!(asked_for.api_group, "events.k8s.io");
    assert_eq!(asked_for.namespace, "audited");
    assert_eq!(entry.response_status.as_ref().unwrap().code, 403);
}

#[tokio::test]
async fn nothing_of_it_is_left_when_it_ends() {
    let Some(testbed) = Testbed::start(Options::default()).await else {
        return;
    };
    testbed.schedule().await;
    let folder = testbed.kubeconfig().parent().unwrap().to_owned();
    assert!(2 < processes_in(&folder).len(), "its servers run there");
    drop(testbed);
    assert_eq!(processes_in(&folder), Vec::<PathBuf>::new());
    assert!(!folder.exists());
}

/// The processes whose folder this is, of those that may be looked at.
fn processes_in(folder: &Path) -> Vec<PathBuf> {
    let processes = fs::read_dir("/proc").unwrap();
    processes
        .map(|it| it.unwrap().path())
        .filter(|it| fs::read_link(it.join("cwd")).is_ok_and(|it| it.starts_with(folder)))
        .collect()
}
