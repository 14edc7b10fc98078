//! Events as components write them, and many at a time.

use futures_util::{StreamExt as _, stream};
use serde_json::{Value, json};

use super::{Testbed, post};

/// Requests in flight, each on a connection of its own. Measured on two processors that had more to do, for
/// 20,000 Events: one at a time took 73 s, 16 took 49 s, 64 took 52 s.
const N_WRITERS: usize = 16;

/// An Event of core/v1 as kubelet writes it. `number` tells those about one object apart.
pub(crate) fn core_event(namespace: &str, kind: &str, object: &str, number: usize) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": { "namespace": namespace, "name": event_name(kind, object, number) },
        "involvedObject": { "apiVersion": "v1", "kind": kind, "namespace": namespace, "name": object },
        "type": "Warning",
        "reason": "BackOff",
        "message": format!("Back-off {number} restarting failed container main in pod {object}"),
        "source": { "component": "kubelet", "host": "node-1" },
        "firstTimestamp": "2026-09-01T01:01:00Z",
        "lastTimestamp": "2026-09-01T01:02:00Z",
        "count": 3,
    })
}

/// An Event of events.k8s.io/v1 as kube-scheduler writes it. `number` tells those about one object apart.
pub(crate) fn event(namespace: &str, kind: &str, object: &str, number: usize) -> Value {
    json!({
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": { "namespace": namespace, "name": event_name(kind, object, number) },
        "regarding": { "apiVersion": "v1", "kind": kind, "namespace": namespace, "name": object },
        "type": "Warning",
        "reason": "FailedScheduling",
        "action": "Scheduling",
        "note": format!("{number}/{number} nodes are unavailable: {number} Insufficient nvidia.com/gpu"),
        "eventTime": "2026-09-01T01:01:00.000000Z",
        "reportingController": "default-scheduler",
        "reportingInstance": "default-scheduler-node-1",
    })
}

fn event_name(kind: &str, object: &str, number: usize) -> String {
    format!("{object}.{}.{number:016x}", kind.to_lowercase())
}

impl Testbed {
    /// Writes Events of either API, in no particular order.
    pub(crate) async fn write(&self, events: impl IntoIterator<Item = Value>) {
        let admin = self.admin().await;
        let writes = stream::iter(events).for_each_concurrent(N_WRITERS, |event| {
            let group = match event["apiVersion"].as_str() {
                Some("v1") => "/api/v1",
                _ => "/apis/events.k8s.io/v1",
            };
            let namespace = event["metadata"]["namespace"].as_str().unwrap_or_default();
            let path = format!("{group}/namespaces/{namespace}/events");
            let write = post(&admin, &path, &event);
            async { drop(write.await) }
        });
        writes.await;
    }
}
