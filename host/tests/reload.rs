//! A plugin is replaced while a real API server takes Events. `cargo xtask bench reload` does it a thousand
//! times; this is the same, for some seconds.

#![allow(clippy::unwrap_used, reason = "a test says what went wrong by failing")]

mod support;

use std::time::Duration;

use support::{reloads::reloads, testbed::Testbed};

#[tokio::test]
async fn a_plugin_that_is_replaced_under_events_loses_none_doubles_none_and_mixes_nothing() {
    let Some(testbed) = Testbed::shared().await else {
        return;
    };
    testbed.namespace("reloads", &[]).await;
    let figures = reloads(&testbed, "reloads", 12, Duration::from_millis(5));
    assert!(100 < figures.n_events, "{figures:?}");
    assert_eq!(figures.n_late, 0);
}
