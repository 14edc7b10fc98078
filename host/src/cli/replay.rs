//! `portent replay`.

use std::{
    io::{self, IsTerminal as _},
    num::NonZeroUsize,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    thread,
};

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use jiff::tz::TimeZone;

use super::{LimitArgs, Output, eprintln_lossy};
use crate::{
    output::Framing,
    plugins::PluginSet,
    replay::{
        self, Bounds, spill,
        table::{Clock, Digest, ROWS_MAX, Style},
    },
    sandbox::{Limits, Sandbox, on_guest_stack},
    text::Visible,
};

mod ahead;
mod intake;
mod progress;
mod sink;

use intake::{Intake, Scope};
use progress::Progress;
use sink::{Changes, Only, Sink};

/// Classify recorded Events, with no cluster.
///
/// Reads what `kubectl get events -A -o json` (or `-o yaml`) prints, JSON lines of
/// Events, or watch frames, of core/v1 or events.k8s.io/v1, plain or compressed
/// with gzip or zstd, from files, folders or standard input, and prints what the
/// plugins say of it. What cannot be read is named on stderr, and the rest is
/// classified.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kubectl get events -A -o json | portent replay -
  portent replay --plugins target/plugins demo/recording.json
  portent replay must-gather/ --namespace ml-team --only findings
  portent replay events.json --pods pods.json --only findings
  portent replay events.json --failure 137 -o json | jq '.[].outcome.verdict'
  portent replay -o jsonl events.json.gz | jq 'select(.outcome.findings | length > 0)'
  kubectl get events -A -w -o json --output-watch-events | portent replay --changes -o jsonl -

Exit codes:
  0    done
  2    not done, or with --strict: not all of it could be read and classified
  130  interrupted by Ctrl-C: what there was until then is printed")]
pub(super) struct Replay {
    /// The recordings: files, or folders that hold some; `-` is standard input.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The folder with the plugins: NAME.wasm, and NAME.yaml for its settings.
    #[arg(
        long,
        value_name = "DIR",
        env = "PORTENT_PLUGINS",
        default_value = "plugins"
    )]
    plugins: PathBuf,
    /// How to print.
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
    /// Print what changed, in order, rather than what is so at the end.
    #[arg(long)]
    changes: bool,
    /// Exit with 2 if anything could not be read, loaded or classified.
    #[arg(long)]
    strict: bool,
    /// Say nothing on stderr but what went wrong.
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    known: Known,
    /// Print only this part of what the plugins say.
    #[arg(long, value_enum)]
    only: Option<Only>,
    /// Consider only Events about this object, of whatever kind; may be repeated.
    #[arg(long = "object", value_name = "NAMESPACE/NAME")]
    objects: Vec<String>,
    /// Consider only Events of this namespace; may be repeated.
    #[arg(short, long = "namespace", value_name = "NAMESPACE")]
    namespaces: Vec<String>,
    /// How to write times in a table.
    #[arg(long, value_enum, default_value = "utc")]
    time: Time,
    /// Where results wait that do not fit in memory, and how much of them (bytes).
    #[arg(long, value_name = "DIR")]
    tmp: Option<PathBuf>,
    /// The most that may wait there, in bytes. What is over is dropped, and counted.
    #[arg(long, value_name = "BYTES", default_value_t = spill::Bounds::default().file_bytes)]
    tmp_bytes: u64,
    /// Bytes of records that are held at once. What is over is classified early,
    /// and comes in parts.
    #[arg(long, value_name = "BYTES", default_value_t = Bounds::default().store_bytes)]
    store_bytes: usize,
    /// Threads that classify; as many as there are processors unless set.
    #[arg(long, value_name = "N")]
    workers: Option<NonZeroUsize>,
    #[command(flatten)]
    limits: LimitArgs,
}

/// What is known beside the Events.
#[derive(Debug, Args)]
struct Known {
    /// What is known of pods, as `kubectl get pods -o json` prints it: their nodes, their
    /// owners, and how they failed. A failed pod is explained by what is said of its node
    /// too; may be repeated.
    #[arg(long = "pods", value_name = "FILE")]
    pods: Vec<PathBuf>,
    /// Take every object as failed with this code, so that verdicts are given: a pod that
    /// did fail when it did, anything else one second after its last Event was last seen.
    #[arg(long, value_name = "CODE")]
    failure: Option<String>,
    /// Print only what is said of this object and of the pods that it owns.
    #[arg(long, value_name = "NAMESPACE/KIND/NAME", requires = "pods")]
    owner: Option<String>,
}

impl Known {
    fn tell<W: io::Write>(
        &self,
        intake: &mut Intake<W>,
        labels: Vec<String>,
    ) -> anyhow::Result<()> {
        if let Some(code) = &self.failure {
            intake.assume_failure(code)?;
        }
        intake.read_pods(&self.pods, labels)?;
        match &self.owner {
            Some(owner) => intake.only_owned_by(owner),
            None => Ok(()),
        }
    }
}

/// How times are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Time {
    /// In UTC.
    Utc,
    /// In the time zone of this machine.
    Local,
    /// As the time before the newest that is shown.
    Relative,
}

impl Time {
    pub(super) fn clock(self) -> Clock {
        match self {
            Self::Utc => Clock::Utc,
            Self::Local => Clock::Zone(TimeZone::system()),
            Self::Relative => Clock::Relative,
        }
    }
}

/// Instances are pooled for 16 at once; more threads would wait for them.
const WORKERS_MAX: usize = 16;

impl Replay {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let Self {
            files,
            plugins,
            output,
            changes,
            strict,
            quiet,
            known,
            only,
            objects,
            namespaces,
            time,
            tmp,
            tmp_bytes,
            store_bytes,
            workers,
            limits,
        } = self;
        let workers = workers
            .unwrap_or_else(|| thread::available_parallelism().unwrap_or(NonZeroUsize::MIN))
            .min(NonZeroUsize::new(WORKERS_MAX).unwrap_or(NonZeroUsize::MIN));
        let limits = limits.limits()?;
        let scope = Scope::new(objects, namespaces)?;
        let clock = time.clock();
        let mut spill_bounds = spill::Bounds {
            file_bytes: tmp_bytes,
            ..spill::Bounds::default()
        };
        if let Some(tmp) = tmp {
            // Else it would show when most of the work is done.
            anyhow::ensure!(
                tmp.is_dir(),
                "--tmp {}: there is no such folder",
                tmp.display()
            );
            spill_bounds.folder = tmp;
        }
        let plugins = load(&plugins, &limits)?;
        let n_not_loaded = plugins.failed.len();

        let stdout = io::stdout();
        let style = style(stdout.is_terminal());
        let to = io::BufWriter::new(stdout.lock());
        let sink = match (changes, framing(output)) {
            (true, framing) => Sink::Changes(Changes::new(to, framing, clock)),
            (false, Some(framing)) => Sink::Json {
                to,
                framing,
                spill: spill::Spill::new(spill_bounds),
            },
            (false, None) => Sink::Table {
                to,
                style,
                clock,
                digest: Digest::new(ROWS_MAX),
            },
        };
        let bounds = Bounds {
            store_bytes,
            ..Bounds::default()
        };
        let labels = plugins.labels_read();
        let replay = replay::Replay::new(Arc::new(plugins), &limits, bounds, workers)
            .context("cannot start the worker threads")?;

        let interrupted = super::interrupt::watch()?;
        let mut intake = Intake::new(replay, sink::Filtered::new(sink, only), scope, interrupted);
        known.tell(&mut intake, labels)?;
        let progress = Progress::new(quiet);
        intake.read_all(&files, progress)?;
        let read = intake.finish()?;

        let was_interrupted = super::interrupt::is_set(interrupted);
        if read.n_items == 0 && 0 < read.n_problems_of_events && !was_interrupted {
            anyhow::bail!(
                "{} no Event that can be read; what is wanted is the JSON or YAML that `kubectl get \
                 events -A` prints with -o, JSON lines of Events, or watch frames",
                if files.len() == 1 {
                    "the input holds"
                } else {
                    "the inputs hold"
                }
            );
        }
        if read.n_items == 0 {
            eprintln_lossy(format_args!("no events"));
        } else if !quiet {
            read.summarise();
        }
        read.say_what_was_dropped();
        if was_interrupted {
            eprintln_lossy(format_args!(
                "interrupted: what is printed is what there was until then"
            ));
            return Ok(ExitCode::from(130));
        }
        let is_complete = n_not_loaded == 0 && read.is_complete();
        Ok(if strict && !is_complete {
            ExitCode::from(2)
        } else {
            ExitCode::SUCCESS
        })
    }
}

fn style(is_terminal: bool) -> Style {
    match (is_terminal, super::no_color()) {
        (true, false) => Style::Terminal,
        (true, true) => Style::Colourless,
        (false, _) => Style::Plain,
    }
}

fn framing(output: Output) -> Option<Framing> {
    match output {
        Output::Table => None,
        Output::Json => Some(Framing::Array),
        Output::Jsonl => Some(Framing::Lines),
    }
}

/// Loads the plugins of a folder, and says which it could not.
pub(super) fn load(folder: &Path, limits: &Limits) -> anyhow::Result<PluginSet> {
    let shown = Visible(&folder.display().to_string()).to_string();
    let sandbox = Sandbox::with(limits.clone(), super::compiler(), None)?;
    // Loading calls guests, too.
    let set = on_guest_stack(|| PluginSet::load(&sandbox, folder)).with_context(|| {
        format!(
            "cannot read the plugin folder {shown}; name one that holds NAME.wasm files with --plugins DIR"
        )
    })?;
    for (path, failure) in &set.failed {
        let path = path.display().to_string();
        eprintln_lossy(format_args!(
            "plugin not loaded: {}: {failure}",
            Visible(&path)
        ));
    }
    match (set.plugins.is_empty(), set.failed.is_empty()) {
        (false, _) => Ok(set),
        (true, true) => anyhow::bail!(
            "there is no plugin in {shown}: a plugin is a file NAME.wasm; name another folder with --plugins DIR"
        ),
        (true, false) => anyhow::bail!("none of the plugins in {shown} could be loaded"),
    }
}
