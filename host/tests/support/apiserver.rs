//! An apiserver that does as it is told: what a real one will not do on request.
//!
//! A script is asked for each request and says what to answer. Requests and when
//! they came are kept. It serves on loopback, over plain HTTP, each answer on a
//! connection of its own, and ends with its handle.

#![allow(clippy::unwrap_used, reason = "a test says what went wrong by failing")]

use std::{
    fs,
    io::{self, BufRead as _, BufReader, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

use tempfile::TempDir;

use super::spawn;

/// A request as a script sees it.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// Its number, from 0.
    pub(crate) n: usize,
    /// Path and query.
    pub(crate) uri: String,
    pub(crate) at: Instant,
    /// The header of that name; empty without one.
    pub(crate) authorization: String,
}

impl Asked {
    pub(crate) fn is_watch(&self) -> bool {
        self.uri.contains("watch=true")
    }

    /// The value of a parameter, as it is written.
    pub(crate) fn param(&self, name: &str) -> Option<&str> {
        let query = self.uri.split_once('?')?.1;
        let mut pairs = query.split('&').filter_map(|it| it.split_once('='));
        pairs.find(|(it, _)| *it == name).map(|(_, value)| value)
    }
}

/// Writes a piece of a body.
type WritePiece<'a> = dyn FnMut(&[u8]) -> io::Result<()> + 'a;

/// Writes what it likes, when it likes.
type Pace = dyn FnOnce(&mut WritePiece<'_>) -> io::Result<()> + Send;

/// What to answer.
pub(crate) enum Answer {
    /// A whole answer, with more headers.
    Whole(u16, Vec<(&'static str, String)>, String),
    /// The pieces of a body, and what then.
    Pieces(Vec<Vec<u8>>, Then),
    /// Whatever is written, at whatever pace; then nothing, with the connection held open.
    Paced(Box<Pace>),
    /// Nothing at all, with the connection held open.
    Silence,
    /// Nothing at all, and the connection is cut.
    HangUp,
}

/// What comes behind the pieces of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// The end of the body.
    End,
    /// The end of the body, after a while.
    EndAfter(Duration),
    /// Nothing: the connection stays open.
    Silence,
    /// The connection is cut.
    Cut,
}

impl Answer {
    pub(crate) fn json(body: impl Into<String>) -> Self {
        Self::Whole(200, Vec::new(), body.into())
    }

    pub(crate) fn status(code: u16, reason: &str) -> Self {
        Self::Whole(code, Vec::new(), status(code, reason))
    }

    pub(crate) fn lines(lines: &[String], then: Then) -> Self {
        let pieces = lines.iter().map(|it| format!("{it}\n").into_bytes());
        Self::Pieces(pieces.collect(), then)
    }
}

pub(crate) fn status(code: u16, reason: &str) -> String {
    format!(
        r#"{{"kind":"Status","apiVersion":"v1","metadata":{{}},"status":"Failure","message":"said: {reason}","reason":"{reason}","code":{code}}}"#
    )
}

/// An Event about a pod, as the server writes it.
pub(crate) fn event(name: &str, version: u64, pod: &str) -> String {
    event_with(name, version, pod, "a note")
}

pub(crate) fn event_with(name: &str, version: u64, pod: &str, note: &str) -> String {
    format!(
        r#"{{"metadata":{{"name":"{name}","namespace":"ns","uid":"uid-{name}","resourceVersion":"{version}","creationTimestamp":"2026-01-01T00:00:00Z"}},"reason":"Reason","note":"{note}","type":"Warning","regarding":{{"kind":"Pod","namespace":"ns","name":"{pod}","uid":"uid-{pod}"}},"eventTime":null,"deprecatedFirstTimestamp":"2026-01-01T00:00:00Z","deprecatedLastTimestamp":"2026-01-01T00:00:00Z","deprecatedCount":1}}"#
    )
}

pub(crate) fn list(version: u64, next: &str, items: &[String]) -> String {
    let items = items.join(",");
    format!(
        r#"{{"kind":"EventList","apiVersion":"events.k8s.io/v1","metadata":{{"resourceVersion":"{version}","continue":"{next}"}},"items":[{items}]}}"#
    )
}

pub(crate) fn frame(kind: &str, object: &str) -> String {
    format!(r#"{{"type":"{kind}","object":{object}}}"#)
}

/// A server that runs for as long as this lives.
pub(crate) struct Apiserver {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
    ended: Arc<AtomicBool>,
}

impl Apiserver {
    pub(crate) fn start(script: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::<Mutex<Vec<Asked>>>::default();
        let ended = Arc::new(AtomicBool::new(false));
        let script = Arc::new(script);
        let (asked_of, ended_of) = (Arc::clone(&asked), Arc::clone(&ended));
        spawn(move || {
            for stream in listener.incoming() {
                if ended_of.load(Relaxed) {
                    break;
                }
                let Ok(stream) = stream else { continue };
                let (asked, ended) = (Arc::clone(&asked_of), Arc::clone(&ended_of));
                let script = Arc::clone(&script);
                // A client that goes away in the middle is no failure of a test.
                spawn(move || drop(serve(&stream, &*script, &asked, &ended)));
            }
        });
        Self {
            address,
            asked,
            ended,
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// A kubeconfig for it, and the folder that it is in.
    pub(crate) fn kubeconfig(&self) -> (TempDir, PathBuf) {
        kubeconfig(&self.url())
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

/// A kubeconfig for a server at an address, and the folder that it is in.
pub(crate) fn kubeconfig(server: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kubeconfig");
    let text = format!(
        "apiVersion: v1\nkind: Config\nclusters: [{{name: c, cluster: {{server: '{server}'}}}}]\nusers: [{{name: u, user: {{}}}}]\ncontexts: [{{name: x, context: {{cluster: c, user: u}}}}]\ncurrent-context: x\n"
    );
    fs::write(&path, text).unwrap();
    (folder, path)
}

impl Drop for Apiserver {
    fn drop(&mut self) {
        self.ended.store(true, Relaxed);
        // Wakes the thread that accepts.
        drop(TcpStream::connect(self.address));
    }
}

const CHUNKED: &[u8] =
    b"HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n";

fn write_chunk(mut to: &TcpStream, bytes: &[u8]) -> io::Result<()> {
    // In one piece: two small ones would wait for each other (Nagle).
    let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
    chunk.extend_from_slice(bytes);
    chunk.extend_from_slice(b"\r\n");
    to.write_all(&chunk)
}

fn serve(
    stream: &TcpStream,
    script: &dyn Fn(&Asked) -> Answer,
    asked: &Mutex<Vec<Asked>>,
    ended: &AtomicBool,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut to = stream;
    let mut first = String::new();
    reader.read_line(&mut first)?;
    let Some(uri) = first.split(' ').nth(1).map(str::to_owned) else {
        return Ok(());
    };
    let (mut line, mut authorization) = (String::new(), String::new());
    while reader.read_line(&mut line)? > 2 {
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("authorization")
        {
            value.trim().clone_into(&mut authorization);
        }
        line.clear();
    }
    let it = {
        let mut asked = asked.lock().unwrap();
        let it = Asked {
            n: asked.len(),
            uri,
            at: Instant::now(),
            authorization,
        };
        asked.push(it.clone());
        it
    };
    let hold = || {
        while !ended.load(Relaxed) {
            thread::sleep(Duration::from_millis(20));
        }
    };
    match script(&it) {
        Answer::Silence => hold(),
        Answer::HangUp => {}
        Answer::Whole(code, headers, body) => {
            write!(to, "HTTP/1.1 {code} Said\r\nConnection: close\r\n")?;
            for (name, value) in headers {
                write!(to, "{name}: {value}\r\n")?;
            }
            write!(to, "Content-Length: {}\r\n\r\n{body}", body.len())?;
        }
        Answer::Paced(pace) => {
            to.write_all(CHUNKED)?;
            pace(&mut |bytes| write_chunk(to, bytes))?;
            hold();
        }
        Answer::Pieces(pieces, then) => {
            to.write_all(CHUNKED)?;
            for it in pieces {
                write_chunk(to, &it)?;
            }
            match then {
                Then::End => to.write_all(b"0\r\n\r\n")?,
                Then::EndAfter(a_while) => {
                    thread::sleep(a_while);
                    to.write_all(b"0\r\n\r\n")?;
                }
                Then::Silence => hold(),
                Then::Cut => {}
            }
        }
    }
    Ok(())
}
