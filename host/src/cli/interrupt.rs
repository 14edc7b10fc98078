//! Ctrl-C: the first is a wish to see what there is, the second an order to stop.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use anyhow::Context as _;

/// Set by the first Ctrl-C.
pub(super) type Interrupted = &'static AtomicBool;

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Takes note of Ctrl-C (and of SIGTERM and SIGHUP) from now on, in place of
/// ending the process at once.
pub(super) fn watch() -> anyhow::Result<Interrupted> {
    ctrlc::set_handler(|| {
        if INTERRUPTED.swap(true, Relaxed) {
            // Whoever asks twice does not want to wait for anything.
            std::process::abort();
        }
    })
    .context("cannot take note of Ctrl-C")?;
    Ok(&INTERRUPTED)
}

/// Whether it was pressed.
pub(super) fn is_set(interrupted: Interrupted) -> bool {
    interrupted.load(Relaxed)
}
