//! What `deploy` permits: applied to a real API server, and tried with the token that portent would have.

#![allow(clippy::unwrap_used, reason = "a test says what went wrong by failing")]

mod support;

use kube::Client;
use serde_json::{Value, json};
use support::testbed::{self, Overlay, Testbed, get, permit_pods, post, until};

/// As YAML, a document after another. They come from kubectl, so JSON can be had for the asking.
fn objects(testbed: &Testbed, rendered: &str) -> Vec<Value> {
    let args = [
        "create",
        "--dry-run=client",
        "--output=json",
        "--filename=-",
    ];
    let output = testbed.kubectl(args, rendered);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let objects = serde_json::Deserializer::from_slice(&output.stdout).into_iter();
    objects.map(Result::unwrap).collect()
}

#[track_caller]
fn of_kind<'a>(objects: &'a [Value], kind: &str) -> Vec<&'a Value> {
    objects.iter().filter(|it| it["kind"] == kind).collect()
}

#[tokio::test]
async fn the_example_may_read_events_where_it_has_a_role_and_do_nothing_else() {
    let Some(testbed) = Testbed::shared().await else {
        return;
    };
    for it in ["team-a", "team-b", "team-c"] {
        testbed.namespace(it, &[]).await;
    }
    let rendered = testbed.render(&testbed::manifests().join("example"));
    testbed.apply(&rendered);

    let account = testbed.account("portent", "portent").await;
    let client = testbed::client(&account.kubeconfig).await;
    let events = |namespace| format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events");
    for it in ["team-a", "team-b"] {
        // The server learns of a RoleBinding a moment after it was written.
        until("permission to list", || async {
            get(&client, &events(it)).await.ok()
        })
        .await;
        let watch = format!("{}?watch=true&timeoutSeconds=1", events(it));
        assert_eq!(status(&client, "GET", &watch).await, 200, "{watch}");
    }
    for (method, path) in [
        ("GET", events("team-c")),
        (
            "GET",
            format!("{}?watch=true&timeoutSeconds=1", events("team-c")),
        ),
        ("GET", events("portent")),
        ("GET", "/apis/events.k8s.io/v1/events".to_owned()),
        ("GET", format!("{}/some", events("team-a"))),
        ("DELETE", format!("{}/some", events("team-a"))),
        ("DELETE", events("team-a")),
        ("GET", "/api/v1/namespaces/team-a/events".to_owned()),
        ("GET", "/api/v1/namespaces/team-a/pods".to_owned()),
        ("GET", "/api/v1/namespaces/team-a/secrets".to_owned()),
        ("GET", "/api/v1/namespaces/portent/configmaps".to_owned()),
        ("GET", "/api/v1/nodes".to_owned()),
    ] {
        assert_eq!(status(&client, method, &path).await, 403, "{method} {path}");
    }
}

#[tokio::test]
async fn where_the_component_is_named_it_may_list_and_watch_pods_too_and_nowhere_else() {
    let Some(testbed) = Testbed::shared().await else {
        return;
    };
    let watched = ["with-pods", "without-pods"];
    for it in watched {
        testbed.namespace(it, &[]).await;
    }
    let overlay = Overlay {
        namespace: "pods-portent",
        watched: &watched,
        config: "",
        plugins: &[],
    };
    let folder = overlay.write();
    permit_pods(folder.path(), "with-pods");
    testbed.apply(&testbed.render(&folder.path().join("example")));

    let account = testbed.account("pods-portent", "portent").await;
    let client = testbed::client(&account.kubeconfig).await;
    let pods = |namespace| format!("/api/v1/namespaces/{namespace}/pods");
    until("permission to list", || async {
        get(&client, &pods("with-pods")).await.ok()
    })
    .await;
    let watch = format!("{}?watch=true&timeoutSeconds=1", pods("with-pods"));
    assert_eq!(status(&client, "GET", &watch).await, 200, "{watch}");
    let events = "/apis/events.k8s.io/v1/namespaces/with-pods/events".to_owned();
    assert_eq!(status(&client, "GET", &events).await, 200);
    for (method, path) in [
        ("GET", pods("without-pods")),
        ("GET", "/api/v1/pods".to_owned()),
        ("GET", format!("{}/some", pods("with-pods"))),
        ("GET", format!("{}/some/log", pods("with-pods"))),
        ("DELETE", format!("{}/some", pods("with-pods"))),
    ] {
        assert_eq!(status(&client, method, &path).await, 403, "{method} {path}");
    }
}

#[tokio::test]
async fn its_pod_is_admitted_where_pods_are_restricted_and_would_not_be_with_any_less() {
    let Some(testbed) = Testbed::shared().await else {
        return;
    };
    let overlay = Overlay {
        namespace: "restricted",
        watched: &[],
        config: "",
        plugins: &[],
    };
    let rendered = testbed.render(&overlay.write().path().join("example"));
    testbed.apply(&rendered);
    let admin = testbed.admin().await;
    let objects = objects(&testbed, &rendered);
    let [namespace] = of_kind(&objects, "Namespace")[..] else {
        panic!("it brings its namespace");
    };
    let enforced = &namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"];
    assert_eq!(enforced, "restricted");

    let template = &of_kind(&objects, "Deployment")[0]["spec"]["template"];
    let pods = "/api/v1/namespaces/restricted/pods";
    let mut pod = template.clone();
    pod["metadata"]["name"] = json!("as-it-is");
    let admitted = post(&admin, pods, &pod).await;
    let volumes = admitted["spec"]["volumes"].as_array().unwrap();
    let has_token = volumes.iter().any(|it| it["projected"].is_object());
    assert!(has_token, "{admitted}");

    for required in [
        "/spec/securityContext/runAsNonRoot",
        "/spec/securityContext/seccompProfile",
        "/spec/containers/0/securityContext/allowPrivilegeEscalation",
        "/spec/containers/0/securityContext/capabilities",
    ] {
        let mut pod = template.clone();
        pod["metadata"]["name"] = json!("less");
        *pod.pointer_mut(required).unwrap() = Value::Null;
        let request = http::Request::post(pods).header("content-type", "application/json");
        let request = request.body(pod.to_string().into_bytes()).unwrap();
        match admin.request::<Value>(request).await {
            Err(kube::Error::Api(refused)) => {
                assert!(refused.message.contains("PodSecurity"), "{refused}");
            }
            other => panic!("without {required}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn an_overlay_names_its_own_namespaces_settings_and_plugins_throughout() {
    let Some(testbed) = Testbed::shared().await else {
        return;
    };
    let overlay = Overlay {
        namespace: "elsewhere",
        watched: &["one", "two"],
        config: "scope: {}\n",
        plugins: &[("some.wasm", b"\0asm\xff".to_vec())],
    };
    let rendered = testbed.render(&overlay.write().path().join("example"));
    let objects = objects(&testbed, &rendered);
    let namespaces = |kind| -> Vec<_> {
        let objects = of_kind(&objects, kind).into_iter();
        objects
            .map(|it| it["metadata"]["namespace"].clone())
            .collect()
    };
    assert_eq!(namespaces("Role"), ["one", "two"]);
    assert_eq!(namespaces("RoleBinding"), ["one", "two"]);
    for kind in ["ServiceAccount", "Deployment", "ConfigMap"] {
        assert!(
            namespaces(kind).iter().all(|it| it == "elsewhere"),
            "{kind}"
        );
    }
    for it in of_kind(&objects, "RoleBinding") {
        let subject =
            json!({ "kind": "ServiceAccount", "name": "portent", "namespace": "elsewhere" });
        assert_eq!(it["subjects"], json!([subject]));
    }

    let volumes = of_kind(&objects, "Deployment")[0].pointer("/spec/template/spec/volumes");
    let volumes: Vec<_> = volumes.unwrap().as_array().unwrap().iter().collect();
    let content = |idx: usize| {
        let name = &volumes[idx]["configMap"]["name"];
        let mut maps = of_kind(&objects, "ConfigMap").into_iter();
        maps.find(|it| it["metadata"]["name"] == *name).unwrap()
    };
    assert_eq!(content(0)["data"], json!({ "portent.yaml": "scope: {}\n" }));
    assert_eq!(content(1)["binaryData"], json!({ "some.wasm": "AGFzbf8=" }));
}

#[tokio::test]
async fn the_example_watches_the_namespaces_that_it_has_a_role_in() {
    let Some(testbed) = Testbed::shared().await else {
        return;
    };
    let example = testbed::manifests().join("example");
    let objects = objects(&testbed, &testbed.render(&example));
    let with_role: Vec<_> = of_kind(&objects, "RoleBinding")
        .into_iter()
        .map(|it| it["metadata"]["namespace"].clone())
        .collect();
    let settings = std::fs::read_to_string(example.join("portent/portent.yaml")).unwrap();
    let settings: Value = serde_saphyr::from_str(&settings).unwrap();
    assert_eq!(settings["scope"]["namespaces"], json!(with_role));
}

/// The HTTP status of an answer.
async fn status(client: &Client, method: &str, path: &str) -> u16 {
    let request = http::Request::builder().method(method).uri(path);
    let request = request.body(Vec::new()).unwrap();
    match client.request_text(request).await {
        Ok(_) => 200,
        Err(kube::Error::Api(status)) => status.code,
        Err(err) => panic!("{method} {path}: {err}"),
    }
}
