//! `portent run` and `portent check` on a real API server: what is promised of a cluster is seen on one.

#![allow(clippy::unwrap_used, reason = "a test says what went wrong by failing")]

mod support;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use kube::Client;
use serde_json::{Value, json};
use support::{
    running::{Running, config, plugins},
    testbed::{self, Entry, Options, Overlay, Testbed, core_event, get, permit_pods, post, until},
};

/// What `portent check` says, and whether all is well.
fn check(config: &Path, kubeconfig: &Path) -> (bool, Vec<Value>) {
    let output = Command::new(env!("CARGO_BIN_EXE_portent"))
        .args(["check", "-o", "json", "--config"])
        .arg(config)
        .arg("--kubeconfig")
        .arg(kubeconfig)
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    let checks: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|err| panic!("{err}: {stderr}"));
    let schema = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../docs/schema/check.schema.json"
    );
    let schema = serde_json::from_slice(&std::fs::read(schema).unwrap()).unwrap();
    jsonschema::validate(&schema, &checks).unwrap();
    let checks = serde_json::from_value(checks).unwrap();
    (output.status.success(), checks)
}

fn failed(checks: &[Value]) -> Vec<&str> {
    let failed = checks.iter().filter(|it| it["verdict"] == "failed");
    failed.map(|it| it["what"].as_str().unwrap()).collect()
}

/// Runs something beside the test, which waits for processes and must not hold it up.
fn in_background<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> JoinHandle<T> {
    support::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.unwrap().block_on(work)
    })
}

/// The names of the Events that a LIST has.
async fn listed(client: &Client, namespace: &str) -> Vec<String> {
    let path = format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events");
    let list = get(client, &path).await.unwrap();
    let items = list["items"].as_array().unwrap().iter();
    let pods = items.filter(|it| it["regarding"]["kind"] == "Pod");
    let mut names: Vec<_> = pods
        .map(|it| it["metadata"]["name"].as_str().unwrap().to_owned())
        .collect();
    names.sort();
    names
}

/// The Events that additional reasons were told of, each as often as it was told.
fn told(portent: &Running) -> BTreeMap<String, usize> {
    let mut told = BTreeMap::new();
    for change in portent.changes() {
        for it in change["additionalReasons"].as_array().unwrap() {
            let name = it["event"]["name"].as_str().unwrap().to_owned();
            *told.entry(name).or_default() += 1;
        }
    }
    told
}

async fn delete(client: &Client, namespace: &str, name: &str) {
    let path = format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events/{name}");
    let request = http::Request::delete(path).body(Vec::new()).unwrap();
    client.request_text(request).await.unwrap();
}

/// Wants LISTs and watches of Events of these namespaces, self-reviews and discovery, and nothing else.
#[track_caller]
fn check_asked(asked: &[Entry], namespaces: &[&str]) {
    let mut n_seen = 0;
    for it in asked {
        let Some(object) = &it.object_ref else {
            let is_discovery = it.uri.starts_with("/version") || it.uri.starts_with("/api");
            assert!(is_discovery, "{it:?}");
            continue;
        };
        if object.api_group == "authorization.k8s.io" {
            assert_eq!(object.resource, "selfsubjectaccessreviews");
            continue;
        }
        let resource = (object.resource.as_str(), object.api_group.as_str());
        assert_eq!(resource, ("events", "events.k8s.io"));
        assert!(namespaces.contains(&object.namespace.as_str()), "{it:?}");
        assert!(["list", "watch"].contains(&it.verb.as_str()), "{it:?}");
        n_seen += 1;
    }
    assert!(2 * namespaces.len() <= n_seen, "{n_seen} LISTs and watches");
}

#[tokio::test]
async fn with_the_roles_of_the_manifests_it_works_and_asks_for_nothing_else() {
    let Some(plugins) = plugins() else { return };
    let Some(testbed) = Testbed::shared().await else {
        return;
    };
    for it in ["roles-a", "roles-b", "roles-c"] {
        testbed.namespace(it, &[]).await;
    }
    let config = config(&["roles-a", "roles-b"], &plugins, "");
    let overlay = Overlay {
        namespace: "roles-portent",
        watched: &["roles-a", "roles-b"],
        config: &config,
        plugins: &[],
    };
    let folder = overlay.write();
    testbed.apply(&testbed.render(&folder.path().join("example")));
    let account = testbed.account("roles-portent", "portent").await;
    let client = testbed::client(&account.kubeconfig).await;
    for it in ["roles-a", "roles-b"] {
        let path = format!("/apis/events.k8s.io/v1/namespaces/{it}/events");
        until("the permission", || async {
            get(&client, &path).await.ok()
        })
        .await;
    }
    let n_before = testbed.audit(&account.user).len();

    let namespaces = ["roles-a", "roles-b", "roles-c"];
    testbed
        .write(
            namespaces
                .iter()
                .map(|it| core_event(it, "Pod", "before", 1)),
        )
        .await;
    let mut portent = Running::start(&config, &account.kubeconfig);
    portent.until_ready();
    testbed
        .write(
            namespaces
                .iter()
                .map(|it| core_event(it, "Pod", "after", 1)),
        )
        .await;
    portent.until("all four records", |it| {
        (it.metric("portent_records", &[]) == 4).then_some(())
    });
    let (is_well, checks) = check(&portent.config(), &account.kubeconfig);
    assert!(is_well, "{checks:#?}");
    let of_pods = checks.iter().find(|it| it["what"] == "pods").unwrap();
    let said = of_pods["said"].as_str().unwrap();
    assert!(
        said.starts_with("pods.selector is not set, so no Pod is asked for"),
        "{said}"
    );
    let proven = checks.iter().filter(|it| {
        it["what"].as_str().unwrap().starts_with("field selector") && it["verdict"] == "ok"
    });
    assert_eq!(proven.count(), 2, "{checks:#?}");
    let (status, _) = portent.terminate();
    assert!(status.success());

    // What the server itself wrote down.
    let asked = testbed
        .audit_with(&account.user, |it| {
            it.verb == "watch" && it.stage == "ResponseComplete"
        })
        .await;
    check_asked(&asked[n_before..], &["roles-a", "roles-b"]);

    // One verb less, and the check names it.
    let admin = testbed.admin().await;
    let role = "/apis/rbac.authorization.k8s.io/v1/namespaces/roles-b/roles";
    let roles = get(&admin, role).await.unwrap();
    let name = roles["items"][0]["metadata"]["name"].as_str().unwrap();
    let patch = json!([{ "op": "replace", "path": "/rules/0/verbs", "value": ["list"] }]);
    let request = http::Request::patch(format!("{role}/{name}"))
        .header("content-type", "application/json-patch+json")
        .body(serde_json::to_vec(&patch).unwrap())
        .unwrap();
    admin.request_text(request).await.unwrap();
    let (is_well, checks) = until("that the server takes it up", || async {
        let (is_well, checks) = check(
            &folder.path().join("example/portent/portent.yaml"),
            &account.kubeconfig,
        );
        (!is_well).then_some((is_well, checks))
    })
    .await;
    assert!(!is_well);
    assert_eq!(
        failed(&checks),
        ["permission to watch Events in namespace roles-b"]
    );
}

/// Makes a pod that nothing schedules, labelled `app=APP,tier=a`.
async fn make_pod(admin: &Client, namespace: &str, name: &str, app: &str) {
    let pod = json!({
        "metadata": { "name": name, "labels": { "app": app, "tier": "a" } },
        "spec": { "containers": [{ "name": "main", "image": "image" }] },
    });
    post(admin, &format!("/api/v1/namespaces/{namespace}/pods"), &pod).await;
}

#[tokio::test]
async fn pods_are_asked_for_first_and_as_they_are_selected_and_a_check_knows_who_may() {
    let Some(plugins) = plugins() else { return };
    let Some(testbed) = Testbed::shared().await else {
        return;
    };
    let admin = testbed.admin().await;
    for it in ["pods-a", "pods-b"] {
        testbed.namespace(it, &[]).await;
        for (name, app) in [("one", "trainer"), ("two", "trainer"), ("other", "web")] {
            make_pod(&admin, it, name, app).await;
        }
    }
    let more = "pods:\n  selector: app=trainer,tier in (a,b)\n";
    let config = config(&["pods-a", "pods-b"], &plugins, more);
    let overlay = Overlay {
        namespace: "pods-watching",
        watched: &["pods-a", "pods-b"],
        config: &config,
        plugins: &[],
    };
    let folder = overlay.write();
    permit_pods(folder.path(), "pods-a");
    let example = folder.path().join("example");
    testbed.apply(&testbed.render(&example));
    let account = testbed.account("pods-watching", "portent").await;
    let client = testbed::client(&account.kubeconfig).await;
    for it in [
        "/api/v1/namespaces/pods-a/pods",
        "/apis/events.k8s.io/v1/namespaces/pods-b/events",
    ] {
        until("the permission", || async { get(&client, it).await.ok() }).await;
    }
    let n_before = testbed.audit(&account.user).len();

    let mut portent = Running::start(&config, &account.kubeconfig);
    portent.until_ready();
    assert_eq!(portent.metric("portent_pods_received_total", &[]), 2);
    let (_, text) = portent.get("/readyz?verbose");
    assert!(
        text.contains("watch pods in pods-b ok: refused (forbidden)"),
        "{text}"
    );
    // The pods of what it may read are watched, and so are the Events of both.
    make_pod(&admin, "pods-a", "three", "trainer").await;
    portent.until("the new pod", |it| {
        (it.metric("portent_pods_received_total", &[]) == 3).then_some(())
    });
    let of_both = ["pods-a", "pods-b"].map(|it| core_event(it, "Pod", "one", 1));
    testbed.write(of_both.into_iter()).await;
    portent.until("both Events", |it| {
        (it.metric("portent_events_received_total", &[]) == 2).then_some(())
    });
    let (_, checks) = check(&portent.config(), &account.kubeconfig);
    let forbidden =
        ["list", "watch"].map(|it| format!("permission to {it} Pods in namespace pods-b"));
    assert_eq!(failed(&checks), forbidden);
    let (status, _) = portent.terminate();
    assert!(status.success());

    let asked = testbed
        .audit_with(&account.user, |it| {
            it.verb == "watch" && it.stage == "ResponseComplete"
        })
        .await;
    let of = |it: &&Entry, resource: &str| {
        it.object_ref
            .as_ref()
            .is_some_and(|it| it.resource == resource)
    };
    let run = asked[n_before..].iter();
    let first = run.clone().position(|it| of(&it, "events")).unwrap();
    let answers: Vec<_> = run
        .clone()
        .take(first)
        .filter(|it| of(it, "pods") && it.verb == "list")
        .map(|it| {
            (
                &*it.object_ref.as_ref().unwrap().namespace,
                it.response_status.as_ref().unwrap().code,
            )
        })
        .collect();
    assert!(
        answers.contains(&("pods-a", 200)) && answers.contains(&("pods-b", 403)),
        "{answers:?}"
    );
    for it in run.filter(|it| of(it, "pods")) {
        let selector = "labelSelector=app%3Dtrainer%2Ctier+in+%28a%2Cb%29";
        assert!(it.uri.contains(selector), "{}", it.uri);
        assert!(["list", "watch"].contains(&&*it.verb), "{it:?}");
    }

    // With the component everywhere, nothing is wrong.
    permit_pods(folder.path(), "pods-b");
    testbed.apply(&testbed.render(&example));
    until("the permission", || async {
        get(&client, "/api/v1/namespaces/pods-b/pods").await.ok()
    })
    .await;
    let (is_well, checks) = check(&example.join("portent/portent.yaml"), &account.kubeconfig);
    assert!(is_well, "{checks:#?}");
}

#[tokio::test]
async fn a_check_tells_what_is_wrong_and_what_to_write_instead() {
    let Some(plugins) = plugins() else { return };
    let Some(testbed) = Testbed::shared().await else {
        return;
    };
    testbed.namespace("checked", &[]).await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("portent.yaml");
    let text = config(&["checked"], &plugins, "").replace(
        "  namespaces: [checked]\n",
        "  namespaces: [checked]\n  kinds: [Pod, pOD, Node, Namespace, Replicaset, Blob]\n",
    );
    // A kind that no one could spell so is no kind at all.
    std::fs::write(&path, &text).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_portent"))
        .args(["check", "--config"])
        .arg(&path)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        stderr.contains("portent.yaml:3:") && stderr.contains("`pOD` is no kind"),
        "{stderr}"
    );

    std::fs::write(&path, text.replace("pOD, ", "")).unwrap();
    let (is_well, checks) = check(&path, &testbed.kubeconfig());
    assert!(!is_well);
    assert_eq!(
        failed(&checks),
        ["kind Blob", "kind Namespace", "kind Replicaset"]
    );
    let said = |what: &str| {
        let it = checks.iter().find(|it| it["what"] == what).unwrap();
        it["said"].as_str().unwrap().to_owned()
    };
    assert!(said("kind Namespace").contains("scope.clusterScopedKinds"));
    assert!(said("kind Replicaset").contains("ReplicaSet"));
    assert!(said("version of the server").starts_with("v1."));
}

#[tokio::test]
async fn of_twenty_thousand_events_it_holds_the_one_in_a_hundred_of_its_scope() {
    let Some(plugins) = plugins() else { return };
    let Some(testbed) = Testbed::shared().await else {
        return;
    };
    for it in ["many", "few"] {
        testbed.namespace(it, &[]).await;
    }
    let out = (0..19_700).map(|n| core_event("many", "Pod", &format!("p{}", n / 5), n));
    let other_kind = (0..100).map(|n| core_event("few", "Job", &format!("j{n}"), n));
    let own = (0..200).map(|n| core_event("few", "Pod", &format!("p{}", n / 5), n));
    testbed.write(out.chain(other_kind).chain(own)).await;

    let portent = Running::start(&config(&["few"], &plugins, ""), &testbed.kubeconfig());
    portent.until_ready();
    portent.until("all subjects classified", |it| {
        let is_idle = it.metric("portent_subjects_waiting", &[]) == 0;
        (is_idle && it.metric("portent_outcomes", &[]) == 40).then_some(())
    });
    let rss = portent.peak_rss();
    println!("200 of 20,000 Events in scope: peak RSS {} MiB", rss >> 20);
    assert_eq!(portent.metric("portent_records", &[]), 200);
    assert_eq!(portent.metric("portent_events_received_total", &[]), 200);
    // The server selects: nothing else ever comes here.
    assert_eq!(portent.metric("portent_events_out_of_scope_total", &[]), 0);
    assert!(rss < 100 << 20, "{rss} bytes");

    // For as long as the watch lasts there is no further LIST.
    let new = (200..400).map(|n| core_event("few", "Pod", &format!("p{}", n / 5), n));
    testbed.write(new).await;
    portent.until("the new ones", |it| {
        (it.metric("portent_records", &[]) == 400).then_some(())
    });
    assert_eq!(portent.metric("portent_watch_lists_total", &[]), 1);
    assert_eq!(portent.metric("portent_watch_starts_total", &[]), 1);
}

#[tokio::test]
async fn the_events_of_the_scheduler_arrive_are_updated_and_come_once() {
    let Some(plugins) = plugins() else { return };
    let Some(testbed) = Testbed::shared().await else {
        return;
    };
    testbed.namespace("scheduled", &[]).await;
    testbed.schedule().await;
    let portent = Running::start(&config(&["scheduled"], &plugins, ""), &testbed.kubeconfig());
    portent.until_ready();
    let admin = testbed.admin().await;
    let pod = json!({
        "metadata": { "name": "wants-much", "namespace": "scheduled" },
        "spec": { "containers": [{
            "name": "main", "image": "none",
            "resources": { "limits": { "nvidia.com/gpu": "8" } },
        }]},
    });
    let path = "/api/v1/namespaces/scheduled/pods";
    post(&admin, path, &pod).await;
    portent.until("FailedScheduling", |it| {
        let changes = it.changes();
        let mut reasons = changes
            .iter()
            .flat_map(|it| it["additionalReasons"].as_array().unwrap());
        reasons
            .any(|it| it["event"]["reason"] == "FailedScheduling")
            .then_some(())
    });
    // The API server's own series update is minutes away; one of ours is the same to a watch.
    let events = listed(&admin, "scheduled").await;
    let [name] = &events[..] else {
        panic!("one Event is wanted: {events:?}")
    };
    let series =
        json!({ "series": { "count": 7, "lastObservedTime": "2026-01-01T00:00:00.000000Z" } });
    let path = format!("/apis/events.k8s.io/v1/namespaces/scheduled/events/{name}");
    let request = http::Request::patch(path)
        .header("content-type", "application/merge-patch+json")
        .body(serde_json::to_vec(&series).unwrap())
        .unwrap();
    admin.request_text(request).await.unwrap();
    portent.until("the update", |it| {
        (it.metric("portent_events_merged_total", &[]) == 1).then_some(())
    });
    assert_eq!(portent.metric("portent_records", &[]), 1);
    assert_eq!(portent.metric("portent_events_stored_total", &[]), 1);
}

#[tokio::test]
async fn what_the_server_forgets_is_forgotten_here_even_when_the_news_is_cut_off() {
    let Some(plugins) = plugins() else { return };
    let options = Options {
        event_ttl: Duration::from_secs(20),
        ..Options::default()
    };
    let Some(testbed) = Testbed::start(options).await else {
        return;
    };
    testbed.namespace("expiring", &[]).await;
    testbed
        .write((0..50).map(|n| core_event("expiring", "Pod", &format!("p{n}"), n)))
        .await;
    // One sees the server's own deletions; the other is cut off at the first of them, every time, and
    // has its own clock.
    let proxy = cutting_proxy(testbed.kubeconfig());
    let direct = Running::start(&config(&["expiring"], &plugins, ""), &testbed.kubeconfig());
    let more = "store:\n  timeToLive: 35s\nwatch:\n  backoffMax: 1s\n";
    let cut = Running::start(&config(&["expiring"], &plugins, more), &proxy.kubeconfig);
    direct.until_ready();
    cut.until_ready();
    assert_eq!(direct.metric("portent_records", &[]), 50);
    assert_eq!(cut.metric("portent_records", &[]), 50);

    for it in [&direct, &cut] {
        it.until("that nothing is left", |it| {
            (it.metric("portent_records", &[]) == 0).then_some(())
        });
        assert_eq!(it.metric("portent_buckets", &[]), 0);
        assert_eq!(it.metric("portent_store_bytes", &[]), 0);
    }
    assert_eq!(
        direct.metric("portent_records_removed_total", &["deleted"]),
        50
    );
    let own = cut.metric("portent_records_removed_total", &["expired"])
        + cut.metric("portent_records_removed_total", &["swept"]);
    println!("of 50 Events of a lease whose news was cut off, {own} went by our own means");
    assert!(0 < own);
}

/// A proxy, over plain HTTP, that ends a watch behind the first DELETED of it.
struct CuttingProxy {
    kubeconfig: PathBuf,
    _folder: tempfile::TempDir,
}

fn cutting_proxy(upstream: PathBuf) -> CuttingProxy {
    use axum::{Router, body::Body, extract::Request, response::Response};
    use http_body_util::BodyExt as _;

    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    let forward = |client: Client, request: Request| async move {
        let uri = request.uri().path_and_query().unwrap().to_string();
        let request = http::Request::get(uri)
            .body(kube::client::Body::empty())
            .unwrap();
        let (parts, body) = client.send(request).await.unwrap().into_parts();
        let frames =
            futures_util::stream::unfold((body, false), |(mut body, is_over)| async move {
                if is_over {
                    return None;
                }
                let data = body.frame().await?.ok()?.into_data().ok()?;
                let end = data
                    .windows(9)
                    .position(|it| it == b"\"DELETED\"")
                    .map(|at| {
                        at + data[at..]
                            .iter()
                            .position(|it| *it == b'\n')
                            .map_or(0, |it| it + 1)
                    });
                let piece = end.map_or_else(|| data.clone(), |end| data.slice(..end));
                Some((Ok::<_, std::io::Error>(piece), (body, end.is_some())))
            });
        Response::from_parts(parts, Body::from_stream(frames))
    };
    // It ends with the process of the test.
    in_background(async move {
        let client = testbed::client(&upstream).await;
        let app = Router::new().fallback(move |request| forward(client.clone(), request));
        let listener = tokio::net::TcpListener::from_std(listener).unwrap();
        axum::serve(listener, app).await.unwrap();
    });
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    let text = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "x",
        "clusters": [{ "name": "c", "cluster": { "server": format!("http://{address}") } }],
        "users": [{ "name": "u", "user": {} }],
        "contexts": [{ "name": "x", "context": { "cluster": "c", "user": "u" } }],
    });
    std::fs::write(&kubeconfig, text.to_string()).unwrap();
    CuttingProxy {
        kubeconfig,
        _folder: folder,
    }
}

#[tokio::test]
async fn a_quiet_namespace_whose_version_is_compacted_misses_and_repeats_nothing() {
    let Some(plugins) = plugins() else { return };
    let options = Options {
        compaction: Duration::from_secs(15),
        ..Options::default()
    };
    let Some(testbed) = Testbed::start(options).await else {
        return;
    };
    for it in ["quiet", "busy"] {
        testbed.namespace(it, &[]).await;
    }
    testbed
        .write((0..5).map(|n| core_event("quiet", "Pod", "p", n)))
        .await;
    let more = "watch:\n  timeout: 20s\n  backoffMax: 1s\n";
    let portent = Running::start(&config(&["quiet"], &plugins, more), &testbed.kubeconfig());
    portent.until_ready();
    // What is written elsewhere moves the version on; what is written here, just then, must arrive.
    let began = Instant::now();
    let mut n = 5;
    let mut never_unready = true;
    let mut n_lists = 1;
    while portent.metric("portent_watch_failures_total", &["gone"]) < 2 {
        testbed.write([core_event("busy", "Pod", "p", n)]).await;
        let n_lists_now = portent.metric("portent_watch_lists_total", &[]);
        if n_lists < n_lists_now {
            n_lists = n_lists_now;
            testbed.write([core_event("quiet", "Pod", "p", n)]).await;
        }
        n += 1;
        never_unready &= portent.is_ready();
        assert!(
            began.elapsed() < Duration::from_mins(3),
            "{:?}",
            portent.get("/metrics")
        );
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let admin = testbed.admin().await;
    let wanted = listed(&admin, "quiet").await;
    portent.until("every Event, once", |it| {
        let told = told(it);
        (told.len() == wanted.len()).then_some(())
    });
    assert!(
        told(&portent).values().all(|n| *n == 1),
        "{:?}",
        told(&portent)
    );
    assert!(never_unready);
    let gone = portent.metric("portent_watch_failures_total", &["gone"]);
    println!(
        "{gone} times 410 in {:.0?}, {} Events told of once each",
        began.elapsed(),
        wanted.len()
    );
}

#[tokio::test]
async fn after_a_crash_of_the_server_it_holds_what_a_list_has_and_told_of_each_once() {
    let Some(plugins) = plugins() else { return };
    let Some(mut testbed) = Testbed::start(Options::default()).await else {
        return;
    };
    testbed.namespace("crashing", &[]).await;
    let more = "watch:\n  backoffMax: 2s\n";
    let portent = Running::start(
        &config(&["crashing"], &plugins, more),
        &testbed.kubeconfig(),
    );
    portent.until_ready();

    // 200 a second, until it is over: what fails while the server is down is never written.
    let kubeconfig = testbed.kubeconfig();
    let is_over = Arc::new(AtomicBool::new(false));
    let until_over = Arc::clone(&is_over);
    let writer = in_background(async move {
        let client = testbed::client(&kubeconfig).await;
        let mut n = 0;
        let mut every = tokio::time::interval(Duration::from_millis(5));
        while !until_over.load(Relaxed) {
            every.tick().await;
            let event = core_event("crashing", "Pod", &format!("p{}", n / 5), n);
            let request = http::Request::post("/api/v1/namespaces/crashing/events")
                .header("content-type", "application/json")
                .body(serde_json::to_vec(&event).unwrap())
                .unwrap();
            let client = client.clone();
            tokio::spawn(async move { client.request_text(request).await.ok() });
            n += 1;
        }
        n
    });
    tokio::time::sleep(Duration::from_secs(3)).await;
    let admin = testbed.admin().await;
    // Deletions, too: those that it does not hear of while it is cut off.
    for it in listed(&admin, "crashing").await.iter().take(20) {
        delete(&admin, "crashing", it).await;
    }
    let doomed: Vec<_> = listed(&admin, "crashing")
        .await
        .into_iter()
        .take(20)
        .collect();
    testbed.kill_apiserver();
    tokio::time::sleep(Duration::from_secs(2)).await;
    testbed.start_apiserver().await;
    let admin = testbed.admin().await;
    for it in &doomed {
        delete(&admin, "crashing", it).await;
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    is_over.store(true, Relaxed);
    let n_tried: usize = writer.join().unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;

    let wanted = listed(&admin, "crashing").await;
    let began = Instant::now();
    portent.until("what a LIST has", |it| {
        (it.metric("portent_records", &[]) == wanted.len() as u64).then_some(())
    });
    let took = began.elapsed();
    println!(
        "{n_tried} Events tried over a crash, {} are there, equal after {took:.1?}",
        wanted.len()
    );
    assert!(took < Duration::from_secs(10), "{took:?}");
    portent.until("that all is told", |it| {
        (it.metric("portent_subjects_waiting", &[]) == 0).then_some(())
    });
    let told = told(&portent);
    assert!(told.values().all(|n| *n == 1), "told twice: {told:?}");
    assert!(wanted.iter().all(|it| told.contains_key(it)));
}
