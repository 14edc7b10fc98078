//! What a cluster's Events say about its accelerators: faults, and whose fault a failure was.
//!
//! Each producer has its own grammar (`grammar`); what no grammar reads wholly yields nothing, since a wrong
//! fault costs more than a missed one. Who may say what about a pod is in `trust`, what a number means in
//! `table`, and the step from findings to a verdict in `verdict`. What bounds the output is the input: an event
//! makes one finding, or ends some. `docs/gpu-faults.md` is the page for whoever is paged.

use portent_sdk::{Attribute, Event, Finding, Outcome, Subject, classifier};

mod action;
mod code;
mod cursor;
mod description;
mod grammar;
mod json;
mod level;
mod resource;
mod settings;
mod statement;
mod table;
mod trust;
mod verdict;

use grammar::{RAY_KINDS, Report};
use settings::Settings;
use statement::Statement;
use trust::Writer;

classifier!(classify, description::description(), settings = Settings);

fn classify(settings: &Settings, subject: &Subject) -> Outcome {
    let told: Vec<_> = (0..)
        .zip(&subject.events)
        .filter_map(|(index, event)| {
            let statement = read(settings, subject, event)?;
            Some(Told {
                index,
                event,
                statement,
            })
        })
        .collect();
    let verdict = subject
        .failure
        .as_ref()
        .and_then(|failure| verdict::decide(settings, failure, &told));
    let (verdict, decided) = verdict.unzip();
    let decided = decided.map(|it: &Statement| (it.category.as_word(), it.code, it.key.clone()));

    let findings = fold(told);
    let finding = decided.and_then(|(category, code, key)| {
        let mut identities = findings.iter();
        identities.position(|it| it.category == category && it.code == code && it.key == key)
    });
    let verdict = match (verdict, finding) {
        (Some(verdict), Some(finding)) => Some(verdict.finding(finding)),
        (verdict, _) => verdict,
    };
    Outcome {
        findings,
        verdict,
        ..Outcome::default()
    }
}

/// What one event says.
struct Told<'a> {
    index: u32,
    event: &'a Event,
    statement: Statement,
}

/// What an event says, if it is to be believed and regards the subject.
fn read(settings: &Settings, subject: &Subject, event: &Event) -> Option<Statement> {
    let object = event.about.as_ref().unwrap_or(&subject.object);
    let is_own = event.about.is_none();
    let report = Report {
        kind: &object.kind,
        reason: &event.reason,
        controller: event.controller.as_deref().unwrap_or_default(),
        note: &event.note,
    };
    let writer = Writer::of(report.kind, report.reason, report.controller);
    let instance = event.instance.as_deref();
    let has_run = !is_own || trust::has_run(subject);
    let node_it_is = (report.kind == "Node").then_some(object.name.as_str());
    if !writer.is_believed(event.trust, instance, node_it_is, has_run) {
        return None;
    }
    // Of its owner, what a pod is told matters where it is about the pod's own node.
    let is_of_owner =
        !is_own && subject.object.kind == "Pod" && !["Node", "Pod"].contains(&report.kind);
    if is_of_owner && !RAY_KINDS.contains(&report.kind) {
        return None;
    }
    let mut statement = grammar::read(settings, report)?;
    if is_of_owner && (subject.node.is_none() || statement.find("node") != subject.node.as_deref())
    {
        return None;
    }
    if statement.find("node").is_none() {
        let node = match writer {
            Writer::OnNode => node_it_is,
            Writer::OnPodsNode if is_own => subject.node.as_deref().or(instance),
            Writer::OnPodsNode => instance,
            // A pod that waits has none, one that was evicted had.
            Writer::Anywhere if is_own => subject.node.as_deref(),
            Writer::Anywhere => None,
        };
        statement
            .attributes
            .extend(node.map(|node| Attribute::new("node", node)));
    }
    Some(statement)
}

/// One finding an identity, in the order in which they were first told, as it was seen last.
fn fold(told: Vec<Told<'_>>) -> Vec<Finding> {
    let mut folded: Vec<(Finding, u64)> = Vec::with_capacity(told.len());
    for Told {
        index,
        event,
        statement,
    } in told
    {
        for mut finding in statement.into_findings(index) {
            let before = folded.iter_mut().find(|(it, _)| {
                it.key == finding.key && it.code == finding.code && it.category == finding.category
            });
            match before {
                None => folded.push((finding, event.last_seen)),
                Some((before, last_seen)) => {
                    before.evidence.push(index);
                    if *last_seen <= event.last_seen {
                        finding.evidence = std::mem::take(&mut before.evidence);
                        (*before, *last_seen) = (finding, event.last_seen);
                    }
                }
            }
        }
    }
    folded.into_iter().map(|(finding, _)| finding).collect()
}

#[cfg(test)]
mod tests;
