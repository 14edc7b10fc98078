//! What no text can hold: files that are no component, and components that are large, deep or dear.

use crate::encode::component_of;

/// `component-bytes` of portent, unless it is told otherwise.
pub(crate) const COMPONENT_BYTES: usize = 32 << 20;

/// A component that behaves well and has so many bytes: the rest is a custom section, which nobody reads.
///
/// # Panics
///
/// If it has more without that.
#[track_caller]
pub(crate) fn weighing(name: &str, n_bytes: usize) -> Vec<u8> {
    let mut component = behaving_well(name);
    // An id, a length that always takes five bytes, and a name of none.
    let n_rest = n_bytes.checked_sub(component.len() + 1 + 5);
    let n_rest = n_rest.expect("a component without anything is smaller");
    component.push(0);
    component.extend(long_leb128(n_rest));
    component.resize(n_bytes, 0);
    component
}

/// A component with another inside, which is never instantiated: whoever looks at the types has to look at its.
fn with_inside(mut component: Vec<u8>, inside: &[u8]) -> Vec<u8> {
    const COMPONENT_SECTION: u8 = 4;
    component.push(COMPONENT_SECTION);
    component.extend(long_leb128(inside.len()));
    component.extend_from_slice(inside);
    component
}

/// How a component begins.
const COMPONENT: [u8; 8] = [0, b'a', b's', b'm', 0x0d, 0, 1, 0];

/// The sections of types of a component of so many types, each made by its number.
fn types(n: usize, ty: impl Fn(usize) -> Vec<u8>) -> Vec<u8> {
    const TYPE_SECTION: u8 = 7;
    let mut section = long_leb128(n).to_vec();
    section.extend((0..n).flat_map(ty));
    let mut component = COMPONENT.to_vec();
    component.push(TYPE_SECTION);
    component.extend(long_leb128(section.len()));
    component.extend(section);
    component
}

/// A number in five bytes, however small it is.
fn long_leb128(n: usize) -> [u8; 5] {
    let n = u32::try_from(n).expect("no part of a component is over 4 GiB");
    let of = |shift: u32| u8::try_from((n >> shift) & 0x7f).expect("it has seven bits");
    [
        of(0) | 0x80,
        of(7) | 0x80,
        of(14) | 0x80,
        of(21) | 0x80,
        of(28),
    ]
}

const LIST: u8 = 0x70;
const TUPLE: u8 = 0x6f;
const U8: u8 = 0x7d;

/// A list of lists of lists.
pub(crate) fn nests_types(name: &str) -> Vec<u8> {
    let list_of_the_last = |it: usize| match it.checked_sub(1) {
        None => vec![LIST, U8],
        Some(last) => [&[LIST][..], &long_leb128(last)].concat(),
    };
    with_inside(behaving_well(name), &types(10_000, list_of_the_last))
}

/// A pair of pairs of pairs: each is twice the size of the one before, and the last has 2^64 parts.
pub(crate) fn doubles_types(name: &str) -> Vec<u8> {
    let pair_of_the_last = |it: usize| match it.checked_sub(1) {
        None => vec![TUPLE, 2, U8, U8],
        Some(last) => [&[TUPLE, 2][..], &long_leb128(last), &long_leb128(last)].concat(),
    };
    with_inside(behaving_well(name), &types(64, pair_of_the_last))
}

/// More types than anybody can need.
pub(crate) fn has_many_types(name: &str) -> Vec<u8> {
    with_inside(behaving_well(name), &types(1_000_001, |_| vec![LIST, U8]))
}

/// Components within components.
pub(crate) fn nests_components(name: &str) -> Vec<u8> {
    let mut inside = COMPONENT.to_vec();
    for _ in 0..10_000 {
        inside = with_inside(COMPONENT.to_vec(), &inside);
    }
    with_inside(behaving_well(name), &inside)
}

/// A component that behaves well under this name.
pub(crate) fn behaving_well(name: &str) -> Vec<u8> {
    component_of(
        name,
        "(func $misbehave (param $subjects i32) (param $n i32) (result i32)
            (call $well_behaved (local.get $subjects) (local.get $n)))",
    )
}

/// Blocks within blocks, each of which may be left: for each block a compiler looks at all that it is in.
pub(crate) fn compiles_for_long(name: &str) -> Vec<u8> {
    const BLOCKS: usize = 60_000;
    let own = [
        "(func $misbehave (param $subjects i32) (param $n i32) (result i32)\n",
        &"block\n".repeat(BLOCKS),
        &"(br_if 0 (local.get $n)) end\n".repeat(BLOCKS),
        "(call $well_behaved (local.get $subjects) (local.get $n)))\n",
    ];
    component_of(name, &own.concat())
}

/// Loops within loops, and in the innermost every variable is changed by the value of another, so that a
/// compiler carries each of them around each of the loops.
pub(crate) fn compiles_in_much_memory(name: &str) -> Vec<u8> {
    const LOOPS: usize = 1_000;
    const VARIABLES: usize = 1_000;
    // The first two are the parameters.
    let variable = |it: usize| 2 + it % VARIABLES;
    let changes = (0..VARIABLES).map(|it| {
        let (to, by) = (variable(it), variable(it * 7 + 1));
        format!("(local.set {to} (i64.add (local.get {to}) (local.get {by})))\n")
    });
    let ends = (0..LOOPS).map(|it| format!("(br_if 0 (i64.eqz (local.get {}))))\n", variable(it)));
    let own = [
        "(func $misbehave (param $subjects i32) (param $n i32) (result i32)\n".to_owned(),
        format!("(local{})\n", " i64".repeat(VARIABLES)),
        "(loop\n".repeat(LOOPS),
        changes.collect(),
        ends.collect(),
        "(call $well_behaved (local.get $subjects) (local.get $n)))\n".to_owned(),
    ];
    component_of(name, &own.concat())
}
