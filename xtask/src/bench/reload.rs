//! `cargo xtask bench reload`: 1,000 swaps of a plugin in a running portent, under the Events of a real server.
//!
//! It takes some six minutes, and fails if anything is lost, doubled or said by half a version.

use anyhow::{Result, bail};

use super::{bench, build_bench};
use crate::process::run as run_child;
use crate::testbed::{self, Testbed};

pub(crate) fn run() -> Result<()> {
    let testbed = match testbed::find()? {
        Testbed::In(folder) => folder,
        Testbed::Missing(reason) => bail!("{reason}"),
    };
    build_bench("reload")?;
    run_child(bench("reload").env("PORTENT_TESTBED", testbed))
}
