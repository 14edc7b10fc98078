//! What is known of a subject from elsewhere: its pod, its failure, and what is said of
//! its node and its owner.
//!
//! Much of what goes wrong with a pod's GPU is said of its node, and some of it of who
//! owns the pod. A pod that failed is therefore given their records too, those around its
//! failure. A pod that did not fail is not: it would be classified anew for all that is
//! said of a node.

use std::sync::Arc;

use super::{Subject, own};
use crate::{
    pods::{Failure, ObjectRef, Pods},
    record::{Record, UnixMs},
    store::Store,
};

/// How long before a failure its reasons may have been told. Flyte's rule for GPU faults.
pub const BEFORE_FAILURE_MS: UnixMs = 30 * 60 * 1_000;

/// How long after a failure its reasons may be told. Flyte's rule for GPU faults.
pub const AFTER_FAILURE_MS: UnixMs = 2 * 60 * 1_000;

/// How many records of its node and its owner a subject is given: those that were seen
/// last. An arbitrary number, half of what a call takes.
pub const SURROUNDINGS_MAX: usize = 32;

/// How long after its last Event an object is taken to have failed of whose failure only
/// the code is known.
pub const AFTER_LAST_EVENT_MS: UnixMs = 1_000;

impl Subject {
    /// Adds what is known of its pod. Of what failed for a reason that the caller knows,
    /// that is the code, and the pod tells the rest.
    pub fn know(&mut self, pods: &Pods, failure_code: Option<&str>) {
        let object = &self.key.object;
        let of_uid = if self.key.uid.is_empty() {
            pods.newest(object)
        } else {
            pods.get(object, self.key.uid.as_ref())
        };
        self.is_disowned = of_uid.is_none() && pods.newest(object).is_some();
        if let Some((pod, version)) = of_uid {
            self.version = self.version.max(version);
            self.failure.clone_from(&pod.failure);
            self.pod = Some(Arc::clone(pod));
        }
        let Some(code) = failure_code else { return };
        let of_pod = self.failure.as_deref().cloned();
        let failure = of_pod.or_else(|| {
            self.last_seen.map(|it| Failure {
                at: it + AFTER_LAST_EVENT_MS,
                ..Failure::default()
            })
        });
        self.failure = failure.map(|it| {
            let code = code.into();
            Arc::new(Failure { code, ..it })
        });
    }

    /// Adds what is said of its node and its owner around its failure, as far as it is of
    /// interest.
    pub fn surround(
        &mut self,
        store: &Store,
        is_of_interest: impl Fn(&ObjectRef, &Record) -> bool,
    ) {
        let (Some(pod), Some(failure)) = (&self.pod, &self.failure) else {
            return;
        };
        let (from, to) = (
            failure.at.saturating_sub(BEFORE_FAILURE_MS),
            failure.at.saturating_add(AFTER_FAILURE_MS),
        );
        let mut found = Vec::new();
        for about in pod.node_ref().into_iter().chain(pod.owner.clone()) {
            let about = Arc::new(about);
            let version = store.view(&about.object, |bucket| {
                for it in own(bucket, about.uid.as_ref()) {
                    let record = &it.record;
                    self.live.push(record.clone());
                    let is_around = record.first_seen() <= to && from <= record.last_seen();
                    if is_around && is_of_interest(&about, record) {
                        found.push((it.sequence, record.clone(), Arc::clone(&about)));
                    }
                }
                bucket.version()
            });
            self.version = self.version.max(version.unwrap_or_default());
            self.around.push((about.object.clone(), version));
        }
        if found.is_empty() {
            return;
        }
        found.sort_by_key(|(sequence, record, _)| (record.last_seen(), *sequence));
        let found = found.split_off(found.len().saturating_sub(SURROUNDINGS_MAX));
        self.insert(store, found);
    }

    /// Puts events where they belong: by when they were created, then by arrival.
    fn insert(&mut self, store: &Store, others: Vec<(u64, Record, Arc<ObjectRef>)>) {
        let arrivals = store.view(&self.key.object, |bucket| {
            let of = |it: &Record| {
                let stored = bucket.records().iter().find(|stored| stored.record == *it);
                stored.map_or(0, |it| it.sequence)
            };
            self.events.iter().map(of).collect()
        });
        let arrivals: Vec<_> = arrivals.unwrap_or_default();
        let own = arrivals.into_iter().zip(std::mem::take(&mut self.events));
        let own = own.map(|(arrival, record)| (arrival, record, None));
        let others = others
            .into_iter()
            .map(|(arrival, record, about)| (arrival, record, Some(about)));
        let mut all: Vec<_> = own.chain(others).collect();
        all.sort_by_key(|(arrival, record, _)| (record.created(), *arrival));
        (self.events, self.about) = all.into_iter().map(|(_, it, about)| (it, about)).unzip();
    }
}
