//! Changes on their way to a reader.

use std::io::{self, Write};

use portent_model::{
    outcome::{Attributes, Blame, Change, Delta, Finding, Identity, Provenance, Severity, Status},
    record::ObjectKey,
    sink::{Closer, Outbox},
    store::Version,
    subject::SubjectKey,
    sync::{
        Arc, Fault, Mutex,
        mpsc::{self, Receiver, Sender},
        thread,
    },
};

use serde_json::Value;

use super::{check, check_caught};

const WITHIN: std::time::Duration = std::time::Duration::from_secs(1);

/// That a fault of a pod has a message.
fn change(pod: &str, message: u64) -> Change {
    let finding = Finding {
        identity: Identity {
            category: "fault".into(),
            code: "1".into(),
            key: "".into(),
        },
        severity: Severity::Critical,
        status: Status::Active,
        blame: Blame::Unknown,
        message: message.to_string().into(),
        attributes: Attributes::default(),
        evidence: Vec::new(),
    };
    Change {
        subject: SubjectKey {
            object: ObjectKey::new("ns", "Pod", pod).unwrap(),
            uid: "u".into(),
        },
        api_version: "v1".into(),
        classifier: Arc::new(Provenance {
            name: "gpu".into(),
            version: "1".into(),
            digest: "d".into(),
            settings_digest: "s".into(),
            wit: "w".into(),
        }),
        version: Version::default(),
        delta: Delta {
            raised: vec![finding],
            ..Delta::default()
        },
    }
}

/// A reader who breaks off before it has read more than so much.
struct Reader {
    read: Arc<Mutex<Vec<u8>>>,
    has_read: Sender<()>,
    max_bytes: usize,
}

impl Write for Reader {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut read = self.read.lock().unwrap();
        if self.max_bytes < read.len() + bytes.len() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        read.extend_from_slice(bytes);
        // Nobody may wait for it.
        self.has_read.send(()).ok();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// An outbox with a reader.
struct Open {
    outbox: Outbox,
    closer: Closer,
    read: Arc<Mutex<Vec<u8>>>,
    has_read: Receiver<()>,
}

impl Open {
    fn to(max_bytes: usize) -> Self {
        let (outbox, read) = (Outbox::default(), Arc::default());
        let (tell, has_read) = mpsc::channel();
        let reader = Reader {
            read: Arc::clone(&read),
            has_read: tell,
            max_bytes,
        };
        Self {
            closer: outbox.start(1, reader).unwrap(),
            outbox,
            read,
            has_read,
        }
    }

    /// Two threads that each tell three things of a pod, and then the end.
    fn tell_six(self) -> (Outbox, Vec<Value>) {
        let threads = ["p", "q"].map(|pod| {
            let outbox = self.outbox.clone();
            thread::spawn(move || {
                for n in 0..3 {
                    outbox.push(change(pod, n), false);
                }
            })
        });
        for it in threads {
            it.join().unwrap();
        }
        assert!(self.closer.close(WITHIN));
        (self.outbox, lines(&self.read))
    }
}

fn lines(read: &Mutex<Vec<u8>>) -> Vec<Value> {
    let read = read.lock().unwrap();
    let lines = read.split(|it| *it == b'\n').filter(|it| !it.is_empty());
    lines
        .map(|it| serde_json::from_slice(it).unwrap())
        .collect()
}

fn while_it_is_open() {
    let open = Open::to(usize::MAX);
    for pod in ["p", "q"] {
        open.outbox.push(change(pod, 0), false);
    }
    while lines(&open.read).len() < 2 {
        open.has_read.recv().unwrap();
    }
    assert!(open.closer.close(WITHIN));
}

fn to_the_end() {
    let (outbox, lines) = Open::to(usize::MAX).tell_six();
    for (seq, line) in (1..).zip(&lines) {
        assert_eq!(line["seq"], seq);
    }
    for pod in ["p", "q"] {
        let of_pod = lines.iter().filter(|it| it["object"]["name"] == pod);
        let said: Vec<_> = of_pod
            .map(|it| it["raised"][0]["message"].as_str().unwrap())
            .collect();
        assert!(said.is_sorted_by(|a, b| a < b), "{said:?}");
        assert_eq!(said.last(), Some(&"2"), "the newest state is told");
    }
    let traffic = outbox.traffic();
    assert_eq!((traffic.waiting, traffic.dropped), (0, 0));
    assert_eq!(traffic.written, lines.len() as u64);
    assert_eq!(
        traffic.written + traffic.folded,
        6,
        "nothing is lost that is not counted"
    );
}

fn to_one_who_breaks_off() {
    let (outbox, lines) = Open::to(600).tell_six();
    let traffic = outbox.traffic();
    assert_eq!(traffic.waiting, 0);
    assert_eq!(traffic.written + traffic.folded + traffic.dropped, 6);
    assert!(lines.len() as u64 <= traffic.written);
}

/// If changes are looked for and then waited for it fails in run 3, if the end is told to
/// nobody in run 4.
#[test]
fn a_reader_is_told_the_newest_of_all_and_that_once() {
    check(to_the_end);
}

#[test]
fn a_reader_that_is_not_woken_is_seen_to_wait_for_ever() {
    check_caught(Fault::EverySecondUnheard, to_the_end);
}

/// With a reader that is woken before there is a change it fails in run 3.
#[test]
fn a_reader_that_waits_is_told_before_there_is_more() {
    check(while_it_is_open);
}

/// If what came while it breaks off is counted apart from what goes it fails in run 7.
#[test]
fn what_a_reader_who_breaks_off_is_not_told_is_counted() {
    check(to_one_who_breaks_off);
}
