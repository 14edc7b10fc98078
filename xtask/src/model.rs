//! `cargo xtask model`: the models of `model`, each in many more orders than the tests have time for.

use std::num::NonZeroUsize;

use anyhow::Result;

use crate::process::{cargo, run as run_child};

/// Each model runs so often by each of two schedulers.
pub(crate) fn run(iterations: NonZeroUsize) -> Result<()> {
    let mut models = cargo();
    models
        // Of the whole workspace, for the features that its dependencies are built with already.
        .args(["test", "--workspace", "--test", "model"])
        .env("PORTENT_MODEL_ITERATIONS", iterations.to_string())
        .env_remove("PORTENT_MODEL_SCHEDULE");
    run_child(&mut models)
}
