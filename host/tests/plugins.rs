//! Plugins that are replaced while they serve: each guest here stamps its version into all that it says, so
//! that what comes out tells who said it. Nothing may be lost, doubled, or said by half a version.

#![allow(clippy::unwrap_used, reason = "a test says what went wrong by failing")]

mod support;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    num::NonZeroUsize,
    sync::{Arc, mpsc},
    time::{Duration, Instant},
};

use portent::{
    dispatch::{BAD_MAX, HELD_MIN, Pauses, SAMPLE_EVERY},
    live::{Bounds, Live},
    outcome::{Change, EndReason, Held},
    plugins::{Loader, Plugin, PluginSet, State, Terms, Why},
    reason::Reason,
    record::{Caps, ObjectKey},
    sandbox::{Limits, Sandbox, on_guest_stack},
    scope::{Reach, Scope},
    store::Confirmation,
    subject::SubjectKey,
};
use portent_hostile::{component, component_of};
use support::stamped;
use tempfile::TempDir;

/// A folder, what loads from it, and a live path that it serves.
struct Path {
    folder: TempDir,
    loader: Loader,
    live: Live,
    is_done: mpsc::Receiver<()>,
    changes: Vec<Change>,
    /// Who had a stamp, by the digest of its component.
    stamps: BTreeMap<String, String>,
}

impl Path {
    fn new(terms: Terms) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let sandbox = Sandbox::new(Limits::default()).unwrap();
        let mut loader = Loader::new(sandbox, folder.path().to_owned(), terms);
        let set = loader.first().unwrap();
        let scope = Scope::new(
            Reach::Namespaces(BTreeSet::from(["ns".parse().unwrap()])),
            BTreeSet::from(["Pod".parse().unwrap()]),
            BTreeSet::new(),
        );
        let (done, is_done) = mpsc::channel();
        let live = Live::new(
            1,
            scope.unwrap(),
            set,
            &Limits::default(),
            Caps::default(),
            Bounds::default(),
            NonZeroUsize::new(2).unwrap(),
            &(Arc::new(move || done.send(()).unwrap_or_default()) as Arc<dyn Fn() + Send + Sync>),
        );
        Self {
            folder,
            loader,
            live: live.unwrap(),
            is_done,
            changes: Vec::new(),
            stamps: BTreeMap::new(),
        }
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.folder.path().join(name), bytes).unwrap();
    }

    /// What the folder holds now, as soon as it is settled.
    fn load(&mut self) -> Option<Arc<PluginSet>> {
        on_guest_stack(|| {
            let mut set = None;
            let mut why = Why::Regular;
            // Those that are gone take two regular looks.
            for _ in 0..3 {
                let found = self.loader.look(why);
                set = found.set.or(set);
                why = if found.is_unsettled {
                    Why::Settling
                } else {
                    Why::Regular
                };
            }
            set
        })
    }

    /// Writes a version, loads it, and serves with it.
    fn swap_to(&mut self, name: &str, stamp: u32) {
        let bytes = stamped(name, stamp);
        self.write(&format!("{name}.wasm"), &bytes);
        let set = self.load().expect("it is another set");
        let plugin = set.plugins.iter().find(|it| *it.provenance.name == *name);
        let digest = plugin.unwrap().provenance.digest.to_string();
        self.stamps.insert(digest, format!("{stamp:02}"));
        self.live.swap(set);
    }

    fn put(&mut self, pod: &str, event: &str) {
        let json = self::event(pod, event).to_string();
        let event = serde_json::from_str(&json).unwrap();
        self.live
            .put(&event, Confirmation::default(), 1_900_000_000_000);
    }

    fn delete(&mut self, pod: &str, event: &str) {
        let json = self::event(pod, event).to_string();
        self.live.delete(&serde_json::from_str(&json).unwrap());
    }

    fn collect(&mut self) {
        let changes = &mut self.changes;
        self.live
            .collect(&mut |it, _| changes.push(it), &mut |_| {});
    }

    /// A turn of what a process does, without waiting for anything.
    fn turn(&mut self) {
        self.collect();
        self.live.step(1);
        self.live.submit();
    }

    /// Does all that there is to do.
    fn settle(&mut self) {
        loop {
            self.collect();
            let more = self.live.step(1);
            self.live.submit();
            if !more && self.live.is_idle() {
                self.collect();
                return;
            }
            if !more {
                self.is_done.recv().unwrap();
            }
        }
    }

    fn held(&self, pod: &str) -> Vec<Held> {
        self.live.outcomes().held(&subject(pod))
    }

    /// Of those with a stamp; another holds an error.
    fn stamps_of_a(&self, pod: &str) -> Vec<String> {
        let held = self.held(pod);
        let held = held.iter().filter(|it| *it.classifier.name == *"a");
        held.map(|it| self.stamps[&*it.classifier.digest].clone())
            .collect()
    }

    /// The stamps in what is held of a pod: each has to be that of the version that is named
    /// beside it.
    #[track_caller]
    fn stamps_of(&self, pod: &str) -> Vec<String> {
        let held = self.held(pod);
        let stamps = held.iter().map(|it| {
            let stamp = &self.stamps[&*it.classifier.digest];
            for finding in &it.outcome.findings {
                assert_eq!(*finding.message, **stamp, "{pod}: {it:?}");
            }
            for reason in &it.outcome.additional_reasons {
                assert_eq!(*reason.text(), **stamp, "{pod}: {it:?}");
            }
            stamp.clone()
        });
        stamps.collect()
    }
}

fn subject(pod: &str) -> SubjectKey {
    SubjectKey {
        object: ObjectKey::new("ns", "Pod", pod).unwrap(),
        uid: format!("uid-{pod}").as_str().into(),
    }
}

fn event(pod: &str, name: &str) -> serde_json::Value {
    serde_json::json!({
        "metadata": { "name": name, "namespace": "ns", "uid": format!("uid-{name}"),
            "creationTimestamp": "2026-01-01T00:00:00Z" },
        "regarding": { "kind": "Pod", "namespace": "ns", "name": pod, "uid": format!("uid-{pod}") },
        "type": "Warning",
        "reason": "Reason",
        "note": "a note",
        "deprecatedLastTimestamp": "2026-01-01T00:00:00Z",
    })
}

#[test]
fn a_new_version_says_anew_what_is_live_and_only_what_is_different_is_told() {
    let mut path = Path::new(Terms::default());
    path.swap_to("a", 1);
    for idx in 0..200 {
        path.put(&format!("poison-{idx}"), &format!("e{idx}"));
    }
    path.settle();
    let raised = |changes: &[Change]| {
        let raised = changes.iter().map(|it| it.delta.raised.len());
        raised.sum::<usize>()
    };
    assert_eq!(raised(&path.changes), 200);

    path.changes.clear();
    path.swap_to("a", 2);
    path.settle();
    let changed = path.changes.iter().map(|it| it.delta.changed.len());
    assert_eq!((raised(&path.changes), changed.sum::<usize>()), (0, 200));
    for idx in 0..200 {
        assert_eq!(path.stamps_of(&format!("poison-{idx}")), ["02"]);
    }

    // Another component that says the same, as other settings may: nothing is told.
    path.changes.clear();
    path.write("a.yaml", b"key: value");
    let set = path.load().expect("other settings are another version");
    path.live.swap(set);
    path.settle();
    assert!(path.changes.is_empty(), "{:?}", path.changes);
    let held = path.held("poison-0");
    let settings = &held[0].classifier.settings_digest;
    assert_ne!(**settings, *digest_of_nothing());
}

/// Of the settings that no file holds.
fn digest_of_nothing() -> &'static str {
    "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
}

#[test]
fn what_is_only_touched_or_written_again_is_no_new_version() {
    let mut path = Path::new(Terms::default());
    path.swap_to("a", 1);
    path.write("a.wasm", &stamped("a", 1));
    assert!(path.load().is_none());
    // Away and back: as far as anyone can see it was never gone.
    fs::remove_file(path.folder.path().join("a.wasm")).unwrap();
    path.loader.look(Why::Regular);
    path.write("a.wasm", &stamped("a", 1));
    assert!(path.load().is_none());
    assert_eq!(path.loader.board().n_swaps(), 1);
}

#[test]
fn a_swap_of_one_plugin_loses_no_answer_of_another_that_is_in_a_call() {
    let mut path = Path::new(Terms::default());
    path.swap_to("a", 1);
    path.swap_to("b", 1);
    path.settle();
    path.put("poison-0", "e");
    path.live.submit();
    // Both are with the workers; the record is gone, so that nobody is asked a second time.
    path.delete("poison-0", "e");
    path.swap_to("a", 2);
    path.settle();
    let held = path.held("poison-0");
    let names: BTreeSet<_> = held.iter().map(|it| &*it.classifier.name).collect();
    assert_eq!(names, BTreeSet::from(["a", "b"]));
    // That of the version that it was given to, since no other was asked.
    assert_eq!(path.stamps_of("poison-0"), ["01", "01"]);
    assert_eq!(path.live.n_late(), 0);
}

#[test]
fn an_answer_of_the_old_version_never_stands_over_one_of_the_new() {
    let mut path = Path::new(Terms::default());
    path.swap_to("a", 1);
    for idx in 0..50 {
        path.put(&format!("poison-{idx}"), &format!("e{idx}"));
    }
    path.live.submit();
    // With the workers, and nobody collects: the new version is not asked before they are back.
    path.swap_to("a", 2);
    while path.live.step(1) {}
    path.live.submit();
    path.settle();
    for idx in 0..50 {
        assert_eq!(path.stamps_of(&format!("poison-{idx}")), ["02"]);
    }
}

#[test]
fn what_a_removed_plugin_found_ends_and_what_comes_of_it_yet_is_late() {
    let mut path = Path::new(Terms::default());
    path.swap_to("a", 1);
    path.swap_to("b", 1);
    for idx in 0..200 {
        path.put(&format!("poison-{idx}"), &format!("e{idx}"));
    }
    path.settle();
    path.put("poison-late", "late");
    path.live.submit();
    let generation = path.live.plugins().plugins[0].generation;
    fs::remove_file(path.folder.path().join("a.wasm")).unwrap();
    let set = path.load().expect("one is gone");
    path.changes.clear();
    let swapped = path.live.swap(set);
    assert_eq!(swapped.removed, ["a".into()]);
    assert!(path.live.is_out("a", generation));
    path.settle();

    let mut n_ended = 0;
    for (finding, why) in path.changes.iter().flat_map(|it| &it.delta.cleared) {
        assert_eq!(*why, EndReason::ClassifierRemoved, "{finding:?}");
        n_ended += 1;
    }
    assert_eq!((n_ended, path.live.n_late()), (200, 1));
    for pod in ["poison-0", "poison-199", "poison-late"] {
        let held = path.held(pod);
        let names: Vec<_> = held.iter().map(|it| &*it.classifier.name).collect();
        assert_eq!(names, ["b"], "{pod}");
    }
    // It comes back, and says all that again.
    path.changes.clear();
    path.swap_to("a", 3);
    path.settle();
    assert_eq!(path.changes.len(), 201);
}

#[test]
fn a_newer_swap_takes_the_place_of_asking_again_for_the_one_before() {
    let mut path = Path::new(Terms::default());
    path.swap_to("a", 1);
    for idx in 0..500 {
        path.put(&format!("poison-{idx}"), &format!("e{idx}"));
    }
    path.settle();
    path.changes.clear();
    for stamp in 2..6 {
        path.swap_to("a", stamp);
        // A slice of it, and no batch: nobody is asked.
        path.live.step(1);
        assert_eq!(path.live.n_backlog(), 64);
    }
    path.settle();
    // Each was told of once, by the newest.
    assert_eq!(path.changes.len(), 500);
    for idx in 0..500 {
        assert_eq!(path.stamps_of(&format!("poison-{idx}")), ["05"]);
    }
}

#[test]
fn what_changes_comes_before_what_is_only_asked_again() {
    let mut path = Path::new(Terms::default());
    path.swap_to("a", 1);
    for idx in 0..1_000 {
        path.put(&format!("poison-{idx}"), &format!("e{idx}"));
    }
    path.settle();
    path.swap_to("a", 2);
    while path.live.step(1) {}
    assert_eq!(path.live.n_backlog(), 1_000);
    path.changes.clear();
    path.put("poison-new", "new");
    // Once: there is room for half of those that waited, and it is among what was taken.
    path.live.submit();
    assert!(400 < path.live.n_backlog(), "{}", path.live.n_backlog());
    let began = Instant::now();
    while !path
        .changes
        .iter()
        .any(|it| it.subject == subject("poison-new"))
    {
        path.collect();
        assert!(began.elapsed() < Duration::from_secs(30), "it is not");
    }
    path.settle();
    assert_eq!(path.stamps_of("poison-new"), ["02"]);
}

#[test]
fn fifty_swaps_under_load_lose_nothing_double_nothing_and_mix_nothing() {
    let mut path = Path::new(Terms::default());
    path.swap_to("a", 0);
    path.swap_to("b", 0);
    let (mut n_pods, mut longest) = (0_u32, Duration::ZERO);
    for stamp in 1..=50 {
        let name = if stamp % 2 == 0 { "a" } else { "b" };
        let bytes = stamped(name, stamp);
        path.write(&format!("{name}.wasm"), &bytes);
        let set = path.load().unwrap();
        let digest = |it: &Arc<Plugin>| it.provenance.digest.to_string();
        let plugin = set.plugins.iter().find(|it| *it.provenance.name == *name);
        path.stamps
            .insert(digest(plugin.unwrap()), format!("{stamp:02}"));
        for idx in 0..40 {
            path.put(&format!("poison-{n_pods}"), &format!("e{n_pods}"));
            // Some are gone at once: they are heard of all the same.
            if n_pods % 7 == 0 {
                path.delete(&format!("poison-{n_pods}"), &format!("e{n_pods}"));
            }
            n_pods += 1;
            if idx % 8 == 0 {
                path.turn();
            }
            if idx == 20 {
                let began = Instant::now();
                path.live.swap(Arc::clone(&set));
                longest = longest.max(began.elapsed());
            }
        }
    }
    path.settle();
    assert_eq!(path.live.n_late(), 0);
    // Each pod was raised once by each plugin: not lost, not doubled, whoever it was.
    let mut raised = BTreeMap::<_, u32>::new();
    for it in &path.changes {
        for finding in &it.delta.raised {
            let stamp = &path.stamps[&*it.classifier.digest];
            assert_eq!(*finding.message, **stamp);
            *raised
                .entry((it.subject.clone(), it.classifier.name.clone()))
                .or_default() += 1;
        }
        assert!(it.delta.cleared.is_empty());
    }
    assert_eq!(raised.len(), 2 * n_pods as usize);
    assert!(raised.values().all(|it| *it == 1));
    // What was deleted is held by whoever saw it; of the others all is by the newest.
    for idx in 0..n_pods {
        let mut stamps = path.stamps_of(&format!("poison-{idx}"));
        stamps.sort();
        if idx % 7 != 0 {
            assert_eq!(stamps, ["49", "50"], "{idx}");
        }
    }
    // No batch waited for a swap; if it did, it is told.
    let held = path.live.held();
    assert!(held.n_batches == 0 || HELD_MIN <= held.longest, "{held:?}");
    // A swap is a step between two others, and as short.
    assert!(longest < Duration::from_millis(50), "{longest:?}");
}

#[test]
fn a_plugin_whose_calls_fail_is_left_alone_tried_again_and_well_with_another_version() {
    let mut path = Path::new(Terms::default());
    path.swap_to("a", 1);
    path.write(
        "bad.wasm",
        &component_of(
            "bad",
            "(func $misbehave (param i32 i32) (result i32) unreachable)",
        ),
    );
    let set = path.load().unwrap();
    path.live.swap(set);
    path.settle();
    let quarantine = |path: &Path| {
        let mut of_all = path.live.health();
        of_all.find(|(name, _)| *name == "bad").and_then(|it| it.1)
    };
    for idx in 0..BAD_MAX {
        assert_eq!(quarantine(&path), None);
        path.put(&format!("poison-{idx}"), &format!("e{idx}"));
        path.settle();
    }
    assert_eq!(quarantine(&path), Some(Reason::Trap));
    // What comes waits for it, and for nobody else.
    path.put("poison-new", "new");
    for _ in 0..2 {
        path.turn();
        while 0 < path.live.n_ready()
            || path
                .live
                .is_out("a", path.live.plugins().plugins[0].generation)
        {
            path.turn();
        }
    }
    assert_eq!(path.stamps_of_a("poison-new"), ["01"]);
    assert_eq!(path.live.n_waiting(), 1);
    // One batch is tried, and fails: there is nothing left to try until something comes.
    while path.live.step(1 + Pauses::default().first) {}
    assert_eq!(path.live.n_ready(), 1);
    path.live.submit();
    path.is_done.recv().unwrap();
    while 0 < path.live.n_out() {
        path.collect();
    }
    assert_eq!(quarantine(&path), Some(Reason::Trap));

    // The next version begins anew, with all that is live.
    path.swap_to("bad", 2);
    path.settle();
    assert_eq!(quarantine(&path), None);
    let stamps = path.stamps_of("poison-new");
    assert_eq!(stamps, ["01", "02"]);
}

/// A guest that describes its settings so.
fn described(schema: &str) -> Vec<u8> {
    let text = schema.replace('"', "\\\"");
    let own = format!(
        "(data (i32.const 0x12c) (i32 1 0x800 {}))\n(data (i32.const 0x800) \"{text}\")",
        schema.len()
    );
    component_of("a", &own)
}

#[test]
fn settings_are_held_against_what_their_plugin_describes_and_so_is_that_against_what_it_may() {
    let why_not = |schema: &str, settings: &str| {
        let mut path = Path::new(Terms::default());
        path.write("a.wasm", &described(schema));
        path.write("a.yaml", settings.as_bytes());
        let set = path.load();
        let failed = set.as_ref().map_or_else(|| path.failures(), |_| Vec::new());
        failed.first().copied()
    };
    let schema = r#"{"properties": {"a": {"type": "string"}}, "required": ["a"]}"#;
    assert_eq!(why_not(schema, "a: x"), None);
    assert_eq!(why_not(schema, "a: 1"), Some(Reason::SettingsInvalid));
    assert_eq!(why_not(schema, ""), Some(Reason::SettingsInvalid));
    for schema in [
        "{",
        "7",
        r#"{"type": "txt"}"#,
        r##"{"$ref": "#"}"##,
        r#"{"$ref": "file:///etc/passwd"}"#,
        r#"{"patternProperties": {"(?=a)b": {}}}"#,
    ] {
        assert_eq!(
            why_not(schema, "a: 1"),
            Some(Reason::DescriptionInvalid),
            "{schema}"
        );
    }
}

impl Path {
    /// Why what the folder holds does not serve.
    fn failures(&self) -> Vec<Reason> {
        let entries = self.loader.board().entries();
        let newest = entries.iter().filter_map(|it| it.newest.as_ref());
        newest.filter_map(|(_, state)| state.reason()).collect()
    }
}

/// A guest that behaves well on trial, and answers batches with a poisonous subject in them so.
fn with_poison(name: &str, misbehave: &str) -> Vec<u8> {
    let head = "(func $misbehave (param $subjects i32) (param $n i32) (result i32)";
    component_of(name, &format!("{head} {misbehave})"))
}

/// It says how many subjects are in its batch.
const COUNTS: &str = "(i64.store offset=8 (global.get $reason) (i64.extend_i32_u (local.get $n)))
    (call $well_behaved (local.get $subjects) (local.get $n))";

/// Fails so when a subject is alone.
fn alone(fails: &str) -> String {
    format!(
        "(if (i32.eq (local.get $n) (i32.const 1)) (then {fails}))
        (call $well_behaved (local.get $subjects) (local.get $n))"
    )
}

impl Path {
    fn serve(&mut self, file: &str, bytes: &[u8]) {
        self.write(file, bytes);
        let set = self.load().expect("it is another set");
        self.live.swap(set);
        self.settle();
    }

    /// Puts a pod's Event for each of these, has them classified in a batch, and says of each
    /// plugin that was asked again, in the order of the names, whether it said the same.
    fn batch(&mut self, pods: &[&str]) -> Vec<(String, bool)> {
        for pod in pods {
            self.put(pod, pod);
        }
        let mut again = BTreeMap::new();
        self.live.submit();
        while !self.live.is_idle() {
            let changes = &mut self.changes;
            self.live.collect(&mut |it, _| changes.push(it), &mut |it| {
                let name = it.plugin.provenance.name.to_string();
                again.extend(it.is_same.map(|same| (name, same)));
            });
            self.live.submit();
        }
        again.into_iter().collect()
    }

    fn impure(&self) -> Vec<&str> {
        self.live.impure().map(|(name, _)| name).collect()
    }
}

#[test]
fn a_plugin_that_says_otherwise_when_it_is_asked_again_is_found_out_and_its_first_answer_stands() {
    let mut path = Path::new(Terms::default());
    path.serve("a.wasm", &stamped("a", 1));
    path.serve("counts.wasm", &with_poison("counts", COUNTS));
    // Of one subject nothing can be told, however often it comes.
    assert_eq!(path.batch(&["poison-0"]), []);
    assert_eq!(path.impure(), <[&str; 0]>::default());

    let pods = ["poison-1", "poison-2", "poison-3"];
    let both = ["a", "counts"].map(str::to_owned);
    assert_eq!(
        path.batch(&pods),
        both.into_iter().zip([true, false]).collect::<Vec<_>>()
    );
    assert_eq!(path.impure(), ["counts"]);
    for pod in pods {
        let held = path.held(pod);
        let counts = held.iter().find(|it| *it.classifier.name == *"counts");
        assert_eq!(counts.unwrap().outcome.additional_reasons[0].at, 3, "{pod}");
    }
    // The next batches are none of the sample, and it serves on.
    assert_eq!(path.batch(&["poison-4", "poison-5"]), []);
    assert_eq!(path.held("poison-5").len(), 2);

    // Another version of it is another plugin: asked again of the first batch, and pure.
    path.serve(
        "counts.wasm",
        &with_poison(
            "counts",
            "(call $well_behaved (local.get $subjects) (local.get $n))",
        ),
    );
    assert_eq!(path.impure(), <[&str; 0]>::default());
}

#[test]
fn a_call_that_fails_when_it_is_asked_again_is_impure_and_one_that_uses_up_what_it_may_is_not() {
    for (fails, is_same) in [("unreachable", false), ("(loop $l (br $l))", true)] {
        let mut path = Path::new(Terms::default());
        path.serve("alone.wasm", &with_poison("alone", &alone(fails)));
        let again = path.batch(&["poison-0", "poison-1"]);
        assert_eq!(again, [("alone".to_owned(), is_same)], "{fails}");
        let held = path.held("poison-0");
        assert_eq!(held[0].outcome.additional_reasons.len(), 1, "{fails}");
    }
}

#[test]
fn one_batch_of_so_many_is_asked_about_again_and_the_first_of_each_version() {
    let mut path = Path::new(Terms::default());
    path.serve("a.wasm", &stamped("a", 1));
    let n_batches = usize::try_from(SAMPLE_EVERY).unwrap() + 2;
    let mut sampled = Vec::new();
    for idx in 0..n_batches {
        let pods = [format!("p-{idx}"), format!("q-{idx}")];
        if !path.batch(&[&pods[0], &pods[1]]).is_empty() {
            sampled.push(idx);
        }
    }
    assert_eq!(sampled, [0, n_batches - 2]);
}

#[test]
fn a_plugin_that_loops_keeps_no_worker_from_the_others() {
    let mut path = Path::new(Terms::default());
    path.swap_to("a", 1);
    let loops = "(func $misbehave (param i32 i32) (result i32) (loop $l (br $l)) (i32.const 0))";
    path.write("loops.wasm", &component_of("loops", loops));
    let set = path.load().unwrap();
    path.live.swap(set);
    for idx in 0..2_000 {
        path.put(&format!("poison-{idx}"), &format!("e{idx}"));
    }
    path.live.submit();
    let loops = path.live.plugins().plugins.iter();
    let mut loops = loops.filter(|it| *it.provenance.name == *"loops");
    let loops = loops.next().unwrap().generation;
    // While what loops has not had its first batch back, the other has had them all.
    let n_told = |path: &Path| {
        let told = path.changes.iter();
        told.filter(|it| *it.classifier.name == *"a").count()
    };
    let mut n_failed = 0;
    while n_told(&path) < 2_000 {
        let changes = &mut path.changes;
        path.live.collect(&mut |it, _| changes.push(it), &mut |it| {
            n_failed += usize::from(!it.failures.is_empty());
        });
        path.live.submit();
    }
    assert!(path.live.is_out("loops", loops));
    // 32 batches of the one, each some milliseconds; each of the other is two deadlines.
    assert!(n_failed <= 2, "{n_failed}");
}

/// A file that is put in the place of a good one, what is wrong with it, and what is said.
type Bad = (&'static str, Vec<u8>, Option<&'static str>, Reason);

fn bad_versions() -> Vec<Bad> {
    let good = stamped("a", 2);
    let core = component("core-module");
    let half = good[..good.len() / 2].to_vec();
    vec![
        ("half of it", half, None, Reason::NotAComponent),
        (
            "no wasm",
            b"#!/bin/sh\n".to_vec(),
            None,
            Reason::NotAComponent,
        ),
        ("empty", Vec::new(), None, Reason::NotAComponent),
        ("a core module", core, None, Reason::NotAComponent),
        (
            "WASI",
            component("imports-wasi"),
            None,
            Reason::ForbiddenImport,
        ),
        (
            "another contract",
            component("a-later-version"),
            None,
            Reason::AbiUnsupported,
        ),
        (
            "a start without end",
            component("loops-in-start"),
            None,
            Reason::InstantiateFailed,
        ),
        (
            "describe without end",
            component("loops-in-describe"),
            None,
            Reason::DescribeFailed,
        ),
        (
            "describe that lies",
            component("describes-no-interests"),
            None,
            Reason::DescriptionInvalid,
        ),
        (
            "settings that it refuses",
            component("refuses-its-settings"),
            None,
            Reason::SettingsInvalid,
        ),
        (
            "settings that are none",
            good,
            Some("- a list"),
            Reason::SettingsInvalid,
        ),
        (
            "a trap whenever it is called",
            component("traps-always"),
            None,
            Reason::SelfTestFailed,
        ),
        (
            "another answer in another batch",
            component("counts-its-subjects"),
            None,
            Reason::Impure,
        ),
        (
            "the name of another",
            stamped("other", 2),
            None,
            Reason::NameClash,
        ),
        ("too large", vec![0; 33 << 20], None, Reason::TooLarge),
    ]
}

#[test]
fn no_bad_version_interrupts_the_good_one_and_each_is_told_by_its_reason() {
    let mut path = Path::new(Terms::default());
    path.swap_to("other", 1);
    path.swap_to("a", 1);
    for (idx, bad) in bad_versions().into_iter().enumerate() {
        let (what, bytes, settings, reason) = bad;
        path.write("a.wasm", &bytes);
        match settings {
            Some(it) => path.write("a.yaml", it.as_bytes()),
            None => drop(fs::remove_file(path.folder.path().join("a.yaml"))),
        }
        assert!(path.load().is_none(), "{what}");
        let entries = path.loader.board().entries();
        let entry = entries.iter().find(|it| it.file == "a").unwrap();
        let (_, state) = entry.newest.as_ref().unwrap();
        assert_eq!(*state, State::Failed(reason), "{what}");
        let (serving, _) = entry.serving.as_ref().unwrap();
        assert_eq!(serving.name.as_deref(), Some("a"), "{what}");
        // It serves on.
        let pod = format!("poison-{idx}");
        path.put(&pod, &format!("e{idx}"));
        path.settle();
        let stamps: BTreeSet<_> = path.stamps_of(&pod).into_iter().collect();
        assert_eq!(stamps, BTreeSet::from(["01".to_owned()]), "{what}");
        assert_eq!(path.held(&pod).len(), 2);
    }
    // The old one is put back: nothing is loaded, and nothing is wrong.
    path.write("a.wasm", &stamped("a", 1));
    fs::remove_file(path.folder.path().join("a.yaml")).ok();
    assert!(path.load().is_none());
    let entries = path.loader.board().entries();
    assert!(entries.iter().all(|it| it.newest.is_none()), "{entries:?}");
    path.swap_to("a", 3);
    path.settle();
    assert!(path.stamps_of("poison-0").contains(&"03".to_owned()));
}

#[test]
fn a_name_that_is_free_again_and_a_pin_that_is_met_let_a_plugin_in() {
    let digest = {
        let mut path = Path::new(Terms::default());
        path.swap_to("a", 1);
        path.stamps.keys().next().unwrap().clone()
    };
    let mut path = Path::new(Terms {
        pins: BTreeMap::from([("a".to_owned(), digest)]),
        ..Terms::default()
    });
    path.write("a.wasm", &stamped("a", 2));
    assert!(path.load().is_none());
    assert_eq!(
        path.loader.board().n_failures(),
        BTreeMap::from([(Reason::PinMismatch, 1)])
    );
    path.swap_to("a", 1);

    path.write("b.wasm", &stamped("a", 4));
    assert!(path.load().is_none());
    assert_eq!(path.loader.board().n_failures()[&Reason::NameClash], 1);
    fs::remove_file(path.folder.path().join("a.wasm")).unwrap();
    let set = path.load().unwrap();
    assert_eq!(set.plugins.len(), 1);
    assert!(set.plugins[0].path.ends_with("b.wasm"), "{set:?}");
}

#[test]
fn one_plugin_too_many_for_the_budget_is_not_loaded_and_one_at_it_is() {
    let mut path = Path::new(Terms::default());
    path.swap_to("a", 1);
    path.swap_to("b", 1);
    let size = |name: &str| {
        let plugins = &path.live.plugins().plugins;
        let it = plugins.iter().find(|it| *it.provenance.name == *name);
        it.unwrap().guest.n_compiled_bytes()
    };
    let both = size("a") + size("b");
    for (compiled_bytes, n_plugins) in [(both - 1, 1), (both, 2)] {
        let terms = Terms {
            compiled_bytes,
            ..Terms::default()
        };
        let mut path = Path::new(terms);
        path.write("a.wasm", &stamped("a", 1));
        path.write("b.wasm", &stamped("b", 1));
        let set = path.load().unwrap();
        assert_eq!(set.plugins.len(), n_plugins);
        let failed: Vec<_> = set.failed.iter().map(|it| it.1.reason).collect();
        assert_eq!(failed, vec![Reason::OverBudget; 2 - n_plugins]);
    }
}
