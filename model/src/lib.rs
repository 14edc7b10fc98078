//! The host's sources that share state between threads, compiled with a `sync` of their own.
//!
//! In there each lock, atomic and condition is shuttle's, and the map is a locked one: none of them goes on
//! before the checker says which thread does. So a test in `tests/model` runs a few threads in thousands of
//! orders, and whatever fails in one of them can be run again.
//!
//! It is a package, since a test target of the host would compile the tests within these sources too, and
//! those are of real threads. It has nothing of its own but the primitives and what hands on the private
//! names, and nothing depends on it.

// Whoever names a test of the workspace builds this as a test, too: then there is nothing in it.
#![cfg(not(test))]
#![allow(
    dead_code,
    reason = "what the host calls from elsewhere nobody calls here"
)]

mod map;
pub mod sync;

#[path = "../../host/src"]
mod host {
    pub(crate) mod files;
    pub mod interner;
    pub mod outcome;
    pub mod output;
    pub mod pods;
    pub mod reason;
    pub mod record;
    pub mod sink;
    pub mod store;
    pub mod subject;
    pub mod text;
}

pub(crate) use host::files;
pub use host::{interner, outcome, output, pods, reason, record, sink, store, subject, text};

/// What the workers need to know of the sandbox. Here no thread has a stack of its own.
mod sandbox {
    pub(crate) const STACK_MIN_BYTES: usize = 2 << 20;
}

/// The threads of `dispatch`.
#[path = "../../host/src/dispatch"]
pub mod dispatch {
    use std::{io, num::NonZeroUsize};

    use crate::sync::Arc;

    mod workers;

    /// What nobody but `dispatch` may name.
    #[derive(Debug)]
    pub struct Workers<Job, Done>(workers::Workers<Job, Done>);

    #[allow(
        missing_docs,
        clippy::missing_errors_doc,
        reason = "they are those of the same names"
    )]
    impl<Job: Send + 'static, Done: Send + 'static> Workers<Job, Done> {
        pub fn start(
            name: &str,
            n_workers: NonZeroUsize,
            work: impl Fn(Job) -> Done + Send + Sync + 'static,
            on_done: &Arc<dyn Fn() + Send + Sync>,
        ) -> io::Result<Self> {
            workers::Workers::start(name, n_workers, work, on_done).map(Self)
        }

        /// All in one lane.
        pub fn submit(&mut self, new: Vec<Job>) {
            self.0.submit(new.into_iter().map(|it| (0, it)).collect());
        }

        pub fn submit_in_lanes(&mut self, new: Vec<(u64, Job)>) {
            self.0.submit(new);
        }

        pub fn set_cap(&self, cap: NonZeroUsize) {
            self.0.set_cap(cap);
        }

        #[must_use]
        pub fn max_given(&self) -> usize {
            self.0.max_given()
        }

        #[must_use]
        pub fn n_out(&self) -> u64 {
            self.0.n_out()
        }

        pub fn finished(&mut self) -> Option<Done> {
            self.0.finished()
        }

        #[expect(clippy::should_implement_trait, reason = "so it is called in the host")]
        pub fn next(&mut self) -> Option<Done> {
            self.0.next()
        }
    }
}

/// The texts of `interner`.
pub mod texts {
    use crate::{
        interner::{Interner, Repeated},
        sync::Arc,
    };

    /// A text that is held by nobody but its users.
    #[derive(Debug)]
    pub struct Text(Arc<Repeated>);

    impl Text {
        /// The one that all who say the same have.
        #[must_use]
        pub fn of(interner: &Interner, text: &str) -> Self {
            Self(interner.intern(&[text]))
        }

        /// What it says.
        #[must_use]
        pub fn text(&self) -> &str {
            self.0.part(0)
        }

        /// Whether both are one.
        #[must_use]
        pub fn is(&self, other: &Self) -> bool {
            Arc::ptr_eq(&self.0, &other.0)
        }
    }
}
