//! `cargo xtask fuzz`: the properties of gpu-fault's parsers, each with many more texts than the tests have time
//! for. None may panic, take longer than its text, or read what another producer wrote.

use std::num::NonZeroUsize;

use anyhow::Result;

use crate::process::{cargo, run as run_child};

/// Each property is tried so often.
pub(crate) fn run(cases: NonZeroUsize) -> Result<()> {
    let mut tests = cargo();
    tests
        // Of the whole workspace, for the features that its dependencies are built with already.
        .args(["test", "--workspace", "--lib", "--", "hostile"])
        .env("PROPTEST_CASES", cases.to_string());
    run_child(&mut tests)
}
