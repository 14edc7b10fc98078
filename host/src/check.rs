//! Whether a configuration will work on a cluster, asked before it has to.
//!
//! Every check says what it looked at, and when it fails, what to change. None
//! changes anything, and none needs a permission that the run does not: what may
//! be done is asked of the server itself (self-reviews), which everyone may.

use std::{fmt, time::Duration};

use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::{
    Api, Client,
    api::PostParams,
    core::discovery::v2::{APIResourceDiscovery, APIVersionDiscovery},
};
use schemars::JsonSchema;
use serde::Serialize;
use tokio::time::timeout;

use crate::{
    config::Config,
    plugins::{Plugin, PluginSet},
    record::UnixMs,
    scope::{Kind, LabelSelector, Namespace, Watch},
    text::{Visible, cut, in_a_line},
    watch::{Failure, Inspection, Selection, inspect},
};

/// How a check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It is as it should be.
    Ok,
    /// It could not be told.
    Unproven,
    /// It works, and could bite.
    Warning,
    /// It will not work.
    Failed,
}

impl Verdict {
    /// As it stands in output.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Unproven => "unproven",
            Self::Warning => "warning",
            Self::Failed => "failed",
        }
    }
}

/// What one check came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Check {
    /// How it ended.
    pub verdict: Verdict,
    /// What was looked at.
    pub what: String,
    /// What was seen, and what to change; bounded, on one line.
    pub said: String,
}

/// How long one question may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// Bytes of what is said of one check.
const SAID_MAX: usize = 1_024;

/// `events.k8s.io/v1`, with field selectors, is there since this minor version.
const MINOR_MIN: u32 = 19;

impl Check {
    fn new(verdict: Verdict, what: impl fmt::Display, said: impl fmt::Display) -> Self {
        Self {
            verdict,
            what: Visible(cut(&what.to_string(), SAID_MAX)).to_string(),
            said: Visible(cut(&said.to_string(), SAID_MAX)).to_string(),
        }
    }
}

/// What of a configuration can be told without a cluster.
#[must_use]
pub fn offline(config: &Config, plugins: &PluginSet) -> Vec<Check> {
    let mut checks = Vec::new();
    if let Some(warning) = config.scope.warning() {
        checks.push(Check::new(Verdict::Warning, "scope", warning));
    }
    checks.push(pods(config.pods.selector.as_ref()));
    for it in &plugins.plugins {
        let of = &it.provenance;
        checks.push(Check::new(
            Verdict::Ok,
            format_args!("plugin {}", of.name),
            format_args!(
                "version {}, {}{}",
                of.version,
                of.digest,
                unseen(config, it)
            ),
        ));
    }
    for (path, failure) in &plugins.failed {
        checks.push(Check::new(
            Verdict::Failed,
            format_args!("plugin {}", path.display()),
            failure,
        ));
    }
    if plugins.plugins.is_empty() && plugins.failed.is_empty() {
        checks.push(Check::new(
            Verdict::Warning,
            "plugins",
            format_args!(
                "there is none in {}: nothing would be watched; put a file NAME.wasm there",
                config.plugins.directory.display()
            ),
        ));
    }
    checks
}

/// Which kinds a plugin would read about, and the scope does not have.
fn unseen(config: &Config, plugin: &Plugin) -> String {
    let interests = plugin.description().interests.iter();
    let mut kinds: Vec<_> = interests.flat_map(|it| &it.kinds).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds.retain(|it| !config.scope.kinds().contains(it.as_str()));
    if kinds.is_empty() {
        return String::new();
    }
    let kinds: Vec<_> = kinds.into_iter().map(String::as_str).collect();
    format!(
        "; it reads what is said of {} too, if scope.kinds has them",
        kinds.join(", ")
    )
}

/// Which Pods are watched, and what it means if none are.
fn pods(selector: Option<&LabelSelector>) -> Check {
    let said = match selector {
        None => {
            "pods.selector is not set, so no Pod is asked for: what is kept grows with the Events of the \
             scope, not with the workload"
                .to_owned()
        }
        Some(it) if it.is_all() => "all of the scope are watched".to_owned(),
        Some(it) => format!("those of the scope that `{it}` selects are watched"),
    };
    Check::new(Verdict::Ok, "pods", said)
}

/// What has to be asked of the cluster. `now` is by the wall clock.
pub async fn online(config: &Config, client: &Client, now: UnixMs) -> Vec<Check> {
    let version = version(client).await;
    let is_reached = version.verdict != Verdict::Failed;
    let mut checks = vec![version];
    if !is_reached {
        // All else would say the same once more.
        return checks;
    }
    checks.extend(kinds(config, client).await);
    for it in config.scope.watches() {
        let mut may_list = true;
        for verb in VERBS {
            let check = permission(client, it.namespace.as_ref(), EVENTS, verb).await;
            may_list &= check.verdict == Verdict::Ok || verb != "list";
            checks.push(check);
        }
        if may_list {
            checks.extend(events(config, client, &it, now).await);
        }
    }
    if let Some(selector) = &config.pods.selector {
        for it in config.scope.pod_watches(selector) {
            for verb in VERBS {
                checks.push(permission(client, it.namespace.as_ref(), PODS, verb).await);
            }
        }
    }
    checks
}

async fn version(client: &Client) -> Check {
    let what = "version of the server";
    match timeout(PATIENCE, client.apiserver_version()).await {
        Ok(Ok(it)) => {
            let minor = it.minor.trim_end_matches('+').parse().unwrap_or(0);
            let is_known = it.major == "1" && MINOR_MIN <= minor;
            if is_known {
                Check::new(Verdict::Ok, what, it.git_version)
            } else {
                let said = format!(
                    "{}: events.k8s.io/v1 with field selectors comes with 1.{MINOR_MIN}",
                    it.git_version
                );
                Check::new(Verdict::Failed, what, said)
            }
        }
        Ok(Err(err)) => Check::new(Verdict::Failed, what, in_a_line(&err)),
        Err(_) => Check::new(
            Verdict::Failed,
            what,
            format!("no answer within {PATIENCE:?}"),
        ),
    }
}

/// Whether there are such kinds, and whether they have a namespace.
async fn kinds(config: &Config, client: &Client) -> Vec<Check> {
    let what = "kinds of the scope";
    let asked = async {
        let core = client.list_core_api_versions_aggregated().await?;
        let groups = client.list_api_groups_aggregated().await?;
        Ok::<_, kube::Error>([core.items, groups.items].concat())
    };
    let groups = match timeout(PATIENCE, asked).await {
        Ok(Ok(groups)) => groups,
        Ok(Err(err)) => return vec![Check::new(Verdict::Unproven, what, in_a_line(&err))],
        Err(_) => {
            let said = format!("no answer within {PATIENCE:?}");
            return vec![Check::new(Verdict::Unproven, what, said)];
        }
    };
    let resources: Vec<_> = groups
        .iter()
        .flat_map(|it| &it.versions)
        .flat_map(|APIVersionDiscovery { resources, .. }| resources)
        .collect();
    let of = |kind: &Kind| kind_check(config, kind, &resources);
    config.scope.kinds().iter().map(of).collect()
}

fn kind_check(config: &Config, kind: &Kind, resources: &[&APIResourceDiscovery]) -> Check {
    let what = format!("kind {kind}");
    let named = |name: &str| {
        let mut of = resources
            .iter()
            .filter(move |it| kind_of(it).eq_ignore_ascii_case(name));
        of.next()
    };
    let Some(found) = named(kind.as_str()) else {
        let said = "the server knows no such kind: nothing would ever be seen; mend scope.kinds";
        return Check::new(Verdict::Failed, what, said);
    };
    let spelt = kind_of(found);
    if spelt != kind.as_str() {
        let said = format!("the server spells it {spelt}: write that into scope.kinds");
        return Check::new(Verdict::Failed, what, said);
    }
    let is_cluster_scoped = found.scope.as_deref() == Some("Cluster");
    match (
        is_cluster_scoped,
        config.scope.cluster_scoped().contains(kind),
    ) {
        (true, false) => Check::new(
            Verdict::Failed,
            what,
            "it has no namespace, so its Events are in `default`: name it in scope.clusterScopedKinds",
        ),
        (false, true) => Check::new(
            Verdict::Failed,
            what,
            "it has a namespace, so its Events are there: take it out of scope.clusterScopedKinds",
        ),
        (true, true) => Check::new(Verdict::Ok, what, "without a namespace"),
        (false, false) => Check::new(Verdict::Ok, what, "in namespaces"),
    }
}

fn kind_of(resource: &APIResourceDiscovery) -> &str {
    let kind = resource.response_kind.as_ref();
    kind.and_then(|it| it.kind.as_deref()).unwrap_or_default()
}

/// What a watch does.
const VERBS: [&str; 2] = ["list", "watch"];

/// What may be permitted: how it is called, its group, and its resource.
type Permitted = (&'static str, &'static str, &'static str);

const EVENTS: Permitted = ("Events", "events.k8s.io", "events");

const PODS: Permitted = ("Pods", "", "pods");

/// Whether we may.
async fn permission(
    client: &Client,
    namespace: Option<&Namespace>,
    (name, group, resource): Permitted,
    verb: &str,
) -> Check {
    let place = match namespace {
        Some(namespace) => format!("in namespace {namespace}"),
        None => "in the whole cluster".to_owned(),
    };
    let what = format!("permission to {verb} {name} {place}");
    let review = SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(ResourceAttributes {
                group: Some(group.to_owned()),
                resource: Some(resource.to_owned()),
                verb: Some(verb.to_owned()),
                namespace: namespace.map(ToString::to_string),
                ..ResourceAttributes::default()
            }),
            ..SelfSubjectAccessReviewSpec::default()
        },
        ..SelfSubjectAccessReview::default()
    };
    let reviews = Api::<SelfSubjectAccessReview>::all(client.clone());
    let params = PostParams::default();
    match timeout(PATIENCE, reviews.create(&params, &review)).await {
        Ok(Ok(it)) if it.status.as_ref().is_some_and(|it| it.allowed) => {
            Check::new(Verdict::Ok, what, "granted")
        }
        Ok(Ok(_)) => {
            let rule = match namespace {
                Some(namespace) => format!("a Role in {namespace}"),
                None => "a ClusterRole".to_owned(),
            };
            let group = if group.is_empty() { "\"\"" } else { group };
            let said = format!(
                "not granted: bind our ServiceAccount to {rule} with apiGroups [{group}], resources \
                 [{resource}], verbs [list, watch]"
            );
            Check::new(Verdict::Failed, what, said)
        }
        Ok(Err(err)) => Check::new(Verdict::Unproven, what, in_a_line(&err)),
        Err(_) => Check::new(
            Verdict::Unproven,
            what,
            format!("no answer within {PATIENCE:?}"),
        ),
    }
}

/// Whether the selector selects, and how long the server keeps Events.
async fn events(config: &Config, client: &Client, watch: &Watch, now: UnixMs) -> Vec<Check> {
    let what = format!("field selector of {watch}");
    let failed = |said: &dyn fmt::Display| vec![Check::new(Verdict::Unproven, &what, said)];
    let seen: Result<Inspection, Failure> = match timeout(PATIENCE, inspect(client, watch)).await {
        Ok(seen) => seen,
        Err(_) => return failed(&format!("no answer within {PATIENCE:?}")),
    };
    let Inspection {
        selection,
        oldest_seen,
    } = match seen {
        Ok(seen) => seen,
        Err(failure) => return failed(&failure),
    };
    let selects = match selection {
        Selection::Proven => Check::new(
            Verdict::Ok,
            &what,
            "it selects an Event that it should, and not in another spelling",
        ),
        Selection::Unproven => Check::new(
            Verdict::Unproven,
            &what,
            "there is no Event yet to prove it on",
        ),
        Selection::Broken(said) => Check::new(Verdict::Failed, &what, said),
    };
    let mut checks = vec![selects];
    let ttl = config.store.time_to_live;
    let age = Duration::from_millis(now.saturating_sub(oldest_seen.unwrap_or(now)));
    let what = format!("time to live of {watch}");
    if ttl.get() < age {
        let minutes = age.as_secs() / 60;
        let said = format!(
            "the server has an Event that was last written {minutes}m ago, and we let go of it after {ttl}: \
             set store.timeToLive to the server's --event-ttl and 2m"
        );
        checks.push(Check::new(Verdict::Warning, what, said));
    }
    checks
}
