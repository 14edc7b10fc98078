//! A server that does not outlive the test binary, however that ends.
//!
//! No destructor runs when a process is killed, or leaves by `exit` as a test binary does. So each server is the
//! child of a shell that reads a pipe of ours. When the pipe is closed, by us or by the kernel, the shell kills
//! the server. A signal to the whole group, as Ctrl-C or `timeout` sends one, reaches the shell as well: it kills the
//! server then too. It ends with the server, so that we notice.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

/// Runs its arguments until they end or stdin does.
const KEEPER: &str = r#"
exec 3<&0
"$@" 3<&- </dev/null &
server=$!
trap 'kill -KILL "$server"' TERM INT HUP
{ read -r _ <&3; kill -KILL "$server"; } 2>/dev/null &
reader=$!
wait "$server"
code=$?
kill -KILL "$reader" 2>/dev/null
wait "$reader" 2>/dev/null
exit "$code"
"#;

/// A running server. It is killed when this is dropped, and is gone when that is done.
pub(super) struct Process {
    name: &'static str,
    shell: Child,
    /// Never written to. `None` once the server has to end.
    pipe: Option<ChildStdin>,
    log: PathBuf,
}

impl Process {
    /// Starts it in a folder. Its log goes there too, behind that of the one of the same name before it.
    pub(super) fn start(name: &'static str, command: &mut Command, folder: &Path) -> Self {
        let log = folder.join(name).with_extension("log");
        let file = File::options().append(true).create(true).open(&log);
        let file = file.expect("there is room for temporary files");
        let mut shell = Command::new("/bin/sh");
        shell
            .args(["-c", KEEPER, "sh"])
            .arg(command.get_program())
            .args(command.get_args())
            .current_dir(folder)
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(file.try_clone().expect("a file can be open twice"))
            .stderr(file);
        let mut shell = shell.spawn().expect("there is a /bin/sh");
        Self {
            name,
            pipe: shell.stdin.take(),
            shell,
            log,
        }
    }

    /// Panics with its log if it has ended by itself.
    #[track_caller]
    pub(super) fn check_runs(&mut self) {
        let status = self.shell.try_wait().expect("a child can be waited for");
        if let Some(status) = status {
            panic!("{} ended, {status}:\n{}", self.name, self.log());
        }
    }

    /// The end of what it wrote.
    pub(super) fn log(&self) -> String {
        let log = fs::read(&self.log).unwrap_or_default();
        let end = &log[log.len().saturating_sub(8192)..];
        String::from_utf8_lossy(end).into_owned()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.pipe = None;
        let ended = self.shell.wait();
        assert!(
            ended.is_ok() || std::thread::panicking(),
            "a child can be waited for"
        );
    }
}
