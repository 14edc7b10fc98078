//! `portent replay`.

use std::{
    fs,
    io::{self, IsTerminal as _, Read as _, Write},
    num::NonZeroUsize,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    thread,
};

use anyhow::Context as _;
use clap::Args;

use super::{LimitArgs, Output};
use crate::{
    outcome::Change,
    plugins::PluginSet,
    record::Rejected,
    replay::{
        self,
        input::{self, Item, Problem},
        output::{ChangeRecord, Element, Framing, Writer},
        table::{self, Style},
    },
    sandbox::Sandbox,
    text::Visible,
};

/// Classify recorded Events, with no cluster.
///
/// Reads what `kubectl get events -A -o json` prints, JSON lines of Events, or
/// watch frames, of core/v1 or events.k8s.io/v1, and prints what the plugins say
/// of it. What cannot be read is named on stderr, and the rest is classified.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kubectl get events -A -o json | portent replay -
  portent replay --plugins target/plugins demo/recording.json
  portent replay -o jsonl events.json | jq 'select(.outcome.findings | length > 0)'
  kubectl get events -A -w -o json --output-watch-events | portent replay --changes -o jsonl -

Exit codes:
  0  done; 2  not done, or with --strict: not all of it could be read and classified")]
pub(super) struct Replay {
    /// The recording; `-` is standard input.
    file: PathBuf,
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
    /// Threads that classify; as many as there are processors unless set.
    #[arg(long, value_name = "N")]
    workers: Option<NonZeroUsize>,
    #[command(flatten)]
    limits: LimitArgs,
}

/// Instances are pooled for 16 at once; more threads would wait for them.
const WORKERS_MAX: usize = 16;

impl Replay {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let Self {
            file,
            plugins,
            output,
            changes,
            strict,
            workers,
            limits,
        } = self;
        let workers =
            workers.unwrap_or_else(|| thread::available_parallelism().unwrap_or(NonZeroUsize::MIN));
        let workers = workers.min(NonZeroUsize::new(WORKERS_MAX).unwrap_or(NonZeroUsize::MIN));
        let limits = limits.limits()?;
        let plugins = load(&plugins, limits.clone())?;
        let n_not_loaded = plugins.failed.len();

        let name = if file.as_os_str() == "-" {
            "standard input".to_owned()
        } else {
            file.display().to_string()
        };
        let name = Visible(&name).to_string();
        let bytes = read_all(&file).with_context(|| format!("cannot read {name}"))?;

        let stdout = io::stdout();
        let is_terminal = stdout.is_terminal();
        let style = match (
            is_terminal,
            std::env::var_os("NO_COLOR").is_some_and(|it| !it.is_empty()),
        ) {
            (true, false) => Style::Terminal,
            (true, true) => Style::Colourless,
            (false, _) => Style::Plain,
        };
        let mut to = io::BufWriter::new(stdout.lock());
        let mut sink = changes.then(|| ChangeSink::new(output, &mut to));
        let mut replay = replay::Replay::new(Arc::new(plugins), &limits, workers)
            .context("cannot start the worker threads")?;
        let mut intake = Intake {
            replay: &mut replay,
            sink: sink.as_mut(),
            name: &name,
            n_items: 0,
            n_problems: 0,
            n_named: 0,
        };
        input::read(&bytes, &mut intake);
        intake.finish();
        let (n_items, n_problems) = (intake.n_items, intake.n_problems);
        if n_items == 0 && 0 < n_problems {
            anyhow::bail!(
                "{name} holds no Event that can be read; what is wanted is the JSON that \
                 `kubectl get events -A -o json` prints, JSON lines of Events, or watch frames"
            );
        }
        if n_items == 0 {
            eprintln_lossy(format_args!("no events in {name}"));
        }

        let held = replay.outcomes().sorted();
        match sink {
            Some(sink) => sink.finish()?,
            None => write_held(&mut to, &held, output, style, 0 < n_items)?,
        }
        to.flush()?;
        let n_failed = held.iter().filter(|(_, held)| held.error.is_some()).count();
        if 0 < n_items {
            summarise(&replay, n_problems, n_failed);
        }
        let is_complete = n_problems == 0
            && n_not_loaded == 0
            && n_failed == 0
            && replay.tally().n_rejected() == 0;
        Ok(if strict && !is_complete {
            ExitCode::from(2)
        } else {
            ExitCode::SUCCESS
        })
    }
}

/// Loads the plugins of a folder, and says which it could not.
fn load(folder: &Path, limits: crate::sandbox::Limits) -> anyhow::Result<PluginSet> {
    let shown = Visible(&folder.display().to_string()).to_string();
    let sandbox = Sandbox::new(limits)?;
    // Loading calls guests, too.
    let set = crate::sandbox::on_guest_stack(|| PluginSet::load(&sandbox, folder)).with_context(|| {
        format!("cannot read the plugin folder {shown}; name one that holds NAME.wasm files with --plugins DIR")
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

fn read_all(file: &Path) -> io::Result<Vec<u8>> {
    if file.as_os_str() != "-" {
        return fs::read(file);
    }
    let mut bytes = Vec::new();
    io::stdin().lock().read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Writes a line to stderr. That nobody reads it is no reason to stop.
fn eprintln_lossy(line: std::fmt::Arguments<'_>) {
    drop(writeln!(io::stderr(), "{line}"));
}

/// Takes what is read to the replay, and its changes to where they are printed.
struct Intake<'a, W: Write> {
    replay: &'a mut replay::Replay,
    sink: Option<&'a mut ChangeSink<W>>,
    name: &'a str,
    n_items: u64,
    n_problems: u64,
    n_named: u64,
}

/// Problems that are named one by one; the rest is counted.
const PROBLEMS_NAMED: u64 = 20;

impl<W: Write> input::Reader for Intake<'_, W> {
    fn item(&mut self, item: Item<'_>) -> Result<(), Rejected> {
        self.n_items += 1;
        let sink = &mut self.sink;
        let mut on_change = |change| {
            if let Some(sink) = sink {
                sink.write(&change);
            }
        };
        match item {
            Item::Put(event) => self.replay.put(&event, &mut on_change),
            Item::Deleted(event) => {
                self.replay.delete(&event, &mut on_change);
                Ok(())
            }
        }
    }

    fn problem(&mut self, problem: Problem) {
        self.n_problems += 1;
        self.name(&problem);
    }

    fn refused(&mut self, problem: Problem) {
        self.name(&problem);
    }
}

impl<W: Write> Intake<'_, W> {
    fn name(&mut self, problem: &Problem) {
        self.n_named += 1;
        if self.n_named <= PROBLEMS_NAMED {
            eprintln_lossy(format_args!("{}: {problem}", self.name));
        }
    }

    fn finish(&mut self) {
        let sink = &mut self.sink;
        self.replay.finish(&mut |change| {
            if let Some(sink) = sink {
                sink.write(&change);
            }
        });
        if PROBLEMS_NAMED < self.n_named {
            let more = self.n_named - PROBLEMS_NAMED;
            eprintln_lossy(format_args!(
                "{}: {more} more lines or items could not be read or were refused",
                self.name
            ));
        }
    }
}

/// Prints changes as they come.
enum ChangeSink<W: Write> {
    Table {
        to: W,
        failed: Option<io::Error>,
    },
    Json {
        to: Writer<W>,
        seq: u64,
        failed: Option<io::Error>,
    },
}

impl<W: Write> ChangeSink<W> {
    fn new(output: Output, to: W) -> Self {
        match framing(output) {
            None => Self::Table { to, failed: None },
            Some(framing) => Self::Json {
                to: Writer::new(to, framing),
                seq: 0,
                failed: None,
            },
        }
    }

    /// Prints a change. After an error nothing more is printed; it comes out of
    /// [`finish`](Self::finish).
    fn write(&mut self, change: &Change) {
        match self {
            Self::Table {
                failed: Some(_), ..
            }
            | Self::Json {
                failed: Some(_), ..
            } => {}
            Self::Table { to, failed } => *failed = table::write_change(to, change).err(),
            Self::Json { to, seq, failed } => {
                *seq += 1;
                *failed = to.write(&ChangeRecord::new(0, *seq, false, change)).err();
            }
        }
    }

    fn finish(self) -> io::Result<()> {
        match self {
            Self::Table {
                failed: Some(err), ..
            }
            | Self::Json {
                failed: Some(err), ..
            } => Err(err),
            Self::Table { mut to, .. } => to.flush(),
            Self::Json { to, .. } => to.finish(),
        }
    }
}

fn framing(output: Output) -> Option<Framing> {
    match output {
        Output::Table => None,
        Output::Json => Some(Framing::Array),
        Output::Jsonl => Some(Framing::Lines),
    }
}

fn write_held(
    to: &mut dyn Write,
    held: &[(crate::subject::SubjectKey, crate::outcome::Held)],
    output: Output,
    style: Style,
    has_events: bool,
) -> io::Result<()> {
    match framing(output) {
        None if has_events => table::write(to, held, style),
        None => Ok(()),
        Some(framing) => {
            let mut writer = Writer::new(to, framing);
            for (subject, held) in held {
                writer.write(&Element::new(subject, held))?;
            }
            writer.finish()
        }
    }
}

/// Says on stderr what was read and what became of it.
fn summarise(replay: &replay::Replay, n_problems: u64, n_failed: usize) {
    let (tally, totals) = (replay.tally(), replay.store().totals());
    let mut parts = vec![
        format!("{} stored", totals.stored),
        format!("{} seen again", totals.merged),
    ];
    let refused: Vec<_> = tally
        .rejected
        .iter()
        .map(|(why, n)| format!("{n} {}", why.as_label()))
        .collect();
    if !refused.is_empty() {
        parts.push(format!(
            "{} refused ({})",
            tally.n_rejected(),
            refused.join(", ")
        ));
    }
    let mut line = format!("{} Events: {}", tally.received, parts.join(", "));
    let also = [
        (totals.deleted, "deleted"),
        (totals.replaced, "replaced by another of the same name"),
        (tally.unknown_deletions, "deletions of unknown Events"),
        (n_problems, "lines or items not readable"),
        (tally.malformed_fields, "malformed fields taken as absent"),
        (
            u64::try_from(n_failed).unwrap_or(u64::MAX),
            "subjects not classified",
        ),
    ];
    for (n, what) in also.into_iter().filter(|(n, _)| 0 < *n) {
        line.extend(["; ", what, ": ", &n.to_string()]);
    }
    let (n_records, n_objects) = (replay.store().n_records(), replay.store().n_buckets());
    eprintln_lossy(format_args!(
        "{line}. Live at the end: {n_records} about {n_objects} objects."
    ));
}
