//! Devices that the container runtime cannot find by their CDI name.
//!
//! ```text
//! Error: .. failed to inject CDI devices: unresolvable CDI devices management.nvidia.com/gpu=0: unknown
//! Failed to create pod sandbox: .. CDI device injection failed: unresolvable CDI devices nvidia.com/gpu=all
//! ```
//!
//! The vendor's name decides whether it is ours: network adapters have CDI names too. Facts: container-
//! orchestrated-devices, `cdi`.

use crate::{
    action::Action,
    code::{self, Category},
    cursor::{Cursor, cut, given, has, pieces},
    settings::Settings,
    statement::Statement,
};

const UNRESOLVABLE: &str = "unresolvable CDI devices ";

pub(crate) fn read(settings: &Settings, note: &str) -> Option<Statement> {
    let (before, behind) = cut(note, UNRESOLVABLE)?;
    // Not in a command or a path that somebody chose.
    if !before.ends_with(": ") || has(before, "exec: \"") {
        return None;
    }
    let is_of_list = |byte: u8| byte.is_ascii_alphanumeric() || b"./-_=:, ".contains(&byte);
    let list = Cursor(behind).while_(is_of_list);
    let names = pieces(list, ", ").map_while(|it| {
        let name = Cursor(it).until_or_rest(" ");
        given(name.trim_end_matches([':', ',', '.']))
    });
    let mut ours = names.take_while(|it| is_accelerator(settings, it));
    let first = ours.next()?;
    let cdi = ours.fold(first.to_owned(), |all, it| [&all, ", ", it].concat());
    let message = ["the container runtime does not know the CDI device ", &cdi].concat();
    let statement = Statement::new(Category::Config, code::CDI, Action::RetryElsewhere, message);
    Some(statement.key(cdi.as_str()).attribute("cdi", cdi).effect())
}

/// `management.nvidia.com/gpu=0`: whether the vendor, or one that it is a part of, makes accelerators.
fn is_accelerator(settings: &Settings, name: &str) -> bool {
    let Some((kind, _)) = cut(name, "=") else {
        return false;
    };
    let parts = std::iter::successors(Some(kind), |it| cut(it, ".").map(|(_, rest)| rest));
    parts.take(8).any(|it| settings.is_accelerator(it))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cdi(note: &str) -> Option<String> {
        let statement = read(&Settings::default(), note)?;
        assert_eq!(
            (statement.category, statement.code),
            (Category::Config, "GpuCdiUnresolvable")
        );
        statement.find("cdi").map(str::to_owned)
    }

    #[test]
    fn the_name_is_read_as_it_is_written() {
        for (name, want) in [
            (
                "management.nvidia.com/gpu=0: unknown",
                "management.nvidia.com/gpu=0",
            ),
            ("nvidia.com/gpu=all", "nvidia.com/gpu=all"),
            ("nvidia.com/gpu=0:1: unknown", "nvidia.com/gpu=0:1"),
            (
                "nvidia.com/gpu=0, nvidia.com/gpu=1: unknown",
                "nvidia.com/gpu=0, nvidia.com/gpu=1",
            ),
            (
                "k8s.gpu.nvidia.com/claim=3c83-gpu-0",
                "k8s.gpu.nvidia.com/claim=3c83-gpu-0",
            ),
            ("amd.com/gpu=3\n", "amd.com/gpu=3"),
        ] {
            let note = [
                "Error: failed to inject CDI devices: unresolvable CDI devices ",
                name,
            ]
            .concat();
            assert_eq!(cdi(&note).as_deref(), Some(want), "{note}");
        }
    }

    #[test]
    fn another_vendor_or_form_is_not_ours() {
        for note in [
            "Error: failed to inject CDI devices: unresolvable CDI devices mellanox.com/nic=0: unknown",
            "Error: failed to inject CDI devices: unresolvable CDI devices",
            "Error: failed to inject CDI devices: unresolvable CDI devices nvidia.com/gpu",
            "Error: exec: \"a: unresolvable CDI devices nvidia.com/gpu=0\": executable file not found",
            "unresolvable CDI devices nvidia.com/gpu=0",
        ] {
            assert_eq!(cdi(note), None, "{note}");
        }
    }
}
