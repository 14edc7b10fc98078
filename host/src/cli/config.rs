//! `portent config`.

use std::{
    io::{self, Write as _},
    process::ExitCode,
};

use clap::Subcommand;
use schemars::schema_for;

use crate::config;

#[derive(Debug, Subcommand)]
pub(super) enum Config {
    /// Print a configuration file with every key, its default and its meaning.
    ///
    /// The scope and the folder of the plugins have no default: what stands for
    /// them is to be replaced.
    #[command(after_help = "Example:\n  portent config default > portent.yaml")]
    Default,
    /// Print the JSON Schema of a configuration file, for editors.
    #[command(after_help = "Example:\n  portent config schema > portent.schema.json")]
    Schema,
}

impl Config {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let mut to = io::stdout().lock();
        match self {
            Self::Default => to.write_all(config::Config::example().to_yaml().as_bytes())?,
            Self::Schema => {
                serde_json::to_writer_pretty(&mut to, &schema_for!(config::Config))
                    .map_err(io::Error::from)?;
                writeln!(to)?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}
