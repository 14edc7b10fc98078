//! An allocator that only moves forward.
//!
//! A fresh instance serves one batch and is dropped, with all of its memory, right after: whatever is
//! given back before that is work for nothing. Not doing it takes a fifth to a third off a call, because
//! the host allocates once in here for every string that it hands over.
//!
//! What bounds it is the memory that the host allows the instance; past that an allocation fails, as with
//! any allocator. It never gives memory back, except that the latest block may shrink and grow in place.

#![allow(unsafe_code, reason = "an allocator has no other interface")]

use core::alloc::{GlobalAlloc, Layout};
use core::arch::wasm32;
use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

#[cfg(target_feature = "atomics")]
compile_error!("the feature `bump` of portent-sdk is for an instance of one thread: turn it off");

#[global_allocator]
static BUMP: Bump = Bump {
    next: AtomicUsize::new(0),
    end: AtomicUsize::new(0),
};

/// The bytes of a page of WebAssembly memory.
const PAGE: usize = 64 * 1024;

/// Pages asked for beyond what is needed, because `memory.grow` leaves the guest. An arbitrary number.
const SPARE: usize = 4;

/// Invariant: everything from `next` to `end` is memory of this instance that nobody has.
struct Bump {
    /// Zero until the first allocation, since where the heap begins is known to the linker only.
    next: AtomicUsize,
    end: AtomicUsize,
}

unsafe extern "C" {
    /// Where the linker's data and stack end. Its address counts; there is nothing to read.
    static __heap_base: u8;
}

// SAFETY: a block returned by `alloc` or `realloc` begins at a multiple of its alignment and spans its
// size from there; `next` is behind it, so no later block overlaps it; up to `end` it is memory of this
// instance, and instances only grow. A failure is null, an overflow is a failure, and nothing unwinds.
// There is one thread (see the `compile_error!` above), so a load and a store need not be one step.
unsafe impl GlobalAlloc for Bump {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let block = self.next().checked_next_multiple_of(layout.align());
        let Some(block) = block else {
            return ptr::null_mut();
        };
        if self.claim(block, layout.size()) {
            ptr::with_exposed_provenance_mut(block)
        } else {
            ptr::null_mut()
        }
    }

    #[inline]
    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let is_latest = block.addr() + layout.size() == self.next();
        if is_latest && self.claim(block.addr(), size) || size <= layout.size() {
            return block;
        }
        // SAFETY: the caller promises that `size` fits a layout of this alignment.
        let layout_of_new = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        // SAFETY: `alloc` has no condition of its own.
        let new = unsafe { self.alloc(layout_of_new) };
        if !new.is_null() {
            // SAFETY: the old block has `layout.size()` bytes, the new one has more, for it would have
            // returned above, and it lies behind the old one.
            unsafe { ptr::copy_nonoverlapping(block, new, layout.size()) };
        }
        new
    }
}

impl Bump {
    #[inline]
    fn next(&self) -> usize {
        match self.next.load(Relaxed) {
            0 => self.start(),
            next => next,
        }
    }

    #[cold]
    fn start(&self) -> usize {
        let base = (&raw const __heap_base).expose_provenance();
        self.next.store(base, Relaxed);
        self.end.store(memory_end(), Relaxed);
        base
    }

    /// Takes the bytes from `block`, at or behind `next` or the latest block, up to `block + size`.
    #[inline]
    fn claim(&self, block: usize, size: usize) -> bool {
        let Some(next) = block.checked_add(size) else {
            return false;
        };
        if next > self.end.load(Relaxed) && !self.grow(next) {
            return false;
        }
        self.next.store(next, Relaxed);
        true
    }

    #[cold]
    fn grow(&self, next: usize) -> bool {
        let needed = (next - self.end.load(Relaxed)).div_ceil(PAGE);
        // The host's limit may leave room for what is needed and not for the spare.
        let grown = [needed + SPARE, needed]
            .into_iter()
            .any(|pages| wasm32::memory_grow::<0>(pages) != usize::MAX);
        if grown {
            self.end.store(memory_end(), Relaxed);
        }
        grown
    }
}

/// The last page of a full 4 GiB is left alone, for its end is no `usize`.
fn memory_end() -> usize {
    wasm32::memory_size::<0>().saturating_mul(PAGE)
}
