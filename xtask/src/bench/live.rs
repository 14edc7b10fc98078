//! `cargo xtask bench live`: `portent run` as a process, against a scripted server and a real one.
//!
//! It takes some minutes, most of them to write Events to the real server. Nothing fails here: figures of a
//! machine that runs server, writer and portent at once are for reading.

use anyhow::{Result, bail};

use crate::plugins;
use crate::process::{cargo, optimised_portent, plugins_dir, run as run_child};
use crate::testbed::{self, Testbed};

pub(crate) fn run() -> Result<()> {
    let testbed = match testbed::find()? {
        Testbed::In(folder) => folder,
        Testbed::Missing(reason) => bail!("{reason}"),
    };
    let bench = ["bench", "-p", "portent", "--bench", "live"];
    let host = || {
        run_child(cargo().args(bench).arg("--no-run"))?;
        Ok(optimised_portent())
    };
    plugins::run(host, None, None)?;
    run_child(
        cargo()
            .args(bench)
            .env("PORTENT_TEST_PLUGINS", plugins_dir())
            .env("PORTENT_TESTBED", testbed),
    )
}
