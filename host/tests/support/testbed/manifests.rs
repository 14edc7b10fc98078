//! The manifests of `deploy/kustomize`, rendered and applied as an operator would.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::Testbed;

/// portent as an operator deploys it: the example, with other names in it.
pub(crate) struct Overlay<'a> {
    /// Where portent runs. It is made with them.
    pub(crate) namespace: &'a str,
    /// What it may watch. Each has to exist.
    pub(crate) watched: &'a [&'a str],
    /// `portent.yaml`.
    pub(crate) config: &'a str,
    /// Files of its folder of plugins, which hold 1 MiB at most.
    pub(crate) plugins: &'a [(&'a str, Vec<u8>)],
}

impl Overlay<'_> {
    /// Writes it into a copy of the manifests: kustomize takes relative paths only. What has to be rendered
    /// is its folder `example`.
    pub(crate) fn write(&self) -> TempDir {
        let Overlay {
            namespace,
            watched,
            config,
            plugins,
        } = self;
        let folder = tempfile::tempdir().expect("there is room for temporary files");
        copy(&manifests(), folder.path());
        let example = folder.path().join("example");

        let portent = example.join("portent");
        edit(
            &portent,
            "namespace: portent",
            &format!("namespace: {namespace}"),
        );
        fs::write(portent.join("portent.yaml"), config).expect("there is room for temporary files");
        if !plugins.is_empty() {
            let mut generator =
                "  - name: portent-plugins\n    behavior: merge\n    files:\n".to_owned();
            for (file, content) in *plugins {
                fs::write(portent.join(file), content).expect("there is room for temporary files");
                generator.extend(["      - ", file, "\n"]);
            }
            edit(
                &portent,
                "configMapGenerator:\n",
                &format!("configMapGenerator:\n{generator}"),
            );
        }

        let mut resources = String::new();
        for &it in *watched {
            let copied = example.join("watched").join(it);
            copy(&example.join("team-a"), &copied);
            edit(&copied, "namespace: team-a", &format!("namespace: {it}"));
            edit(&copied, "../../watched", "../../../watched");
            resources.extend(["  - watched/", it, "\n"]);
        }
        edit(&example, "  - team-a\n  - team-b\n", &resources);
        folder
    }
}

/// Lets portent read Pods in one of the namespaces of an overlay that was written, as `deploy/README.md` says.
pub(crate) fn permit_pods(overlay: &Path, namespace: &str) {
    let folder = overlay.join("example/watched").join(namespace);
    edit(
        &folder,
        "  - ../../../watched\n",
        "  - ../../../watched\ncomponents:\n  - ../../../pods\n",
    );
}

impl Testbed {
    /// Renders a folder.
    #[track_caller]
    pub(crate) fn render(&self, folder: &Path) -> String {
        let output = self.kubectl(["kustomize".as_ref(), folder.as_os_str()], "");
        let [stdout, stderr] =
            [output.stdout, output.stderr].map(|it| String::from_utf8_lossy(&it).into_owned());
        assert!(output.status.success() && stderr.is_empty(), "{stderr}");
        stdout
    }

    /// Applies what was rendered. A warning fails it: an API server warns of what it would refuse a pod for.
    #[track_caller]
    pub(crate) fn apply(&self, rendered: &str) {
        let output = self.kubectl(["apply", "--server-side", "--filename=-"], rendered);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && stderr.is_empty(), "{stderr}");
    }
}

/// Where the manifests of this checkout are.
pub(crate) fn manifests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/kustomize")
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("there is room for temporary files");
    let entries = fs::read_dir(from).unwrap_or_else(|err| panic!("{}: {err}", from.display()));
    for entry in entries {
        let entry = entry.expect("a directory can be read to its end").path();
        let name = entry.file_name().expect("an entry has a name");
        if entry.is_dir() {
            copy(&entry, &to.join(name));
        } else {
            fs::copy(&entry, to.join(name)).expect("there is room for temporary files");
        }
    }
}

/// Changes what is once in the `kustomization.yaml` of a folder.
fn edit(folder: &Path, old: &str, new: &str) {
    let file = folder.join("kustomization.yaml");
    let text = fs::read_to_string(&file).unwrap_or_else(|err| panic!("{}: {err}", file.display()));
    assert_eq!(
        text.matches(old).count(),
        1,
        "`{old}` in {}",
        file.display()
    );
    fs::write(&file, text.replace(old, new)).expect("there is room for temporary files");
}
