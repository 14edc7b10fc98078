//! One line of history for each event of an object, as Flyte's `AdditionalReasons` has them.
//!
//! It reads what an event says of itself and never what it means: no finding, no verdict. What bounds
//! its output is its input, one line an event. What else Flyte shows beside a line (type, reason, component,
//! count) is the event's own, and the host shows it beside any plugin's lines.

use portent_sdk::{AdditionalReason, Description, Interest, Outcome, Subject, classifier};

classifier!(
    classify,
    Description::new(
        "additional-reasons",
        "What the cluster said about an object, in order"
    )
    .interest(Interest::any())
    // Nothing of what is optional; but to name nothing is to be given all. These are empty in 0.1.0.
    .reads(["event.attributes"])
);

fn classify(subject: &Subject) -> Outcome {
    let mut reasons = Vec::with_capacity(subject.events.len());
    for (index, event) in subject.events.iter().enumerate() {
        let reason = AdditionalReason::new(&event.note, event.created, index);
        // The host gives events in this order already, so the search ends where it begins, and a
        // sort's code would be larger than the rest of the plugin.
        let place = reasons
            .iter()
            .rposition(|before: &AdditionalReason| before.at <= reason.at);
        reasons.insert(place.map_or(0, |before| before + 1), reason);
    }
    Outcome {
        additional_reasons: reasons,
        ..Outcome::default()
    }
}

#[cfg(test)]
mod tests {
    use portent_sdk::Event;

    use super::*;

    #[track_caller]
    fn check(events: impl IntoIterator<Item = Event>, want: &[(&str, u64, u32)]) {
        let subject = events
            .into_iter()
            .fold(Subject::pod("ml-team", "train-0"), Subject::event);
        let outcome = classify(&subject);
        let got: Vec<_> = outcome
            .additional_reasons
            .iter()
            .map(|it| (it.text.as_str(), it.at, it.event))
            .collect();
        assert_eq!(got, want);
        assert!(outcome.findings.is_empty());
        assert_eq!(outcome.verdict, None);
    }

    #[test]
    fn every_event_is_a_line() {
        check(
            [
                Event::normal("Scheduled", "Successfully assigned ml-team/train-0").created(1),
                Event::new("CustomType", "Odd", "of no known type").created(2),
                Event::warning("BackOff", "Back-off restarting failed container").created(3),
            ],
            &[
                ("Successfully assigned ml-team/train-0", 1, 0),
                ("of no known type", 2, 1),
                ("Back-off restarting failed container", 3, 2),
            ],
        );
    }

    #[test]
    fn lines_are_in_order_of_creation_then_as_given() {
        check(
            [
                Event::normal("A", "third").created(5).last_seen(6),
                Event::normal("B", "fourth").created(5).last_seen(5),
                Event::normal("C", "first").created(0),
                Event::normal("D", "fifth").created(9),
                Event::normal("E", "second").created(0),
            ],
            &[
                ("first", 0, 2),
                ("second", 0, 4),
                ("third", 5, 0),
                ("fourth", 5, 1),
                ("fifth", 9, 3),
            ],
        );
    }

    #[test]
    fn without_a_note_the_line_is_empty_and_its_reason_is_beside_it() {
        check([Event::normal("Pulled", "").created(1)], &[("", 1, 0)]);
    }

    #[test]
    fn an_event_that_says_nothing_is_still_a_line() {
        check([Event::new("", "", "")], &[("", 0, 0)]);
    }

    #[test]
    fn no_events_are_no_lines() {
        check([], &[]);
    }
}
