//! The contract as Rust types, made from `wit/classifier.wit`.

#![allow(
    missing_docs,
    unreachable_pub,
    clippy::pedantic,
    clippy::allow_attributes_without_reason,
    reason = "generated; the documentation is in the WIT"
)]

wasmtime::component::bindgen!({
    path: "../wit",
    world: "plugin",
    ownership: Borrowing { duplicate_if_necessary: true },
});

pub use self::exports::portent::classifier::descriptor as described;
pub use self::portent::classifier::{log, types};
