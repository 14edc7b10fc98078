//! From the tree to a configuration: every key is looked at, whatever is wrong
//! with the others.

use std::{collections::BTreeMap, fmt::Display, ops::RangeInclusive, path::PathBuf, str::FromStr};

use super::{
    AdminConfig, ChangesConfig, Config, LogConfig, OutcomesConfig, PluginsConfig, PodsConfig,
    QuarantineConfig, StoreConfig, WatchConfig,
    keys::{Key, WORKERS, joined, keys, names_in, plugins, pods},
    problems::Problems,
    value::Value,
};
use crate::{
    sandbox::{Limits, is_plugin_name},
    scope::{LabelSelector, Reach, Scope, ScopeError},
    yaml::{Node, What},
};

pub(super) fn config(root: &Node) -> Result<Config, Problems> {
    let mut reader = Reader {
        root,
        problems: Problems::default(),
    };
    reader.check_keys();
    // What is missing in a text that has no keys need not be told one by one.
    if !matches!(root.what, What::Mapping(_) | What::Nothing) {
        return Err(reader.problems);
    }
    let scope = reader.scope();
    let plugins = reader.plugins();
    let pods = reader.pods();
    let store = StoreConfig::read(&mut reader);
    let outcomes = OutcomesConfig::read(&mut reader);
    let watch = WatchConfig::read(&mut reader);
    let is_set = root.at("workers").is_some();
    let workers = is_set.then(|| reader.value("workers", *WORKERS.start(), Some(&WORKERS)));
    let limits = reader.limits();
    let admin = AdminConfig::read(&mut reader);
    let changes = ChangesConfig::read(&mut reader);
    let log = LogConfig::read(&mut reader);
    let problems = reader.problems;
    match (scope, plugins) {
        (Some(scope), Some(plugins)) if problems.n() == 0 => Ok(Config {
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
        }),
        _ => Err(problems),
    }
}

/// Reads keys by their paths, and gathers what is wrong.
pub(super) struct Reader<'a> {
    root: &'a Node,
    problems: Problems,
}

impl Reader<'_> {
    /// The value of a key; its default if it is not there, or no good.
    pub(super) fn value<T: Value>(
        &mut self,
        path: &str,
        default: T,
        range: Option<&RangeInclusive<T>>,
    ) -> T {
        let Some(node) = self.root.at(path) else {
            return default;
        };
        let read = T::read(node).filter(|it| range.is_none_or(|range| range.contains(it)));
        read.unwrap_or_else(|| {
            let range =
                range.map(|it| format!(" from {} to {}", it.start().show(), it.end().show()));
            let example = (!T::IS_CHOICE).then(|| format!(", for example `{}`", default.show()));
            let what = format!(
                "{}: write {}{}{}",
                node.not_this(),
                T::form(),
                range.unwrap_or_default(),
                example.unwrap_or_default()
            );
            self.problems.add(node.place, path, &what);
            default
        })
    }

    /// Looks for keys that there are not, are there twice, or hold no keys though
    /// they should.
    fn check_keys(&mut self) {
        let mut to_check = vec![(String::new(), self.root)];
        while let Some((path, node)) = to_check.pop() {
            let names = names_in(&path);
            let entries = match &node.what {
                What::Mapping(entries) => entries,
                // A section of which everything is commented out.
                What::Nothing => continue,
                _ => {
                    let what = format!(
                        "{}: write keys and their values, each on a line; the keys are {}",
                        node.not_this(),
                        listed(&names)
                    );
                    self.problems.add(node.place, &path, &what);
                    continue;
                }
            };
            let mut lines = BTreeMap::new();
            for (key, value) in entries {
                let name = key.scalar().unwrap_or_default();
                let full = joined(&path, &name);
                if !names.contains(&&*name) {
                    let what = unknown(keys(), &name, &names);
                    self.problems.add(key.place, &full, &what);
                } else if let Some(line) = lines.insert(name, key.place.line) {
                    let what = format!("is there twice, first in line {line}: keep one");
                    self.problems.add(key.place, &full, &what);
                } else if keys().iter().all(|it| it.path != full) {
                    to_check.push((full, value));
                }
            }
        }
    }

    fn scope(&mut self) -> Option<Scope> {
        const PATH: &str = "scope";
        let node = match self.root.at(PATH) {
            Some(node) if !matches!(node.what, What::Nothing) => node,
            _ => {
                let place = self.root.entry(PATH).map_or(self.root.place, |it| it.0);
                let what = "is missing: write `scope: {namespaces: [my-namespace]}`, or \
                            `scope: {cluster: {}}` for all namespaces";
                self.problems.add(place, PATH, what);
                return None;
            }
        };
        let n_before = self.problems.n();
        let namespaces = self.names("scope.namespaces", FromStr::from_str);
        let include = self.names("scope.cluster.include", FromStr::from_str);
        let exclude = self.names("scope.cluster.exclude", FromStr::from_str);
        let kinds = self.names("scope.kinds", FromStr::from_str);
        let cluster_scoped = self.names("scope.clusterScopedKinds", FromStr::from_str);
        let cluster = self.root.entry("scope.cluster");
        let reach = match (namespaces, cluster) {
            (Some(namespaces), None) => Reach::Namespaces(namespaces.into_iter().collect()),
            (None, Some((_, cluster))) => {
                if matches!(cluster.what, What::Nothing) {
                    let what = "has no value: write `{}` for all namespaces, or globs in `include`";
                    self.problems.add(cluster.place, "scope.cluster", what);
                }
                Reach::Cluster {
                    include: include.unwrap_or_default(),
                    exclude: exclude.unwrap_or_default(),
                }
            }
            (Some(_), Some((place, _))) => {
                let what = "is set, and so is `namespaces`: keep one of them";
                self.problems.add(place, "scope.cluster", what);
                return None;
            }
            (None, None) => {
                if matches!(node.what, What::Mapping(_)) {
                    let what = "says neither `namespaces` nor `cluster`: write \
                                `namespaces: [my-namespace]`, or `cluster: {}` for all";
                    self.problems.add(node.place, PATH, what);
                }
                return None;
            }
        };
        if n_before < self.problems.n() {
            return None;
        }
        let kinds = kinds.map_or_else(
            || "Pod".parse().into_iter().collect(),
            |it| it.into_iter().collect(),
        );
        let cluster_scoped = cluster_scoped.into_iter().flatten().collect();
        Scope::new(reach, kinds, cluster_scoped)
            .map_err(|err| {
                let path = match err {
                    ScopeError::NoKind => "scope.kinds",
                    ScopeError::NoNamespace => "scope.namespaces",
                };
                let place = self.root.at(path).map_or(node.place, |it| it.place);
                self.problems.add(place, path, &err.to_string());
            })
            .ok()
    }

    fn plugins(&mut self) -> Option<PluginsConfig> {
        const PATH: &str = "plugins.directory";
        let order = self.names("plugins.order", |name| {
            if is_plugin_name(name) {
                Ok(name.to_owned())
            } else {
                Err(format!(
                    "`{name}` is the name of no plugin: write lower-case letters, digits and `-`, \
                     beginning with a letter, as `portent plugin check` prints it"
                ))
            }
        });
        let pins = self.names("plugins.pins", FromStr::from_str);
        let poll = self.value("plugins.poll", plugins::POLL_DEFAULT, Some(&plugins::POLL));
        let bytes = self.value(
            "plugins.bytes",
            plugins::BYTES_DEFAULT,
            Some(&plugins::BYTES),
        );
        let QuarantineConfig { pause, pause_max } = QuarantineConfig::default();
        let quarantine = QuarantineConfig {
            pause: self.value("plugins.quarantine.pause", pause, Some(&plugins::PAUSE)),
            pause_max: self.value(
                "plugins.quarantine.pauseMax",
                pause_max,
                Some(&plugins::PAUSE),
            ),
        };
        let cache = self.cache();
        let directory = self.root.at(PATH);
        if let Some(What::Text(it)) = directory.map(|it| &it.what)
            && !it.is_empty()
        {
            return Some(PluginsConfig {
                directory: PathBuf::from(it),
                order: order.unwrap_or_default(),
                pins: pins.unwrap_or_default(),
                poll,
                bytes,
                quarantine,
                cache,
            });
        }
        let not = directory.map_or_else(|| "is missing".to_owned(), Node::not_this);
        let known = ["plugins", PATH].map(|it| self.root.entry(it).map(|it| it.0));
        let place = known.into_iter().flatten().next_back();
        let what = format!("{not}: write the folder of the plugins, for example `/plugins`");
        self.problems
            .add(place.unwrap_or(self.root.place), PATH, &what);
        None
    }

    fn cache(&mut self) -> Option<PathBuf> {
        const PATH: &str = "plugins.cache";
        let node = self.root.at(PATH)?;
        if let What::Text(it) = &node.what
            && !it.is_empty()
        {
            return Some(PathBuf::from(it));
        }
        let what = format!(
            "{}: write a folder that is nobody else's, for example `/var/cache/portent/plugins`",
            node.not_this()
        );
        self.problems.add(node.place, PATH, &what);
        None
    }

    fn pods(&mut self) -> PodsConfig {
        const LABELS: &str = "pods.labels";
        let default = PodsConfig::default();
        let selector = self.selector();
        let labels = self.names(LABELS, FromStr::from_str).unwrap_or_default();
        if pods::LABELS_MAX < labels.len()
            && let Some(node) = self.root.at(LABELS)
        {
            let what = format!("are {}: write at most {}", labels.len(), pods::LABELS_MAX);
            self.problems.add(node.place, LABELS, &what);
        }
        PodsConfig {
            selector,
            labels,
            grace: self.value("pods.grace", default.grace, Some(&pods::GRACE)),
            wait: self.value("pods.wait", default.wait, Some(&pods::WAIT)),
            max: self.value("pods.max", default.max, Some(&pods::MAX)),
        }
    }

    fn selector(&mut self) -> Option<LabelSelector> {
        const PATH: &str = "pods.selector";
        let node = self.root.at(PATH)?;
        let what = match &node.what {
            What::Text(text) => match text.parse() {
                Ok(selector) => return Some(selector),
                Err(err) => format!("is no label selector: {err}"),
            },
            _ => format!(
                "{}: write a label selector in quotes, for example `\"app=trainer\"`, or `\"\"` for all \
                 Pods of the scope",
                node.not_this()
            ),
        };
        self.problems.add(node.place, PATH, &what);
        None
    }

    fn limits(&mut self) -> Limits {
        const PATH: &str = "limits";
        let mut limits = Limits::default();
        let entries = match self.root.at(PATH) {
            None => return limits,
            Some(node) => match &node.what {
                What::Nothing => return limits,
                What::Mapping(entries) => entries,
                _ => {
                    let what = format!(
                        "{}: write names of limits and their values, for example `{{tables: 20}}`",
                        node.not_this()
                    );
                    self.problems.add(node.place, PATH, &what);
                    return limits;
                }
            },
        };
        let names: Vec<_> = limits.values().into_iter().map(|(name, _)| name).collect();
        let mut lines = BTreeMap::new();
        for (key, value) in entries {
            let name = key.scalar().unwrap_or_default();
            let path = joined(PATH, &name);
            if !names.contains(&&*name) {
                let what = unknown(&[], &name, &names);
                self.problems.add(key.place, &path, &what);
                continue;
            }
            if let Some(line) = lines.insert(name.clone(), key.place.line) {
                let what = format!("is there twice, first in line {line}: keep one");
                self.problems.add(key.place, &path, &what);
            }
            let text = value.scalar().unwrap_or_default();
            if let Err(err) = limits.set(&name, &text) {
                self.problems.add(value.place, &path, &err.to_string());
            }
        }
        limits
    }

    /// A list of names, each at most once; none if the key is not there. What is
    /// wrong with one of them is told, and the others are read.
    fn names<T, E: Display>(
        &mut self,
        path: &str,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Option<Vec<T>> {
        let node = self.root.at(path)?;
        let What::List(items) = &node.what else {
            let what = format!(
                "{}: write a list, for example `[{}]`",
                node.not_this(),
                node.scalar().unwrap_or_else(|| "a, b".to_owned())
            );
            self.problems.add(node.place, path, &what);
            return Some(Vec::new());
        };
        let mut names = Vec::new();
        let mut lines = BTreeMap::new();
        for item in items {
            let what = match &item.what {
                What::Text(text) => match (lines.insert(text, item.place.line), parse(text)) {
                    (None, Ok(name)) => {
                        names.push(name);
                        continue;
                    }
                    (Some(line), _) => {
                        format!("`{text}` is there twice, first in line {line}: keep one")
                    }
                    (None, Err(err)) => err.to_string(),
                },
                What::Number(_) | What::Bool(_) => {
                    format!("{}, which is no text: put it in quotes", item.not_this())
                }
                _ => format!("{}: write a name", item.not_this()),
            };
            self.problems.add(item.place, path, &what);
        }
        Some(names)
    }
}

fn listed(names: &[&str]) -> String {
    let names: Vec<_> = names.iter().map(|it| format!("`{it}`")).collect();
    names.join(", ")
}

/// What to say of a key that is none of these.
fn unknown(keys: &[Key], name: &str, names: &[&str]) -> String {
    if let Some(near) = near(name, names) {
        return format!("there is no such key: write `{near}`");
    }
    let elsewhere = keys
        .iter()
        .find(|it| it.path.rsplit('.').next() == Some(name));
    if let Some((section, _)) = elsewhere.and_then(|it| it.path.rsplit_once('.')) {
        return format!("there is no such key here: write it below `{section}`");
    }
    format!("there is no such key: the keys are {}", listed(names))
}

/// The name that was most likely meant: in other letters, or a few typing errors away.
fn near<'a>(name: &str, names: &[&'a str]) -> Option<&'a str> {
    // No name is longer, and what is takes no time.
    const LONGEST: usize = 40;
    if LONGEST < name.len() {
        return None;
    }
    let letters = |it: &str| -> Vec<char> {
        let letters = it.chars().filter(|it| it.is_alphanumeric());
        letters.map(|it| it.to_ascii_lowercase()).collect()
    };
    let name = letters(name);
    names
        .iter()
        .map(|it| (n_edits(&name, &letters(it)), *it))
        .min()
        .filter(|(n, it)| *n <= it.len().div_ceil(3))
        .map(|(_, it)| it)
}

/// How many letters must be put in, taken out or changed to make one of the other.
fn n_edits(one: &[char], other: &[char]) -> usize {
    let mut row: Vec<_> = (0..=other.len()).collect();
    for (idx, from) in one.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = idx + 1;
        for (column, to) in other.iter().enumerate() {
            let changed = diagonal + usize::from(from != to);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}
