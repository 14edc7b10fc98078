//! What a merge changed, for whoever is told.

use std::sync::Arc;

use super::{Delta, Finding, Identity, Provenance};
use crate::{store::Version, subject::SubjectKey};

/// What a merge changed, as sinks and streams see it.
#[derive(Clone, Debug)]
pub struct Change {
    /// Whom it is about.
    pub subject: SubjectKey,
    /// The API version of the object.
    pub api_version: Arc<str>,
    /// Who says so.
    pub classifier: Arc<Provenance>,
    /// As of which version of its bucket.
    pub version: Version,
    /// What is different.
    pub delta: Delta,
}

impl Change {
    /// Makes one change of this and a later one of the same subject and
    /// classifier: of each entry the newest state stands. Says how many entries
    /// of this one nobody will be told of.
    pub fn fold(&mut self, newer: Self) -> usize {
        let Self {
            subject: _,
            api_version,
            classifier,
            version,
            delta,
        } = newer;
        (self.api_version, self.classifier, self.version) = (api_version, classifier, version);
        self.delta.fold(delta)
    }
}

impl Delta {
    fn n_entries(&self) -> usize {
        self.raised.len()
            + self.changed.len()
            + self.cleared.len()
            + self.additional_reasons.len()
            + usize::from(self.verdict.is_some())
    }

    fn fold(&mut self, newer: Self) -> usize {
        let n_both = self.n_entries() + newer.n_entries();
        for it in newer.raised {
            self.forget(&it.identity);
            self.raised.push(it);
        }
        for it in newer.changed {
            // Who was not told that it was raised has to be told now.
            let was_raised = self.raised.iter().any(|was| was.identity == it.identity);
            self.forget(&it.identity);
            let to = if was_raised {
                &mut self.raised
            } else {
                &mut self.changed
            };
            to.push(it);
        }
        for (it, reason) in newer.cleared {
            self.forget(&it.identity);
            self.cleared.push((it, reason));
        }
        for it in newer.additional_reasons {
            self.additional_reasons.retain(|was| was.event != it.event);
            self.additional_reasons.push(it);
        }
        if newer.verdict.is_some() {
            self.verdict = newer.verdict;
        }
        n_both - self.n_entries()
    }

    fn forget(&mut self, identity: &Identity) {
        let is_other = |it: &Finding| it.identity != *identity;
        self.raised.retain(is_other);
        self.changed.retain(is_other);
        self.cleared.retain(|(it, _)| is_other(it));
    }
}
