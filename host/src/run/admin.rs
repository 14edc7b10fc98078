//! `/livez`, `/readyz`, `/metrics` and `/plugins`, for whoever runs it.
//!
//! There is no authentication: what is told are counts, configured names and
//! reason codes, never an object's name or a text from an Event, and nothing can
//! be changed here.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::Relaxed},
};

use axum::{
    Router,
    extract::{RawQuery, State},
    http::{StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
    routing::get,
};

use serde_json::json;

use super::metrics::Sources;
use crate::{
    plugins::{self, Version},
    reason::Reason,
    watch::is_ready,
};

/// What the answers are made of.
#[derive(Debug)]
pub(super) struct Admin {
    pub(super) sources: Arc<Sources>,
    /// Set when the process is about to end.
    pub(super) is_draining: AtomicBool,
}

impl Admin {
    /// The checks of readiness: name, whether it is passed, and what there is to
    /// say.
    fn checks(&self) -> Vec<(String, bool, String)> {
        let mut checks = Vec::new();
        let draining = self.is_draining.load(Relaxed);
        let said = if draining {
            "the process is ending"
        } else {
            ""
        };
        checks.push(("running".to_owned(), !draining, said.to_owned()));

        let watches = self.sources.all_watches();
        let first = self.sources.first_watches();
        let listed = is_ready(first.iter().map(|it| &**it));
        let said = if watches.is_empty() {
            "no classifier could use any Event of the scope: nothing is watched".to_owned()
        } else {
            let n_listed = watches.iter().filter(|it| it.has_listed()).count();
            format!("{n_listed} of {} watches have listed", watches.len())
        };
        checks.push(("watches".to_owned(), listed, said));
        for it in &watches {
            // One that is refused is told of, but keeps nobody waiting.
            checks.push((format!("watch {}", it.watch()), it.is_answered(), it.tell()));
        }
        checks
    }

    pub(super) fn is_ready(&self) -> bool {
        let first = self.sources.first_watches();
        !self.is_draining.load(Relaxed) && is_ready(first.iter().map(|it| &**it))
    }
}

/// The routes.
pub(super) fn router(admin: Arc<Admin>) -> Router {
    Router::new()
        .route("/livez", get(|| async { "ok\n" }))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .route("/plugins", get(status_of_plugins))
        .with_state(admin)
}

async fn readyz(State(admin): State<Arc<Admin>>, RawQuery(query): RawQuery) -> Response {
    let is_ready = admin.is_ready();
    let code = if is_ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    let is_verbose = query
        .iter()
        .flat_map(|it| it.split('&'))
        .any(|it| it == "verbose" || it.starts_with("verbose="));
    if is_ready && !is_verbose {
        return (code, "ok\n").into_response();
    }
    let mut lines: Vec<_> = admin
        .checks()
        .into_iter()
        .map(|(name, is_passed, said)| {
            let sign = if is_passed { '+' } else { '-' };
            let verdict = if is_passed { "ok" } else { "failed" };
            let colon = if said.is_empty() { "" } else { ": " };
            format!("[{sign}] {name} {verdict}{colon}{said}\n")
        })
        .collect();
    let verdict = if is_ready { "passed" } else { "failed" };
    lines.push(format!("readyz check {verdict}\n"));
    let text = lines.concat();
    (code, text).into_response()
}

async fn metrics(State(admin): State<Arc<Admin>>) -> Response {
    match admin.sources.encode() {
        Ok(text) => {
            let kind = "text/plain; version=0.0.4; charset=utf-8";
            ([(CONTENT_TYPE, kind)], text).into_response()
        }
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

async fn status_of_plugins(State(admin): State<Arc<Admin>>) -> Response {
    let board = &admin.sources.board;
    let described = |version: &Version, state: plugins::State, reason: Option<Reason>| {
        json!({
            "name": version.name,
            "version": version.version,
            "digest": version.digest,
            "settingsDigest": version.settings_digest,
            "wit": version.wit,
            "generation": version.generation.map(|it| it.0),
            "state": state.as_str(),
            "reason": reason.map(Reason::as_str),
        })
    };
    let version = |(it, state): &(Version, plugins::State)| described(it, *state, state.reason());
    let entries = board.entries();
    let entries = entries.iter().map(|it| {
        let serving = it.serving.as_ref();
        json!({
            "file": it.file,
            "serving": serving.map(|(it, how)| described(it, how.state, how.reason())),
            "newest": it.newest.as_ref().map(version),
        })
    });
    let held = admin.sources.held_by_swaps();
    let status = json!({
        "plugins": entries.collect::<Vec<_>>(),
        "over": board.over().iter().map(version).collect::<Vec<_>>(),
        "swaps": board.n_swaps(),
        "backlog": admin.sources.backlog.load(Relaxed),
        "lateResults": admin.sources.late.load(Relaxed),
        "swapPauseSeconds": {
            "last": held.last.as_secs_f64(), "longest": held.longest.as_secs_f64(),
        },
        "batchesHeldBySwaps": held.n_batches,
    });
    let text = format!("{status}\n");
    ([(CONTENT_TYPE, "application/json")], text).into_response()
}
