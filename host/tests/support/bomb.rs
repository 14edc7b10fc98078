//! Components that are small and take a compiler a lot.

use std::fmt::Write as _;

use super::component_of;

/// A guest that behaves well, with a function, never called, that costs memory and time in proportion
/// to the product of both numbers, and bytes in proportion to their sum.
///
/// Each local is changed in the innermost of so many loops, so that each has another value at the
/// beginning of each loop: that many values, all of them alive at once.
pub(crate) fn hard_to_compile(name: &str, n_loops: usize, n_locals: usize) -> Vec<u8> {
    let locals = " i32".repeat(n_locals);
    let mut own = format!("(func $bomb (param $n i32)\n(local{locals})\n");
    own += &"(loop\n".repeat(n_loops);
    // The parameter is the first local.
    for idx in 1..=n_locals {
        writeln!(
            own,
            "(local.set {idx} (i32.add (local.get {idx}) (local.get 0)))"
        )
        .expect("text takes whatever is written");
    }
    own += &"(br_if 0 (local.get 0)))\n".repeat(n_loops);
    own += ")\n";
    component_of(name, &own)
}
