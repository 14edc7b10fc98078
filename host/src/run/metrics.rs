//! What `/metrics` says: read at each scrape from what holds it.
//!
//! Nothing here is counted up and down beside what it counts. Labels are names
//! that an operator or a plugin's author chose (namespaces and kinds of the scope,
//! classifiers, their categories and codes) and words of ours, never an object's
//! name nor a text that came in with an Event, so that there are only so many
//! series and none tells a secret.

use std::{
    collections::BTreeMap,
    fmt, fs,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric, prometheus_text},
    metrics::{counter::ConstCounter, gauge::ConstGauge},
    registry::Registry,
};

use crate::{
    dispatch::{Held, Report},
    live::Counters,
    outcome::{Change, Finding, Outcomes, Status as Holds},
    plugins::{Board, Serving, State},
    reason::Reason,
    sandbox::{Compilations, Miss},
    sink::{Outbox, Traffic},
    store::{Store, Totals},
    watch::{Phase, Status},
};

/// What calls of one plugin came to.
#[derive(Clone, Debug, Default)]
struct Calls {
    n: u64,
    fuel: u64,
    failures: BTreeMap<Reason, u64>,
    /// Batches that it was asked about again.
    n_again: u64,
    /// Those of them that it said otherwise of.
    n_impure: u64,
}

/// A watch that goes on.
#[derive(Debug)]
enum Watch {
    /// It was there at the start, and readiness awaits it.
    First(Arc<Status>),
    /// It came when a plugin was interested: no readiness awaits it.
    Later(Arc<Status>),
}

impl Watch {
    fn status(&self) -> &Arc<Status> {
        let (Self::First(status) | Self::Later(status)) = self;
        status
    }
}

/// A classifier, and the category, code and severity of a finding.
type FindingLabels = (String, String, String, &'static str);

/// Where the figures are.
#[derive(Debug)]
pub(super) struct Sources {
    pub(super) store: Arc<Store>,
    pub(super) outcomes: Arc<Outcomes>,
    pub(super) counters: Arc<Counters>,
    watches: Mutex<Vec<Watch>>,
    /// Of watches that have ended, by resource: what was undecodable, and what too long.
    ended: Mutex<BTreeMap<&'static str, [u64; 2]>>,
    pub(super) board: Arc<Board>,
    pub(super) compilations: Arc<Compilations>,
    /// Subjects that wait only because a plugin is another.
    pub(super) backlog: AtomicU64,
    /// Results that came after their plugin was removed.
    pub(super) late: AtomicU64,
    /// What swaps held up.
    held: Mutex<Held>,
    pub(super) outbox: Outbox,
    /// Subjects that wait to be classified.
    pub(super) waiting: AtomicU64,
    /// Whether the configuration file says what only a restart takes up.
    pub(super) needs_restart: AtomicBool,
    calls: Mutex<BTreeMap<Box<str>, Calls>>,
    raised: Mutex<BTreeMap<FindingLabels, u64>>,
}

impl Sources {
    pub(super) fn new(
        store: Arc<Store>,
        outcomes: Arc<Outcomes>,
        counters: Arc<Counters>,
        watches: Vec<Arc<Status>>,
        board: Arc<Board>,
        compilations: Arc<Compilations>,
        outbox: Outbox,
    ) -> Self {
        Self {
            store,
            outcomes,
            counters,
            watches: Mutex::new(watches.into_iter().map(Watch::First).collect()),
            ended: Mutex::default(),
            board,
            compilations,
            backlog: AtomicU64::new(0),
            late: AtomicU64::new(0),
            held: Mutex::default(),
            outbox,
            waiting: AtomicU64::new(0),
            needs_restart: AtomicBool::new(false),
            calls: Mutex::default(),
            raised: Mutex::default(),
        }
    }

    fn lock_watches(&self) -> MutexGuard<'_, Vec<Watch>> {
        self.watches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A watch begins that was not there at the start.
    pub(super) fn watch_begins(&self, status: Arc<Status>) {
        self.lock_watches().push(Watch::Later(status));
    }

    /// A watch has ended. What it counted that is part of a sum stays in that.
    pub(super) fn watch_ends(&self, status: &Arc<Status>) {
        let mut watches = self.lock_watches();
        let unread = [&status.undecodable, &status.too_long].map(|it| it.load(Relaxed));
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        let sums = ended.entry(status.watch().resource()).or_default();
        for (sum, n) in sums.iter_mut().zip(unread) {
            *sum += n;
        }
        watches.retain(|it| !Arc::ptr_eq(it.status(), status));
    }

    /// The watches that readiness awaits, of those that there were at the start.
    pub(super) fn first_watches(&self) -> Vec<Arc<Status>> {
        let watches = self.lock_watches();
        let first = watches.iter().filter(|it| matches!(it, Watch::First(_)));
        first.map(|it| Arc::clone(it.status())).collect()
    }

    /// All watches.
    pub(super) fn all_watches(&self) -> Vec<Arc<Status>> {
        let watches = self.lock_watches();
        watches.iter().map(|it| Arc::clone(it.status())).collect()
    }

    /// Takes note of what swaps held up.
    pub(super) fn held(&self, held: Held) {
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = held;
    }

    /// What swaps held up, as far as is known here.
    pub(super) fn held_by_swaps(&self) -> Held {
        *self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes note of a batch.
    pub(super) fn reported(&self, report: &Report<'_>) {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let calls = calls
            .entry(report.plugin.provenance.name.clone())
            .or_default();
        calls.n += report.spent.calls;
        calls.fuel += report.spent.fuel;
        calls.n_again += u64::from(report.is_same.is_some());
        calls.n_impure += u64::from(report.is_same == Some(false));
        for it in report.failures {
            *calls.failures.entry(*it).or_default() += 1;
        }
    }

    /// Takes note of the findings that a change raises.
    pub(super) fn changed(&self, change: &Change) {
        if change.delta.raised.is_empty() {
            return;
        }
        let mut raised = self.raised.lock().unwrap_or_else(PoisonError::into_inner);
        for it in &change.delta.raised {
            *raised
                .entry(finding_labels(&change.classifier.name, it))
                .or_default() += 1;
        }
    }

    /// Everything, in Prometheus' text format.
    pub(super) fn encode(self: &Arc<Self>) -> Result<String, fmt::Error> {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Arc::clone(self)));
        let mut text = String::new();
        prometheus_text::encode(&mut text, &registry)?;
        Ok(text)
    }
}

fn finding_labels(classifier: &str, it: &Finding) -> FindingLabels {
    (
        classifier.to_owned(),
        it.identity.category.to_string(),
        it.identity.code.to_string(),
        it.severity.as_str(),
    )
}

/// Writes series, a metric at a time.
struct Series<'a, 'b>(&'a mut DescriptorEncoder<'b>);

type Labels<'a, const N: usize> = [(&'static str, &'a str); N];

impl Series<'_, '_> {
    fn counter<'a, const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (Labels<'a, N>, u64)>,
    ) -> fmt::Result {
        let metric_type = ConstCounter::new(0_u64).metric_type();
        let mut family = self.0.encode_descriptor(name, help, None, metric_type)?;
        for (labels, value) in values {
            let counter = ConstCounter::new(value);
            if N == 0 {
                return counter.encode(family);
            }
            counter.encode(family.encode_family(&labels.as_slice())?)?;
        }
        Ok(())
    }

    fn gauge<'a, const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (Labels<'a, N>, u64)>,
    ) -> fmt::Result {
        let metric_type = ConstGauge::new(0_i64).metric_type();
        let mut family = self.0.encode_descriptor(name, help, None, metric_type)?;
        for (labels, value) in values {
            let gauge = ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
            if N == 0 {
                return gauge.encode(family);
            }
            gauge.encode(family.encode_family(&labels.as_slice())?)?;
        }
        Ok(())
    }
}

impl Series<'_, '_> {
    fn durations<'a, const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (Labels<'a, N>, Duration)>,
    ) -> fmt::Result {
        let metric_type = ConstGauge::new(0_f64).metric_type();
        let mut family = self.0.encode_descriptor(name, help, None, metric_type)?;
        for (labels, value) in values {
            let gauge = ConstGauge::new(value.as_secs_f64());
            gauge.encode(family.encode_family(&labels.as_slice())?)?;
        }
        Ok(())
    }

    fn seconds(&mut self, name: &str, help: &str, value: f64) -> fmt::Result {
        let seconds = ConstCounter::new(value);
        let metric_type = seconds.metric_type();
        let encoder = self.0.encode_descriptor(name, help, None, metric_type)?;
        seconds.encode(encoder)
    }
}

fn labelled(all: &BTreeMap<FindingLabels, u64>) -> Vec<(Labels<'_, 4>, u64)> {
    let labelled = all
        .iter()
        .map(|((classifier, category, code, severity), n)| {
            let labels = [
                ("classifier", classifier.as_str()),
                ("category", category.as_str()),
                ("code", code.as_str()),
                ("severity", severity),
            ];
            (labels, *n)
        });
    labelled.collect()
}

fn one(value: u64) -> [(Labels<'static, 0>, u64); 1] {
    [([], value)]
}

fn count(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}

impl Collector for Sources {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut to = Series(&mut encoder);
        self.events(&mut to)?;
        self.holdings(&mut to)?;
        self.watches(&mut to)?;
        self.plugins(&mut to)?;
        self.compilations(&mut to)?;
        self.pods(&mut to)?;
        self.findings(&mut to)?;
        self.changes(&mut to)?;
        process(&mut to)
    }
}

impl Sources {
    /// The conservation law: what was received is stored, merged, rejected, out of
    /// scope, or in flight.
    fn events(&self, to: &mut Series<'_, '_>) -> fmt::Result {
        let Counters {
            received,
            out_of_scope,
            malformed_fields,
            clamped,
            deletions,
            unseen,
            unselected,
            waiting,
            ..
        } = &*self.counters;
        let [undecodable, too_long] = self.unread("events");
        let mut rejected: Vec<_> = self
            .counters
            .rejected()
            .map(|(why, n)| ([("reason", why.as_label())], n))
            .collect();
        rejected.push(([("reason", "undecodable")], undecodable));
        rejected.push(([("reason", "too-long")], too_long));
        let n_rejected: u64 = rejected.iter().map(|(_, n)| n).sum();
        let received = received.load(Relaxed) + undecodable + too_long;
        let out_of_scope = out_of_scope.load(Relaxed);
        let Totals { stored, merged, .. } = self.store.totals();
        let unselected = unselected.load(Relaxed);
        let done = stored + merged + n_rejected + out_of_scope + unselected;
        let in_flight = received.saturating_sub(done);

        to.counter(
            "portent_events_received",
            "Events that a LIST or a watch brought",
            one(received),
        )?;
        to.counter(
            "portent_events_stored",
            "Events that became a record",
            one(stored),
        )?;
        to.counter(
            "portent_events_merged",
            "Events that were a further sighting of a known one",
            one(merged),
        )?;
        to.counter(
            "portent_events_rejected",
            "Events that became no record, by why",
            rejected,
        )?;
        to.counter(
            "portent_events_out_of_scope",
            "Events whose object is not in the configured scope",
            one(out_of_scope),
        )?;
        to.counter(
            "portent_events_unselected",
            "Events that concern no selected pod, or one that is over",
            one(unselected),
        )?;
        to.gauge(
            "portent_events_in_flight",
            "Events received that are none of stored, merged, rejected, out of scope and unselected yet",
            one(in_flight),
        )?;
        to.gauge(
            "portent_events_waiting",
            "Events in flight that wait for their pod",
            one(waiting.load(Relaxed)),
        )?;
        to.counter(
            "portent_events_deletions",
            "Events that were said to be deleted",
            one(deletions.load(Relaxed)),
        )?;
        to.counter(
            "portent_events_malformed_fields",
            "Fields of Events that held something else than they may",
            one(malformed_fields.load(Relaxed)),
        )?;
        to.counter(
            "portent_events_clamped",
            "Events with a time that was yet to come",
            one(clamped.load(Relaxed)),
        )?;
        to.counter(
            "portent_subjects_unseen",
            "Subjects that lost a record before a plugin saw it, because too many did",
            one(unseen.load(Relaxed)),
        )
    }

    /// What of a resource was undecodable, and what too long.
    fn unread(&self, resource: &str) -> [u64; 2] {
        let watches = self.lock_watches();
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        let mut sums = ended.get(resource).copied().unwrap_or_default();
        let of_resource = watches.iter().map(Watch::status);
        for it in of_resource.filter(|it| it.watch().resource() == resource) {
            for (sum, n) in sums.iter_mut().zip([&it.undecodable, &it.too_long]) {
                *sum += n.load(Relaxed);
            }
        }
        sums
    }

    fn pods(&self, to: &mut Series<'_, '_>) -> fmt::Result {
        let Counters {
            pods,
            pods_over,
            pods_received,
            pods_rejected,
            ..
        } = &*self.counters;
        let [undecodable, too_long] = self.unread("pods");
        to.counter(
            "portent_pods_received",
            "Pods that a LIST or a watch brought",
            one(pods_received.load(Relaxed) + undecodable + too_long),
        )?;
        to.gauge(
            "portent_pods",
            "Pods that are known",
            one(pods.load(Relaxed)),
        )?;
        to.counter(
            "portent_pods_over",
            "Times that a pod could not become known, because too many are",
            one(pods_over.load(Relaxed)),
        )?;
        to.counter(
            "portent_pods_rejected",
            "Pods of which nothing is kept, by why",
            [
                ([("reason", "no-identity")], pods_rejected.load(Relaxed)),
                ([("reason", "undecodable")], undecodable),
                ([("reason", "too-long")], too_long),
            ],
        )
    }

    fn holdings(&self, to: &mut Series<'_, '_>) -> fmt::Result {
        let totals = self.store.totals();
        let Totals {
            deleted,
            replaced,
            evicted,
            swept,
            expired,
            over_count,
            object_gone,
            unwatched,
            ..
        } = totals;
        to.counter(
            "portent_records_removed",
            "Records that were removed, by why",
            [
                ([("reason", "deleted")], deleted),
                ([("reason", "replaced")], replaced),
                ([("reason", "over-bytes")], evicted),
                ([("reason", "swept")], swept),
                ([("reason", "expired")], expired),
                ([("reason", "over-count")], over_count),
                ([("reason", "object-gone")], object_gone),
                ([("reason", "unwatched")], unwatched),
            ],
        )?;
        to.gauge(
            "portent_records",
            "Records that are live",
            one(totals.live()),
        )?;
        to.gauge(
            "portent_buckets",
            "Objects with a live record",
            one(count(self.store.n_buckets())),
        )?;
        to.gauge(
            "portent_store_capacity_slots",
            "Slots of the table of buckets, used or not",
            one(count(self.store.capacity())),
        )?;
        to.gauge(
            "portent_store_bytes",
            "What the records cost in memory, about",
            one(count(self.store.n_bytes())),
        )?;
        to.gauge(
            "portent_outcomes",
            "Subjects that anything is held of",
            one(count(self.outcomes.n_subjects())),
        )?;
        to.gauge(
            "portent_outcomes_bytes",
            "What the outcomes cost in memory, about",
            one(count(self.outcomes.n_bytes())),
        )?;
        let dropped = self.outcomes.dropped();
        to.counter(
            "portent_outcomes_dropped",
            "Subjects of which nothing is held any more, because it was too much",
            [
                ([("held", "additional-reasons")], dropped.passing),
                ([("held", "findings")], dropped.lasting),
            ],
        )?;
        to.gauge(
            "portent_subjects_waiting",
            "Subjects that wait to be classified, counted once for each plugin",
            one(self.waiting.load(Relaxed)),
        )
    }

    fn watches(&self, to: &mut Series<'_, '_>) -> fmt::Result {
        fn name(it: &Arc<Status>) -> [(&'static str, &str); 3] {
            let watch = it.watch();
            let namespace = watch.namespace().map_or("", |it| it.as_str());
            [
                ("resource", watch.resource()),
                ("namespace", namespace),
                ("kind", watch.kind()),
            ]
        }
        let all = self.all_watches();
        let names: Vec<_> = all.iter().map(name).collect();
        let watches = || all.iter().zip(&names);
        let states = watches().flat_map(|(it, [resource, namespace, kind])| {
            let phase = it.phase().as_str();
            Phase::LABELS.map(|state| {
                let labels = [*resource, *namespace, *kind, ("state", state)];
                (labels, u64::from(state == phase))
            })
        });
        to.gauge(
            "portent_watch_state",
            "What a watch does: 1 for the state that it is in",
            states,
        )?;
        let each = |what: fn(&Status) -> &AtomicU64| {
            watches().map(move |(it, labels)| (*labels, what(it).load(Relaxed)))
        };
        to.counter(
            "portent_watch_lists",
            "LISTs that were begun",
            each(|it| &it.lists),
        )?;
        to.counter(
            "portent_watch_starts",
            "Watches that the server began",
            each(|it| &it.watches),
        )?;
        let failures = watches().flat_map(|(it, [resource, namespace, kind])| {
            it.failures().map(|(class, n)| {
                let labels = [*resource, *namespace, *kind, ("class", class.as_str())];
                (labels, n)
            })
        });
        to.counter(
            "portent_watch_failures",
            "How often a LIST or a watch failed, by how; gone is routine",
            failures,
        )
    }

    fn plugins(&self, to: &mut Series<'_, '_>) -> fmt::Result {
        let entries = self.board.entries();
        let serving: Vec<_> = entries
            .iter()
            .filter_map(|it| it.serving.as_ref())
            .collect();
        let newest = entries.iter().filter_map(|it| it.newest.as_ref());
        let n_failed = newest.filter(|(_, it)| matches!(it, State::Failed(_)));
        let is_active = |(_, it): &&&(_, Serving)| it.state == State::Active;
        let n_active = serving.iter().filter(is_active).count();
        to.gauge(
            "portent_plugins",
            "Plugins by whether they serve; one whose newest version failed may do both",
            [
                ([("state", "active")], count(n_active)),
                ([("state", "quarantined")], count(serving.len() - n_active)),
                ([("state", "failed")], count(n_failed.count())),
            ],
        )?;
        let infos = serving.iter().map(|(it, _)| {
            let labels = [
                ("classifier", it.name.as_deref().unwrap_or_default()),
                ("version", it.version.as_deref().unwrap_or_default()),
                ("digest", it.digest.as_deref().unwrap_or_default()),
                (
                    "settings_digest",
                    it.settings_digest.as_deref().unwrap_or_default(),
                ),
                ("wit", it.wit.as_deref().unwrap_or_default()),
            ];
            (labels, 1)
        });
        to.gauge("portent_plugin_info", "Which plugin serves, exactly", infos)?;
        to.counter(
            "portent_plugin_swaps",
            "Versions of plugins that came to serve, or went without another",
            one(self.board.n_swaps()),
        )?;
        let failures = self.board.n_failures();
        let failures = failures.iter();
        to.counter(
            "portent_plugin_load_failures",
            "Versions of plugins that did not come to serve, by why",
            failures.map(|(why, n)| ([("reason", why.as_str())], *n)),
        )?;
        to.counter(
            "portent_plugin_results_late",
            "Results that nobody took, since their plugin was removed meanwhile",
            one(self.late.load(Relaxed)),
        )?;
        let held = self.held_by_swaps();
        to.durations(
            "portent_plugin_swap_pause_seconds",
            "How long swaps kept everything else from going on: the last one, and the longest",
            [
                ([("which", "last")], held.last),
                ([("which", "longest")], held.longest),
            ],
        )?;
        to.counter(
            "portent_batches_held_by_swaps",
            "Batches that could have begun and waited for a swap, a millisecond or longer",
            one(held.n_batches),
        )?;
        to.gauge(
            "portent_subjects_backlog",
            "Subjects that wait only because a plugin is another, as far as they were looked up",
            one(self.backlog.load(Relaxed)),
        )?;
        self.calls_of_plugins(to)
    }

    fn calls_of_plugins(&self, to: &mut Series<'_, '_>) -> fmt::Result {
        let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let calls = calls.clone();
        let of_each = |what: fn(&Calls) -> u64| {
            calls
                .iter()
                .map(move |(name, it)| ([("classifier", &**name)], what(it)))
        };
        to.counter(
            "portent_plugin_calls",
            "Calls into a plugin",
            of_each(|it| it.n),
        )?;
        to.counter(
            "portent_plugin_fuel",
            "Units of fuel that a plugin used",
            of_each(|it| it.fuel),
        )?;
        to.counter(
            "portent_plugin_asked_again",
            "Batches that a plugin was asked about again, to see whether it says the same",
            of_each(|it| it.n_again),
        )?;
        to.counter(
            "portent_plugin_impure",
            "Those of them that it said otherwise of",
            of_each(|it| it.n_impure),
        )?;
        let failures = calls.iter().flat_map(|(name, it)| {
            it.failures.iter().map(|(reason, n)| {
                let labels = [("classifier", &**name), ("reason", reason.as_str())];
                (labels, *n)
            })
        });
        to.counter(
            "portent_plugin_failures",
            "Subjects that a plugin gave no outcome for, by why",
            failures,
        )
    }

    fn compilations(&self, to: &mut Series<'_, '_>) -> fmt::Result {
        let counts = &*self.compilations;
        let result = |word, count: &AtomicU64| ([("result", word)], count.load(Relaxed));
        to.counter(
            "portent_plugin_compilations",
            "Components that code was wanted of, by where it came from or why there is none",
            [
                result("compiled", &counts.compiled),
                result("cached", &counts.cached),
                result("shared", &counts.shared),
                result("over-limit", &counts.over_limit),
                result("failed", &counts.failed),
            ],
        )?;
        to.seconds(
            "portent_plugin_compile_seconds",
            "Time that compiling took, by the clock on the wall",
            counts.spent().as_secs_f64(),
        )?;
        let misses = counts.misses();
        to.counter(
            "portent_plugin_cache_misses",
            "Times that code was not taken from the cache, by why",
            misses.map(|(why, n)| ([("reason", Miss::as_str(why))], n)),
        )
    }

    fn findings(&self, to: &mut Series<'_, '_>) -> fmt::Result {
        let mut active = BTreeMap::<FindingLabels, u64>::new();
        self.outcomes.for_each(|_, all| {
            for held in all {
                let holds = held.outcome.findings.iter();
                // What rests on the events of a node alone is counted where the node is.
                let is_own = |it: &&Finding| it.evidence.iter().any(|it| it.is_own);
                for it in holds.filter(|it| it.status == Holds::Active).filter(is_own) {
                    *active
                        .entry(finding_labels(&held.classifier.name, it))
                        .or_default() += 1;
                }
            }
        });
        let raised = self.raised.lock().unwrap_or_else(PoisonError::into_inner);
        let raised = raised.clone();
        to.gauge(
            "portent_findings_active",
            "Findings that hold",
            labelled(&active),
        )?;
        to.counter(
            "portent_findings_raised",
            "Findings that came to hold",
            labelled(&raised),
        )
    }

    fn changes(&self, to: &mut Series<'_, '_>) -> fmt::Result {
        let Traffic {
            waiting,
            written,
            folded,
            dropped,
        } = self.outbox.traffic();
        to.counter(
            "portent_changes_written",
            "Changes that were written",
            one(written),
        )?;
        to.counter(
            "portent_changes_folded",
            "Entries of changes that a newer state took the place of before they were written",
            one(folded),
        )?;
        to.counter(
            "portent_changes_dropped",
            "Changes that could not be written, since the reader is gone",
            one(dropped),
        )?;
        to.gauge(
            "portent_changes_waiting",
            "Changes that wait to be written",
            one(count(waiting)),
        )?;
        to.gauge(
            "portent_config_restart_needed",
            "Whether the configuration file says what only a restart takes up",
            one(u64::from(self.needs_restart.load(Relaxed))),
        )
    }
}

/// What Prometheus' client libraries say of any process, where Linux tells it.
fn process(to: &mut Series<'_, '_>) -> fmt::Result {
    /// Of almost every Linux; it cannot be asked without an unsafe call.
    const TICKS_PER_SECOND: f64 = 100.0;

    let Ok(status) = fs::read_to_string("/proc/self/status") else {
        return Ok(());
    };
    let kib = |key: &str| {
        let line = status.lines().find_map(|it| it.strip_prefix(key))?;
        line.split_ascii_whitespace().next()?.parse::<u64>().ok()
    };
    if let Some(kib) = kib("VmRSS:") {
        to.gauge(
            "process_resident_memory_bytes",
            "Resident memory",
            one(kib * 1024),
        )?;
    }
    let ticks = fs::read_to_string("/proc/self/stat").ok().and_then(|it| {
        // The name of the program may hold anything but ends with the last bracket.
        let behind = it.rsplit_once(')')?.1.to_owned();
        let mut fields = behind.split_ascii_whitespace().skip(11);
        let user: u32 = fields.next()?.parse().ok()?;
        let system: u32 = fields.next()?.parse().ok()?;
        Some(f64::from(user) + f64::from(system))
    });
    if let Some(ticks) = ticks {
        to.seconds(
            "process_cpu_seconds",
            "User and system CPU time",
            ticks / TICKS_PER_SECOND,
        )?;
    }
    Ok(())
}
