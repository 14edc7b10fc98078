//! `cargo xtask bench store`: what an operation of the store costs with one to eight threads and a thousand to
//! a million objects, and how long one waits while a million records leave.
//!
//! It takes some two minutes. Nothing fails here, the figures are for reading.

use anyhow::Result;

use super::{bench, build_bench};
use crate::process::run as run_child;

pub(crate) fn run() -> Result<()> {
    build_bench("store")?;
    run_child(&mut bench("store"))
}
