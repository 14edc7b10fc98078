//! A real control plane for tests: etcd, kube-apiserver, and kube-scheduler for whoever asks for it.
//!
//! It is on loopback, on free ports, with certificates and a folder of its own. The tests of a binary that
//! run at one time share one ([`Testbed::shared`]), so theirs are namespaces of their own; who stops a server
//! or needs Events to expire starts one ([`Testbed::start`]). It ends with the last test that holds it, and in
//! any case with the process: see [`process`].
//!
//! There is no controller-manager and no kubelet. A Deployment makes no pods, a pod does not run, a
//! namespace is not emptied, and the built-in roles `view`, `edit` and `admin` grant nothing.

#![allow(unused_imports, reason = "each test binary uses a part of it")]

mod audit;
mod certificates;
mod events;
mod manifests;
mod process;
mod requests;

use std::env;
use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use kube::Client;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::Mutex;

pub(crate) use audit::Entry;
pub(crate) use events::{core_event, event};
pub(crate) use manifests::{Overlay, manifests, permit_pods};
use process::Process;
use requests::is_found;
pub(crate) use requests::{client, get, post, until};

/// How long a server may take to be ready. It takes 2 s where nothing else is going on.
const START: Duration = Duration::from_mins(2);

/// What a control plane is started with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    /// `--event-ttl`: how long after its last write an Event goes, and up to 5 % more.
    pub(crate) event_ttl: Duration,
    /// `--etcd-compaction-interval`: how old a resourceVersion gets that can be watched from, and up to
    /// as much again.
    pub(crate) compaction: Duration,
}

/// What they are where nobody has set them.
impl Default for Options {
    fn default() -> Self {
        Self {
            event_ttl: Duration::from_hours(1),
            compaction: Duration::from_mins(5),
        }
    }
}

/// A running control plane.
pub(crate) struct Testbed {
    programs: PathBuf,
    options: Options,
    etcd_port: u16,
    port: u16,
    // Servers before the folder that they write to: fields are dropped in this order.
    scheduler: Mutex<Option<Process>>,
    apiserver: Option<Process>,
    _etcd: Process,
    folder: TempDir,
}

/// A `ServiceAccount`, as a program that runs as it sees it.
pub(crate) struct Account {
    /// As the audit log has it.
    pub(crate) user: String,
    /// Of a `TokenRequest`, valid for an hour.
    pub(crate) token: String,
    /// With that token.
    pub(crate) kubeconfig: PathBuf,
}

impl Testbed {
    /// One for all tests of the binary that run now, started for the first of them. `None`, and a line that
    /// says so, where there is nothing to start: the test has to return.
    pub(crate) async fn shared() -> Option<Arc<Self>> {
        static SHARED: Mutex<Weak<Testbed>> = Mutex::const_new(Weak::new());
        let mut shared = SHARED.lock().await;
        if let Some(running) = shared.upgrade() {
            return Some(running);
        }
        let started = Arc::new(Self::start(Options::default()).await?);
        *shared = Arc::downgrade(&started);
        Some(started)
    }

    /// One for this test alone. `None` as of [`Testbed::shared`].
    pub(crate) async fn start(options: Options) -> Option<Self> {
        let Some(programs) = env::var_os("PORTENT_TESTBED") else {
            skip("PORTENT_TESTBED names no folder with a control plane");
            return None;
        };
        let programs = PathBuf::from(programs);
        let folder = tempfile::tempdir().expect("there is room for temporary files");
        let [etcd_port, peer_port, port] = [(); 3].map(|()| free_port());
        certificates::write(folder.path());
        fs::write(folder.path().join("audit.yaml"), audit::POLICY)
            .expect("there is room for temporary files");
        let etcd = start_etcd(&programs, folder.path(), etcd_port, peer_port);
        let mut testbed = Self {
            programs,
            options,
            etcd_port,
            port,
            scheduler: Mutex::new(None),
            apiserver: None,
            _etcd: etcd,
            folder,
        };
        let user = json!({
            "client-certificate": testbed.file("admin.crt"),
            "client-key": testbed.file("admin.key"),
        });
        testbed.write_kubeconfig("admin.kubeconfig", &user);
        testbed.start_apiserver().await;
        Some(testbed)
    }

    /// Starts kube-apiserver and waits until it is ready. After [`Testbed::kill_apiserver`] it has the port
    /// and the objects that it had before.
    pub(crate) async fn start_apiserver(&mut self) {
        let Options {
            event_ttl,
            compaction,
        } = self.options;
        let mut command = Command::new(self.programs.join("kube-apiserver"));
        command
            .arg(format!(
                "--etcd-servers=http://127.0.0.1:{}",
                self.etcd_port
            ))
            .arg(format!("--secure-port={}", self.port))
            .arg(format!("--event-ttl={}s", event_ttl.as_secs()))
            .arg(format!(
                "--etcd-compaction-interval={}s",
                compaction.as_secs()
            ))
            .args([
                "--bind-address=127.0.0.1",
                "--service-cluster-ip-range=10.0.0.0/24",
                "--authorization-mode=RBAC",
                "--client-ca-file=ca.crt",
                "--tls-cert-file=apiserver.crt",
                "--tls-private-key-file=apiserver.key",
                "--service-account-issuer=https://kubernetes.default.svc",
                "--service-account-key-file=accounts.pub",
                "--service-account-signing-key-file=accounts.key",
                "--audit-policy-file=audit.yaml",
                "--audit-log-path=audit.log",
                // In MB. A test reads one file, so it must not be rotated away.
                "--audit-log-maxsize=2048",
                "--profiling=false",
            ]);
        let mut apiserver = Process::start("kube-apiserver", &mut command, self.folder.path());
        let admin = self.admin().await;
        let deadline = Instant::now() + START;
        // `default` and `kube-system` come only after the server has said that it is ready.
        while !(is_found(&admin, "/readyz").await
            && is_found(&admin, "/api/v1/namespaces/default").await
            && is_found(&admin, "/api/v1/namespaces/kube-system").await)
        {
            apiserver.check_runs();
            assert!(
                Instant::now() < deadline,
                "kube-apiserver is not ready after {START:?}:\n{}",
                apiserver.log()
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        self.apiserver = Some(apiserver);
    }

    /// Ends kube-apiserver as a crash does: no connection is closed in good order.
    pub(crate) fn kill_apiserver(&mut self) {
        self.apiserver = None;
    }

    /// Starts kube-scheduler unless it runs. It takes a second or so to look at the first pod.
    pub(crate) async fn schedule(&self) {
        let mut scheduler = self.scheduler.lock().await;
        if scheduler.is_some() {
            return;
        }
        let mut command = Command::new(self.programs.join("kube-scheduler"));
        command.args([
            "--kubeconfig=admin.kubeconfig",
            "--authentication-kubeconfig=admin.kubeconfig",
            "--authorization-kubeconfig=admin.kubeconfig",
            "--leader-elect=false",
            // Nobody asks it how it is.
            "--secure-port=0",
        ]);
        let started = Process::start("kube-scheduler", &mut command, self.folder.path());
        *scheduler = Some(started);
    }

    /// The address of kube-apiserver, as in a kubeconfig.
    pub(crate) fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    /// A kubeconfig of somebody who may do everything.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.file("admin.kubeconfig")
    }

    /// A client that may do everything.
    pub(crate) async fn admin(&self) -> Client {
        client(&self.kubeconfig()).await
    }

    /// Makes a namespace with these labels, and in it the `ServiceAccount` that pods need.
    pub(crate) async fn namespace(&self, name: &str, labels: &[(&str, &str)]) {
        let admin = self.admin().await;
        let labels: Value = labels
            .iter()
            .map(|(key, value)| ((*key).to_owned(), json!(value)))
            .collect();
        let namespace = json!({ "metadata": { "name": name, "labels": labels } });
        post(&admin, "/api/v1/namespaces", &namespace).await;
        self.make_account(name, "default").await;
    }

    /// Makes a `ServiceAccount` that may do nothing yet.
    pub(crate) async fn make_account(&self, namespace: &str, name: &str) {
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts");
        let account = json!({ "metadata": { "name": name } });
        post(&self.admin().await, &path, &account).await;
    }

    /// A token of a `ServiceAccount` that exists.
    pub(crate) async fn account(&self, namespace: &str, name: &str) -> Account {
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token");
        let answer = post(&self.admin().await, &path, &json!({ "spec": {} })).await;
        let token = answer["status"]["token"]
            .as_str()
            .expect("a TokenRequest is answered with a token")
            .to_owned();
        let file = format!("{namespace}.{name}.kubeconfig");
        Account {
            user: format!("system:serviceaccount:{namespace}:{name}"),
            kubeconfig: self.write_kubeconfig(&file, &json!({ "token": &token })),
            token,
        }
    }

    /// Runs kubectl as somebody who may do everything, with this on its stdin.
    pub(crate) fn kubectl<S: AsRef<OsStr>>(
        &self,
        args: impl IntoIterator<Item = S>,
        stdin: &str,
    ) -> Output {
        let mut kubectl = Command::new(self.programs.join("kubectl"));
        kubectl
            .args(args)
            .env_clear()
            .env("KUBECONFIG", self.kubeconfig())
            // It keeps a cache there.
            .env("HOME", self.folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = kubectl.spawn().expect("kubectl starts");
        // It reads all of it before it prints, or ends, and then says why.
        let mut pipe = child.stdin.take().expect("it was piped");
        drop(pipe.write_all(stdin.as_bytes()));
        drop(pipe);
        child.wait_with_output().expect("kubectl ends")
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// JSON is YAML.
    fn write_kubeconfig(&self, name: &str, user: &Value) -> PathBuf {
        let kubeconfig = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{ "name": "testbed", "cluster": {
                "server": self.url(),
                "certificate-authority": self.file("ca.crt"),
            } }],
            "users": [{ "name": "user", "user": user }],
            "contexts": [{ "name": "testbed", "context": { "cluster": "testbed", "user": "user" } }],
            "current-context": "testbed",
        });
        let path = self.file(name);
        fs::write(&path, kubeconfig.to_string()).expect("there is room for temporary files");
        path
    }
}

/// A test that cannot run says so, and leaves its name for `cargo xtask test`.
fn skip(reason: &str) {
    assert!(
        env::var_os("CI").is_none_or(|it| it != "true"),
        "{reason}, and where CI is `true`, no test is skipped"
    );
    let thread = std::thread::current();
    let test = format!(
        "{}::{}",
        env!("CARGO_CRATE_NAME"),
        thread.name().unwrap_or_default()
    );
    // Not by a macro: what these print is shown only if the test fails.
    let told = writeln!(std::io::stderr(), "skipped: {test}: {reason}");
    told.expect("stderr can be written");
    if let Some(file) = env::var_os("PORTENT_SKIPPED_TESTS") {
        let open = OpenOptions::new().append(true).create(true).open(file);
        open.and_then(|mut it| it.write_all(format!("{test}\n").as_bytes()))
            .expect("the list of skipped tests can be written");
    }
}

fn start_etcd(programs: &Path, folder: &Path, port: u16, peer_port: u16) -> Process {
    let [client, peer] = [port, peer_port].map(|it| format!("http://127.0.0.1:{it}"));
    let mut command = Command::new(programs.join("etcd"));
    command.args([
        "--data-dir=etcd".to_owned(),
        format!("--listen-client-urls={client}"),
        format!("--advertise-client-urls={client}"),
        format!("--listen-peer-urls={peer}"),
        format!("--initial-advertise-peer-urls={peer}"),
        format!("--initial-cluster=default={peer}"),
        "--log-level=warn".to_owned(),
        // What it holds does not outlive the machine.
        "--unsafe-no-fsync".to_owned(),
    ]);
    Process::start("etcd", &mut command, folder)
}

/// A port that was free a moment ago. Not one of those that the system gives to whoever connects: a server
/// that is killed must find its own free again.
fn free_port() -> u16 {
    loop {
        let port = fastrand::u16(10_000..32_000);
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
}
