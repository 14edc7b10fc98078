//! Who is found where, and that nothing is left of who is gone.

use super::*;
use crate::store::{Store, Version};

fn key(name: &str) -> ObjectKey {
    ObjectKey::new("ml", "Pod", name).unwrap()
}

fn owner(name: &str) -> ObjectRef {
    ObjectRef {
        api_version: "ray.io/v1".into(),
        object: ObjectKey::new("ml", "RayCluster", name).unwrap(),
        uid: "owner".into(),
    }
}

fn pod(uid: &str, node: &str) -> Pod {
    Pod {
        uid: uid.into(),
        node: (!node.is_empty()).then(|| node.into()),
        owner: Some(owner("ray")),
        labels: [("team".into(), "vision".into())].into(),
        ..Pod::default()
    }
}

/// A table of pods, each put as what it is now.
fn pods(all: &[(&str, Pod)]) -> Pods {
    let mut pods = Pods::default();
    for (name, pod) in all {
        pods.put(&key(name), pod.clone(), Version::default());
    }
    pods
}

fn names<'a>(found: impl Iterator<Item = &'a PodKey>) -> Vec<String> {
    found
        .map(|(object, uid)| format!("{}/{uid}", object.name()))
        .collect()
}

fn node(name: &str) -> ObjectKey {
    ObjectKey::new("", "Node", name).unwrap()
}

#[test]
fn pods_are_found_by_node_by_owner_and_by_label() {
    let pods = pods(&[
        ("b", pod("2", "n1")),
        ("a", pod("1", "n1")),
        ("c", pod("3", "n2")),
    ]);
    assert_eq!(names(pods.around(&node("n1"))), ["a/1", "b/2"]);
    assert_eq!(
        names(pods.around(&owner("ray").object)),
        ["a/1", "b/2", "c/3"]
    );
    assert_eq!(
        names(pods.labelled("ml", "team", "vision")),
        ["a/1", "b/2", "c/3"]
    );
    assert_eq!(names(pods.labelled("other", "team", "vision")), [""; 0]);
    assert_eq!(names(pods.labelled("ml", "team", "audio")), [""; 0]);
    assert_eq!(names(pods.around(&node("n3"))), [""; 0]);
}

#[test]
fn an_object_called_node_in_a_namespace_is_no_node() {
    let pods = pods(&[("a", pod("1", "n1"))]);
    let fake = ObjectKey::new("ml", "Node", "n1").unwrap();
    assert_eq!(names(pods.around(&fake)), [""; 0]);
}

#[test]
fn a_pod_that_is_put_on_a_node_is_found_there_from_then_on() {
    let mut pods = pods(&[("a", pod("1", ""))]);
    assert_eq!(names(pods.around(&node("n1"))), [""; 0]);
    let put = pods.put(&key("a"), pod("1", "n1"), Version::default());
    assert_eq!(put, PodPut::Changed(Some(Arc::new(pod("1", "")))));
    assert_eq!(names(pods.around(&node("n1"))), ["a/1"]);
    assert_eq!(pods.len(), 1);
}

#[test]
fn what_is_as_it_was_keeps_its_version() {
    let store = Store::default();
    let mut pods = Pods::default();
    let version = store.next_version();
    assert_eq!(
        pods.put(&key("a"), pod("1", "n1"), version),
        PodPut::Changed(None)
    );
    let later = store.next_version();
    assert_eq!(
        pods.put(&key("a"), pod("1", "n1"), later),
        PodPut::Unchanged
    );
    assert_eq!(pods.get(&key("a"), "1".into()).unwrap().1, version);
    assert!(version < later);
}

#[test]
fn a_recreated_pod_is_another_and_the_newest_of_its_name() {
    let mut pods = pods(&[("a", pod("1", "n1")), ("a", pod("2", "n2"))]);
    // What the old one says yet does not make it the newest again.
    pods.put(&key("a"), pod("1", "n3"), Version::default());
    assert_eq!(pods.newest(&key("a")).unwrap().0.uid, *"2");
    assert_eq!(pods.named(&key("a")).count(), 2);
    assert!(pods.remove(&key("a"), "2".into()).is_some());
    assert_eq!(pods.newest(&key("a")).unwrap().0.uid, *"1");
}

#[test]
fn nothing_is_left_of_a_pod_that_is_forgotten() {
    let mut pods = pods(&[("a", pod("1", "n1")), ("b", pod("2", "n1"))]);
    for (name, uid) in [("a", "1"), ("b", "2")] {
        assert!(pods.remove(&key(name), uid.into()).is_some());
        assert!(pods.remove(&key(name), uid.into()).is_none());
    }
    assert!(pods.is_empty() && pods.n_indexed() == 0);
}

#[test]
fn there_are_at_most_so_many_and_those_that_are_known_stay() {
    let mut pods = Pods::default();
    pods.set_max(2);
    let version = Version::default();
    for name in ["a", "b"] {
        assert_eq!(
            pods.put(&key(name), pod("1", "n1"), version),
            PodPut::Changed(None)
        );
    }
    assert_eq!(pods.put(&key("c"), pod("1", "n1"), version), PodPut::Full);
    assert_eq!(names(pods.around(&node("n1"))), ["a/1", "b/1"]);
    assert!(matches!(
        pods.put(&key("b"), pod("1", "n2"), version),
        PodPut::Changed(Some(_))
    ));
    pods.remove(&key("a"), "1".into());
    assert_eq!(
        pods.put(&key("c"), pod("1", "n1"), version),
        PodPut::Changed(None)
    );
}
