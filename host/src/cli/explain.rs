//! `portent explain`.

use std::{
    io::{self, IsTerminal as _, Write as _},
    path::PathBuf,
    process::ExitCode,
};

use anyhow::Context as _;
use clap::{Args, ValueEnum};

use super::{LimitArgs, eprintln_lossy, replay::Time, run::Server};
use crate::{
    explain::{
        Case, ask,
        json::Explained,
        print::{Look, print},
    },
    pods::{
        self, Pod,
        decode::{CODE_MAX_BYTES, WirePod},
    },
    record::{ObjectKey, Rejected},
    replay::input::{self, Item, Origin, Problem},
    scope::{Kind, Namespace},
    watch,
};

/// Explain one failure: what happened, whose fault it was, and what to do.
///
/// Asks the cluster for the pod, its Events, and those of its node and its owner, with
/// your own kubeconfig and rights; no server is needed, and nothing is changed. A right
/// that is missing hides what it is about, which is said. With --file it reads recordings
/// instead.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  portent explain pod/train-0 -n ml-team
  portent explain pod/train-0 -n ml-team --failure 137
  portent explain node/gke-a3-17 -o json
  portent explain pod/train-0 -n ml-team --file events.json --pods pods.json

It takes the right to get pods and to list events.events.k8s.io in the namespace, and to
list them in the namespace `default` for what is said of the node.

Exit codes:
  0    explained, or nothing to explain
  2    not done")]
pub(super) struct Explain {
    /// What is to be explained: pod/NAME, node/NAME, or Kind/NAME.
    #[arg(value_name = "KIND/NAME")]
    object: String,
    /// Its namespace; that of the kubeconfig's context unless said.
    #[arg(short, long, value_name = "NAMESPACE")]
    namespace: Option<String>,
    /// What it failed with, if you know better than its status.
    #[arg(long, value_name = "CODE")]
    failure: Option<String>,
    /// How to print.
    #[arg(short, long, value_enum, default_value = "text")]
    output: Output,
    /// How to write times.
    #[arg(long, value_enum, default_value = "utc")]
    time: Time,
    /// Recorded Events, instead of a cluster's; may be repeated, `-` is standard input.
    #[arg(long = "file", value_name = "FILE", help_heading = "Recordings")]
    files: Vec<PathBuf>,
    /// Recorded pods, as `kubectl get pods -o json` prints them; may be repeated.
    #[arg(
        long = "pods",
        value_name = "FILE",
        requires = "files",
        help_heading = "Recordings"
    )]
    pods: Vec<PathBuf>,
    /// The folder with the plugins: NAME.wasm, and NAME.yaml for its settings.
    #[arg(
        long,
        value_name = "DIR",
        env = "PORTENT_PLUGINS",
        default_value = "plugins"
    )]
    plugins: PathBuf,
    #[command(flatten)]
    server: Server,
    #[command(flatten)]
    limits: LimitArgs,
}

/// How an explanation is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    /// For people.
    Text,
    /// One JSON object.
    Json,
}

impl Explain {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let (kind, name) = self.kind_and_name()?;
        if let Some(code) = &self.failure {
            anyhow::ensure!(
                (1..=CODE_MAX_BYTES).contains(&code.len()),
                "--failure: a code has between 1 and {CODE_MAX_BYTES} bytes, for example OOMKilled or 137"
            );
        }
        let limits = self.limits.limits()?;
        let plugins = super::replay::load(&self.plugins, &limits)?;
        let labels = plugins.labels_read();
        let case = |namespace: &str| {
            let namespace = if kind == "Node" { "" } else { namespace };
            let object = ObjectKey::new(namespace, &kind, &name);
            let object = object.context("a name or a namespace is too long")?;
            let case = Case::new(object, self.failure.as_deref(), plugins, &limits);
            case.context("cannot start the worker threads")
        };
        let namespace = self.namespace.as_deref();
        if let Some(it) = namespace {
            it.parse::<Namespace>().context("--namespace")?;
        }

        let case = if self.files.is_empty() {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .context("cannot start")?;
            runtime.block_on(async {
                let client = watch::connect(&self.server.address()).await?;
                let default = client.default_namespace().to_owned();
                let mut case = case(namespace.unwrap_or(&default))?;
                ask(&mut case, &client, &labels).await?;
                Ok::<_, anyhow::Error>(case)
            })?
        } else {
            let mut recorded = Recorded {
                case: case(namespace.unwrap_or("default"))?,
                labels,
                name: String::new(),
                n_read: 0,
                n_problems: 0,
            };
            let of_pods = "Pod that can be read; what is wanted is what `kubectl get pods -A` prints with \
                           -o json or -o yaml";
            recorded.read("--pods", &self.pods, Origin::of_pods, of_pods)?;
            recorded.hide_pod(self.pods.is_empty());
            let of_events = "Event that can be read; what is wanted is what `kubectl get events -A` prints \
                             with -o json or -o yaml, or watch frames";
            recorded.read("--file", &self.files, |it| it, of_events)?;
            recorded.say_what_is_not_named();
            recorded.case
        };

        let explanation = case.explain();
        let stdout = io::stdout();
        let look = Look {
            is_coloured: stdout.is_terminal() && !super::no_color(),
            clock: self.time.clock(),
        };
        let mut to = io::BufWriter::new(stdout.lock());
        match self.output {
            Output::Text => print(&mut to, &explanation, &look)?,
            Output::Json => {
                serde_json::to_writer_pretty(&mut to, &Explained::new(&explanation))?;
                writeln!(to)?;
            }
        }
        to.flush()?;
        Ok(ExitCode::SUCCESS)
    }

    /// The kind as Kubernetes spells it.
    fn kind_and_name(&self) -> anyhow::Result<(String, String)> {
        let of = &self.object;
        let (kind, name) = of.split_once('/').unwrap_or(("pod", of));
        let kind = match kind {
            "pod" | "pods" | "po" => "Pod",
            "node" | "nodes" | "no" => "Node",
            it => it,
        };
        let kind: Kind = kind.parse().with_context(|| {
            format!("{of}: write pod/NAME, node/NAME, or the kind as its manifest has it, as in Job/NAME")
        })?;
        let is_name = !name.is_empty() && name.bytes().all(is_of_name);
        anyhow::ensure!(
            is_name && !matches!(name, "." | ".."),
            "{of}: a name has letters, digits, `-`, `.` and `:`, for example pod/train-0"
        );
        Ok((kind.as_str().to_owned(), name.to_owned()))
    }
}

/// What a name of an object may have: it becomes a part of a path. Those of most are DNS
/// subdomains; some kinds take more.
fn is_of_name(it: u8) -> bool {
    it.is_ascii_alphanumeric() || b"-.:_".contains(&it)
}

/// Problems that are named one by one; the rest is counted.
const PROBLEMS_NAMED: u64 = 20;

/// Takes what is recorded.
struct Recorded {
    case: Case,
    labels: Vec<String>,
    /// What is being read.
    name: String,
    /// Pods and Events that could be read.
    n_read: u64,
    /// What could not be, or was refused.
    n_problems: u64,
}

impl Recorded {
    fn read(
        &mut self,
        argument: &str,
        paths: &[PathBuf],
        origin: impl Fn(Origin) -> Origin,
        wanted: &str,
    ) -> anyhow::Result<()> {
        for path in paths {
            let (n_read, n_problems) = (self.n_read, self.n_problems);
            let sources = input::sources(std::slice::from_ref(path));
            for source in &sources.with_context(|| argument.to_owned())? {
                source.name().clone_into(&mut self.name);
                let opened = source.open();
                let read = opened.and_then(|it| input::read(it, self, origin(source.origin())));
                read.with_context(|| format!("{argument}: cannot read {}", self.name))?;
            }
            anyhow::ensure!(
                n_read < self.n_read || n_problems == self.n_problems,
                "{argument} {}: it holds no {wanted}",
                self.name
            );
        }
        Ok(())
    }

    /// Says so if it is a pod, and not known.
    fn hide_pod(&mut self, is_none_given: bool) {
        let object = self.case.object();
        if object.kind() != "Pod" || self.case.pod().is_some() {
            return;
        }
        let why = if is_none_given {
            "no --pods is given, which its node, its owner and its failure would be known by"
        } else {
            "it is not in --pods, which its node, its owner and its failure would be known by"
        };
        let what = format!("the pod {object}");
        self.case.hide(what, why.to_owned());
    }

    fn say_what_is_not_named(&self) {
        if PROBLEMS_NAMED < self.n_problems {
            let more = self.n_problems - PROBLEMS_NAMED;
            eprintln_lossy(format_args!(
                "{more} more lines or items could not be read or were refused"
            ));
        }
    }
}

impl input::Reader for Recorded {
    fn item(&mut self, item: Item<'_>) -> Result<(), Rejected> {
        self.n_read += 1;
        match item {
            Item::Put(event) => self.case.put(&event),
            // It was said, and that it expired is no reason to forget it.
            Item::Deleted(_) => Ok(()),
        }
    }

    fn pod(&mut self, pod: WirePod<'_>) -> Result<(), pods::decode::Rejected> {
        let (object, pod) = Pod::pare_down(&pod, &self.labels)?;
        self.n_read += 1;
        self.case.put_pod(&object, pod);
        Ok(())
    }

    fn problem(&mut self, problem: Problem) {
        self.n_problems += 1;
        if self.n_problems <= PROBLEMS_NAMED {
            eprintln_lossy(format_args!("{}: {problem}", self.name));
        }
    }

    fn refused(&mut self, problem: Problem) {
        self.problem(problem);
    }

    fn foreign(&mut self) {}

    fn is_stopped(&self) -> bool {
        false
    }
}
