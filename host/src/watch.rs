//! The Events of a scope, and the Pods that they are about, as the apiserver tells them.
//!
//! One [`Informer`] is one LIST and then one watch of Events about one kind, or of
//! Pods, in one namespace, for as long as the process lives. It never gives up and never ends: whatever fails
//! is classed, counted and tried again. What it must not do is go on as if
//! nothing was missing, so:
//!
//! * Every LIST has a number, and what it does not confirm is gone: whoever holds
//!   records sweeps on [`Observed::Synced`]. That DELETED comes is never relied on.
//! * A version that is compacted (410) is routine: Events have no watch cache, so
//!   no bookmark ever comes, and a quiet watch outlives its version. Of Pods
//!   bookmarks come, and move it on.
//! * A watch that ends at once is a failure, and so is one that does not end when
//!   the server said that it would.
//! * Only a watch that lasted resets the wait after a failure. A LIST does not.
//!
//! Nothing is held but one object at a time and the version to go on from. It is
//! ours and not kube's own watcher because that one spins on a server that closes
//! watches at once, never recovers from a 410 that comes as a status, hangs on a
//! LIST that is never answered, and lets one bad item stop all others.

use std::{
    convert::Infallible,
    str,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use http::header::{ACCEPT_ENCODING, HeaderValue, RETRY_AFTER};
use http_body_util::BodyExt as _;
use kube::{
    Client,
    api::{ListParams, WatchParams},
    client::Body,
    core::{Request, Status as ApiStatus},
};
use serde::Deserialize;
use tokio::{
    sync::Semaphore,
    time::{Instant, sleep, timeout, timeout_at},
};

use crate::{
    record::decode::{Text, from_json},
    scope::Watch,
};

mod backoff;
mod connect;
mod failure;
mod inflow;
mod lines;
mod once;
mod page;
mod resource;
mod self_check;
mod status;
#[cfg(test)]
mod tests;

pub use connect::{Address, Unreachable, client, connect};
pub use failure::{Class, Failure};
pub use inflow::Budget;
pub use once::{get_pod, list_events};
pub use resource::{Resource, Watched};
pub use self_check::{Inspection, Selection, inspect, self_check};
pub use status::{Phase, Status, answered_within, is_ready};

use backoff::Backoff;
use inflow::Inflow;
use lines::{Line, Lines};
use page::Item;
use resource::sealed::Asked;

/// How a watch goes about it.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How long the server is asked to keep a watch open. Each asks for a little
    /// less, at random, so that they do not all end at once.
    pub timeout: Duration,
    /// How long a page of a LIST may take.
    pub list_deadline: Duration,
    /// How long the start of a watch may take.
    pub start_deadline: Duration,
    /// The longest wait after a failure.
    pub backoff_max: Duration,
    /// Items of a page, until pages turn out to take too long.
    pub page_size: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            timeout: Duration::from_mins(45),
            list_deadline: Duration::from_mins(1),
            start_deadline: Duration::from_secs(15),
            backoff_max: Duration::from_secs(30),
            page_size: 500,
        }
    }
}

/// What all watches of a process share.
#[derive(Clone, Debug)]
pub struct Shared {
    lists: Arc<Semaphore>,
    budget: Budget,
}

impl Shared {
    /// At most `lists` LISTs at a time, all held bytes within the budget.
    #[must_use]
    pub fn new(lists: usize, budget: Budget) -> Self {
        Self {
            lists: Arc::new(Semaphore::new(lists.clamp(1, Semaphore::MAX_PERMITS))),
            budget,
        }
    }
}

impl Default for Shared {
    fn default() -> Self {
        Self::new(4, Budget::new(32 << 20, 16 << 20))
    }
}

/// What a watch of Events saw, or one of Pods.
#[derive(Debug)]
pub enum Observed<'a, R: Resource = Watch> {
    /// One that exists.
    Put(R::Wire<'a>),
    /// One that is deleted, as it was last; or a Pod that is not selected any more, as
    /// it is now.
    Deleted(R::Wire<'a>),
    /// A LIST is read to its end: what was last put under an earlier number is gone.
    Synced,
    /// There is no more news for now.
    Paused,
}

/// Counts the LISTs of one watch, from 1. What is put carries the number of the
/// LIST that it came in, or that came before it.
pub type Listing = u32;

/// How long a watch must have lasted to be progress.
const HEALTHY: Duration = Duration::from_secs(10);

/// A watch that ends earlier and brought nothing is none: some servers and
/// proxies close one on a compacted version without a word.
const SHORT: Duration = Duration::from_secs(2);

/// How much later than it said a server may end a watch.
const MARGIN: Duration = Duration::from_secs(5);

/// How much of an answer that is a refusal is read.
const STATUS_MAX: usize = 64 << 10;

/// One LIST and watch, for ever.
pub struct Informer<R: Resource = Watch> {
    client: Client,
    asked: R,
    status: Arc<Status>,
    settings: Settings,
    shared: Shared,
    backoff: Backoff,
    random: fastrand::Rng,
    listing: Listing,
    /// Items of the next page.
    limit: u32,
    /// The version to watch from; `None` when there has to be a LIST first.
    from: Option<String>,
}

impl<R: Resource + Clone> Informer<R> {
    /// Nothing is asked yet.
    #[must_use]
    pub fn new(client: Client, asked: R, settings: Settings, shared: Shared) -> Self {
        let mut random = fastrand::Rng::new();
        Self {
            client,
            status: Arc::new(Status::new(asked.clone().watched())),
            asked,
            backoff: Backoff::new(settings.backoff_max, random.fork()),
            random,
            limit: settings.page_size,
            settings,
            shared,
            listing: 0,
            from: None,
        }
    }

    /// How it is doing.
    #[must_use]
    pub fn status(&self) -> Arc<Status> {
        Arc::clone(&self.status)
    }

    /// Watches for ever.
    pub async fn run(mut self, mut on: impl FnMut(Listing, Observed<'_, R>)) -> Infallible {
        loop {
            let done = match self.from.take() {
                None => self.list(&mut on).await.map(Some),
                Some(version) => self.watch(version, &mut on).await,
            };
            match done {
                Ok(from) => self.from = from,
                Err(failure) => self.wait(failure).await,
            }
        }
    }

    async fn wait(&mut self, failure: Failure) {
        let wait = self.backoff.next(failure.retry_after);
        let watch = self.status.watch();
        if failure.class == Class::Gone {
            tracing::debug!(%watch, ?wait, "{failure}");
        } else {
            tracing::warn!(%watch, ?wait, "{failure}");
        }
        self.status.enter(Phase::Failing(failure));
        sleep(wait).await;
    }

    /// Reads a LIST to its end, and says from where to watch.
    async fn list(
        &mut self,
        on: &mut impl FnMut(Listing, Observed<'_, R>),
    ) -> Result<String, Failure> {
        let lists = Arc::clone(&self.shared.lists);
        self.status.enter(Phase::Waiting);
        let _turn = lists.acquire().await;
        self.status.enter(Phase::Listing);
        self.listing = self.listing.wrapping_add(1);
        let mut next = String::new();
        loop {
            let deadline = self.settings.list_deadline;
            let began = Instant::now();
            let Ok(page) = timeout(deadline, self.page(&next, on)).await else {
                // Perhaps the page was too large for the time.
                self.limit = (self.limit / 2).max(1);
                return Err(Failure::deadline("page of a LIST", deadline));
            };
            let page = page?;
            if began.elapsed() < deadline / 4 {
                self.limit = self.limit.saturating_mul(2).min(self.settings.page_size);
            }
            next = page.next;
            if next.is_empty() {
                self.status.listed();
                on(self.listing, Observed::Synced);
                return Ok(page.resource_version);
            }
        }
    }

    async fn page(
        &self,
        next: &str,
        on: &mut impl FnMut(Listing, Observed<'_, R>),
    ) -> Result<page::PageEnd, Failure> {
        let params = ListParams {
            field_selector: self.asked.field_selector(),
            label_selector: self.asked.label_selector(),
            limit: Some(self.limit),
            continue_token: (!next.is_empty()).then(|| next.to_owned()),
            ..ListParams::default()
        };
        let request = Request::new(self.asked.path()).list(&params);
        let body = self.send(request).await?;
        let event_max = self.shared.budget.event_max;
        let mut inflow = Inflow::new(body, &self.shared.budget);
        page::read(&mut inflow, event_max, |item| match item {
            Item::Whole(bytes) => match from_json(bytes) {
                Ok(object) => on(self.listing, Observed::Put(object)),
                Err(err) => self.undecodable("an item of a LIST", &err),
            },
            Item::TooLong => self.too_long("an item of a LIST"),
        })
        .await
    }

    /// Follows the changes since a version, until the watch ends. Says from where
    /// to go on, if that is known.
    async fn watch(
        &mut self,
        mut version: String,
        on: &mut impl FnMut(Listing, Observed<'_, R>),
    ) -> Result<Option<String>, Failure> {
        let asked = self.settings.timeout.mul_f64(0.8 + 0.2 * self.random.f64());
        let params = WatchParams {
            field_selector: self.asked.field_selector(),
            label_selector: self.asked.label_selector(),
            timeout: Some(u32::try_from(asked.as_secs()).unwrap_or(u32::MAX).max(1)),
            ..WatchParams::default()
        };
        let began = Instant::now();
        let until = began + asked + MARGIN;
        let mut n_frames = 0_u64;
        let ended = self
            .follow(&params, &mut version, &mut n_frames, until, on)
            .await;

        let lasted = began.elapsed();
        if HEALTHY.min(self.settings.timeout / 2) <= lasted {
            self.backoff.reset();
        }
        let failure = match ended {
            Ok(()) if HEALTHY.min(asked / 2) <= lasted => return Ok(Some(version)),
            Ok(()) => Failure::new(
                Class::ShortWatch,
                format_args!("the watch ended after {lasted:.1?} and brought {n_frames} frames"),
            ),
            Err(failure) => failure,
        };
        let is_void = n_frames == 0 && lasted < SHORT;
        let must_list = match failure.class {
            Class::Gone => true,
            Class::ShortWatch => is_void,
            _ => false,
        };
        if !must_list {
            self.from = Some(version);
        }
        Err(failure)
    }

    async fn follow(
        &self,
        params: &WatchParams,
        version: &mut String,
        n_frames: &mut u64,
        until: Instant,
        on: &mut impl FnMut(Listing, Observed<'_, R>),
    ) -> Result<(), Failure> {
        let request = Request::new(self.asked.path()).watch(params, version);
        let deadline = self.settings.start_deadline;
        let body = timeout(deadline, self.send(request))
            .await
            .map_err(|_| Failure::deadline("start of a watch", deadline))??;
        self.status.enter(Phase::Watching);

        let event_max = self.shared.budget.event_max;
        let mut inflow = Inflow::new(body, &self.shared.budget);
        let mut lines = Lines::default();
        loop {
            while let Some(line) = lines.next(&mut inflow, event_max) {
                *n_frames += 1;
                match line {
                    Line::Whole(n) => {
                        self.frame(inflow.slice(0..n), version, on)?;
                        inflow.consume(n + 1);
                    }
                    Line::TooLong => self.too_long("a frame"),
                }
            }
            let more = inflow.fill_news(|| on(self.listing, Observed::Paused));
            let more = timeout_at(until, more).await.map_err(|_| {
                Failure::new(
                    Class::Deadline,
                    "the server did not end the watch when it should have",
                )
            })?;
            if !more? {
                break;
            }
        }
        if !inflow.held().is_empty() {
            self.undecodable("a frame", &"it is cut off");
        }
        Ok(())
    }

    /// One frame. The version moves on with it, unless it cannot be read.
    fn frame(
        &self,
        line: &[u8],
        version: &mut String,
        on: &mut impl FnMut(Listing, Observed<'_, R>),
    ) -> Result<(), Failure> {
        #[derive(Deserialize)]
        struct Frame<'a, T> {
            #[serde(borrow, rename = "type")]
            kind: Text<'a>,
            object: T,
        }

        let Frame { kind, object } = match from_json::<Frame<'_, R::Wire<'_>>>(line) {
            Ok(frame) => frame,
            Err(err) => {
                self.undecodable("a frame", &err);
                return Ok(());
            }
        };
        if &*kind == "ERROR" {
            return Err(refusal(line));
        }
        let is_known = ["ADDED", "MODIFIED", "DELETED", "BOOKMARK"].contains(&&*kind);
        let its = R::version(&object);
        if is_known && !its.is_empty() {
            version.clear();
            version.push_str(its);
        }
        match &*kind {
            "ADDED" | "MODIFIED" => on(self.listing, Observed::Put(object)),
            "DELETED" => on(self.listing, Observed::Deleted(object)),
            "BOOKMARK" => {}
            _ => self.undecodable("a frame", &"it is of no known type"),
        }
        Ok(())
    }

    /// Sends a request. What is no answer is a failure.
    async fn send(
        &self,
        request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
    ) -> Result<Body, Failure> {
        send_with(&self.client, request).await
    }

    fn undecodable(&self, what: &str, why: &dyn std::fmt::Display) {
        self.status.undecodable.fetch_add(1, Relaxed);
        let watch = self.status.watch();
        tracing::warn!(%watch, "{what} is no {} and is skipped: {why}", R::NAME);
    }

    fn too_long(&self, what: &str) {
        self.status.too_long.fetch_add(1, Relaxed);
        let (watch, max) = (self.status.watch(), self.shared.budget.event_max);
        tracing::warn!(%watch, "{what} is longer than {max} bytes and is skipped");
    }
}

/// Sends a request. What is no answer is a failure.
async fn send_with(
    client: &Client,
    request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
) -> Result<Body, Failure> {
    let request = request.map_err(|err| Failure::transport(&err))?;
    let mut request = request.map(Body::from);
    // A compressed watch comes as many compressed pieces, and readers stop after
    // the first (tower-http#737).
    request
        .headers_mut()
        .insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    let response = client
        .send(request)
        .await
        .map_err(|err| Failure::transport(&err))?;
    let code = response.status();
    if code.is_success() {
        return Ok(response.into_body());
    }
    let retry_after = response
        .headers()
        .get(RETRY_AFTER)
        .and_then(|it| it.to_str().ok()?.parse().ok())
        .map(Duration::from_secs);
    let said = status(response.into_body()).await;
    Err(Failure::status(code.as_u16(), &said, retry_after))
}

/// The status that a refusal carries, if it does.
async fn status(mut body: Body) -> ApiStatus {
    let mut held = Vec::new();
    while held.len() < STATUS_MAX
        && let Some(Ok(frame)) = body.frame().await
    {
        if let Ok(data) = frame.into_data() {
            held.extend_from_slice(&data);
        }
    }
    serde_json::from_slice(&held).unwrap_or_default()
}

/// What an ERROR frame says.
fn refusal(line: &[u8]) -> Failure {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Frame {
        object: ApiStatus,
    }

    let Frame { object } = serde_json::from_slice(line).unwrap_or_default();
    Failure::status(object.code, &object, None)
}
