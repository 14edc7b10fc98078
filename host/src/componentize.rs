//! Turns the core module that a compiler makes of a plugin into a component.
//!
//! For plugin authors, so that they need no other tool. The module carries the
//! contract in a custom section, put there by the SDK's bindings.

use wit_component::ComponentEncoder;

/// The component of a core module, validated. Its name section stays, so that a
/// trap names the function that it was in.
///
/// # Errors
///
/// If the bytes are no core module, or one that was not built on the contract.
pub fn componentize(module: &[u8]) -> anyhow::Result<Vec<u8>> {
    ComponentEncoder::default()
        .validate(true)
        .module(module)?
        .encode()
}
