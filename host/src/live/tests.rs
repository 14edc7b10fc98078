//! What a live path counts, holds and lets go of, with no plugin and no cluster.

use super::*;
use crate::scope::Reach;

mod bounds;
mod conservation;
mod defects;
mod pods;

const EPOCH: u64 = 7;
const TTL: Seconds = 100;
const NOW: UnixMs = 1_800_000_000_000;

fn live(bounds: Bounds) -> Live {
    let namespaces = ["ns", "other"].map(|it| it.parse().unwrap());
    let kinds = ["Pod", "Node"].map(|it| it.parse().unwrap());
    let reach = Reach::Namespaces(namespaces.into());
    let scope = Scope::new(reach, kinds.into(), BTreeSet::new()).unwrap();
    Live::new(
        EPOCH,
        scope,
        Arc::default(),
        &Limits::default(),
        Caps::default(),
        bounds,
        NonZeroUsize::MIN,
        &(Arc::new(|| {}) as Arc<dyn Fn() + Send + Sync>),
    )
    .unwrap()
}

fn bounds() -> Bounds {
    Bounds {
        time_to_live: TTL,
        ..Bounds::default()
    }
}

/// An Event of this name about a pod in a namespace.
fn event(namespace: &str, pod: &str, name: &str) -> serde_json::Value {
    serde_json::json!({
        "metadata": { "name": name, "namespace": namespace, "uid": format!("uid-{name}") },
        "regarding": { "kind": "Pod", "namespace": namespace, "name": pod, "uid": format!("uid-{pod}") },
        "reason": "Reason",
        "note": "a note",
        "deprecatedLastTimestamp": "2026-01-01T00:00:00Z",
    })
}

impl Live {
    fn see(&mut self, event: &serde_json::Value, watch: u16, listing: u32, at: Seconds) {
        let text = event.to_string();
        let event = serde_json::from_str(&text).unwrap();
        self.put(&event, Confirmation { watch, listing, at }, NOW);
    }

    fn see_deleted(&mut self, event: &serde_json::Value) {
        self.delete(&serde_json::from_str(&event.to_string()).unwrap());
    }

    /// Does all that there is to do at a time.
    fn settle(&mut self, now: Seconds) {
        while self.step(now) {}
    }

    /// The names of all live records, and what was removed: as
    /// `deleted,swept,expired,over-bytes,over-count`.
    fn state(&self) -> (String, String) {
        let mut names: Vec<String> = self
            .store
            .walk(None, Seconds::MAX, usize::MAX)
            .0
            .iter()
            .flat_map(|key| {
                let names: Option<Vec<_>> = self.store.view(key, |bucket| {
                    let names = bucket.records().iter();
                    names.map(|it| it.record.name().to_owned()).collect()
                });
                names.unwrap_or_default()
            })
            .collect();
        names.sort();
        let it = self.store.totals();
        let removed = [it.deleted, it.swept, it.expired, it.evicted, it.over_count];
        let removed: Vec<_> = removed.iter().map(u64::to_string).collect();
        (names.join(" "), removed.join(","))
    }

    #[track_caller]
    fn check(&self, names: &str, removed: &str) {
        assert_eq!(self.state(), (names.to_owned(), removed.to_owned()));
        // The law: nothing goes without being counted.
        let (counters, totals) = (&self.counters, self.store.totals());
        let rejected: u64 = counters.rejected().map(|(_, n)| n).sum();
        assert_eq!(
            counters.received.load(Relaxed),
            totals.stored
                + totals.merged
                + rejected
                + counters.out_of_scope.load(Relaxed)
                + counters.unselected.load(Relaxed)
                + counters.waiting.load(Relaxed)
        );
        assert_eq!(totals.live(), self.store.n_records() as u64);
        assert_eq!(
            self.store.walk(None, Seconds::MAX, usize::MAX).0.len(),
            self.store.n_buckets()
        );
    }
}

#[test]
fn what_a_newer_list_of_the_same_watch_does_not_have_is_gone() {
    let mut live = live(bounds());
    for (pod, name) in [("p", "a"), ("p", "b"), ("q", "c")] {
        live.see(&event("ns", pod, name), 0, 1, 5);
    }
    live.see(&event("other", "r", "elsewhere"), 1, 1, 5);
    live.sweep(0, 1, 5);
    live.settle(5);
    live.check("a b c elsewhere", "0,0,0,0,0");

    // In the second LIST there is only `b`, and `d` comes while it is read.
    live.see(&event("ns", "p", "b"), 0, 2, 9);
    live.see(&event("ns", "p", "d"), 0, 2, 9);
    live.sweep(0, 2, 9);
    live.settle(9);

    live.check("b d elsewhere", "0,2,0,0,0");
}

#[test]
fn a_list_that_is_broken_off_sweeps_nothing() {
    let mut live = live(bounds());
    live.see(&event("ns", "p", "a"), 0, 1, 5);
    live.see(&event("ns", "p", "b"), 0, 1, 5);
    // The second LIST ends in the middle, the third has only `a`.
    live.see(&event("ns", "p", "b"), 0, 2, 6);
    live.settle(6);
    live.check("a b", "0,0,0,0,0");
    live.see(&event("ns", "p", "a"), 0, 3, 7);
    live.sweep(0, 3, 7);
    live.settle(7);
    live.check("a", "0,1,0,0,0");
}

#[test]
fn a_sweep_of_many_is_done_in_slices_and_finds_them_all() {
    let mut live = live(bounds());
    let names: Vec<_> = (0..3 * SLICE).map(|n| format!("e{n:05}")).collect();
    for it in &names {
        live.see(&event("ns", it, it), 0, 1, 5);
    }
    let kept: Vec<_> = names.iter().step_by(7).cloned().collect();
    for it in &kept {
        live.see(&event("ns", it, it), 0, 2, 6);
    }
    live.sweep(0, 2, 6);
    assert!(live.step(6), "there is more to do than a slice");
    live.settle(6);
    let n_swept = names.len() - kept.len();
    live.check(&kept.join(" "), &format!("0,{n_swept},0,0,0"));
}

#[test]
fn what_nobody_confirms_for_too_long_expires_whatever_it_claims() {
    let mut live = live(bounds());
    let mut forever = event("ns", "p", "forever");
    forever["deprecatedLastTimestamp"] = "2999-01-01T00:00:00Z".into();
    live.see(&forever, 0, 1, 5);
    live.see(&event("ns", "p", "confirmed"), 0, 1, 5);
    live.see(&event("ns", "q", "alone"), 0, 1, 5);
    live.see(&event("ns", "p", "confirmed"), 0, 1, 60);
    assert_eq!(live.counters.clamped.load(Relaxed), 1);

    live.settle(5 + TTL);
    live.check("alone confirmed forever", "0,0,0,0,0");
    live.settle(5 + TTL + 1);
    live.check("confirmed", "0,0,2,0,0");
    live.settle(60 + TTL);
    live.check("confirmed", "0,0,2,0,0");
    live.settle(60 + TTL + 1);
    live.check("", "0,0,3,0,0");
    assert_eq!(live.store.n_bytes(), 0);
}

#[test]
fn what_is_deleted_goes_and_what_is_not_known_costs_nothing() {
    let mut live = live(bounds());
    live.see(&event("ns", "p", "a"), 0, 1, 1);
    let mut other_uid = event("ns", "p", "a");
    other_uid["metadata"]["uid"] = "another".into();
    live.see_deleted(&other_uid);
    live.see_deleted(&event("ns", "p", "unknown"));
    live.check("a", "0,0,0,0,0");
    live.see_deleted(&event("ns", "p", "a"));
    live.check("", "1,0,0,0,0");
    assert_eq!(live.counters.deletions.load(Relaxed), 3);
}

#[test]
fn what_is_out_of_scope_or_forged_is_counted_and_not_kept() {
    let mut live = live(bounds());
    live.see(&event("elsewhere", "p", "a"), 0, 1, 1);
    let mut job = event("ns", "p", "b");
    job["regarding"]["kind"] = "Job".into();
    live.see(&job, 0, 1, 1);
    let mut forged = event("ns", "p", "c");
    forged["regarding"]["namespace"] = "other".into();
    live.see(&forged, 0, 1, 1);
    let mut node = event("ns", "n", "d");
    node["regarding"] = serde_json::json!({ "kind": "Node", "name": "n" });
    live.see(&node, 0, 1, 1);
    live.check("", "0,0,0,0,0");
    node["metadata"]["namespace"] = "default".into();
    live.see(&node, 0, 1, 1);
    live.check("d", "0,0,0,0,0");
    assert_eq!(live.counters.out_of_scope.load(Relaxed), 2);
    let rejected: Vec<_> = live
        .counters
        .rejected()
        .filter(|(_, n)| *n != 0)
        .map(|(why, n)| (why.as_label(), n))
        .collect();
    assert_eq!(rejected, [("forged-namespace", 1), ("forged-scope", 1)]);
}

#[test]
fn what_is_seen_again_unchanged_is_confirmed_and_nothing_else() {
    let mut live = live(bounds());
    live.see(&event("ns", "p", "a"), 0, 1, 1);
    let before = live.store.walk(None, 1, 1);
    let of_bucket = |live: &Live| {
        let key = &live.store.walk(None, 1, 1).0[0];
        live.store.view(key, Bucket::version)
    };
    let bucket_version = of_bucket(&live);
    live.see(&event("ns", "p", "a"), 0, 2, 50);
    assert_eq!(of_bucket(&live), bucket_version);
    assert_eq!(live.store.walk(None, 1, 1), before);
    live.check("a", "0,0,0,0,0");
}
