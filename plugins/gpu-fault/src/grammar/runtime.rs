//! What NVIDIA's container toolkit says when a container cannot be started, deep in the kubelet's note.
//!
//! ```text
//! Error: failed to create containerd task: .. error running hook #0: error running hook: exit status 1, stdout: , stderr: Auto-detected mode as 'legacy'
//! nvidia-container-cli: initialization error: nvml error: driver/library version mismatch: unknown
//! Failed to create pod sandbox: rpc error: code = Unknown desc = failed to get sandbox runtime: no runtime for "nvidia" is configured
//! ```
//!
//! The toolkit writes on a line of its own, or right behind `stderr: `, after a hook has failed; some runtimes
//! escape the line's end, once or several times. Anywhere else its name is part of a command or a path that
//! somebody chose. Facts: libnvidia-container, `cli/` and `src/`; containerd and CRI-O.

use crate::{
    action::Action,
    code::{self, Category},
    cursor::{Cursor, cut, given, has},
    statement::Statement,
};

pub(crate) fn read(note: &str) -> Option<Statement> {
    no_runtime(note)
        .or_else(|| toolkit(note))
        .map(Statement::effect)
}

/// The runtime class exists, the runtime does not: as long as an operator installs it, for example.
fn no_runtime(note: &str) -> Option<Statement> {
    for (before, end, after) in [
        // containerd, what dockershim and its successor say, and CRI-O.
        ("no runtime for \"", "\"", " is configured"),
        ("RuntimeHandler \"", "\"", " not supported"),
        ("failed to find runtime handler ", " ", "from runtime list"),
    ] {
        let Some((told, behind)) = cut(note, before) else {
            continue;
        };
        let (name, behind) = cut(behind, end)?;
        let is_it = (told.ends_with(": ") || told.ends_with("= "))
            && behind.starts_with(after)
            && ["nvidia", "habana", "neuron", "amd"]
                .iter()
                .any(|it| name.starts_with(it));
        let message = ["the node has no container runtime `", name, "`"].concat();
        return is_it.then(|| {
            Statement::new(Category::Config, code::RUNTIME, Action::RetrySame, message).key(name)
        });
    }
    // The binary itself is missing.
    for (before, after) in [
        (
            "exec: \"nvidia-container-runtime",
            "executable file not found in $PATH",
        ),
        (
            "fork/exec /usr/bin/nvidia-container-runtime",
            "no such file or directory",
        ),
        (
            "fork/exec /usr/local/nvidia/toolkit/nvidia-container-runtime",
            "no such file or directory",
        ),
    ] {
        let Some((_, behind)) = cut(note, before) else {
            continue;
        };
        let mut at = Cursor(behind);
        at.while_(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(&byte));
        at.maybe("\"");
        if at.maybe(": ") && at.0.starts_with(after) {
            let message = "the node has no NVIDIA container runtime";
            return Some(Statement::new(
                Category::Config,
                code::RUNTIME,
                Action::RetryElsewhere,
                message,
            ));
        }
    }
    None
}

const CLI: &str = "nvidia-container-cli";

/// What `nvidia-container-cli` says: a word for the step, ` error: `, and why.
fn toolkit(note: &str) -> Option<Statement> {
    let (before, behind) = cut(note, CLI)?;
    let is_its_own =
        before.ends_with('\n') || before.ends_with("\\n") || before.ends_with("stderr: ");
    if !is_its_own || !has(before, "hook") || has(before, "exec: \"") {
        return None;
    }
    let mut at = Cursor(behind);
    at.maybe(".real");
    at.tag(": ")?;
    let step = given(at.while_(|byte| byte.is_ascii_lowercase()))?;
    at.tag(" error: ")?;
    let line = at.0.lines().next().unwrap_or_default();
    let line = Cursor(line).until_or_rest("\\n").trim_ascii_end();
    let why = line.strip_suffix(": unknown").unwrap_or(line);
    let message = [CLI, ": ", step, " error: ", why].concat();
    let (category, code, action) = meaning(step, why);
    Some(Statement::new(category, code, action, message).attribute("step", step))
}

fn meaning(step: &str, why: &str) -> (Category, &'static str, Action) {
    use Action::{Drain, FixUser, RetryElsewhere};
    use Category::{Capacity, Config, Fault, UserError};

    match step {
        // The image asks for more than the driver has; a newer node might do, the image says so.
        "requirement" => (UserError, code::REQUIREMENT, FixUser),
        "initialization" | "detection" => {
            let nvml = why.strip_prefix("nvml error: ").unwrap_or_default();
            let nvml = nvml.to_ascii_lowercase();
            if nvml.starts_with("gpu is lost") || nvml.starts_with("gpu lost") {
                (Fault, code::FALLEN_OFF_BUS, Drain)
            } else if nvml.starts_with("unknown error") {
                (Fault, code::NVML, RetryElsewhere)
            } else {
                (Config, code::DRIVER, RetryElsewhere)
            }
        }
        // A plugin that shares devices names one that is none, to say that no device fits.
        "device" if has(why, "no-gpu-has-") => (Capacity, code::ALLOCATION, RetryElsewhere),
        _ => (Config, code::TOOLKIT, RetryElsewhere),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOOK: &str = "Error: failed to create containerd task: failed to create shim task: OCI runtime create \
        failed: runc create failed: unable to start container process: error during container init: error \
        running hook #0: error running hook: exit status 1, stdout: , stderr: ";

    #[track_caller]
    fn check(step: &str, category: Category, code: &str, action: Action) {
        for (before, after) in [
            ("Auto-detected mode as 'legacy'\n", ": unknown"),
            ("", "\\n\""),
            ("[5] ...\\\\\\\\n", ""),
        ] {
            let note = [HOOK, before, "nvidia-container-cli: ", step, after].concat();
            let statement = read(&note).unwrap();
            assert_eq!(
                (statement.category, statement.code, statement.action),
                (category, code, action),
                "{note}"
            );
            assert_eq!(statement.message, ["nvidia-container-cli: ", step].concat());
        }
    }

    #[test]
    fn every_step_has_its_meaning() {
        use Action::{Drain, FixUser, RetryElsewhere};
        use Category::{Capacity, Config, Fault, UserError};

        for why in [
            "nvml error: driver/library version mismatch",
            "nvml error: driver not loaded",
            "nvml error: insufficient permissions",
            "load library failed: libnvidia-ml.so.1: cannot open shared object file: no such file or directory",
            "driver rpc error: timed out",
        ] {
            check(
                &["initialization error: ", why].concat(),
                Config,
                "GpuDriverError",
                RetryElsewhere,
            );
        }
        check(
            "initialization error: nvml error: unknown error",
            Fault,
            "GpuNvmlError",
            RetryElsewhere,
        );
        check(
            "detection error: nvml error: GPU is lost",
            Fault,
            "GpuFallenOffBus",
            Drain,
        );
        check(
            "detection error: nvml error: unknown error",
            Fault,
            "GpuNvmlError",
            RetryElsewhere,
        );
        check(
            "requirement error: unsatisfied condition: cuda>=12.9, please update your driver to a newer version",
            UserError,
            "GpuRequirementUnmet",
            FixUser,
        );
        check(
            "device error: GPU-1: unknown device",
            Config,
            "GpuContainerToolkitError",
            RetryElsewhere,
        );
        check(
            "device error: no-gpu-has-10MiB-to-run: unknown device",
            Capacity,
            "GpuAllocationFailed",
            RetryElsewhere,
        );
        check(
            "ldcache error: process /sbin/ldconfig terminated with signal 9",
            Config,
            "GpuContainerToolkitError",
            RetryElsewhere,
        );
        check(
            "mount error: file creation failed: /x",
            Config,
            "GpuContainerToolkitError",
            RetryElsewhere,
        );
    }

    #[test]
    fn the_form_of_cri_o_is_read() {
        let note = "Error: container create failed: time=\"2024-09-26T09:22:02Z\" level=error msg=\"runc create \
            failed: error running hook #0: error running hook: exit status 1, stdout: , stderr: \
            nvidia-container-cli.real: initialization error: driver rpc error: timed out\\n\"";
        assert_eq!(read(note).unwrap().code, "GpuDriverError");
    }

    #[test]
    fn a_runtime_that_is_not_there_is_read() {
        for why in [
            "failed to get sandbox runtime: no runtime for \"nvidia\" is configured",
            "RuntimeHandler \"nvidia\" not supported",
            "failed to find runtime handler nvidia from runtime list map[runc:0xc000]",
        ] {
            let note = "Failed to create pod sandbox: rpc error: code = Unknown desc = ";
            let statement = read(&[note, why].concat()).unwrap();
            assert_eq!(
                (statement.code, statement.action),
                ("GpuRuntimeMissing", Action::RetrySame)
            );
        }
        let note = "Error: failed to create shim task: OCI runtime create failed: unable to retrieve OCI runtime \
            error (open log.json: no such file or directory): exec: \"nvidia-container-runtime\": executable \
            file not found in $PATH: unknown";
        assert_eq!(read(note).unwrap().code, "GpuRuntimeMissing");
    }

    #[test]
    fn a_command_that_looks_like_it_is_the_users() {
        for note in [
            "",
            "Error: ImagePullBackOff",
            "Error: runc create failed: exec: \"nvidia-smi\": executable file not found in $PATH: unknown",
            "Error: exec: \"nvidia-container-cli: initialization error: nvml error: driver not loaded\": not found",
            "Error: hook: exec: \"stderr: nvidia-container-cli: initialization error: x\": not found",
            "Error: nvidia-container-cli: initialization error: nvml error: driver not loaded",
            "Failed to pull image \"nvidia-container-cli: initialization error: x\"",
            "failed to get sandbox runtime: no runtime for \"gvisor\" is configured",
            "failed to get sandbox runtime: no runtime for \"nvidia",
            "rpc error: desc = RuntimeHandler \"kata\" not supported",
            "Error: exec: \"RuntimeHandler \"nvidia\" not supported\": not found",
            "Error: exec: \"nvidia-container-runtime-report\": permission denied",
        ] {
            assert_eq!(read(note), None, "{note}");
        }
    }
}
