//! Files, good and bad, and what becomes of them.

use std::{collections::BTreeSet, path::PathBuf};

use super::*;
use crate::scope::{Glob, Kind, LabelKey, Reach};

mod printed;
mod problems;

const SCOPE: &str = "scope: {namespaces: [team-a]}\n";
const PLUGINS: &str = "plugins: {directory: /plugins}\n";

/// A file with what has to be there, and this.
fn with(more: &str) -> Result<Config, Problems> {
    Config::parse(format!("{SCOPE}{PLUGINS}{more}").as_bytes())
}

fn lines(problems: &Problems) -> Vec<String> {
    problems.shown().iter().map(Problem::to_string).collect()
}

/// The text has these problems and no others, in this order.
#[track_caller]
fn check_problems(text: &str, want: &[&str]) {
    let problems = Config::parse(text.as_bytes()).unwrap_err();
    assert_eq!(lines(&problems), want, "{text}");
    assert_eq!(problems.n(), want.len());
}

/// In a file that is good but for this, which begins in line 3, this is wrong.
#[track_caller]
fn check_problem(more: &str, want: &str) {
    check_problems(&format!("{SCOPE}{PLUGINS}{more}"), &[want]);
}

#[test]
fn what_is_not_said_has_its_default() {
    let Config {
        scope,
        plugins,
        pods,
        store,
        outcomes,
        watch,
        workers,
        limits,
        admin,
        changes,
        log,
    } = with("").unwrap();
    assert_eq!(scope.kinds(), &set::<Kind>(&["Pod"]));
    assert_eq!(scope.cluster_scoped(), &set::<Kind>(&["Node"]));
    assert_eq!(plugins.directory, PathBuf::from("/plugins"));
    assert_eq!(plugins.order, Vec::<String>::new());
    let human = |it: &dyn ToString| it.to_string();
    assert_eq!(pods.selector, None);
    assert_eq!(pods.labels, []);
    assert_eq!(
        (human(&pods.grace), human(&pods.wait)),
        ("10m".to_owned(), "30s".to_owned())
    );
    assert_eq!(pods.max, 100_000);
    assert_eq!(human(&store.bytes), "256Mi");
    assert_eq!(store.records_per_object, 64);
    assert_eq!(human(&store.time_to_live), "65m");
    assert_eq!(human(&store.note_bytes), "2Ki");
    assert_eq!(human(&outcomes.bytes), "32Mi");
    assert_eq!(human(&outcomes.grace), "2h");
    assert_eq!(human(&watch.timeout), "45m");
    assert_eq!(human(&watch.list_deadline), "1m");
    assert_eq!(human(&watch.start_deadline), "15s");
    assert_eq!(human(&watch.backoff_max), "30s");
    assert_eq!((watch.page_size, watch.lists), (500, 4));
    assert_eq!(human(&watch.pages_bytes), "32Mi");
    assert_eq!(human(&watch.line_bytes), "16Mi");
    assert_eq!(workers, None);
    assert_eq!(limits, Limits::default());
    assert_eq!(human(&admin.listen), "127.0.0.1:8081");
    assert!(changes.stdout);
    assert_eq!((log.level, log.format), (LogLevel::Info, LogFormat::Text));
}

#[test]
fn a_section_whose_keys_are_all_commented_out_is_as_if_it_were_not_there() {
    let sections = "pods:\nstore:\noutcomes:\nwatch:\nlimits:\nadmin:\nchanges:\nlog:\n";
    assert_eq!(with(sections), with(""));
}

#[test]
fn what_is_said_is_taken() {
    let config = Config::parse(
        b"\
scope:
  cluster: {include: [team-*], exclude: [team-x]}
  kinds: [Pod, Node, Job]
  clusterScopedKinds: [ClusterQueue]
plugins: {directory: ./plugins, order: [gpu-fault, eviction]}
store: {bytes: 2000000, timeToLive: 1h30m}
workers: 3
limits: {fuel-per-event: 1_000, tables: 7}
admin: {listen: '[::1]:0'}
changes: {stdout: false}
log: {level: trace, format: json}
",
    )
    .unwrap();
    let Reach::Cluster { include, exclude } = config.scope.reach() else {
        panic!("{config:?}");
    };
    assert_eq!(include, &["team-*".parse::<Glob>().unwrap()]);
    assert_eq!(exclude, &["team-x".parse::<Glob>().unwrap()]);
    assert_eq!(config.scope.kinds(), &set(&["Pod", "Node", "Job"]));
    assert_eq!(
        config.scope.cluster_scoped(),
        &set(&["Node", "ClusterQueue"])
    );
    assert_eq!(config.plugins.directory, PathBuf::from("./plugins"));
    assert_eq!(config.plugins.order, ["gpu-fault", "eviction"]);
    assert_eq!(config.store.bytes.get(), 2_000_000);
    assert_eq!(config.store.time_to_live.get().as_secs(), 5_400);
    assert_eq!(config.workers.unwrap().get(), 3);
    assert_eq!(config.limits.fuel_per_event, 1_000);
    assert_eq!(config.limits.tables, 7);
    assert_eq!(config.admin.listen, "[::1]:0".parse().unwrap());
    assert!(!config.changes.stdout);
    assert_eq!(config.log.level, LogLevel::Trace);
    assert_eq!(config.log.format, LogFormat::Json);
}

#[test]
fn a_selector_of_pods_is_read_and_all_pods_are_not_none_of_them() {
    let selector = |value: &str| {
        let config = with_value("pods.selector", value).unwrap();
        config.pods.selector.map(|it| it.to_string())
    };
    assert_eq!(
        selector("'app == trainer, !test'").as_deref(),
        Some("app=trainer,!test")
    );
    assert_eq!(selector("'!test'").as_deref(), Some("!test"));
    assert_eq!(selector("''").as_deref(), Some(""));
    let config = with("pods: {labels: [run, example.com/action]}").unwrap();
    assert_eq!(config.pods.selector, None);
    let labels: Vec<_> = config.pods.labels.iter().map(LabelKey::as_str).collect();
    assert_eq!(labels, ["run", "example.com/action"]);

    check_problem(
        "pods: {selector: }",
        "3:16: pods.selector: has no value: write a label selector in quotes, for example \
         `\"app=trainer\"`, or `\"\"` for all Pods of the scope",
    );
    check_problem(
        "pods: {selector: app=trainer tier=a}",
        "3:18: pods.selector: is no label selector: at its character 13: `tier=a` is wrong: write `,` \
         and another requirement, or nothing more",
    );
    check_problem(
        "pods: {labels: [-run]}",
        "3:17: pods.labels: `-run` is no key of a label: write 1 to 63 letters, digits, `-`, `_` and `.`, \
         with a letter or digit at either end, and before that nothing or a domain and `/`, for example \
         `app` or `example.com/run`",
    );
}

#[test]
fn there_are_only_so_many_keys_of_labels() {
    let with_keys = |n: usize| {
        let keys: Vec<_> = (0..n).map(|it| format!("k{it}")).collect();
        with_value("pods.labels", &format!("[{}]", keys.join(", ")))
    };
    assert_eq!(
        with_keys(keys::pods::LABELS_MAX).unwrap().pods.labels.len(),
        32
    );
    let problems = with_keys(keys::pods::LABELS_MAX + 1).unwrap_err();
    assert_eq!(
        lines(&problems),
        ["3:16: pods.labels: are 33: write at most 32"]
    );
}

#[test]
fn a_pin_is_a_name_and_a_digest() {
    let digest = format!("sha256:{}", "0a".repeat(32));
    let pins = with_value("plugins.pins", &format!("[\"gpu-fault={digest}\"]")).unwrap();
    let [pin] = &pins.plugins.pins[..] else {
        panic!("{pins:?}");
    };
    assert_eq!((&*pin.file, &*pin.digest), ("gpu-fault", &*digest));
    for wrong in ["a", "a=sha256:0a", "a=md5:0a", &format!("={digest}")] {
        let problems = with_value("plugins.pins", &format!("[\"{wrong}\"]")).unwrap_err();
        let [line] = &lines(&problems)[..] else {
            panic!("{problems:?}");
        };
        let want = "is no pin: write `NAME=sha256:` and 64 digits, as `portent plugin check NAME.wasm` prints them";
        assert!(line.contains(want), "{line}");
    }
}

/// A file with what has to be there, and this value of this key.
fn with_value(path: &str, value: &str) -> Result<Config, Problems> {
    let n_sections = path.matches('.').count();
    if let Some(name) = path.strip_prefix("plugins.") {
        let (nested, ends) = (name.replace('.', ": {"), "}".repeat(n_sections));
        let text = format!("{SCOPE}plugins: {{directory: /plugins, {nested}: {value}{ends}\n");
        return Config::parse(text.as_bytes());
    }
    let nested = path.replace('.', ": {");
    with(&format!("{nested}: {value}{}", "}".repeat(n_sections)))
}

/// The number that a value of a range is, and what is written behind it.
fn number(shown: &str) -> (u64, &'static str) {
    let period = shown.parse::<Period>().map(|it| (it.get().as_secs(), "s"));
    let size = || shown.parse::<Size>().map(|it| (it.n_bytes(), ""));
    period.or_else(|_| size()).unwrap()
}

#[test]
fn each_range_holds_on_both_sides() {
    let mut n_ranges = 0;
    for key in Config::keys() {
        let Some((low, high)) = &key.range else {
            continue;
        };
        n_ranges += 1;
        for it in [low, high] {
            let config = with_value(key.path, it).unwrap();
            assert_eq!(config.diff(&with("").unwrap()).all(), [key.path], "{it}");
        }
        let ((low, unit), (high, _)) = (number(low), number(high));
        for it in [low.checked_sub(1), Some(high + 1)].into_iter().flatten() {
            let problems = with_value(key.path, &format!("{it}{unit}")).unwrap_err();
            let [line] = &lines(&problems)[..] else {
                panic!("{problems:?}");
            };
            let of = format!(
                "{}: cannot be `{it}{unit}`: write {} from ",
                key.path, key.form
            );
            assert!(line.contains(&of), "{line}");
        }
    }
    assert_eq!(n_ranges, 23, "of the keys that have one");
}

#[test]
fn each_key_that_changes_is_named_alone_and_by_when_it_is_taken_up() {
    let default = with("").unwrap();
    assert_eq!(default.diff(&default), Diff::default());
    let mut live = Vec::new();
    for (path, value) in [
        ("store.bytes", "1Mi"),
        ("store.recordsPerObject", "1"),
        ("store.objects", "1"),
        ("store.timeToLive", "1h"),
        ("store.noteBytes", "1Ki"),
        ("outcomes.bytes", "1Mi"),
        ("watch.timeout", "1m"),
        ("watch.listDeadline", "1s"),
        ("watch.startDeadline", "1s"),
        ("watch.backoffMax", "2s"),
        ("watch.pageSize", "1"),
        ("watch.lists", "1"),
        ("watch.pagesBytes", "1Mi"),
        ("watch.lineBytes", "1Mi"),
        ("workers", "1"),
        ("limits", "{tables: 1}"),
        ("admin.listen", "0.0.0.0:8081"),
        ("changes.stdout", "false"),
        ("log.level", "debug"),
        ("log.format", "json"),
    ] {
        let next = with_value(path, value).unwrap();
        for diff in [default.diff(&next), next.diff(&default)] {
            assert_eq!(diff.all(), [path], "{value}");
            live.extend(diff.live);
        }
    }
    live.dedup();
    assert_eq!(
        live,
        [
            "store.bytes",
            "store.recordsPerObject",
            "store.objects",
            "store.timeToLive",
            "outcomes.bytes",
            "log.level",
        ]
    );
}

#[test]
fn the_same_said_in_other_words_is_no_change() {
    let one = with("store: {bytes: 256Mi, timeToLive: 65m}\nlimits: {tables: 20}").unwrap();
    let other = with("store: {bytes: 268435456, timeToLive: 1h5m}").unwrap();
    assert_eq!(one, other);
    assert_eq!(one.diff(&other), Diff::default());
}

#[track_caller]
fn check_changed_scope(scope: &str, want: &[&str]) {
    let next = Config::parse(format!("scope: {scope}\n{PLUGINS}").as_bytes()).unwrap();
    let diff = with("").unwrap().diff(&next);
    assert_eq!(diff.restart, want, "{scope}");
    assert!(diff.live.is_empty());
}

#[test]
fn a_changed_scope_needs_a_restart() {
    check_changed_scope("{namespaces: [team-a]}", &[]);
    check_changed_scope("{namespaces: [team-b]}", &["scope.namespaces"]);
    check_changed_scope("{namespaces: [team-a], kinds: [Job]}", &["scope.kinds"]);
    check_changed_scope(
        "{namespaces: [team-a], clusterScopedKinds: [Queue]}",
        &["scope.clusterScopedKinds"],
    );
    check_changed_scope(
        "{cluster: {}}",
        &[
            "scope.namespaces",
            "scope.cluster.include",
            "scope.cluster.exclude",
        ],
    );
    let moved = "scope: {namespaces: [team-a]}\nplugins: {directory: /elsewhere, order: [a]}";
    let diff = with("")
        .unwrap()
        .diff(&Config::parse(moved.as_bytes()).unwrap());
    assert_eq!(diff.restart, ["plugins.directory", "plugins.order"]);
}

impl Diff {
    fn all(&self) -> Vec<&'static str> {
        [&self.live[..], &self.restart[..]].concat()
    }
}

fn set<T: std::str::FromStr + Ord>(names: &[&str]) -> BTreeSet<T>
where
    T::Err: fmt::Debug,
{
    names.iter().map(|it| it.parse().unwrap()).collect()
}
