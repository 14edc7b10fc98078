//! `portent run`.

use std::{
    io,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context as _;
use clap::Args;

use super::eprintln_lossy;
use crate::{
    config::Config,
    plugins::{Loader, PluginSet, Terms},
    sandbox::{Cache, Sandbox, on_guest_stack},
    text::Visible,
    watch::Address,
};

/// Watch a cluster, and say what its Events mean for as long as it runs.
///
/// Changes of what the plugins say go to stdout, a line of JSON each; the log goes
/// to stderr. `/livez`, `/readyz?verbose` and `/metrics` are served on admin.listen.
/// SIGTERM and Ctrl-C end it within 5 seconds.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  portent config default > portent.yaml    # then set scope and plugins.directory
  portent check --config portent.yaml
  portent run --config portent.yaml --context staging")]
pub(super) struct Run {
    #[command(flatten)]
    cluster: Cluster,
}

/// Which configuration, on which cluster.
#[derive(Debug, Args)]
pub(super) struct Cluster {
    /// The configuration file; `portent config default` prints one.
    #[arg(short, long, value_name = "FILE", env = "PORTENT_CONFIG")]
    pub(super) config: PathBuf,
    #[command(flatten)]
    server: Server,
}

/// Which cluster.
#[derive(Debug, Args)]
pub(super) struct Server {
    /// A kubeconfig; else KUBECONFIG, ~/.kube/config, or the pod's service account.
    #[arg(long, value_name = "FILE", help_heading = "Cluster")]
    kubeconfig: Option<PathBuf>,
    /// A context of the kubeconfig, if not the current one.
    #[arg(long, value_name = "NAME", help_heading = "Cluster")]
    context: Option<String>,
}

impl Cluster {
    pub(super) fn address(&self) -> Address {
        self.server.address()
    }
}

impl Server {
    pub(super) fn address(&self) -> Address {
        Address {
            kubeconfig: self.kubeconfig.clone(),
            context: self.context.clone(),
        }
    }
}

impl Run {
    pub(super) fn config(&self) -> &Path {
        &self.cluster.config
    }

    pub(super) fn run(
        self,
        config: Config,
        set_log_level: Box<dyn Fn(&str)>,
    ) -> anyhow::Result<ExitCode> {
        let mut loader = loader(&config)?;
        // Loading calls guests, too.
        let first = on_guest_stack(|| loader.first());
        let plugins = readable(first, &config)?;
        if plugins.plugins.is_empty() {
            tracing::warn!("there is no plugin: nothing is watched");
        }
        let changes: Option<Box<dyn io::Write + Send>> = if config.changes.stdout {
            Some(Box::new(io::stdout()))
        } else {
            None
        };
        let address = self.cluster.address();
        crate::run::Run {
            config,
            path: self.cluster.config,
            loader,
            plugins,
            address,
            changes,
            set_log_level,
        }
        .run()?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Reads a configuration; what is wrong with it is said a line each.
pub(super) fn read(path: &Path) -> Result<Config, ExitCode> {
    Config::read(path).map_err(|err| {
        let err = anyhow::Error::from(err);
        eprintln_lossy(format_args!("error: {err:#}"));
        ExitCode::from(2)
    })
}

/// Loads the plugins of a configuration, in its order.
pub(super) fn load(config: &Config) -> anyhow::Result<PluginSet> {
    let sandbox = Sandbox::with(config.limits.clone(), super::compiler(), None)?;
    // Loading calls guests, too.
    let folder = &config.plugins.directory;
    let mut set = readable(on_guest_stack(|| PluginSet::load(&sandbox, folder)), config)?;
    set.prefer(&config.plugins.order);
    Ok(set)
}

/// What loads the plugins of a configuration for as long as the process lives.
fn loader(config: &Config) -> anyhow::Result<Loader> {
    let plugins = &config.plugins;
    let pins = plugins.pins.iter();
    let terms = Terms {
        order: plugins.order.clone(),
        pins: pins
            .map(|it| (it.file.clone(), it.digest.clone()))
            .collect(),
        compiled_bytes: plugins.bytes.get(),
    };
    let cache = plugins.cache.clone();
    let cache = cache.map(|it| Cache::new(it, Cache::BYTES));
    let sandbox = Sandbox::with(config.limits.clone(), super::compiler(), cache)?;
    Ok(Loader::new(sandbox, plugins.directory.clone(), terms))
}

fn readable<T>(loaded: io::Result<T>, config: &Config) -> anyhow::Result<T> {
    loaded.with_context(|| {
        let shown = config.plugins.directory.display().to_string();
        format!(
            "cannot read the plugin folder {} (plugins.directory)",
            Visible(&shown)
        )
    })
}
