//! `portent run` as a process, against a scripted server: what needs no cluster to be seen.

#![allow(clippy::unwrap_used, reason = "a test says what went wrong by failing")]

mod support;

use std::{fs, process::Command, time::Duration};

use portent_hostile::component_of;
use support::{
    apiserver::{Answer, Apiserver, Asked, Then, event, event_with, frame, list},
    failed::{failed, on_node},
    running::{Running, config, plugins},
    stamped,
};

/// Flyte's agent's words for a GPU that is gone.
const FAULT: &str = "[gpu-health] [CRITICAL] Xid 79 (GPU has fallen off the bus) on GPU 5 \
    GPU-b8c1f0a2-7d43-4e19-9a65-2f0c8e71d4b6. xid=79 severity=critical \
    gpu_uuid=GPU-b8c1f0a2-7d43-4e19-9a65-2f0c8e71d4b6 gpu_index=5 pci=0000:ab:00.0 node=n pid=1 process=p";

fn fault(name: &str, version: u64, pod: &str) -> String {
    event_with(name, version, pod, FAULT).replace("\"Reason\"", "\"GPUXidError\"")
}

/// Answers a LIST of the pods' Events, and a watch that brings nothing.
fn quiet(items: Vec<String>) -> impl Fn(&Asked) -> Answer {
    move |it| {
        if it.is_watch() {
            Answer::Pieces(Vec::new(), Then::Silence)
        } else {
            Answer::json(list(10, "", &items))
        }
    }
}

#[test]
fn it_tells_of_what_it_lists_and_then_of_what_is_new_and_ends_when_asked() {
    let Some(plugins) = plugins() else { return };
    let server = Apiserver::start(|it| {
        if it.is_watch() {
            let frames = [frame("ADDED", &fault("b", 11, "q"))];
            Answer::lines(&frames, Then::Silence)
        } else {
            Answer::json(list(10, "", &[fault("a", 9, "p")]))
        }
    });
    let (_folder, kubeconfig) = server.kubeconfig();
    let mut portent = Running::start(&config(&["ns"], &plugins, ""), &kubeconfig);
    portent.until_ready();
    let changes = portent.until("changes of both", |it| {
        let changes = it.changes();
        let told = |pod: &str| changes.iter().any(|it| it["object"]["name"] == pod);
        (told("p") && told("q")).then_some(changes)
    });
    let of = |pod: &str| {
        changes
            .iter()
            .find(|it| it["object"]["name"] == pod)
            .unwrap()
    };
    assert_eq!(
        (&of("p")["initial"], &of("q")["initial"]),
        (&true.into(), &false.into())
    );
    assert!(changes.iter().all(|it| it["epoch"] == changes[0]["epoch"]));

    // Counts and configured names are told, and nothing of what Events say.
    for page in ["/livez", "/readyz?verbose", "/metrics"] {
        let (code, text) = portent.get(page);
        assert_eq!(code, 200, "{page}");
        assert!(
            !text.contains("fallen") && !text.contains("uid-"),
            "{page}: {text}"
        );
    }
    assert_eq!(portent.metric("portent_records", &[]), 2);
    assert_eq!(portent.metric("portent_events_received_total", &[]), 2);
    assert_eq!(portent.metric("portent_events_in_flight", &[]), 0);
    assert_eq!(
        portent.metric("portent_watch_state", &["ns", "Pod", "watching"]),
        1
    );

    let (status, took) = portent.terminate();
    assert!(
        status.success() && took < Duration::from_secs(5),
        "{status} after {took:?}"
    );
}

#[test]
fn a_fault_is_told_of_that_is_gone_before_anyone_could_look_at_it() {
    let Some(plugins) = plugins() else { return };
    let server = Apiserver::start(|it| {
        if !it.is_watch() {
            return Answer::json(list(10, "", &[]));
        }
        // In one piece: both are read before anything else is done.
        let frames = [
            frame("ADDED", &fault("a", 11, "p")),
            frame("DELETED", &fault("a", 12, "p")),
        ];
        Answer::Pieces(
            vec![format!("{}\n", frames.join("\n")).into_bytes()],
            Then::Silence,
        )
    });
    let (_folder, kubeconfig) = server.kubeconfig();
    let portent = Running::start(&config(&["ns"], &plugins, ""), &kubeconfig);
    let raised = portent.until("the fault", |it| {
        let changes = it.changes();
        let mut raised = changes
            .iter()
            .flat_map(|it| it["raised"].as_array().unwrap());
        raised.next().cloned()
    });
    assert_eq!(raised["code"], "GpuFallenOffBus");
    assert_eq!(portent.metric("portent_records", &[]), 0);
    assert_eq!(
        portent.metric("portent_findings_active", &["GpuFallenOffBus"]),
        1
    );
    assert_eq!(
        portent.metric("portent_findings_raised_total", &["GpuFallenOffBus"]),
        1
    );
}

#[test]
fn a_finding_that_rests_on_a_nodes_events_alone_counts_where_the_node_is() {
    let Some(plugins) = plugins() else { return };
    let listed = |version: u64, items: &[serde_json::Value]| {
        let metadata = serde_json::json!({ "resourceVersion": version.to_string() });
        serde_json::json!({ "kind": "List", "metadata": metadata, "items": items }).to_string()
    };
    let mut pod = failed("p", "gpu-1", "09:00:00");
    pod["metadata"]["namespace"] = "ns".into();
    pod["metadata"]["resourceVersion"] = "9".into();
    let mut node = on_node("npd", "gpu-1", "08:59:00");
    node["metadata"]["resourceVersion"] = "9".into();
    // As events.k8s.io has it.
    node["regarding"] = node["involvedObject"].clone();
    node["note"] = node["message"].clone();
    node["deprecatedFirstTimestamp"] = node["firstTimestamp"].clone();
    node["deprecatedLastTimestamp"] = node["lastTimestamp"].clone();
    node["deprecatedSource"] = node["source"].clone();
    let server = Apiserver::start(move |it| {
        if it.is_watch() {
            return Answer::Pieces(Vec::new(), Then::Silence);
        }
        let path = it.uri.split('?').next().unwrap_or_default();
        match path {
            "/api/v1/namespaces/ns/pods" => Answer::json(listed(10, std::slice::from_ref(&pod))),
            "/apis/events.k8s.io/v1/namespaces/default/events" => {
                Answer::json(listed(10, std::slice::from_ref(&node)))
            }
            _ => Answer::json(listed(10, &[])),
        }
    });
    let (_folder, kubeconfig) = server.kubeconfig();
    let config = config(&["ns"], &plugins, "pods:\n  selector: app=a\n")
        .replace("[ns]\n", "[ns]\n  kinds: [Pod, Node]\n");
    let portent = Running::start(&config, &kubeconfig);
    let raised = "portent_findings_raised_total";
    portent.until("the finding of the pod, and that of its node", |it| {
        (it.metric(raised, &["GpuFallenOffBus"]) == 2).then_some(())
    });
    let changes = portent.until("the verdict", |it| {
        let changes = it.changes();
        let has_verdict = |it: &serde_json::Value| !it["verdict"].is_null();
        changes.iter().any(has_verdict).then_some(changes)
    });
    let of_pod = changes.iter().find(|it| !it["verdict"].is_null()).unwrap();
    assert_eq!(of_pod["object"]["name"], "p");
    assert_eq!(
        portent.metric("portent_findings_active", &["GpuFallenOffBus"]),
        1
    );
}

#[test]
fn a_reader_that_does_not_read_holds_up_nothing_not_even_the_end() {
    let Some(plugins) = plugins() else { return };
    // Far more than a pipe holds.
    let items: Vec<_> = (0..2_000)
        .map(|n| event(&format!("e{n}"), 9, &format!("p{n}")))
        .collect();
    let server = Apiserver::start(quiet(items));
    let (folder, kubeconfig) = server.kubeconfig();
    let path = folder.path().join("portent.yaml");
    fs::write(&path, config(&["ns"], &plugins, "")).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_portent"))
        .arg("run")
        .arg("--config")
        .arg(&path)
        .arg("--kubeconfig")
        .arg(&kubeconfig)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut log = std::io::BufReader::new(child.stderr.take().unwrap());
    let admin = loop {
        let mut line = String::new();
        assert!(std::io::BufRead::read_line(&mut log, &mut line).unwrap() > 0);
        let line: serde_json::Value = serde_json::from_str(&line).unwrap();
        if let Some(at) = line["fields"]["at"].as_str() {
            break at.to_owned();
        }
    };
    let get = |page: &str| {
        use std::io::{Read as _, Write as _};
        let mut stream = std::net::TcpStream::connect(&admin).unwrap();
        write!(
            stream,
            "GET {page} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
        )
        .unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    };
    let began = std::time::Instant::now();
    // All is classified, though most of it waits to be written.
    loop {
        let text = get("/metrics");
        let value = |name: &str| {
            let line = text.lines().find(|it| it.starts_with(name)).unwrap();
            line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()
        };
        if value("portent_outcomes ") == 2_000 && value("portent_subjects_waiting ") == 0 {
            assert!(0 < value("portent_changes_waiting "));
            break;
        }
        assert!(began.elapsed() < Duration::from_mins(1), "{text}");
        std::thread::sleep(Duration::from_millis(50));
    }
    let pid = child.id().to_string();
    let began = std::time::Instant::now();
    assert!(
        Command::new("kill")
            .args(["-TERM", &pid])
            .status()
            .unwrap()
            .success()
    );
    // What it logs as it ends must not hold it up either.
    let drained = support::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
    let status = child.wait().unwrap();
    assert!(
        status.success() && began.elapsed() < Duration::from_secs(6),
        "{status}"
    );
    drained.join().unwrap().unwrap();
}

#[test]
fn half_a_gigabyte_of_large_events_on_one_page_is_read_in_little_memory() {
    let Some(plugins) = plugins() else { return };
    let note = "x".repeat(1_000_000);
    let server = Apiserver::start(move |it| {
        if it.is_watch() {
            return Answer::Pieces(Vec::new(), Then::Silence);
        }
        let mut pieces = vec![br#"{"metadata":{"resourceVersion":"10"},"items":["#.to_vec()];
        for n in 0..500 {
            let comma = if n == 0 { "" } else { "," };
            let item = event_with(&format!("e{n}"), 9, &format!("p{n}"), &note);
            pieces.push(format!("{comma}{item}").into_bytes());
        }
        pieces.push(b"]}".to_vec());
        Answer::Pieces(pieces, Then::Silence)
    });
    let (_folder, kubeconfig) = server.kubeconfig();
    let portent = Running::start(&config(&["ns"], &plugins, ""), &kubeconfig);
    portent.until_ready();
    assert_eq!(portent.metric("portent_records", &[]), 500);
    let rss = portent.peak_rss();
    println!("500 Events of 1 MB on one page: peak RSS {} MiB", rss >> 20);
    assert!(rss < 128 << 20, "{rss} bytes");
}

#[test]
fn an_event_of_a_quarter_of_a_gigabyte_is_skipped_in_little_memory() {
    let Some(plugins) = plugins() else { return };
    let server = Apiserver::start(|it| {
        let huge = event_with("huge", 9, "p", "<note>");
        let (before, behind) = if it.is_watch() {
            (r#"{"type":"ADDED","object":"#, "}\n".to_owned())
        } else {
            let end = format!(",{}]}}", event("small", 9, "p"));
            (r#"{"metadata":{"resourceVersion":"10"},"items":["#, end)
        };
        let (head, tail) = huge.split_once("<note>").unwrap();
        let mut pieces = vec![format!("{before}{head}").into_bytes()];
        pieces.extend(std::iter::repeat_n(vec![b'x'; 1 << 20], 256));
        pieces.push(format!("{tail}{behind}").into_bytes());
        Answer::Pieces(pieces, Then::Silence)
    });
    let (_folder, kubeconfig) = server.kubeconfig();
    let portent = Running::start(&config(&["ns"], &plugins, ""), &kubeconfig);
    portent.until("both that are skipped", |it| {
        let n = it.metric("portent_events_rejected_total", &["too-long"]);
        (n == 2).then_some(())
    });
    assert_eq!(portent.metric("portent_records", &[]), 1);
    let rss = portent.peak_rss();
    println!("An Event of 256 MiB, twice: peak RSS {} MiB", rss >> 20);
    assert!(rss < 192 << 20, "{rss} bytes");
}

#[test]
fn a_watch_that_is_refused_is_named_and_keeps_nobody_waiting_while_another_has_listed() {
    let Some(plugins) = plugins() else { return };
    let server = Apiserver::start(|it| match (it.uri.contains("/forbidden/"), it.is_watch()) {
        (true, _) => Answer::status(403, "Forbidden"),
        (false, true) => Answer::Pieces(Vec::new(), Then::Silence),
        (false, false) => Answer::json(list(10, "", &[])),
    });
    let (_folder, kubeconfig) = server.kubeconfig();
    let portent = Running::start(&config(&["forbidden", "ns"], &plugins, ""), &kubeconfig);
    portent.until_ready();
    let (_, text) = portent.get("/readyz?verbose");
    assert!(
        text.contains("watch Pod in forbidden ok: refused (forbidden), never listed"),
        "{text}"
    );
    assert!(text.contains("readyz check passed"), "{text}");
    assert_eq!(
        portent.metric("portent_watch_state", &["forbidden", "refused"]),
        1
    );
}

#[test]
fn d14_with_no_plugin_nothing_is_asked_and_it_is_ready() {
    let server = Apiserver::start(quiet(Vec::new()));
    let (folder, kubeconfig) = server.kubeconfig();
    let portent = Running::start(&config(&["ns"], folder.path(), ""), &kubeconfig);
    portent.until_ready();
    assert!(
        portent
            .get("/readyz?verbose")
            .1
            .contains("nothing is watched")
    );
    // The self-check of the selectors asks as little.
    assert!(server.asked().is_empty(), "{:#?}", server.asked());
}

#[test]
fn the_context_and_the_credentials_of_a_kubeconfig_are_used_as_kubectl_does() {
    let Some(plugins) = plugins() else { return };
    let server = Apiserver::start(quiet(Vec::new()));
    let folder = tempfile::tempdir().unwrap();
    // A program that prints a token, as cloud providers ship one.
    let kubeconfig = folder.path().join("kubeconfig");
    let text = serde_json::json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "elsewhere",
        "clusters": [
            { "name": "c", "cluster": { "server": server.url() } },
            { "name": "d", "cluster": { "server": "http://127.0.0.1:9" } },
        ],
        "users": [{ "name": "u", "user": { "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": "sh",
            "args": ["-c", r#"echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"from-exec"}}'"#],
            "interactiveMode": "Never",
        }}}],
        "contexts": [
            { "name": "here", "context": { "cluster": "c", "user": "u" } },
            { "name": "elsewhere", "context": { "cluster": "d", "user": "u" } },
        ],
    });
    fs::write(&kubeconfig, text.to_string()).unwrap();
    let config = config(&["ns"], &plugins, "");
    let portent = Running::start_with(&config, &kubeconfig, &["--context", "here"]);
    portent.until_ready();
    for it in server.asked() {
        assert_eq!(it.authorization, "Bearer from-exec");
    }
}

#[test]
fn a_kubeconfig_that_cannot_be_used_is_named_in_a_line() {
    let Some(plugins) = plugins() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("portent.yaml"), config(&["ns"], &plugins, "")).unwrap();
    fs::write(path("bad"), "bad").unwrap();
    let said = |kubeconfig: &str| {
        let mut run = Command::new(env!("CARGO_BIN_EXE_portent"));
        run.args(["run", "--config"]).arg(path("portent.yaml"));
        let output = run.arg("--kubeconfig").arg(path(kubeconfig)).output();
        let output = output.unwrap();
        assert_eq!(output.status.code(), Some(2));
        let log = String::from_utf8(output.stderr).unwrap();
        // Plugins are loaded first, and each is told of.
        let lines = log.lines().filter(|it| !it.contains("plugin loaded"));
        lines.collect::<Vec<_>>().join("\n")
    };
    let missing = said("missing");
    assert_eq!(missing.lines().count(), 1, "{missing}");
    assert_eq!(missing.matches("No such file").count(), 1, "{missing}");
    let bad = said("bad");
    assert_eq!(bad.lines().count(), 1, "{bad}");
    assert!(
        bad.contains("the kubeconfig cannot be used") && bad.contains("line 1 column 1"),
        "{bad}"
    );
}

#[test]
fn a_changed_key_is_taken_up_or_said_to_need_a_restart() {
    let Some(plugins) = plugins() else { return };
    let items: Vec<_> = (0..8).map(|n| event(&format!("e{n}"), 9, "p")).collect();
    let server = Apiserver::start(quiet(items));
    let (_folder, kubeconfig) = server.kubeconfig();
    let portent = Running::start(&config(&["ns"], &plugins, ""), &kubeconfig);
    portent.until_ready();
    assert_eq!(portent.metric("portent_records", &[]), 8);
    assert_eq!(portent.metric("portent_config_restart_needed", &[]), 0);

    // What nobody can read changes nothing.
    fs::write(portent.config(), "scope: [").unwrap();
    portent.until("that it is refused", |it| {
        let log = it.log();
        let said = log.iter().filter_map(|it| it["fields"]["message"].as_str());
        said.into_iter()
            .any(|it| it.contains("not taken up"))
            .then_some(())
    });
    let more = "store:\n  timeToLive: 1s\nworkers: 1\n";
    fs::write(portent.config(), config(&["ns"], &plugins, more)).unwrap();
    // A second later nobody has confirmed them.
    portent.until("that they expire", |it| {
        (it.metric("portent_records_removed_total", &["expired"]) == 8).then_some(())
    });
    assert_eq!(portent.metric("portent_config_restart_needed", &[]), 1);
    fs::write(
        portent.config(),
        config(&["ns"], &plugins, "store:\n  timeToLive: 1s\n"),
    )
    .unwrap();
    portent.until("that all is taken up", |it| {
        (it.metric("portent_config_restart_needed", &[]) == 0).then_some(())
    });
}

#[test]
fn the_metrics_are_what_prometheus_wants() {
    let Some(plugins) = plugins() else { return };
    let server = Apiserver::start(quiet(vec![fault("a", 9, "p")]));
    let (_folder, kubeconfig) = server.kubeconfig();
    let portent = Running::start(&config(&["ns"], &plugins, ""), &kubeconfig);
    portent.until("an outcome", |it| {
        (0 < it.metric("portent_outcomes", &[])).then_some(())
    });
    let (_, text) = portent.get("/metrics");

    let checked = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn();
    let mut promtool = match checked {
        Ok(promtool) => promtool,
        Err(_) if std::env::var_os("CI").is_none_or(|it| it != "true") => {
            eprintln!("skipped: there is no promtool (Debian's package prometheus has it)");
            return;
        }
        Err(err) => panic!("promtool, of Debian's package prometheus, cannot be run: {err}"),
    };
    std::io::Write::write_all(&mut promtool.stdin.take().unwrap(), text.as_bytes()).unwrap();
    let output = promtool.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr) + String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.trim().is_empty(),
        "{said}\n{text}"
    );
}

#[test]
fn the_page_for_operators_lists_what_there_is() {
    let Some(plugins) = plugins() else { return };
    let server = Apiserver::start(quiet(vec![fault("a", 9, "p")]));
    let (_folder, kubeconfig) = server.kubeconfig();
    let portent = Running::start(&config(&["ns"], &plugins, ""), &kubeconfig);
    portent.until_ready();
    let (_, text) = portent.get("/metrics");
    // `# HELP NAME TEXT` names the family: a counter's series have `_total` behind it.
    let families = text.lines().filter_map(|it| it.strip_prefix("# HELP "));
    let mut told: Vec<_> = families
        .map(|it| {
            let (name, help) = it.split_once(' ').unwrap();
            let help = help.trim_end_matches('.');
            format!("| `{name}` | {help} |")
        })
        .collect();
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/running.md");
    let page = fs::read_to_string(page).unwrap();
    let rows = |prefix: &str| -> Vec<String> {
        let rows = page.lines().filter(|it| it.starts_with(prefix));
        rows.map(str::to_owned).collect()
    };
    let mut wanted = [rows("| `portent_"), rows("| `process_")].concat();
    told.sort();
    wanted.sort();
    assert_eq!(told, wanted);
    for class in portent::watch::Class::ALL {
        let row = format!("| `{}` | {} |", class.as_str(), class.meaning());
        assert!(page.lines().any(|it| it == row), "{row}");
    }
    for state in portent::watch::Phase::LABELS {
        assert!(page.contains(&format!("| `{state}` | ")), "{state}");
    }
}

/// Answers as long as Pods are asked for with this, and Events with none.
fn with_pods(pods: impl Fn(&Asked) -> Answer) -> impl Fn(&Asked) -> Answer {
    let events = quiet(Vec::new());
    move |it| {
        if it.uri.contains("/pods?") {
            pods(it)
        } else {
            events(it)
        }
    }
}

const ALL_PODS: &str = "pods:\n  selector: \"\"\nwatch:\n  backoffMax: 1s\n";

#[test]
fn pods_are_listed_before_anything_is_asked_of_events() {
    let Some(plugins) = plugins() else { return };
    let server = Apiserver::start(with_pods(|it| match (it.n, it.is_watch()) {
        // Both fail at first, so that there is time enough to be early.
        (..4, _) => Answer::status(500, "Odd"),
        (_, true) => Answer::Pieces(Vec::new(), Then::Silence),
        (_, false) => Answer::json(list(10, "", &["{}".to_owned(), "7".to_owned()])),
    }));
    let (_folder, kubeconfig) = server.kubeconfig();
    let portent = Running::start(&config(&["a", "b"], &plugins, ALL_PODS), &kubeconfig);
    portent.until_ready();
    let asked = server.asked();
    let first = asked.iter().position(|it| it.uri.contains("/events?"));
    let lists = asked[..first.unwrap()].iter().filter(|it| !it.is_watch());
    for namespace in ["a", "b"] {
        let of = format!("/api/v1/namespaces/{namespace}/pods?");
        let n_listed = lists
            .clone()
            .filter(|it| 4 <= it.n && it.uri.starts_with(&of));
        assert_eq!(n_listed.count(), 1, "{namespace}: {asked:#?}");
    }
    assert_eq!(portent.metric("portent_pods_received_total", &[]), 4);
    let n_rejected = |why| portent.metric("portent_pods_rejected_total", &[why]);
    assert_eq!(
        (n_rejected("undecodable"), n_rejected("no-identity")),
        (2, 2)
    );
    assert_eq!(portent.metric("portent_events_rejected_total", &[]), 0);
    let n_lists = |resource| portent.metric("portent_watch_lists_total", &[resource, "Pod"]);
    assert_eq!((n_lists("pods"), n_lists("events")), (6, 2));
}

#[test]
fn pods_that_may_not_be_read_are_named_and_events_are_watched_all_the_same() {
    let Some(plugins) = plugins() else { return };
    let server = Apiserver::start(with_pods(|_| Answer::status(403, "Forbidden")));
    let (_folder, kubeconfig) = server.kubeconfig();
    let portent = Running::start(&config(&["ns"], &plugins, ALL_PODS), &kubeconfig);
    portent.until_ready();
    let (_, text) = portent.get("/readyz?verbose");
    assert!(
        text.contains("watch pods in ns ok: refused (forbidden), never listed"),
        "{text}"
    );
    assert!(text.contains("1 of 2 watches have listed"), "{text}");
    assert_eq!(
        portent.metric("portent_watch_state", &["pods", "ns", "refused"]),
        1
    );
    assert_eq!(
        portent.metric("portent_watch_state", &["events", "ns", "refused"]),
        0
    );
    let said = "Events are watched though it is not known which Pods there are";
    let log = portent.log();
    let warned: Vec<_> = log
        .iter()
        .filter(|it| it["fields"]["message"] == said)
        .map(|it| it["fields"]["watch"].as_str().unwrap())
        .collect();
    assert_eq!(warned, ["pods in ns"]);
}

#[test]
fn events_that_may_not_be_read_are_not_made_up_for_by_pods() {
    let Some(plugins) = plugins() else { return };
    let server = Apiserver::start(|it| match (it.uri.contains("/events?"), it.is_watch()) {
        (true, _) => Answer::status(403, "Forbidden"),
        (false, true) => Answer::Pieces(Vec::new(), Then::Silence),
        (false, false) => Answer::json(list(10, "", &[])),
    });
    let (_folder, kubeconfig) = server.kubeconfig();
    let portent = Running::start(&config(&["ns"], &plugins, ALL_PODS), &kubeconfig);
    portent.until("the refusal", |it| {
        (it.metric("portent_watch_state", &["events", "refused"]) == 1).then_some(())
    });
    let (code, text) = portent.get("/readyz");
    assert_eq!(code, 503, "{text}");
}

#[test]
fn without_a_selector_no_pod_is_asked_for_and_without_a_plugin_none_either() {
    let Some(plugins) = plugins() else { return };
    let server = Apiserver::start(quiet(Vec::new()));
    let (folder, kubeconfig) = server.kubeconfig();
    for (plugins, more) in [
        (&*plugins, "pods:\n  grace: 5m\n"),
        (folder.path(), ALL_PODS),
    ] {
        let mut portent = Running::start(&config(&["ns"], plugins, more), &kubeconfig);
        portent.until_ready();
        portent.terminate();
    }
    let asked = server.asked();
    assert!(
        asked.iter().all(|it| it.uri.contains("/events?")),
        "{asked:#?}"
    );
    assert!(!asked.is_empty());
}

#[test]
fn what_comes_once_the_last_watch_is_refused_is_news() {
    let Some(plugins) = plugins() else { return };
    let (release, released) = std::sync::mpsc::channel::<()>();
    let released = std::sync::Mutex::new(Some(released));
    let server = Apiserver::start(move |it| match (it.uri.contains("/late/"), it.is_watch()) {
        // It has no answer before the other has listed.
        (true, _) if it.n < 3 => Answer::status(500, "Odd"),
        (true, _) => Answer::status(403, "Forbidden"),
        (false, false) => Answer::json(list(10, "", &[])),
        (false, true) => {
            let released = released.lock().unwrap().take();
            Answer::Paced(Box::new(move |write| {
                if let Some(released) = released {
                    released.recv().ok();
                    write(format!("{}\n", frame("ADDED", &fault("a", 11, "p"))).as_bytes())?;
                }
                Ok(())
            }))
        }
    });
    let (_folder, kubeconfig) = server.kubeconfig();
    let more = "watch:\n  backoffMax: 1s\n";
    let portent = Running::start(&config(&["late", "ns"], &plugins, more), &kubeconfig);
    portent.until_ready();
    release.send(()).unwrap();
    let change = portent.until("the change", |it| it.changes().first().cloned());
    assert_eq!(change["initial"], false, "{change}");
}

/// What `/plugins` says of the only file.
fn only_plugin(portent: &Running) -> serde_json::Value {
    let (code, text) = portent.get("/plugins");
    assert_eq!(code, 200);
    let status: serde_json::Value = serde_json::from_str(&text).unwrap();
    status["plugins"][0].clone()
}

#[test]
fn plugins_come_are_replaced_fail_and_go_while_it_runs_and_nobody_starts_it_again() {
    let server = Apiserver::start(quiet(vec![fault("a", 9, "poison")]));
    let (_folder, kubeconfig) = server.kubeconfig();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.wasm");
    let text = config(&["ns"], folder.path(), "").replace(
        "plugins:\n",
        // Only when it is told to.
        "plugins:\n  poll: 1h\n",
    );
    let portent = Running::start(&text, &kubeconfig);
    // There is nothing to watch for.
    portent.until_ready();
    assert_eq!(portent.metric("portent_watch_lists_total", &[]), 0);
    let finding = |changes: &[serde_json::Value], what: &str| {
        let mut entries = changes
            .iter()
            .flat_map(|it| it[what].as_array().unwrap().clone());
        entries.next_back()
    };

    fs::write(&file, stamped("a", 1)).unwrap();
    portent.hang_up();
    let raised = portent.until("a finding of the first version", |it| {
        finding(&it.changes(), "raised")
    });
    assert_eq!(raised["message"], "01");
    assert_eq!(only_plugin(&portent)["serving"]["state"], "active");
    let status = ["plugin", "status", "--url"];
    let well = support::portent([&status[..], &[&portent.admin()]].concat());
    assert_eq!(well.status.code(), Some(0));
    let unasked = support::portent([&status[..], &["http://127.0.0.1:1"]].concat());
    assert_eq!(unasked.status.code(), Some(2));

    fs::write(&file, stamped("a", 2)).unwrap();
    portent.hang_up();
    let changed = portent.until("what the second says", |it| {
        finding(&it.changes(), "changed")
    });
    assert_eq!(changed["message"], "02");

    let good = only_plugin(&portent)["serving"].clone();
    fs::write(&file, &stamped("a", 3)[..500]).unwrap();
    portent.hang_up();
    let failed = portent.until("that half a file failed", |it| {
        let newest = only_plugin(it)["newest"].clone();
        (newest["state"] == "failed").then_some(newest)
    });
    assert_eq!(failed["reason"], "not-a-component");
    assert_eq!(only_plugin(&portent)["serving"], good);
    for (state, n) in [("active", 1), ("failed", 1), ("quarantined", 0)] {
        assert_eq!(portent.metric("portent_plugins", &[state]), n, "{state}");
    }
    let shown = support::portent(["plugin", "status", "--url", &portent.admin()]);
    assert_eq!(shown.status.code(), Some(1));
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(
        shown.starts_with("a\n  serves  active: a 0.0.1, component ")
            && shown.contains("\n  newest  failed (not-a-component): component "),
        "{shown}"
    );

    fs::remove_file(&file).unwrap();
    portent.hang_up();
    let cleared = portent.until("that what it found ends", |it| {
        finding(&it.changes(), "cleared")
    });
    assert_eq!(cleared["reason"], "classifier-removed");
    assert_eq!(portent.metric("portent_outcomes", &[]), 0);
    assert_eq!(portent.metric("portent_plugin_swaps_total", &[]), 3);
    portent.until("the last version to be retired", |it| {
        let (_, text) = it.get("/plugins");
        let status: serde_json::Value = serde_json::from_str(&text).unwrap();
        let over = status["over"].as_array().unwrap().clone();
        let over: Vec<_> = over.iter().map(|it| it["state"].clone()).collect();
        (over == ["retired", "retired"]).then_some(())
    });
}

/// A guest that is interested in what regards these kinds, of so many letters.
fn interested_in(kind: &str) -> Vec<u8> {
    let own = format!(
        "(data (i32.const 0x300) (i32 0x800 1))
        (data (i32.const 0x800) (i32 0x810 {}))
        (data (i32.const 0x810) \"{kind}\")",
        kind.len()
    );
    component_of("a", &own)
}

fn about_a_node(name: &str, node: &str) -> String {
    event(name, 9, node)
        .replace(
            "\"namespace\":\"ns\",\"uid\":\"uid-e",
            "\"namespace\":\"default\",\"uid\":\"uid-e",
        )
        .replace(
            "{\"kind\":\"Pod\",\"namespace\":\"ns\",",
            "{\"kind\":\"Node\",",
        )
}

#[test]
fn what_no_plugin_is_interested_in_any_more_is_watched_no_more_and_listed_anew_when_one_is() {
    let is_of_nodes = |it: &Asked| it.uri.contains("Node");
    let server = Apiserver::start(move |it| {
        if it.is_watch() {
            return Answer::Pieces(Vec::new(), Then::Silence);
        }
        let items = if is_of_nodes(it) {
            vec![about_a_node("e-node", "n"), about_a_node("e-other", "m")]
        } else {
            vec![event("e-pod", 9, "p")]
        };
        Answer::json(list(10, "", &items))
    });
    let (_folder, kubeconfig) = server.kubeconfig();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.wasm");
    fs::write(&file, stamped("a", 1)).unwrap();
    let text = config(&["ns"], folder.path(), "")
        .replace("plugins:\n", "plugins:\n  poll: 1h\n")
        .replace("scope:\n", "scope:\n  kinds: [Pod, Node]\n");
    let portent = Running::start(&text, &kubeconfig);
    portent.until_ready();
    assert_eq!(portent.metric("portent_records", &[]), 3);
    let watch_of_nodes = "watch Node in default";
    assert!(portent.get("/readyz?verbose").1.contains(watch_of_nodes));

    // Of Pods alone: those of Nodes leave, and are counted.
    fs::write(&file, interested_in("Pod")).unwrap();
    portent.hang_up();
    portent.until("that the records of Nodes leave", |it| {
        (it.metric("portent_records_removed_total", &["unwatched"]) == 2).then_some(())
    });
    assert_eq!(portent.metric("portent_records", &[]), 1);
    let (code, text) = portent.get("/readyz?verbose");
    assert!(code == 200 && !text.contains("Node"), "{text}");
    assert!(text.contains("1 of 1 watches have listed"), "{text}");

    // Of nothing that is in scope: no request is made from then on.
    fs::write(&file, interested_in("Job")).unwrap();
    portent.hang_up();
    portent.until("that nothing is held", |it| {
        (it.metric("portent_records", &[]) == 0).then_some(())
    });
    let (code, text) = portent.get("/readyz?verbose");
    assert!(code == 200 && text.contains("nothing is watched"), "{text}");
    let n_asked = server.asked().len();

    // Of all of them again: listed anew, and what is found is news.
    fs::write(&file, stamped("a", 2)).unwrap();
    portent.hang_up();
    portent.until("that all is held again", |it| {
        (it.metric("portent_records", &[]) == 3).then_some(())
    });
    let asked = server.asked();
    let lists = asked[n_asked..].iter().filter(|it| !it.is_watch());
    assert!(lists.clone().any(is_of_nodes) && lists.clone().any(|it| !is_of_nodes(it)));
    let change = portent.until("what the last version says", |it| {
        let changes = it.changes();
        let of_node =
            |it: &&serde_json::Value| it["object"]["kind"] == "Node" && it["initial"] == false;
        changes.iter().rfind(of_node).cloned()
    });
    assert_eq!(change["additionalReasons"][0]["text"], "02", "{change}");
    assert_eq!(portent.metric("portent_events_in_flight", &[]), 0);
}

#[test]
fn pods_are_watched_as_long_as_any_events_are() {
    let server = Apiserver::start(with_pods(|_| {
        Answer::json(list(10, "", &[]).replace("EventList", "PodList"))
    }));
    let (_folder, kubeconfig) = server.kubeconfig();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.wasm");
    fs::write(&file, stamped("a", 1)).unwrap();
    let text = config(&["ns"], folder.path(), "pods:\n  selector: \"\"\n")
        .replace("plugins:\n", "plugins:\n  poll: 1h\n");
    let portent = Running::start(&text, &kubeconfig);
    portent.until_ready();
    assert!(portent.get("/readyz?verbose").1.contains("2 of 2 watches"));
    fs::remove_file(&file).unwrap();
    portent.hang_up();
    portent.until("that nothing is watched", |it| {
        it.get("/readyz?verbose")
            .1
            .contains("nothing is watched")
            .then_some(())
    });
    let n_asked = server.asked().len();
    fs::write(&file, stamped("a", 2)).unwrap();
    portent.hang_up();
    portent.until("that both are listed anew", |it| {
        it.get("/readyz?verbose")
            .1
            .contains("2 of 2 watches")
            .then_some(())
    });
    // Pods before Events, as at the start.
    let asked = server.asked();
    let paths: Vec<_> = asked[n_asked..]
        .iter()
        .filter(|it| !it.is_watch())
        .collect();
    assert!(paths[0].uri.contains("/pods?"), "{paths:?}");
}

#[test]
fn an_impure_plugin_is_told_in_the_status_in_the_metrics_and_once_in_the_log() {
    let items = ["a", "b", "c"].map(|it| event(&format!("e-{it}"), 9, &format!("poison-{it}")));
    let server = Apiserver::start(quiet(items.to_vec()));
    let (_folder, kubeconfig) = server.kubeconfig();
    let folder = tempfile::tempdir().unwrap();
    let counts = "(func $misbehave (param $subjects i32) (param $n i32) (result i32)
        (i64.store offset=8 (global.get $reason) (i64.extend_i32_u (local.get $n)))
        (call $well_behaved (local.get $subjects) (local.get $n)))";
    fs::write(folder.path().join("a.wasm"), component_of("a", counts)).unwrap();
    let portent = Running::start(&config(&["ns"], folder.path(), ""), &kubeconfig);
    let status = portent.until("that it is found out", |it| {
        let serving = only_plugin(it)["serving"].clone();
        (serving["reason"] == "impure").then_some(serving)
    });
    assert_eq!(status["state"], "active");
    assert_eq!(
        portent.metric("portent_plugin_asked_again_total", &["a"]),
        1
    );
    assert_eq!(portent.metric("portent_plugin_impure_total", &["a"]), 1);
    let shown = support::portent(["plugin", "status", "--url", &portent.admin()]);
    assert_eq!(shown.status.code(), Some(1));
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(
        shown.contains("serves  active (impure): a 0.0.1"),
        "{shown}"
    );
    let log = portent.log();
    let fields = log.iter().map(|it| &it["fields"]);
    let told: Vec<_> = fields
        .filter(|it| {
            it["message"]
                .as_str()
                .is_some_and(|it| it.starts_with("impure: "))
        })
        .collect();
    let [told] = &told[..] else {
        panic!("{told:?}");
    };
    assert!(
        told["object"]
            .as_str()
            .unwrap()
            .starts_with("ns/Pod/poison-"),
        "{told}"
    );
    let message = told["message"].as_str().unwrap();
    assert!(
        message.contains("the time of an additional reason is `1`, and was `3`"),
        "{message}"
    );
}
