//! Takes what is read to the replay, and keeps count of what cannot be used.

use std::{
    collections::BTreeSet,
    fmt,
    io::Write,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
};

use anyhow::Context as _;

use super::{ahead::Ahead, progress::Progress, sink::Filtered};
use crate::{
    cli::{eprintln_lossy, interrupt},
    pods::{
        self, PODS_MAX, Pod, PodPut,
        decode::{CODE_MAX_BYTES, WirePod},
    },
    record::{ObjectKey, Rejected, decode::WireEvent},
    replay::{
        Replay, Tally,
        input::{self, Item, Problem},
    },
    store::Totals,
};

/// Which Events are considered.
#[derive(Debug)]
pub(super) struct Scope {
    /// Namespace and name; all when empty.
    objects: Vec<(String, String)>,
    /// All when empty.
    namespaces: Vec<String>,
}

impl Scope {
    pub(super) fn new(objects: Vec<String>, namespaces: Vec<String>) -> anyhow::Result<Self> {
        let objects = objects.into_iter().map(|it| {
            let (namespace, name) = it.split_once('/').with_context(|| {
                format!("--object {it}: write NAMESPACE/NAME, and /NAME for a Node")
            })?;
            Ok((namespace.to_owned(), name.to_owned()))
        });
        Ok(Self {
            objects: objects.collect::<anyhow::Result<_>>()?,
            namespaces,
        })
    }

    fn holds(&self, event: &WireEvent<'_>) -> bool {
        let (namespace, object) = (&*event.metadata.namespace, &event.regarding);
        (self.namespaces.is_empty() || self.namespaces.iter().any(|it| it == namespace))
            && (self.objects.is_empty()
                || self.objects.iter().any(|(namespace, name)| {
                    *name == *object.name && *namespace == *object.namespace
                }))
    }
}

/// Problems that are named one by one; the rest is counted.
const PROBLEMS_NAMED: u64 = 20;

/// Takes what is read.
pub(super) struct Intake<W: Write> {
    replay: Replay,
    sink: Filtered<W>,
    scope: Scope,
    interrupted: interrupt::Interrupted,
    /// Whether an interrupt ended what is being read.
    ended_early: Arc<AtomicBool>,
    progress: Option<Progress>,
    /// What is being read.
    name: String,
    /// Bytes read so far, of how many if that is known.
    n_read: Arc<AtomicU64>,
    n_bytes: Option<u64>,
    n_items: u64,
    n_out_of_scope: u64,
    n_problems: u64,
    n_named: u64,
    n_foreign: u64,
    /// Labels of pods that are kept.
    labels: Vec<String>,
    n_pods: u64,
    n_pods_over: u64,
    n_pods_refused: u64,
    /// Fields of pods that held something else than they may.
    n_malformed: u64,
    /// Those of the problems that are of pods.
    n_problems_of_pods: u64,
}

/// What was read, and what became of it.
pub(super) struct Read {
    pub(super) n_items: u64,
    n_problems: u64,
    /// Those of them that are of Events.
    pub(super) n_problems_of_events: u64,
    n_out_of_scope: u64,
    n_pods_over: u64,
    n_pods_refused: u64,
    n_malformed: u64,
    n_foreign: u64,
    n_failed_calls: u64,
    n_dropped: u64,
    n_records: usize,
    n_objects: usize,
    tally: Tally,
    totals: Totals,
}

impl<W: Write> Intake<W> {
    pub(super) fn new(
        replay: Replay,
        sink: Filtered<W>,
        scope: Scope,
        interrupted: interrupt::Interrupted,
    ) -> Self {
        Self {
            replay,
            sink,
            scope,
            interrupted,
            ended_early: Arc::default(),
            progress: None,
            name: String::new(),
            n_read: Arc::default(),
            n_bytes: None,
            n_items: 0,
            n_out_of_scope: 0,
            n_problems: 0,
            n_named: 0,
            n_foreign: 0,
            labels: Vec::new(),
            n_pods: 0,
            n_pods_over: 0,
            n_pods_refused: 0,
            n_malformed: 0,
            n_problems_of_pods: 0,
        }
    }

    /// Takes every object as failed with this code.
    ///
    /// # Errors
    ///
    /// If it is none.
    pub(super) fn assume_failure(&mut self, code: &str) -> anyhow::Result<()> {
        anyhow::ensure!(
            (1..=CODE_MAX_BYTES).contains(&code.len()),
            "--failure: a code has between 1 and {CODE_MAX_BYTES} bytes, for example OOMKilled or 137"
        );
        self.replay.assume_failure(code);
        Ok(())
    }

    /// Reads Pods, and keeps these labels of theirs. They are read first: what is said of
    /// a pod is classified by what is known of it then.
    ///
    /// # Errors
    ///
    /// If one of the paths does not exist, cannot be read, or holds something and no Pod.
    pub(super) fn read_pods(
        &mut self,
        paths: &[PathBuf],
        labels: Vec<String>,
    ) -> anyhow::Result<()> {
        self.labels = labels;
        for path in paths {
            let (n_pods, n_wrong) = (self.n_pods, self.n_wrong_with_pods());
            let sources = input::sources(std::slice::from_ref(path)).context("--pods")?;
            for source in &sources {
                source.name().clone_into(&mut self.name);
                let (opened, origin) = (source.open(), source.origin().of_pods());
                let read = opened.and_then(|it| input::read(it, self, origin));
                read.with_context(|| format!("--pods: cannot read {}", self.name))?;
            }
            anyhow::ensure!(
                n_pods < self.n_pods || n_wrong == self.n_wrong_with_pods(),
                "--pods {}: it holds no Pod that can be read; what is wanted is what `kubectl get pods -A` \
                 prints with -o json or -o yaml",
                self.name
            );
        }
        self.n_problems_of_pods = self.n_problems;
        Ok(())
    }

    fn n_wrong_with_pods(&self) -> u64 {
        self.n_problems + self.n_pods_refused
    }

    /// Prints only what is said of this object, and of the pods that it owns.
    ///
    /// # Errors
    ///
    /// If it owns none of the pods that were read.
    pub(super) fn only_owned_by(&mut self, owner: &str) -> anyhow::Result<()> {
        let key = match *owner.split('/').collect::<Vec<_>>() {
            [namespace, kind, name] => ObjectKey::new(namespace, kind, name),
            _ => None,
        };
        let key = key.with_context(|| {
            format!(
                "--owner {owner}: write NAMESPACE/KIND/NAME, for example ml-team/RayCluster/train"
            )
        })?;
        let its_pods = self.replay.pods().around(&key);
        let mut objects: BTreeSet<_> = its_pods.map(|(pod, _)| pod.clone()).collect();
        anyhow::ensure!(
            !objects.is_empty(),
            "--owner {owner}: none of the pods that --pods has is owned by it; what is wanted is who \
             controls the pods themselves, as a RayCluster and not its RayJob does"
        );
        objects.insert(key);
        self.sink.only_about(objects);
        Ok(())
    }

    /// Reads all of these, one after the other. One that cannot be read costs only
    /// itself.
    ///
    /// # Errors
    ///
    /// If one of the paths does not exist: nothing is read then.
    pub(super) fn read_all(&mut self, paths: &[PathBuf], progress: Progress) -> anyhow::Result<()> {
        let sources = input::sources(paths)?;
        self.progress = Some(progress);
        self.n_read = sources.n_read();
        self.n_bytes = sources.n_bytes();
        for source in &sources {
            if interrupt::is_set(self.interrupted) {
                break;
            }
            source.name().clone_into(&mut self.name);
            let read = source
                .open()
                .and_then(|it| Ahead::of(it, self.interrupted, Arc::clone(&self.ended_early)))
                .and_then(|it| input::read(it, self, source.origin()));
            if let Err(err) = read {
                self.n_problems += 1;
                self.say(&format_args!("cannot be read: {err}"));
            }
        }
        Ok(())
    }

    /// Classifies what is left, and prints what waits for the end.
    pub(super) fn finish(mut self) -> anyhow::Result<Read> {
        // While the store still holds it.
        let (n_records, n_objects) = (
            self.replay.store().n_records(),
            self.replay.store().n_buckets(),
        );
        self.replay.finish(&mut self.sink);
        if let Some(progress) = &self.progress {
            progress.finish();
        }
        if PROBLEMS_NAMED < self.n_named {
            let more = self.n_named - PROBLEMS_NAMED;
            eprintln_lossy(format_args!(
                "{more} more lines or items could not be read or were refused"
            ));
        }
        let n_failed_calls = self.sink.n_failed_calls();
        let n_dropped = self.sink.finish(0 < self.n_items)?;
        Ok(Read {
            n_items: self.n_items,
            n_problems: self.n_problems,
            n_problems_of_events: self.n_problems - self.n_problems_of_pods,
            n_out_of_scope: self.n_out_of_scope,
            n_pods_over: self.n_pods_over,
            n_pods_refused: self.n_pods_refused,
            n_malformed: self.n_malformed,
            n_foreign: self.n_foreign,
            n_failed_calls,
            n_dropped,
            n_records,
            n_objects,
            tally: self.replay.tally().clone(),
            totals: self.replay.store().totals(),
        })
    }

    /// Says what is wrong with what is being read, the first times.
    fn say(&mut self, what: &dyn fmt::Display) {
        self.n_named += 1;
        if PROBLEMS_NAMED < self.n_named {
            return;
        }
        let say = || eprintln_lossy(format_args!("{}: {what}", self.name));
        match &self.progress {
            Some(progress) => progress.above(say),
            None => say(),
        }
    }

    /// How much of the input is read, where its size is known.
    fn share(&self) -> Option<f64> {
        #[expect(clippy::cast_precision_loss, reason = "it is shown as a percentage")]
        let share = |n_bytes: u64| self.n_read.load(Relaxed) as f64 / n_bytes.max(1) as f64;
        self.n_bytes.map(share)
    }
}

impl<W: Write> input::Reader for Intake<W> {
    fn item(&mut self, item: Item<'_>) -> Result<(), Rejected> {
        self.n_items += 1;
        let share = self.share();
        if let Some(progress) = &mut self.progress {
            let store = self.replay.store();
            progress.tell(self.n_items, || store.n_buckets(), share);
        }
        let (Item::Put(event) | Item::Deleted(event)) = &item;
        if !self.scope.holds(event) {
            self.n_out_of_scope += 1;
            return Ok(());
        }
        match item {
            Item::Put(event) => self.replay.put(&event, &mut self.sink),
            Item::Deleted(event) => {
                self.replay.delete(&event, &mut self.sink);
                Ok(())
            }
        }
    }

    fn pod(&mut self, pod: WirePod<'_>) -> Result<(), pods::decode::Rejected> {
        self.n_malformed += u64::from(pod.n_malformed());
        let (object, pod) =
            Pod::pare_down(&pod, &self.labels).inspect_err(|_| self.n_pods_refused += 1)?;
        self.n_pods += 1;
        if self.replay.put_pod(&object, pod) == PodPut::Full {
            self.n_pods_over += 1;
        }
        Ok(())
    }

    fn problem(&mut self, problem: Problem) {
        self.n_problems += 1;
        self.say(&problem);
    }

    fn refused(&mut self, problem: Problem) {
        self.say(&problem);
    }

    fn foreign(&mut self) {
        self.n_foreign += 1;
    }

    fn is_stopped(&self) -> bool {
        self.ended_early.load(Relaxed)
    }
}

impl Read {
    /// Whether all of it could be read and classified.
    pub(super) fn is_complete(&self) -> bool {
        self.n_problems == 0
            && self.n_failed_calls == 0
            && self.n_dropped == 0
            && self.n_pods_over == 0
            && self.n_pods_refused == 0
            && self.tally.n_rejected() == 0
    }

    /// Says on stderr what was read and what became of it.
    pub(super) fn summarise(&self) {
        let Self { tally, totals, .. } = self;
        let mut line = format!(
            "{}: {} stored, {} seen again",
            counted(tally.received + self.n_out_of_scope, "Event"),
            totals.stored,
            totals.merged
        );
        let refused: Vec<_> = tally
            .rejected
            .iter()
            .map(|(why, n)| format!("{n} {}", why.as_label()))
            .collect();
        if !refused.is_empty() {
            let n = tally.n_rejected().to_string();
            line.extend([", ", &n, " refused (", &refused.join(", "), ")"]);
        }
        let also = [
            (self.n_out_of_scope, "not asked for"),
            (totals.deleted, "deleted"),
            (totals.replaced, "replaced by another of the same name"),
            (tally.unknown_deletions, "deletions of unknown Events"),
            (self.n_problems, "lines or items not readable"),
            (self.n_foreign, "objects of other kinds"),
            (self.n_pods_refused, "pods refused"),
            (
                tally.malformed_fields + self.n_malformed,
                "malformed fields taken as absent",
            ),
            (self.n_failed_calls, "subjects not classified"),
        ];
        for (n, what) in also.into_iter().filter(|(n, _)| 0 < *n) {
            line.extend(["; ", what, ": ", &n.to_string()]);
        }
        eprintln_lossy(format_args!(
            "{line}. Live at the end: {} about {}.",
            self.n_records,
            counted(self.n_objects as u64, "object")
        ));
    }

    /// Says on stderr what left early, and what is lost, and which bound did it.
    pub(super) fn say_what_was_dropped(&self) {
        let Tally {
            left_early,
            left_full,
            ..
        } = self.tally;
        if 0 < left_early {
            eprintln_lossy(format_args!(
                "{left_early} objects were classified before the end, to stay within --store-bytes; what \
                 was said of them later is in further parts"
            ));
        }
        if 0 < left_full {
            eprintln_lossy(format_args!(
                "{left_full} times an object had more Events than are held of one; the rest is in further parts"
            ));
        }
        if 0 < self.n_pods_over {
            eprintln_lossy(format_args!(
                "{} pods are not known, since more than {PODS_MAX} were read",
                self.n_pods_over
            ));
        }
        if 0 < self.n_dropped {
            eprintln_lossy(format_args!(
                "{} elements were dropped, since --tmp-bytes was used up",
                self.n_dropped
            ));
        }
    }
}

/// A number of things, in words.
fn counted(n: u64, what: &str) -> String {
    let plural = if n == 1 { "" } else { "s" };
    format!("{n} {what}{plural}")
}
