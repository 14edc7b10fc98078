//! A component out of a guest's text: the prelude before it, the contract around it.

use std::{fs, path::Path};

use wit_component::{ComponentEncoder, StringEncoding};
use wit_parser::Resolve;

const WIT: &str = include_str!("../../../wit/classifier.wit");
const PRELUDE: &str = include_str!("../guests/prelude.wat");

/// What is exported, from which function of the guest if it has it, and from which of the prelude else.
const EXPORTS: [(&str, &str, &str); 4] = [
    ("cabi_realloc", "$guest_realloc", "$realloc"),
    (
        "portent:classifier/descriptor@0.1.0#describe",
        "$describe",
        "$static_description",
    ),
    (
        "portent:classifier/descriptor@0.1.0#check-settings",
        "$check_settings",
        "$accept_settings",
    ),
    (
        "portent:classifier/classifier@0.1.0#classify",
        "$classify",
        "$well_behaved_unless_poisoned",
    ),
];
const POST_RETURN: &str = "cabi_post_portent:classifier/classifier@0.1.0#classify";

/// The component of `guests/GUEST.wat`, whose name is GUEST.
///
/// A line `;; wit: OLD => NEW` in it changes the contract that the guest is built against, a line
/// `;; prelude: OLD => NEW` what it begins with.
///
/// # Panics
///
/// If there is no such text, or no component can be made of it.
#[track_caller]
pub(crate) fn component_of_text(guest: &str) -> Vec<u8> {
    component_of(guest, &text(guest))
}

/// What is in `guests/GUEST.wat`.
fn text(guest: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("guests");
    let path = folder.join(format!("{guest}.wat"));
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The component of a guest whose own part this is.
///
/// # Panics
///
/// If no component can be made of it.
#[must_use]
#[track_caller]
pub fn component_of(guest: &str, own: &str) -> Vec<u8> {
    let wit = edited(WIT, own, ";; wit: ");
    let text = module(guest, own, &wit);
    encode(&text, &wit).unwrap_or_else(|error| panic!("{guest}: {error:?}"))
}

/// The text of the core module.
fn module(guest: &str, own: &str, wit: &str) -> String {
    let prelude = edited(PRELUDE, own, ";; prelude: ")
        .replace("@NAME@", guest)
        .replace("@NAME_LENGTH@", &guest.len().to_string());
    let mut text = format!("(module ${guest}\n{prelude}\n{own}\n");
    if !defines(own, "$misbehave") {
        text += "(func $misbehave (param i32 i32) (result i32) unreachable)\n";
    }
    for (export, of_guest, of_prelude) in EXPORTS {
        let function = if defines(own, of_guest) {
            of_guest
        } else {
            of_prelude
        };
        text.extend(["(export \"", export, "\" (func ", function, "))\n"]);
    }
    if defines(own, "$post_return") {
        text.extend(["(export \"", POST_RETURN, "\" (func $post_return))\n"]);
    }
    text += ")";
    // The names of imports and exports carry the version of the contract that the guest is built against.
    let version = wit
        .split_once("package portent:classifier@")
        .and_then(|(_, rest)| rest.split_once(';'))
        .expect("the package has a version")
        .0;
    text.replace("@0.1.0", &format!("@{version}"))
}

fn encode(text: &str, wit: &str) -> anyhow::Result<Vec<u8>> {
    let mut module = wat::parse_str(text)?;
    let mut resolve = Resolve::default();
    let package = resolve.push_source("classifier.wit", wit)?;
    let world = resolve.select_world(&[package], Some("plugin"))?;
    wit_component::embed_component_metadata(
        &mut module,
        &resolve,
        world,
        StringEncoding::UTF8,
        false,
    )?;
    ComponentEncoder::default().module(&module)?.encode()
}

fn defines(text: &str, function: &str) -> bool {
    text.contains(&format!("(func {function} "))
}

/// `text` with what the lines of `own` that begin with `marker` replace.
fn edited(text: &str, own: &str, marker: &str) -> String {
    let mut text = text.to_owned();
    for edit in own.lines().filter_map(|line| line.strip_prefix(marker)) {
        let (old, new) = edit.split_once(" =>").expect("an edit is `OLD => NEW`");
        assert_eq!(
            text.matches(old).count(),
            1,
            "`{old}` is not once in what it edits"
        );
        text = text.replace(old, new);
    }
    text
}
