//! What each stage of the path costs an Event.
//!
//! `cargo xtask bench` runs it and makes a table of it; `cargo bench --bench cost`
//! is criterion alone. The same workloads are there to be timed and to be
//! counted: time is of this machine and this hour, instructions are nearly the
//! same in every run, so that a change can be held against the last one by them.
//!
//! With a word as its first argument it does something else:
//!
//! * `count [NAME...]`: runs each workload, or those of these names, once; what
//!   lies between two calls of `meter::boundary` is to be counted;
//! * `times`: prints what criterion measured last, a workload a line;
//! * `fuel`: prints the fuel that the plugins need;
//! * `generate N`: prints N Events, a JSON object a line;
//! * `where`: prints where this program lies.

#![allow(
    clippy::print_stdout,
    reason = "it prints for `cargo xtask bench` to read"
)]

use std::{
    env,
    io::{self, BufWriter, Write as _},
};

use anyhow::Context as _;

mod clock;
#[allow(dead_code, reason = "the bench of churn uses the rest of it")]
mod events;
mod fuel;
mod guests;
mod meter;
mod workloads;

use meter::Meter;

fn main() -> anyhow::Result<()> {
    portent::memory::free_at_once();
    let args: Vec<_> = env::args().skip(1).collect();
    // cargo adds `--bench`, which is criterion's.
    let args: Vec<_> = args
        .iter()
        .map(String::as_str)
        .filter(|it| *it != "--bench")
        .collect();
    match *args {
        ["count", ref names @ ..] => workloads::all(&mut Meter::Count(names)),
        ["times"] => workloads::all(&mut Meter::Report),
        ["fuel"] => fuel::print(),
        ["generate", n] => {
            let n = n.parse().context("write how many Events")?;
            let mut to = BufWriter::new(io::stdout().lock());
            events::write(&mut to, events::Form::Short, n, 1)?;
            to.flush()?;
        }
        ["where"] => println!("{}", env::current_exe()?.display()),
        _ => {
            let mut criterion = meter::criterion();
            workloads::all(&mut Meter::Time(&mut criterion));
            criterion.final_summary();
        }
    }
    Ok(())
}
