//! Gives memory back to the system.
//!
//! What is freed goes back to the C library, and that keeps it: of 283 MB that a
//! store of 600,000 records took, all were still resident when not one record was
//! left (docs/benchmarks.md). So whoever has let go of much asks for it to be given
//! back. That takes tens of milliseconds in which who asks for memory may have to
//! wait, so it is done beside the work, and seldom.
//!
//! It holds nothing.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
};

/// Gives back what is free, on a thread of its own.
#[derive(Clone, Debug, Default)]
pub(crate) struct GiveBack {
    is_running: Arc<AtomicBool>,
}

impl GiveBack {
    /// Whether it is at it.
    pub(crate) fn is_running(&self) -> bool {
        self.is_running.load(Relaxed)
    }

    /// Begins to give back what is free.
    ///
    /// # Errors
    ///
    /// If a thread cannot be started.
    pub(crate) fn begin(&self) -> io::Result<()> {
        self.is_running.store(true, Relaxed);
        let is_running = Arc::clone(&self.is_running);
        let begun = thread::Builder::new()
            .name("give-back".to_owned())
            .spawn(move || {
                system::trim();
                is_running.store(false, Relaxed);
            });
        if begun.is_err() {
            self.is_running.store(false, Relaxed);
        }
        begun.map(drop)
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod system {
    #![allow(unsafe_code, reason = "a call of the C library")]

    use std::ffi::c_int;

    // SAFETY: glibc's own declaration; it may be called at any time, from any thread.
    unsafe extern "C" {
        safe fn malloc_trim(pad: usize) -> c_int;
    }

    pub(super) fn trim() {
        malloc_trim(0);
    }
}

/// Elsewhere the allocator does as it sees fit.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
mod system {
    pub(super) fn trim() {}
}
