//! The program as an operator runs it: a process with a configuration file, its lines on stdout and stderr,
//! and its admin port. It ends with its handle.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read, Write as _},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;
use tempfile::TempDir;

use super::spawn;

/// As patient as a test is where everything is slow.
const PATIENCE: Duration = Duration::from_mins(1);

/// A running `portent run`.
pub(crate) struct Running {
    child: Child,
    folder: TempDir,
    changes: Lines,
    log: Lines,
    admin: String,
}

/// The lines that came so far, and when.
type Lines = Arc<Mutex<Vec<(Instant, String)>>>;

fn read_lines(from: impl Read + Send + 'static) -> Lines {
    let lines = Lines::default();
    let to = Arc::clone(&lines);
    spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            to.lock()
                .expect("nobody panics with it")
                .push((Instant::now(), line));
        }
    });
    lines
}

/// Where the plugins are that were built; `None`, and a line that says so, where none were.
pub(crate) fn plugins() -> Option<PathBuf> {
    let plugins = std::env::var_os("PORTENT_TEST_PLUGINS").map(PathBuf::from);
    if plugins.is_none() {
        let mut to = std::io::stderr();
        writeln!(
            to,
            "skipped: PORTENT_TEST_PLUGINS names no folder with plugins"
        )
        .ok();
    }
    plugins
}

/// A configuration of these namespaces, with these lines more.
pub(crate) fn config(namespaces: &[&str], plugins: &Path, more: &str) -> String {
    format!(
        "scope:\n  namespaces: [{}]\nplugins:\n  directory: {}\nadmin:\n  listen: 127.0.0.1:0\nlog:\n  format: json\n  level: debug\n{more}",
        namespaces.join(", "),
        plugins.display()
    )
}

impl Running {
    pub(crate) fn start(config: &str, kubeconfig: &Path) -> Self {
        Self::start_with(config, kubeconfig, &[])
    }

    /// With these arguments more.
    pub(crate) fn start_with(config: &str, kubeconfig: &Path, more: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("there is room for temporary files");
        let path = folder.path().join("portent.yaml");
        fs::write(&path, config).expect("there is room for temporary files");
        let mut child = Command::new(env!("CARGO_BIN_EXE_portent"))
            .arg("run")
            .arg("--config")
            .arg(&path)
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .args(more)
            .env_remove("PORTENT_LOG")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it was built for this test");
        let changes = read_lines(child.stdout.take().expect("it is piped"));
        let log = read_lines(child.stderr.take().expect("it is piped"));
        let mut running = Self {
            child,
            folder,
            changes,
            log,
            admin: String::new(),
        };
        running.admin = running.until("its admin port", |it| {
            let log = it.log();
            let at = log.iter().find_map(|it| it["fields"]["at"].as_str());
            at.map(str::to_owned)
        });
        running
    }

    /// Where its configuration is written.
    pub(crate) fn config(&self) -> PathBuf {
        self.folder.path().join("portent.yaml")
    }

    /// Waits until there is something.
    #[track_caller]
    pub(crate) fn until<T>(&self, what: &str, mut look: impl FnMut(&Self) -> Option<T>) -> T {
        let began = Instant::now();
        loop {
            if let Some(it) = look(self) {
                return it;
            }
            if PATIENCE < began.elapsed() {
                let log = self.log.lock().expect("nobody panics with it").clone();
                let log: Vec<_> = log.into_iter().map(|(_, it)| it).collect();
                panic!(
                    "{what} is not there after {PATIENCE:?}:\n{}",
                    log.join("\n")
                );
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// What it wrote to stdout so far.
    pub(crate) fn changes(&self) -> Vec<Value> {
        parse(&self.changes).into_iter().map(|(_, it)| it).collect()
    }

    /// The same, and when each was read.
    pub(crate) fn changes_with_times(&self) -> Vec<(Instant, Value)> {
        parse(&self.changes)
    }

    /// The lines that it wrote to stdout since this was asked last, and when each was read: for whom all
    /// of them would be too many to hold.
    pub(crate) fn take_changes(&self) -> Vec<(Instant, String)> {
        std::mem::take(&mut *self.changes.lock().expect("nobody panics with it"))
    }

    /// What it logged so far.
    pub(crate) fn log(&self) -> Vec<Value> {
        parse(&self.log).into_iter().map(|(_, it)| it).collect()
    }

    /// The status and the body of a page of the admin port.
    pub(crate) fn get(&self, path: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.admin).expect("it listens");
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nHost: admin\r\nConnection: close\r\n\r\n"
        )
        .expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        let code = answer.split(' ').nth(1).and_then(|it| it.parse().ok());
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        (code.expect("it speaks HTTP"), body.to_owned())
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.get("/readyz").0 == 200
    }

    #[track_caller]
    pub(crate) fn until_ready(&self) {
        self.until("readiness", |it| it.is_ready().then_some(()));
    }

    /// The sum of a metric over all series that have all of these in their labels.
    pub(crate) fn metric(&self, name: &str, labels: &[&str]) -> u64 {
        let (_, text) = self.get("/metrics");
        let of = |line: &str| {
            let (series, value) = line.rsplit_once(' ')?;
            let is_it = series == name || series.starts_with(&format!("{name}{{"));
            let has_all = labels.iter().all(|it| series.contains(it));
            (is_it && has_all).then(|| value.parse::<f64>().ok())?
        };
        let sum: f64 = text.lines().filter_map(of).sum();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "what is counted here is small and whole"
        )]
        let sum = sum as u64;
        sum
    }

    /// The most memory that it ever had, in bytes.
    pub(crate) fn peak_rss(&self) -> u64 {
        self.memory("VmHWM:")
    }

    /// The memory that it has, in bytes.
    pub(crate) fn rss(&self) -> u64 {
        self.memory("VmRSS:")
    }

    /// CPU time that it used.
    pub(crate) fn cpu(&self) -> Duration {
        let path = format!("/proc/{}/stat", self.child.id());
        let stat = fs::read_to_string(path).expect("it runs");
        let fields = stat.rsplit_once(')').map_or("", |(_, it)| it);
        let ticks = fields.split_ascii_whitespace().skip(11).take(2);
        let ticks: u32 = ticks.filter_map(|it| it.parse::<u32>().ok()).sum();
        // Linux counts in hundredths of a second.
        Duration::from_millis(10) * ticks
    }

    fn memory(&self, key: &str) -> u64 {
        memory_of(self.child.id(), key).expect("it runs, and Linux tells it")
    }

    /// The most memory that each of the processes ever had which it has started and which run, all together, in bytes.
    pub(crate) fn peak_rss_of_children(&self) -> u64 {
        let threads = fs::read_dir(format!("/proc/{}/task", self.child.id())).expect("it runs");
        let of_thread = |it: PathBuf| fs::read_to_string(it.join("children")).unwrap_or_default();
        let children: Vec<_> = threads
            .map_while(Result::ok)
            .map(|it| of_thread(it.path()))
            .collect();
        let pids = children.iter().flat_map(|it| it.split_ascii_whitespace());
        // One that ends meanwhile has none.
        let each = pids.filter_map(|it| memory_of(it.parse().ok()?, "VmHWM:"));
        each.sum()
    }

    /// The number of its process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Has it look at its plugin folder.
    pub(crate) fn hang_up(&self) {
        self.signal("-HUP");
    }

    fn signal(&self, signal: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args([signal, &pid]).status();
        assert!(sent.expect("there is a kill").success());
    }

    /// Where its admin port is.
    pub(crate) fn admin(&self) -> String {
        format!("http://{}", self.admin)
    }

    /// Sends SIGTERM, and waits for its end.
    pub(crate) fn terminate(&mut self) -> (ExitStatus, Duration) {
        let began = Instant::now();
        self.signal("-TERM");
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("it is ours") {
                break status;
            }
            assert!(began.elapsed() < PATIENCE, "it does not end");
            thread::sleep(Duration::from_millis(10));
        };
        (status, began.elapsed())
    }
}

/// What Linux says of the memory of a process, in bytes.
fn memory_of(pid: u32, key: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|it| it.strip_prefix(key))?;
    let kib: u64 = line.split_ascii_whitespace().next()?.parse().ok()?;
    Some(kib * 1024)
}

fn parse(lines: &Lines) -> Vec<(Instant, Value)> {
    let lines = lines.lock().expect("nobody panics with it");
    let values = lines
        .iter()
        .filter_map(|(at, it)| Some((*at, serde_json::from_str(it).ok()?)));
    values.collect()
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
