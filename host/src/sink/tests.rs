//! What a reader is told, whatever it does.

use super::*;
use crate::{
    interner::Interner,
    outcome::{
        AdditionalReason, Attributes, Blame, Delta, EndReason, Finding, Identity, Provenance,
        Severity, Status,
    },
    record::{Caps, ObjectKey, Record},
    store::Version,
};

fn finding(key: &str, message: &str) -> Finding {
    Finding {
        identity: Identity {
            category: "gpu-fault".into(),
            code: "Xid79".into(),
            key: key.into(),
        },
        severity: Severity::Critical,
        status: Status::Active,
        blame: Blame::Unknown,
        message: message.into(),
        attributes: Attributes::default(),
        evidence: Vec::new(),
    }
}

fn change(pod: &str, delta: Delta) -> Change {
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
        delta,
    }
}

fn raised(key: &str, message: &str) -> Delta {
    Delta {
        raised: vec![finding(key, message)],
        ..Delta::default()
    }
}

fn changed(key: &str, message: &str) -> Delta {
    Delta {
        changed: vec![finding(key, message)],
        ..Delta::default()
    }
}

fn cleared(key: &str) -> Delta {
    Delta {
        cleared: vec![(finding(key, ""), EndReason::NotYielded)],
        ..Delta::default()
    }
}

fn record(name: &str) -> Record {
    let json = serde_json::json!({
        "metadata": { "namespace": "ns", "name": name, "uid": name },
        "regarding": { "kind": "Pod", "namespace": "ns", "name": "p" },
    });
    let wire = json.to_string();
    let wire = serde_json::from_str(&wire).unwrap();
    Record::pare_down(&wire, Caps::default(), &Interner::default())
        .unwrap()
        .1
}

fn reason(event: &str, text: &str) -> Delta {
    Delta {
        additional_reasons: vec![Arc::new(AdditionalReason::new(
            text.into(),
            1,
            &record(event),
            Attributes::default(),
        ))],
        ..Delta::default()
    }
}

/// Wants that folding these leaves these entries, and loses so many.
#[track_caller]
fn check_fold(deltas: impl IntoIterator<Item = Delta>, want: &[&str], n_lost: usize) {
    let mut changes = deltas.into_iter().map(|it| change("p", it));
    let mut all = changes.next().unwrap();
    let n: usize = changes.map(|it| all.fold(it)).sum();
    let say = |sign: char, it: &Finding| format!("{sign}{}:{}", it.identity.key, it.message);
    let Delta {
        raised,
        changed,
        cleared,
        additional_reasons,
        verdict: _,
    } = &all.delta;
    let said: Vec<_> = raised
        .iter()
        .map(|it| say('+', it))
        .chain(changed.iter().map(|it| say('~', it)))
        .chain(cleared.iter().map(|(it, _)| say('-', it)))
        .chain(
            additional_reasons
                .iter()
                .map(|it| format!("{}={}", it.event.name(), it.text())),
        )
        .collect();
    assert_eq!(
        (said.iter().map(String::as_str).collect::<Vec<_>>(), n),
        (want.to_vec(), n_lost)
    );
}

#[test]
fn of_what_is_folded_the_newest_state_stands() {
    check_fold([raised("a", "1"), raised("b", "1")], &["+a:1", "+b:1"], 0);
    // Who has not been told that it was raised is told that, with what it says now.
    check_fold([raised("a", "1"), changed("a", "2")], &["+a:2"], 1);
    check_fold([changed("a", "1"), changed("a", "2")], &["~a:2"], 1);
    check_fold([raised("a", "1"), cleared("a")], &["-a:"], 1);
    check_fold([cleared("a"), raised("a", "2")], &["+a:2"], 1);
    check_fold(
        [reason("e", "1"), reason("f", "1"), reason("e", "2")],
        &["f=1", "e=2"],
        1,
    );
}

/// A reader that takes nothing until it is let.
struct Stalled {
    gate: Arc<(Mutex<bool>, Condvar)>,
    read: Arc<Mutex<Vec<u8>>>,
}

impl Write for Stalled {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut open = self.gate.0.lock().unwrap();
        while !*open {
            open = self.gate.1.wait(open).unwrap();
        }
        self.read.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_reader_that_stalls_holds_up_nobody_and_reads_the_newest_state_at_last() {
    const N: usize = 20_000;
    let gate = Arc::<(Mutex<bool>, Condvar)>::default();
    let read = Arc::<Mutex<Vec<u8>>>::default();
    let to = Stalled {
        gate: Arc::clone(&gate),
        read: Arc::clone(&read),
    };
    let outbox = Outbox::default();
    let closer = outbox.start(7, to).unwrap();

    // However many come, there is one for each pod that waits.
    for n in 0..N {
        outbox.push(
            change(&format!("p{}", n % 4), raised("a", &n.to_string())),
            false,
        );
    }
    let traffic = outbox.traffic();
    assert!(traffic.waiting <= 4, "{traffic:?}");

    *gate.0.lock().unwrap() = true;
    gate.1.notify_all();
    assert!(closer.close(Duration::from_mins(1)));

    let read = String::from_utf8(read.lock().unwrap().clone()).unwrap();
    let lines: Vec<serde_json::Value> = read
        .lines()
        .map(|it| serde_json::from_str(it).unwrap())
        .collect();
    let seqs: Vec<_> = lines.iter().map(|it| it["seq"].as_u64().unwrap()).collect();
    assert!(
        seqs.iter()
            .copied()
            .eq(1..=u64::try_from(lines.len()).unwrap())
    );
    assert!(lines.iter().all(|it| it["epoch"] == 7));
    for pod in 0..4 {
        let of_pod = |it: &&serde_json::Value| it["object"]["name"] == format!("p{pod}");
        let last = lines.iter().rfind(of_pod).unwrap();
        assert_eq!(last["raised"][0]["message"], (N - 4 + pod).to_string());
    }
    let traffic = outbox.traffic();
    assert_eq!((traffic.waiting, traffic.dropped), (0, 0));
    // Nothing is lost that is not counted.
    assert_eq!(traffic.written + traffic.folded, N as u64);
}

struct Gone;

impl Write for Gone {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn what_goes_to_a_reader_that_is_gone_is_counted_and_not_kept() {
    let outbox = Outbox::default();
    let closer = outbox.start(1, Gone).unwrap();
    outbox.push(change("p", raised("a", "1")), false);
    assert!(closer.close(Duration::from_mins(1)));
    outbox.push(change("q", raised("a", "1")), false);
    let Traffic {
        waiting, dropped, ..
    } = outbox.traffic();
    assert!(waiting == 0 && 1 <= dropped);
}
