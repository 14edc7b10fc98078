//! What `portent replay` makes of a recording with what is known beside it: pods, a failure, an owner.
//!
//! The plugins are the repo's own, built by `cargo xtask plugins`; without them these tests are skipped.

#![allow(clippy::unwrap_used, reason = "a test says what went wrong by failing")]

mod support;

use std::{io::Write as _, path::Path, process::Output};

use serde_json::{Value, json};
use support::{
    failed::{
        HOSTILE, NAMESPACE, at, ended, failed, lines, list, on_node, on_node_by_gke, on_pod,
        on_ray_cluster, ordinary, owned_by, pod, uid,
    },
    running::plugins,
};
use tempfile::TempDir;

/// A folder with `events.json` and `pods.json`.
fn recorded(events: &[Value], pods: &[Value]) -> TempDir {
    let files = [("events.json", events), ("pods.json", pods)];
    support::directory(files.map(|(name, of)| (name, list(of).into_bytes())))
}

/// Replays `events.json` of a folder; of the other arguments, `@` stands for the folder.
fn replay(plugins: &Path, folder: &Path, more: &[&str]) -> Output {
    let folder = folder.display().to_string();
    let plugins = plugins.display().to_string();
    let args = ["replay", "--plugins", &plugins, "@/events.json"];
    let args = args.iter().chain(more);
    support::portent(args.map(|it| it.replace('@', &folder)))
}

/// What it prints as JSON; it must succeed and complain of nothing.
#[track_caller]
fn elements(plugins: &Path, folder: &Path, more: &[&str]) -> Vec<Value> {
    let more = [&["-o", "json", "--strict"], more].concat();
    let output = replay(plugins, folder, &more);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The element of gpu-fault about an object; there is one or none.
#[track_caller]
fn of_gpu_fault<'a>(elements: &'a [Value], name: &str) -> Option<&'a Value> {
    let is_it =
        |it: &&Value| it["classifier"]["name"] == "gpu-fault" && it["object"]["name"] == name;
    let mut found = elements.iter().filter(is_it);
    let it = found.next();
    assert_eq!(found.next(), None, "{name}");
    it
}

/// The rule of the verdict on an object, and the Events that its findings rest on.
#[track_caller]
fn verdict<'a>(elements: &'a [Value], name: &str) -> (Option<&'a str>, Vec<&'a str>) {
    let Some(it) = of_gpu_fault(elements, name) else {
        return (None, Vec::new());
    };
    let findings = it["outcome"]["findings"].as_array().unwrap();
    let evidence = findings
        .iter()
        .flat_map(|it| it["evidence"].as_array().unwrap());
    let events = evidence.map(|it| it["name"].as_str().unwrap()).collect();
    (
        it["outcome"]["verdict"]["attributes"]["rule"].as_str(),
        events,
    )
}

const PODS: [&str; 2] = ["--pods", "@/pods.json"];

#[test]
fn a_failed_pod_is_judged_by_what_is_said_of_itself_its_node_or_its_owner() {
    let Some(plugins) = plugins() else { return };
    let events = [
        on_pod("flyte", "own", "gpu-1", "08:59:00"),
        on_node("npd", "gpu-2", "08:59:00"),
        on_node_by_gke("gke", "gpu-3", "08:59:00"),
        on_ray_cluster("ray", "cluster", "gpu-4", "08:59:00"),
        ordinary("back-off", "by-npd", "gpu-2", "08:59:30"),
    ];
    let pods = [
        failed("own", "gpu-1", "09:00:00"),
        failed("by-npd", "gpu-2", "09:00:00"),
        failed("by-gke", "gpu-3", "09:00:00"),
        owned_by(
            failed("by-owner", "gpu-4", "09:00:00"),
            "RayCluster",
            "cluster",
        ),
        // What is forwarded is about another node than this one's.
        owned_by(
            failed("elsewhere", "gpu-5", "09:00:00"),
            "RayCluster",
            "cluster",
        ),
        failed("untouched", "gpu-6", "09:00:00"),
    ];
    let folder = recorded(&events, &pods);
    let found = elements(&plugins, folder.path(), &PODS);
    for (name, event, node) in [
        ("own", "flyte", "gpu-1"),
        ("by-npd", "npd", "gpu-2"),
        ("by-gke", "gke", "gpu-3"),
        ("by-owner", "ray", "gpu-4"),
    ] {
        assert_eq!(
            verdict(&found, name),
            (Some("first-critical"), vec![event]),
            "{name}"
        );
        let it = &of_gpu_fault(&found, name).unwrap()["outcome"]["verdict"];
        assert_eq!(it["blame"], "platform", "{name}");
        assert_eq!(it["retry"], "elsewhere", "{name}");
        assert_eq!(
            it["failure"],
            json!({ "code": "Error", "at": at("09:00:00") }),
            "{name}"
        );
        assert!(
            it["avoid"]
                .as_array()
                .unwrap()
                .contains(&json!({ "key": "node", "value": node })),
            "{name}: {it}"
        );
    }
    for name in ["elsewhere", "untouched"] {
        assert_eq!(verdict(&found, name), (None, vec![]), "{name}");
    }
    // The Node's finding is there beside the pods'.
    assert_eq!(verdict(&found, "gpu-2"), (None, vec!["npd"]));
    // Without the pods nobody knows who failed.
    let found = elements(&plugins, folder.path(), &[]);
    assert_eq!(verdict(&found, "own"), (None, vec!["flyte"]));
    assert_eq!(verdict(&found, "by-npd"), (None, vec![]));
}

#[test]
fn the_window_is_from_half_an_hour_before_the_failure_to_two_minutes_after() {
    let Some(plugins) = plugins() else { return };
    let times = [
        ("08:29:59", false),
        ("08:30:00", true),
        ("09:02:00", true),
        ("09:02:01", false),
    ];
    let (mut events, mut pods) = (Vec::new(), Vec::new());
    for (idx, (time, _)) in times.iter().enumerate() {
        let node = format!("gpu-{idx}");
        events.push(on_node(&format!("fault-{idx}"), &node, time));
        pods.push(failed(&format!("pod-{idx}"), &node, "09:00:00"));
        events.push(on_pod(
            &format!("own-fault-{idx}"),
            &format!("own-{idx}"),
            "gpu-x",
            time,
        ));
        pods.push(failed(&format!("own-{idx}"), "gpu-x", "09:00:00"));
    }
    let folder = recorded(&events, &pods);
    let found = elements(&plugins, folder.path(), &PODS);
    for (idx, (time, is_in)) in times.iter().enumerate() {
        let rule = is_in.then_some("first-critical");
        let (of_node, rests_on) = verdict(&found, &format!("pod-{idx}"));
        assert_eq!((of_node, !rests_on.is_empty()), (rule, *is_in), "{time}");
        // What is said of itself stays a finding, and decides nothing.
        let (of_itself, rests_on) = verdict(&found, &format!("own-{idx}"));
        assert_eq!((of_itself, rests_on.len()), (rule, 1), "{time}");
    }
}

#[test]
fn a_forged_event_yields_no_finding_where_the_pod_is_known() {
    let Some(plugins) = plugins() else { return };
    let mut other_uid = on_pod("other-uid", "a", "gpu-1", "08:59:00");
    other_uid["involvedObject"]["uid"] = "uid-of-nobody".into();
    let mut no_uid = on_pod("no-uid", "b", "gpu-1", "08:59:00");
    no_uid["involvedObject"]["uid"] = Value::Null;
    let other_node = on_pod("other-node", "c", "gpu-9", "08:59:00");
    let mut no_node = on_pod("no-node", "d", "", "08:59:00");
    no_node["source"]["host"] = "".into();
    let mut of_node = on_node("of-node", "gpu-2", "08:59:00");
    of_node["source"]["host"] = "gpu-9".into();
    let events = [other_uid, no_uid, other_node, no_node, of_node];
    let mut pods: Vec<_> = ["a", "b", "c", "d"]
        .map(|it| failed(it, "gpu-1", "09:00:00"))
        .into();
    pods.push(failed("e", "gpu-2", "09:00:00"));
    let folder = recorded(&events, &pods);
    let found = elements(&plugins, folder.path(), &PODS);
    for name in ["a", "b", "c", "d", "e", "gpu-2"] {
        assert_eq!(verdict(&found, name), (None, vec![]), "{name}");
    }
    // Each is told in the history all the same: it was said.
    let reasons = found
        .iter()
        .filter(|it| it["classifier"]["name"] == "additional-reasons");
    assert_eq!(reasons.count(), 5);
}

#[test]
fn a_pod_of_which_nothing_is_said_is_judged_by_its_node_and_one_that_ended_well_is_not() {
    let Some(plugins) = plugins() else { return };
    let events = [on_node("npd", "gpu-1", "08:59:00")];
    let mut well = pod("well", "gpu-1", "Succeeded");
    // It had been started again before.
    well["status"]["containerStatuses"] = json!([{
        "name": "main",
        "state": { "terminated": ended(0, "Completed", "09:00:00") },
        "lastState": { "terminated": ended(137, "Error", "08:58:00") },
    }]);
    let pods = [
        failed("silent", "gpu-1", "09:00:00"),
        well,
        pod("runs", "gpu-1", "Running"),
    ];
    let folder = recorded(&events, &pods);
    let found = elements(&plugins, folder.path(), &PODS);
    assert_eq!(
        verdict(&found, "silent"),
        (Some("first-critical"), vec!["npd"])
    );
    let it = of_gpu_fault(&found, "silent").unwrap();
    let object = json!({
        "apiVersion": "", "kind": "Pod", "namespace": NAMESPACE, "name": "silent", "uid": uid("silent"),
    });
    assert_eq!(it["object"], object);
    for name in ["well", "runs"] {
        assert_eq!(of_gpu_fault(&found, name), None, "{name}");
    }
}

#[test]
fn a_failure_is_the_pods_own_reason_else_that_of_its_container_and_of_a_running_one_the_last_restart()
 {
    let Some(plugins) = plugins() else { return };
    let of_status = |name: &str, reason: &str| {
        let mut it = pod(name, "gpu-1", "Failed");
        it["status"]["reason"] = reason.into();
        it["status"]["message"] = format!("why {name} failed").into();
        it["status"]["conditions"] = json!([{
            "type": "Ready", "status": "False", "lastTransitionTime": at("09:00:00"),
        }]);
        it
    };
    let mut restarted = pod("restarted", "gpu-1", "Running");
    restarted["status"]["containerStatuses"] = json!([{
        "name": "main",
        "state": { "running": { "startedAt": at("09:00:10") } },
        "lastState": { "terminated": ended(139, "OOMKilled", "09:00:00") },
        "restartCount": 3,
    }]);
    let pods = [
        of_status("evicted", "Evicted"),
        of_status("refused", "UnexpectedAdmissionError"),
        restarted,
    ];
    let folder = recorded(&[on_node("npd", "gpu-1", "08:59:00")], &pods);
    let found = elements(&plugins, folder.path(), &PODS);
    for (name, code) in [
        ("evicted", "Evicted"),
        ("refused", "UnexpectedAdmissionError"),
        ("restarted", "OOMKilled"),
    ] {
        let it = &of_gpu_fault(&found, name).unwrap()["outcome"]["verdict"];
        assert_eq!(
            it["failure"],
            json!({ "code": code, "at": at("09:00:00") }),
            "{name}"
        );
    }
}

#[test]
fn a_failure_that_the_caller_knows_is_everybodys_and_a_pods_own_time_stands() {
    let Some(plugins) = plugins() else { return };
    let events = [
        on_pod("flyte", "runs", "gpu-1", "08:50:00"),
        on_pod("flyte-2", "fails", "gpu-1", "08:50:00"),
    ];
    let pods = [
        failed("fails", "gpu-1", "09:00:00"),
        pod("runs", "gpu-1", "Running"),
    ];
    let folder = recorded(&events, &pods);
    let failure = |more: &[&str], name: &str| {
        let found = elements(&plugins, folder.path(), more);
        of_gpu_fault(&found, name).unwrap()["outcome"]["verdict"]["failure"].clone()
    };
    let after_its_last_event = json!({ "code": "137", "at": at("08:50:01") });
    for name in ["runs", "fails"] {
        assert_eq!(failure(&["--failure", "137"], name), after_its_last_event);
    }
    let with_pods = [&PODS[..], &["--failure", "137"]].concat();
    assert_eq!(failure(&with_pods, "runs"), after_its_last_event);
    let its_own = json!({ "code": "137", "at": at("09:00:00") });
    assert_eq!(failure(&with_pods, "fails"), its_own);
    for code in ["", &"x".repeat(254)] {
        let output = replay(&plugins, folder.path(), &["--failure", code]);
        assert_eq!(output.status.code(), Some(2));
        assert!(
            stderr(&output).contains("--failure: a code has between 1 and 253 bytes"),
            "{}",
            stderr(&output)
        );
    }
}

#[test]
fn a_failure_that_the_caller_knows_is_each_pods_own_where_pods_were_recreated() {
    let Some(plugins) = plugins() else { return };
    let mut before = on_pod("before", "train-0", "gpu-1", "08:00:00");
    before["involvedObject"]["uid"] = "uid-before".into();
    let events = [before, ordinary("after", "train-0", "gpu-2", "09:00:00")];
    let folder = recorded(&events, &[]);
    let found = elements(&plugins, folder.path(), &["--failure", "137"]);
    let it = &of_gpu_fault(&found, "train-0").unwrap()["outcome"]["verdict"];
    assert_eq!(it["failure"]["at"], at("08:00:01"));
}

#[test]
fn a_pod_whose_events_name_no_uid_is_judged_by_its_node_once() {
    let Some(plugins) = plugins() else { return };
    let mut unnamed = ordinary("unnamed", "train-0", "gpu-1", "08:59:30");
    unnamed["involvedObject"]["uid"] = Value::Null;
    let npd = on_node("npd", "gpu-1", "08:59:00");
    let pods = [failed("train-0", "gpu-1", "09:00:00")];
    for events in [[unnamed.clone(), npd.clone()], [npd, unnamed]] {
        let folder = recorded(&events, &pods);
        let found = elements(&plugins, folder.path(), &PODS);
        assert_eq!(
            verdict(&found, "train-0"),
            (Some("first-critical"), vec!["npd"])
        );
    }
}

#[test]
fn of_an_owner_only_itself_and_its_pods_are_printed_and_a_wrong_one_is_taught() {
    let Some(plugins) = plugins() else { return };
    let events = [
        on_ray_cluster("ray", "cluster", "gpu-1", "08:59:00"),
        ordinary("back-off", "worker", "gpu-1", "08:59:00"),
        ordinary("other", "alone", "gpu-1", "08:59:00"),
        on_node("npd", "gpu-1", "08:59:00"),
    ];
    let pods = [
        owned_by(
            failed("worker", "gpu-1", "09:00:00"),
            "RayCluster",
            "cluster",
        ),
        failed("alone", "gpu-1", "09:00:00"),
    ];
    let folder = recorded(&events, &pods);
    let owned = [&PODS[..], &["--owner", "ml-team/RayCluster/cluster"]].concat();
    let found = elements(&plugins, folder.path(), &owned);
    let mut names: Vec<_> = found
        .iter()
        .map(|it| it["object"]["name"].as_str().unwrap())
        .collect();
    names.dedup();
    assert_eq!(names, ["worker", "cluster"]);
    let (rule, _) = verdict(&found, "worker");
    assert_eq!(rule, Some("first-critical"));
    let table = stdout(&replay(&plugins, folder.path(), &owned));
    assert!(
        table.contains("worker") && !table.contains("alone"),
        "{table}"
    );
    let changes = replay(
        &plugins,
        folder.path(),
        &[&owned[..], &["--changes"]].concat(),
    );
    assert!(!stdout(&changes).contains("alone"), "{}", stdout(&changes));

    for (owner, taught) in [
        (
            "ml-team/RayJob/train",
            "--owner ml-team/RayJob/train: none of the pods that --pods has is owned by it; what is wanted is \
             who controls the pods themselves, as a RayCluster and not its RayJob does",
        ),
        (
            "cluster",
            "--owner cluster: write NAMESPACE/KIND/NAME, for example ml-team/RayCluster/train",
        ),
        (
            "a/b/c/d",
            "--owner a/b/c/d: write NAMESPACE/KIND/NAME, for example ml-team/RayCluster/train",
        ),
    ] {
        let output = replay(
            &plugins,
            folder.path(),
            &[&PODS[..], &["--owner", owner]].concat(),
        );
        assert_eq!(output.status.code(), Some(2), "{owner}");
        assert!(
            stderr(&output).contains(taught),
            "{owner}: {}",
            stderr(&output)
        );
        assert_eq!(stdout(&output), "", "{owner}");
    }
    let output = replay(
        &plugins,
        folder.path(),
        &["--owner", "ml-team/RayCluster/cluster"],
    );
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("--pods"), "{}", stderr(&output));
}

/// A failed pod by its node's fault.
fn one_failed() -> (Vec<Value>, Vec<Value>) {
    let events = vec![on_node("npd", "gpu-1", "08:59:00")];
    (events, vec![failed("train-0", "gpu-1", "09:00:00")])
}

#[test]
fn pods_are_read_in_every_form_that_events_are() {
    let Some(plugins) = plugins() else { return };
    let (events, pods) = one_failed();
    let mut bare = pods[0].clone();
    let keys = bare.as_object_mut().unwrap();
    keys.remove("kind");
    keys.remove("apiVersion");
    let pod_list = json!({ "kind": "PodList", "apiVersion": "v1", "items": [bare] }).to_string();
    let yaml =
        serde_saphyr::to_string(&json!({ "apiVersion": "v1", "kind": "List", "items": pods }));
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(list(&pods).as_bytes()).unwrap();
    let frame = json!({ "type": "MODIFIED", "object": pods[0] }).to_string();
    let gone = json!({ "type": "DELETED", "object": pods[0] }).to_string();
    let forms = [
        ("list", list(&pods).into_bytes()),
        ("pod-list", pod_list.into_bytes()),
        ("single", pods[0].to_string().into_bytes()),
        ("array", Value::from(pods.clone()).to_string().into_bytes()),
        ("yaml", yaml.unwrap().into_bytes()),
        ("lines", lines(&pods).into_bytes()),
        ("gzip", gzip.finish().unwrap()),
        ("frame", frame.into_bytes()),
        ("gone", gone.into_bytes()),
    ];
    let folder = support::directory(forms.clone());
    std::fs::write(folder.path().join("events.json"), list(&events)).unwrap();
    for (form, _) in forms {
        let path = format!("@/{form}");
        let found = elements(&plugins, folder.path(), &["--pods", &path]);
        assert_eq!(
            verdict(&found, "train-0"),
            (Some("first-critical"), vec!["npd"]),
            "{form}"
        );
    }
}

#[test]
fn what_is_wrong_with_a_file_of_pods_is_named_by_its_place_and_costs_nothing_else() {
    let Some(plugins) = plugins() else { return };
    let (events, pods) = one_failed();
    let good = pods[0].to_string();
    let mut no_uid = pods[0].clone();
    no_uid["metadata"]["uid"] = Value::Null;
    let node = r#"{"apiVersion":"v1","kind":"Node","metadata":{"name":"gpu-1"}}"#;
    let whole = list(&pods);
    let (half, _) = whole.rsplit_once(']').unwrap();
    let half = half.trim_end().to_owned();
    let n_lines = half.lines().count();
    let (half_pod, _) = good.split_at(good.len() / 2);
    let yaml = serde_saphyr::to_string(&json!({ "items": pods, "kind": "PodList" })).unwrap();
    let of_yaml = format!("line {}, column 1: ", yaml.lines().count() + 1);
    for (name, content, wanted) in [
        ("yaml", yaml + "\"\n", &*of_yaml),
        ("cut", half, &*format!("line {n_lines}, column 6: cut off")),
        ("half", format!("{good}\n{half_pod}"), "line 2, column "),
        (
            "node",
            format!("{node}\n{good}\n"),
            "line 1, column 1: of kind Node, no Pod",
        ),
        (
            "event",
            format!("{good}\n{}\n", events[0]),
            "line 2, column 1: of kind Event, no Pod",
        ),
        ("types", format!("[1, \"x\", {good}]"), "line 1, column 2: "),
        (
            "no-uid",
            format!("{no_uid}\n{good}\n"),
            "line 1, column 1: a Pod without a name, a namespace or a uid",
        ),
    ] {
        let folder = recorded(&events, &[]);
        std::fs::write(folder.path().join("pods.json"), content).unwrap();
        let output = replay(
            &plugins,
            folder.path(),
            &[&PODS[..], &["-o", "json"]].concat(),
        );
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(0), "{name}: {said}");
        assert!(
            said.contains(&format!("pods.json: {wanted}")),
            "{name}: {said}"
        );
        let found: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(
            verdict(&found, "train-0"),
            (Some("first-critical"), vec!["npd"]),
            "{name}"
        );
        let output = replay(
            &plugins,
            folder.path(),
            &[&PODS[..], &["--strict"]].concat(),
        );
        assert_eq!(output.status.code(), Some(2), "{name}");
    }
    // A field of the wrong type counts as absent, and is counted.
    let mut malformed = pods[0].clone();
    malformed["status"]["phase"] = json!(7);
    let folder = recorded(&events, &[malformed]);
    let output = replay(&plugins, folder.path(), &PODS);
    assert_eq!(output.status.code(), Some(0));
    assert!(
        stderr(&output).contains("malformed fields taken as absent: 1"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_file_without_one_readable_pod_is_an_error_and_an_empty_list_is_none() {
    let Some(plugins) = plugins() else { return };
    let (events, _) = one_failed();
    let folder = recorded(&events, &[]);
    for content in [
        "",
        "[]",
        r#"{"kind":"PodList","apiVersion":"v1","items":[]}"#,
    ] {
        std::fs::write(folder.path().join("pods.json"), content).unwrap();
        let found = elements(&plugins, folder.path(), &PODS);
        assert_eq!(verdict(&found, "gpu-1").1, ["npd"], "{content:?}");
    }
    for content in ["hello", "{", &list(&events)] {
        std::fs::write(folder.path().join("pods.json"), content).unwrap();
        let output = replay(&plugins, folder.path(), &PODS);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{content:?}: {}",
            stderr(&output)
        );
        assert!(
            stderr(&output).contains("pods.json: it holds no Pod that can be read"),
            "{content:?}: {}",
            stderr(&output)
        );
    }
    let output = replay(&plugins, folder.path(), &["--pods", "no-such-file.json"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("--pods: cannot read no-such-file.json"),
        "{}",
        stderr(&output)
    );
    // What is wrong with pods is nothing that is wrong with Events.
    let pods = format!("{}\n{{}}\n", failed("train-0", "gpu-1", "09:00:00"));
    std::fs::write(folder.path().join("pods.json"), pods).unwrap();
    std::fs::write(folder.path().join("events.json"), list(&[])).unwrap();
    let output = replay(
        &plugins,
        folder.path(),
        &[&PODS[..], &["-o", "json"]].concat(),
    );
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("no events"), "{}", stderr(&output));
    assert_eq!(stdout(&output), "[]\n");
}

#[test]
fn of_a_folder_the_pods_are_read_and_what_is_none_is_no_problem() {
    let Some(plugins) = plugins() else { return };
    let (events, pods) = one_failed();
    let folder = recorded(&events, &pods);
    let service =
        r#"{"apiVersion":"v1","kind":"Service","metadata":{"name":"a","namespace":"b","uid":"c"}}"#;
    std::fs::write(folder.path().join("services.json"), service).unwrap();
    let bare = r#"{"apiVersion":"v1","kind":"ServiceList","items":[{"metadata":{"name":"a","namespace":"b","uid":"c"}}]}"#;
    std::fs::write(folder.path().join("bare.json"), bare).unwrap();
    let found = elements(&plugins, folder.path(), &["--pods", "@"]);
    assert_eq!(
        verdict(&found, "train-0"),
        (Some("first-critical"), vec!["npd"])
    );
}

#[test]
fn the_number_of_workers_changes_nothing_of_what_is_said_with_pods() {
    let Some(plugins) = plugins() else { return };
    let (mut events, mut pods) = (Vec::new(), Vec::new());
    for n in 0..60 {
        let (node, name) = (format!("gpu-{}", n % 7), format!("train-{n}"));
        events.push(on_pod(&format!("flyte-{n}"), &name, &node, "08:58:00"));
        events.push(on_node(&format!("npd-{n}"), &node, "08:59:00"));
        events.push(on_ray_cluster(
            &format!("ray-{n}"),
            &format!("cluster-{}", n % 3),
            &node,
            "08:59:30",
        ));
        events.push(ordinary(&format!("back-off-{n}"), &name, &node, "08:59:40"));
        let owner = format!("cluster-{}", n % 3);
        pods.push(owned_by(
            failed(&name, &node, "09:00:00"),
            "RayCluster",
            &owner,
        ));
    }
    let folder = recorded(&events, &pods);
    for mode in [
        &["-o", "json"][..],
        &["-o", "jsonl", "--changes"],
        &["--failure", "1"],
        &["-o", "json", "--store-bytes", "8192"],
    ] {
        let of = |workers| {
            let more = [&PODS[..], mode, &["--workers", workers]].concat();
            stdout(&replay(&plugins, folder.path(), &more))
        };
        let one = of("1");
        assert!(
            one.contains("first-critical") || mode[0] == "--failure",
            "{mode:?}: {one}"
        );
        assert!(one == of("2") && one == of("8"), "{mode:?}");
    }
}

#[test]
fn the_table_begins_with_why_what_failed_did() {
    let Some(plugins) = plugins() else { return };
    let events = [
        on_node("npd", "gpu-1", "08:59:00"),
        on_pod("flyte", "train-1", "gpu-2", "08:58:00"),
        ordinary("back-off", "train-1", "gpu-2", "08:58:30"),
    ];
    let pods = [
        failed("train-0", "gpu-1", "09:00:00"),
        failed("train-1", "gpu-2", "09:00:00"),
        failed("of-no-known-reason", "gpu-3", "09:00:00"),
    ];
    let folder = recorded(&events, &pods);
    insta::assert_snapshot!("failed", stdout(&replay(&plugins, folder.path(), &PODS)));
}

#[test]
fn the_verdict_is_told_among_the_changes() {
    let Some(plugins) = plugins() else { return };
    let (events, pods) = one_failed();
    let folder = recorded(&events, &pods);
    let changes = [&PODS[..], &["--changes", "-o", "jsonl"]].concat();
    let output = replay(&plugins, folder.path(), &changes);
    let changes: Vec<Value> = stdout(&output)
        .lines()
        .map(|it| serde_json::from_str(it).unwrap())
        .collect();
    let of_pod: Vec<_> = changes
        .iter()
        .filter(|it| it["object"]["name"] == "train-0" && it["classifier"]["name"] == "gpu-fault")
        .collect();
    let [change] = &of_pod[..] else {
        panic!("{changes:?}")
    };
    assert_eq!(change["verdict"]["attributes"]["rule"], "first-critical");
    assert_eq!(change["raised"][0]["code"], "GpuFallenOffBus");
    let text = stdout(&replay(
        &plugins,
        folder.path(),
        &[&PODS[..], &["--changes"]].concat(),
    ));
    assert!(
        text.lines()
            .any(|it| it.starts_with("= verdict  GpuFallenOffBus  ml-team/Pod/train-0")),
        "{text}"
    );
}

#[test]
fn what_left_to_make_room_was_looked_at_before() {
    let Some(plugins) = plugins() else { return };
    let filler = |from: usize| {
        (from..from + 40).map(|n| {
            ordinary(
                &format!("filler-{n}"),
                &format!("web-{n}"),
                "cpu-1",
                "08:40:00",
            )
        })
    };
    let of_pod = |name: &str| ordinary(name, "train-0", "gpu-1", "08:59:30");
    let node = || [on_node("npd", "gpu-1", "08:59:00")];
    let pods = [failed("train-0", "gpu-1", "09:00:00")];
    let before: Vec<_> = node()
        .into_iter()
        .chain(filler(0))
        .chain([of_pod("late")])
        .collect();
    let after: Vec<_> = [of_pod("early")]
        .into_iter()
        .chain(filler(0))
        .chain(node())
        .collect();
    let between: Vec<_> = [of_pod("early")]
        .into_iter()
        .chain(filler(0))
        .chain(node())
        .chain(filler(100))
        .chain([of_pod("late")])
        .collect();
    let alone: Vec<_> = node().into_iter().chain(filler(0)).collect();
    for (name, events) in [
        ("before", before),
        ("after", after),
        ("between", between),
        ("alone", alone),
    ] {
        let folder = recorded(&events, &pods);
        let more = [&PODS[..], &["-o", "json", "--store-bytes", "8192"]].concat();
        let output = replay(&plugins, folder.path(), &more);
        assert!(
            stderr(&output).contains("to stay within --store-bytes"),
            "{}",
            stderr(&output)
        );
        let found: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
        let verdicts: Vec<_> = found
            .iter()
            .filter(|it| {
                it["object"]["name"] == "train-0" && it["classifier"]["name"] == "gpu-fault"
            })
            .map(|it| &it["outcome"]["verdict"])
            .filter(|it| !it.is_null())
            .collect();
        assert!(!verdicts.is_empty(), "{name}: {found:#?}");
        for it in &verdicts {
            assert_eq!(it["attributes"]["rule"], "first-critical", "{name}");
        }
    }
}

#[test]
fn hostile_text_of_a_pod_is_shown_and_never_obeyed() {
    let Some(plugins) = plugins() else { return };
    let name = format!("train{HOSTILE}");
    let node = format!("gpu{HOSTILE}");
    let mut it = failed(&name, &node, "09:00:00");
    it["metadata"]["labels"] = json!({ HOSTILE: HOSTILE });
    let how = &mut it["status"]["containerStatuses"][0]["state"]["terminated"];
    how["reason"] = HOSTILE.into();
    how["message"] = HOSTILE.into();
    let it = owned_by(it, HOSTILE, HOSTILE);
    let events = [
        on_node("npd", &node, "08:59:00"),
        ordinary("own", &name, &node, "08:59:00"),
    ];
    let mut wrong = it.clone();
    wrong["kind"] = HOSTILE.into();
    let folder = recorded(&events, &[it, wrong]);
    for more in [&[][..], &["--changes"]] {
        let output = replay(&plugins, folder.path(), &[&PODS[..], more].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let (told, said) = (stdout(&output), stderr(&output));
        assert!(told.contains("train\\u{202e}evil\\u{1b}[2J"), "{told}");
        assert!(said.contains("no Pod"), "{said}");
        for text in [&told, &said] {
            let obeyed =
                |it: char| it.is_control() && it != '\n' || "\u{202e}\u{200b}".contains(it);
            assert!(!text.contains(obeyed), "{text:?}");
        }
    }
}
