//! What an operator should do: the step from a fault to a verdict.

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Nothing that helps this workload.
    None,
    /// The workload has to change.
    FixUser,
    /// Try again; the same device will do.
    RetrySame,
    /// Try again on another node.
    RetryElsewhere,
    /// Take the node out of service.
    Drain,
    /// Reset the device.
    Reset,
    /// Replace the device.
    Rma,
}

impl Action {
    pub(crate) const ALL: [Self; 7] = [
        Self::None,
        Self::FixUser,
        Self::RetrySame,
        Self::RetryElsewhere,
        Self::Drain,
        Self::Reset,
        Self::Rma,
    ];

    pub(crate) fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.as_word() == word)
    }

    pub(crate) fn as_word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::FixUser => "fix-user",
            Self::RetrySame => "retry-same",
            Self::RetryElsewhere => "retry-elsewhere",
            Self::Drain => "drain",
            Self::Reset => "reset",
            Self::Rma => "rma",
        }
    }

    /// Whether the place is to be avoided.
    pub(crate) fn leaves(self) -> bool {
        matches!(
            self,
            Self::RetryElsewhere | Self::Drain | Self::Reset | Self::Rma
        )
    }
}
