//! Events as an ordinary cluster has them, made up from a seed.
//!
//! A pod has about five: it is scheduled, its image is pulled, its container is
//! created and started, and with some pods something goes wrong. One Event in a
//! hundred is a GPU fault. Pods come up in cohorts, so that the Events of one pod
//! do not lie side by side. The same number of Events is the same bytes on every
//! machine.

use std::io::{self, Write};

use fastrand::Rng;
use jiff::Timestamp;

/// In what form an Event is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// As the server sends it to a watch on `events.k8s.io/v1`, managed fields and
    /// all: about 1.3 kB.
    Watched,
    /// As core/v1 has it, and of that what tells of the Event and of its object:
    /// about 350 B.
    Short,
}

/// Pods that come up together.
const COHORT: usize = 64;

/// What an Event says, and of how many pods one has it.
struct Kind {
    event_type: &'static str,
    reason: &'static str,
    by: By,
    /// One in so many.
    one_in: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Scheduler,
    Kubelet,
    NodeAgent,
}

/// In the order in which they come to a pod: 4.99 of them on average.
const KINDS: [Kind; 10] = [
    kind("Warning", "FailedScheduling", By::Scheduler, 8),
    kind("Normal", "Scheduled", By::Scheduler, 1),
    kind("Warning", "FailedMount", By::Kubelet, 16),
    kind("Normal", "Pulling", By::Kubelet, 2),
    kind("Normal", "Pulled", By::Kubelet, 1),
    kind("Normal", "Created", By::Kubelet, 1),
    kind("Normal", "Started", By::Kubelet, 1),
    kind("Warning", FAULT, By::NodeAgent, 20),
    kind("Warning", "Unhealthy", By::Kubelet, 8),
    kind("Warning", "BackOff", By::Kubelet, 8),
];

/// The reason of a GPU fault.
const FAULT: &str = "GPUXidError";

const fn kind(event_type: &'static str, reason: &'static str, by: By, one_in: u32) -> Kind {
    Kind {
        event_type,
        reason,
        by,
        one_in,
    }
}

/// A pod, and where it runs.
struct Pod {
    namespace: String,
    name: String,
    uid: String,
    node: String,
}

/// Writes so many Events of an ordinary mix, a JSON object a line. `count` is how
/// often each of them was seen.
///
/// # Errors
///
/// If they cannot be written.
pub(crate) fn write(
    to: &mut impl Write,
    form: Form,
    n_events: usize,
    count: u32,
) -> io::Result<()> {
    let mut rng = Rng::with_seed(7992);
    let mut n_left = n_events;
    for cohort in 0.. {
        let pods: Vec<_> = (0..COHORT)
            .map(|it| Pod::new(cohort * COHORT + it, &mut rng))
            .collect();
        for kind in &KINDS {
            for pod in &pods {
                if rng.u32(0..kind.one_in) != 0 {
                    continue;
                }
                if n_left == 0 {
                    return Ok(());
                }
                n_left -= 1;
                let at = START + i64::try_from(n_events - n_left).unwrap_or(0) / 100;
                line(to, form, pod, kind, (at, count), &mut rng)?;
            }
        }
    }
    Ok(())
}

/// The same, in memory.
pub(crate) fn lines(form: Form, n_events: usize, count: u32) -> Vec<u8> {
    let mut lines = Vec::new();
    write(&mut lines, form, n_events, count).expect("a vector takes what it is given");
    lines
}

/// So many Events about each of so many pods. One in `one_fault_in` is a GPU
/// fault, none if that is 0; the others take turns.
pub(crate) fn of_pods(n_pods: usize, of_each: usize, one_fault_in: usize) -> Vec<u8> {
    let mut rng = Rng::with_seed(7993);
    let (faults, others): (Vec<_>, Vec<_>) = KINDS.iter().partition(|it| it.reason == FAULT);
    let mut lines = Vec::new();
    let mut n = 0_usize;
    for pod in 0..n_pods {
        let pod = Pod::new(pod, &mut rng);
        for _ in 0..of_each {
            let is_fault = n.checked_rem(one_fault_in) == Some(0);
            let kinds = if is_fault { &faults } else { &others };
            let at = START + i64::try_from(n).unwrap_or(0);
            let kind = kinds[n % kinds.len()];
            line(&mut lines, Form::Watched, &pod, kind, (at, 1), &mut rng)
                .expect("a vector takes what it is given");
            n += 1;
        }
    }
    lines
}

/// So many Events about one pod of a cluster, the same whenever it is asked for.
/// This percentage of all Events are GPU faults; the others take turns.
pub(crate) fn of_pod(pod: usize, of_each: usize, percent_faults: usize) -> Vec<u8> {
    let mut rng = Rng::with_seed(u64::try_from(pod).unwrap_or(0));
    let (faults, others): (Vec<_>, Vec<_>) = KINDS.iter().partition(|it| it.reason == FAULT);
    let (idx, pod) = (pod, Pod::new(pod, &mut rng));
    let mut lines = Vec::new();
    for n in idx * of_each..(idx + 1) * of_each {
        let kinds = if n % 100 < percent_faults {
            &faults
        } else {
            &others
        };
        let at = START + i64::try_from(n / 100).unwrap_or(0);
        let kind = kinds[n % kinds.len()];
        line(&mut lines, Form::Watched, &pod, kind, (at, 1), &mut rng)
            .expect("a vector takes what it is given");
    }
    lines
}

/// 2026-01-01T00:00:00Z.
const START: i64 = 1_767_225_600;

impl Pod {
    fn new(idx: usize, rng: &mut Rng) -> Self {
        let team = idx % 40;
        Self {
            namespace: format!("team-{team}"),
            name: format!("train-{:x}-{:04x}", idx / 8, rng.u16(..)),
            uid: uid(rng),
            node: format!("gpu-{:03}", rng.u32(..400)),
        }
    }
}

fn uid(rng: &mut Rng) -> String {
    let (a, b) = (rng.u64(..), rng.u64(..));
    format!(
        "{:08x}-{:04x}-4{:03x}-a{:03x}-{:012x}",
        a >> 32,
        a >> 16 & 0xffff,
        a & 0xfff,
        b >> 48 & 0xfff,
        b & 0xffff_ffff_ffff
    )
}

/// What the reporter has to say, without a character that JSON would escape.
fn note(kind: &Kind, pod: &Pod, rng: &mut Rng) -> String {
    let Pod {
        namespace,
        name,
        node,
        ..
    } = pod;
    match kind.reason {
        "Scheduled" => format!("Successfully assigned {namespace}/{name} to {node}"),
        "FailedScheduling" => "0/400 nodes are available: 12 node(s) had untolerated taint, 388 \
             Insufficient nvidia.com/gpu. preemption: not eligible"
            .to_owned(),
        "FailedMount" => {
            "MountVolume.SetUp failed for volume data: timed out waiting for the condition"
                .to_owned()
        }
        "Pulling" => "Pulling image registry.example/train:2.4".to_owned(),
        "Pulled" => format!(
            "Successfully pulled image registry.example/train:2.4 in {}ms",
            rng.u32(100..30_000)
        ),
        "Created" => "Created container main".to_owned(),
        "Started" => "Started container main".to_owned(),
        "Unhealthy" => "Readiness probe failed: HTTP probe failed with statuscode: 503".to_owned(),
        "BackOff" => format!("Back-off restarting failed container main in pod {name}"),
        _ => fault(node, rng),
    }
}

/// A GPU fault as Flyte's node agent writes it.
fn fault(node: &str, rng: &mut Rng) -> String {
    let (xid, name, level, severity) = [
        (79, "GPU has fallen off the bus", "CRITICAL", "critical"),
        (48, "Double Bit ECC Error", "CRITICAL", "critical"),
        (74, "NVLINK Error", "CRITICAL", "critical"),
        (94, "Contained ECC error", "WARN", "warn"),
        (31, "GPU memory page fault", "USER", "user"),
        (13, "Graphics Engine Exception", "USER", "user"),
    ][rng.usize(..6)];
    let gpu = rng.u32(..8);
    let uuid = format!("GPU-{gpu}e4a1b52-3c8d-4f60-9a17-5d2b8c6f0e93");
    let pid = rng.u32(1_000..100_000);
    format!(
        "[gpu-health] [{level}] Xid {xid} ({name}) on GPU {gpu} {uuid}. xid={xid} \
         severity={severity} gpu_uuid={uuid} gpu_index={gpu} pci=0000:{gpu:x}b:00.0 node={node} \
         pid={pid} process=python"
    )
}

fn line(
    to: &mut impl Write,
    form: Form,
    pod: &Pod,
    kind: &Kind,
    (at, count): (i64, u32),
    rng: &mut Rng,
) -> io::Result<()> {
    let at = Timestamp::from_second(at).unwrap_or_default();
    let note = note(kind, pod, rng);
    let Pod {
        namespace,
        name,
        uid: pod_uid,
        node,
    } = pod;
    let Kind {
        event_type, reason, ..
    } = kind;
    let (event, uid) = (rng.u64(1 << 60..1 << 61), uid(rng));
    let (component, host, field_path) = match kind.by {
        By::Scheduler => ("default-scheduler", "", ""),
        By::Kubelet => ("kubelet", &**node, "spec.containers{main}"),
        By::NodeAgent => ("gpu-health", &**node, ""),
    };
    match form {
        Form::Short => write!(
            to,
            "{{\"kind\":\"Event\",\"metadata\":{{\"name\":\"{name}.{event:x}\",\"namespace\":\
             \"{namespace}\"}},\"involvedObject\":{{\"kind\":\"Pod\",\"namespace\":\
             \"{namespace}\",\"name\":\"{name}\",\"uid\":\"{pod_uid}\"}},\"reason\":\"{reason}\",\
             \"message\":\"{note}\",\"source\":{{\"component\":\"{component}\"}},\
             \"lastTimestamp\":\"{at}\",\"count\":{count},\"type\":\"{event_type}\"}}"
        )?,
        Form::Watched => {
            let version = rng.u32(10_000_000..99_999_999);
            let source = if host.is_empty() {
                format!("{{\"component\":\"{component}\"}}")
            } else {
                format!("{{\"component\":\"{component}\",\"host\":\"{host}\"}}")
            };
            write!(
                to,
                "{{\"kind\":\"Event\",\"apiVersion\":\"events.k8s.io/v1\",\"metadata\":{{\"name\":\
                 \"{name}.{event:x}\",\"namespace\":\"{namespace}\",\"uid\":\"{uid}\",\
                 \"resourceVersion\":\"{version}\",\"creationTimestamp\":\"{at}\",\
                 \"managedFields\":[{{\"manager\":\"{component}\",\"operation\":\"Update\",\
                 \"apiVersion\":\"v1\",\"time\":\"{at}\",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":\
                 {{\"f:count\":{{}},\"f:firstTimestamp\":{{}},\"f:involvedObject\":{{}},\
                 \"f:lastTimestamp\":{{}},\"f:message\":{{}},\"f:reason\":{{}},\
                 \"f:reportingComponent\":{{}},\"f:reportingInstance\":{{}},\"f:source\":\
                 {{\"f:component\":{{}},\"f:host\":{{}}}},\"f:type\":{{}}}}}}]}},\"eventTime\":\
                 null,\"reportingController\":\"{component}\",\"reportingInstance\":\"{host}\",\
                 \"reason\":\"{reason}\",\"regarding\":{{\"kind\":\"Pod\",\"namespace\":\
                 \"{namespace}\",\"name\":\"{name}\",\"uid\":\"{pod_uid}\",\"apiVersion\":\"v1\",\
                 \"resourceVersion\":\"{version}\",\"fieldPath\":\"{field_path}\"}},\"note\":\
                 \"{note}\",\"type\":\"{event_type}\",\"deprecatedSource\":{source},\
                 \"deprecatedFirstTimestamp\":\"{at}\",\"deprecatedLastTimestamp\":\"{at}\",\
                 \"deprecatedCount\":{count}}}"
            )?;
        }
    }
    to.write_all(b"\n")
}
