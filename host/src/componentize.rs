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
    // What follows says so too, in eleven lines.
    anyhow::ensure!(module.starts_with(b"\0asm"), "it is not WebAssembly");
    anyhow::ensure!(
        module.get(4..8) == Some(&[1, 0, 0, 0]),
        "it is a component already, or of another version of WebAssembly"
    );
    ComponentEncoder::default()
        .validate(true)
        .module(module)?
        .encode()
}
