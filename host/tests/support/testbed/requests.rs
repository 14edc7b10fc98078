//! Clients, and what they ask.

use std::path::Path;
use std::time::{Duration, Instant};

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::Value;
use tokio::time::{sleep, timeout};

/// A client of this kubeconfig that does not try again by itself: it belongs to the runtime that it is made in.
pub(crate) async fn client(kubeconfig: &Path) -> Client {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).expect("it is a kubeconfig");
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
    let mut config = config.expect("it is a kubeconfig");
    config.default_retry = false;
    Client::try_from(config).expect("it is a kubeconfig")
}

/// Creates an object at the path of its collection, and returns it as the server has it. Borrows nothing, so
/// that many can be under way.
pub(crate) fn post(
    client: &Client,
    path: &str,
    object: &Value,
) -> impl Future<Output = Value> + use<> {
    let request = http::Request::post(path)
        .header("content-type", "application/json")
        .body(object.to_string().into_bytes())
        .expect("it is a path");
    let (client, path) = (client.clone(), path.to_owned());
    async move {
        let answer = client.request(request).await;
        answer.unwrap_or_else(|err| panic!("POST {path}: {err}"))
    }
}

/// What is at this path, or the HTTP status that the server refuses it with.
pub(crate) async fn get(client: &Client, path: &str) -> Result<Value, u16> {
    let request = http::Request::get(path)
        .body(Vec::new())
        .expect("it is a path");
    match client.request(request).await {
        Ok(answer) => Ok(answer),
        Err(kube::Error::Api(status)) => Err(status.code),
        Err(err) => panic!("GET {path}: {err}"),
    }
}

/// Looks until there is something to see. A minute is enough for whatever is to come.
pub(crate) async fn until<T, F>(what: &str, mut look: impl FnMut() -> F) -> T
where
    F: Future<Output = Option<T>>,
{
    let deadline = Instant::now() + Duration::from_mins(1);
    loop {
        if let Some(seen) = look().await {
            return seen;
        }
        assert!(Instant::now() < deadline, "not within a minute: {what}");
        sleep(Duration::from_millis(50)).await;
    }
}

/// Whether there is something at this path, and a server that says so within some seconds.
pub(super) async fn is_found(client: &Client, path: &str) -> bool {
    let request = http::Request::get(path)
        .body(Vec::new())
        .expect("it is a path");
    let answer = timeout(Duration::from_secs(5), client.request_text(request)).await;
    matches!(answer, Ok(Ok(_)))
}
