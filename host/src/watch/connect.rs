//! A client for the apiserver whose connections do not go dead unnoticed.
//!
//! kube's own client sets no keepalive, so a connection that a firewall forgot
//! looks like a quiet watch until the kernel gives up. Ours asks every 15 s and
//! is told after 30. Nothing is retried below us: a retry that nobody sees is a
//! failure that nobody sees.

use std::time::Duration;

use hyper_util::{
    client::legacy::{Client as HttpClient, connect::HttpConnector},
    rt::TokioExecutor,
};
use kube::{
    Client, Config,
    client::{Body, ConfigExt as _},
    config::{KubeConfigOptions, Kubeconfig},
};
use tower::BoxError;

use crate::text::in_a_line;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const KEEPALIVE: Duration = Duration::from_secs(15);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
const KEEPALIVE_RETRIES: u32 = 3;
const USER_TIMEOUT: Duration = Duration::from_secs(30);

/// What a connection reads at once: more would be held for each of many watches.
const READ_BUFFER: usize = 64 << 10;

/// Where the cluster is, and who we are to it.
#[derive(Clone, Debug, Default)]
pub struct Address {
    /// A kubeconfig; without one `KUBECONFIG`, `~/.kube/config`, or the pod's own.
    pub kubeconfig: Option<std::path::PathBuf>,
    /// A context of the kubeconfig, if not the current one.
    pub context: Option<String>,
}

/// A client as kubectl would make it: from this kubeconfig, from that of the
/// environment, or from the service account of the pod.
///
/// # Errors
///
/// If there is no configuration, or it cannot be used.
pub async fn connect(address: &Address) -> Result<Client, Unreachable> {
    let options = KubeConfigOptions {
        context: address.context.clone(),
        ..KubeConfigOptions::default()
    };
    let config = match &address.kubeconfig {
        Some(path) => {
            Config::from_custom_kubeconfig(Kubeconfig::read_from(path)?, &options).await?
        }
        None if address.context.is_some() => Config::from_kubeconfig(&options).await?,
        None => Config::infer().await?,
    };
    client(config)
}

/// A client for this configuration.
///
/// # Errors
///
/// If its certificates or credentials cannot be used.
pub fn client(config: Config) -> Result<Client, Unreachable> {
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
    connector.set_keepalive(Some(KEEPALIVE));
    connector.set_keepalive_interval(Some(KEEPALIVE_INTERVAL));
    connector.set_keepalive_retries(Some(KEEPALIVE_RETRIES));
    #[cfg(target_os = "linux")]
    connector.set_tcp_user_timeout(Some(USER_TIMEOUT));
    let connector = config.rustls_https_connector_with_connector(connector)?;
    let http: HttpClient<_, Body> = HttpClient::builder(TokioExecutor::new())
        .http1_max_buf_size(READ_BUFFER)
        .build(connector);
    let service = tower::ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .layer(config.extra_headers_layer()?)
        .option_layer(config.auth_layer()?)
        .map_err(BoxError::from)
        .service(http);
    Ok(Client::new(service, config.default_namespace))
}

/// Why there is no client, with what kube says of it in a line.
#[derive(Debug, thiserror::Error)]
pub enum Unreachable {
    /// Neither a kubeconfig nor a service account, or they cannot be used.
    #[error(
        "no cluster is configured: set KUBECONFIG, pass --kubeconfig, or run in a pod with a \
         service account ({0})"
    )]
    NoConfig(String),
    /// The kubeconfig cannot be used.
    #[error("the kubeconfig cannot be used: {0}")]
    Kubeconfig(String),
    /// Certificates or credentials cannot be used.
    #[error("the cluster's certificates or our credentials cannot be used: {0}")]
    Client(String),
}

impl From<kube::config::InferConfigError> for Unreachable {
    fn from(err: kube::config::InferConfigError) -> Self {
        Self::NoConfig(in_a_line(&err))
    }
}

impl From<kube::config::KubeconfigError> for Unreachable {
    fn from(err: kube::config::KubeconfigError) -> Self {
        Self::Kubeconfig(in_a_line(&err))
    }
}

impl From<kube::Error> for Unreachable {
    fn from(err: kube::Error) -> Self {
        Self::Client(in_a_line(&err))
    }
}
