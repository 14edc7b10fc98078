//! The commands, as a user types them.
//!
//! Exit codes: 0 when it was done, 1 when `plugin check` finds the plugin
//! wanting, 2 when it could not be done, or with `--strict` not completely.

use std::{
    env,
    io::{self, IsTerminal as _, Write as _},
    path::Path,
    process::ExitCode,
};

use anyhow::Context as _;
use clap::{Args, Parser, Subcommand, ValueEnum, builder::styling};
use tracing_subscriber::EnvFilter;

use crate::{
    config::LogFormat,
    sandbox::{Compiler, Limits},
};

mod apart;
mod check;
mod config;
mod explain;
mod interrupt;
mod plugin;
mod replay;
mod run;

/// What the Kubernetes Events of your workload mean.
///
/// portent reads Events, keeps those that are still alive, and hands them to
/// WebAssembly classifiers that say what happened and whose fault it was.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100, styles = STYLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const STYLES: styling::Styles = styling::Styles::styled()
    .header(styling::AnsiColor::Green.on_default().bold())
    .usage(styling::AnsiColor::Green.on_default().bold())
    .literal(styling::AnsiColor::Cyan.on_default())
    .placeholder(styling::AnsiColor::Cyan.on_default());

#[derive(Debug, Subcommand)]
enum Command {
    Explain(explain::Explain),
    Replay(replay::Replay),
    Run(run::Run),
    Check(check::Check),
    /// Work with plugins: check one, make one out of a core module.
    #[command(subcommand)]
    Plugin(plugin::Plugin),
    /// Print what a configuration file may say.
    #[command(subcommand)]
    Config(config::Config),
    #[command(hide = true)]
    Apart(apart::Apart),
}

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    /// For people.
    Table,
    /// One JSON array.
    Json,
    /// One JSON object a line.
    Jsonl,
}

/// What plugins may use.
#[derive(Debug, Args)]
struct LimitArgs {
    /// Sets a limit of the sandbox; may be repeated. `portent plugin limits` lists them.
    #[arg(long = "limit", value_name = "NAME=VALUE", help_heading = "Sandbox")]
    limits: Vec<String>,
}

impl LimitArgs {
    fn limits(&self) -> anyhow::Result<Limits> {
        let mut limits = Limits::default();
        for it in &self.limits {
            let (name, value) = it.split_once('=').with_context(|| {
                format!("--limit {it}: write NAME=VALUE, for example --limit memory-bytes=33554432")
            })?;
            limits.set(name, value)?;
        }
        Ok(limits)
    }
}

/// Compiles in a child of this program: where the system has a name for it, of this very one, even
/// if its file is another by now.
fn compiler() -> Compiler {
    let own = Path::new("/proc/self/exe");
    let program = if own.exists() {
        own.to_owned()
    } else {
        // Without either nothing is compiled, which is told of each plugin.
        env::current_exe().unwrap_or_default()
    };
    Compiler::Apart { program }
}

/// Runs the command line that the process was given.
#[must_use]
pub fn run() -> ExitCode {
    let cli = Cli::parse();
    let done = match cli.command {
        Command::Explain(it) => quietly(|| it.run()),
        Command::Replay(it) => quietly(|| it.run()),
        Command::Run(it) => match run::read(it.config()) {
            Err(code) => return code,
            Ok(config) => {
                let is_json = config.log.format == LogFormat::Json;
                let set_level = log(config.log.level.as_str(), is_json);
                it.run(config, set_level)
            }
        },
        Command::Check(it) => quietly(|| it.run()),
        Command::Plugin(it) => quietly(|| it.run()),
        Command::Config(it) => quietly(|| it.run()),
        // What it says is for its parent, so it logs nothing.
        Command::Apart(it) => return it.run(),
    };
    done.unwrap_or_else(|err| {
        // Whoever reads our output may stop reading it: `portent ... | head`.
        let closed = err.chain().filter_map(|it| it.downcast_ref::<io::Error>());
        if closed
            .into_iter()
            .any(|it| it.kind() == io::ErrorKind::BrokenPipe)
        {
            return ExitCode::SUCCESS;
        }
        eprintln_lossy(format_args!("error: {err:#}"));
        ExitCode::from(2)
    })
}

/// Runs a command that says what it has to say by itself.
fn quietly(run: impl FnOnce() -> anyhow::Result<ExitCode>) -> anyhow::Result<ExitCode> {
    drop(log("warn", false));
    run()
}

/// Logs to stderr from now on, at this level unless `PORTENT_LOG` says otherwise.
/// Says how to take up another level.
fn log(level: &str, is_json: bool) -> Box<dyn Fn(&str)> {
    let of_environment = EnvFilter::try_from_env("PORTENT_LOG");
    let is_fixed = of_environment.is_ok();
    let filter = of_environment.unwrap_or_else(|_| EnvFilter::new(level));
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_target(false);
    let take_up = |reloaded: Result<(), _>| {
        if let Err(err) = reloaded {
            let err: tracing_subscriber::reload::Error = err;
            tracing::error!("the level of the log cannot be changed: {err}");
        }
    };
    if is_json {
        let log = log.json().with_filter_reloading();
        let handle = log.reload_handle();
        log.init();
        Box::new(move |level| {
            if !is_fixed {
                take_up(handle.reload(EnvFilter::new(level)));
            }
        })
    } else {
        let is_coloured = io::stderr().is_terminal() && !no_color();
        let log = log
            .with_ansi(is_coloured)
            .without_time()
            .with_filter_reloading();
        let handle = log.reload_handle();
        log.init();
        Box::new(move |level| {
            if !is_fixed {
                take_up(handle.reload(EnvFilter::new(level)));
            }
        })
    }
}

/// Whether the user wants no colours (no-color.org).
fn no_color() -> bool {
    env::var_os("NO_COLOR").is_some_and(|it| !it.is_empty())
}

/// Writes a line to stderr. That nobody reads it is no reason to stop.
fn eprintln_lossy(line: std::fmt::Arguments<'_>) {
    drop(writeln!(io::stderr(), "{line}"));
}
