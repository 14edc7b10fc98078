//! A scope against its rules, and globs against a matcher that is plainly right.

use std::{fmt, str::FromStr};

use proptest::prelude::*;

use super::*;

fn set<T: FromStr<Err = NameError> + Ord>(names: &[&str]) -> BTreeSet<T> {
    names.iter().map(|it| it.parse().unwrap()).collect()
}

fn globs(texts: &[&str]) -> Vec<Glob> {
    texts.iter().map(|it| it.parse().unwrap()).collect()
}

fn cluster(include: &[&str], exclude: &[&str]) -> Reach {
    Reach::Cluster {
        include: globs(include),
        exclude: globs(exclude),
    }
}

fn scope(reach: Reach, kinds: &[&str], cluster_scoped: &[&str]) -> Scope {
    Scope::new(reach, set(kinds), set(cluster_scoped)).unwrap()
}

/// The watches are these, each as `NAMESPACE/SELECTOR`, in this order.
#[track_caller]
fn check_watches(scope: &Scope, want: &[&str]) {
    let watches = scope.watches();
    let shown = watches.iter().map(|it| {
        let namespace = it.namespace.as_ref().map_or("*", Namespace::as_str);
        format!("{namespace}/{}", it.field_selector())
    });
    assert_eq!(shown.collect::<Vec<_>>(), want);
    assert_eq!(scope.n_watches(), want.len());
}

#[test]
fn there_is_a_watch_for_each_kind_in_each_namespace() {
    let namespaces = || Reach::Namespaces(set(&["team-b", "team-a"]));
    check_watches(
        &scope(namespaces(), &["Pod"], &[]),
        &["team-a/regarding.kind=Pod", "team-b/regarding.kind=Pod"],
    );
    check_watches(
        &scope(namespaces(), &["Pod", "Job"], &[]),
        &[
            "team-a/regarding.kind=Job",
            "team-b/regarding.kind=Job",
            "team-a/regarding.kind=Pod",
            "team-b/regarding.kind=Pod",
        ],
    );
    check_watches(
        &scope(cluster(&["team-*"], &[]), &["Pod", "Job"], &[]),
        &["*/regarding.kind=Job", "*/regarding.kind=Pod"],
    );
}

#[test]
fn pods_are_watched_where_the_scope_is_and_whatever_its_kinds() {
    let selector: LabelSelector = "app=trainer".parse().unwrap();
    let shown = |reach| -> Vec<_> {
        let scope = scope(reach, &["Job", "Node"], &[]);
        let watches = scope.pod_watches(&selector).into_iter();
        watches.map(|it| format!("{it}: {}", it.selector)).collect()
    };
    assert_eq!(
        shown(Reach::Namespaces(set(&["team-b", "team-a"]))),
        ["pods in team-a: app=trainer", "pods in team-b: app=trainer"]
    );
    assert_eq!(
        shown(cluster(&["team-*"], &[])),
        ["pods everywhere: app=trainer"]
    );
}

#[test]
fn a_cluster_scoped_kind_is_watched_once_and_in_default() {
    let namespaces = || Reach::Namespaces(set(&["default", "team-a"]));
    check_watches(
        &scope(namespaces(), &["Pod", "Node"], &[]),
        &[
            "default/regarding.kind=Node",
            "default/regarding.kind=Pod",
            "team-a/regarding.kind=Pod",
        ],
    );
    // Also if the globs exclude `default`: those objects are in no namespace.
    check_watches(
        &scope(
            cluster(&[], &["default"]),
            &["ClusterQueue", "Node"],
            &["ClusterQueue"],
        ),
        &[
            "default/regarding.kind=ClusterQueue",
            "default/regarding.kind=Node",
        ],
    );
}

#[test]
fn with_a_list_of_namespaces_nothing_is_asked_of_the_whole_cluster() {
    let reach = Reach::Namespaces(set(&["team-a"]));
    let scope = scope(reach, &["Node", "Pod", "Queue"], &["Queue"]);
    assert!(scope.watches().iter().all(|it| it.namespace.is_some()));
}

#[test]
fn a_node_is_cluster_scoped_whatever_is_said() {
    let named = |it: &[&str]| {
        scope(cluster(&[], &[]), &["Pod"], it)
            .cluster_scoped()
            .clone()
    };
    assert_eq!(named(&[]), set(&["Node"]));
    assert_eq!(named(&["Node"]), set(&["Node"]));
    assert_eq!(named(&["ClusterQueue"]), set(&["ClusterQueue", "Node"]));
}

#[test]
fn a_scope_of_nothing_is_refused() {
    let made = |reach, kinds| Scope::new(reach, set(kinds), BTreeSet::new()).unwrap_err();
    assert_eq!(made(cluster(&[], &[]), &[]), ScopeError::NoKind);
    let nowhere = made(Reach::Namespaces(BTreeSet::new()), &["Pod"]);
    assert_eq!(nowhere, ScopeError::NoNamespace);
    assert_eq!(
        nowhere.to_string(),
        "there is no namespace: name one, or write `cluster: {}` for all of them"
    );
}

#[track_caller]
fn check_admits(reach: Reach, admitted: &[&str], refused: &[&str]) {
    let scope = scope(reach, &["Pod"], &[]);
    for it in admitted {
        assert!(scope.admits_namespace(it), "{it}");
    }
    for it in refused {
        assert!(!scope.admits_namespace(it), "{it}");
    }
}

#[test]
fn a_namespace_is_admitted_if_it_is_included_and_not_excluded() {
    let listed = Reach::Namespaces(set(&["team-a", "team-b"]));
    check_admits(listed, &["team-a", "team-b"], &["team-c", "team", "", "*"]);
    let everything = cluster(&[], &[]);
    check_admits(everything, &["team-a", "default", "kube-system"], &[]);
    check_admits(
        cluster(&["team-*", "default"], &["team-x*", "*-test"]),
        &["team-a", "team-", "default"],
        &["team-x", "team-xy", "team-a-test", "kube-system", "team"],
    );
    let excluded = cluster(&[], &["kube-*"]);
    check_admits(excluded, &["team-a", "kube"], &["kube-system", "kube-"]);
}

fn namespaces(n: usize) -> Reach {
    let names = (0..n).map(|it| format!("team-{it}").parse().unwrap());
    Reach::Namespaces(names.collect())
}

#[test]
fn more_than_64_watches_are_warned_about_with_the_remedy() {
    assert_eq!(scope(namespaces(64), &["Pod"], &[]).warning(), None);
    // The Node has one, however many namespaces there are.
    assert_eq!(scope(namespaces(63), &["Pod", "Node"], &[]).warning(), None);
    assert_eq!(scope(cluster(&["*"], &[]), &["Pod"], &[]).warning(), None);
    insta::assert_snapshot!(scope(namespaces(65), &["Pod"], &[]).warning().unwrap(), @"the scope makes 65 watches, over 64 they weigh on the API server: instead of scope.namespaces write scope.cluster with globs in include, which is one watch for each kind, and needs a ClusterRole");
    assert!(
        scope(namespaces(64), &["Pod", "Node"], &[])
            .warning()
            .is_some()
    );
    let kinds: Vec<_> = (0..65).map(|it| format!("Kind{it}")).collect();
    let kinds: Vec<_> = kinds.iter().map(String::as_str).collect();
    insta::assert_snapshot!(scope(cluster(&[], &[]), &kinds, &[]).warning().unwrap(), @"the scope makes 65 watches, over 64 they weigh on the API server: name fewer in scope.kinds");
}

#[track_caller]
fn check_good<T: FromStr<Err = NameError> + fmt::Display>(texts: &[&str]) {
    for it in texts {
        let made = it.parse::<T>();
        assert_eq!(made.map(|it| it.to_string()), Ok((*it).to_owned()));
    }
}

#[track_caller]
fn check_bad<T: FromStr<Err = NameError>>(text: &str, want: &str) {
    let err = text.parse::<T>().err().unwrap_or_else(|| panic!("{text}"));
    assert_eq!(err.to_string(), want);
}

#[test]
fn a_kind_is_spelled_as_in_manifests() {
    check_good::<Kind>(&["Pod", "P", "RayJob", "PyTorchJob", "A1", &"K".repeat(63)]);
    check_bad::<Kind>("pod", "`pod` is no kind: write `Pod`, as manifests do");
    check_bad::<Kind>(
        "rayJob",
        "`rayJob` is no kind: write `RayJob`, as manifests do",
    );
    let otherwise =
        "write it as manifests do, a capital and then letters and digits, for example `Pod`";
    for it in ["", "1Pod", "Pod,Node", "Pod Node", "Pöd", "pod-a", "*"] {
        check_bad::<Kind>(it, &format!("`{it}` is no kind: {otherwise}"));
    }
    for it in [" Pod", "Pod\n", "Pod=", &"K".repeat(64)] {
        assert!(it.parse::<Kind>().is_err(), "{it}");
    }
}

#[test]
fn a_namespace_is_a_dns_label() {
    check_good::<Namespace>(&["team-a", "a", "0", "123", "a--b", &"n".repeat(63)]);
    let rule = "write 1 to 63 lower-case letters, digits and `-`, with no `-` at either end";
    for it in ["", "-", "-a", "a-", "Team", "team_a", "team.a", "t\u{e4}m"] {
        check_bad::<Namespace>(it, &format!("`{it}` is no namespace: {rule}"));
    }
    assert!("n".repeat(64).parse::<Namespace>().is_err());
    check_bad::<Namespace>(
        "team-*",
        "`team-*` is a glob, no namespace: write it into `cluster: {include: [...]}` instead",
    );
}

#[test]
fn a_glob_that_can_match_nothing_is_refused() {
    let long = format!("*{}*", "?".repeat(63));
    check_good::<Glob>(&["*", "team-*", "?", "-", "**", &long]);
    let rule = "write 1 to 63 lower-case letters, digits and `-`, with `*` for any characters and `?` for one";
    for it in ["", "Team-*", "team_?", "[ab]", "team.a", "{a,b}"] {
        check_bad::<Glob>(it, &format!("`{it}` can match no namespace: {rule}"));
    }
    for it in ["?".repeat(64), "*".repeat(127)] {
        assert!(it.parse::<Glob>().is_err(), "{it}");
    }
}

#[test]
fn an_error_shows_hostile_text_short_and_on_one_line() {
    let text = format!("a\u{1b}[31m\n{}", "x".repeat(1_000_000));
    for shown in [
        text.parse::<Kind>().unwrap_err().to_string(),
        text.parse::<Namespace>().unwrap_err().to_string(),
        text.parse::<Glob>().unwrap_err().to_string(),
    ] {
        assert!(shown.len() < 300, "{shown}");
        assert!(shown.contains(r"a\u{1b}[31m\nxxx"), "{shown}");
    }
}

/// What a glob means, without any thought of time.
fn matches_plainly(glob: &[u8], name: &[u8]) -> bool {
    match (glob.split_first(), name.split_first()) {
        (None, _) => name.is_empty(),
        (Some((b'*', rest)), None) => matches_plainly(rest, name),
        (Some((b'*', rest)), Some((_, name_rest))) => {
            matches_plainly(rest, name) || matches_plainly(glob, name_rest)
        }
        (Some(_), None) => false,
        (Some((it, rest)), Some((byte, name_rest))) => {
            (*it == b'?' || it == byte) && matches_plainly(rest, name_rest)
        }
    }
}

#[track_caller]
fn check_glob(glob: &str, matched: &[&str], not_matched: &[&str]) {
    let glob: Glob = glob.parse().unwrap();
    for it in matched {
        assert!(glob.matches(it), "{glob} {it}");
    }
    for it in not_matched {
        assert!(!glob.matches(it), "{glob} {it}");
    }
}

#[test]
fn a_glob_matches_the_whole_name() {
    check_glob("team", &["team"], &["", "tea", "teams", "my-team"]);
    check_glob("team-*", &["team-", "team-a"], &["team", "my-team-a"]);
    check_glob("*-a", &["-a", "team-a"], &["a", "team-ab"]);
    check_glob("t?", &["ta", "t-"], &["t", "tab"]);
    check_glob("*a*b*", &["ab", "xaxbx", "aab"], &["ba", "a", ""]);
    check_glob("*", &["", "a", &"n".repeat(63)], &[&"n".repeat(64), "Team"]);
    let longest = "?".repeat(63);
    check_glob(&longest, &[&"n".repeat(63)], &[&"n".repeat(62)]);
}

#[test]
fn a_glob_that_is_made_to_be_slow_is_not() {
    // 2^31 ways for whoever tries them one by one.
    let glob: Glob = "*a".repeat(31).parse().unwrap();
    let name = "a".repeat(62);
    assert!(glob.matches(&name));
    assert!(!glob.matches(&format!("{name}b")));
    // What is no namespace is not even looked at.
    assert!(!glob.matches(&"a".repeat(100_000_000)));
}

proptest! {
    #[test]
    fn a_glob_means_what_it_plainly_means(glob in "[ab*?]{1,8}", name in "[ab]{0,10}") {
        let made: Glob = glob.parse().unwrap();
        prop_assert_eq!(made.matches(&name), matches_plainly(glob.as_bytes(), name.as_bytes()));
    }

    #[test]
    fn a_name_is_printed_as_it_is_written_or_refused(
        text in prop_oneof![any::<String>(), "[-A-Za-z0-9*?]{0,70}"],
    ) {
        let printed = [
            text.parse::<Kind>().map(|it| it.to_string()),
            text.parse::<Namespace>().map(|it| it.to_string()),
            text.parse::<Glob>().map(|it| it.to_string()),
        ];
        for it in printed.into_iter().flatten() {
            prop_assert_eq!(&it, &text);
        }
    }
}
