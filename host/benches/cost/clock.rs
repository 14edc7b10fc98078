//! Processor time in place of the wall's.
//!
//! Benches run beside other work, and what a replay costs is the sum over its
//! threads. So the time of a workload is what all threads of this process spent
//! on a processor meanwhile, in user space and in the kernel.

use criterion::measurement::{Measurement, ValueFormatter, WallTime};
use nix::time::{ClockId, clock_gettime};

/// Measures processor time of this process, in nanoseconds.
#[derive(Debug)]
pub(crate) struct Cpu;

fn nanos() -> u64 {
    let spent = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID)
        .expect("every process has a clock of its own");
    let (secs, nanos) = (spent.tv_sec(), spent.tv_nsec());
    u64::try_from(secs * 1_000_000_000 + nanos).expect("time spent is not negative")
}

impl Measurement for Cpu {
    type Intermediate = u64;
    type Value = u64;

    fn start(&self) -> u64 {
        nanos()
    }

    fn end(&self, start: u64) -> u64 {
        nanos() - start
    }

    fn add(&self, one: &u64, other: &u64) -> u64 {
        one + other
    }

    fn zero(&self) -> u64 {
        0
    }

    #[expect(clippy::cast_precision_loss, reason = "2^53 ns are a hundred days")]
    fn to_f64(&self, value: &u64) -> f64 {
        *value as f64
    }

    fn formatter(&self) -> &dyn ValueFormatter {
        // Nanoseconds are nanoseconds, whoever spends them.
        const WALL: &WallTime = &WallTime;
        WALL.formatter()
    }
}
