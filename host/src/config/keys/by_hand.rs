//! The keys that are no plain values with a default: names, limits, and what has
//! to be set.

use std::num::NonZeroUsize;

use serde_json::{Map, Value as Json, json};

use super::{Key, PodsConfig, QuarantineConfig, TakenUp, WORKERS, plugins, pods};
use crate::{
    config::{
        Config,
        value::{Value as _, fields, list},
    },
    sandbox::Limits,
    scope::{Reach, SELECTOR_MAX_BYTES},
    yaml::text,
};

/// A key without a range whose change needs a restart.
fn key(
    path: &'static str,
    meaning: &'static str,
    form: &str,
    default: Option<&str>,
    schema: Json,
    show: fn(&Config) -> Option<String>,
) -> Key {
    Key {
        path,
        meaning,
        form: form.to_owned(),
        default: default.map(str::to_owned),
        range: None,
        taken_up: TakenUp::Restart,
        schema: fields(schema),
        show,
    }
}

/// The schema of a list of so many different names at the least.
fn names(pattern: &str, max_bytes: usize, n_min: usize) -> Json {
    json!({
        "type": "array",
        "items": {"type": "string", "pattern": pattern, "maxLength": max_bytes},
        "minItems": n_min,
        "uniqueItems": true,
    })
}

const NAMESPACE: &str = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";
const KIND: &str = "^[A-Z][A-Za-z0-9]*$";
const GLOB: &str = "^[-a-z0-9*?]+$";
const LABEL_KEY: &str =
    "^([a-z0-9]([-.a-z0-9]*[a-z0-9])?/)?[A-Za-z0-9]([-_.A-Za-z0-9]*[A-Za-z0-9])?$";
const PLUGIN: &str = "^[a-z][-a-z0-9]*$";

pub(super) fn scope() -> Vec<Key> {
    vec![
        key(
            "scope.namespaces",
            "Namespaces to watch, each with watches of its own. A Role in each is permission enough.",
            "a list of namespaces",
            Some("none: this or `scope.cluster` has to be set"),
            names(NAMESPACE, 63, 1),
            |it| match it.scope.reach() {
                Reach::Namespaces(namespaces) => Some(list(namespaces)),
                Reach::Cluster { .. } => None,
            },
        ),
        key(
            "scope.kinds",
            "Kinds of the objects whose Events are asked for, as manifests spell them.",
            "a list of kinds",
            Some("[Pod]"),
            names(KIND, 63, 1),
            |it| Some(list(it.scope.kinds())),
        ),
        key(
            "scope.clusterScopedKinds",
            "Kinds that have no namespace, whose Events are in `default`. `Node` is one whether it is named or not.",
            "a list of kinds",
            Some("[Node]"),
            names(KIND, 63, 0),
            |it| Some(list(it.scope.cluster_scoped())),
        ),
        key(
            "scope.cluster.include",
            "Globs of namespaces: `*` is any characters, `?` is one. Every namespace if there is none.",
            "a list of globs",
            Some("[]"),
            names(GLOB, 126, 0),
            |it| match it.scope.reach() {
                Reach::Namespaces(_) => None,
                Reach::Cluster { include, .. } => Some(list(include)),
            },
        ),
        key(
            "scope.cluster.exclude",
            "Globs of namespaces that are left out, even if they are included.",
            "a list of globs",
            Some("[]"),
            names(GLOB, 126, 0),
            |it| match it.scope.reach() {
                Reach::Namespaces(_) => None,
                Reach::Cluster { exclude, .. } => Some(list(exclude)),
            },
        ),
    ]
}

pub(super) fn of_plugins() -> Vec<Key> {
    vec![
        key(
            "plugins.directory",
            "The folder of the plugins: each a file `NAME.wasm`, with its settings in `NAME.yaml` beside it.",
            "a path",
            None,
            json!({"type": "string", "minLength": 1}),
            |it| Some(text(&it.plugins.directory.to_string_lossy())),
        ),
        key(
            "plugins.order",
            "Names of plugins: of two verdicts that of the first stands. Those that are not named come after, by file name.",
            "a list of names",
            Some("[]"),
            names(PLUGIN, 63, 0),
            |it| Some(list(&it.plugins.order)),
        ),
        key(
            "plugins.pins",
            "Digests that files have to have: `NAME=sha256:…`, where the file is `NAME.wasm`. One with another digest is \
             not loaded.",
            "a list of pins",
            Some("[]"),
            names("^[^=]+=sha256:[0-9a-f]{64}$", 512, 0),
            |it| Some(list(&it.plugins.pins)),
        ),
        Key::of(
            "plugins.poll",
            "How often the folder is looked at. SIGHUP has it looked at now.",
            TakenUp::Restart,
            &plugins::POLL_DEFAULT,
            Some(&plugins::POLL),
            |it| Some(it.plugins.poll.show()),
        ),
        Key::of(
            "plugins.bytes",
            "Bytes of compiled code of all plugins together. One that is over is not loaded.",
            TakenUp::Restart,
            &plugins::BYTES_DEFAULT,
            Some(&plugins::BYTES),
            |it| Some(it.plugins.bytes.show()),
        ),
        key(
            "plugins.cache",
            "The folder in which compiled plugins are kept, so that a start compiles nothing. It is made if it is not \
             there, and has to be nobody else's. It takes 512Mi at most.",
            "a path",
            Some("none: each start compiles"),
            json!({"type": "string", "minLength": 1}),
            |it| {
                let cache = it.plugins.cache.as_ref()?;
                Some(text(&cache.to_string_lossy()))
            },
        ),
        Key::of(
            "plugins.quarantine.pause",
            "How long a plugin is left alone at first. Then one batch is tried.",
            TakenUp::Restart,
            &QuarantineConfig::default().pause,
            Some(&plugins::PAUSE),
            |it| Some(it.plugins.quarantine.pause.show()),
        ),
        Key::of(
            "plugins.quarantine.pauseMax",
            "The longest pause. It doubles up to this while the batches that are tried fail. Where it is under `pause`, that stands.",
            TakenUp::Restart,
            &QuarantineConfig::default().pause_max,
            Some(&plugins::PAUSE),
            |it| Some(it.plugins.quarantine.pause_max.show()),
        ),
    ]
}

pub(super) fn pods() -> Vec<Key> {
    let default = PodsConfig::default();
    let labels = names(LABEL_KEY, 317, 0);
    let mut labels = fields(labels);
    labels.insert("maxItems".to_owned(), json!(pods::LABELS_MAX));
    vec![
        key(
            "pods.selector",
            "Which Pods of the scope are watched: a label selector, as `kubectl --selector` takes it. `\"\"` is \
             all of them. Without one no Pod is asked for, and no permission on Pods is needed.",
            "a label selector",
            Some("none: no Pod is watched"),
            json!({"type": "string", "maxLength": SELECTOR_MAX_BYTES}),
            |it| it.pods.selector.as_ref().map(|it| text(&it.to_string())),
        ),
        key(
            "pods.labels",
            "Keys of the labels that are kept of a Pod and that plugins see. At most 32.",
            "a list of keys of labels",
            Some("[]"),
            Json::Object(labels),
            |it| Some(list(&it.pods.labels)),
        ),
        Key::of(
            "pods.grace",
            "How long the Events of a Pod stay that has ended or is deleted. What was found stays longer.",
            TakenUp::Restart,
            &default.grace,
            Some(&pods::GRACE),
            |it| Some(it.pods.grace.show()),
        ),
        Key::of(
            "pods.wait",
            "How long an Event stays that comes before the Pod that it is about.",
            TakenUp::Restart,
            &default.wait,
            Some(&pods::WAIT),
            |it| Some(it.pods.wait.show()),
        ),
        Key::of(
            "pods.max",
            "Pods that are kept.",
            TakenUp::Restart,
            &default.max,
            Some(&pods::MAX),
            |it| Some(it.pods.max.show()),
        ),
    ]
}

pub(super) fn workers() -> Key {
    Key {
        range: Some((WORKERS.start().show(), WORKERS.end().show())),
        ..key(
            "workers",
            "Threads that classify.",
            &NonZeroUsize::form(),
            Some("the processors, 16 at most"),
            Json::Object(NonZeroUsize::schema(Some(&WORKERS))),
            |it| it.workers.map(|it| it.show()),
        )
    }
}

pub(super) fn limits() -> Key {
    let limits = Limits::catalogue().into_iter();
    let limits = limits.map(|(name, value, meaning)| {
        let about = format!("{meaning} Default {value}.");
        let schema = json!({"description": about, "type": "integer", "minimum": 0});
        (name.to_owned(), schema)
    });
    key(
        "limits",
        "What plugins may use, by the names, and in the ranges, that `portent plugin limits` prints.",
        "a mapping of limits",
        Some("{}"),
        json!({
            "type": ["object", "null"],
            "properties": limits.collect::<Map<_, _>>(),
            "additionalProperties": false,
        }),
        |it| Some(limits_set(&it.limits)),
    )
}

/// The limits that are not as they are by default.
fn limits_set(limits: &Limits) -> String {
    let default = Limits::default().values();
    let set: Vec<_> = limits
        .values()
        .into_iter()
        .zip(default)
        .filter(|(value, default)| value != default)
        .map(|((name, value), _)| format!("{name}: {value}"))
        .collect();
    format!("{{{}}}", set.join(", "))
}
