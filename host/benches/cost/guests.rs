//! The two plugins, and subjects to give them.

use std::{env, path::Path, path::PathBuf, sync::Arc};

use portent::{
    interner::Interner,
    plugins::{Plugin, PluginSet},
    record::{
        Caps, ObjectKey, Record,
        decode::{WireEvent, from_json},
    },
    sandbox::{Limits, Sandbox},
    store::{Confirmation, Store},
    subject::{Subject, SubjectKey},
};

/// Both plugins, as `cargo xtask plugins` built them.
pub(crate) fn load(limits: Limits) -> Arc<PluginSet> {
    let folder = env::var_os("PORTENT_TEST_PLUGINS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/plugins"),
        PathBuf::from,
    );
    let sandbox = Sandbox::new(limits).expect("this machine runs WebAssembly");
    let set = PluginSet::load(&sandbox, &folder).expect("`cargo xtask plugins` comes first");
    assert!(set.failed.is_empty(), "{:?}", set.failed);
    assert_eq!(set.plugins.len(), 2, "of {}", folder.display());
    Arc::new(set)
}

/// A plugin by its name.
pub(crate) fn named<'a>(set: &'a PluginSet, name: &str) -> &'a Plugin {
    let plugin = set.plugins.iter().find(|it| &*it.provenance.name == name);
    plugin.expect("it is one of ours")
}

/// The lines of a text, without their ends.
pub(crate) fn split(lines: &[u8]) -> Vec<&[u8]> {
    let mut start = 0;
    let ends = memchr::memchr_iter(b'\n', lines);
    ends.map(|end| &lines[std::mem::replace(&mut start, end + 1)..end])
        .collect()
}

/// An Event of a JSON line.
pub(crate) fn decoded(line: &[u8]) -> WireEvent<'_> {
    from_json(line).expect("the generator writes JSON")
}

/// An Event's record, and the object that it regards.
pub(crate) fn record(line: &[u8], interner: &Interner) -> (ObjectKey, Record) {
    Record::pare_down(&decoded(line), Caps::default(), interner)
        .expect("the generator forges nothing")
}

/// The records of JSON lines.
pub(crate) fn records(lines: &[u8]) -> Vec<(ObjectKey, Record)> {
    // Each has its texts to itself: the next store knows none of them.
    let lines = split(lines).into_iter();
    lines.map(|it| record(it, &Interner::default())).collect()
}

/// A store of these.
pub(crate) fn store(records: Vec<(ObjectKey, Record)>) -> Store {
    let store = Store::default();
    for (key, record) in records {
        store.put(key, record, Confirmation::default());
    }
    store
}

/// Their subjects, in the order in which their objects came, with those of their
/// records that `is_of_interest`.
pub(crate) fn subjects(
    records: &[(ObjectKey, Record)],
    is_of_interest: impl Fn(&ObjectKey, &Record) -> bool,
) -> Vec<Subject> {
    let store = store(records.to_vec());
    let mut keys: Vec<SubjectKey> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for (object, record) in records {
        if seen.insert(object.clone()) {
            keys.push(SubjectKey {
                object: object.clone(),
                uid: record.object_uid().into(),
            });
        }
    }
    let subjects = keys.into_iter().filter_map(|key| {
        let object = key.object.clone();
        let subject = store.view(&object, |bucket| {
            Subject::of(key, bucket, |it| is_of_interest(&object, it))
        });
        subject.flatten().filter(|it| !it.events.is_empty())
    });
    subjects.collect()
}
