//! Components that are small and take a compiler a lot.

use std::fmt::Write as _;

use portent_hostile::component_of;

/// A guest that behaves well, with so many functions, never called, each of which costs memory and time
/// in proportion to the product of its loops and locals, and bytes in proportion to their sum. The
/// memory is that of one function, and the code of all.
///
/// Each local is changed in the innermost of the loops, so that each has another value at the beginning
/// of each loop: that many values, all of them alive at once.
pub(crate) fn hard_to_compile(
    name: &str,
    n_functions: usize,
    n_loops: usize,
    n_locals: usize,
) -> Vec<u8> {
    let locals = " i32".repeat(n_locals);
    let mut function = format!("(func (param $n i32)\n(local{locals})\n");
    function += &"(loop\n".repeat(n_loops);
    // The parameter is the first local.
    for idx in 1..=n_locals {
        writeln!(
            function,
            "(local.set {idx} (i32.add (local.get {idx}) (local.get 0)))"
        )
        .expect("text takes whatever is written");
    }
    function += &"(br_if 0 (local.get 0)))\n".repeat(n_loops);
    function += ")\n";
    component_of(name, &function.repeat(n_functions))
}
