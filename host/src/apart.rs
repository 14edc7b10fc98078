//! One task of this very program, done in a child of it that has bounds.
//!
//! Some work on what others wrote cannot be bounded from within: a compiler has no fuel, and takes
//! what memory it likes. So it is done in a process of its own, which the system ends when it takes
//! more than it may; whoever asked goes on, and is told which bound it was. What goes in and what
//! comes out are bytes.
//!
//! The child bounds itself before it reads what may be hostile: its memory, its processor time, its
//! stack; it dumps no core, waits for whoever is in more of a hurry, is the first to go when the
//! machine has no memory left, and ends with its parent. It has no environment. The parent watches
//! the clock, reads no more than there may be, and has waited for the child before it goes on,
//! whatever happens. Neither can wait for the other: each pipe has a thread.
//!
//! It knows no task. What is done is decided by whoever calls [`serve`] in the child (`cli`), and
//! what it means by whoever calls [`run`].

use std::{
    fmt,
    io::{self, Read, Write},
    os::unix::process::{CommandExt as _, ExitStatusExt as _},
    path::Path,
    process::{Child, Command, ExitCode, ExitStatus, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use rustix::{
    io::Errno,
    process::{Pid, Signal, WaitId, WaitIdOptions, waitid},
};

mod bounds;

use bounds::Order;

/// What can be done apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// A component in, its compiled code out.
    Compile,
    /// A schema and settings in, what is wrong with them out.
    CheckSettings,
}

impl Task {
    /// All of them.
    pub const ALL: &[Self] = &[Self::Compile, Self::CheckSettings];

    /// The word for it on the child's command line.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Compile => "compile",
            Self::CheckSettings => "check-settings",
        }
    }
}

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a child may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes of its memory, and so of its answer.
    pub memory_bytes: usize,
    /// How long it may take, by the clock on the wall.
    pub time: Duration,
}

/// Why a task was not done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// It took longer than it may.
    #[error("it took more time than it may")]
    Time,
    /// It took more memory than it may.
    #[error("it took more memory than it may")]
    Memory,
    /// It said that it cannot be done.
    #[error("{0}")]
    Refused(String),
    /// The child ended in another way than it should.
    #[error("{0}")]
    Crashed(String),
    /// There was no child, or nothing to be done with it.
    #[error("the child process cannot be run: {0}")]
    NotRun(String),
}

impl From<io::Error> for Failure {
    fn from(err: io::Error) -> Self {
        Self::NotRun(err.to_string())
    }
}

/// The command, hidden from users, that [`serve`] is behind.
pub const COMMAND: &str = "apart";

/// Exit codes of a child, beside 0 for an answer. Those that a panic and a wrong command line have
/// are others.
const REFUSED: u8 = 3;
const NO_MEMORY: u8 = 4;
const NOT_DONE: u8 = 5;

/// Bytes of what a child says went wrong; more is not kept.
const MESSAGE_MAX_BYTES: u64 = 4 << 10;

/// Has `program`, which is this one, do a task on these bytes.
///
/// # Errors
///
/// If it does not, and the bound that it met if it was one.
pub fn run(program: &Path, task: Task, bounds: Bounds, input: &[u8]) -> Result<Vec<u8>, Failure> {
    let mut command = Command::new(program);
    command.arg0("portent").args([COMMAND, task.as_str()]);
    let order = Order::new(bounds, input.len());
    drive(command, bounds, &[&order.to_bytes(), input])
}

/// A child that is gone when this is, and has been waited for.
struct Reaped(Child);

impl Drop for Reaped {
    fn drop(&mut self) {
        // It may have ended already, and been waited for.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// What a thread beside the child has to tell.
enum News {
    /// All that came out, or the first bytes of too much.
    Output(io::Result<Vec<u8>>),
    /// What was said of what went wrong.
    Said(Vec<u8>),
    /// The child ended.
    Ended,
}

fn drive(mut command: Command, bounds: Bounds, input: &[&[u8]]) -> Result<Vec<u8>, Failure> {
    let began = Instant::now();
    let child = command
        .env_clear()
        // What a terminal sends is for us: we end it.
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    thread::scope(|scope| {
        // Within the scope, so that it is gone before the threads are waited for.
        let mut child = Reaped(child);
        let pipes = (
            child.0.stdin.take(),
            child.0.stdout.take(),
            child.0.stderr.take(),
        );
        let (Some(mut stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(Failure::NotRun("it has no pipes".to_owned()));
        };
        let pid = i32::try_from(child.0.id()).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| Failure::NotRun("it has no number".to_owned()))?;
        let (news, told) = mpsc::channel();
        let start = |name: &str| thread::Builder::new().name(name.to_owned());
        start("apart-in").spawn_scoped(scope, move || {
            // A child that ended, or will not read, says why in another way.
            input.iter().try_for_each(|it| stdin.write_all(it)).ok();
        })?;
        let (to, most) = (news.clone(), bounds.memory_bytes);
        start("apart-out").spawn_scoped(scope, move || {
            to.send(News::Output(read(stdout, most))).ok();
        })?;
        let to = news.clone();
        start("apart-said").spawn_scoped(scope, move || {
            to.send(News::Said(said(stderr))).ok();
        })?;
        start("apart-end").spawn_scoped(scope, move || {
            // It stays to be waited for, so that nobody else has its number when it is killed.
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            while matches!(waitid(WaitId::Pid(pid), options), Err(Errno::INTR)) {}
            news.send(News::Ended).ok();
        })?;

        let (mut output, mut message, mut has_ended) = (None, None, false);
        while !has_ended || output.is_none() || message.is_none() {
            let left = bounds.time.saturating_sub(began.elapsed());
            match told.recv_timeout(left) {
                Ok(News::Output(it)) => {
                    let it = it?;
                    if bounds.memory_bytes < it.len() {
                        return Err(Failure::Memory);
                    }
                    output = Some(it);
                }
                Ok(News::Said(it)) => message = Some(it),
                Ok(News::Ended) => has_ended = true,
                Err(_) => return Err(Failure::Time),
            }
        }
        let status = child.0.wait()?;
        let message = String::from_utf8_lossy(&message.unwrap_or_default()).into_owned();
        ended(status, message.trim()).map(|()| output.unwrap_or_default())
    })
}

/// All that comes, but one byte more than there may be at most.
fn read(from: impl Read, most: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let most = u64::try_from(most).unwrap_or(u64::MAX);
    from.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The first of what is said; the rest is read, so that whoever says it can end.
fn said(mut from: impl Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    // What could be read of it has to do.
    from.by_ref()
        .take(MESSAGE_MAX_BYTES)
        .read_to_end(&mut bytes)
        .ok();
    io::copy(&mut from, &mut io::sink()).ok();
    bytes
}

/// What the end of a child means.
fn ended(status: ExitStatus, message: &str) -> Result<(), Failure> {
    // What Rust says, before it aborts, when there is no memory.
    let is_out_of_memory = message.contains("memory allocation of ");
    let behind = if message.is_empty() { "" } else { ": " };
    match (status.code().map(u8::try_from), status.signal()) {
        (Some(Ok(0)), _) => Ok(()),
        (Some(Ok(REFUSED)), _) => Err(Failure::Refused(message.to_owned())),
        (Some(Ok(NO_MEMORY)), _) => Err(Failure::Memory),
        (_, Some(it)) if it == Signal::XCPU.as_raw() => Err(Failure::Time),
        (_, Some(it)) if it == Signal::ABORT.as_raw() && is_out_of_memory => Err(Failure::Memory),
        (_, Some(it)) => Err(Failure::Crashed(format!(
            "the child process was ended by {}{behind}{message}",
            signal_name(it)
        ))),
        _ => Err(Failure::Crashed(format!(
            "the child process ended with {status}{behind}{message}"
        ))),
    }
}

/// A signal as manuals write it, where it is one that ends a process that went wrong.
fn signal_name(signal: i32) -> String {
    let named = [
        (Signal::ABORT, "SIGABRT"),
        (Signal::BUS, "SIGBUS"),
        (Signal::FPE, "SIGFPE"),
        (Signal::ILL, "SIGILL"),
        (
            Signal::KILL,
            "SIGKILL, as the system does when it has no memory left",
        ),
        (Signal::SEGV, "SIGSEGV"),
        (Signal::SYS, "SIGSYS"),
        (Signal::TERM, "SIGTERM"),
    ];
    let name = named.iter().find(|(it, _)| it.as_raw() == signal);
    name.map_or_else(|| format!("signal {signal}"), |(_, it)| (*it).to_owned())
}

/// The child's side: bounds itself, reads, has it done, and writes what comes of it.
#[must_use]
pub fn serve(work: impl FnOnce(&[u8]) -> Result<Vec<u8>, Failure>) -> ExitCode {
    let mut from = io::stdin().lock();
    let done = Order::read(&mut from).and_then(|order| {
        order.obey()?;
        let input = order.input(&mut from)?;
        work(&input)
    });
    let code = match done {
        Ok(answer) => {
            let mut to = io::stdout().lock();
            match to.write_all(&answer).and_then(|()| to.flush()) {
                Ok(()) => return ExitCode::SUCCESS,
                // There is nobody any more who could be told.
                Err(_) => NOT_DONE,
            }
        }
        Err(failure) => {
            io::stderr().write_all(failure.to_string().as_bytes()).ok();
            match failure {
                Failure::Memory => NO_MEMORY,
                Failure::Refused(_) => REFUSED,
                _ => NOT_DONE,
            }
        }
    };
    ExitCode::from(code)
}

#[cfg(test)]
mod tests;
