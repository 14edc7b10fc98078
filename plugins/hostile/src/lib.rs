//! Guests that misbehave, each in one way, for whoever hosts `portent:classifier`.
//!
//! The list ([`GUESTS`]) is the one place that says what each does and where a host has to stop it; the
//! README, the host's tests and `expected.json` follow from it. Most guests are text, a core module each
//! in `guests` ([`component`]); what text cannot hold is made by code. Nothing here needs a toolchain for
//! WebAssembly, and nothing here runs a guest.
//!
//! What bounds it: a component has 34 MB at most, and is made when it is asked for.

mod encode;
mod guests;
mod large;

pub use encode::component_of;
pub use guests::{GUESTS, Guest, Stop, component, guest};
