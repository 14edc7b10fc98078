//! `portent explain`: from recordings, and of a real API server with the rights that somebody has.
//!
//! The plugins are the repo's own, built by `cargo xtask plugins`; without them these tests are skipped.

#![allow(clippy::unwrap_used, reason = "a test says what went wrong by failing")]

mod support;

use std::{
    path::Path,
    process::Output,
    time::{Duration, Instant},
};

use kube::Client;
use serde_json::{Value, json};
use support::{
    apiserver::{Answer, Apiserver, kubeconfig},
    failed::{
        HOSTILE, NAMESPACE, at, ended, failed, lines, list, on_node, on_pod, on_ray_cluster,
        ordinary, owned_by, pod, uid,
    },
    running::plugins,
    testbed::{Account, Entry, Testbed, post, until},
};
use tempfile::TempDir;

/// A folder with `events.json` and `pods.json`.
fn recorded(events: &[Value], pods: &[Value]) -> TempDir {
    let files = [("events.json", events), ("pods.json", pods)];
    support::directory(files.map(|(name, of)| (name, list(of).into_bytes())))
}

fn explain(plugins: &Path, args: &[&str]) -> Output {
    let plugins = plugins.display().to_string();
    support::portent(["explain", "--plugins", &plugins].iter().chain(args))
}

/// Explains from the files of a folder.
fn explain_recorded(plugins: &Path, folder: &TempDir, args: &[&str]) -> Output {
    let [events, pods] =
        ["events.json", "pods.json"].map(|it| folder.path().join(it).display().to_string());
    let files = ["-n", NAMESPACE, "--file", &events, "--pods", &pods];
    explain(plugins, &[&files[..], args].concat())
}

/// What it prints for people; it must succeed and complain of nothing.
#[track_caller]
fn text(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", stderr(output));
    assert_eq!(stderr(output), "");
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// What it prints for programs: it is as the schema says.
#[track_caller]
fn json_of(output: &Output) -> Value {
    let it: Value = serde_json::from_str(&text(output)).unwrap();
    let schema = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../docs/schema/explain.schema.json"
    );
    let schema = serde_json::from_slice(&std::fs::read(schema).unwrap()).unwrap();
    if let Err(err) = jsonschema::validate(&schema, &it) {
        panic!("{err}: {it:#}");
    }
    it
}

#[track_caller]
fn json_recorded(plugins: &Path, folder: &TempDir, args: &[&str]) -> Value {
    json_of(&explain_recorded(
        plugins,
        folder,
        &[args, &["-o", "json"]].concat(),
    ))
}

/// It ends with 2 and these words.
#[track_caller]
fn check_refused(output: &Output, words: &str) {
    assert_eq!(output.status.code(), Some(2), "{}", stderr(output));
    assert!(stderr(output).contains(words), "{}", stderr(output));
    assert!(output.stdout.is_empty());
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The names of the Events that findings rest on.
fn evidence(it: &Value) -> Vec<&str> {
    let evidence = it["evidence"].as_array().unwrap().iter();
    evidence.map(|it| it["name"].as_str().unwrap()).collect()
}

fn evidence_by_name(it: &Value) -> Vec<&str> {
    let mut names = evidence(it);
    names.sort_unstable();
    names
}

/// A worker of a `RayCluster` that failed, with something said of everyone.
fn rich() -> TempDir {
    let mut worker = owned_by(
        failed("worker", "gpu-1", "09:00:00"),
        "RayCluster",
        "cluster",
    );
    let how = &mut worker["status"]["containerStatuses"][0]["state"]["terminated"];
    how["message"] = "CUDA error: unspecified launch failure".into();
    let mut said_often = on_node("npd", "gpu-1", "08:57:00");
    said_often["count"] = 3.into();
    said_often["lastTimestamp"] = at("08:59:10").into();
    let events = [
        on_ray_cluster("ray", "cluster", "gpu-1", "08:57:20"),
        said_often,
        on_pod("flyte", "worker", "gpu-1", "08:58:00"),
        ordinary("back-off", "worker", "gpu-1", "08:59:30"),
        ordinary("of-another", "other", "gpu-1", "08:59:30"),
        on_node("of-another-node", "gpu-2", "08:59:30"),
    ];
    recorded(&events, &[worker, failed("other", "gpu-1", "09:00:00")])
}

#[test]
fn a_failed_pod_is_explained_for_people_and_for_programs() {
    let Some(plugins) = plugins() else { return };
    let folder = rich();
    let shown = text(&explain_recorded(&plugins, &folder, &["pod/worker"]));
    insta::assert_snapshot!("rich", shown);
    for other in ["worker", "po/worker", "pods/worker", "Pod/worker"] {
        assert_eq!(
            text(&explain_recorded(&plugins, &folder, &[other])),
            shown,
            "{other}"
        );
    }

    let it = json_recorded(&plugins, &folder, &["pod/worker"]);
    assert_eq!(
        it["object"],
        json!({ "kind": "Pod", "namespace": NAMESPACE, "name": "worker", "uid": uid("worker") })
    );
    let owner = json!({
        "kind": "RayCluster", "namespace": NAMESPACE, "name": "cluster", "uid": uid("cluster"),
    });
    assert_eq!(
        it["pod"],
        json!({ "phase": "Failed", "node": "gpu-1", "owner": owner })
    );
    assert_eq!(
        it["failure"],
        json!({
            "code": "Error",
            "message": "CUDA error: unspecified launch failure",
            "at": at("09:00:00"),
        })
    );
    assert_eq!(it["verdict"]["attributes"]["rule"], "first-critical");
    assert_eq!(it["elements"].as_array().unwrap().len(), 2);
    assert_eq!(evidence(&it), ["npd", "flyte", "ray"]);
    let npd = &it["evidence"][0];
    assert_eq!(npd["regarding"]["kind"], "Node");
    assert_eq!(
        (&npd["count"], &npd["lastSeen"]),
        (&json!(3), &json!(at("08:59:10")))
    );
    assert_eq!((&it["events"], &it["hidden"]), (&json!(4), &json!([])));
}

#[test]
fn a_node_and_any_other_kind_have_events_and_a_verdict_if_somebody_says_how_they_failed() {
    let Some(plugins) = plugins() else { return };
    let folder = rich();
    let it = json_recorded(&plugins, &folder, &["node/gpu-1"]);
    let node = json!({ "kind": "Node", "namespace": "", "name": "gpu-1", "uid": "gpu-1" });
    assert_eq!(it["object"], node);
    assert_eq!(evidence(&it), ["npd"]);
    for key in ["pod", "failure", "verdict"] {
        assert_eq!(it[key], Value::Null, "{key}");
    }
    let shown = text(&explain_recorded(&plugins, &folder, &["node/gpu-1"]));
    assert!(
        shown.contains(
            "No verdict: it is not known what it failed with; if you know, say --failure CODE."
        ),
        "{shown}"
    );
    let it = json_recorded(&plugins, &folder, &["RayCluster/cluster", "--failure", "7"]);
    assert_eq!(evidence(&it), ["ray"]);
    assert_eq!(
        it["failure"],
        json!({ "code": "7", "message": "", "at": at("08:57:21") })
    );
    assert_eq!(it["verdict"]["attributes"]["rule"], "first-critical");
}

#[test]
fn a_wrong_argument_is_taught_and_nothing_is_done() {
    let Some(plugins) = plugins() else { return };
    let folder = rich();
    for (object, words) in [
        (
            "deployment/x",
            "deployment/x: write pod/NAME, node/NAME, or the kind as its manifest has it, as in Job/NAME",
        ),
        (
            "/x",
            "/x: write pod/NAME, node/NAME, or the kind as its manifest has it, as in Job/NAME",
        ),
        (
            "pod/",
            "pod/: a name has letters, digits, `-`, `.` and `:`, for example pod/train-0",
        ),
        ("pod/a/b", "pod/a/b: a name has letters"),
        ("pod/..", "pod/..: a name has letters"),
        ("pod/a?b", "pod/a?b: a name has letters"),
    ] {
        check_refused(&explain_recorded(&plugins, &folder, &[object]), words);
    }
    let long = "x".repeat(254);
    check_refused(
        &explain_recorded(&plugins, &folder, &[&long]),
        "a name or a namespace is too long",
    );
    check_refused(
        &explain_recorded(&plugins, &folder, &["x", "--failure", ""]),
        "--failure: a code has between 1 and 253 bytes",
    );
    let events = folder.path().join("events.json").display().to_string();
    check_refused(
        &explain(&plugins, &["x", "-n", "Not_One", "--file", &events]),
        "--namespace: ",
    );
    check_refused(&explain(&plugins, &["x", "--pods", &events]), "--file");
    check_refused(
        &explain(Path::new("no-such-folder"), &["x", "--file", &events]),
        "cannot read the plugin folder no-such-folder; name one that holds NAME.wasm files with --plugins DIR",
    );
}

#[test]
fn a_file_that_cannot_be_read_or_holds_none_of_what_it_should_is_an_error() {
    let Some(plugins) = plugins() else { return };
    let folder = rich();
    let [events, pods] =
        ["events.json", "pods.json"].map(|it| folder.path().join(it).display().to_string());
    let check = |args: &[&str], words: &str| {
        check_refused(
            &explain(&plugins, &[&["worker", "-n", NAMESPACE], args].concat()),
            words,
        );
    };
    check(
        &["--file", "no-such-file"],
        "--file: cannot read no-such-file",
    );
    check(
        &["--file", &events, "--pods", "no-such-file"],
        "--pods: cannot read no-such-file",
    );
    // Each in the place of the other.
    check(
        &["--file", &pods],
        "pods.json: it holds no Event that can be read",
    );
    check(
        &["--file", &events, "--pods", &events],
        "events.json: it holds no Pod that can be read",
    );
}

#[test]
fn of_a_pod_that_is_gone_the_newest_of_its_name_is_explained() {
    let Some(plugins) = plugins() else { return };
    let mut old = on_pod("old", "train-0", "gpu-1", "08:00:00");
    old["involvedObject"]["uid"] = "uid-before".into();
    let new = [
        on_pod("new", "train-0", "gpu-2", "09:00:00"),
        ordinary("new-too", "train-0", "gpu-2", "09:00:10"),
    ];
    let events = [&[old], &new[..]].concat();
    let folder = support::directory([("events.json", lines(&events).into_bytes())]);
    let events = folder.path().join("events.json").display().to_string();
    let args = ["pod/train-0", "-n", NAMESPACE, "--file", &events];
    let it = json_of(&explain(&plugins, &[&args[..], &["-o", "json"]].concat()));
    assert_eq!(it["object"]["uid"], uid("train-0"));
    assert_eq!((evidence(&it), &it["events"]), (vec!["new"], &json!(2)));
    assert_eq!((&it["pod"], &it["failure"]), (&Value::Null, &Value::Null));
    let hidden = json!([{
        "what": format!("the pod {NAMESPACE}/Pod/train-0"),
        "why": "no --pods is given, which its node, its owner and its failure would be known by",
    }]);
    assert_eq!(it["hidden"], hidden);
    let with_code = [&args[..], &["--failure", "137", "-o", "json"]].concat();
    let it = json_of(&explain(&plugins, &with_code));
    assert_eq!(it["failure"]["at"], at("09:00:11"));
    assert_eq!(it["verdict"]["code"], "GpuFallenOffBus");
}

#[test]
fn what_the_caller_says_it_failed_with_takes_the_place_of_what_the_pod_says() {
    let Some(plugins) = plugins() else { return };
    let folder = rich();
    let it = json_recorded(&plugins, &folder, &["worker", "--failure", "UserCode"]);
    assert_eq!(it["failure"]["code"], "UserCode");
    assert_eq!(it["failure"]["at"], at("09:00:00"));
    assert_eq!(it["verdict"]["failure"]["code"], "UserCode");
    // A code that says something is not replaced.
    assert_eq!(it["verdict"]["code"], "UserCode");
    // Of whom nothing is said the time is not known, nor is there a verdict.
    let empty = recorded(&[], &[pod("worker", "gpu-1", "Running")]);
    let it = json_recorded(&plugins, &empty, &["worker", "--failure", "9"]);
    assert_eq!(
        (&it["failure"]["code"], &it["verdict"]),
        (&json!("9"), &Value::Null)
    );
}

#[test]
fn an_event_that_is_deleted_in_a_recording_was_said_all_the_same() {
    let Some(plugins) = plugins() else { return };
    let mut fault = on_pod("fault", "train-0", "gpu-1", "08:59:00");
    for key in ["metadata", "involvedObject"] {
        fault[key]["namespace"] = "default".into();
    }
    let frames = ["ADDED", "DELETED"].map(|it| json!({ "type": it, "object": fault }));
    let folder = support::directory([("events.json", lines(&frames).into_bytes())]);
    let events = folder.path().join("events.json").display().to_string();
    // Without a namespace it is about this one.
    let it = json_of(&explain(
        &plugins,
        &["train-0", "--file", &events, "-o", "json"],
    ));
    assert_eq!(it["object"]["namespace"], "default");
    assert_eq!(evidence(&it), ["fault"]);
}

#[test]
fn what_has_no_findings_or_is_not_there_says_so() {
    let Some(plugins) = plugins() else { return };
    let folder = recorded(
        &[ordinary("back-off", "runs", "gpu-1", "08:59:30")],
        &[
            pod("runs", "gpu-1", "Running"),
            failed("fails", "gpu-1", "09:00:00"),
        ],
    );
    let shown = |name: &str| text(&explain_recorded(&plugins, &folder, &[name]));
    assert_eq!(
        shown("runs"),
        "ml-team/Pod/runs: Running, on gpu-1\n\n\
         No verdict: as far as is known it did not fail; if you know better, say --failure CODE.\n\n\
         No findings in 1 Event.\n\n\
         What was said of it, in order\n  11-28 08:59:30Z  Back-off restarting failed container main\n"
    );
    assert_eq!(
        shown("fails"),
        "ml-team/Pod/fails: Failed, on gpu-1\n\
         failed with Error at 11-28 09:00:00Z: container main exited with 137\n\n\
         No verdict: no plugin has an opinion on this failure.\n\n\
         No findings in 0 Events.\n"
    );
    assert_eq!(
        shown("misspelt"),
        "ml-team/Pod/misspelt\n\n\
         No verdict: it is not known what it failed with; if you know, say --failure CODE.\n\n\
         No Event of it is known. Are its name and its namespace right?\n\n\
         Not looked at\n  the pod ml-team/Pod/misspelt: it is not in --pods, which its node, its owner and its \
         failure would be known by\n"
    );
}

#[test]
fn of_very_many_events_the_newest_are_looked_at_and_the_rest_is_counted() {
    let Some(plugins) = plugins() else { return };
    // A LIST is in the order of names: here the oldest comes last.
    let mut events: Vec<_> = (0..300)
        .map(|n| {
            let time = format!("08:{:02}:{:02}", 50 + n / 60, n % 60);
            ordinary(&format!("e-{:03}", 300 - n), "train-0", "gpu-1", &time)
        })
        .collect();
    events.reverse();
    events.push(on_pod("fault", "train-0", "gpu-1", "08:59:00"));
    events.push(on_pod("z-old", "train-0", "gpu-1", "08:45:00"));
    let folder = recorded(&events, &[failed("train-0", "gpu-1", "09:00:00")]);
    let it = json_recorded(&plugins, &folder, &["train-0"]);
    assert_eq!(it["elements"].as_array().unwrap().len(), 2);
    assert_eq!((evidence(&it), &it["events"]), (vec!["fault"], &json!(256)));
    assert_eq!(it["verdict"]["attributes"]["rule"], "first-critical");
    let hidden = json!([{
        "what": "46 older Events",
        "why": "of one object the newest 256 are looked at",
    }]);
    assert_eq!(it["hidden"], hidden);
}

#[test]
fn events_that_name_no_uid_are_the_pods_and_so_is_its_nodes_fault() {
    let Some(plugins) = plugins() else { return };
    let mut unnamed = ordinary("unnamed", "train-0", "gpu-1", "08:59:30");
    unnamed["involvedObject"]["uid"] = Value::Null;
    let events = [unnamed, on_node("npd", "gpu-1", "08:59:00")];
    let folder = recorded(&events, &[failed("train-0", "gpu-1", "09:00:00")]);
    let it = json_recorded(&plugins, &folder, &["train-0"]);
    let by = it["elements"].as_array().unwrap().iter();
    let by: Vec<_> = by.map(|it| &it["classifier"]["name"]).collect();
    assert_eq!(by, ["additional-reasons", "gpu-fault"]);
    assert_eq!(
        it["elements"][0]["outcome"]["additionalReasons"][0]["event"]["name"],
        "unnamed"
    );
    assert_eq!(it["verdict"]["attributes"]["rule"], "first-critical");
}

#[test]
fn a_static_pod_that_its_node_owns_has_its_nodes_events_once() {
    let Some(plugins) = plugins() else { return };
    let pod = owned_by(failed("static", "gpu-1", "09:00:00"), "Node", "gpu-1");
    let folder = recorded(&[on_node("npd", "gpu-1", "08:59:00")], &[pod]);
    let it = json_recorded(&plugins, &folder, &["static"]);
    assert_eq!((evidence(&it), &it["events"]), (vec!["npd"], &json!(1)));
    assert_eq!(
        it["elements"][0]["outcome"]["findings"][0]["evidence"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

#[test]
fn hostile_text_is_shown_and_never_obeyed() {
    let Some(plugins) = plugins() else { return };
    let mut pod = owned_by(
        failed("train-0", &format!("n{HOSTILE}"), "09:00:00"),
        HOSTILE,
        HOSTILE,
    );
    let mut how = ended(1, HOSTILE, "09:00:00");
    how["message"] = HOSTILE.into();
    pod["status"]["containerStatuses"][0]["state"]["terminated"] = how;
    let mut event = ordinary("own", "train-0", &format!("n{HOSTILE}"), "08:59:30");
    event["message"] = HOSTILE.into();
    event["reason"] = HOSTILE.into();
    let node = on_node("npd", &format!("n{HOSTILE}"), "08:59:00");
    let folder = recorded(&[event, node], &[pod]);
    let shown = text(&explain_recorded(&plugins, &folder, &["train-0"]));
    assert!(
        shown.contains("failed with \\u{202e}evil\\u{1b}[2J"),
        "{shown}"
    );
    assert!(shown.contains("not on node n\\u{202e}evil"), "{shown}");
    let obeyed = |it: char| it.is_control() && it != '\n' || "\u{202e}\u{200b}".contains(it);
    assert!(!shown.contains(obeyed), "{shown:?}");
    // For programs it is what it was.
    let it = json_recorded(&plugins, &folder, &["train-0"]);
    assert_eq!(it["failure"]["code"], HOSTILE);
}

#[test]
fn a_cluster_that_does_not_answer_is_an_error_within_its_deadline() {
    let Some(plugins) = plugins() else { return };
    let silent = Apiserver::start(|_| Answer::Silence);
    let (_folder, path) = silent.kubeconfig();
    let began = Instant::now();
    let path = path.display().to_string();
    check_refused(
        &explain(&plugins, &["pod/x", "--kubeconfig", &path]),
        "the cluster cannot be asked: deadline: no answer within 30s",
    );
    // Not a deadline for each question.
    assert!(
        began.elapsed() < Duration::from_secs(50),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(silent.asked().len(), 1);
}

#[test]
fn a_cluster_that_is_not_there_is_an_error_at_once() {
    let Some(plugins) = plugins() else { return };
    // Nobody listens where somebody listened just now.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let (_folder, path) = kubeconfig(&format!("http://{address}"));
    let path = path.display().to_string();
    check_refused(
        &explain(&plugins, &["pod/x", "--kubeconfig", &path]),
        "the cluster cannot be asked: transport: ",
    );
    check_refused(
        &explain(&plugins, &["pod/x", "--kubeconfig", "no-such-file"]),
        "the kubeconfig cannot be used: ",
    );
}

/// Permits an account something, and waits until the server knows.
async fn permit(admin: &Client, user: &str, namespace: &str, [group, resource, verb]: [&str; 3]) {
    let name = format!("{}-{verb}-{resource}", user.replace(':', "-"));
    let rbac = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}");
    let role = json!({
        "metadata": { "name": name },
        "rules": [{ "apiGroups": [group], "resources": [resource], "verbs": [verb] }],
    });
    post(admin, &format!("{rbac}/roles"), &role).await;
    let binding = json!({
        "metadata": { "name": name },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name },
        "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user }],
    });
    post(admin, &format!("{rbac}/rolebindings"), &binding).await;
    let review = json!({ "spec": { "user": user, "resourceAttributes": {
        "namespace": namespace, "group": group, "resource": resource, "verb": verb,
    } } });
    until("the permission", || async {
        let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
        let answer = post(admin, path, &review).await;
        (answer["status"]["allowed"] == true).then_some(())
    })
    .await;
}

const GET_PODS: [&str; 3] = ["", "pods", "get"];
const LIST_EVENTS: [&str; 3] = ["events.k8s.io", "events", "list"];

/// Makes the pod `worker` of `rich`, failed, and what is said of it; its node is of the same name as the namespace.
async fn make_failed(testbed: &Testbed, namespace: &str) {
    let admin = testbed.admin().await;
    let pods = format!("/api/v1/namespaces/{namespace}/pods");
    let mut pod = owned_by(
        failed("worker", namespace, "09:00:00"),
        "RayCluster",
        "cluster",
    );
    pod["metadata"]["namespace"] = namespace.into();
    pod["metadata"]["ownerReferences"][0]["uid"] = "00000000-0000-4000-8000-000000000001".into();
    let made = post(&admin, &pods, &pod).await;
    // The server stamps what it stores.
    let now = &made["metadata"]["creationTimestamp"];
    pod["status"]["containerStatuses"][0]["state"]["terminated"]["finishedAt"] = now.clone();
    let status = json!({ "status": pod["status"] });
    let request = http::Request::patch(format!("{pods}/worker/status"))
        .header("content-type", "application/merge-patch+json")
        .body(serde_json::to_vec(&status).unwrap())
        .unwrap();
    admin.request_text(request).await.unwrap();

    let mut own = on_pod("own", "worker", namespace, "08:59:00");
    own["involvedObject"]["uid"] = made["metadata"]["uid"].clone();
    let mut of_owner = on_ray_cluster("ray", "cluster", namespace, "08:58:00");
    of_owner["involvedObject"]["uid"] = pod["metadata"]["ownerReferences"][0]["uid"].clone();
    // Of another pod, and of another node: nobody asks for these.
    let other = on_pod("other", "other", namespace, "08:59:00");
    let mut events = vec![own, of_owner, other];
    for it in &mut events {
        it["metadata"]["namespace"] = namespace.into();
        it["involvedObject"]["namespace"] = namespace.into();
    }
    events.push(on_node(&format!("npd-{namespace}"), namespace, "08:57:00"));
    events.push(on_node(
        &format!("npd-other-{namespace}"),
        "elsewhere",
        "08:57:00",
    ));
    for it in &mut events {
        it["metadata"].as_object_mut().unwrap().remove("uid");
        for key in ["firstTimestamp", "lastTimestamp"] {
            it[key] = now.clone();
        }
    }
    testbed.write(events).await;
}

fn explain_as(plugins: &Path, account: &Account, namespace: &str, more: &[&str]) -> Output {
    let kubeconfig = account.kubeconfig.display().to_string();
    let args = ["pod/worker", "-n", namespace, "--kubeconfig", &kubeconfig];
    explain(plugins, &[&args[..], more].concat())
}

/// What is hidden, and the rights that it takes.
fn hidden(it: &Value) -> Vec<(&str, &str)> {
    let hidden = it["hidden"].as_array().unwrap().iter();
    let hidden = hidden.map(|it| (it["what"].as_str().unwrap(), it["why"].as_str().unwrap()));
    hidden.collect()
}

#[tokio::test]
async fn a_cluster_is_asked_for_one_pod_and_what_is_said_of_it_and_its_own_and_nothing_else() {
    let Some(plugins) = plugins() else { return };
    let Some(testbed) = Testbed::shared().await else {
        return;
    };
    let namespace = "explained";
    testbed.namespace(namespace, &[]).await;
    testbed.make_account(namespace, "all").await;
    let account = testbed.account(namespace, "all").await;
    let admin = testbed.admin().await;
    permit(&admin, &account.user, namespace, GET_PODS).await;
    permit(&admin, &account.user, namespace, LIST_EVENTS).await;
    permit(&admin, &account.user, "default", LIST_EVENTS).await;
    make_failed(&testbed, namespace).await;

    let it = json_of(&explain_as(&plugins, &account, namespace, &["-o", "json"]));
    assert_eq!(hidden(&it), []);
    assert_eq!(evidence_by_name(&it), ["npd-explained", "own", "ray"]);
    assert_eq!(it["events"], 3);
    assert_eq!(it["pod"]["node"], namespace);
    assert_eq!(it["failure"]["code"], "Error");
    assert_eq!(it["verdict"]["attributes"]["rule"], "first-critical");
    assert_eq!(it["verdict"]["retry"], "elsewhere");

    let asked = until("all that was asked", || async {
        let asked = testbed.audit(&account.user);
        (4 <= asked.len()).then_some(asked)
    })
    .await;
    let asked: Vec<_> = asked.iter().map(said_of).collect();
    let events = |namespace: &str, kind: &str, name: &str| {
        format!(
            "list /apis/events.k8s.io/v1/namespaces/{namespace}/events \
             regarding.kind={kind},regarding.name={name}"
        )
    };
    assert_eq!(
        asked,
        [
            format!("get /api/v1/namespaces/{namespace}/pods/worker "),
            events(namespace, "Pod", "worker"),
            events("default", "Node", namespace),
            events(namespace, "RayCluster", "cluster"),
        ]
    );

    // A pod that is gone is explained by its Events, and is said to be gone.
    let request = http::Request::delete(format!(
        "/api/v1/namespaces/{namespace}/pods/worker?gracePeriodSeconds=0"
    ));
    admin
        .request_text(request.body(Vec::new()).unwrap())
        .await
        .unwrap();
    let args = ["-o", "json", "--failure", "137"];
    let it = json_of(&explain_as(&plugins, &account, namespace, &args));
    let pod = format!("the pod {namespace}/Pod/worker");
    assert_eq!(hidden(&it), [(&*pod, "there is none, or none any more")]);
    assert_eq!((&it["pod"], evidence(&it)), (&Value::Null, vec!["own"]));
    assert_eq!(it["verdict"]["code"], "GpuFallenOffBus");
}

/// What was asked: the verb, the path and the field selector.
fn said_of(it: &Entry) -> String {
    let (path, query) = it.uri.split_once('?').unwrap_or((&it.uri, ""));
    let mut query = query.split('&');
    let selector = query.find_map(|it| it.strip_prefix("fieldSelector="));
    let selector = selector
        .unwrap_or_default()
        .replace("%3D", "=")
        .replace("%2C", ",");
    format!("{} {path} {selector}", it.verb)
}

#[tokio::test]
async fn a_right_that_is_missing_hides_what_it_is_about_and_nothing_else() {
    let Some(plugins) = plugins() else { return };
    let Some(testbed) = Testbed::shared().await else {
        return;
    };
    let namespace = "hidden";
    testbed.namespace(namespace, &[]).await;
    let admin = testbed.admin().await;
    let mut accounts = Vec::new();
    for (name, rights) in [
        (
            "no-pods",
            &[(namespace, LIST_EVENTS), ("default", LIST_EVENTS)][..],
        ),
        (
            "no-events",
            &[(namespace, GET_PODS), ("default", LIST_EVENTS)],
        ),
        (
            "no-node",
            &[(namespace, GET_PODS), (namespace, LIST_EVENTS)],
        ),
        ("nothing", &[]),
    ] {
        testbed.make_account(namespace, name).await;
        let account = testbed.account(namespace, name).await;
        for (namespace, right) in rights {
            permit(&admin, &account.user, namespace, *right).await;
        }
        accounts.push(account);
    }
    make_failed(&testbed, namespace).await;
    let [no_pods, no_events, no_node, nothing] = &accounts[..] else {
        panic!("there are four")
    };
    let of = |account| json_of(&explain_as(&plugins, account, namespace, &["-o", "json"]));
    let lacks = |right: &str, namespace: &str| {
        format!("forbidden: it takes the right to {right} in the namespace {namespace}")
    };
    let get_pods = lacks("get pods", namespace);
    let list_own = lacks("list events.events.k8s.io", namespace);
    let list_default = lacks("list events.events.k8s.io", "default");

    let it = of(no_pods);
    assert_eq!(hidden(&it), [("the pod hidden/Pod/worker", &*get_pods)]);
    assert_eq!((&it["pod"], &it["failure"]), (&Value::Null, &Value::Null));
    assert_eq!(evidence(&it), ["own"]);

    let it = of(no_events);
    assert_eq!(
        hidden(&it),
        [
            ("the Events of hidden/Pod/worker", &*list_own),
            ("the Events of hidden/RayCluster/cluster", &*list_own),
        ]
    );
    assert_eq!(evidence(&it), ["npd-hidden"]);
    assert_eq!(it["verdict"]["attributes"]["rule"], "first-critical");

    let it = of(no_node);
    assert_eq!(hidden(&it), [("the Events of Node/hidden", &*list_default)]);
    assert_eq!(evidence_by_name(&it), ["own", "ray"]);
    assert_eq!(it["verdict"]["attributes"]["rule"], "first-critical");
    let shown = text(&explain_as(&plugins, no_node, namespace, &[]));
    let said = format!("\nNot looked at\n  the Events of Node/hidden: {list_default}\n");
    assert!(shown.ends_with(&said), "{shown}");

    check_refused(
        &explain_as(&plugins, nothing, namespace, &[]),
        &format!(
            "nothing may be looked at:\n  the pod hidden/Pod/worker: {get_pods}\n  \
             the Events of hidden/Pod/worker: {list_own}"
        ),
    );
}
