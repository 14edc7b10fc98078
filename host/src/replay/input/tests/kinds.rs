//! What is no Event: a problem where Events were promised, and none where a folder
//! was.

use super::*;

fn read_found(input: &str) -> Read {
    let mut all = Read::default();
    read(input.as_bytes(), &mut all, Origin::Found).unwrap();
    all
}

/// Wants so many other objects beside an Event `a`, and no problem where they were
/// found, but as many where they were named.
#[track_caller]
fn check_foreign(input: &str, n: usize) {
    let found = read_found(input);
    assert_eq!(found.items, ["+a"], "{input}");
    assert_eq!((found.n_foreign, &*found.problems), (n, &[][..]), "{input}");
    assert_eq!(found.refused, [], "{input}");
    let named = read_all(input);
    assert_eq!(
        (named.n_foreign, &*named.items),
        (0, &["+a".to_owned()][..]),
        "{input}"
    );
    assert_eq!(named.problems.len(), n, "{input}: {:?}", named.problems);
}

#[test]
fn another_object_is_no_problem_where_it_was_found() {
    let a = event("a");
    let pod = json!({ "kind": "Pod", "metadata": { "name": "pod" } });
    check_foreign(&format!("{pod}\n{a}\n{pod}\n"), 2);
    check_foreign(&format!("{}\n{}", pretty(&pod), pretty(&a)), 1);
    check_foreign(&list(&[pod.clone(), a.clone(), pod.clone()]).to_string(), 2);
    check_foreign(&pretty(&list(&[pod.clone(), a.clone(), json!(7)])), 2);
    check_foreign(
        &format!("{}\n{}", frame("ADDED", &pod), frame("ADDED", &a)),
        2 - 1,
    );
    check_foreign(
        &format!("[1, \"x\", null]\n{{\"a\": 1}}\n{a}\n17\n\"text\"\n"),
        6,
    );
    check_foreign(&format!("kind: Pod\nmetadata:\n  name: x\n---\n{a}"), 1);
    check_foreign(&format!("items:\n- kind: Pod\n- {a}\n- 7\nkind: List\n"), 2);
    check_foreign(
        &format!("just text\n---\nreplicas: 2\n---\n{a}").replace("just text", "text:"),
        2,
    );
    let audit = json!({ "kind": "Event", "apiVersion": "audit.k8s.io/v1", "verb": "get" });
    check_foreign(&format!("{audit}\n{a}\n"), 1);
    let object = json!({ "type": "Opaque", "object": {} });
    check_foreign(&format!("{object}\n{a}\n"), 1);
}

#[test]
fn an_item_that_says_nothing_of_an_event_is_none_where_it_was_found() {
    // As the API lists Pods: no item says what it is.
    let pods =
        json!({ "kind": "PodList", "items": [{ "metadata": { "name": "pod" } }, event("a")] });
    let found = read_found(&pods.to_string());
    assert_eq!((found.items, found.n_foreign), (vec!["+a".to_owned()], 1));
    assert_eq!(read_all(pods.to_string()).refused.len(), 1);
}

#[test]
fn what_is_broken_is_a_problem_wherever_it_was_found() {
    for broken in [
        "{",
        "[",
        "{\"a\": }",
        "garbage",
        "a: b: c\nregarding: x\n",
        "\"text",
    ] {
        let all = read_found(broken);
        assert_eq!((all.problems.len(), all.n_foreign), (1, 0), "{broken}");
    }
    let gone = frame("ERROR", &json!({ "code": 410 }));
    assert_eq!(read_found(&gone.to_string()).problems.len(), 1);
}

#[test]
fn every_group_that_has_events_is_read() {
    for group in ["v1", "events.k8s.io/v1", "events.k8s.io/v1beta1", ""] {
        let mut event = event("a");
        event["apiVersion"] = group.into();
        check(event.to_string(), &["+a"], &[]);
    }
    let mut audit = event("a");
    audit["apiVersion"] = "audit.k8s.io/v1".into();
    check(
        audit.to_string(),
        &[],
        &["line 1, column 1: an Event of audit.k8s.io, not of Kubernetes' API"],
    );
}

#[test]
fn what_is_no_text_is_named_for_what_it_is() {
    let mut tar = vec![b'x'; 257];
    tar.extend(b"ustar\0more\nlines\n");
    check(
        tar,
        &[],
        &["line 1, column 1: a tar archive: unpack it first"],
    );
    let utf16: Vec<_> = "\u{feff}{\n}\n"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    check(
        utf16,
        &[],
        &["line 1, column 1: UTF-16: save it as UTF-8 first"],
    );
    check(
        "PK\u{3}\u{4}\n\n\n",
        &[],
        &["line 1, column 1: a zip archive: unpack it first"],
    );
}

#[test]
fn comments_say_nothing() {
    check(
        format!("# of yesterday\n\n  # {{\n{}\n#", event("a")),
        &["+a"],
        &[],
    );
    check("# nothing\n", &[], &[]);
    check("---\n# nothing\n---\n...\n", &[], &[]);
}
