//! From a pod's failure to whose fault it was, on a real API server: the pod has a node and a uid, and somebody
//! speaks of its GPU.

#![allow(clippy::unwrap_used, reason = "a test says what went wrong by failing")]

mod support;

use std::time::{Duration, SystemTime};

use kube::Client;
use serde_json::{Value, json};
use support::{
    running::{Running, config, plugins},
    testbed::{Testbed, post},
};

const NAMESPACE: &str = "verdicts";

/// The time, so many seconds ago, as the API writes it.
fn ago(seconds: u64) -> String {
    #[expect(clippy::disallowed_methods, reason = "the server's Events are of now")]
    let now = SystemTime::now();
    let at = now - Duration::from_secs(seconds);
    let at = jiff::Timestamp::try_from(at).unwrap();
    at.round(jiff::Unit::Second).unwrap().to_string()
}

/// A node, and a pod on it that runs. Says which uid the pod has.
async fn start(admin: &Client, pod: &str, node: &str) -> String {
    let object = json!({ "metadata": { "name": node } });
    post(admin, "/api/v1/nodes", &object).await;
    let object = json!({
        "metadata": { "name": pod, "labels": { "app": "trainer" } },
        "spec": { "nodeName": node, "containers": [{ "name": "main", "image": "image" }] },
    });
    let path = format!("/api/v1/namespaces/{NAMESPACE}/pods");
    let made = post(admin, &path, &object).await;
    made["metadata"]["uid"].as_str().unwrap().to_owned()
}

/// As its kubelet says it: its container ended, and it with it.
async fn fail(admin: &Client, pod: &str) {
    let ended = json!({ "exitCode": 1, "reason": "Error", "finishedAt": ago(0) });
    let status = json!({ "status": {
        "phase": "Failed",
        "containerStatuses": [{
            "name": "main", "image": "image", "imageID": "", "ready": false, "restartCount": 0,
            "state": { "terminated": ended },
        }],
    } });
    let path = format!("/api/v1/namespaces/{NAMESPACE}/pods/{pod}/status");
    let request = http::Request::patch(path)
        .header("content-type", "application/merge-patch+json")
        .body(serde_json::to_vec(&status).unwrap())
        .unwrap();
    admin.request_text(request).await.unwrap();
}

/// What Flyte's agent on a node says of a pod.
fn of_agent(pod: &str, uid: &str, node: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Event",
        "metadata": { "namespace": NAMESPACE, "name": format!("{pod}.gpu-{uid}") },
        "involvedObject": { "apiVersion": "v1", "kind": "Pod", "namespace": NAMESPACE, "name": pod, "uid": uid },
        "type": "Warning",
        "reason": "GPUXidError",
        "message": format!("[gpu-health] [CRITICAL] Xid 79 (GPU has fallen off the bus) on GPU 0 GPU-7a. \
            xid=79 severity=critical gpu_uuid=GPU-7a gpu_index=0 node={node}"),
        "source": { "component": "gpu-health", "host": node },
        "firstTimestamp": ago(5), "lastTimestamp": ago(5), "count": 1,
    })
}

/// What GKE's device plugin says of a node.
fn of_node(node: &str, xid: u32) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Event",
        "metadata": { "namespace": "default", "name": format!("{node}.xid-{xid}") },
        "involvedObject": { "apiVersion": "v1", "kind": "Node", "name": node, "uid": node },
        "type": "Warning",
        "reason": "XIDError",
        "message": format!("Caught XID error, XID={xid}, GPU UUID=GPU-7b, Device ID=nvidia5"),
        "source": { "component": "nvidia-gpu-device-plugin", "host": node },
        "firstTimestamp": ago(5), "lastTimestamp": ago(5), "count": 1,
    })
}

/// Something harmless: who is told of it has seen the pod.
fn harmless(pod: &str, uid: &str) -> Value {
    let mut event = of_agent(pod, uid, "n");
    event["metadata"]["name"] = format!("{pod}.harmless").into();
    event["reason"] = "BackOff".into();
    event["message"] = "Back-off restarting failed container main".into();
    event
}

/// What the plugin says of a pod, change by change.
fn told_of(portent: &Running, pod: &str, classifier: &str) -> Vec<Value> {
    let changes = portent.changes().into_iter();
    let of = changes.filter(|it| {
        it["object"]["kind"] == "Pod"
            && it["object"]["name"] == pod
            && it["classifier"]["name"] == classifier
    });
    of.collect()
}

/// Waits for the verdict on a pod.
fn verdict(portent: &Running, pod: &str) -> Value {
    portent.until("a verdict", |it| {
        let verdicts = told_of(it, pod, "gpu-fault").into_iter();
        let mut verdicts = verdicts.map(|it| it["verdict"].clone());
        verdicts.rfind(|it| !it.is_null())
    })
}

#[track_caller]
fn check_verdict(verdict: &Value, code: &str, node: &str, device: &str) {
    let said = ["code", "blame", "retry"].map(|it| verdict[it].as_str().unwrap());
    assert_eq!(said, [code, "platform", "elsewhere"], "{verdict}");
    let avoid = json!([{ "key": "node", "value": node }, { "key": "device", "value": device }]);
    assert_eq!(verdict["avoid"], avoid);
    assert_eq!(verdict["failure"]["code"], "Error");
}

#[tokio::test]
async fn a_failed_pods_verdict_is_by_what_is_said_of_it_and_of_its_node_and_by_no_forgery() {
    let Some(plugins) = plugins() else { return };
    let Some(testbed) = Testbed::shared().await else {
        return;
    };
    testbed.namespace(NAMESPACE, &[]).await;
    let admin = testbed.admin().await;
    let config = config(&[NAMESPACE], &plugins, "pods:\n  selector: app=trainer\n");
    let config = config.replacen("scope:\n", "scope:\n  kinds: [Pod, Node]\n", 1);
    let portent = Running::start(&config, &testbed.kubeconfig());
    portent.until_ready();

    // Of the pod, by the agent on its node; then it fails.
    let uid = start(&admin, "by-agent", "verdict-n1").await;
    testbed
        .write([of_agent("by-agent", &uid, "verdict-n1")])
        .await;
    fail(&admin, "by-agent").await;
    let said = verdict(&portent, "by-agent");
    check_verdict(&said, "GpuFallenOffBus", "verdict-n1", "GPU-7a");

    // Of its node alone: before it fails, and after that.
    start(&admin, "by-node", "verdict-n2").await;
    testbed.write([of_node("verdict-n2", 48)]).await;
    fail(&admin, "by-node").await;
    let said = verdict(&portent, "by-node");
    check_verdict(&said, "GpuEccUncorrectable", "verdict-n2", "GPU-7b");

    start(&admin, "late", "verdict-n3").await;
    fail(&admin, "late").await;
    portent.until("the failed pod", |it| {
        (it.metric("portent_pods", &[]) == 3).then_some(())
    });
    testbed.write([of_node("verdict-n3", 119)]).await;
    let said = verdict(&portent, "late");
    check_verdict(&said, "GpuGspError", "verdict-n3", "GPU-7b");

    // Reported from a node that the pod is not on, and of a uid that it has not.
    let uid = start(&admin, "forged", "verdict-n4").await;
    let other_uid = "11111111-2222-4333-8444-555555555555";
    testbed
        .write([
            of_agent("forged", &uid, "verdict-n1"),
            of_agent("forged", other_uid, "verdict-n4"),
            harmless("forged", &uid),
        ])
        .await;
    fail(&admin, "forged").await;
    portent.until("what is harmless, and the forged one", |it| {
        let told = told_of(it, "forged", "additional-reasons");
        let reasons = told
            .iter()
            .flat_map(|it| it["additionalReasons"].as_array().unwrap());
        (reasons.count() == 2).then_some(())
    });
    // The failure came after both: who knows of the next pod knows of it.
    let uid = start(&admin, "after", "verdict-n5").await;
    testbed.write([of_agent("after", &uid, "verdict-n5")]).await;
    fail(&admin, "after").await;
    verdict(&portent, "after");
    assert_eq!(told_of(&portent, "forged", "gpu-fault"), [Value::Null; 0]);
    // What names another uid waits for that pod, which never comes.
    assert_eq!(portent.metric("portent_events_waiting", &[]), 1);
}
