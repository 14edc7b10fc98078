//! What can go wrong with a watch: the classes that metrics and readiness name.

use std::{error::Error, fmt, time::Duration};

use kube::core::Status;

use crate::text::{Visible, cut, in_a_line};

/// Bytes of a message that are kept: whoever is between us and the server may
/// write what they like.
const MESSAGE_MAX: usize = 512;

/// How a LIST or a watch ended before it should.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Its class.
    pub class: Class,
    /// For a person: bounded, on one line.
    pub message: String,
    /// What the server asked us to wait, if it did.
    pub(super) retry_after: Option<Duration>,
}

/// Declares the classes once: variant, label, and what it means.
macro_rules! classes {
    ($($(#[doc = $doc:literal])+ $variant:ident = $label:literal,)+) => {
        /// A class of [`Failure`]: the value of a label.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Class {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl Class {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// As it stands in a label.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $label,)+
                }
            }

            /// What it means, for the docs.
            #[must_use]
            pub fn meaning(self) -> &'static str {
                match self {
                    $(Self::$variant => concat!($($doc),+).trim_ascii(),)+
                }
            }
        }
    };
}

classes! {
    /// The version to go on from is compacted (410): routine for Events, whose quiet watches outlive it; a LIST follows.
    Gone = "gone",
    /// The server does not know who we are (401).
    Unauthorized = "unauthorized",
    /// A permission is missing (403).
    Forbidden = "forbidden",
    /// What is watched does not exist (404): an old server, or a wrong address.
    NotFound = "not-found",
    /// The server does not understand the request (400).
    BadRequest = "bad-request",
    /// The server wants fewer requests (429).
    Throttled = "throttled",
    /// Any other answer that is none.
    Server = "server",
    /// No answer in time.
    Deadline = "deadline",
    /// The watch ended at once and brought nothing; a LIST follows.
    ShortWatch = "short-watch",
    /// The connection failed.
    Transport = "transport",
    /// A page of a LIST could not be read to its end.
    Page = "page",
}

impl Class {
    /// Whether the server answered, and will answer the same until someone
    /// changes something: for readiness that is an answer.
    #[must_use]
    pub fn is_refusal(self) -> bool {
        matches!(self, Self::Unauthorized | Self::Forbidden | Self::NotFound)
    }
}

impl Failure {
    pub(super) fn new(class: Class, message: impl fmt::Display) -> Self {
        let message = message.to_string();
        Self {
            class,
            message: Visible(cut(&message, MESSAGE_MAX)).to_string(),
            retry_after: None,
        }
    }

    pub(super) fn deadline(step: &str, after: Duration) -> Self {
        Self::new(Class::Deadline, format_args!("no {step} within {after:?}"))
    }

    pub(super) fn page(what: &str) -> Self {
        Self::new(Class::Page, what)
    }

    /// An error of the client, with its causes.
    pub(super) fn transport(err: &dyn Error) -> Self {
        Self::new(Class::Transport, in_a_line(err))
    }

    /// An answer that says that it is none.
    pub(super) fn status(code: u16, status: &Status, retry_after: Option<Duration>) -> Self {
        let class = match code {
            400 => Class::BadRequest,
            401 => Class::Unauthorized,
            403 => Class::Forbidden,
            404 => Class::NotFound,
            410 => Class::Gone,
            429 => Class::Throttled,
            _ => Class::Server,
        };
        let failure = if status.message.is_empty() {
            Self::new(class, format_args!("HTTP {code}"))
        } else {
            Self::new(class, format_args!("HTTP {code}: {}", status.message))
        };
        Self {
            retry_after,
            ..failure
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.class.as_str(), self.message)
    }
}
