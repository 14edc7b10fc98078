//! What a loader makes of files that are no plugins. `host/tests/plugins.rs` has those that are.

use std::fs;

use super::*;
use crate::sandbox::Limits;

fn loader(folder: &Path) -> Loader {
    let sandbox = Sandbox::new(Limits::default()).unwrap();
    Loader::new(sandbox, folder.to_owned(), Terms::default())
}

#[test]
fn a_file_that_is_none_fails_with_its_reason_and_makes_no_set() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.wasm"), "no component").unwrap();
    let mut loader = loader(folder.path());
    let set = loader.first().unwrap();
    assert!(set.plugins.is_empty());
    assert_eq!(set.failed[0].1.reason, Reason::NotAComponent);
    let state = |loader: &Loader| loader.board().entries()[0].newest.clone().unwrap().1;
    assert_eq!(state(&loader), State::Failed(Reason::NotAComponent));

    // The same again is no news, and is counted once.
    assert!(loader.look(Why::Regular).set.is_none());
    fs::write(folder.path().join("a.wasm"), [0; 8]).unwrap();
    assert!(loader.look(Why::Regular).is_unsettled);
    assert!(loader.look(Why::Settling).set.is_none());
    assert_eq!(loader.board().n_failures()[&Reason::NotAComponent], 2);
}

#[test]
fn a_plugin_without_the_digest_that_is_pinned_is_not_even_looked_into() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.wasm"), "").unwrap();
    let mut loader = loader(folder.path());
    loader
        .terms
        .pins
        .insert("a".to_owned(), format!("sha256:{}", "0".repeat(64)));
    let set = loader.first().unwrap();
    let (_, failure) = &set.failed[0];
    assert_eq!(failure.reason, Reason::PinMismatch);
    assert!(
        failure.message.starts_with(
            "it is sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855, and plugins.pins wants"
        ),
        "{failure}"
    );
    let digest = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    let pin = digest.to_owned();
    loader.terms.pins.insert("a".to_owned(), pin);
    loader.files.clear();
    let set = loader.look(Why::Regular);
    assert!(set.set.is_none());
    let failures = loader.board().n_failures();
    assert_eq!(failures[&Reason::NotAComponent], 1);
}

#[test]
fn a_folder_that_goes_away_takes_nothing_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let plugins = folder.path().join("plugins");
    fs::create_dir(&plugins).unwrap();
    fs::write(plugins.join("a.wasm"), "").unwrap();
    let mut loader = loader(&plugins);
    loader.first().unwrap();
    fs::remove_dir_all(&plugins).unwrap();
    for _ in 0..3 {
        let found = loader.look(Why::Regular);
        assert!(found.set.is_none() && !found.is_unsettled);
    }
    assert_eq!(loader.board().entries().len(), 1);
}
