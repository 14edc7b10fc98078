//! Gives memory back to the system.
//!
//! What is freed goes back to the C library, and that keeps it: of 283 MB that a
//! store of 600,000 records took, all were still resident when not one record was
//! left (docs/benchmarks.md). So whoever has let go of much asks for it to be given
//! back. That takes tens of milliseconds in which who asks for memory may have to
//! wait, so it is done beside the work, and seldom.
//!
//! The library also puts small pieces aside when they are freed, and joins them with
//! what is free beside them when somebody asks for a large one: who asked after half a
//! million of them waited for 0.3 s. So it is told not to ([`free_at_once`]), which
//! costs no more.
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

/// From now on what is freed is joined at once with what is free beside it. For the
/// beginning of a process.
pub fn free_at_once() {
    system::free_at_once();
}

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
    #![allow(unsafe_code, reason = "two calls of the C library")]

    use std::ffi::c_int;

    // SAFETY: glibc's own declarations; they may be called at any time, from any thread.
    unsafe extern "C" {
        safe fn malloc_trim(pad: usize) -> c_int;
        safe fn mallopt(what: c_int, value: c_int) -> c_int;
    }

    /// The largest piece that is put aside.
    const M_MXFAST: c_int = 1;

    pub(super) fn free_at_once() {
        mallopt(M_MXFAST, 0);
    }

    pub(super) fn trim() {
        malloc_trim(0);
    }
}

/// Elsewhere the allocator does as it sees fit.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
mod system {
    pub(super) fn free_at_once() {}

    pub(super) fn trim() {}
}
