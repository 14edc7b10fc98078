//! What a server and a network may do to a watch, and what it does then. The
//! server is scripted: a real one does none of this when asked.

#![allow(clippy::unwrap_used, reason = "a test says what went wrong by failing")]

mod support;

use std::{
    cell::RefCell,
    sync::{Arc, Mutex, atomic::Ordering::Relaxed},
    time::{Duration, Instant},
};

use futures_util::future::select_all;
use portent::{
    pods::decode::WirePod,
    scope,
    watch::{
        Budget, Class, Informer, Observed, Phase, Resource, Settings, Shared, Status,
        answered_within, client, is_ready,
    },
};
use support::apiserver::{Answer, Apiserver, Asked, Then, event, event_with, frame, list, status};

/// What an informer told, with the number of its LIST: `+name` for an Event that
/// exists, `-name` for one that is deleted, `synced`.
type Told = Vec<(u32, String)>;

/// As patient as a test is.
const PATIENCE: Duration = Duration::from_secs(20);

/// There is no shorter wait after a failure.
const AT_LEAST: Duration = Duration::from_millis(50);

fn settings() -> Settings {
    Settings {
        timeout: Duration::from_mins(1),
        list_deadline: Duration::from_secs(10),
        start_deadline: Duration::from_secs(10),
        // Waits are what a test has least use for.
        backoff_max: Duration::from_millis(60),
        page_size: 500,
    }
}

fn pods() -> scope::Watch {
    scope::Watch {
        namespace: Some("ns".parse().unwrap()),
        kind: "Pod".parse().unwrap(),
    }
}

/// Runs informers against a server until it is enough; `on` is told which of them saw what.
#[track_caller]
fn run_until<R: Resource + Clone>(
    url: &str,
    settings: &Settings,
    shared: &Shared,
    watches: &[R],
    on: impl Fn(usize, u32, Observed<'_, R>),
    enough: impl Fn(&[Arc<Status>]) -> bool,
) -> Vec<Arc<Status>> {
    let config = kube::Config::new(url.parse().unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let client = client(config).unwrap();
        let (settings, on) = (settings, &on);
        let informers = watches.iter().map(|watch| {
            Informer::new(
                client.clone(),
                watch.clone(),
                settings.clone(),
                shared.clone(),
            )
        });
        let informers: Vec<_> = informers.collect();
        let statuses: Vec<_> = informers.iter().map(Informer::status).collect();
        let running = informers
            .into_iter()
            .enumerate()
            .map(|(n, informer)| Box::pin(informer.run(move |listing, seen| on(n, listing, seen))));
        let waiting = async {
            while !enough(&statuses) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::select! {
            _ = select_all(running) => unreachable!("none ever ends"),
            done = tokio::time::timeout(PATIENCE, waiting) => {
                assert!(done.is_ok(), "it was not enough: {statuses:#?}");
            }
        }
        statuses
    })
}

/// Runs an informer against a server until what was told and asked is enough.
#[track_caller]
fn watch_until(
    server: &Apiserver,
    settings: &Settings,
    shared: &Shared,
    enough: impl Fn(&Told, &[Asked]) -> bool,
) -> (Told, Arc<Status>) {
    let told = RefCell::<Told>::default();
    let on = |_, listing, seen: Observed<'_>| {
        let it = match seen {
            Observed::Put(it) => format!("+{}", &*it.metadata.name),
            Observed::Deleted(it) => format!("-{}", &*it.metadata.name),
            Observed::Synced => "synced".to_owned(),
            Observed::Paused => return,
        };
        told.borrow_mut().push((listing, it));
    };
    let enough = |_: &[_]| enough(&told.borrow(), &server.asked());
    let mut statuses = run_until(&server.url(), settings, shared, &[pods()], on, enough);
    (told.take(), statuses.remove(0))
}

#[track_caller]
fn watch(
    script: impl Fn(&Asked) -> Answer + Send + Sync + 'static,
    enough: impl Fn(&Told, &[Asked]) -> bool,
) -> (Told, Vec<Asked>, Arc<Status>) {
    let server = Apiserver::start(script);
    let (told, status) = watch_until(&server, &settings(), &Shared::default(), enough);
    (told, server.asked(), status)
}

/// `L` for a LIST, `C` for a further page of one, and the version of each watch.
fn steps(asked: &[Asked]) -> String {
    let step = |it: &Asked| {
        if it.is_watch() {
            format!("W{}", it.param("resourceVersion").unwrap_or("?"))
        } else if it.param("continue").is_some() {
            "C".to_owned()
        } else {
            "L".to_owned()
        }
    };
    asked.iter().map(step).collect::<Vec<_>>().join(" ")
}

fn failures(status: &Status, of: Class) -> u64 {
    status.failures().find(|(it, _)| *it == of).unwrap().1
}

fn names(told: &Told) -> String {
    let names: Vec<_> = told.iter().map(|(_, it)| it.as_str()).collect();
    names.join(" ")
}

/// A LIST of one Event at version 10, and watches as they are scripted, by number.
fn listing_and(
    watch: impl Fn(usize, &Asked) -> Answer + Send + Sync + 'static,
) -> impl Fn(&Asked) -> Answer + Send + Sync + 'static {
    let n_watches = Mutex::new(0);
    move |it| {
        if !it.is_watch() {
            return Answer::json(list(10, "", &[event("a", 9, "p")]));
        }
        let n = {
            let mut n = n_watches.lock().unwrap();
            *n += 1;
            *n - 1
        };
        watch(n, it)
    }
}

fn quiet() -> Answer {
    Answer::Pieces(Vec::new(), Then::Silence)
}

#[test]
fn it_lists_and_then_follows_from_where_the_list_was() {
    let frames = [
        frame("ADDED", &event("b", 11, "p")),
        frame("MODIFIED", &event("a", 12, "p")),
        frame("DELETED", &event("b", 13, "p")),
    ];
    let script = listing_and(move |_, _| Answer::lines(&frames, Then::Silence));
    let (told, asked, status) = watch(script, |told, _| told.len() == 5);

    assert_eq!(names(&told), "+a synced +b +a -b");
    assert!(told.iter().all(|(listing, _)| *listing == 1));
    assert_eq!(steps(&asked), "L W10");
    for it in &asked {
        assert!(
            it.uri
                .starts_with("/apis/events.k8s.io/v1/namespaces/ns/events?")
        );
        assert_eq!(it.param("fieldSelector"), Some("regarding.kind%3DPod"));
    }
    assert_eq!(status.phase(), Phase::Watching);
    assert!(is_ready([&*status]));
}

#[test]
fn pages_are_one_listing_and_an_expired_one_begins_anew() {
    let n_expired = Mutex::new(0);
    let (told, asked, status) = watch(
        move |it| match (it.is_watch(), it.param("continue")) {
            (true, _) => quiet(),
            (false, None) => Answer::json(list(0, "next", &[event("a", 1, "p")])),
            (false, Some(_)) => {
                let mut n = n_expired.lock().unwrap();
                *n += 1;
                if *n == 1 {
                    Answer::status(410, "Expired")
                } else {
                    Answer::json(list(20, "", &[event("b", 2, "p")]))
                }
            }
        },
        |_, asked| asked.last().is_some_and(Asked::is_watch),
    );
    assert_eq!(steps(&asked), "L C L C W20");
    let listings: Vec<_> = told.iter().map(|(listing, _)| *listing).collect();
    assert_eq!(
        (names(&told).as_str(), &*listings),
        ("+a +a +b synced", &[1, 2, 2, 2][..])
    );
    assert_eq!(failures(&status, Class::Gone), 1);
}

#[test]
fn a_compacted_version_is_routine_however_it_is_said() {
    for said in ["frame", "status"] {
        let (told, asked, status) = watch(
            listing_and(move |n, _| match (n, said) {
                (0, "frame") => {
                    Answer::lines(&[frame("ERROR", &status(410, "Expired"))], Then::End)
                }
                (0, _) => Answer::status(410, "Expired"),
                _ => quiet(),
            }),
            |_, asked| asked.len() == 4,
        );
        assert_eq!(steps(&asked), "L W10 L W10", "410 as a {said}");
        assert_eq!(told.last().unwrap(), &(2, "synced".to_owned()));
        assert_eq!(failures(&status, Class::Gone), 1);
        // It never shows: neither as a phase nor in readiness.
        assert!(!matches!(status.phase(), Phase::Failing(_)) && is_ready([&*status]));
    }
}

#[test]
fn nothing_shows_while_a_compacted_version_is_listed_anew() {
    let script = |it: &Asked| match it.n {
        0 => Answer::json(list(10, "", &[])),
        1 => Answer::status(410, "Expired"),
        _ => Answer::Silence,
    };
    let (_, asked, status) = watch(script, |_, asked| asked.len() == 3);
    assert_eq!(steps(&asked), "L W10 L");
    assert_eq!(status.phase(), Phase::Listing);
    assert!(is_ready([&*status]));
}

#[test]
fn a_watch_that_lasted_goes_on_from_where_it_was_when_it_is_closed() {
    let settings = Settings {
        timeout: Duration::from_secs(1),
        ..settings()
    };
    // It was asked for a second at most: more than half of that is no short watch,
    // not even of one that brought nothing.
    let lasts = Duration::from_millis(600);
    let server = Apiserver::start(listing_and(move |n, _| match n {
        0 => Answer::Pieces(Vec::new(), Then::EndAfter(lasts)),
        1 => {
            let frames = [frame("ADDED", &event("b", 31, "p"))];
            Answer::lines(&frames, Then::EndAfter(lasts))
        }
        _ => quiet(),
    }));
    let (told, status) = watch_until(&server, &settings, &Shared::default(), |_, asked| {
        asked.len() == 4
    });
    assert_eq!(steps(&server.asked()), "L W10 W10 W31");
    assert_eq!(names(&told), "+a synced +b");
    assert!(status.failures().all(|(_, n)| n == 0), "{status:?}");
}

#[test]
fn a_bookmark_moves_the_version_on_and_what_is_not_understood_does_not() {
    let script = listing_and(|n, _| {
        if n > 0 {
            return quiet();
        }
        let frames = [
            frame("BOOKMARK", r#"{"metadata":{"resourceVersion":"77"}}"#),
            frame("DANCED", &event("x", 99, "p")),
            frame("ADDED", &event("b", 88, "p")).replace("\"88\"", "\"\""),
        ];
        Answer::lines(&frames, Then::End)
    });
    let (told, asked, _) = watch(script, |_, asked| asked.len() == 3);
    assert_eq!(names(&told), "+a synced +b");
    assert_eq!(steps(&asked), "L W10 W77");
}

#[test]
fn a_frame_whose_end_never_came_is_none() {
    let script = listing_and(|n, _| {
        if n > 0 {
            return quiet();
        }
        let whole = format!("{}\n", frame("ADDED", &event("b", 31, "p")));
        // Only its line end is missing: whether it is whole cannot be known.
        let cut = frame("ADDED", &event("c", 32, "p"));
        Answer::Pieces(vec![whole.into_bytes(), cut.into_bytes()], Then::End)
    });
    let (told, asked, status) = watch(script, |_, asked| asked.len() == 3);
    assert_eq!(names(&told), "+a synced +b");
    assert_eq!(steps(&asked), "L W10 W31");
    assert_eq!(status.undecodable.load(Relaxed), 1);
}

#[test]
fn it_is_told_when_there_is_no_more_news_for_now() {
    let server = Apiserver::start(listing_and(|_, _| {
        let frames = ["b", "c"].map(|name| frame("ADDED", &event(name, 11, "p")));
        Answer::lines(&frames, Then::Silence)
    }));
    let told = RefCell::<Vec<String>>::default();
    let on = |_, _, seen: Observed<'_>| match seen {
        Observed::Put(it) => told.borrow_mut().push(it.metadata.name.to_string()),
        Observed::Paused => told.borrow_mut().push("paused".to_owned()),
        Observed::Deleted(_) | Observed::Synced => {}
    };
    let enough = |_: &[_]| {
        let told = told.borrow();
        let last = told.iter().rposition(|it| it == "c");
        last.is_some_and(|at| told[at..].iter().any(|it| it == "paused"))
    };
    let shared = Shared::default();
    run_until(&server.url(), &settings(), &shared, &[pods()], on, enough);
}

#[test]
fn watches_that_end_at_once_and_bring_nothing_are_no_loop() {
    let script = listing_and(|_, _| Answer::Pieces(Vec::new(), Then::End));
    let (_, asked, status) = watch(script, |_, asked| 8 <= asked.len());
    // Each is a failure: there is a wait behind it, and a LIST.
    assert!(steps(&asked).starts_with("L W10 L W10 L W10 L W10"));
    assert!(3 <= failures(&status, Class::ShortWatch));
    let watches = asked.iter().filter(|it| it.is_watch());
    for (watch, next) in watches.zip(asked.iter().skip(2).step_by(2)) {
        assert!(AT_LEAST <= next.at - watch.at);
    }
}

#[test]
fn a_watch_that_ends_early_goes_on_from_its_last_frame() {
    let script = listing_and(|n, _| {
        let frames = [frame("ADDED", &event("b", 31, "p"))];
        let then = if n == 0 { Then::End } else { Then::Silence };
        Answer::lines(&frames, then)
    });
    let (told, asked, status) = watch(script, |told, _| told.len() == 4);
    assert_eq!(steps(&asked), "L W10 W31");
    assert_eq!(names(&told), "+a synced +b +b");
    assert_eq!(failures(&status, Class::ShortWatch), 1);
}

#[test]
fn a_connection_that_is_cut_costs_what_was_on_it() {
    let script = listing_and(|n, _| {
        if n > 0 {
            return quiet();
        }
        let whole = format!("{}\n", frame("ADDED", &event("b", 31, "p")));
        let half = frame("ADDED", &event("c", 32, "p"));
        let half = half.as_bytes()[..60].to_vec();
        Answer::Pieces(vec![whole.into_bytes(), half], Then::Cut)
    });
    let (told, asked, status) = watch(script, |_, asked| asked.len() == 3);
    assert_eq!(names(&told), "+a synced +b");
    assert_eq!(steps(&asked), "L W10 W31");
    assert_eq!(failures(&status, Class::Transport), 1);
}

#[test]
fn a_page_that_is_cut_is_read_again() {
    let (told, asked, status) = watch(
        |it| match (it.is_watch(), it.n) {
            (true, _) => quiet(),
            (false, n) => {
                let page = list(10, "", &[event("a", 1, "p"), event("b", 2, "p")]);
                let end = if n == 0 { page.len() - 20 } else { page.len() };
                Answer::Pieces(vec![page.as_bytes()[..end].to_vec()], Then::End)
            }
        },
        |_, asked| asked.len() == 3,
    );
    assert_eq!(steps(&asked), "L L W10");
    assert_eq!(names(&told), "+a +a +b synced");
    assert_eq!(failures(&status, Class::Page), 1);
}

#[test]
fn a_list_that_is_never_answered_is_asked_again_in_smaller_pages() {
    let settings = Settings {
        list_deadline: Duration::from_millis(200),
        ..settings()
    };
    let server = Apiserver::start(|it| match (it.is_watch(), it.n) {
        (true, _) => quiet(),
        (false, 0) => Answer::Silence,
        (false, 1) => Answer::Pieces(vec![b"{\"items\":[".to_vec()], Then::Silence),
        (false, _) => Answer::json(list(10, "", &[])),
    });
    let (_, status) = watch_until(&server, &settings, &Shared::default(), |_, asked| {
        asked.last().is_some_and(Asked::is_watch)
    });
    let asked = server.asked();
    assert_eq!(steps(&asked), "L L L W10");
    let limits: Vec<_> = asked.iter().filter_map(|it| it.param("limit")).collect();
    assert_eq!(limits, ["500", "250", "125"]);
    assert_eq!(failures(&status, Class::Deadline), 2);
}

#[test]
fn pages_grow_again_once_they_come_in_time() {
    let settings = Settings {
        list_deadline: Duration::from_secs(1),
        ..settings()
    };
    let server = Apiserver::start(|it| match it.n {
        0 | 1 => Answer::Silence,
        _ => Answer::json(list(10, "next", &[])),
    });
    watch_until(&server, &settings, &Shared::default(), |_, asked| {
        asked[asked.len().min(2)..]
            .iter()
            .any(|it| it.param("limit") == Some("500"))
    });
    let asked = server.asked();
    let limits: Vec<_> = asked.iter().filter_map(|it| it.param("limit")).collect();
    assert_eq!(limits[..3], ["500", "250", "125"]);
}

#[test]
fn a_watch_that_does_not_begin_or_does_not_end_is_begun_again() {
    let settings = Settings {
        timeout: Duration::from_secs(1),
        start_deadline: Duration::from_millis(200),
        ..settings()
    };
    let server = Apiserver::start(listing_and(|n, _| match n {
        0 => Answer::Silence,
        _ => quiet(),
    }));
    // The server was asked for a second at most, and gets five more.
    let (_, status) = watch_until(&server, &settings, &Shared::default(), |_, asked| {
        asked.len() == 4
    });
    assert_eq!(steps(&server.asked()), "L W10 W10 W10");
    assert_eq!(failures(&status, Class::Deadline), 2);
}

#[test]
fn what_cannot_be_read_costs_itself() {
    let good = |name| event(name, 11, "p");
    let script = move |it: &Asked| {
        if it.is_watch() {
            let frames = [
                frame("ADDED", &good("c")),
                "{\"type\":\"ADDED\",\"object\":[1]}".to_owned(),
                "no JSON at all".to_owned(),
                frame("DANCED", &good("x")),
                frame("BOOKMARK", r#"{"metadata":{"resourceVersion":"77"}}"#),
                frame(
                    "ADDED",
                    &good("d").replace("\"reason\":\"Reason\"", "\"reason\":[7]"),
                ),
            ];
            return Answer::lines(&frames, Then::Silence);
        }
        let bad = ["7", "\"text\"", "[{}]"].map(str::to_owned);
        let items = [vec![good("a")], bad.to_vec(), vec![good("b")]].concat();
        Answer::json(list(10, "", &items))
    };
    let (told, asked, status) = watch(script, |told, _| told.len() == 5);
    assert_eq!(names(&told), "+a +b synced +c +d");
    assert_eq!(steps(&asked), "L W10");
    assert_eq!(status.undecodable.load(Relaxed), 6);
}

#[test]
fn an_event_over_the_cap_costs_itself_and_one_below_it_is_read() {
    const CAP: usize = 300_000;
    let shared = Shared::new(1, Budget::new(2 * CAP, CAP));
    // Both on a LIST and in a watch, in the middle of others.
    let large = |name: &str, n_over: isize| {
        let empty = event_with(name, 11, "p", "");
        let n = CAP.checked_add_signed(n_over).unwrap() - empty.len();
        event_with(name, 11, "p", &"x".repeat(n))
    };
    let server = Apiserver::start(move |it| {
        if it.is_watch() {
            let n_frame = frame("ADDED", "").len();
            let n_frame = isize::try_from(n_frame).unwrap();
            let frames = [
                frame("ADDED", &large("over", 1 - n_frame)),
                frame("ADDED", &large("far over", 4 * CAP.cast_signed())),
                frame("ADDED", &large("max", -n_frame)),
                frame("ADDED", &event("small", 12, "p")),
            ];
            return Answer::lines(&frames, Then::Silence);
        }
        let items = [
            large("over", 1),
            large("far over", 4 * CAP.cast_signed()),
            large("max", 0),
            event("small", 9, "p"),
        ];
        Answer::json(list(10, "", &items))
    });
    let (told, status) = watch_until(&server, &settings(), &shared, |told, _| told.len() == 5);
    assert_eq!(names(&told), "+max +small synced +max +small");
    assert_eq!(status.too_long.load(Relaxed), 4);
}

#[test]
fn a_refusal_is_an_answer_and_is_asked_again() {
    for (code, class, is_refusal) in [
        (401, Class::Unauthorized, true),
        (403, Class::Forbidden, true),
        (404, Class::NotFound, true),
        (400, Class::BadRequest, false),
        (429, Class::Throttled, false),
        (500, Class::Server, false),
        (503, Class::Server, false),
    ] {
        let (told, asked, status) = watch(
            move |_| Answer::status(code, "Why"),
            |_, asked| asked.len() == 3,
        );
        assert_eq!((steps(&asked).as_str(), told.len()), ("L L L", 0), "{code}");
        assert!(2 <= failures(&status, class), "{code}");
        assert_eq!(status.is_answered(), is_refusal, "{code}");
        let Phase::Failing(failure) = status.phase() else {
            panic!("{code}: {:?}", status.phase())
        };
        assert_eq!(failure.message, format!("HTTP {code}: said: Why"));
        for (it, next) in asked.iter().zip(&asked[1..]) {
            assert!(AT_LEAST <= next.at - it.at, "{code}");
        }
        // Nobody is ready when all that it has is refusals.
        assert!(!is_ready([&*status]));
    }
}

#[test]
fn a_refusal_stands_until_there_is_a_list() {
    let (_, asked, status) = watch(
        |it| match it.n {
            0 => Answer::status(403, "Forbidden"),
            _ => Answer::Silence,
        },
        |_, asked| asked.len() == 2,
    );
    // It asks again, but that is no success.
    assert_eq!(steps(&asked), "L L");
    assert_eq!(status.tell(), "refused (forbidden), never listed");

    let (_, asked, status) = watch(
        |it| match it.n {
            0 => Answer::status(403, "Forbidden"),
            1 => Answer::json(list(10, "", &[])),
            _ => Answer::Silence,
        },
        |_, asked| asked.len() == 3,
    );
    // The watch has not begun: what there is is the LIST.
    assert_eq!(steps(&asked), "L L W10");
    assert_eq!(status.tell(), "listing");
    assert!(is_ready([&*status]));
}

#[test]
fn a_server_that_asks_for_a_day_is_given_our_own_bound() {
    let (_, asked, status) = watch(
        |it| match (it.is_watch(), it.n) {
            (true, _) => quiet(),
            (false, 0) => {
                let headers = vec![("Retry-After", "86400".to_owned())];
                Answer::Whole(429, headers, self::status(429, "TooManyRequests"))
            }
            (false, _) => Answer::json(list(10, "", &[])),
        },
        |_, asked| asked.len() == 3,
    );
    assert_eq!(steps(&asked), "L L W10");
    assert_eq!(failures(&status, Class::Throttled), 1);
    assert!(settings().backoff_max <= asked[1].at - asked[0].at);
}

#[test]
fn a_wait_that_a_server_asks_for_is_kept() {
    // More than the first wait ever is by itself.
    let wait = Duration::from_secs(1);
    let settings = Settings {
        backoff_max: 5 * wait,
        ..settings()
    };
    let server = Apiserver::start(|it| match it.n {
        0 => {
            let headers = vec![("Retry-After", "1".to_owned())];
            Answer::Whole(429, headers, self::status(429, "TooManyRequests"))
        }
        _ => Answer::Silence,
    });
    watch_until(&server, &settings, &Shared::default(), |_, asked| {
        asked.len() == 2
    });
    let asked = server.asked();
    assert!(wait <= asked[1].at - asked[0].at);
}

#[test]
fn a_server_that_is_gone_is_tried_again_and_is_no_loop() {
    let n_times = 4;
    // Nobody listens: there is no such service, and nobody may begin one by chance.
    let began = Instant::now();
    let statuses = run_until(
        "http://127.0.0.1:1",
        &settings(),
        &Shared::default(),
        &[pods()],
        |_, _, seen| panic!("{seen:?}"),
        |it| n_times <= failures(&it[0], Class::Transport),
    );
    let n_failures = failures(&statuses[0], Class::Transport);
    let most = began.elapsed().as_millis() / AT_LEAST.as_millis() + 1;
    assert!(u128::from(n_failures) <= most, "{n_failures} failures");
    assert!(!statuses[0].is_answered());

    // It hangs up, before an answer and in one.
    for in_answer in [false, true] {
        let (_, asked, status) = watch(
            move |_| {
                if in_answer {
                    Answer::Pieces(Vec::new(), Then::Cut)
                } else {
                    Answer::HangUp
                }
            },
            |_, asked| n_times <= asked.len() as u64,
        );
        for (it, next) in asked.iter().zip(&asked[1..]) {
            assert!(AT_LEAST <= next.at - it.at, "in an answer: {in_answer}");
        }
        let n_failures = failures(&status, Class::Transport);
        assert!(n_times - 1 <= n_failures, "{status:?}");
        assert!(!status.is_answered());
    }
}

#[test]
fn the_connection_is_asked_whether_it_is_still_there() {
    let server = Apiserver::start(listing_and(|_, _| quiet()));
    let port = server.url().rsplit(':').next().unwrap().to_owned();
    let port: u16 = port.parse().unwrap();
    let is_kept_alive = move || {
        // The kernel's own word: timer 2 of an established connection is keepalive,
        // and behind it is when, in hundredths of a second. Its own default is hours.
        let table = std::fs::read_to_string("/proc/self/net/tcp").unwrap();
        table.lines().skip(1).any(|line| {
            let fields: Vec<_> = line.split_ascii_whitespace().collect();
            let after = fields[5].strip_prefix("02:");
            fields[2].ends_with(&format!(":{port:04X}"))
                && fields[3] == "01"
                && after.is_some_and(|it| u64::from_str_radix(it, 16).unwrap() <= 15 * 100)
        })
    };
    watch_until(&server, &settings(), &Shared::default(), |_, asked| {
        asked.last().is_some_and(Asked::is_watch) && is_kept_alive()
    });
}

/// Watches pods until it is enough of what was told, as [`watch`] does.
#[track_caller]
fn watch_pods(
    selector: &str,
    namespace: Option<&str>,
    script: impl Fn(&Asked) -> Answer + Send + Sync + 'static,
    enough: impl Fn(&Told, &Status) -> bool,
) -> (Told, Vec<Asked>, Arc<Status>) {
    let server = Apiserver::start(script);
    let told = RefCell::<Told>::default();
    let on = |_, listing, seen: Observed<'_, scope::PodWatch>| {
        let named = |it: &WirePod<'_>| it.metadata.name.to_string();
        let it = match seen {
            Observed::Put(it) => format!("+{} on {}", named(&it), &*it.spec.node_name),
            Observed::Deleted(it) => format!("-{}", named(&it)),
            Observed::Synced => "synced".to_owned(),
            Observed::Paused => return,
        };
        told.borrow_mut().push((listing, it));
    };
    let enough = |all: &[Arc<Status>]| enough(&told.borrow(), &all[0]);
    let of = scope::PodWatch {
        namespace: namespace.map(|it| it.parse().unwrap()),
        selector: selector.parse().unwrap(),
    };
    let shared = Shared::default();
    let mut statuses = run_until(&server.url(), &settings(), &shared, &[of], on, enough);
    (told.take(), server.asked(), statuses.remove(0))
}

fn pod(name: &str, version: u64, node: &str) -> String {
    format!(
        r#"{{"metadata":{{"name":"{name}","namespace":"ns","uid":"uid-{name}","resourceVersion":"{version}"}},"spec":{{"nodeName":"{node}"}},"status":{{"phase":"Running"}}}}"#
    )
}

#[test]
fn pods_are_listed_and_watched_by_their_labels() {
    let script = |it: &Asked| match (it.is_watch(), it.param("resourceVersion")) {
        (false, _) => Answer::json(list(
            10,
            "",
            &[pod("a", 3, ""), "7".to_owned(), pod("b", 4, "n1")],
        )),
        (true, Some("10")) => Answer::lines(
            &[
                frame("MODIFIED", &pod("a", 11, "n2")),
                frame("DELETED", &pod("b", 12, "n1")),
                frame(
                    "BOOKMARK",
                    r#"{"kind":"Pod","metadata":{"resourceVersion":"20"}}"#,
                ),
            ],
            Then::EndAfter(Duration::from_millis(10)),
        ),
        (true, _) => Answer::Pieces(Vec::new(), Then::Silence),
    };
    let enough =
        |told: &Told, status: &Status| 5 <= told.len() && 2 <= status.watches.load(Relaxed);
    let selector = "run in (a,b),app=trainer";
    let (told, asked, status) = watch_pods(selector, Some("ns"), script, enough);
    let told: Vec<_> = told.iter().map(|(_, it)| it.as_str()).collect();
    assert_eq!(told, ["+a on ", "+b on n1", "synced", "+a on n2", "-b"]);
    assert_eq!(status.undecodable.load(Relaxed), 1);
    assert_eq!(status.watch().to_string(), "pods in ns");
    // A bookmark moves it on.
    assert_eq!(steps(&asked), "L W10 W20");
    for it in &asked {
        assert!(
            it.uri.starts_with("/api/v1/namespaces/ns/pods?"),
            "{}",
            it.uri
        );
        assert_eq!(
            it.param("labelSelector"),
            Some("app%3Dtrainer%2Crun+in+%28a%2Cb%29")
        );
        assert_eq!(it.param("fieldSelector"), None);
    }
}

#[test]
fn all_pods_everywhere_are_asked_for_without_a_selector() {
    let script = |it: &Asked| {
        if it.is_watch() {
            Answer::Pieces(Vec::new(), Then::Silence)
        } else {
            Answer::json(list(10, "", &[]))
        }
    };
    let (_, asked, _) = watch_pods("", None, script, |_, it| 1 <= it.watches.load(Relaxed));
    for it in asked {
        assert!(it.uri.starts_with("/api/v1/pods?"), "{}", it.uri);
        assert_eq!(it.param("labelSelector"), None);
    }
}

#[test]
fn a_watch_of_pods_without_permission_says_so_and_has_an_answer() {
    let script = |_: &Asked| Answer::status(403, "Forbidden");
    let (_, _, status) = watch_pods("a", None, script, |_, it| it.is_answered());
    assert_eq!(status.tell(), "refused (forbidden), never listed");
    assert!(!is_ready([&*status]), "pods alone tell nothing");
}

#[test]
fn who_waits_for_an_answer_gets_it_or_waits_no_longer() {
    let within = |script: fn(&Asked) -> Answer, patience| {
        let server = Apiserver::start(script);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let client = client(kube::Config::new(server.url().parse().unwrap())).unwrap();
            let informer = Informer::new(client, pods(), settings(), Shared::default());
            let statuses = [informer.status()];
            tokio::select! {
                never = informer.run(|_, _| {}) => match never {},
                it = answered_within(&statuses, patience) => it,
            }
        })
    };
    assert!(within(|_| Answer::json(list(10, "", &[])), PATIENCE));
    assert!(within(|_| Answer::status(404, "NotFound"), PATIENCE));
    assert!(!within(|_| Answer::Silence, Duration::from_millis(50)));
    assert!(!within(
        |_| Answer::status(500, "Odd"),
        Duration::from_millis(50)
    ));
}
