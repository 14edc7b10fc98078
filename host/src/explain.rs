//! What happened to one object, whose fault it was, and what to do: asked once.
//!
//! What is known of it is gathered (from a cluster in `ask`, or from a recording), goes
//! the way of any recording, and comes out as an [`Explanation`]. Whatever could not be
//! looked at is said, and costs only what it hides.
//!
//! What bounds it are the Events of one object, its node and its owner: of each the newest
//! [`EVENTS_MAX`] at most.

use std::{num::NonZeroUsize, sync::Arc};

use crate::{
    outcome::{Change, Held},
    plugins::PluginSet,
    pods::{Failure, Pod},
    record::{ObjectKey, Record, Rejected, Uid, UidRef, UnixMs, decode::WireEvent},
    replay::{Bounds, Listener, Replay},
    sandbox::Limits,
    store::Bucket,
    subject::{AFTER_LAST_EVENT_MS, SubjectKey, assigned},
};

mod ask;
pub mod json;
pub mod print;

pub use ask::{NotAsked, ask};

/// How many Events of one object are looked at. The server keeps them for an hour; who has
/// more says the same over and over.
pub const EVENTS_MAX: usize = 256;

/// What is to be explained, and what is known of it so far.
#[derive(Debug)]
pub struct Case {
    object: ObjectKey,
    replay: Replay,
    failure_code: Option<Box<str>>,
    hidden: Vec<Hidden>,
    /// Events that were one too many of their object.
    n_older: usize,
    said: Said,
}

/// Something that could not be looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hidden {
    /// What, for example `the Events of Node/gke-a3-17`.
    pub what: String,
    /// Why, and what to do about it.
    pub why: String,
}

/// What is to be told.
#[derive(Debug)]
pub struct Explanation {
    /// Of whom.
    pub subject: SubjectKey,
    /// Its pod, if it is one that is known.
    pub pod: Option<Arc<Pod>>,
    /// How it failed, if it did.
    pub failure: Option<Failure>,
    /// What each classifier says, by its name.
    pub held: Vec<Held>,
    /// The Events that findings rest on, and what each regards, the latest first.
    pub evidence: Vec<(ObjectKey, Record)>,
    /// What could not be looked at.
    pub hidden: Vec<Hidden>,
    /// How many Events of it, its node and its owner there were.
    pub n_events: usize,
}

/// What came of the replay.
#[derive(Debug, Default)]
struct Said(Vec<(SubjectKey, Vec<Held>)>);

impl Listener for Said {
    fn change(&mut self, _: Change) {}

    fn element(&mut self, subject: &SubjectKey, held: &[Held]) {
        self.0.push((subject.clone(), held.to_vec()));
    }
}

impl Case {
    /// Nothing is known yet of this object but, perhaps, the code that it failed with.
    ///
    /// # Errors
    ///
    /// If a thread cannot be started.
    pub fn new(
        object: ObjectKey,
        failure_code: Option<&str>,
        plugins: PluginSet,
        limits: &Limits,
    ) -> std::io::Result<Self> {
        let bounds = Bounds {
            // One more is there until it is known which of them is the oldest.
            records_per_object: EVENTS_MAX + 1,
            ..Bounds::default()
        };
        let mut replay = Replay::new(Arc::new(plugins), limits, bounds, NonZeroUsize::MIN)?;
        if let Some(code) = failure_code {
            replay.assume_failure(code);
        }
        Ok(Self {
            object,
            replay,
            failure_code: failure_code.map(Into::into),
            hidden: Vec::new(),
            n_older: 0,
            said: Said::default(),
        })
    }

    /// The object that is asked about.
    #[must_use]
    pub fn object(&self) -> &ObjectKey {
        &self.object
    }

    /// A pod. It is of use if it is the one that is asked about.
    pub fn put_pod(&mut self, object: &ObjectKey, pod: Pod) {
        if *object == self.object {
            self.replay.put_pod(object, pod);
        }
    }

    /// The pod that is asked about, if it is known.
    #[must_use]
    pub fn pod(&self) -> Option<&Arc<Pod>> {
        let (pod, _) = self.replay.pods().newest(&self.object)?;
        Some(pod)
    }

    /// Its node and its owner, as far as they are known.
    #[must_use]
    pub fn around(&self) -> Vec<ObjectKey> {
        let Some(pod) = self.pod() else {
            return Vec::new();
        };
        let node = pod.node_ref().into_iter();
        let mut around: Vec<_> = node.chain(pod.owner.clone()).map(|it| it.object).collect();
        // A static pod is owned by its node.
        around.dedup();
        around
    }

    /// An Event. It is of use if it regards what is asked about, or what is around it.
    ///
    /// # Errors
    ///
    /// If it was refused.
    pub fn put(&mut self, event: &WireEvent<'_>) -> Result<(), Rejected> {
        let regards = |it: &ObjectKey| {
            let regarding = &event.regarding;
            it.kind() == &*regarding.kind
                && it.name() == &*regarding.name
                && (it.namespace() == &*regarding.namespace || it.kind() == "Node")
        };
        let around = self.around();
        let mut all = std::iter::once(&self.object).chain(&around);
        let Some(object) = all.find(|it| regards(it)) else {
            return Ok(());
        };
        self.replay.put(event, &mut self.said)?;
        self.n_older += usize::from(self.forget_oldest(object));
        Ok(())
    }

    /// Forgets the oldest Event of an object that has more than [`EVENTS_MAX`].
    fn forget_oldest(&self, object: &ObjectKey) -> bool {
        let store = self.replay.store();
        let oldest = store.view(object, |bucket| {
            let records = bucket.records().iter();
            let oldest = records.min_by_key(|it| (it.record.last_seen(), it.sequence))?;
            (EVENTS_MAX < bucket.records().len()).then(|| oldest.record.clone())
        });
        let oldest = oldest.flatten();
        oldest.is_some_and(|it| store.remove(object, &it).is_some())
    }

    /// Something could not be looked at.
    pub fn hide(&mut self, what: String, why: String) {
        self.hidden.push(Hidden { what, why });
    }

    /// Classifies what is known.
    #[must_use]
    pub fn explain(mut self) -> Explanation {
        let pod = self.pod().cloned();
        let uid = match &pod {
            Some(pod) => pod.uid.clone(),
            None => self.newest_uid(),
        };
        let subject = SubjectKey {
            object: self.object.clone(),
            uid,
        };
        self.replay.finish(&mut self.said);
        let mut held = self.held(&subject);
        held.sort_by(|a, b| a.classifier.name.cmp(&b.classifier.name));

        let of_pod = pod.as_ref().and_then(|it| it.failure.as_deref().cloned());
        let verdict = held.iter().find_map(|it| it.outcome.verdict.as_deref());
        let failure = match self.failure_code.clone() {
            None => of_pod,
            Some(code) => Some(Failure {
                code,
                ..of_pod.unwrap_or_else(|| Failure {
                    at: verdict.map_or_else(|| self.assumed_failure(), |it| it.failure_at),
                    ..Failure::default()
                })
            }),
        };
        let (evidence, n_events) = self.evidence(&subject, &held);
        if 0 < self.n_older {
            let (n, max) = (self.n_older, EVENTS_MAX);
            let why = format!("of one object the newest {max} are looked at");
            self.hide(format!("{n} older Events"), why);
        }
        Explanation {
            subject,
            pod,
            failure,
            held,
            evidence,
            hidden: self.hidden,
            n_events,
        }
    }

    /// What is held of it. Its Events are held under no uid if none of them names one.
    fn held(&mut self, subject: &SubjectKey) -> Vec<Held> {
        let (mut own, mut unnamed) = (Vec::new(), Vec::new());
        for (of, held) in std::mem::take(&mut self.said.0) {
            if of == *subject {
                own.extend(held);
            } else if of.object == subject.object && of.uid.is_empty() {
                unnamed.extend(held);
            }
        }
        own.extend(unnamed);
        own
    }

    /// When it failed, if only the code is known.
    fn assumed_failure(&self) -> UnixMs {
        let newest = self.replay.store().view(&self.object, |bucket| {
            let records = bucket.records().iter();
            records.map(|it| it.record.last_seen()).max()
        });
        let newest = newest.flatten();
        newest.map_or(0, |it| it + AFTER_LAST_EVENT_MS)
    }

    /// Of a pod that is not known, the uid that was spoken of last.
    fn newest_uid(&self) -> Uid {
        let newest = self.replay.store().view(&self.object, |bucket| {
            let of_each = assigned(bucket).into_iter().zip(bucket.records());
            let newest = of_each.max_by_key(|(_, it)| (it.record.last_seen(), it.sequence));
            newest.map(|(uid, _)| Uid::from(uid))
        });
        newest.flatten().unwrap_or_default()
    }

    /// The Events that findings rest on, and how many there are in all.
    fn evidence(&self, subject: &SubjectKey, held: &[Held]) -> (Vec<(ObjectKey, Record)>, usize) {
        let findings = held.iter().flat_map(|it| &it.outcome.findings);
        let named: Vec<_> = findings
            .flat_map(|it| &it.evidence)
            .map(|it| &it.event)
            .collect();
        let (mut evidence, mut n_events) = (Vec::new(), 0);
        let objects = std::iter::once(self.object.clone()).chain(self.around());
        for object in objects {
            self.replay.store().view(&object, |bucket| {
                n_events += n_said_of(subject, bucket);
                let records = bucket.records().iter().map(|it| &it.record);
                let named = records.filter(|it| named.contains(&&it.event_ref()));
                evidence.extend(named.map(|it| (object.clone(), it.clone())));
            });
        }
        evidence.sort_by_key(|(_, it)| std::cmp::Reverse(it.last_seen()));
        (evidence, n_events)
    }
}

/// How many of the Events of an object are of a subject, or of what is around it: not those
/// of others of its name.
fn n_said_of(subject: &SubjectKey, bucket: &Bucket) -> usize {
    let is_around = *bucket.key() != subject.object;
    let uid = subject.uid.as_ref();
    let is_own = |it: &UidRef<'_>| is_around || it.is_empty() || *it == uid;
    assigned(bucket).into_iter().filter(is_own).count()
}

impl Explanation {
    /// Whose uid that is, as text; empty if unknown.
    #[must_use]
    pub fn uid(&self) -> UidRef<'_> {
        self.subject.uid.as_ref()
    }
}
