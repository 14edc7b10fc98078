//! Every guest: what it does, where a host has to stop it, and what it is to say.
//!
//! The reason codes and the bounds are portent's. Another host may have others; what it may not have is a guest
//! that costs more than the outcome of the subject that made it misbehave.

use crate::{encode::component_of_text, large};

/// Where a guest has to be stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Nowhere: it is loaded, and every subject has its outcome.
    Nowhere,
    /// Before it is called: it is loaded, and wants nothing of what there is.
    Unasked,
    /// When it is loaded, for this reason.
    Load(&'static str),
    /// In a call: a subject whose name begins with `poison` has no outcome, for this reason, and each other one
    /// has its own.
    Call(&'static str),
}

impl Stop {
    /// The reason code, where it is stopped for one.
    #[must_use]
    pub fn reason(self) -> Option<&'static str> {
        match self {
            Self::Nowhere | Self::Unasked => None,
            Self::Load(reason) | Self::Call(reason) => Some(reason),
        }
    }

    /// As it is in tables.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Nowhere => "nowhere",
            Self::Unasked => "unasked",
            Self::Load(_) => "load",
            Self::Call(_) => "call",
        }
    }
}

/// A guest that misbehaves, or one that looks as if it did.
#[derive(Clone, Copy, Debug)]
pub struct Guest {
    /// What it is called, in its description too.
    pub name: &'static str,
    /// What it does, for a person.
    pub does: &'static str,
    /// Where it has to be stopped.
    pub stop: Stop,
    /// What portent's message holds then, beside the reason.
    pub telling: &'static str,
    make: fn(&str) -> Vec<u8>,
}

impl Guest {
    /// Its component, or its file that is none.
    #[must_use]
    pub fn component(&self) -> Vec<u8> {
        (self.make)(self.name)
    }
}

/// The guest of this name.
#[must_use]
pub fn guest(name: &str) -> Option<&'static Guest> {
    GUESTS.iter().find(|it| it.name == name)
}

/// The component of the guest of this name.
///
/// # Panics
///
/// If there is none.
#[must_use]
#[track_caller]
pub fn component(name: &str) -> Vec<u8> {
    match guest(name) {
        Some(it) => it.component(),
        None => panic!("no guest is called {name}"),
    }
}

const fn text(name: &'static str, stop: Stop, telling: &'static str, does: &'static str) -> Guest {
    made(name, stop, telling, does, component_of_text)
}

const fn made(
    name: &'static str,
    stop: Stop,
    telling: &'static str,
    does: &'static str,
    make: fn(&str) -> Vec<u8>,
) -> Guest {
    Guest {
        name,
        does,
        stop,
        telling,
        make,
    }
}

use Stop::{Call, Load, Nowhere, Unasked};

/// All of them.
#[rustfmt::skip]
pub const GUESTS: &[Guest] = &[
    // What is allowed.
    text("behaves-well", Nowhere, "", "Answers as it should, whatever comes"),
    text("a-later-patch", Nowhere, "", "Was built against a 0.1.1 with one more function in `log`"),
    text("begins-with-memory-at-the-cap", Nowhere, "", "Begins with all the memory that it may have"),
    text("begins-with-tables-at-the-cap", Nowhere, "", "Begins with all the tables that it may have"),
    text("begins-with-a-table-at-the-cap", Nowhere, "", "Begins with as large a table as it may have"),
    text("grows-memory-to-the-cap", Nowhere, "", "Grows its memory until it gets no more, and copes"),
    text("touches-memory-to-the-cap", Nowhere, "", "Grows its memory until it gets no more, and writes to each page of it"),
    text("grows-its-table-to-the-cap", Nowhere, "", "Grows a table until it gets no more, and copes"),
    text("describes-slowly", Nowhere, "", "Needs nearly all the fuel there is to say what it is"),
    text("floods-the-log", Nowhere, "", "Logs 4,000 lines of 10 KB"),
    text("logs-escapes", Nowhere, "", "Logs a line that clears a terminal and pretends to be two"),
    text("logs-three-lines", Nowhere, "", "Logs three lines"),
    text("logs-its-subjects", Nowhere, "", "Logs how many subjects each call has"),
    made("weighs-all-it-may", Nowhere, "", "Is as large as a file may be", |name| large::weighing(name, large::COMPONENT_BYTES)),
    // No state, and nothing but the subject.
    text("keeps-state", Nowhere, "", "Keeps a variable from one call to the next, and traps where there was one before"),
    text("keeps-state-in-memory", Nowhere, "", "Leaves a mark in memory, and traps where it finds one"),
    text("counts-its-subjects", Load("impure"), "is `1`, and was `2`", "Answers with the number of subjects in the call"),
    text("answers-by-place", Nowhere, "", "Answers with the place of a subject within the call, but only for one called `poison`"),
    text("traps-at-the-third", Nowhere, "", "Traps in a call with more than two subjects"),
    text("wants-nodes-only", Unasked, "", "Says that it wants Nodes only, and traps on a Pod"),
    // Without end.
    text("loops-for-ever", Call("out-of-fuel"), "fuel", "Loops"),
    text("loops-in-post-return", Call("out-of-fuel"), "fuel", "Answers, and loops in the clean-up after it"),
    text("loops-in-realloc", Call("out-of-fuel"), "fuel", "Loops while its arguments are handed over"),
    text("fills-memory-for-ever", Call("out-of-fuel"), "fuel", "Fills 8 MiB in one instruction, again and again"),
    text("logs-for-ever", Call("out-of-fuel"), "fuel", "Logs a line of 1 MiB, again and again"),
    text("recurses-for-ever", Call("stack-overflow"), "recursed", "Recurses"),
    text("recurses-in-realloc", Call("stack-overflow"), "recursed", "Recurses while its arguments are handed over"),
    // Traps.
    text("allocates-for-ever", Call("memory-limit"), "memory-bytes", "Allocates until it gets no more, and gives up"),
    text("panics", Call("panic"), "boom 42", "Panics as the SDK does: a line in the log, then a trap"),
    text("panics-at-length", Call("panic"), "src/lib.rs:8:9", "Fills the log, then panics with 10 KB of text"),
    text("reaches-unreachable", Call("trap"), "unreachable", "Gives up without a word"),
    text("reads-out-of-bounds", Call("trap"), "out of bounds", "Follows a wild pointer"),
    text("reads-what-it-does-not-name", Call("trap"), "unreachable", "Says that it reads less than it does, and traps where that does not come"),
    text("logs-from-realloc", Call("trap"), "cannot leave component instance", "Calls the host while the host hands over the arguments"),
    // Too large an answer.
    text("returns-too-many-outcomes", Call("output-limit"), "lifted-bytes", "Returns 200,000 empty outcomes, which cost it nothing"),
    text("returns-aliased-texts", Call("output-limit"), "lifted-bytes", "Returns 100,000 texts of 1 MiB, all of them the same"),
    text("returns-too-many-findings", Call("output-limit"), "10000 findings", "Returns 10,000 findings"),
    text("returns-a-long-text", Call("output-limit"), "1048576", "Returns a text of 1 MiB"),
    text("gives-many-reasons", Call("output-limit"), "20 additional reasons", "Returns 20 additional reasons for three Events"),
    // An answer that cannot be read.
    text("returns-bad-utf8", Call("bad-output"), "utf-8", "Returns a text that is not UTF-8"),
    text("returns-a-bad-discriminant", Call("bad-output"), "77", "Returns a severity that there is none of"),
    text("returns-neither", Call("bad-output"), "discriminant", "Returns a result that is neither ok nor an error"),
    text("returns-half-an-option", Call("bad-output"), "discriminant", "Returns an option that is neither some nor none"),
    text("returns-a-wild-pointer", Call("bad-output"), "out of bounds", "Returns its answer outside its memory"),
    text("returns-a-wild-list", Call("bad-output"), "out of bounds", "Returns a list that ends outside its memory"),
    text("returns-a-wild-text", Call("bad-output"), "out of bounds", "Returns a text that ends outside its memory"),
    text("returns-a-crooked-list", Call("bad-output"), "aligned", "Returns a list at an address that no list can have"),
    text("reallocs-out-of-bounds", Call("bad-output"), "beyond end of memory", "Gives the host room for an argument outside its memory"),
    text("logs-at-no-level", Call("bad-output"), "discriminant", "Logs at a level that there is none of"),
    text("logs-bad-utf8", Call("bad-output"), "utf-8", "Logs a line that is not UTF-8"),
    text("logs-a-wild-line", Call("bad-output"), "out of bounds", "Logs a line that ends outside its memory"),
    // An answer against the contract.
    text("answers-one-too-few", Call("contract-violation"), "0 outcomes", "Returns an outcome too few"),
    text("answers-one-too-many", Call("contract-violation"), "2 outcomes", "Returns an outcome too many"),
    text("cites-evidence-out-of-range", Call("contract-violation"), "99", "Returns a finding that rests on an Event that there is none of"),
    text("cites-no-evidence", Call("contract-violation"), "evidence", "Returns a finding that rests on nothing"),
    text("cites-a-reason-out-of-range", Call("contract-violation"), "98", "Returns an additional reason of an Event that there is none of"),
    text("repeats-a-finding", Call("contract-violation"), "twin", "Returns two findings of one identity"),
    text("repeats-an-attribute", Call("contract-violation"), "twice", "Returns a finding with one attribute twice"),
    text("finds-an-undeclared-code", Call("contract-violation"), "Undeclared", "Returns a code that its description does not have"),
    text("finds-an-undeclared-category", Call("contract-violation"), "undeclared", "Returns a category that its description does not have"),
    text("finds-without-a-code", Call("contract-violation"), "code", "Returns an active finding without a code"),
    text("judges-without-a-failure", Call("contract-violation"), "verdict", "Returns a verdict on what did not fail"),
    text("answers-with-an-error", Call("guest-error"), "cannot do this", "Answers with an error of its own"),
    text("answers-with-a-long-error", Call("guest-error"), "", "Answers with an error of 1 MiB of NUL"),
    // For another contract.
    text("an-older-version", Load("abi-unsupported"), "0.0.9", "Was built against 0.0.9"),
    text("a-later-version", Load("abi-unsupported"), "0.2.0", "Was built against 0.2.0"),
    text("an-older-classify", Load("abi-unsupported"), "portent-sdk", "Was built against a `classify` without settings"),
    text("an-older-outcome", Load("abi-unsupported"), "3 fields", "Was built against an `outcome` without a verdict"),
    made("exports-nothing", Load("abi-unsupported"), "portent:classifier", "Is a component without anything", |_| wat("(component)")),
    text("imports-wasi", Load("forbidden-import"), "wasi:clocks/monotonic-clock", "Wants to know what time it is"),
    text("imports-an-interface-of-ours", Load("forbidden-import"), "portent:classifier/secrets", "Wants an interface that has our name and is not ours"),
    text("imports-more-of-log", Load("forbidden-import"), "count", "Calls a function of a later `log`"),
    // Does not come up.
    text("begins-with-too-much-memory", Load("compile-failed"), "memory", "Begins with 17 MiB of memory"),
    text("begins-with-a-large-table", Load("compile-failed"), "table", "Begins with a table of 20,001 elements"),
    text("begins-with-many-tables", Load("compile-failed"), "table", "Begins with 21 tables"),
    text("loops-in-start", Load("instantiate-failed"), "fuel", "Loops in its start function"),
    text("traps-in-start", Load("instantiate-failed"), "unreachable", "Traps in its start function"),
    text("traps-in-describe", Load("describe-failed"), "unreachable", "Traps when it is asked what it is"),
    text("loops-in-describe", Load("describe-failed"), "fuel", "Loops when it is asked what it is"),
    text("describes-too-slowly", Load("describe-failed"), "fuel", "Needs a little more fuel than there is to say what it is"),
    text("describes-no-interests", Load("description-invalid"), "interest", "Says that it wants nothing"),
    text("describes-a-bad-name", Load("description-invalid"), "Not A Name!", "Says that it is called `Not A Name!`"),
    text("describes-many-codes", Load("description-invalid"), "1001", "Says that it has 1,001 codes"),
    text("describes-many-interests", Load("description-invalid"), "100000", "Says that notes may contain any of 100,000 texts, each of which the host would look for"),
    text("refuses-its-settings", Load("settings-invalid"), "write the team's name", "Does not take the settings that it is given"),
    text("traps-always", Load("self-test-failed"), "unreachable", "Traps whatever comes"),
    // Dear to compile.
    made("nests-types", Load("compile-failed"), "nesting", "Has lists of lists, 10,000 deep", large::nests_types),
    made("doubles-types", Load("compile-failed"), "type size", "Has pairs of pairs, the last of 2^64 parts", large::doubles_types),
    made("has-many-types", Load("compile-failed"), "types count", "Has 1,000,001 types", large::has_many_types),
    made("nests-components", Load("compile-limit"), "", "Has components within components, 10,000 deep, in 148 KB: 2 GB of memory to read", large::nests_components),
    made("compiles-for-long", Load("compile-limit"), "", "Has 60,000 blocks within blocks, in 428 KB: more than a minute to compile", large::compiles_for_long),
    made("compiles-in-much-memory", Load("compile-limit"), "", "Has 1,000 loops within loops around 1,000 variables, in 26 KB: over 1.6 GB of memory and two minutes to compile", large::compiles_in_much_memory),
    // No component.
    made("empty-file", Load("not-a-component"), "empty", "Is an empty file", |_| Vec::new()),
    made("garbage", Load("not-a-component"), "not WebAssembly", "Is no WebAssembly", |_| b"\x01\xff\x00 and more".to_vec()),
    made("text", Load("not-a-component"), "not WebAssembly", "Is the text of a component", |_| b"(component)".to_vec()),
    made("compiled", Load("not-a-component"), "precompiled", "Begins as what a runtime has compiled: machine code, which nobody could check", |_| b"\x7fELF and more".to_vec()),
    made("core-module", Load("not-a-component"), "core module", "Is a core module", |_| wat("(module)")),
    made("truncated", Load("not-a-component"), "cut off", "Is the first half of a component", truncated),
    made("weighs-too-much", Load("too-large"), "component-bytes", "Is a byte larger than a file may be", |name| large::weighing(name, large::COMPONENT_BYTES + 1)),
];

fn wat(text: &str) -> Vec<u8> {
    wat::parse_str(text).expect("it is the text of a component or of a module")
}

fn truncated(name: &str) -> Vec<u8> {
    let mut component = large::behaving_well(name);
    component.truncate(component.len() / 2);
    component
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, env, fs, path::Path};

    use super::*;

    fn folder() -> &'static Path {
        Path::new(env!("CARGO_MANIFEST_DIR"))
    }

    #[test]
    fn every_text_is_of_a_guest_and_every_name_is_one_guests() {
        let names: BTreeSet<_> = GUESTS.iter().map(|it| it.name).collect();
        assert_eq!(names.len(), GUESTS.len(), "two have one name");
        for entry in fs::read_dir(folder().join("guests")).expect("it is beside this") {
            let path = entry.expect("it can be read to its end").path();
            let name = path.file_stem().and_then(|it| it.to_str());
            let name = name.expect("names of guests are text");
            assert!(
                name == "prelude" || names.contains(name),
                "{name} is in no row"
            );
        }
    }

    /// The codes in backquotes that a text begins with are those of its row.
    #[test]
    fn what_a_text_says_of_itself_is_what_its_row_says() {
        let codes: BTreeSet<_> = GUESTS.iter().filter_map(|it| it.stop.reason()).collect();
        for guest in GUESTS {
            let path = folder().join(format!("guests/{}.wat", guest.name));
            let Ok(text) = fs::read_to_string(path) else {
                continue;
            };
            let header = text.lines().take_while(|it| it.starts_with(";;"));
            let header: String = header.flat_map(|it| [it, " "]).collect();
            let said: Vec<_> = header.split('`').filter(|it| codes.contains(it)).collect();
            let wanted = guest.stop.reason();
            assert!(
                said.iter().all(|it| wanted == Some(*it)),
                "{}: its text says {said:?}, its row {wanted:?}",
                guest.name
            );
        }
    }

    #[test]
    fn every_guest_can_be_made_and_is_the_same_each_time() {
        for guest in GUESTS {
            let made = guest.component();
            assert!(made == guest.component(), "{} is two", guest.name);
            assert!(made.len() <= large::COMPONENT_BYTES + 1, "{}", guest.name);
        }
    }

    /// `PORTENT_BLESS=1` writes it.
    #[test]
    fn the_readme_has_the_table() {
        let path = folder().join("README.md");
        let page = fs::read_to_string(&path).expect("it is beside this");
        let mut table =
            String::from("| guest | what it does | stopped | reason |\n|---|---|---|---|\n");
        for Guest {
            name, does, stop, ..
        } in GUESTS
        {
            let reason = stop.reason().map(|it| format!("`{it}`"));
            let reason = reason.unwrap_or_default();
            let place = match stop {
                Nowhere => "nowhere",
                Unasked => "it is not asked",
                Load(_) => "at its load",
                Call(_) => "in a call",
            };
            table.extend([
                "| `", name, "` | ", does, " | ", place, " | ", &reason, " |\n",
            ]);
        }
        let begin = page.find("| guest |").expect("the page has a table");
        let rest = page.get(begin..).unwrap_or_default();
        let n_bytes = rest.find("\n\n").map_or(rest.len(), |it| it + 1);
        let end = begin + n_bytes;
        if env::var_os("PORTENT_BLESS").is_some() {
            let mut page = page;
            page.replace_range(begin..end, &table);
            fs::write(&path, page).expect("it can be written");
        } else {
            assert_eq!(
                page.get(begin..end),
                Some(&*table),
                "README.md: PORTENT_BLESS=1 writes it"
            );
        }
    }
}
