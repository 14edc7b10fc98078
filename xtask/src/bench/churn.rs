//! `cargo xtask bench churn`: what 200,000 objects leave behind when all of their Events are gone.
//!
//! It takes some five minutes: a row that does not give its memory back is waited for 30 s. Nothing fails
//! here, the figures are for reading.

use anyhow::Result;

use super::{bench, build_bench};
use crate::process::run as run_child;

pub(crate) fn run() -> Result<()> {
    build_bench("churn")?;
    run_child(&mut bench("churn"))
}
