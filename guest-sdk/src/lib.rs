//! Write a portent classifier in one function.
//!
//! A classifier is a pure function from a [`Subject`] (an object of the cluster and the Kubernetes
//! Events about it that are still alive) to an [`Outcome`]: what it makes of them. It has no clock, no
//! files, no network and no state between calls, so there is nothing to set up: a plugin is a function,
//! one line of [`classifier!`], and tests that run without a cluster and without WebAssembly.
//!
//! ```
//! use portent_sdk::{
//!     Blame, Description, Event, Finding, Interest, Outcome, Severity, Subject, classifier,
//! };
//!
//! classifier!(
//!     classify,
//!     Description::new("eviction", "Pods that were evicted because their node ran out of memory")
//!         .interest(Interest::any().kinds(["Pod"]).reasons(["Evicted"]))
//!         .categories(["node-pressure"])
//!         .codes(["NodeLowOnMemory"])
//! );
//!
//! fn classify(subject: &Subject) -> Outcome {
//!     subject
//!         .events
//!         .iter()
//!         .enumerate()
//!         .filter(|(_, event)| event.note.contains("low on resource: memory"))
//!         .map(|(index, event)| {
//!             Finding::new("node-pressure", "NodeLowOnMemory", Severity::Warning, &event.note)
//!                 .blame(Blame::Platform)
//!                 .evidence([index])
//!                 .attribute("count", event.count)
//!         })
//!         .collect()
//! }
//!
//! # fn main() {
//! // In `#[cfg(test)]`, as any other function:
//! let subject = Subject::pod("ml-team", "train-0")
//!     .event(Event::normal("Evicted", "The node was low on resource: ephemeral-storage."))
//!     .event(Event::warning("Evicted", "The node was low on resource: memory.").count(2))
//!     .event(Event::warning("Evicted", "The node was low on resource: memory.").count(3));
//!
//! let outcome = classify(&subject);
//!
//! // Two events, one statement: collecting folds findings of one identity.
//! assert_eq!(outcome.findings.len(), 1);
//! assert_eq!(outcome.findings[0].code, "NodeLowOnMemory");
//! assert_eq!(outcome.findings[0].evidence, [1, 2]);
//! assert_eq!(outcome.findings[0].find("count"), Some("3"));
//! # }
//! ```
//!
//! The crate is a `cdylib` (for the plugin) and an `rlib` (for its tests):
//!
//! ```toml
//! [lib]
//! crate-type = ["cdylib", "rlib"]
//!
//! [dependencies]
//! portent-sdk = { path = "../portent/guest-sdk" }
//! ```
//!
//! `cargo xtask plugins --manifest-path my-plugin/Cargo.toml`, in a checkout of portent, makes the
//! component that the host loads.
//!
//! # What the host expects
//!
//! * An event is given only when it meets one of the [`Interest`]s, and of what is optional in it only
//!   what [`Description::reads`] names (all, while that is empty).
//! * Each finding rests on at least one event and carries a category and a code that the description
//!   declares; no two findings of an outcome have the same category, code and key.
//! * Settings, if the classifier takes any, come with every call: see [`Settings`].
//! * A panic costs the batch its result. Its text reaches the host's log.
//!
//! # Memory
//!
//! With the feature `bump` (on by default, wasm32 only) memory is given back by dropping the instance,
//! which the host does after each batch, and not before. Turn it off for a plugin that frees and
//! allocates without end within one call.

#[doc(hidden)]
#[allow(
    missing_docs,
    unsafe_code,
    unreachable_pub,
    clippy::pedantic,
    clippy::allow_attributes_without_reason,
    reason = "generated from the contract"
)]
pub mod bindings {
    wit_bindgen::generate!({
        path: "../wit",
        world: "plugin",
        pub_export_macro: true,
        default_bindings_module: "portent_sdk::bindings",
        additional_derives: [PartialEq, Eq],
    });
}

#[cfg(all(target_arch = "wasm32", feature = "bump"))]
mod bump;
mod description;
#[doc(hidden)]
pub mod export;
pub mod log;
mod outcome;
mod panic;
mod settings;
mod subject;

#[doc(inline)]
pub use bindings::exports::portent::classifier::descriptor::{Description, Interest};
#[doc(inline)]
pub use bindings::portent::classifier::types::{
    AdditionalReason, Agreement, Attribute, Blame, Event, Failure, Finding, ObjectRef, Outcome,
    Retry, Severity, Status, Subject, Trust, Verdict,
};
pub use settings::Settings;
