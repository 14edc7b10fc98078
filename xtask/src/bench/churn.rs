//! `cargo xtask bench churn`: what 200,000 objects leave behind when all of their Events are gone.
//!
//! It takes some five minutes: a row that does not give its memory back is waited for 30 s. Nothing fails
//! here, the figures are for reading.

use anyhow::Result;

use crate::plugins;
use crate::process::{cargo, optimised_portent, plugins_dir, run as run_child};

pub(crate) fn run() -> Result<()> {
    let bench = ["bench", "-p", "portent", "--bench", "churn"];
    let host = || {
        run_child(cargo().args(bench).arg("--no-run"))?;
        Ok(optimised_portent())
    };
    plugins::run(host, None, None)?;
    run_child(
        cargo()
            .args(bench)
            .env("PORTENT_TEST_PLUGINS", plugins_dir()),
    )
}
