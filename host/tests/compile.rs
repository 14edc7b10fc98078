//! What compiling a plugin may cost, and whom: a child of the program, and nobody else.

#![allow(clippy::unwrap_used, reason = "a test says what went wrong by failing")]

mod support;

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::atomic::Ordering::Relaxed,
    thread,
    time::{Duration, Instant},
};

use portent::{
    plugins::{Loader, Terms, Why},
    reason::Reason,
    sandbox::{Cache, Compiler, Guest, Limits, LoadFailure, Sandbox, on_guest_stack},
};
use portent_hostile::{component, component_of};
use support::{
    apiserver::{Answer, Apiserver, event, frame, list},
    bomb::hard_to_compile,
    directory, portent,
    running::{Running, config},
    stamped,
};
use tempfile::TempDir;

/// When what is ended is gone, where everything is slow; what would end by itself takes minutes.
const SOON: Duration = Duration::from_secs(10);

fn program() -> PathBuf {
    env!("CARGO_BIN_EXE_portent").into()
}

/// A process that compiles apart, as the binary does.
fn sandbox(limits: &[(&str, &str)], cache: Option<&Path>) -> Sandbox {
    let mut all = Limits::default();
    for (name, value) in limits {
        all.set(name, value).unwrap();
    }
    let cache = cache.map(|it| Cache::new(it.to_owned(), Cache::BYTES));
    Sandbox::with(all, Compiler::Apart { program: program() }, cache).unwrap()
}

fn admit(sandbox: &Sandbox, component: &[u8]) -> Result<Guest, LoadFailure> {
    on_guest_stack(|| sandbox.admit(component, "{}"))
}

/// How much was compiled, cached and shared.
fn counts(sandbox: &Sandbox) -> [u64; 3] {
    let it = sandbox.compilations();
    [&it.compiled, &it.cached, &it.shared].map(|it| it.load(Relaxed))
}

#[test]
fn what_takes_too_much_memory_to_compile_is_refused_and_loads_where_it_may() {
    let bomb = hard_to_compile("bomb", 1, 150, 150);
    assert!(bomb.len() < 20_000, "{}", bomb.len());
    let little = sandbox(&[("compile-memory-bytes", "33554432")], None);
    let failure = admit(&little, &bomb).unwrap_err();
    assert_eq!(failure.reason, Reason::CompileLimit);
    assert!(
        failure
            .message
            .contains("33554432 bytes of the limit compile-memory-bytes"),
        "{failure}"
    );
    assert_eq!(little.compilations().over_limit.load(Relaxed), 1);
    let enough = sandbox(&[("compile-memory-bytes", "134217728")], None);
    assert_eq!(admit(&enough, &bomb).unwrap().description().name, "bomb");
    assert_eq!(counts(&enough), [1, 0, 0]);
    // And what is of the usual kind has room in the least.
    admit(&little, &component("behaves-well")).unwrap();
}

#[test]
fn what_takes_too_long_to_compile_is_refused_and_loads_where_it_may() {
    let bomb = hard_to_compile("bomb", 6, 200, 200);
    let began = Instant::now();
    let hasty = sandbox(&[("compile-seconds", "1")], None);
    let failure = admit(&hasty, &bomb).unwrap_err();
    assert_eq!(failure.reason, Reason::CompileLimit);
    assert!(
        failure
            .message
            .contains("1 seconds of the limit compile-seconds"),
        "{failure}"
    );
    let took = began.elapsed();
    assert!(took < Duration::from_secs(10), "{took:?}");
    assert!(hasty.compilations().spent() < Duration::from_secs(10));
    let patient = sandbox(
        &[
            ("compile-seconds", "600"),
            ("compile-memory-bytes", "1073741824"),
        ],
        None,
    );
    admit(&patient, &bomb).unwrap();
}

#[test]
fn by_default_a_few_kilobytes_get_neither_gigabytes_nor_minutes() {
    // It would take a minute and gigabytes.
    let bomb = hard_to_compile("bomb", 1, 2_000, 2_000);
    assert!(bomb.len() < 100_000, "{}", bomb.len());
    let sandbox = sandbox(&[], None);
    let failure = admit(&sandbox, &bomb).unwrap_err();
    assert_eq!(failure.reason, Reason::CompileLimit);
}

#[test]
fn what_is_no_component_is_refused_by_what_the_compiler_says_of_it() {
    let sandbox = sandbox(&[], None);
    let own = "(func $odd (drop (i32.const 123456789)))";
    let mut damaged = component_of("odd", own);
    admit(&sandbox, &damaged).unwrap();
    // The opcode before that number, which nothing but a compiler looks at.
    let number = b"\x95\x9a\xef\x3a";
    let at = damaged.windows(4).position(|it| it == number).unwrap();
    damaged[at - 1] = 0xff;
    let failure = admit(&sandbox, &damaged).unwrap_err();
    assert_eq!(failure.reason, Reason::CompileFailed, "{failure}");
    assert!(failure.message.contains("0xff"), "{failure}");
}

#[test]
fn without_a_program_to_start_nothing_loads_and_nothing_else_happens() {
    let sandbox = Sandbox::with(
        Limits::default(),
        Compiler::Apart {
            program: "/nowhere/portent".into(),
        },
        None,
    );
    let failure = admit(&sandbox.unwrap(), &component("behaves-well")).unwrap_err();
    assert_eq!(failure.reason, Reason::CompileFailed);
    assert!(failure.message.contains("cannot be run"), "{failure}");
}

#[test]
fn the_hidden_command_does_nothing_for_whoever_is_not_its_parent() {
    let output = portent(["apart", "compile"]);
    assert_eq!(output.status.code(), Some(5));
    assert!(output.stdout.is_empty());
    // An order of somebody who is no more: 128 MiB, 10 s, a parent, one byte.
    let order = [128_u64 << 20, 10, 1 << 40, 1];
    let mut bytes: Vec<_> = order.into_iter().flat_map(u64::to_le_bytes).collect();
    bytes.push(0);
    let files = directory([("order", bytes)]);
    let order = fs::File::open(files.path().join("order")).unwrap();
    let output = Command::new(program())
        .args(["apart", "compile"])
        .stdin(Stdio::from(order))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(5));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("its parent is gone"), "{said}");
}

/// A cache that has the code of a guest, and where that is.
fn filled(guest: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let sandbox = sandbox(&[], Some(folder.path()));
    admit(&sandbox, &component(guest)).unwrap();
    assert_eq!(counts(&sandbox), [1, 0, 0]);
    let mut entries = fs::read_dir(folder.path()).unwrap();
    let entry = entries.next().unwrap().unwrap().path();
    assert!(entries.next().is_none());
    (folder, entry)
}

/// Whatever becomes of its code in the cache, a guest is admitted; and is compiled anew if the
/// cache is of no use.
#[track_caller]
fn check_cache(why: Option<&str>, change: impl FnOnce(&Path)) {
    let (folder, entry) = filled("behaves-well");
    change(&entry);
    let sandbox = sandbox(&[], Some(folder.path()));
    let guest = admit(&sandbox, &component("behaves-well")).unwrap();
    assert_eq!(guest.description().name, "behaves-well");
    assert!(0 < guest.n_compiled_bytes());
    let misses = sandbox.compilations().misses();
    let misses: Vec<_> = misses.filter(|it| 0 < it.1).collect();
    let Some(why) = why else {
        assert_eq!(counts(&sandbox), [0, 1, 0]);
        assert!(misses.is_empty(), "{misses:?}");
        return;
    };
    assert_eq!(counts(&sandbox), [1, 0, 0]);
    assert_eq!(misses.len(), 1, "{misses:?}");
    assert_eq!((misses[0].0.as_str(), misses[0].1), (why, 1));
    if entry.is_dir() {
        return;
    }
    // It was written anew.
    drop(guest);
    admit(&sandbox, &component("behaves-well")).unwrap();
    assert_eq!(counts(&sandbox), [1, 1, 0]);
}

/// Changes the bytes of a file.
fn edit(change: impl FnOnce(&mut Vec<u8>)) -> impl FnOnce(&Path) {
    |path| {
        let mut bytes = fs::read(path).unwrap();
        change(&mut bytes);
        fs::write(path, bytes).unwrap();
    }
}

#[test]
fn what_is_in_the_cache_is_not_compiled_and_what_is_not_right_there_is() {
    check_cache(None, |_| {});
    check_cache(Some("absent"), |it| fs::remove_file(it).unwrap());
    check_cache(Some("damaged"), edit(Vec::clear));
    check_cache(Some("damaged"), edit(|it| it.truncate(it.len() / 2)));
    check_cache(Some("damaged"), edit(|it| it.truncate(50)));
    check_cache(Some("damaged"), edit(|it| it[0] ^= 1));
    check_cache(Some("foreign"), edit(|it| it[20] ^= 1));
    check_cache(Some("damaged"), edit(|it| it[50] ^= 1));
    check_cache(Some("damaged"), edit(|it| it[60] ^= 1));
    let in_the_code = |bytes: &mut Vec<u8>| {
        let at = bytes.len() / 2;
        bytes[at] ^= 0x10;
    };
    check_cache(Some("damaged"), edit(in_the_code));
    check_cache(Some("untrusted"), |it| {
        fs::remove_file(it).unwrap();
        fs::create_dir(it).unwrap();
    });
    check_cache(Some("untrusted"), |it| {
        let elsewhere = it.with_extension("elsewhere");
        fs::rename(it, &elsewhere).unwrap();
        symlink(elsewhere, it).unwrap();
    });
    check_cache(Some("untrusted"), |it| {
        fs::set_permissions(it, fs::Permissions::from_mode(0o666)).unwrap();
    });
}

#[test]
fn code_of_another_component_is_never_run_whatever_it_is_called() {
    let (folder, entry) = filled("behaves-well");
    let (_other, of_another) = filled("floods-the-log");
    fs::copy(of_another, entry).unwrap();
    let sandbox = sandbox(&[], Some(folder.path()));
    let guest = admit(&sandbox, &component("behaves-well")).unwrap();
    assert_eq!(guest.description().name, "behaves-well");
    assert_eq!(counts(&sandbox), [1, 0, 0]);
}

#[test]
fn code_in_a_plugin_folder_is_refused_though_it_is_ours() {
    let (_folder, entry) = filled("behaves-well");
    let bytes = fs::read(entry).unwrap();
    let at = bytes.windows(4).position(|it| it == b"\x7fELF").unwrap();
    for bytes in [&bytes[..], &bytes[at..]] {
        let failure = admit(&sandbox(&[], None), bytes).unwrap_err();
        assert_eq!(failure.reason, Reason::NotAComponent, "{failure}");
    }
}

#[test]
fn other_settings_and_a_second_file_of_the_same_content_compile_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).unwrap();
    write("a.wasm", &stamped("a", 1));
    let sandbox = sandbox(&[], None);
    let mut loader = Loader::new(sandbox.clone(), folder.path().to_owned(), Terms::default());
    let first = on_guest_stack(|| loader.first()).unwrap();
    assert_eq!(counts(&sandbox), [1, 0, 0]);
    let mut look = || {
        on_guest_stack(|| {
            loader.look(Why::Regular);
            loader.look(Why::Settling).set
        })
    };
    write("a.yaml", b"key: value");
    let other = look().expect("other settings are another version");
    assert_ne!(
        other.plugins[0].provenance.settings_digest,
        first.plugins[0].provenance.settings_digest
    );
    assert_eq!(counts(&sandbox), [1, 0, 1]);
    // Of one name, so that it does not serve; but nobody compiled it.
    write("b.wasm", &stamped("a", 1));
    look();
    assert_eq!(loader.board().n_failures()[&Reason::NameClash], 1);
    let [compiled, cached, shared] = counts(&sandbox);
    assert_eq!((compiled, cached), (1, 0));
    assert!(2 <= shared, "{shared}");
    assert_eq!(
        loader.compilations().spent(),
        sandbox.compilations().spent()
    );
}

/// A kubeconfig for a scripted server, in which something happens ten times a second.
fn busy() -> (Apiserver, TempDir) {
    let server = Apiserver::start(|it| {
        if !it.is_watch() {
            return Answer::json(list(10, "", &[]));
        }
        Answer::Paced(Box::new(|write| {
            for n in 0.. {
                let event = event(&format!("e{n}"), 11 + n, &format!("poison-{n}"));
                write(format!("{}\n", frame("ADDED", &event)).as_bytes())?;
                thread::sleep(Duration::from_millis(100));
            }
            Ok(())
        }))
    });
    let text = format!(
        "apiVersion: v1\nkind: Config\nclusters: [{{name: c, cluster: {{server: '{}'}}}}]\nusers: [{{name: u, user: {{}}}}]\ncontexts: [{{name: x, context: {{cluster: c, user: u}}}}]\ncurrent-context: x\n",
        server.url()
    );
    (server, directory([("kubeconfig", text.into_bytes())]))
}

/// The children of a process, by their numbers.
fn children(of: u32) -> Vec<u32> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let numbers = processes.filter_map(|it| it.file_name().to_str()?.parse::<u32>().ok());
    let is_child = |pid: &u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let behind = stat.rsplit_once(')').map_or("", |(_, it)| it);
        let mut fields = behind.split_ascii_whitespace();
        let state = fields.next();
        fields.next().and_then(|it| it.parse().ok()) == Some(of) && state != Some("Z")
    };
    numbers.filter(is_child).collect()
}

fn is_alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(')').map_or("", |(_, it)| it.trim_start());
    !state.is_empty() && !state.starts_with(['Z', 'X'])
}

/// Waits until there is a child that compiles.
#[track_caller]
fn until_compiling(portent: &Running) -> u32 {
    portent.until("a child that compiles", |it| {
        children(it.pid()).first().copied()
    })
}

#[track_caller]
fn until_gone(pid: u32) {
    let began = Instant::now();
    while is_alive(pid) {
        assert!(began.elapsed() < SOON, "{pid} is there yet");
        thread::sleep(Duration::from_millis(10));
    }
}

/// What would compile for minutes, and no two the same.
fn endless(stamp: usize) -> Vec<u8> {
    hard_to_compile("bomb", 600 + stamp, 150, 150)
}

#[test]
fn while_a_bomb_is_compiled_others_serve_and_who_serves_takes_no_more_memory() {
    let (_server, kubeconfig) = busy();
    let plugins = directory([("a.wasm", stamped("a", 1))]);
    let more = "limits:\n  compile-seconds: 3\n";
    let portent = Running::start(
        &config(&["ns"], plugins.path(), more),
        &kubeconfig.path().join("kubeconfig"),
    );
    portent.until_ready();
    portent.until("a first change", |it| {
        (!it.changes().is_empty()).then_some(())
    });
    let before = portent.peak_rss();
    fs::write(plugins.path().join("bomb.wasm"), endless(0)).unwrap();
    portent.hang_up();
    let child = until_compiling(&portent);
    let n_before = portent.changes().len();
    let failures =
        |it: &Running, reason: &str| it.metric("portent_plugin_load_failures_total", &[reason]);
    assert_eq!(failures(&portent, "compile-limit"), 0, "it is at it");
    // It is of no hurry, and cannot take more than it may. That it is slow comes last.
    let of_child = |file: &str| fs::read_to_string(format!("/proc/{child}/{file}")).unwrap();
    portent.until("that it waits for others", |_| {
        let fields = of_child("stat");
        let nice = fields.rsplit_once(')')?.1.split(' ').nth(17)?.to_owned();
        (nice == "10").then_some(())
    });
    let limits = of_child("limits");
    let has = |line: &str, value: &str| {
        let of = limits.lines().find(|it| it.starts_with(line));
        of.is_some_and(|it| it.split_ascii_whitespace().any(|it| it == value))
    };
    assert!(has("Max data size", "134217728"), "{limits}");
    assert!(has("Max cpu time", "4"), "{limits}");
    assert!(has("Max core file size", "0"), "{limits}");

    portent.until("that it is given up", |it| {
        (failures(it, "compile-limit") == 1).then_some(())
    });
    until_gone(child);
    let n_during = portent.changes().len() - n_before;
    assert!(10 <= n_during, "{n_during} changes in three seconds");
    assert_eq!(portent.metric("portent_plugins", &["active"]), 1);
    assert_eq!(
        portent.metric("portent_plugin_compilations_total", &["over-limit"]),
        1
    );
    assert!(3 <= portent.metric("portent_plugin_compile_seconds_total", &[]));
    let grown = portent.peak_rss() - before;
    assert!(grown < 24 << 20, "it took {grown} bytes more");
    let said = portent.log();
    let said = said
        .iter()
        .filter_map(|it| it["fields"]["message"].as_str());
    let said: Vec<_> = said.filter(|it| it.contains("compile-seconds")).collect();
    assert_eq!(said.len(), 1, "{said:?}");
}

#[test]
fn a_child_that_is_killed_fails_its_plugin_and_one_whose_parent_is_killed_is_gone() {
    let (_server, kubeconfig) = busy();
    let plugins = directory([("a.wasm", stamped("a", 1))]);
    let config = config(&["ns"], plugins.path(), "limits:\n  compile-seconds: 600\n");
    let kubeconfig = kubeconfig.path().join("kubeconfig");
    let mut portent = Running::start(&config, &kubeconfig);
    portent.until_ready();
    let bomb = |stamp| fs::write(plugins.path().join("bomb.wasm"), endless(stamp)).unwrap();
    bomb(1);
    portent.hang_up();
    let child = until_compiling(&portent);
    let killed = Command::new("kill")
        .args(["-KILL", &child.to_string()])
        .status();
    assert!(killed.unwrap().success());
    portent.until("the failure", |it| {
        let failures = it.metric("portent_plugin_load_failures_total", &["compile-failed"]);
        (failures == 1).then_some(())
    });
    let log = portent.log();
    let told = log
        .iter()
        .any(|it| it.to_string().contains("ended by SIGKILL"));
    assert!(told, "{log:?}");

    // Asked to end it does not wait for what it compiles, nor leaves it behind.
    bomb(2);
    portent.hang_up();
    let child = until_compiling(&portent);
    let (status, took) = portent.terminate();
    assert!(
        status.success() && took < Duration::from_secs(5),
        "{status} after {took:?}"
    );
    until_gone(child);

    // Killed, it cannot do anything about it.
    fs::remove_file(plugins.path().join("bomb.wasm")).unwrap();
    let portent = Running::start(&config, &kubeconfig);
    bomb(3);
    portent.hang_up();
    let child = until_compiling(&portent);
    drop(portent);
    until_gone(child);
}

#[test]
fn a_start_with_a_cache_compiles_nothing_and_a_cache_of_everybody_s_is_told_of_once() {
    let (_server, kubeconfig) = busy();
    let kubeconfig = kubeconfig.path().join("kubeconfig");
    let plugins = directory([("a.wasm", stamped("a", 1)), ("b.wasm", stamped("b", 1))]);
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("plugins");
    let config = config(&["ns"], plugins.path(), "");
    let config = config.replace(
        "\nadmin:",
        &format!("\n  cache: {}\nadmin:", cache.display()),
    );
    let run = || {
        let portent = Running::start(&config, &kubeconfig);
        portent.until_ready();
        let of = |result: &str| portent.metric("portent_plugin_compilations_total", &[result]);
        let counts = [of("\"compiled\""), of("\"cached\"")];
        let warned = portent.log().into_iter();
        let warned = warned.filter(|it| it.to_string().contains("plugins.cache"));
        (counts, warned.count())
    };
    assert_eq!(run(), ([2, 0], 0));
    assert_eq!(run(), ([0, 2], 0));
    fs::set_permissions(&cache, fs::Permissions::from_mode(0o777)).unwrap();
    assert_eq!(run(), ([2, 0], 1));
}

#[test]
fn two_processes_may_share_a_cache_and_start_at_once() {
    let (_server, kubeconfig) = busy();
    let kubeconfig = kubeconfig.path().join("kubeconfig");
    let files = (0..6).map(|it| (format!("p{it}.wasm"), stamped(&format!("p{it}"), 1)));
    let plugins = directory(files);
    let folder = tempfile::tempdir().unwrap();
    let config = config(&["ns"], plugins.path(), "");
    let config = config.replace(
        "\nadmin:",
        &format!("\n  cache: {}\nadmin:", folder.path().display()),
    );
    let start = || {
        let portent = Running::start(&config, &kubeconfig);
        portent.until_ready();
        assert_eq!(portent.metric("portent_plugins", &["active"]), 6);
        let misses = portent.metric("portent_plugin_cache_misses_total", &[]);
        let absent = portent.metric("portent_plugin_cache_misses_total", &["absent"]);
        assert_eq!(misses, absent, "nothing but what nobody had compiled");
        absent
    };
    thread::scope(|scope| {
        for _ in 0..2 {
            thread::Builder::new().spawn_scoped(scope, start).unwrap();
        }
    });
    assert_eq!(start(), 0);
}
