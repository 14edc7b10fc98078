//! Counts what is asked of the allocator and not given back.

#![allow(unsafe_code, reason = "an allocator that counts")]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);

// SAFETY: it hands through to the system's allocator what it is given.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size(), Relaxed);
        // SAFETY: as the caller promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, it: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as the caller promised.
        unsafe { System.dealloc(it, layout) }
    }

    unsafe fn realloc(&self, it: *mut u8, layout: Layout, n_bytes: usize) -> *mut u8 {
        LIVE.fetch_add(n_bytes, Relaxed);
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as the caller promised.
        unsafe { System.realloc(it, layout, n_bytes) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Bytes that are live.
pub(crate) fn live() -> usize {
    LIVE.load(Relaxed)
}
