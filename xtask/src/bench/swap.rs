//! `cargo xtask bench swap`: 1,000 swaps of plugins under more than 1,000 Events a second.
//!
//! It takes under a minute, and fails if anything is lost, doubled or said by half a version.

use anyhow::Result;

use super::{bench, build_bench};
use crate::process::run as run_child;

pub(crate) fn run() -> Result<()> {
    build_bench("swap")?;
    run_child(&mut bench("swap"))
}
