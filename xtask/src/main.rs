//! What a checkout of portent needs beyond `cargo build`: guests, a control plane, the demo, the whole of
//! the tests.
//!
//! A command is a file. Nothing here is part of the program, and nothing of the program is linked here:
//! whatever it can do itself is run as a child process.

#![allow(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "it tells whoever waits what it is doing, and what it found"
)]

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use bench::Counts;

mod bench;
mod demo;
mod fuzz;
mod hostile;
mod model;
mod plugins;
mod process;
mod test;
mod testbed;
mod toolchain;

#[derive(Parser)]
#[command(
    name = "cargo xtask",
    about = "What a checkout of portent needs beyond `cargo build`"
)]
enum Command {
    /// Build plugins: WebAssembly components that `portent` loads
    Plugins {
        /// A plugin of your own, outside this checkout; without it, the two of portent
        #[arg(long, value_name = "PATH/Cargo.toml")]
        manifest_path: Option<PathBuf>,
        /// Where the components go [default: target/plugins of this checkout]
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
    /// Write the hostile kit: guests that misbehave, for a host of plugins to be tried with
    Hostile {
        /// Where `NAME.wasm` of every guest goes, and `expected.json`
        #[arg(value_name = "DIR")]
        out: PathBuf,
    },
    /// Classify a recording with both plugins: no cluster needed
    Demo,
    /// Run everything that a change has to pass
    Test,
    /// Build the control plane that tests run against: etcd, kube-apiserver, kube-scheduler, kubectl
    Testbed,
    /// Try what threads may do to each other, in many more orders than the tests do
    Model {
        /// How often each model runs, by each of two schedulers: 20,000 take some seven minutes
        #[arg(default_value = "20000")]
        iterations: NonZeroUsize,
    },
    /// Try to deceive the parsers of gpu-fault, with many more texts than the tests do
    Fuzz {
        /// How often each property is tried: 100,000 take some minutes
        #[arg(default_value = "100000")]
        cases: NonZeroUsize,
    },
    /// Measure what each stage of the path costs an Event, against what it may
    #[command(args_conflicts_with_subcommands = true)]
    Bench {
        /// Count instructions alone, and fail if a workload takes more than in the baseline
        #[arg(long, conflicts_with = "bless")]
        check: bool,
        /// Count instructions alone, and make them the baseline
        #[arg(long)]
        bless: bool,
        #[command(subcommand)]
        of: Option<BenchOf>,
    },
}

#[derive(Clone, Copy, Subcommand)]
enum BenchOf {
    /// A recording of 3 million Events, through the whole program: time and memory
    Replay,
    /// `portent run`, against a scripted server and a real one: latency, processor time and memory
    Live,
    /// 200,000 objects that come and go: what is left of the buckets, the heap and the resident memory
    Churn,
    /// How many of the labelled lines about GPUs gpu-fault tells apart: a table of what was said for each label
    Gpu,
    /// The store by itself: an operation with one to eight threads, and how long one waits while a million
    /// records leave
    Store,
    /// 1,000 swaps of plugins under more than 1,000 Events a second: what is lost, how long Events wait, memory
    Swap,
    /// The same of a running portent whose Events come from a real server, for some six minutes
    Reload,
}

fn main() -> Result<ExitCode> {
    match Command::parse() {
        Command::Plugins { manifest_path, out } => plugins::run(
            plugins::built_portent,
            manifest_path.as_deref(),
            out.as_deref(),
        )
        .map(|()| ExitCode::SUCCESS),
        Command::Hostile { out } => hostile::run(&out).map(|()| ExitCode::SUCCESS),
        Command::Demo => demo::run(),
        Command::Test => test::run().map(|()| ExitCode::SUCCESS),
        Command::Testbed => testbed::run().map(|()| ExitCode::SUCCESS),
        Command::Model { iterations } => model::run(iterations).map(|()| ExitCode::SUCCESS),
        Command::Fuzz { cases } => fuzz::run(cases).map(|()| ExitCode::SUCCESS),
        Command::Bench { check, bless, of } => match (of, check, bless) {
            (Some(BenchOf::Replay), ..) => bench::run_replay(),
            (Some(BenchOf::Live), ..) => bench::run_live(),
            (Some(BenchOf::Churn), ..) => bench::run_churn(),
            (Some(BenchOf::Gpu), ..) => bench::run_gpu(),
            (Some(BenchOf::Store), ..) => bench::run_store(),
            (Some(BenchOf::Swap), ..) => bench::run_swap(),
            (Some(BenchOf::Reload), ..) => bench::run_reload(),
            (None, true, _) => bench::run(Counts::Check),
            (None, false, true) => bench::run(Counts::Bless),
            (None, false, false) => bench::run(Counts::Show),
        }
        .map(|()| ExitCode::SUCCESS),
    }
}
