//! `portent check`.

use std::{
    io::{self, Write as _},
    process::ExitCode,
    time::{SystemTime, UNIX_EPOCH},
};

use anyhow::Context as _;
use clap::{Args, ValueEnum};

use super::run::{Cluster, load, read};
use crate::{
    check::{Check as Checked, Verdict, offline, online},
    watch,
};

/// Check a configuration and its plugins, and whether they will work on the cluster.
///
/// Asks the server for its version, for our permissions and for the kinds of the
/// scope, looks whether the field selectors select what they should, and compares
/// how long the server keeps Events with how long we do. Changes nothing. Exits
/// with 0 when nothing failed, with 1 when something did.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  portent check --config portent.yaml --context staging")]
pub(super) struct Check {
    #[command(flatten)]
    cluster: Cluster,
    /// How to print.
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
}

/// How checks are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    /// For people.
    Table,
    /// One JSON array.
    Json,
}

impl Check {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let Ok(config) = read(&self.cluster.config) else {
            return Ok(ExitCode::from(1));
        };
        let plugins = load(&config)?;
        let mut checks = offline(&config, &plugins);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("cannot start")?;
        #[expect(
            clippy::disallowed_methods,
            reason = "how old the server's Events are is measured against the time of day"
        )]
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = u64::try_from(now.unwrap_or_default().as_millis()).unwrap_or(u64::MAX);
        checks.extend(runtime.block_on(async {
            let client = watch::connect(&self.cluster.address()).await?;
            Ok::<_, watch::Unreachable>(online(&config, &client, now).await)
        })?);

        let mut to = io::stdout().lock();
        match self.output {
            Output::Json => {
                serde_json::to_writer_pretty(&mut to, &checks)?;
                writeln!(to)?;
            }
            Output::Table => {
                for Checked {
                    verdict,
                    what,
                    said,
                } in &checks
                {
                    writeln!(to, "{:<8}  {what}: {said}", verdict.as_str())?;
                }
            }
        }
        let has_failed = checks.iter().any(|it| it.verdict == Verdict::Failed);
        Ok(ExitCode::from(u8::from(has_failed)))
    }
}
