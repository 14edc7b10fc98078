//! `cargo xtask bench live`: `portent run` as a process, against a scripted server and a real one.
//!
//! It takes some minutes, most of them to write Events to the real server. Nothing fails here: figures of a
//! machine that runs server, writer and portent at once are for reading.

use anyhow::{Result, bail};

use super::{bench, build_bench};
use crate::process::run as run_child;
use crate::testbed::{self, Testbed};

pub(crate) fn run() -> Result<()> {
    let testbed = match testbed::find()? {
        Testbed::In(folder) => folder,
        Testbed::Missing(reason) => bail!("{reason}"),
    };
    build_bench("live")?;
    run_child(bench("live").env("PORTENT_TESTBED", testbed))
}
