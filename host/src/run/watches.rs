//! Which watches there are: those that any plugin that serves is interested in.
//!
//! When a plugin comes that is interested in more, more is watched, and what nobody is interested
//! in any more is watched no more: its records leave, and no request is made for it. Wanted again
//! it is listed anew. What the first LIST of a later watch brings is news, other than what the
//! first ones bring: no process has told of it before.
//!
//! What bounds it is the scope.

use std::{
    cell::RefCell,
    convert::Infallible,
    rc::Rc,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use kube::Client;
use tokio::{
    sync::OnceCell,
    task::{AbortHandle, JoinSet},
    time::{MissedTickBehavior, interval, timeout},
};

use super::Pipeline;
use crate::{
    config::Config,
    live::Counters,
    plugins::PluginSet,
    scope::{self, PodWatch, Scope},
    watch::{self, Informer, Observed, Resource, Settings, Shared, answered_within, self_check},
};

/// How long Events wait at most for the Pods that they are about to be listed.
const PODS_FIRST: Duration = Duration::from_secs(20);

/// How long the self-check of a selector may take, and how often it is tried where
/// there was nothing to see it on.
const SELF_CHECK: Duration = Duration::from_secs(20);

/// Whom to ask, and how.
pub(super) struct To {
    pub(super) client: Client,
    pub(super) settings: Settings,
    pub(super) shared: Shared,
}

impl To {
    fn watching<R: Resource + Clone>(&self, watches: Vec<R>) -> Vec<Informer<R>> {
        let Self {
            client,
            settings,
            shared,
        } = self;
        let of = |it| Informer::new(client.clone(), it, settings.clone(), shared.clone());
        watches.into_iter().map(of).collect()
    }
}

/// Watches that are to begin.
pub(super) struct Informers {
    of_pods: Vec<Informer<PodWatch>>,
    of_events: Vec<Informer>,
    events: Vec<scope::Watch>,
}

impl Informers {
    /// What a set of plugins is interested in, beyond what is watched. Pods are watched as long as
    /// any Events are.
    pub(super) fn wanted(
        config: &Config,
        plugins: &PluginSet,
        watched: &[scope::Watch],
        to: &To,
    ) -> Self {
        let mut events = wanted(&config.scope, plugins);
        events.retain(|it| !watched.contains(it));
        let pods = match &config.pods.selector {
            Some(selector) if watched.is_empty() && !events.is_empty() => {
                config.scope.pod_watches(selector)
            }
            _ => Vec::new(),
        };
        Self {
            of_pods: to.watching(pods),
            of_events: to.watching(events.clone()),
            events,
        }
    }

    /// How they are doing, those of Pods first.
    pub(super) fn statuses(&self) -> Vec<Arc<watch::Status>> {
        let of_pods = self.of_pods.iter().map(Informer::status);
        let of_events = self.of_events.iter().map(Informer::status);
        of_pods.chain(of_events).collect()
    }
}

/// A watch that goes on.
struct Running {
    id: u16,
    task: AbortHandle,
    status: Arc<watch::Status>,
}

/// All watches that go on.
pub(super) struct Watches {
    config: Config,
    to: To,
    pipeline: Pipeline,
    /// Shared with whoever checks their selectors.
    events: Rc<RefCell<Vec<scope::Watch>>>,
    /// In the order of the former.
    of_events: Vec<Running>,
    of_pods: Vec<Running>,
    next_id: u16,
    tasks: JoinSet<()>,
}

impl Watches {
    pub(super) fn new(config: Config, to: To, pipeline: Pipeline) -> Self {
        Self {
            config,
            to,
            pipeline,
            events: Rc::default(),
            of_events: Vec::new(),
            of_pods: Vec::new(),
            next_id: 0,
            tasks: JoinSet::new(),
        }
    }

    /// Begins with these, and follows the sets that serve.
    pub(super) async fn run(mut self, first: Informers) -> Infallible {
        // Before anything else: a set may come while the first watches begin.
        let mut served = self.pipeline.served.subscribe();
        self.begin(first);
        loop {
            if served.changed().await.is_err() {
                return std::future::pending().await;
            }
            let set = Arc::clone(&served.borrow_and_update());
            self.end(&wanted(&self.config.scope, &set));
            self.grow(&set);
            // What has ended is joined, so that nothing of it is held.
            while self.tasks.try_join_next().is_some() {}
        }
    }

    fn grow(&mut self, plugins: &PluginSet) {
        let watched = self.events.borrow().clone();
        let more = Informers::wanted(&self.config, plugins, &watched, &self.to);
        for it in more.statuses() {
            self.pipeline.sources.watch_begins(it);
        }
        for it in &more.events {
            tracing::info!(watch = %it, "a plugin is interested: watched from now on");
        }
        if !more.events.is_empty() {
            self.begin(more);
        }
    }

    /// Ends those that are not among these, and those of Pods with the last of Events.
    fn end(&mut self, wanted: &[scope::Watch]) {
        let at = self.pipeline.clock.seconds();
        let mut events = self.events.borrow_mut();
        for idx in (0..events.len()).rev() {
            if wanted.contains(&events[idx]) {
                continue;
            }
            let watch = events.remove(idx);
            let it = self.of_events.remove(idx);
            it.task.abort();
            tracing::info!(%watch, "no plugin is interested any more: not watched from now on");
            self.pipeline.sources.watch_ends(&it.status);
            self.pipeline.live.borrow_mut().unwatch(it.id, at);
            self.pipeline.wake.notify_one();
        }
        if events.is_empty() && !self.of_pods.is_empty() {
            for it in self.of_pods.drain(..) {
                it.task.abort();
                self.pipeline.sources.watch_ends(&it.status);
            }
            self.pipeline.live.borrow_mut().unwatch_pods();
        }
    }

    fn begin(&mut self, informers: Informers) {
        let Informers {
            of_pods,
            of_events,
            events,
        } = informers;
        let statuses: Vec<_> = of_pods.iter().map(Informer::status).collect();
        for informer in of_pods {
            let (pipeline, id, status) = (self.pipeline.clone(), self.id(), informer.status());
            let task = self.tasks.spawn_local(async move {
                let seen = |listing, seen: Observed<'_, _>| pipeline.observe_pod(id, listing, seen);
                match informer.run(seen).await {}
            });
            self.of_pods.push(Running { id, task, status });
        }
        let (of_pods, known) = (Rc::new(statuses), Rc::new(OnceCell::new()));
        let pods_first = async move || {
            known.get_or_init(|| pods_known(&of_pods)).await;
        };
        for informer in of_events {
            let (pipeline, id, status) = (self.pipeline.clone(), self.id(), informer.status());
            let pods_first = pods_first.clone();
            let task = self.tasks.spawn_local(async move {
                pods_first().await;
                let seen = |listing, seen: Observed<'_, _>| pipeline.observe(id, listing, seen);
                match informer.run(seen).await {}
            });
            self.of_events.push(Running { id, task, status });
        }
        self.events.borrow_mut().extend(events.iter().cloned());
        let counters = Arc::clone(self.pipeline.live.borrow().counters());
        let (client, watched) = (self.to.client.clone(), Rc::clone(&self.events));
        self.tasks.spawn_local(async move {
            pods_first().await;
            self_checked(client, events, watched, counters).await;
        });
    }

    /// One that no watch has, and none had lately: records may be there yet that it confirmed.
    fn id(&mut self) -> u16 {
        let is_taken = |id: u16| {
            let mut running = self.of_events.iter().chain(&self.of_pods);
            running.any(|it| it.id == id)
        };
        while is_taken(self.next_id) {
            self.next_id = self.next_id.wrapping_add(1);
        }
        let id = self.next_id;
        self.next_id = self.next_id.wrapping_add(1);
        id
    }
}

/// What of a scope any classifier is interested in: nobody else reads it, so the
/// rest is not even asked for.
fn wanted(scope: &Scope, plugins: &PluginSet) -> Vec<scope::Watch> {
    let wants_kind = |kind: &scope::Kind| {
        let mut interests = plugins
            .plugins
            .iter()
            .flat_map(|it| &it.description().interests);
        interests.any(|it| it.kinds.is_empty() || it.kinds.iter().any(|it| it == kind.as_str()))
    };
    let mut watches = scope.watches();
    watches.retain(|it| wants_kind(&it.kind));
    watches
}

/// Waits until it is known which Pods there are, or that this will not be known soon.
async fn pods_known(watches: &[Arc<watch::Status>]) {
    answered_within(watches, PODS_FIRST).await;
    for it in watches.iter().filter(|it| !it.has_listed()) {
        let (watch, state) = (it.watch(), it.tell());
        tracing::warn!(%watch, state, "Events are watched though it is not known which Pods there are");
    }
}

/// Looks whether the selectors select what they should, and says so. Where there is
/// no Event yet to see it on, it looks again once there are some.
async fn self_checked(
    client: Client,
    mut watches: Vec<scope::Watch>,
    wanted: Rc<RefCell<Vec<scope::Watch>>>,
    counters: Arc<Counters>,
) {
    let mut every = interval(SELF_CHECK);
    every.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut looked_at = None;
    while !watches.is_empty() {
        every.tick().await;
        watches.retain(|it| wanted.borrow().contains(it));
        let received = counters.received.load(Relaxed);
        if looked_at == Some(received) {
            continue;
        }
        looked_at = Some(received);
        let mut unproven = Vec::new();
        for it in watches {
            if wanted.borrow().contains(&it) && !is_settled(&client, &it).await {
                unproven.push(it);
            }
        }
        watches = unproven;
    }
}

/// Whether there is no more to find out about a selector.
async fn is_settled(client: &Client, watch: &scope::Watch) -> bool {
    match timeout(SELF_CHECK, self_check(client, watch)).await {
        Ok(Ok(watch::Selection::Proven)) => {
            tracing::debug!(%watch, "the field selector selects what it should");
            true
        }
        Ok(Ok(watch::Selection::Unproven)) => {
            tracing::debug!(%watch, "there is no Event yet to prove the field selector on");
            false
        }
        Ok(Ok(watch::Selection::Broken(what))) => {
            tracing::error!(%watch, "the field selector does not select what it should: {what}");
            true
        }
        Ok(Err(failure)) => {
            tracing::debug!(%watch, "the field selector cannot be checked: {failure}");
            false
        }
        Err(_) => {
            tracing::debug!(%watch, "the field selector was not checked in time");
            false
        }
    }
}
