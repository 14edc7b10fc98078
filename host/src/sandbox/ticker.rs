//! Advances the engine's clock.
//!
//! A deadline is a number of ticks, so an engine whose ticker stopped would let
//! a guest run for ever. The ticker therefore cannot be had, lost or configured
//! apart from the engine, and runs on a thread of its own: a runtime whose
//! workers are all inside guests would never get round to a task. It ends with
//! the engine.

use std::{io, thread, time::Duration};

use wasmtime::Engine;

/// How long a tick is. Deadlines are accurate to one, and start at ten.
pub(super) const TICK: Duration = Duration::from_millis(10);

pub(super) fn start(engine: &Engine) -> io::Result<()> {
    let weak = engine.weak();
    thread::Builder::new()
        .name("ticker".to_owned())
        .spawn(move || {
            while let Some(engine) = weak.upgrade() {
                engine.increment_epoch();
                // Or the sleep below would keep it alive.
                drop(engine);
                thread::sleep(TICK);
            }
        })?;
    Ok(())
}
