//! Why a plugin did not load, or a call into it gave no outcome: the one closed
//! list of codes that status, errors, exit codes and docs share.

use std::fmt;

/// Declares the list once: variant, code, and what it means.
macro_rules! reasons {
    ($($(#[doc = $doc:literal])+ $variant:ident = $code:literal,)+) => {
        /// A code for why something of a plugin failed.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Reason {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl Reason {
            /// All of them, in the order in which a plugin's life meets them.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// The code, as it stands in output and labels.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $code,)+
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

reasons! {
    /// The file, or its settings file, could not be read.
    ReadFailed = "read-failed",
    /// The file is larger than the limit.
    TooLarge = "too-large",
    /// The file is no WebAssembly component.
    NotAComponent = "not-a-component",
    /// It was built for a version of the contract that this host does not serve, or for another contract.
    AbiUnsupported = "abi-unsupported",
    /// It imports a function that no classifier may have.
    ForbiddenImport = "forbidden-import",
    /// It could not be compiled.
    CompileFailed = "compile-failed",
    /// Compiling it took more time or memory than allowed.
    CompileLimit = "compile-limit",
    /// No instance of it could be made: a type differs from the contract, its start trapped, or it wants more than the limits.
    InstantiateFailed = "instantiate-failed",
    /// `describe` trapped, or ran too long.
    DescribeFailed = "describe-failed",
    /// The description breaks a rule of the contract.
    DescriptionInvalid = "description-invalid",
    /// The settings are not YAML, do not go with the schema that the plugin describes them with, or the plugin refused them.
    SettingsInvalid = "settings-invalid",
    /// The trial run on made-up subjects failed.
    SelfTestFailed = "self-test-failed",
    /// The same subjects got another answer in another order, or in another batch.
    Impure = "impure",
    /// Another plugin has the same name.
    NameClash = "name-clash",
    /// `plugins.pins` names another digest for it.
    PinMismatch = "pin-mismatch",
    /// With it all plugins together had more compiled code than `plugins.bytes`.
    OverBudget = "over-budget",
    /// The guest panicked.
    Panic = "panic",
    /// The guest trapped.
    Trap = "trap",
    /// The guest recursed too deeply.
    StackOverflow = "stack-overflow",
    /// The guest used up its fuel.
    OutOfFuel = "out-of-fuel",
    /// The guest ran past the backstop deadline.
    Deadline = "deadline",
    /// The guest was refused memory, and trapped.
    MemoryLimit = "memory-limit",
    /// The guest returned more than it may.
    OutputLimit = "output-limit",
    /// The guest returned bytes that are no value of their type.
    BadOutput = "bad-output",
    /// The guest's answer breaks a rule of the contract.
    ContractViolation = "contract-violation",
    /// The guest answered with an error of its own.
    GuestError = "guest-error",
}

/// Declares the steps once: variant, word, and what it means.
macro_rules! steps {
    ($($(#[doc = $doc:literal])+ $variant:ident = $word:literal,)+) => {
        /// How far a version of a plugin has come on its way to serve.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Step {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl Step {
            /// All of them, in their order.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// The word, as it stands in output and labels.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
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

steps! {
    /// There is a file that is new, or another than it was.
    Discovered = "discovered",
    /// It and its settings were read, while nobody wrote them.
    Read = "read",
    /// It is no larger than it may be, and has the digest that is pinned.
    Verified = "verified",
    /// It is a component of this contract, and imports nothing that it may not.
    Inspected = "inspected",
    /// It is compiled.
    Compiled = "compiled",
    /// It has said what it is.
    Described = "described",
    /// It takes its settings.
    Configured = "configured",
    /// It has answered to made-up subjects. What is left: that its name is free, and that there is room for it.
    TrialRun = "trial-run",
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How a call ended without an outcome for a subject.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}: {message}")]
pub struct CallFailure {
    /// The code.
    pub reason: Reason,
    /// What the guest did, for a person: bounded, on one line.
    pub message: String,
}

impl CallFailure {
    /// A failure with this code and message.
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
        }
    }
}
