//! What somebody writes who wants to be believed, and what no one meant to write.
//!
//! Anyone who may create Events writes every text of one, and a process has the name that its owner gives it.
//! Nothing here may panic, take more than linear time, or be taken for another producer's report. The random
//! cases are few while one works; `PROPTEST_CASES=100000 cargo test -p portent-gpu-fault hostile` makes many.

use std::collections::BTreeSet;

use portent_sdk::ObjectRef;
use proptest::prelude::*;

use super::*;
use crate::cursor::work;

/// Who writes something, and what: kind, reason, controller, note.
type Line = (&'static str, &'static str, &'static str, &'static str);

/// One of each form that is read. Devices, hosts and people are nobody's.
#[rustfmt::skip]
const LINES: [Line; 44] = [
    ("Pod", "GPUXidError", "", "[gpu-health] [CRITICAL] Xid 79 (GPU has fallen off the bus) on GPU 0 GPU-1. xid=79 severity=critical gpu_uuid=GPU-1 gpu_index=0 pci=0000:3b:00.0 node=n1 pid=12 process=python"),
    ("Pod", "GPUSXidError", "", "[gpu-health] [CRITICAL] SXid 20034 on NVSwitch 0000:05:00.0. sxid=20034 severity=critical pci=0000:05:00.0 node=n1"),
    ("Node", "XIDError", "nvidia-gpu-device-plugin", "Caught XID error, XID=79, GPU UUID=GPU-1, Device ID=nvidia5"),
    ("Node", "GPUXidError", "nvidia-gpu-device-plugin", "Xid=79 on Device=nvidia3, UUID=GPU-1, SN=132, the device will go unhealthy."),
    ("Node", "GPUXidError", "nvidia-gpu-device-plugin", "Failed to determine gpu device uuid for Xid=74; Marking all devices as unhealthy."),
    ("Node", "GPUMemoryError", "nvidia-gpu-device-plugin", "Device=nvidia0, UUID=GPU-1, SN=132 has failed remapped rows; The device will go unhealthy."),
    ("Node", "GPUMemoryError", "nvidia-gpu-device-plugin", "GPUServerId=s; MemoryErrorType=OverThresholdRetiredPages; Device=nvidia0; UUID=GPU-1; SN=132; Message=The device has more than 60 retired pages"),
    ("Node", "GPUHealthWarning", "nvidia-gpu-device-plugin", "Device=nvidia2, UUID=GPU-1, SN=132 failed to get fan state."),
    ("Node", "AcceleratedHardwareReady", "eks-node-monitoring-agent", "NvidiaXID31Warning: detected unknown XID-31 on the instance, review kernel logs for additional information."),
    ("Node", "AcceleratedHardwareReady", "eks-node-monitoring-agent", "DCGMHealthCode95: DCGM detected issues in health check system with error code 95"),
    ("Node", "AcceleratedHardwareReady", "eks-node-monitoring-agent", "DCGMFieldError856: DCGM detected fieldID 856 with statusCode -1: SXID Fatal Error Code 20034"),
    ("Node", "AcceleratedHardwareReady", "eks-node-monitoring-agent", "NvidiaPageRetirement: detected 0 SBE, and 1 DBE page retirements"),
    ("Node", "SysLogsXIDErrorIsNotHealthy", "syslog-health-monitor", "ErrorCode:31 PCI:0001:00:00 GPU_UUID:GPU-1 kernel: [16450076.435595] NVRM: Xid (PCI:0001:00:00): 31, pid=12, name=test, Ch 0000000a, intr 00000000. MMU Fault: ENGINE GRAPHICS Recommended Action=NONE;"),
    ("Node", "SysLogsSXIDErrorIsNotHealthy", "syslog-health-monitor", "ErrorCode:20034 NVSWITCH:0 NVLINK:30 LTSSM Fault Up Recommended Action=CONTACT_SUPPORT;"),
    ("Node", "GpuPcieWatchIsNotHealthy", "gpu-health-monitor", "ErrorCode:DCGM_FR_PCI_REPLAY_RATE GPU:0 Pcie error on GPU 0 Recommended Action=UNKNOWN;"),
    ("Node", "XIDErrors", "gpu-custom-plugin-monitor", "Node condition XIDErrors is now: True, reason: XIDErrors, message: \"NVRM: Xid (PCI:0001:00:00): 79, pid=<unknown>, name=<unknown>, GPU has fallen off the bus.\""),
    ("Node", "AMDGPU Device Internal Error", "amdgpu-custom-plugin-monitor", "Node condition AMDGPUDeviceInternalError is now: True, reason: AMDGPU Device Internal Error, message: \"inband RAS error CPER_SEVERITY_FATAL AFID 30\""),
    ("Node", "NeuronHasError_DMA_ERROR", "kernel-monitor", "NEURON_HW_ERR=DMA_ERROR nd-id=0"),
    ("Node", "NvidiaXid", "kernel-monitor", "NVRM: Xid (PCI:0000:01:00 GPU-I:05 GPU-CI:01): 31, pid=7194, name=python, Ch 00000002, intr 00000000. MMU Fault: ENGINE GRAPHICS"),
    ("Node", "NvidiaXid", "kernel-monitor", "NVRM: Xid (PCI:0000:3b:00): 45, pid=20971, name=python, Ch 00000010 caused by previous Xid 79"),
    ("Node", "NvidiaXid", "kernel-monitor", "NVRM: Xid (PCI:0018:01:00): 145, pid=8, name=ray::Worker, RLW_RXPIPE Nonfatal XC0 i0 Link 13 (0x0409a0c2 0x00000008 0x00000001)"),
    ("Node", "NvidiaXid", "kernel-monitor", "NVRM: Xid (PCI:0000:01:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"),
    ("Node", "NvidiaXid", "kernel-monitor", "NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus."),
    ("Node", "NvidiaSXid", "kernel-monitor", "nvidia-nvswitch0: SXid (PCI:0000:05:00.0): 20034, Fatal, Link 63 LTSSM Fault Up"),
    ("RayCluster", "XIDError/node-problem-detector", "", "Node event observed on Node \"node-1\" (reason: XIDError, source: node-problem-detector): Caught XID error, XID=79"),
    ("Pod", "UnexpectedAdmissionError", "kubelet", "Allocate failed due to requested number of devices unavailable for nvidia.com/gpu. Requested: 2, Available: 0, which is unexpected"),
    ("Pod", "UnexpectedAdmissionError", "kubelet", "Allocate failed due to no healthy devices present; cannot allocate unhealthy devices nvidia.com/gpu, which is unexpected"),
    ("Pod", "UnexpectedAdmissionError", "kubelet", "Pod Allocate failed due to device plugin GetPreferredAllocation rpc failed with err: rpc error: code = Unknown desc = error creating nvml.Device 5: nvml: GPU is lost, which is unexpected"),
    ("Pod", "UnexpectedAdmissionError", "kubelet", "Allocate failed due to rpc error: code = Unknown desc = request for 'nvidia.com/gpu: 2' too large: maximum request size for shared resources is 1, which is unexpected"),
    ("Pod", "UnexpectedAdmissionError", "kubelet", "Allocate failed due to rpc error: code = Unavailable desc = error reading from server: EOF, which is unexpected"),
    ("Pod", "OutOfnvidia.com/gpu", "kubelet", "Node didn't have enough resource: nvidia.com/gpu, requested: 1, used: 1, capacity: 0"),
    ("Pod", "Failed", "kubelet", "Error: runc create failed: error running hook #0: error running hook: exit status 1, stdout: , stderr: Auto-detected mode as 'legacy'\nnvidia-container-cli: initialization error: nvml error: driver/library version mismatch: unknown"),
    ("Pod", "Failed", "kubelet", "Error: failed to inject CDI devices: unresolvable CDI devices management.nvidia.com/gpu=0: unknown"),
    ("Pod", "FailedCreatePodSandBox", "kubelet", "Failed to create pod sandbox: rpc error: code = Unknown desc = failed to get sandbox runtime: no runtime for \"nvidia\" is configured"),
    ("Pod", "FailedPrepareDynamicResources", "kubelet", "Failed to prepare dynamic resources: prepare dynamic resources: DRA driver gpu.nvidia.com is not registered"),
    ("Pod", "DeviceTaintManagerEviction", "device-taint-eviction", "Marking for deletion"),
    ("Pod", "FailedScheduling", "default-scheduler", "0/2 nodes are available: 1 Insufficient nvidia.com/gpu, 1 node(s) were unschedulable. preemption: 0/2 nodes are available"),
    ("Pod", "FailedScheduling", "volcano", "0/1 nodes are unavailable: 1 hami-vgpuDeviceSharing error."),
    ("Pod", "NotTriggerScaleUp", "cluster-autoscaler", "pod didn't trigger scale-up (it wouldn't fit if a new node is added): 6 Insufficient nvidia.com/gpu"),
    ("Pod", "FailedScheduling", "karpenter", "incompatible with nodepool, no instance type satisfied resources {\"cpu\":\"1\",\"nvidia.com/gpu\":\"8\"}"),
    ("Pod", "FilteringFailed", "hami-scheduler", "2 nodes CardInsufficientMemory(node-a,node-b)"),
    ("Workload", "Pending", "kueue-admission", "couldn't assign flavors to pod set main: insufficient unused quota for nvidia.com/gpu in flavor h100, 8 more needed"),
    ("Job", "FailedCreate", "job-controller", "Error creating: pods \"train-0\" is forbidden: exceeded quota: gpu-quota, requested: requests.nvidia.com/gpu=8, used: requests.nvidia.com/gpu=40, limited: requests.nvidia.com/gpu=40"),
    ("PodGroup", "Unschedulable", "volcano", "4/4 tasks in gang unschedulable: pod group is not ready, 4 Pending. Origin reason is job-0: 0/3 nodes are unavailable: 3 Insufficient nvidia.com/gpu."),
];

fn subject((kind, reason, controller, _): Line, note: &str) -> Subject {
    let object = match kind {
        "Node" => ObjectRef::node("n1"),
        _ => ObjectRef::new("", kind, "ml-team", "train-0"),
    };
    let event = Event::warning(reason, note).created(1_788_224_460_000);
    let event = match controller {
        "" => event,
        _ => event.controller(controller),
    };
    Subject::new(object)
        .event(event)
        .failure(portent_sdk::Failure::new("Error", "", 1_788_224_460_000))
}

fn findings(line: Line, note: &str) -> Vec<Finding> {
    classify(&Settings::default(), &subject(line, note)).findings
}

#[test]
fn every_line_is_read() {
    for line in LINES {
        assert_eq!(findings(line, line.3).len(), 1, "{}", line.3);
    }
}

#[test]
fn every_line_is_read_when_it_stands_for_several() {
    for line in LINES {
        let note = ["(combined from similar events): ", line.3].concat();
        let both = [findings(line, &note), findings(line, line.3)].map(|it| it[0].clone());
        assert_eq!(both[0], both[1]);
    }
}

/// node-problem-detector's rules have any reason: what begins as a line of the kernel's log, or says that a
/// condition changed, is read whatever a monitor calls it.
fn is_free_of_its_reason((kind, _, _, note): Line) -> bool {
    let starts = ["NVRM: ", "nvidia-nvswitch", "Node condition "];
    kind == "Node" && starts.iter().any(|it| note.starts_with(it))
}

/// Schedulers have any name, and write of a pod what they write of a group.
fn waits((_, reason, _, _): Line) -> bool {
    ["FailedScheduling", "Unschedulable"].contains(&reason)
}

#[test]
fn what_one_producer_writes_is_not_believed_of_another() {
    for of_note in LINES {
        for carrier in LINES {
            let is_its_own = (waits(carrier) && waits(of_note))
                || of_note.0 == carrier.0
                    && ((of_note.1 == carrier.1 && of_note.2 == carrier.2)
                    || is_free_of_its_reason(of_note)
                    // The two reasons of Flyte's agent, and two that the kubelet has for the runtime's words.
                    || (carrier.1.starts_with("GPU") && of_note.3.starts_with("[gpu-health]"))
                    || (carrier.1.starts_with("Failed") && of_note.1.starts_with("Failed") && carrier.2 == "kubelet"));
            let found = findings(carrier, of_note.3);
            assert!(found.is_empty() || is_its_own, "{carrier:?} {}", of_note.3);
        }
    }
}

#[test]
fn a_report_about_another_kind_of_object_is_none() {
    for line in LINES {
        for kind in [
            "Pod",
            "Node",
            "Job",
            "Workload",
            "RayCluster",
            "Deployment",
            "",
        ] {
            let found = findings((kind, line.1, line.2, ""), line.3);
            // A quota is told of whatever creates pods; a group of pods waits as a pod does.
            let is_shared = [
                "FailedCreate",
                "FailedScheduling",
                "NotTriggerScaleUp",
                "Unschedulable",
            ];
            let is_its_own = kind == line.0 || is_shared.contains(&line.1);
            assert!(found.is_empty() || is_its_own, "{kind} {}", line.3);
        }
    }
}

#[track_caller]
fn check_nothing(kind: &'static str, reason: &'static str, controller: &'static str, note: &str) {
    assert_eq!(
        findings((kind, reason, controller, ""), note),
        [],
        "{reason}: {note}"
    );
}

#[test]
fn words_that_look_like_ours_are_not() {
    // A reason of ours by somebody else, and words of ours under other reasons.
    check_nothing("Pod", "GPUXidError", "", "Xid 79");
    check_nothing(
        "Pod",
        "BackOff",
        "kubelet",
        "[gpu-health] [CRITICAL] Xid 79. xid=79",
    );
    check_nothing(
        "Pod",
        "Failed",
        "kubelet",
        "Error: NVRM: Xid (PCI:0000:3b:00): 79, x",
    );
    check_nothing(
        "Pod",
        "UnexpectedAdmissionError",
        "me",
        "Allocate failed due to no healthy devices present; cannot allocate unhealthy devices nvidia.com/gpu",
    );
    check_nothing(
        "Node",
        "XIDErrors",
        "kubelet",
        "Node condition GPUMissing is now: True, reason: x, message: \"x\"",
    );
    check_nothing("Node", "NvidiaXid", "", "NVRM: Xid (PCI:0000:3b:00): 79, x");
    check_nothing(
        "Node",
        "AcceleratedHardwareReady",
        "me",
        "NvidiaXID31Warning: detected unknown XID-31 on the instance",
    );
    // Transactions, processes, sizes, names.
    check_nothing(
        "Pod",
        "FailedMount",
        "kubelet",
        "MountVolume.SetUp failed for volume \"xid-79-data\" : txid 79 aborted, pid 79",
    );
    check_nothing(
        "Node",
        "SystemOOM",
        "kubelet",
        "System OOM encountered, victim process: nvidia-dcgm, pid: 79",
    );
    check_nothing(
        "Node",
        "OOMKilling",
        "kernel-monitor",
        "Memory cgroup out of memory: Killed process 79 (xid=79)",
    );
    check_nothing(
        "Pod",
        "Scheduled",
        "default-scheduler",
        "Successfully assigned ml/gpu-79-xid48 to nvl-79",
    );
    check_nothing(
        "Pod",
        "Evicted",
        "kubelet",
        "Container cuda was using 79Gi, request is 0",
    );
    check_nothing(
        "Node",
        "PostgresXid",
        "pg-monitor",
        "xid 79 wraparound; txid=79 XID=79 Xid (79): 79, x",
    );
}

#[test]
fn a_process_cannot_name_itself_into_another_number() {
    for name in [
        "a): 79, x",
        "79",
        "xid=79",
        "x, 79, y",
        "): 79, ",
        "Xid 79",
        "a\u{0}b",
        "🦀): 79, ",
    ] {
        let note = format!("NVRM: Xid (PCI:0000:3b:00): 13, pid=79, name={name}, Ch 00000008");
        let found = findings(("Node", "NvidiaXid", "kernel-monitor", ""), &note);
        assert_eq!(found[0].find("xid"), Some("13"), "{name}");
        assert_eq!(found[0].category, "gpu-user-error");
    }
}

#[test]
fn a_cut_note_is_the_same_fault_or_none() {
    for line in LINES {
        let whole = findings(line, line.3).remove(0);
        for (end, _) in line.3.char_indices() {
            let note = line.3.split_at(end).0;
            for found in findings(line, note) {
                // Nobody can tell a number that ends a note from the beginning of a longer one.
                let ends_in_number = note.ends_with(|it: char| it.is_ascii_alphanumeric());
                let is_the_same = found.code == whole.code && found.category == whole.category;
                // Without its end, less may be known of it, and nothing else.
                let is_less = |key| [None, whole.find(key)].contains(&found.find(key));
                let is_cut_short = is_less("xid") && is_less("sxid");
                assert!(
                    is_the_same || is_cut_short || ends_in_number,
                    "{note}: {found:?}"
                );
            }
        }
    }
}

/// Long notes, made to be looked at again and again.
fn long_notes(note: &str, n_bytes: usize) -> Vec<String> {
    let fill = |piece: &str| piece.repeat(n_bytes / piece.len());
    let mut notes = vec![fill(note)];
    for piece in [
        "a",
        " ",
        ", ",
        "=",
        "): ",
        "a:b ",
        "xid=79 ",
        "\n",
        "\\n",
        "NVRM: Xid (",
        "(",
        "é",
        "\"",
        "Xid 7",
        "1 Insufficient nvidia.com/gp, ",
    ] {
        notes.push([note, &fill(piece)].concat());
        let (half, rest) = note.split_at(note.len() / 2);
        notes.push([half, &fill(piece), rest].concat());
    }
    notes
}

#[test]
fn time_is_linear_in_the_note() {
    // By what is looked at, since clocks tell of the machine: each byte a bounded number of times.
    for line in LINES {
        for note in long_notes(line.3, 1 << 14) {
            work::take();
            let grown = findings(line, &note);
            assert!(grown.len() <= 1);
            let n_times = work::take() / note.len();
            assert!(n_times <= 24, "{n_times} times: {}", line.3);
        }
    }
}

#[test]
fn a_mebibyte_does_no_harm() {
    for line in LINES.into_iter().step_by(4) {
        for note in long_notes(line.3, 1 << 20).iter().step_by(9) {
            assert!(findings(line, note).len() <= 1);
        }
    }
}

/// Every way in which an event of ours is carried, each once.
fn carriers() -> Vec<Line> {
    let carriers: BTreeSet<_> = LINES.iter().map(|it| (it.0, it.1, it.2)).collect();
    carriers
        .into_iter()
        .map(|(kind, reason, by)| (kind, reason, by, ""))
        .collect()
}

/// A line in which something was put in, taken out or exchanged, some times over.
fn mutated() -> impl Strategy<Value = (Line, String)> {
    let line = (0..LINES.len()).prop_map(|index| LINES[index]);
    let piece = prop_oneof![
        Just(String::new()),
        "\\PC{1,4}",
        "[0-9]{1,6}",
        "[ ,:;=()\\[\\]\"'\n\t]{1,3}",
        (0..LINES.len(), 0..16_usize).prop_map(|(index, n)| LINES[index]
            .3
            .chars()
            .take(n)
            .collect()),
    ];
    let change = (0.0..1.0_f64, 0..12_usize, piece);
    (line, prop::collection::vec(change, 1..5)).prop_map(|(line, changes)| {
        let mut note: Vec<char> = line.3.chars().collect();
        for (place, n_out, piece) in changes {
            let start = index_at(note.len(), place);
            let end = note.len().min(start + n_out);
            note.splice(start..end, piece.chars());
        }
        (line, note.into_iter().collect())
    })
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "a place in a short note"
)]
fn index_at(len: usize, place: f64) -> usize {
    (len as f64 * place) as usize
}

/// What the contract asks of an outcome, and what this plugin promises beside it.
fn check_outcome(subject: &Subject) {
    let outcome = classify(&Settings::default(), subject);
    let mut identities = BTreeSet::new();
    for finding in &outcome.findings {
        assert!(code::ALL.contains(&finding.code.as_str()));
        assert!(identities.insert((&finding.category, &finding.code, &finding.key)));
        assert_eq!(finding.evidence, [0]);
        let keys: BTreeSet<_> = finding.attributes.iter().map(|it| &it.key).collect();
        assert_eq!(keys.len(), finding.attributes.len(), "{finding:?}");
        // One number, of one vendor.
        let numbers = ["xid", "sxid", "afid"]
            .into_iter()
            .filter(|it| finding.find(it).is_some());
        assert!(numbers.count() <= 1, "{finding:?}");
    }
    if let Some(verdict) = outcome.verdict {
        assert!(
            verdict
                .finding
                .is_some_and(|it| (it as usize) < outcome.findings.len())
        );
    }
}

proptest! {
    #[test]
    fn no_text_is_anything_unless_somebody_writes_it(note in "\\PC{0,64}") {
        for carrier in carriers() {
            check_outcome(&subject(carrier, &note));
            prop_assert_eq!(findings(carrier, &note), [], "{:?} {}", carrier, note);
        }
    }

    #[test]
    fn changed_lines_do_no_harm((line, note) in mutated()) {
        check_outcome(&subject(line, &note));
        for carrier in carriers() {
            check_outcome(&subject(carrier, &note));
        }
    }

    #[test]
    fn a_changed_line_is_nobody_elses_fault((line, note) in mutated()) {
        // What is put in may be the beginning of another line, which says whose it is.
        let begins_as = |carrier: Line| {
            let of_it = LINES.into_iter().filter(move |it| (it.0, it.1, it.2) == (carrier.0, carrier.1, carrier.2));
            let starts = of_it.map(|it| it.3.chars().take(6).collect::<String>());
            starts.into_iter().any(|it| note.trim_start().starts_with(&it))
        };
        for carrier in carriers() {
            let is_its_own = carrier.0 == line.0 || begins_as(carrier) || (waits(line) && waits(carrier));
            prop_assert!(
                is_its_own || findings(carrier, &note).is_empty(),
                "{:?} {}", carrier, note
            );
        }
    }

    #[test]
    fn any_reason_kind_and_controller_do_no_harm(
        kind in "\\PC{0,12}", reason in "\\PC{0,24}", controller in "\\PC{0,12}", index in 0..LINES.len()
    ) {
        let event = Event::warning(reason, LINES[index].3).controller(controller);
        check_outcome(&Subject::new(ObjectRef::new("", kind, "", "x")).event(event));
    }
}
