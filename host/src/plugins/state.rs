//! What a version of a plugin is: on its way, serving, or over.
//!
//! One closed type, which status, metrics, logs and the docs share; and the rules of what may
//! follow what. A version that fails on its way never served: the one before it does. It
//! keeps no time and does nothing by itself.

use std::fmt;

use crate::reason::{Reason, Step};

/// Where a version of a plugin is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// On its way, this far.
    Loading(Step),
    /// It did not pass a step, and never served.
    Failed(Reason),
    /// It serves.
    Active,
    /// Its calls failed too often: it is asked a batch now and then, to see whether they still do.
    Quarantined(Reason),
    /// It serves no more, and some of its batches are not back.
    Draining,
    /// It serves no more, and all of its batches are back.
    Retired,
}

/// A state cannot follow another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a plugin that is {from} cannot be {to} next")]
pub struct Impossible {
    /// What it is.
    pub from: State,
    /// What it was to be.
    pub to: State,
}

impl State {
    /// The states behind the steps, for the docs: the word and what it means.
    pub const BEHIND: [(&'static str, &'static str); 5] = [
        (
            "failed",
            "It did not pass a step, and the reason code says why. The version before it serves on.",
        ),
        ("active", "It serves."),
        (
            "quarantined",
            "Its calls failed too often. It is asked a batch now and then; what is to be classified waits.",
        ),
        (
            "draining",
            "It serves no more, and some of its batches are not back.",
        ),
        (
            "retired",
            "It serves no more, and all of its batches are back.",
        ),
    ];

    /// The word, as it stands in output and labels.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Loading(step) => step.as_str(),
            Self::Failed(_) => "failed",
            Self::Active => "active",
            Self::Quarantined(_) => "quarantined",
            Self::Draining => "draining",
            Self::Retired => "retired",
        }
    }

    /// The reason code, of a state that has one.
    #[must_use]
    pub fn reason(self) -> Option<Reason> {
        match self {
            Self::Failed(reason) | Self::Quarantined(reason) => Some(reason),
            _ => None,
        }
    }

    /// What it is next.
    ///
    /// # Errors
    ///
    /// If that cannot follow.
    pub fn next(self, to: Self) -> Result<Self, Impossible> {
        let may = match (self, to) {
            (Self::Loading(from), Self::Loading(to)) => {
                let mut steps = Step::ALL.iter().skip_while(|it| **it != from);
                steps.nth(1) == Some(&to)
            }
            (Self::Loading(from), Self::Active) => Step::ALL.last() == Some(&from),
            (Self::Loading(_), Self::Failed(_))
            | (Self::Active, Self::Quarantined(_) | Self::Draining)
            | (Self::Quarantined(_), Self::Active | Self::Draining)
            | (Self::Draining, Self::Retired) => true,
            _ => false,
        };
        if may {
            Ok(to)
        } else {
            Err(Impossible { from: self, to })
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())?;
        match self.reason() {
            Some(reason) => write!(f, "({reason})"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<State> {
        let steps = Step::ALL.iter().map(|it| State::Loading(*it));
        let others = [
            State::Failed(Reason::TooLarge),
            State::Active,
            State::Quarantined(Reason::Trap),
            State::Draining,
            State::Retired,
        ];
        steps.chain(others).collect()
    }

    #[test]
    fn only_these_states_follow_another() {
        let follow = |from: State| {
            let next = all().into_iter().filter(|to| from.next(*to).is_ok());
            let next: Vec<_> = next.map(State::as_str).collect();
            format!("{}: {}", from.as_str(), next.join(" "))
        };
        let found: Vec<_> = all().into_iter().map(follow).collect();
        assert_eq!(
            found,
            [
                "discovered: read failed",
                "read: verified failed",
                "verified: inspected failed",
                "inspected: compiled failed",
                "compiled: described failed",
                "described: configured failed",
                "configured: trial-run failed",
                "trial-run: failed active",
                "failed: ",
                "active: quarantined draining",
                "quarantined: active draining",
                "draining: retired",
                "retired: ",
            ]
        );
    }

    #[test]
    fn what_cannot_follow_says_so() {
        let failed = State::Failed(Reason::NameClash);
        let wrong = failed.next(State::Active).unwrap_err();
        assert_eq!(
            wrong.to_string(),
            "a plugin that is failed(name-clash) cannot be active next"
        );
    }

    #[test]
    fn every_state_has_a_word_and_a_meaning() {
        let behind = all().into_iter().skip(Step::ALL.len());
        let words: Vec<_> = behind.map(State::as_str).collect();
        assert_eq!(words, State::BEHIND.map(|(word, _)| word));
    }
}
