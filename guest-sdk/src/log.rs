//! Lines in the host's log.
//!
//! The only thing that a classifier can do besides returning. The host adds which plugin wrote a line,
//! cuts what is long and drops what is too much. In a native test nothing is written: there is no host.

use crate::bindings::portent::classifier::log::Level;

/// For the plugin's author.
pub fn debug(message: &str) {
    write(Level::Debug, message);
}

/// For who runs the host.
pub fn info(message: &str) {
    write(Level::Info, message);
}

/// Something is odd, and was coped with.
pub fn warn(message: &str) {
    write(Level::Warn, message);
}

/// Somebody should look. A panic is reported at this level without your doing.
pub fn error(message: &str) {
    write(Level::Error, message);
}

#[cfg(target_arch = "wasm32")]
fn write(level: Level, message: &str) {
    crate::bindings::portent::classifier::log::log(level, message);
}

// The generated import aborts the whole test run when it is called natively.
#[cfg(not(target_arch = "wasm32"))]
fn write(_: Level, _: &str) {}

#[cfg(test)]
mod tests {
    #[test]
    fn logging_in_a_native_test_does_nothing() {
        super::debug("one");
        super::info("two");
        super::warn("three");
        super::error("four");
    }
}
