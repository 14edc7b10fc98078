//! The fuel that an Event costs.
//!
//! A call does not say what it used, so it is found from outside: the least
//! limit with which it succeeds. It is exact, and the same in every run.

use portent::{
    interner::Interner,
    sandbox::{Limits, Spent},
};

use super::{
    events,
    guests::{load, named, records, subjects},
};

/// Subjects of a call, with [`OF_EACH`] Events: many, so that what a call costs
/// beside its Events is little.
const N_PODS: usize = 512;
const OF_EACH: usize = 4;

/// Prints the fuel of both plugins, a line each: name, and units an Event.
pub(crate) fn print() {
    // Of what interests it: faults only, and anything.
    for (name, one_fault_in) in [("gpu-fault", 1), ("additional-reasons", 100)] {
        println!("fuel-{name}\t{}", of(name, one_fault_in));
    }
}

fn of(name: &str, one_fault_in: usize) -> u64 {
    let records = records(&events::of_pods(N_PODS, OF_EACH, one_fault_in));
    let subjects = subjects(&records, |_, _| true);
    let succeeds = |fuel_per_event| {
        let limits = Limits {
            fuel_per_event,
            ..Limits::default()
        };
        named(&load(limits), name)
            .guest
            .classify(&subjects, &Interner::default(), &mut Spent::default())
            .is_ok()
    };
    // What is not enough, and what is.
    let (mut little, mut enough) = (0, Limits::default().fuel_per_event);
    while 1 < enough - little {
        let between = little + (enough - little) / 2;
        if succeeds(between) {
            enough = between;
        } else {
            little = between;
        }
    }
    let n_events = (N_PODS * OF_EACH) as u64;
    enough + Limits::default().fuel_per_call / n_events
}
