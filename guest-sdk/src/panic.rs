//! What a panic says reaches the host.
//!
//! On wasm32-unknown-unknown a panic is the instruction `unreachable`: its text goes to a stderr that
//! does not exist, and the host sees only a trap. A hook writes it to the log first.

#[cfg(any(target_arch = "wasm32", test))]
use std::fmt::Display;

/// Sees to it that a panic of this instance is logged.
#[cfg(target_arch = "wasm32")]
pub(crate) fn report() {
    static HOOK: std::sync::Once = std::sync::Once::new();
    HOOK.call_once(|| {
        std::panic::set_hook(Box::new(|panic| {
            let message = panic.payload_as_str().unwrap_or("(not a text)");
            match panic.location() {
                Some(place) => crate::log::error(&line(place, message)),
                None => crate::log::error(&line("an unknown place", message)),
            }
        }));
    });
}

// A native test has its own report.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) fn report() {}

/// One line, for example `panicked at src/lib.rs:12:5: boom 42`.
#[cfg(any(target_arch = "wasm32", test))]
fn line(place: impl Display, message: &str) -> String {
    format!("panicked at {place}: {message}").replace(['\r', '\n'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_one_line_with_its_place() {
        assert_eq!(
            line("src/lib.rs:12:5", "boom 42"),
            "panicked at src/lib.rs:12:5: boom 42"
        );
        assert_eq!(
            line("a.rs:1:2", "left: 1\nright: 2"),
            "panicked at a.rs:1:2: left: 1 right: 2"
        );
    }
}
