//! `portent run`: everything that lives for as long as the process.
//!
//! One thread does all that waits (watches, the admin port, signals) and all that
//! is quick (decoding, the store, merging): nothing there is contended, and a
//! frame makes no other thread wake up. Guests are called on threads of their own,
//! and changes are written on one of theirs, since those may take long.
//!
//! What is told to others is in [`metrics`](self) and on the admin port; what is
//! held is in [`Live`].

use std::{
    cell::{Cell, RefCell},
    convert::Infallible,
    io,
    net::SocketAddr,
    num::NonZeroUsize,
    path::PathBuf,
    rc::Rc,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
    sync::{Notify, watch as watch_sets},
    task::{JoinHandle, LocalSet, spawn_local, yield_now},
    time::{MissedTickBehavior, interval, sleep_until, timeout},
};

use crate::{
    config::{Config, Period, PodsConfig},
    dispatch::{Pauses, Swapped},
    live::{Bounds, Live, PodBounds},
    plugins::{Loader, Looking, PluginSet},
    record::{Caps, UnixMs},
    scope::PodWatch,
    sink::{Closer, Outbox},
    store::{Confirmation, Seconds},
    watch::{self, Budget, Observed, Settings, Shared, is_ready},
};

mod admin;
mod metrics;
mod reload;
mod watches;

use admin::Admin;
use metrics::Sources;
use reload::Reload;
use watches::{Informers, To, Watches};

/// What a pod is given to end in is 30 s by default; we take this, so that
/// whoever stops us never has to kill us.
const DRAIN: Duration = Duration::from_secs(4);

/// How long dirty subjects gather while Events come one upon the other. A call
/// costs the same for one Event as for twenty, and so does waking who makes it.
/// What comes after a quiet moment is taken at once, and so is a full batch.
const PACE: Duration = Duration::from_millis(4);

/// How often it is looked at what expires. A record is late by this at most.
const TICK: Duration = Duration::from_secs(1);

/// Why it did not run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The admin port cannot be opened.
    #[error("cannot listen on {address} (admin.listen)")]
    Listen {
        /// What was configured.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The cluster cannot be reached in principle.
    #[error(transparent)]
    Unreachable(#[from] watch::Unreachable),
    /// The operating system refuses something.
    #[error("{0}")]
    System(&'static str, #[source] io::Error),
}

/// What to run, where.
pub struct Run {
    /// What the operator decided.
    pub config: Config,
    /// Where it is written.
    pub path: PathBuf,
    /// What loads plugins from now on.
    pub loader: Loader,
    /// The plugins that it loaded first.
    pub plugins: Arc<PluginSet>,
    /// Which cluster.
    pub address: watch::Address,
    /// Where changes go, a line of JSON each, if anywhere.
    pub changes: Option<Box<dyn io::Write + Send>>,
    /// Takes up another level of logging.
    pub set_log_level: Box<dyn Fn(&str)>,
}

impl Run {
    /// Runs until the process is asked to end.
    ///
    /// # Errors
    ///
    /// If it cannot begin.
    pub fn run(self) -> Result<(), RunError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|err| RunError::System("cannot start", err))?;
        LocalSet::new().block_on(&runtime, self.serve())
    }

    async fn serve(self) -> Result<(), RunError> {
        let Self {
            config,
            path,
            loader,
            plugins,
            address,
            changes,
            set_log_level,
        } = self;
        let (clock, wake) = (Clock::start(), Arc::new(Notify::new()));
        let live = live(clock.epoch, &config, &plugins, &wake)
            .map_err(|err| RunError::System("cannot start the worker threads", err))?;
        let outbox = Outbox::default();
        let closer = changes
            .map(|to| outbox.start(clock.epoch, to))
            .transpose()
            .map_err(|err| RunError::System("cannot start the writer of changes", err))?;

        let listen = config.admin.listen;
        let listener = TcpListener::bind(listen)
            .await
            .map_err(|source| RunError::Listen {
                address: listen,
                source,
            })?;
        let client = watch::connect(&address).await?;
        let to = To {
            client,
            settings: watch_settings(&config),
            shared: watch_shared(&config),
        };
        let first = Informers::wanted(&config, &plugins, &[], &to);
        let watches = first.statuses();
        let n_watches = watches.len();
        let sources = Arc::new(Sources::new(
            Arc::clone(live.store()),
            Arc::clone(live.outcomes()),
            Arc::clone(live.counters()),
            watches,
            Arc::clone(loader.board()),
            Arc::clone(loader.compilations()),
            outbox.clone(),
        ));
        let admin = Arc::new(Admin {
            sources: Arc::clone(&sources),
            is_draining: AtomicBool::new(false),
        });
        if let Ok(at) = listener.local_addr() {
            tracing::info!(%at, watches = n_watches, "serving /livez, /readyz and /metrics");
        }
        if let Some(warning) = config.scope.warning() {
            tracing::warn!("{warning}");
        }
        let serving = axum::serve(listener, admin::router(Arc::clone(&admin)));
        spawn_local(async move { serving.await.ok() });

        let (next, every) = (NextSet::default(), config.plugins.poll.get());
        let looking = next
            .looking(loader, every, &wake)
            .map_err(|err| RunError::System("cannot start the thread that loads plugins", err))?;
        let pipeline = Pipeline {
            live: Rc::new(RefCell::new(live)),
            sources,
            outbox: config.changes.stdout.then_some(outbox),
            wake,
            clock,
            submitted: Rc::new(Cell::new(Instant::now())),
            full_batch: config.limits.batch_events,
            has_listed: Rc::default(),
            next,
            served: Rc::new(watch_sets::Sender::new(Arc::clone(&plugins))),
        };
        let watches = Watches::new(config.clone(), to, pipeline.clone());
        let mut tasks = vec![
            spawn_local(watches.run(first)),
            spawn_local(on_hangup(looking)),
        ];
        let reload = Reload::new(path, config, pipeline.clone(), set_log_level);
        tasks.push(spawn_local(reload.run()));
        tasks.push(spawn_local(pipeline.clone().pump()));

        asked_to_end().await?;
        tracing::info!("ending");
        admin.is_draining.store(true, Relaxed);
        tasks.iter().for_each(JoinHandle::abort);
        end(pipeline, closer).await;
        Ok(())
    }
}

/// Tells what there is to tell yet.
async fn end(pipeline: Pipeline, closer: Option<Closer>) {
    let began = Instant::now();
    if timeout(DRAIN / 2, pipeline.drain()).await.is_err() {
        tracing::warn!("not all subjects were classified before the end");
    }
    if let Some(closer) = closer
        && !closer.close(DRAIN.saturating_sub(began.elapsed()))
    {
        tracing::warn!("not all changes were written before the end: nobody reads them");
    }
}

/// The live path of a configuration. It wakes whoever waits when a worker is done.
fn live(
    epoch: u64,
    config: &Config,
    plugins: &Arc<PluginSet>,
    wake: &Arc<Notify>,
) -> io::Result<Live> {
    let wake = Arc::clone(wake);
    let on_done: Arc<dyn Fn() + Send + Sync> = Arc::new(move || wake.notify_one());
    let mut live = Live::new(
        epoch,
        config.scope.clone(),
        Arc::clone(plugins),
        &config.limits,
        caps(config),
        bounds(config),
        workers(config),
        &on_done,
    )?;
    let quarantine = config.plugins.quarantine;
    live.set_pauses(Pauses {
        first: seconds(quarantine.pause),
        longest: seconds(quarantine.pause_max.max(quarantine.pause)),
    });
    if config.pods.selector.is_some() {
        live.watch_pods(pod_bounds(config));
    }
    Ok(live)
}

/// The way from a watch to the outbox, as every task has it.
#[derive(Clone)]
struct Pipeline {
    live: Rc<RefCell<Live>>,
    sources: Arc<Sources>,
    outbox: Option<Outbox>,
    wake: Arc<Notify>,
    clock: Clock,
    /// When workers were given something last.
    submitted: Rc<Cell<Instant>>,
    /// How many waiting subjects are worth a call at once.
    full_batch: usize,
    /// Whether what comes is news.
    has_listed: Rc<Cell<bool>>,
    next: NextSet,
    /// The set that serves, for whoever has to do with it now and then.
    served: Rc<watch_sets::Sender<Arc<PluginSet>>>,
}

impl Pipeline {
    fn observe(&self, watch: u16, listing: u32, seen: Observed<'_>) {
        let at = self.clock.seconds();
        let mut live = self.live.borrow_mut();
        self.listed(&mut live);
        let is_turn = matches!(seen, Observed::Paused | Observed::Synced);
        match seen {
            Observed::Paused => {}
            Observed::Put(event) => {
                let confirmed = Confirmation { watch, listing, at };
                live.put(&event, confirmed, wall_clock());
            }
            Observed::Deleted(event) => live.delete(&event),
            Observed::Synced => live.sweep(watch, listing, at),
        }
        // What comes together is classified together.
        if is_turn || self.full_batch <= live.n_waiting() {
            self.wake.notify_one();
        }
    }

    fn observe_pod(&self, watch: u16, listing: u32, seen: Observed<'_, PodWatch>) {
        let at = self.clock.seconds();
        let confirmed = Confirmation { watch, listing, at };
        let mut live = self.live.borrow_mut();
        self.listed(&mut live);
        let is_turn = matches!(seen, Observed::Paused | Observed::Synced);
        match seen {
            Observed::Paused => {}
            Observed::Put(pod) => live.put_pod(&pod, confirmed),
            Observed::Deleted(pod) => live.delete_pod(&pod, confirmed),
            Observed::Synced => live.sweep_pods(watch, listing, at),
        }
        if is_turn || self.full_batch <= live.n_waiting() {
            self.wake.notify_one();
        }
    }

    /// Looks whether all watches have an answer. Not all that have one have told of it here:
    /// a refusal brings nothing.
    fn listed(&self, live: &mut Live) {
        if self.has_listed.get() {
            return;
        }
        let first = self.sources.first_watches();
        if is_ready(first.iter().map(|it| &**it)) {
            live.listed();
            self.has_listed.set(true);
        }
    }

    /// Moves things on, whenever there is something to move.
    async fn pump(self) -> Infallible {
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let gathering = self.submitted.get() + PACE;
            let is_gathering = 0 < self.live.borrow().n_ready();
            tokio::select! {
                () = self.wake.notified() => {}
                () = sleep_until(gathering.into()), if is_gathering => {}
                _ = tick.tick() => {}
            }
            while self.turn(PACE) {
                yield_now().await;
            }
        }
    }

    /// Classifies what is left and tells of it.
    async fn drain(self) {
        self.live.borrow_mut().drop_backlog();
        loop {
            self.turn(Duration::ZERO);
            if self.live.borrow().is_idle() {
                return;
            }
            self.wake.notified().await;
        }
    }

    /// One turn of everything, where what is dirty may gather for so long. Says
    /// whether there is more to do at once.
    fn turn(&self, pace: Duration) -> bool {
        let mut live = self.live.borrow_mut();
        self.listed(&mut live);
        self.swap(&mut live);
        live.collect(
            &mut |change, initial| {
                self.sources.changed(&change);
                if let Some(outbox) = &self.outbox {
                    outbox.push(change, initial);
                }
            },
            &mut |report| self.sources.reported(&report),
        );
        let more = live.step(self.clock.seconds());
        let is_due = pace <= self.submitted.get().elapsed();
        let n_ready = live.n_ready();
        if 0 < n_ready && (is_due || self.full_batch <= n_ready) {
            live.submit();
            // Even if nobody had room: whoever has is a reason to come again.
            self.submitted.set(Instant::now());
        }
        let waiting = u64::try_from(live.n_waiting()).unwrap_or(u64::MAX);
        self.sources.waiting.store(waiting, Relaxed);
        self.tell(&live);
        more
    }

    /// Serves with the newest set.
    fn swap(&self, live: &mut Live) {
        let Some(set) = self.next.lock().take() else {
            return;
        };
        let Swapped {
            replaced,
            added,
            removed,
        } = live.swap(Arc::clone(&set));
        tracing::info!(
            replaced = replaced.join(", "),
            added = added.join(", "),
            removed = removed.join(", "),
            generation = set.generation.0,
            pause_us = u64::try_from(live.held().last.as_micros()).unwrap_or(u64::MAX),
            "plugins swapped"
        );
        self.served.send_replace(set);
    }

    /// Tells of the plugins what only this side knows.
    fn tell(&self, live: &Live) {
        let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
        self.sources.backlog.store(count(live.n_backlog()), Relaxed);
        self.sources.late.store(live.n_late(), Relaxed);
        for (name, quarantine) in live.health() {
            self.sources.board.health(name, quarantine);
        }
        for (name, generation) in live.impure() {
            self.sources.board.impure(name, generation);
        }
        self.sources.held(live.held());
        self.sources
            .board
            .drained(|it| match (&it.name, it.generation) {
                (Some(name), Some(generation)) => live.is_out(name, generation),
                _ => false,
            });
    }
}

/// Time since the process began, and when that was.
#[derive(Clone, Copy, Debug)]
struct Clock {
    began: Instant,
    /// Of the process: the same in all that it writes, and later than that of the
    /// one before.
    epoch: u64,
}

impl Clock {
    fn start() -> Self {
        Self {
            began: Instant::now(),
            epoch: wall_clock(),
        }
    }

    fn seconds(self) -> Seconds {
        Seconds::try_from(self.began.elapsed().as_secs()).unwrap_or(Seconds::MAX)
    }
}

/// What claimed times are measured against.
fn wall_clock() -> UnixMs {
    #[expect(
        clippy::disallowed_methods,
        reason = "a live process is where the time of day comes in"
    )]
    let now = SystemTime::now();
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

fn watch_settings(config: &Config) -> Settings {
    let watch = &config.watch;
    Settings {
        timeout: watch.timeout.get(),
        list_deadline: watch.list_deadline.get(),
        start_deadline: watch.start_deadline.get(),
        backoff_max: watch.backoff_max.get(),
        page_size: watch.page_size,
    }
}

fn watch_shared(config: &Config) -> Shared {
    let watch = &config.watch;
    let budget = Budget::new(watch.pages_bytes.get(), watch.line_bytes.get());
    Shared::new(watch.lists, budget)
}

/// The set that is to serve next. The newest one stands: who loads waits for nobody.
#[derive(Clone, Debug, Default)]
struct NextSet(Arc<Mutex<Option<Arc<PluginSet>>>>);

impl NextSet {
    fn lock(&self) -> MutexGuard<'_, Option<Arc<PluginSet>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Loads from now on, and wakes whoever takes the sets.
    fn looking(&self, loader: Loader, every: Duration, wake: &Arc<Notify>) -> io::Result<Looking> {
        let (next, wake) = (self.clone(), Arc::clone(wake));
        Looking::start(loader, every, move |set| {
            *next.lock() = Some(set);
            wake.notify_one();
        })
    }
}

/// Has the plugin folder looked at whenever the process is told to.
async fn on_hangup(looking: Looking) -> Infallible {
    let Ok(mut hangup) = signal(SignalKind::hangup()) else {
        tracing::warn!("SIGHUP cannot be awaited: plugins are loaded when the folder is looked at");
        return std::future::pending().await;
    };
    loop {
        if hangup.recv().await.is_none() {
            return std::future::pending().await;
        }
        tracing::info!("looking at the plugin folder");
        looking.look();
    }
}

fn caps(config: &Config) -> Caps {
    Caps {
        note_bytes: config.store.note_bytes.get(),
        ..Caps::default()
    }
}

fn pod_bounds(config: &Config) -> PodBounds {
    let PodsConfig {
        selector: _,
        labels,
        grace,
        wait,
        max,
    } = &config.pods;
    PodBounds {
        labels: labels.iter().map(|it| it.as_str().into()).collect(),
        max: *max,
        grace: seconds(*grace),
        wait: seconds(*wait),
        outcome_grace: seconds(config.outcomes.grace),
    }
}

fn seconds(period: Period) -> Seconds {
    Seconds::try_from(period.get().as_secs()).unwrap_or(Seconds::MAX)
}

fn bounds(config: &Config) -> Bounds {
    Bounds {
        store_bytes: config.store.bytes.get(),
        records_per_object: config.store.records_per_object,
        objects: config.store.objects,
        outcome_bytes: config.outcomes.bytes.get(),
        time_to_live: seconds(config.store.time_to_live),
    }
}

/// Instances are pooled for 16 at once; more threads would wait for them.
const WORKERS_MAX: NonZeroUsize = NonZeroUsize::MIN.saturating_add(15);

fn workers(config: &Config) -> NonZeroUsize {
    let processors = || thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    config.workers.unwrap_or_else(processors).min(WORKERS_MAX)
}

/// Waits until the process is asked to end.
async fn asked_to_end() -> Result<(), RunError> {
    let listen = |kind| signal(kind).map_err(|err| RunError::System("cannot await signals", err));
    let (mut term, mut int) = (
        listen(SignalKind::terminate())?,
        listen(SignalKind::interrupt())?,
    );
    tokio::select! {
        _ = term.recv() => {}
        _ = int.recv() => {}
    }
    Ok(())
}
