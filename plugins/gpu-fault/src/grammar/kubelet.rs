//! Why the kubelet turned a pod away that the scheduler had sent.
//!
//! ```text
//! Allocate failed due to requested number of devices unavailable for nvidia.com/gpu. Requested: 1, Available: 0, which is unexpected
//! Allocate failed due to no healthy devices present; cannot allocate unhealthy devices nvidia.com/gpu, which is unexpected
//! Allocate failed due to previously allocated devices are no longer healthy; cannot allocate unhealthy devices nvidia.com/gpu, ..
//! Allocate failed due to cannot allocate unregistered device nvidia.com/gpu, which is unexpected
//! Allocate failed due to rpc error: code = Unknown desc = request for 'nvidia.com/gpu: 2' too large: ..
//! Node didn't have enough resource: nvidia.com/gpu, requested: 1, used: 1, capacity: 0
//! ```
//!
//! The same sentences are written about every resource, so the name of the resource decides whether they
//! are ours. Such a pod is never tried again by the kubelet. Facts: kubernetes, `devicemanager/manager.go`
//! and `lifecycle/predicate.go`.

use crate::{
    action::Action,
    code::{self, Category},
    cursor::{Cursor, cut, given, has},
    resource,
    settings::Settings,
    statement::{Device, Statement},
};

/// Reads the note of `UnexpectedAdmissionError`.
pub(crate) fn admission(settings: &Settings, note: &str) -> Option<Statement> {
    let mut at = Cursor(note);
    at.maybe("Pod was rejected: ");
    at.maybe("Pod ");
    at.tag("Allocate failed due to ")?;
    let cause = at.0.trim_ascii_end();
    let cause = cause.strip_suffix(", which is unexpected").unwrap_or(cause);
    let statement = device_manager(settings, cause).or_else(|| rpc(settings, cause))?;
    Some(statement.effect())
}

/// The kubelet's own four texts.
fn device_manager(settings: &Settings, cause: &str) -> Option<Statement> {
    let mut at = Cursor(cause);
    if at.maybe("requested number of devices unavailable for ") {
        let resource = accelerator(settings, at.until(". Requested: ")?)?;
        let requested = at.number()?;
        at.tag(", Available: ")?;
        let available = at.number()?;
        at.end()?;
        let message = [resource, " is not free, though the scheduler took it to be"].concat();
        return Some(
            of_resource(
                Category::Capacity,
                code::ALLOCATION,
                Action::RetryElsewhere,
                resource,
                message,
            )
            .attribute("requested", requested)
            .attribute("available", available),
        );
    }
    let (category, code, message) = if at
        .maybe("no healthy devices present; cannot allocate unhealthy devices ")
    {
        (Category::Fault, code::UNHEALTHY, " has no healthy device")
    } else if at.maybe(
        "previously allocated devices are no longer healthy; cannot allocate unhealthy devices ",
    ) {
        (
            Category::Fault,
            code::UNHEALTHY,
            " that the pod had is no longer healthy",
        )
    } else {
        at.tag("cannot allocate unregistered device ")?;
        (
            Category::Config,
            code::DEVICE_PLUGIN,
            " is not registered: its device plugin does not run",
        )
    };
    let resource = accelerator(settings, at.0)?;
    let message = [resource, message].concat();
    Some(of_resource(
        category,
        code,
        Action::RetryElsewhere,
        resource,
        message,
    ))
}

/// What a device plugin answered, or why it did not.
fn rpc(settings: &Settings, cause: &str) -> Option<Statement> {
    let mut at = Cursor(cause);
    if at.maybe("device plugin ") {
        // GetPreferredAllocation, for example.
        at.while_(|byte| byte.is_ascii_alphanumeric());
        at.tag(" rpc failed with err: ")?;
    }
    at.tag("rpc error: code = ")?;
    let status = at.until(" desc = ")?;
    let text = at.0;

    if let Some(mut index) = lost_device(text) {
        let device = Device {
            index: index.number(),
            ..Device::default()
        };
        let message = "NVML says that the GPU is lost";
        let statement = Statement::new(
            Category::Fault,
            code::FALLEN_OFF_BUS,
            Action::Drain,
            message,
        );
        return Some(statement.on(&device));
    }
    if has(text, "nvml: ") || has(text, "nvml error: ") {
        let message = "the device plugin cannot talk to the driver";
        return Some(Statement::new(
            Category::Fault,
            code::NVML,
            Action::RetryElsewhere,
            message,
        ));
    }
    if let Some(resource) = quoted(settings, text) {
        let is_too_large = has(
            text,
            "too large: maximum request size for shared resources is ",
        );
        return Some(if is_too_large {
            let message = [resource, " is shared: a pod may ask for one only"].concat();
            of_resource(
                Category::UserError,
                code::REQUEST,
                Action::FixUser,
                resource,
                message,
            )
        } else {
            let message = ["the device plugin of ", resource, " refused: ", text].concat();
            of_resource(
                Category::Config,
                code::DEVICE_PLUGIN,
                Action::RetryElsewhere,
                resource,
                message,
            )
        });
    }
    // It names no resource: that a device plugin died is all that there is to know.
    let is_gone = matches!(status, "Unavailable" | "DeadlineExceeded" | "Canceled")
        || text.starts_with("no binding pod found on node ");
    let message = ["a device plugin did not answer: ", text].concat();
    is_gone.then(|| {
        Statement::new(
            Category::Config,
            code::DEVICE_PLUGIN,
            Action::RetrySame,
            message,
        )
    })
}

/// Where a device's index would be in a text by which NVML gives it up.
fn lost_device(text: &str) -> Option<Cursor<'_>> {
    let is_lost = has(text, "nvml: GPU is lost") || has(text, "nvml error: gpu is lost");
    let behind = cut(text, "nvml.Device ").map_or("", |(_, it)| it);
    is_lost.then_some(Cursor(behind))
}

/// `'nvidia.com/gpu: 2'` or `'nvidia.com/gpu'`.
fn quoted<'a>(settings: &Settings, text: &'a str) -> Option<&'a str> {
    let mut at = Cursor(text);
    at.until("'")?;
    let name = at.until("'")?;
    accelerator(settings, Cursor(name).until_or_rest(":"))
}

/// Reads the note whose reason is `OutOf` and a resource.
pub(crate) fn out_of(settings: &Settings, resource: &str, note: &str) -> Option<Statement> {
    let resource = accelerator(settings, resource)?;
    let mut at = Cursor(note);
    at.maybe("Pod was rejected: ");
    at.maybe("Pod ");
    at.tag("Node didn't have enough resource: ")?;
    at.tag(resource)?;
    at.tag(", requested: ")?;
    let requested = at.number()?;
    at.tag(", used: ")?;
    let used = at.number()?;
    at.tag(", capacity: ")?;
    let capacity = at.number()?;
    at.end()?;
    // A node to which the scheduler sent it had some; a device plugin withdraws them all at once.
    let (category, code, message) = if capacity == 0 {
        (
            Category::Fault,
            code::UNHEALTHY,
            " was withdrawn from the node",
        )
    } else {
        (
            Category::Capacity,
            code::ALLOCATION,
            " is taken, though the scheduler took it to be free",
        )
    };
    let message = [resource, message].concat();
    let statement = of_resource(category, code, Action::RetryElsewhere, resource, message);
    Some(
        statement
            .attribute("requested", requested)
            .attribute("used", used)
            .attribute("capacity", capacity)
            .effect(),
    )
}

fn of_resource(
    category: Category,
    code: &'static str,
    action: Action,
    resource: &str,
    message: String,
) -> Statement {
    Statement::new(category, code, action, message)
        .key(resource)
        .attribute("resource", resource)
}

/// A resource's name, if it is one and an accelerator's.
fn accelerator<'a>(settings: &Settings, name: &'a str) -> Option<&'a str> {
    let name = given(name.trim_ascii())?;
    let is_name = name.bytes().all(resource::is_part);
    (is_name && settings.is_accelerator(name)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(cause: &str) -> Option<Statement> {
        let note = format!("Allocate failed due to {cause}, which is unexpected");
        admission(&Settings::default(), &note)
    }

    #[track_caller]
    fn check(cause: &str, category: Category, code: &str, action: Action) -> Statement {
        let statement = read(cause).unwrap();
        assert_eq!(
            (statement.category, statement.code, statement.action),
            (category, code, action),
            "{cause}"
        );
        statement
    }

    #[test]
    fn the_four_texts_are_read() {
        let statement = check(
            "requested number of devices unavailable for nvidia.com/gpu. Requested: 2, Available: 1",
            Category::Capacity,
            "GpuAllocationFailed",
            Action::RetryElsewhere,
        );
        assert_eq!(statement.find("resource"), Some("nvidia.com/gpu"));
        assert_eq!(statement.find("requested"), Some("2"));
        assert_eq!(statement.find("available"), Some("1"));
        for start in [
            "no healthy devices present",
            "previously allocated devices are no longer healthy",
        ] {
            check(
                &[
                    start,
                    "; cannot allocate unhealthy devices nvidia.com/mig-1g.5gb",
                ]
                .concat(),
                Category::Fault,
                "GpuUnhealthy",
                Action::RetryElsewhere,
            );
        }
        check(
            "cannot allocate unregistered device amd.com/gpu",
            Category::Config,
            "GpuDevicePluginUnavailable",
            Action::RetryElsewhere,
        );
    }

    #[test]
    fn every_version_of_the_frame_is_read() {
        let cause = "Allocate failed due to cannot allocate unregistered device nvidia.com/gpu";
        for (before, after) in [
            ("", ", which is unexpected"),
            ("Pod ", ", which is unexpected"),
            ("Pod was rejected: ", ", which is unexpected"),
            ("Pod was rejected: Pod ", ""),
        ] {
            let note = [before, cause, after].concat();
            assert!(admission(&Settings::default(), &note).is_some(), "{note}");
        }
    }

    #[test]
    fn another_resource_is_not_ours() {
        for resource in [
            "squat.ai/zigbee",
            "rdma/hca",
            "cpu",
            "vpc.amazonaws.com/efa",
            "nvidia.com/gpu x",
        ] {
            for cause in [
                format!(
                    "requested number of devices unavailable for {resource}. Requested: 1, Available: 0"
                ),
                format!("no healthy devices present; cannot allocate unhealthy devices {resource}"),
                format!("cannot allocate unregistered device {resource}"),
            ] {
                assert_eq!(read(&cause), None, "{cause}");
            }
        }
    }

    #[test]
    fn what_a_device_plugin_answers_is_read() {
        let statement = check(
            "device plugin GetPreferredAllocation rpc failed with err: rpc error: code = Unknown desc = \
             Unable to retrieve list of available devices: error creating nvml.Device 5: nvml: GPU is lost",
            Category::Fault,
            "GpuFallenOffBus",
            Action::Drain,
        );
        assert_eq!(statement.find("gpu_index"), Some("5"));
        check(
            "rpc error: code = Unknown desc = request for 'nvidia.com/gpu: 2' too large: maximum request \
             size for shared resources is 1",
            Category::UserError,
            "GpuRequestInvalid",
            Action::FixUser,
        );
        check(
            "rpc error: code = Unknown desc = invalid allocation request for 'nvidia.com/gpu': unknown device: GPU-1",
            Category::Config,
            "GpuDevicePluginUnavailable",
            Action::RetryElsewhere,
        );
        check(
            "rpc error: code = Unavailable desc = error reading from server: EOF",
            Category::Config,
            "GpuDevicePluginUnavailable",
            Action::RetrySame,
        );
        check(
            "rpc error: code = Unknown desc = nvml: Unknown Error",
            Category::Fault,
            "GpuNvmlError",
            Action::RetryElsewhere,
        );
    }

    #[test]
    fn another_cause_is_not_ours() {
        for cause in [
            "not enough cpus available to satisfy request",
            "rpc error: code = Unknown desc = no such bridge 'rdma/hca: 1'",
            "rpc error: code = Unknown desc = something with a gpu",
            "requested number of devices unavailable for nvidia.com/gpu. Requested: many, Available: 0",
            "",
        ] {
            assert_eq!(read(cause), None, "{cause}");
        }
        let settings = Settings::default();
        assert_eq!(
            admission(
                &settings,
                "cannot allocate unregistered device nvidia.com/gpu"
            ),
            None
        );
        assert_eq!(
            admission(
                &settings,
                "Update plugin resources failed due to nvidia.com/gpu"
            ),
            None
        );
    }

    #[test]
    fn what_a_node_is_out_of_is_in_the_reason_too() {
        let note = |capacity: u32| {
            format!(
                "Node didn't have enough resource: nvidia.com/gpu, requested: 1, used: 1, capacity: {capacity}"
            )
        };
        let read = |resource, note: &str| out_of(&Settings::default(), resource, note);
        let statement = read("nvidia.com/gpu", &note(0)).unwrap();
        assert_eq!(
            (statement.category, statement.code),
            (Category::Fault, "GpuUnhealthy")
        );
        assert_eq!(statement.find("capacity"), Some("0"));
        let statement = read("nvidia.com/gpu", &note(8)).unwrap();
        assert_eq!(
            (statement.category, statement.code),
            (Category::Capacity, "GpuAllocationFailed")
        );
        assert_eq!(
            read(
                "cpu",
                "Node didn't have enough resource: cpu, requested: 4, used: 7, capacity: 8"
            ),
            None
        );
        assert_eq!(read("amd.com/gpu", &note(0)), None);
    }
}
