//! Which batches a plugin is asked about once more, to see whether it answers the same.
//!
//! Counted and not drawn, so that a run can be repeated: the first batch of a version that holds
//! two subjects or more, and then one of so many. What differs is told in the log once a version;
//! what the plugin said first is what is used, and it serves on.
//!
//! What bounds it: an entry for each plugin that serves.

use std::collections::BTreeMap;

use super::{Batch, Done};
use crate::{
    plugins::Plugin,
    sandbox::Impurity,
    text::{Visible, cut},
};

/// One batch of so many is sampled. It costs three more calls, so that of the time in calls this
/// takes about one in a hundred.
pub const SAMPLE_EVERY: u64 = 256;

/// By the lane of each version.
#[derive(Debug, Default)]
pub(super) struct Samples(BTreeMap<u64, Sample>);

#[derive(Debug, Default)]
struct Sample {
    n_batches: u64,
    is_impure: bool,
}

impl Samples {
    /// Whether the next batch of a plugin is one. A batch of which nothing could be told does not
    /// count.
    pub(super) fn is_due(&mut self, plugin: &Plugin, n_asked: usize) -> bool {
        if n_asked < 2 {
            return false;
        }
        let sample = self.0.entry(Batch::lane_of(plugin)).or_default();
        sample.n_batches += 1;
        sample.n_batches % SAMPLE_EVERY == 1
    }

    /// Takes note of a batch that is back.
    pub(super) fn back(&mut self, done: &Done) {
        match &done.again {
            Some(Err(it)) => self.found(&done.plugin, it),
            // Too few of its subjects had an answer: the next one it is.
            None if done.is_sample => {
                if let Some(sample) = self.0.get_mut(&Batch::lane_of(&done.plugin)) {
                    sample.n_batches = 0;
                }
            }
            Some(Ok(())) | None => {}
        }
    }

    fn found(&mut self, plugin: &Plugin, found: &Impurity) {
        // One that serves no more is nobody's concern.
        let sample = self.0.get_mut(&Batch::lane_of(plugin));
        if sample.is_none_or(|it| std::mem::replace(&mut it.is_impure, true)) {
            return;
        }
        let Impurity { subject, what } = found;
        let object = subject.object.to_string();
        tracing::error!(
            classifier = %plugin.provenance.name,
            version = %Visible(&plugin.provenance.version),
            digest = %plugin.provenance.digest,
            object = %Visible(cut(&object, 400)),
            "impure: asked again {}; the first answer stands, but what it says depends on what is \
             beside a subject",
            Visible(what)
        );
    }

    /// Whether anything was found of a plugin.
    pub(super) fn is_impure(&self, plugin: &Plugin) -> bool {
        let sample = self.0.get(&Batch::lane_of(plugin));
        sample.is_some_and(|it| it.is_impure)
    }

    /// Forgets all but these.
    pub(super) fn keep(&mut self, lanes: impl Iterator<Item = u64>) {
        let lanes: Vec<_> = lanes.collect();
        self.0.retain(|lane, _| lanes.contains(lane));
    }
}
