//! Our watch against kube's own, over random histories of Events: both must end with what the server has.
//!
//! kube's watcher is the oracle where it can be one. What it cannot bear (a watch that ends at once, a 410 as a
//! status, a LIST that is never answered, an item or a line that is no Event) is not in these histories: it
//! has tests of its own, in `watch`.

#![allow(clippy::unwrap_used, reason = "a test says what went wrong by failing")]

mod support;

use std::{
    cell::RefCell,
    collections::BTreeMap,
    pin::pin,
    rc::Rc,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::StreamExt as _;
use k8s_openapi::api::events::v1::Event;
use kube::{
    Api,
    runtime::watcher::{self, watcher},
};
use portent::{
    scope,
    watch::{Informer, Observed, Settings, Shared, client},
};
use proptest::prelude::*;
use support::apiserver::{Answer, Apiserver, Asked, Then, event_with, frame, list, status};

/// What one moment of a history brings.
#[derive(Clone, Debug)]
enum Step {
    /// An Event of this number is written, or written again.
    Write(u8),
    /// It is deleted.
    Delete(u8),
    /// The watch ends, in good order or not, with this much of the history told.
    End,
    /// The watch ends, and what happened until then is compacted away.
    Compact,
    /// The server says what version it is at.
    Bookmark,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..12_u8).prop_map(Step::Write),
        3 => (0..12_u8).prop_map(Step::Delete),
        1 => Just(Step::End),
        1 => Just(Step::Compact),
        1 => Just(Step::Bookmark),
    ]
}

/// What a server of this history has and does.
#[derive(Debug, Default)]
struct History {
    /// Each moment is a version; the first is 101.
    steps: Vec<Step>,
}

const FIRST: u64 = 101;

impl History {
    fn last(&self) -> u64 {
        FIRST + u64::try_from(self.steps.len()).unwrap()
    }

    fn at(&self, version: u64) -> Option<&Step> {
        self.steps
            .get(usize::try_from(version.checked_sub(FIRST)?).unwrap())
    }

    /// The Events that there are at a version: number to the version that wrote it last.
    fn objects(&self, until: u64) -> BTreeMap<u8, u64> {
        let mut objects = BTreeMap::new();
        for version in FIRST..=until {
            match self.at(version) {
                Some(Step::Write(it)) => drop(objects.insert(*it, version)),
                Some(Step::Delete(it)) => drop(objects.remove(it)),
                _ => {}
            }
        }
        objects
    }

    fn object(number: u8, version: u64) -> String {
        // The note says which version it is of.
        event_with(&format!("e{number}"), version, "p", &version.to_string())
    }

    /// A LIST, in pages of three, of what there is at the version that its token names, or now.
    fn list(&self, asked: &Asked, now: u64) -> Answer {
        let (at, skip) = match asked.param("continue") {
            Some(token) => {
                let (at, skip) = token.split_once('.').unwrap();
                (at.parse().unwrap(), skip.parse().unwrap())
            }
            None => (now, 0),
        };
        let objects = self.objects(at);
        let items: Vec<_> = objects
            .iter()
            .skip(skip)
            .take(3)
            .map(|(number, version)| Self::object(*number, *version))
            .collect();
        let next = skip + items.len();
        let token = if next < objects.len() {
            format!("{at}.{next}")
        } else {
            String::new()
        };
        Answer::json(list(at, &token, &items))
    }

    /// A watch from a version: up to the next end, or to the end of it all and on.
    fn watch(&self, from: u64, compacted: &mut u64) -> (Answer, u64) {
        if from < *compacted {
            let line = frame("ERROR", &status(410, "Expired"));
            return (Answer::lines(&[line], Then::End), from);
        }
        let (mut lines, mut objects) = (Vec::new(), self.objects(from));
        for version in from + 1..self.last() {
            match self.at(version).unwrap() {
                Step::Write(it) => {
                    let kind = match objects.insert(*it, version) {
                        Some(_) => "MODIFIED",
                        None => "ADDED",
                    };
                    lines.push(frame(kind, &Self::object(*it, version)));
                }
                Step::Delete(it) => {
                    if objects.remove(it).is_some() {
                        lines.push(frame("DELETED", &Self::object(*it, version)));
                    }
                }
                Step::Bookmark => {
                    let at = format!(
                        r#"{{"kind":"Event","apiVersion":"events.k8s.io/v1","metadata":{{"resourceVersion":"{version}","creationTimestamp":null}},"eventTime":null}}"#
                    );
                    lines.push(frame("BOOKMARK", &at));
                }
                // One that ends at once is a fault that kube's watcher cannot bear.
                Step::End if !lines.is_empty() => {
                    return (Answer::lines(&lines, Then::End), version);
                }
                Step::Compact if !lines.is_empty() => {
                    *compacted = version;
                    return (Answer::lines(&lines, Then::End), version);
                }
                Step::End | Step::Compact => {}
            }
        }
        (Answer::lines(&lines, Then::Silence), self.last())
    }
}

/// A server of a history, for one client: it goes on where that client has read to.
fn serve(history: Arc<History>) -> Apiserver {
    let state = Mutex::new((FIRST - 1, 0_u64));
    Apiserver::start(move |asked| {
        let (now, compacted) = &mut *state.lock().unwrap();
        if asked.is_watch() {
            let from: u64 = asked.param("resourceVersion").unwrap().parse().unwrap();
            let (answer, read_to) = history.watch(from, compacted);
            *now = (*now).max(read_to.min(history.last() - 1));
            answer
        } else {
            history.list(asked, *now)
        }
    })
}

/// Names to notes.
type Held = BTreeMap<String, String>;

const PATIENCE: Duration = Duration::from_mins(1);

/// What our informer holds, once it is what is wanted.
async fn ours(server: &Apiserver, wanted: &Held) -> Held {
    let config = kube::Config::new(server.url().parse().unwrap());
    let settings = Settings {
        backoff_max: Duration::from_millis(60),
        page_size: 3,
        ..Settings::default()
    };
    let watch = scope::Watch {
        namespace: Some("ns".parse().unwrap()),
        kind: "Pod".parse().unwrap(),
    };
    let informer = Informer::new(client(config).unwrap(), watch, settings, Shared::default());
    // Mark and sweep, as whoever holds records has to.
    let held = Rc::<RefCell<BTreeMap<String, (u32, String)>>>::default();
    let running = informer.run(|listing, seen| {
        let mut held = held.borrow_mut();
        match seen {
            Observed::Put(it) => {
                held.insert(it.metadata.name.to_string(), (listing, it.note.to_string()));
            }
            Observed::Deleted(it) => drop(held.remove(&*it.metadata.name)),
            Observed::Paused => {}
            Observed::Synced => held.retain(|_, (of, _)| *of == listing),
        }
    });
    let now = || -> Held {
        let held = held.borrow();
        held.iter()
            .map(|(name, (_, note))| (name.clone(), note.clone()))
            .collect()
    };
    let waiting = async {
        while now() != *wanted {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::select! {
        _ = running => unreachable!("it never ends"),
        _ = tokio::time::timeout(PATIENCE, waiting) => now(),
    }
}

/// What kube's watcher holds, once it is what is wanted.
async fn theirs(server: &Apiserver, wanted: &Held) -> Held {
    let mut config = kube::Config::new(server.url().parse().unwrap());
    config.default_retry = false;
    let api = Api::<Event>::namespaced(kube::Client::try_from(config).unwrap(), "ns");
    let mut stream = pin!(watcher(api, watcher::Config::default().page_size(3)));
    let (mut held, mut listed) = (Held::new(), Held::new());
    let reading = async {
        while held != *wanted {
            let entry = |it: Event| (it.metadata.name.unwrap(), it.note.unwrap_or_default());
            match stream.next().await.unwrap() {
                Ok(watcher::Event::Apply(it)) => held.extend([entry(it)]),
                Ok(watcher::Event::Delete(it)) => drop(held.remove(&entry(it).0)),
                Ok(watcher::Event::Init) => listed.clear(),
                Ok(watcher::Event::InitApply(it)) => listed.extend([entry(it)]),
                Ok(watcher::Event::InitDone) => held = std::mem::take(&mut listed),
                // A 410, for example: it lists anew.
                Err(_) => {}
            }
        }
    };
    tokio::time::timeout(PATIENCE, reading).await.ok();
    held
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn both_end_with_what_the_server_has(steps in prop::collection::vec(step(), 0..40)) {
        let history = Arc::new(History { steps });
        let wanted: Held = history
            .objects(history.last())
            .into_iter()
            .map(|(number, version)| (format!("e{number}"), version.to_string()))
            .collect();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let (ours, theirs) = runtime.block_on(async {
            // Each has a server of its own: what one has read the other has not.
            let servers = [serve(Arc::clone(&history)), serve(Arc::clone(&history))];
            let ours = ours(&servers[0], &wanted).await;
            (ours, theirs(&servers[1], &wanted).await)
        });
        prop_assert_eq!(&ours, &wanted, "ours");
        prop_assert_eq!(&theirs, &wanted, "kube's");
    }
}
