//! What only the informer itself knows of its waits.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::TcpListener,
    thread,
};

use super::*;

/// A server that answers once: with this, and after a while with the end.
fn answer_once(body: &'static str, lasts: Duration) -> kube::Config {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let serve = move || {
        let (mut stream, _) = listener.accept().unwrap();
        let request = BufReader::new(&stream).lines();
        for _ in request
            .map_while(Result::ok)
            .take_while(|it| !it.is_empty())
        {}
        let begin = format!("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{body}");
        stream.write_all(begin.as_bytes()).unwrap();
        thread::sleep(lasts);
    };
    let server = thread::Builder::new().name("beside-a-test".to_owned());
    server.spawn(serve).unwrap();
    kube::Config::new(url.parse().unwrap())
}

#[test]
fn only_a_watch_that_lasted_makes_the_next_wait_a_first_one() {
    let list = r#"{"metadata":{"resourceVersion":"10"},"items":[]}"#;
    let (no_time, a_while) = (Duration::ZERO, Duration::from_millis(300));
    for (is_watch, timeout, lasts, is_first) in [
        (false, Duration::from_mins(1), no_time, false),
        (true, Duration::from_mins(1), no_time, false),
        (true, Duration::from_millis(400), a_while, true),
    ] {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let wait = runtime.block_on(async {
            let config = answer_once(if is_watch { "" } else { list }, lasts);
            let watch = Watch {
                namespace: None,
                kind: "Pod".parse().unwrap(),
            };
            let settings = Settings {
                timeout,
                ..Settings::default()
            };
            let client = client(config).unwrap();
            let mut it = Informer::new(client, watch, settings, Shared::default());
            it.backoff = Backoff::new(Duration::from_hours(24), fastrand::Rng::with_seed(7));
            for _ in 0..20 {
                it.backoff.next(None);
            }
            if is_watch {
                drop(it.watch("10".to_owned(), &mut |_, _| {}).await);
            } else {
                it.list(&mut |_, _| {}).await.unwrap();
            }
            it.backoff.next(None)
        });
        // Else it would be one of up to fourteen hours.
        let what = format!("a watch: {is_watch}, of {lasts:?}: {wait:?}");
        assert_eq!(wait < Duration::from_secs(1), is_first, "{what}");
    }
}
