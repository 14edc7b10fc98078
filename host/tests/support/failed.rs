//! Pods that failed, and what is said of them, of their nodes and of their owners: as `kubectl get -o json`
//! prints them.

use serde_json::{Value, json};

/// The namespace of all that is in one.
pub(crate) const NAMESPACE: &str = "ml-team";

/// A text that nobody's terminal may obey: it turns what follows around, and clears the screen.
pub(crate) const HOSTILE: &str = "\u{202e}evil\u{1b}[2J\u{200b}\u{7}";

/// A time of the day on which all of this happens, for example `09:00:00`.
pub(crate) fn at(time: &str) -> String {
    format!("2026-11-28T{time}Z")
}

/// The uid of a pod of this name.
pub(crate) fn uid(pod: &str) -> String {
    format!("uid-{pod}")
}

/// A pod on a node, in a phase, of nobody and without a failure.
pub(crate) fn pod(name: &str, node: &str, phase: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "uid": uid(name),
            "creationTimestamp": at("08:00:00"),
        },
        "spec": { "nodeName": node, "containers": [{ "name": "main", "image": "image" }] },
        "status": { "phase": phase, "startTime": at("08:00:00") },
    })
}

/// A pod whose container exited with 137 at a time of the day, and is not started again.
pub(crate) fn failed(name: &str, node: &str, time: &str) -> Value {
    let mut pod = pod(name, node, "Failed");
    pod["status"]["containerStatuses"] =
        json!([{ "name": "main", "state": { "terminated": ended(137, "Error", time) } }]);
    pod
}

/// How a container ended.
pub(crate) fn ended(exit_code: i64, reason: &str, time: &str) -> Value {
    json!({ "exitCode": exit_code, "reason": reason, "finishedAt": at(time) })
}

/// The same pod, as one that an object controls.
pub(crate) fn owned_by(mut pod: Value, kind: &str, owner: &str) -> Value {
    pod["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "ray.io/v1",
        "kind": kind,
        "name": owner,
        "uid": uid(owner),
        "controller": true,
    }]);
    pod
}

/// An Event about an object, named by what it is for.
fn event(name: &str, regarding: &Value, time: &str, reason: &str, note: &str) -> Value {
    let namespace = regarding["namespace"].as_str().unwrap_or("default");
    json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": format!("event-{name}"),
            "creationTimestamp": at(time),
        },
        "involvedObject": regarding,
        "type": "Warning",
        "reason": reason,
        "message": note,
        "firstTimestamp": at(time),
        "lastTimestamp": at(time),
        "count": 1,
    })
}

fn by(mut event: Value, component: &str, host: &str) -> Value {
    event["source"] = json!({ "component": component, "host": host });
    event
}

/// What a Node's Event regards: the kubelet writes the name as uid.
fn node(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Node", "name": name, "uid": name })
}

fn object(api_version: &str, kind: &str, name: &str) -> Value {
    json!({
        "apiVersion": api_version,
        "kind": kind,
        "namespace": NAMESPACE,
        "name": name,
        "uid": uid(name),
    })
}

/// What the monitors of a node say of a GPU that fell off the bus.
pub(crate) const KERNEL_79: &str =
    "NVRM: Xid (PCI:0000:3b:00): 79, pid=4711, name=python3, GPU has fallen off the bus.";

/// node-problem-detector's Event on a node: a line of the kernel's log.
pub(crate) fn on_node(name: &str, of: &str, time: &str) -> Value {
    let event = event(name, &node(of), time, "NvidiaXid", KERNEL_79);
    by(event, "kernel-monitor", of)
}

/// The Event of GKE's device plugin on a node.
pub(crate) fn on_node_by_gke(name: &str, of: &str, time: &str) -> Value {
    let note = "Caught XID error, XID=79, GPU UUID=GPU-b8c1f0a2, Device ID=nvidia5";
    let event = event(name, &node(of), time, "XIDError", note);
    by(event, "nvidia-gpu-device-plugin", of)
}

/// The Event of Flyte's agent on a pod, from a node.
pub(crate) fn on_pod(name: &str, of: &str, node: &str, time: &str) -> Value {
    let text = format!(
        "[gpu-health] [CRITICAL] Xid 79 (GPU has fallen off the bus) on GPU 5 GPU-b8c1f0a2. xid=79 \
         severity=critical gpu_uuid=GPU-b8c1f0a2 gpu_index=5 pci=0000:ab:00.0 node={node} pid=1 process=p"
    );
    let event = event(name, &object("v1", "Pod", of), time, "GPUXidError", &text);
    by(event, "gpu-health-agent", node)
}

/// An Event of the kubelet about a pod that says nothing of a device.
pub(crate) fn ordinary(name: &str, of: &str, node: &str, time: &str) -> Value {
    let text = "Back-off restarting failed container main";
    let event = event(name, &object("v1", "Pod", of), time, "BackOff", text);
    by(event, "kubelet", node)
}

/// What `KubeRay` forwards from a node to a cluster with pods on it.
pub(crate) fn on_ray_cluster(name: &str, of: &str, node: &str, time: &str) -> Value {
    let text = format!(
        "Node event observed on Node \"{node}\" (reason: XIDError, source: node-problem-detector): \
         Caught XID error, XID=79"
    );
    let reason = "XIDError/node-problem-detector";
    let regarding = object("ray.io/v1", "RayCluster", of);
    by(
        event(name, &regarding, time, reason, &text),
        "raycluster-controller",
        "",
    )
}

/// A list as kubectl prints it.
pub(crate) fn list(items: &[Value]) -> String {
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": items });
    format!("{list:#}\n")
}

/// The same, an object a line.
pub(crate) fn lines(items: &[Value]) -> String {
    let lines = items.iter().map(|it| format!("{it}\n"));
    lines.collect()
}
