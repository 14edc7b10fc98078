//! What threads share state with: the one place from which whatever is modelled takes it.
//!
//! A real lock cannot be told which thread is to go on, so a test of real threads cannot
//! try what matters. `model` compiles the store, its files, the interner, the workers, the
//! outbox and the outcome table with a `sync` of its own, where a checker says who goes on.
//! They name nothing of std that another thread could wait for (`host/tests/tidy.rs`).
//!
//! It holds nothing. Here it is std's and the map's, and nothing else.

pub(crate) use std::{
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak, atomic, mpsc},
    thread,
};

pub(crate) use dashmap::Entry;

/// What is a name in its keys is hashed by then, with a key that nobody knows, so a fast
/// hash will do.
pub(crate) type DashMap<K, V> = dashmap::DashMap<K, V, foldhash::fast::RandomState>;
