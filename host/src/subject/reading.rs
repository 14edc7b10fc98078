//! Reading the records of one uid of an object.
//!
//! A pod is recreated under its name, and whoever asks for the new one must not be told
//! of the old. Which records are whose is decided as for classifiers, so that a reader
//! and an outcome never disagree. It holds nothing.

use super::own;
use crate::{
    record::{ObjectKey, UidRef},
    store::{After, ReadError, Reading, Store},
};

/// Reads the records of the object that has this uid; of a Node all of them, since
/// Events know it by its name. The empty uid is the subject without one.
///
/// A record that names no uid may turn out to be another's as more becomes known. A
/// cursor does not find it a second time: who must have each of those reads the object
/// ([`Store::read`]).
///
/// # Errors
///
/// If there can be no such object, or the cursor is of another process.
pub fn read(
    store: &Store,
    object: &ObjectKey,
    uid: UidRef<'_>,
    after: After,
) -> Result<Reading, ReadError> {
    let uid = if object.kind() == "Node" {
        UidRef::of(object.name())
    } else {
        uid
    };
    store.read_those(object, after, |bucket| own(bucket, uid))
}
