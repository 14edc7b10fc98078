//! 1,000 swaps of a plugin in a running `portent run`, while a real API server takes as many Events as it
//! can beside it, up to 1,000 a second.
//!
//! Server, writer and portent share the machine. What is checked by content is in `reloads`.

#![allow(
    clippy::unwrap_used,
    reason = "a benchmark says what went wrong by failing"
)]
#![allow(clippy::print_stdout, reason = "it is what this is for")]
#![allow(
    clippy::cast_precision_loss,
    reason = "what is counted here is far below what a float holds"
)]

#[path = "../tests/support/mod.rs"]
mod support;

use std::time::Duration;

use support::{reloads::reloads, testbed::Testbed};

const SWAPS: u32 = 1_000;

/// Between two Events.
const EVERY: Duration = Duration::from_millis(1);

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let testbed = runtime.block_on(async {
        let testbed = Testbed::shared().await.unwrap();
        testbed.namespace("reloads", &[]).await;
        testbed
    });
    let it = reloads(&testbed, "reloads", SWAPS, EVERY);
    let at = |share: usize| it.waits[(it.waits.len() * share / 100).min(it.waits.len() - 1)];
    println!(
        "{SWAPS} swaps in {:.0?} under {:.0} Events/s of a real server: {} Events, each told of once, \
         {} late results",
        it.took,
        it.n_events as f64 / it.took.as_secs_f64(),
        it.n_events,
        it.n_late
    );
    println!(
        "Event sent to line read: p50 {:.1?}, p99 {:.1?}, max {:.1?}",
        at(50),
        at(99),
        at(100)
    );
    println!(
        "resident memory after ten swaps {:.1} MB, at the end {:.1} MB",
        it.rss[0] as f64 / 1e6,
        it.rss[1] as f64 / 1e6
    );
}
