//! Where code comes from. Components here do nothing; `host/tests/compile.rs` has some that do.

use tempfile::TempDir;
use wasmtime::Config;

use super::{super::Limits, *};

/// The least that is a component; each number makes another.
fn component(n: u8) -> Vec<u8> {
    // With a section of its own that nobody reads, of the name `n`.
    [b"\0asm\x0d\0\x01\0", &[0, 3, 1, b'n', n][..]].concat()
}

fn sandbox(folder: &TempDir) -> Sandbox {
    let cache = Cache::new(folder.path().join("cache"), Cache::BYTES);
    Sandbox::with(Limits::default(), Compiler::Here, Some(cache)).unwrap()
}

/// What was compiled, cached and shared.
fn counts(sandbox: &Sandbox) -> [u64; 3] {
    let it = sandbox.compilations();
    [&it.compiled, &it.cached, &it.shared].map(|it| it.load(Relaxed))
}

fn misses(sandbox: &Sandbox) -> Vec<(Miss, u64)> {
    let misses = sandbox.compilations().misses();
    misses.filter(|(_, n)| 0 < *n).collect()
}

#[test]
fn what_is_compiled_is_shared_for_as_long_as_somebody_has_it_and_is_cached_then() {
    let folder = tempfile::tempdir().unwrap();
    let here = sandbox(&folder);
    let first = here.compiled(&component(1)).unwrap();
    let again = here.compiled(&component(1)).unwrap();
    assert!(Arc::ptr_eq(&first, &again));
    here.compiled(&component(2)).unwrap();
    assert_eq!(counts(&here), [2, 0, 1]);
    drop((first, again));
    here.compiled(&component(1)).unwrap();
    assert_eq!(counts(&here), [2, 1, 1]);
    // Of what nobody has nothing is kept.
    here.compiled(&component(2)).unwrap();
    assert_eq!(here.compiling.loaded.lock().unwrap().len(), 1);
    // And for the next process.
    let next = sandbox(&folder);
    next.compiled(&component(1)).unwrap();
    assert_eq!(counts(&next), [0, 1, 0]);
    assert_eq!(next.compilations().spent(), Duration::ZERO);
    assert!(!here.compilations().spent().is_zero());
}

#[test]
fn without_a_cache_it_is_compiled_again_when_nobody_has_it() {
    let sandbox = Sandbox::new(Limits::default()).unwrap();
    for _ in 0..2 {
        sandbox.compiled(&component(1)).unwrap();
    }
    assert_eq!(counts(&sandbox), [2, 0, 0]);
    assert_eq!(misses(&sandbox), []);
}

#[test]
fn an_entry_that_an_engine_of_another_kind_made_is_compiled_anew() {
    let folder = tempfile::tempdir().unwrap();
    let here = sandbox(&folder);
    let mut without_epochs: Config = super::super::config();
    without_epochs.epoch_interruption(false);
    let other = Engine::new(&without_epochs).unwrap();
    let key = Key::new(&Sha256::digest(component(1)).into(), &here.engine);
    let cache = here.compiling.cache.as_ref().unwrap();
    // Well written, of this component by what it says, and yet not for us.
    cache.put(&key, &other.precompile_component(&component(1)).unwrap());
    here.compiled(&component(1)).unwrap();
    assert_eq!(counts(&here), [1, 0, 0]);
    assert_eq!(misses(&here), [(Miss::Foreign, 1)]);
    here.compiled(&component(1)).unwrap();
    assert_eq!(counts(&here), [1, 1, 0], "it is right now");
}

#[test]
fn what_is_no_component_fails_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let sandbox = sandbox(&folder);
    for _ in 0..2 {
        let failure = sandbox.compiled(b"\0asm\x0d\0\x01\0\xff").err().unwrap();
        assert_eq!(failure.reason, Reason::CompileFailed);
    }
    assert_eq!(counts(&sandbox), [0, 0, 0]);
    assert_eq!(sandbox.compilations().failed.load(Relaxed), 2);
    assert_eq!(misses(&sandbox), [(Miss::Absent, 2)]);
}

#[test]
fn each_limit_is_named_where_it_was_met() {
    let sandbox = Sandbox::new(Limits::default()).unwrap();
    for (failure, want) in [
        (
            Failure::Time,
            "compile-limit: compiling it takes more than the 30 seconds of the limit \
             compile-seconds: raise it if you trust the file",
        ),
        (
            Failure::Memory,
            "compile-limit: compiling it takes more than the 134217728 bytes of the limit \
             compile-memory-bytes: raise it if you trust the file",
        ),
        (
            Failure::Crashed("the child process was ended by SIGSEGV".to_owned()),
            "compile-failed: while it was compiled, the child process was ended by SIGSEGV",
        ),
        (
            Failure::Refused("no\u{1b}".to_owned()),
            "compile-failed: no\\u{1b}",
        ),
    ] {
        assert_eq!(sandbox.why_not(failure).to_string(), want);
    }
}
