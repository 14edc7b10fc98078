//! Watches the Events of your workload and says what they mean.
//!
//! ```text
//! replay -> record -> store -> dispatch -> sandbox -> outcome
//! ```
//!
//! The modules stand in the order in which an Event goes through them. Each says
//! what bounds what it holds.
//!
//! Deliberately absent: a cache of whole Events, an import of a classifier that
//! does more than log, and anything that a guest's failure could take down.

pub mod cli;
pub mod replay;

pub mod dispatch;
pub mod outcome;
pub mod plugins;
pub mod record;
pub mod sandbox;
pub mod store;
pub mod subject;

pub mod componentize;
pub mod reason;
pub mod scope;
pub mod text;
