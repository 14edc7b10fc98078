//! Watches the Events of your workload and says what they mean.
//!
//! ```text
//! watch, replay -> record -> store -> dispatch -> sandbox -> outcome
//! ```
//!
//! `live` goes that path for a cluster, for as long as it runs; `replay` for a file.
//!
//! The modules stand in the order in which an Event goes through them. Each says
//! what bounds what it holds.
//!
//! Deliberately absent: a cache of whole Events, an import of a classifier that
//! does more than log, and anything that a guest's failure could take down.

pub mod check;
pub mod cli;
pub mod explain;
pub mod run;

pub mod live;
pub mod replay;
pub mod watch;

pub mod dispatch;
pub mod outcome;
pub mod output;
pub mod plugins;
pub mod pods;
pub mod record;
pub mod sandbox;
pub mod store;
pub mod subject;

pub mod apart;
pub mod componentize;
pub mod config;
mod files;
pub mod interner;
pub mod memory;
pub mod reason;
mod scan;
pub mod scope;
pub mod sink;
mod sync;
pub mod text;
pub mod yaml;
