//! What has to leave, and what stays.

use super::*;
use crate::{
    outcome::{
        Attributes, Blame, Evidence, Finding, Generation, Identity, Outcome, Provenance, Severity,
        Status,
    },
    subject::Subject,
};

impl Live {
    /// Has a finding that rests on all Events of a pod.
    fn hold_finding(&self, pod: &str) {
        let key = SubjectKey {
            object: ObjectKey::new("ns", "Pod", pod).unwrap(),
            uid: format!("uid-{pod}").as_str().into(),
        };
        let of = |bucket: &Bucket| Subject::of(key.clone(), bucket, |_| true);
        let subject = self.store.view(&key.object, of).flatten().unwrap();
        let evidence = subject
            .events
            .iter()
            .map(|it| Evidence::of(it, true))
            .collect();
        let outcome = Outcome {
            findings: vec![Finding {
                identity: Identity {
                    category: "fault".into(),
                    code: "Code".into(),
                    key: "".into(),
                },
                severity: Severity::Critical,
                status: Status::Active,
                blame: Blame::Platform,
                message: "fault".into(),
                attributes: Attributes::default(),
                evidence,
            }],
            ..Outcome::default()
        };
        let from = Arc::new(Provenance {
            name: "made-up".into(),
            version: "1".into(),
            digest: "sha256:0".into(),
            settings_digest: "sha256:0".into(),
            wit: "portent:classifier@0.1.0".into(),
        });
        let change = self
            .outcomes
            .merge(&subject, &from, Generation(1), Ok(outcome));
        assert!(change.is_some());
    }
}

#[test]
fn an_object_that_never_stops_displaces_only_itself() {
    let mut live = live(Bounds {
        records_per_object: 3,
        ..bounds()
    });
    live.see(&event("ns", "quiet", "other"), 0, 1, 1);
    for n in 0..3 {
        live.see(&event("ns", "noisy", &format!("n{n}")), 0, 1, 2);
    }
    live.check("n0 n1 n2 other", "0,0,0,0,0");
    live.see(&event("ns", "noisy", "n3"), 0, 1, 2);
    live.check("n1 n2 n3 other", "0,0,0,0,1");
    // A further sighting is none too many.
    let mut again = event("ns", "noisy", "n2");
    again["note"] = "says more".into();
    live.see(&again, 0, 1, 3);
    live.check("n1 n2 n3 other", "0,0,0,0,1");
    // Nor do ten thousand that are.
    for n in 4..10_000 {
        live.see(&event("ns", "noisy", &format!("n{n}")), 0, 1, 4);
    }
    live.check("n9997 n9998 n9999 other", "0,0,0,0,9997");
}

#[test]
fn over_the_bytes_what_was_confirmed_longest_ago_leaves_first() {
    let mut live = live(bounds());
    live.see(&event("ns", "p", "a"), 0, 1, 1);
    let one = live.store.n_bytes();
    live.see(&event("ns", "q", "b"), 0, 1, 2);
    let two = live.store.n_bytes();
    // What all of them say alike is held, and counted, once.
    live.set_bounds(Bounds {
        store_bytes: two + (two - one),
        ..bounds()
    });
    live.see(&event("ns", "r", "c"), 0, 1, 3);
    live.check("a b c", "0,0,0,0,0");
    live.see(&event("ns", "s", "d"), 0, 1, 4);
    live.check("b c d", "0,0,0,1,0");
    // A smaller bound is taken up with the next step.
    live.set_bounds(Bounds {
        store_bytes: one,
        ..bounds()
    });
    live.settle(4);
    live.check("d", "0,0,0,3,0");
}

#[test]
fn a_namespace_that_never_stops_displaces_no_other() {
    let mut live = live(bounds());
    for n in 0..20 {
        live.see(
            &event("other", &format!("p{n}"), &format!("o{n:02}")),
            0,
            1,
            1,
        );
    }
    let of_other = live.store.n_bytes();
    live.set_bounds(Bounds {
        store_bytes: 3 * of_other,
        ..bounds()
    });
    for n in 0..100_000 {
        live.see(&event("ns", &format!("p{n}"), &format!("n{n:05}")), 0, 1, 2);
    }
    let (names, _) = live.state();
    assert_eq!(
        names.split(' ').filter(|it| it.starts_with('o')).count(),
        20
    );
    assert!(names.contains("n99999") && !names.contains("n00000"));
    assert!(live.store.n_bytes() <= 3 * of_other);

    // And once it holds most itself, it gives, too.
    for n in 0..2_000 {
        live.see(
            &event("other", &format!("q{n}"), &format!("z{n:04}")),
            0,
            1,
            3,
        );
    }
    let (names, _) = live.state();
    assert!(!names.contains("o00"));
    let n_ns = names.split(' ').filter(|it| it.starts_with('n')).count();
    let n_other = names.split(' ').count() - n_ns;
    assert!(n_ns.abs_diff(n_other) <= 2, "{n_ns} and {n_other}");
}

#[test]
fn an_object_that_was_confirmed_since_it_was_filed_is_passed_over() {
    let mut live = live(bounds());
    live.see(&event("ns", "p", "a"), 0, 1, 1);
    live.see(&event("ns", "q", "b"), 0, 1, 2);
    let two = live.store.n_bytes();
    live.see(&event("ns", "p", "a"), 0, 1, 3);
    live.set_bounds(Bounds {
        store_bytes: two,
        ..bounds()
    });
    live.see(&event("ns", "r", "c"), 0, 1, 4);
    live.check("a c", "0,0,0,1,0");
}

#[test]
fn there_are_at_most_so_many_objects() {
    let mut live = live(Bounds {
        objects: 2,
        ..bounds()
    });
    for (at, name) in (1..).zip(["a", "b"]) {
        live.see(&event("ns", name, name), 0, 1, at);
        live.see(&event("ns", name, &format!("{name}2")), 0, 1, at);
    }
    live.check("a a2 b b2", "0,0,0,0,0");
    live.see(&event("ns", "c", "c"), 0, 1, 3);
    live.check("b b2 c", "0,0,0,0,2");
    live.set_bounds(Bounds {
        objects: 1,
        ..bounds()
    });
    live.settle(3);
    live.check("c", "0,0,0,0,4");
}

#[test]
fn what_a_finding_rests_on_leaves_its_object_last() {
    let mut live = live(Bounds {
        records_per_object: 2,
        ..bounds()
    });
    live.see(&event("ns", "p", "fault"), 0, 1, 1);
    live.hold_finding("p");
    for n in 0..4 {
        live.see(&event("ns", "p", &format!("n{n}")), 0, 1, 2);
    }
    live.check("fault n3", "0,0,0,0,3");
    live.set_bounds(Bounds {
        records_per_object: 1,
        ..bounds()
    });
    live.see(&event("ns", "p", "n4"), 0, 1, 3);
    live.see(&event("ns", "p", "n5"), 0, 1, 3);
    assert!(live.state().0.contains("fault"));
}

#[test]
fn the_table_shrinks_once_much_of_the_store_is_gone_and_not_before() {
    let mut live = live(bounds());
    let n = GIVE_BACK_BYTES / 240;
    for n in 0..n {
        live.see(&event("ns", &format!("p{n}"), "e"), 0, 1, 1);
    }
    let full = live.store.capacity();
    assert!(GIVE_BACK_BYTES < live.store.n_bytes() && n <= full);
    live.settle(2);
    assert_eq!(live.store.capacity(), full, "all of it is needed");
    for n in 0..n {
        live.see_deleted(&event("ns", &format!("p{n}"), "e"));
    }
    // Some slots count as used until then, and nobody waits while they go.
    assert!(full / 2 < live.store.capacity());
    live.settle(3);
    assert_eq!(live.store.capacity(), 0);
}
