//! What the plugin wants to see and may say.
//!
//! An event of interest crosses into the plugin and costs; the host looks at the rest natively. So each
//! interest asks for what every note of its producer has, and the grammar reads the rest.

use portent_sdk::{Description, Interest};

use crate::{
    code::{self, Category},
    grammar::{self, RAY_KINDS},
};

pub(crate) fn description() -> Description {
    let description = Description::new(
        "gpu-fault",
        "GPU faults as any producer reports them, and whose fault a failure was",
    )
    .reads([
        "event.controller",
        "event.instance",
        "event.about",
        "subject.node",
        "subject.phase",
    ])
    .categories(Category::ALL.map(Category::as_word))
    .codes(code::ALL);
    let interests = monitors().into_iter().chain(kubelet()).chain(queues());
    interests.fold(description, Description::interest)
}

/// Those who look at devices: Flyte's agent on the pod, everyone else on the node.
fn monitors() -> [Interest; 4] {
    [
        // Flyte's agent.
        Interest::any()
            .kinds(["Pod"])
            .reasons(["GPUXidError", "GPUSXidError"])
            .note_contains([grammar::FLYTE_PREFIX]),
        // What monitors write on the node, by a reason of their own or by what every note of theirs has.
        Interest::any().kinds(["Node"]).reasons([
            "XIDError",
            "GPUXidError",
            "GPUMemoryError",
            "GPUHealthWarning",
            "AcceleratedHardwareReady",
        ]),
        Interest::any().kinds(["Node"]).note_contains([
            "NVRM: ",
            "nvidia-nvswitch",
            "Node condition ",
            "ErrorCode:",
            "Recommended Action=",
            "No Health Failures",
            "NEURON_HW_ERR=",
        ]),
        Interest::any()
            .kinds(RAY_KINDS)
            .note_contains([grammar::KUBERAY_PREFIX]),
    ]
}

fn kubelet() -> [Interest; 4] {
    [
        // The kubelet, and the runtime behind it.
        Interest::any()
            .kinds(["Pod"])
            .reasons(["UnexpectedAdmissionError", "FailedPrepareDynamicResources"])
            .controllers(["kubelet"]),
        Interest::any()
            .kinds(["Pod"])
            .reason_prefixes(["OutOf"])
            .controllers(["kubelet"])
            .note_contains(["Node didn't have enough resource: "]),
        Interest::any()
            .kinds(["Pod"])
            .reasons(["Failed", "FailedCreatePodSandBox"])
            .controllers(["kubelet"])
            .note_contains([
                "nvidia-container-",
                "unresolvable CDI devices ",
                "no runtime for \"",
            ]),
        Interest::any()
            .kinds(["Pod"])
            .reasons(["DeviceTaintManagerEviction"]),
    ]
}

fn queues() -> [Interest; 4] {
    [
        // Who finds no place.
        Interest::any()
            .kinds(["Pod", "PodGroup"])
            .reasons(["FailedScheduling", "NotTriggerScaleUp", "Unschedulable"])
            .note_contains([
                "Insufficient",
                "cannot allocate all claims",
                "node unregistered",
                "vgpuDeviceSharing",
                "no instance type",
                "Mismatch",
                "Exhausted",
                "NumaNotFit",
                "NodeUnfitPod",
                "CustomFilterRule",
                "AllocateConflict",
                "QuotaNotFit",
            ]),
        Interest::any()
            .kinds(["Pod"])
            .reasons(["FilteringFailed"])
            .controllers(["hami-scheduler"]),
        Interest::any()
            .kinds(["Workload"])
            .note_contains(["couldn't assign flavors to pod set "]),
        Interest::any()
            .reasons(grammar::QUOTA_REASONS)
            .note_contains(["exceeded quota: "]),
    ]
}
