//! How a new outcome meets the one that is held.
//!
//! A finding that holds ends in two ways only here: a cleared finding that
//! matches it is at least as new, or all of its evidence is live and the
//! classifier no longer yields it. That its Events went away ends nothing:
//! absence is no evidence. A cleared finding is kept for as long as its own
//! evidence, or that of what it ended, is live, so that the old Event of a fault
//! cannot raise again what a newer one cleared.

use std::{cmp::Reverse, sync::Arc};

use super::{
    AdditionalReason, EVIDENCE_MAX, EndReason, Evidence, Finding, Held, Identity, Outcome, Status,
    Verdict,
};
use crate::{record::EventRef, subject::Subject};

/// What a merge changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delta {
    /// Findings that hold now and did not.
    pub raised: Vec<Finding>,
    /// Findings that held and say something else now.
    pub changed: Vec<Finding>,
    /// Findings that held and do not any more, and why.
    pub cleared: Vec<(Finding, EndReason)>,
    /// Additional reasons that are new or say something else.
    pub additional_reasons: Vec<Arc<AdditionalReason>>,
    /// The verdict, if it is new or says something else.
    pub verdict: Option<Box<Verdict>>,
}

impl Delta {
    /// Whether nothing changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.raised.is_empty()
            && self.changed.is_empty()
            && self.cleared.is_empty()
            && self.additional_reasons.is_empty()
            && self.verdict.is_none()
    }
}

/// What a cleared finding ended: for as long as any of it is live, the cleared
/// one has to be remembered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ended {
    cleared: Identity,
    evidence: Vec<Evidence>,
}

impl Ended {
    /// What it costs in memory, about.
    pub(super) fn n_bytes(&self) -> usize {
        let evidence = self.evidence.iter().map(Evidence::n_bytes);
        size_of::<Self>() + self.cleared.n_bytes() + evidence.sum::<usize>()
    }
}

/// Merges a new outcome of a subject into what is held of it.
pub(super) fn merge(held: &mut Held, new: Outcome, subject: &Subject) -> Delta {
    let mut delta = Delta::default();
    refresh(held, subject);

    let before = held.outcome.findings.clone();
    let yielded: Vec<_> = new.findings.iter().map(|it| it.identity.clone()).collect();
    for finding in new.findings {
        put(held, finding);
    }
    let held_active: Vec<_> = before
        .iter()
        .filter(|it| it.status == Status::Active)
        .collect();

    // The classifier saw all that the finding rests on, and says it no more.
    held.outcome.findings.retain(|it| {
        let stands = yielded.contains(&it.identity)
            || it.status == Status::Cleared
            || !it.evidence.iter().all(|it| it.live);
        if !stands {
            delta.cleared.push((it.clone(), EndReason::NotYielded));
        }
        stands
    });
    clear(held);
    forget_cleared(held);
    held.outcome
        .findings
        .sort_by(|a, b| a.identity.cmp(&b.identity));

    for it in held
        .outcome
        .findings
        .iter()
        .filter(|it| it.status == Status::Active)
    {
        match held_active.iter().find(|was| was.identity == it.identity) {
            None => delta.raised.push(it.clone()),
            Some(was) if !was.says_the_same(it) => delta.changed.push(it.clone()),
            Some(_) => {}
        }
    }
    for was in held_active {
        let holds = |it: &&Finding| it.identity == was.identity && it.status == Status::Active;
        let told = delta
            .cleared
            .iter()
            .any(|(it, _)| it.identity == was.identity);
        if !told && held.outcome.findings.iter().find(holds).is_none() {
            delta.cleared.push((was.clone(), EndReason::Cleared));
        }
    }

    let known = std::mem::replace(&mut held.outcome.additional_reasons, new.additional_reasons);
    let told = held
        .outcome
        .additional_reasons
        .iter()
        .filter(|it| !known.contains(it));
    delta.additional_reasons = told.cloned().collect();

    merge_verdict(held, new.verdict, subject, &mut delta);
    held.outcome.attributes = new.attributes;
    delta
}

/// Brings what is known of the evidence up to date: what is live, and when it
/// was last seen.
fn refresh(held: &mut Held, subject: &Subject) {
    let ended = held.cleared_for.iter_mut().flat_map(|it| &mut it.evidence);
    let findings = held
        .outcome
        .findings
        .iter_mut()
        .flat_map(|it| &mut it.evidence);
    for it in findings.chain(ended) {
        let record = subject
            .live
            .iter()
            .find(|record| record.event_ref() == it.event);
        it.live = record.is_some();
        it.last_seen = it
            .last_seen
            .max(record.map_or(0, crate::record::Record::last_seen));
    }
}

/// Puts a finding that the classifier yielded beside, over or under the held
/// one of its identity.
fn put(held: &mut Held, mut new: Finding) {
    let findings = &mut held.outcome.findings;
    let Some(known) = findings.iter_mut().find(|it| it.identity == new.identity) else {
        new.evidence = newest_evidence(new.evidence);
        // Most subjects have one, for a day.
        findings.reserve_exact(1);
        findings.push(new);
        return;
    };
    if known.status == new.status {
        let evidence = known.evidence.iter().cloned().chain(new.evidence);
        new.evidence = newest_evidence(evidence.collect());
        *known = new;
        return;
    }
    // One says that it holds, the other that it is over: the newer one stands,
    // on a tie the cleared one.
    let new_stands = match new.status {
        Status::Cleared => known.last_seen() <= new.last_seen(),
        Status::Active => known.last_seen() < new.last_seen(),
    };
    new.evidence = newest_evidence(new.evidence);
    let (standing, ended) = if new_stands {
        let ended = std::mem::replace(known, new);
        (known.clone(), ended)
    } else {
        (known.clone(), new)
    };
    if standing.status == Status::Cleared {
        remember(held, &standing.identity, ended.evidence);
    } else {
        held.cleared_for
            .retain(|it| it.cleared != standing.identity);
    }
}

/// Ends the active findings that a cleared one matches and is not older than.
fn clear(held: &mut Held) {
    let (cleared, active): (Vec<_>, Vec<_>) = std::mem::take(&mut held.outcome.findings)
        .into_iter()
        .partition(|it| it.status == Status::Cleared);
    for it in active {
        let by = cleared
            .iter()
            .find(|by| matches(&by.identity, &it.identity) && it.last_seen() <= by.last_seen());
        match by {
            Some(by) => remember(held, &by.identity, it.evidence),
            None => held.outcome.findings.push(it),
        }
    }
    held.outcome.findings.extend(cleared);
}

fn matches(cleared: &Identity, active: &Identity) -> bool {
    let any_or = |pattern: &str, it: &str| pattern.is_empty() || pattern == it;
    cleared.category == active.category
        && any_or(&cleared.code, &active.code)
        && any_or(&cleared.key, &active.key)
}

fn remember(held: &mut Held, cleared: &Identity, evidence: Vec<Evidence>) {
    match held
        .cleared_for
        .iter_mut()
        .find(|it| it.cleared == *cleared)
    {
        Some(known) => {
            let all = known.evidence.drain(..).chain(evidence).collect();
            known.evidence = newest_evidence(all);
        }
        None => held.cleared_for.push(Ended {
            cleared: cleared.clone(),
            evidence,
        }),
    }
}

/// Drops the cleared findings of which nothing is live, neither what they rest
/// on nor what they ended.
fn forget_cleared(held: &mut Held) {
    let is_live = |it: &Evidence| it.live;
    let ended = &held.cleared_for;
    held.outcome.findings.retain(|it| {
        it.status == Status::Active
            || it.evidence.iter().any(is_live)
            || ended
                .iter()
                .any(|e| e.cleared == it.identity && e.evidence.iter().any(is_live))
    });
    let findings = &held.outcome.findings;
    held.cleared_for.retain(|it| {
        findings
            .iter()
            .any(|f| f.identity == it.cleared && f.status == Status::Cleared)
    });
}

/// A verdict belongs to its failure, and stays until the classifier says
/// another for it or there is another failure.
fn merge_verdict(held: &mut Held, new: Option<Box<Verdict>>, subject: &Subject, delta: &mut Delta) {
    if let Some(new) = new {
        if held.outcome.verdict.as_ref() != Some(&new) {
            delta.verdict = Some(new.clone());
        }
        held.outcome.verdict = Some(new);
    } else if let (Some(verdict), Some(failure)) = (&held.outcome.verdict, &subject.failure) {
        let of_this = *verdict.failure_code == *failure.code && verdict.failure_at == failure.at;
        let rests_on = verdict.finding.as_ref();
        let finding = held
            .outcome
            .findings
            .iter()
            .find(|it| Some(&it.identity) == rests_on);
        let retained = finding.is_some_and(|it| !it.evidence.iter().all(|it| it.live));
        if !(of_this && retained) {
            held.outcome.verdict = None;
        }
    }
}

/// The Events that what is held rests on, or tells of.
pub(super) fn events(held: &Held) -> impl Iterator<Item = EventRef> {
    let findings = held.outcome.findings.iter().flat_map(|it| &it.evidence);
    let ended = held.cleared_for.iter().flat_map(|it| &it.evidence);
    let evidence = findings.chain(ended).filter(|it| it.live);
    let told_of = held.outcome.additional_reasons.iter().map(|it| &it.event);
    evidence.map(|it| &it.event).chain(told_of).cloned()
}

/// Takes note that an Event's record is gone.
pub(super) fn event_gone(held: &mut Held, event: &EventRef) {
    held.outcome
        .additional_reasons
        .retain(|it| it.event != *event);
    let ended = held.cleared_for.iter_mut().flat_map(|it| &mut it.evidence);
    let findings = held
        .outcome
        .findings
        .iter_mut()
        .flat_map(|it| &mut it.evidence);
    for it in findings.chain(ended).filter(|it| it.event == *event) {
        it.live = false;
    }
    forget_cleared(held);
}

/// Adds to what is held of a subject what was held of it under no uid. Nothing
/// is lost: the next classification says what of it still is so.
pub(super) fn fold(held: &mut Held, folded: Held) {
    for finding in folded.outcome.findings {
        put(held, finding);
    }
    held.cleared_for.extend(folded.cleared_for);
    clear(held);
    forget_cleared(held);
    held.outcome
        .additional_reasons
        .extend(folded.outcome.additional_reasons);
    held.outcome.verdict = held.outcome.verdict.take().or(folded.outcome.verdict);
}

/// Puts evidence in order, newest first, each Event once, and keeps
/// [`EVIDENCE_MAX`].
fn newest_evidence(mut evidence: Vec<Evidence>) -> Vec<Evidence> {
    evidence
        .sort_by(|a, b| (Reverse(a.last_seen), &a.event).cmp(&(Reverse(b.last_seen), &b.event)));
    let mut newest: Vec<Evidence> = Vec::with_capacity(evidence.len().min(EVIDENCE_MAX));
    for it in evidence {
        if newest.len() == EVIDENCE_MAX {
            break;
        }
        if !newest.iter().any(|known| known.event == it.event) {
            newest.push(it);
        }
    }
    newest
}
