//! `cargo xtask bench gpu`: what gpu-fault says of each labelled line, as a table of labels and what was said, with
//! precision and recall. It fails as the test does that it runs.

use anyhow::{Context as _, Result};

use crate::plugins;
use crate::process::{cargo, plugins_dir, run as run_child};
use crate::test::corpus;

pub(crate) fn run() -> Result<()> {
    let corpus =
        corpus().context("there is no ../shared/corpus beside this checkout to score by")?;
    plugins::run(plugins::built_portent, None, None)?;
    let mut score = cargo();
    score
        .args([
            "test",
            "--quiet",
            "-p",
            "portent",
            "--test",
            "corpus",
            "--",
            "--nocapture",
        ])
        .args(["--test-threads", "1", "labels"])
        .env("PORTENT_CORPUS", corpus)
        .env("PORTENT_TEST_PLUGINS", plugins_dir());
    run_child(&mut score)
}
