//! How bad a fault is, in Flyte's words.

/// From what to ignore to what to act on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// The workload did it; the device is healthy.
    User,
    /// Worth knowing. Not one of Flyte's: what NVIDIA calls informational.
    Info,
    /// Worth a look.
    Warn,
    /// The device, or what connects it, is at fault.
    Critical,
}

impl Level {
    pub(crate) const ALL: [Self; 4] = [Self::User, Self::Info, Self::Warn, Self::Critical];

    /// Reads the word as it is written. Anything else is no level.
    pub(crate) fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.as_word() == word)
    }

    pub(crate) fn as_word(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Critical => "critical",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_read_as_it_is_written() {
        for level in Level::ALL {
            assert_eq!(Level::from_word(level.as_word()), Some(level));
        }
        assert_eq!(Level::from_word("CRITICAL"), None);
        assert_eq!(Level::from_word(""), None);
    }
}
