//! Which resources are accelerators.
//!
//! The kubelet's and the schedulers' sentences are the same for a GPU, an InfiniBand adapter and a
//! Zigbee stick: only the name of the resource tells them apart. The list is the operator's to replace.

/// The plugin's own list: vendors' devices, and the names under which sharing them is offered. A `*` at the
/// end stands for anything.
pub(crate) const ACCELERATORS: [&str; 30] = [
    "nvidia.com/*",
    "amd.com/gpu*",
    "habana.ai/*",
    "google.com/tpu*",
    "cloud-tpus.google.com/*",
    "aws.amazon.com/neuron*",
    "gpu.intel.com/*",
    "intel.com/gpu*",
    "huawei.com/Ascend*",
    "huawei.com/ascend*",
    "huawei.com/npu*",
    "cambricon.com/*",
    "hygon.com/dcu*",
    "iluvatar.ai/*",
    "metax-tech.com/*",
    "mthreads.com/*",
    "enflame.com/*",
    "kunlunxin.com/*",
    "birentech.com/*",
    "volcano.sh/vgpu*",
    "volcano.sh/gpu*",
    "aliyun.com/gpu*",
    "aliyun.com/npu*",
    "tencent.com/vcuda*",
    "4pd.io/vgpu*",
    "openxpu.com/*",
    "run.ai/gpu*",
    "kubernetes.io/gpu",
    "alpha.kubernetes.io/nvidia-gpu",
    "k8s.amazonaws.com/vgpu",
];

/// Whether the plugin's own list has it.
pub(crate) fn is_accelerator(name: &str) -> bool {
    ACCELERATORS.iter().any(|it| matches(it, name))
}

/// Whether a pattern stands for a name.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start) && !name.ends_with('/'),
        None => name == pattern,
    }
}

/// Whether a text may be a pattern: what a resource is called, with a `*` at its end or without.
pub(crate) fn is_pattern(text: &str) -> bool {
    let name = text.strip_suffix('*').unwrap_or(text);
    !name.is_empty() && name.bytes().all(is_part)
}

/// Whether a byte may be part of a resource's name.
pub(crate) fn is_part(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"./-_".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, want: bool) {
        assert_eq!(is_accelerator(name), want, "{name}");
    }

    #[test]
    fn accelerators_are_told_from_what_is_requested_alike() {
        for name in [
            "nvidia.com/gpu",
            "nvidia.com/mig-1g.5gb",
            "nvidia.com/gpu.shared",
            "amd.com/gpu",
            "habana.ai/gaudi",
            "google.com/tpu",
            "aws.amazon.com/neuroncore",
            "gpu.intel.com/i915",
            "volcano.sh/vgpu-cores",
            "huawei.com/Ascend910",
            "aliyun.com/gpu-mem",
        ] {
            check(name, true);
        }
        for name in [
            "",
            "cpu",
            "memory",
            "rdma/hca_shared_devices_a",
            "squat.ai/zigbee",
            "vpc.amazonaws.com/efa",
            "nvidia.com/",
            "nvidia.com.example.org/gpu",
            "example.org/nvidia.com/gpu",
            "smarter-devices/fuse",
            "devices.kubevirt.io/kvm",
            "hugepages-2Mi",
        ] {
            check(name, false);
        }
    }

    #[test]
    fn every_entry_of_the_list_is_a_pattern() {
        assert!(ACCELERATORS.iter().all(|it| is_pattern(it)));
        assert!(
            ["", "*", "a*b", "*a", "a b"]
                .iter()
                .all(|it| !is_pattern(it))
        );
    }
}
