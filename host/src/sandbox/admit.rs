//! What a component must pass before it may classify anything.
//!
//! The steps are in the order of their price: its bytes are looked at, then it
//! is compiled, then asked to describe itself, then given its settings, then
//! tried on made-up subjects. The trial is no luxury: types of exports are
//! checked only when an instance is made.

use std::{sync::Arc, time::Instant};

use wasmparser::{Encoding, Parser, Payload};

use super::{
    Description, Limits, Sandbox, bindings,
    call::{Instance, Spent, State, one_line},
    compile::Compiled,
    description::Interest,
};
use crate::{
    interner::Interner,
    reason::{Reason, Step},
    record::{Caps, ObjectKey, Record, decode::WireEvent},
    store::{Confirmation, Store},
    subject::{Subject, SubjectKey},
};

/// The package of the contract that this host serves.
pub const WIT_PACKAGE: &str = "portent:classifier@0.1.0";

/// Why a component was not admitted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}: {message}")]
pub struct LoadFailure {
    /// The code.
    pub reason: Reason,
    /// What is wrong, and what to do about it.
    pub message: String,
}

impl LoadFailure {
    /// A failure with this code and message.
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
        }
    }
}

/// A component that was admitted, with its settings, ready to be called.
pub struct Guest {
    pub(super) pre: bindings::PluginPre<State>,
    pub(super) name: Arc<str>,
    pub(super) description: Description,
    pub(super) settings: Arc<str>,
    pub(super) limits: Arc<Limits>,
    wit: String,
    imports: Vec<String>,
    code: Arc<Compiled>,
}

impl std::fmt::Debug for Guest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Guest")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Guest {
    /// What it says that it is.
    #[must_use]
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// The package of the contract that it was built for.
    #[must_use]
    pub fn wit(&self) -> &str {
        &self.wit
    }

    /// Bytes that its compiled code takes.
    #[must_use]
    pub fn n_compiled_bytes(&self) -> usize {
        self.code.n_bytes()
    }

    /// What it imports.
    #[must_use]
    pub fn imports(&self) -> &[String] {
        &self.imports
    }
}

/// The settings that a component is admitted with.
#[derive(Clone, Copy)]
pub struct Given<'a> {
    /// As JSON.
    pub settings: &'a str,
    /// What they are called where they are refused.
    pub file: &'a str,
    /// Whether they go with the schema that the component describes them with.
    pub go_with: &'a dyn Fn(&str) -> Result<(), LoadFailure>,
}

impl Sandbox {
    /// Admits a component with these settings (JSON), whatever schema it has, or says why not.
    ///
    /// # Errors
    ///
    /// The first step that it does not pass.
    pub fn admit(&self, bytes: &[u8], settings: &str) -> Result<Guest, LoadFailure> {
        let given = Given {
            settings,
            file: "settings",
            go_with: &|_| Ok(()),
        };
        self.admit_in_steps(bytes, given, &mut |_| {})
    }

    /// As [`admit`](Self::admit); says each step that it passes.
    ///
    /// # Errors
    ///
    /// The first step that it does not pass.
    pub fn admit_in_steps(
        &self,
        bytes: &[u8],
        given: Given<'_>,
        passed: &mut dyn FnMut(Step),
    ) -> Result<Guest, LoadFailure> {
        let limits = self.limits();
        let names = inspect(bytes, limits)?;
        let wit = check_exports(&names.exports)?;
        check_imports(&names.imports)?;
        passed(Step::Inspected);

        let code = self.compiled(bytes)?;
        let pre = self
            .linker
            .instantiate_pre(&code.component)
            .map_err(|err| {
                let message = format!(
                    "{}; a classifier may import nothing but `log`",
                    one_line(&format!("{err:#}"))
                );
                LoadFailure::new(Reason::ForbiddenImport, message)
            })?;
        let pre = bindings::PluginPre::new(pre).map_err(|err| {
            LoadFailure::new(Reason::AbiUnsupported, one_line(&format!("{err:#}")))
        })?;
        passed(Step::Compiled);

        let unnamed: Arc<str> = "(not yet described)".into();
        let instance = |name| Instance::new(&pre, name, &self.limits, limits.fuel_per_load);
        let first = instance(&unnamed).map_err(|it| match it.reason {
            // No trap, and no limit: its types are not those of the contract.
            Reason::BadOutput if self.can_start(&pre) => LoadFailure::new(
                Reason::AbiUnsupported,
                format!(
                    "its functions have other types than {WIT_PACKAGE} ({}); build it with the \
                     portent-sdk of this host's release",
                    it.message
                ),
            ),
            _ => LoadFailure::new(Reason::InstantiateFailed, it.to_string()),
        })?;
        let described = first
            .describe()
            .map_err(|it| LoadFailure::new(Reason::DescribeFailed, it.to_string()))?;
        let description = Description::try_from(described)
            .map_err(|it| LoadFailure::new(Reason::DescriptionInvalid, it))?;
        passed(Step::Described);

        let name: Arc<str> = description.name.as_str().into();
        let Given { settings, file, .. } = given;
        if let Some(schema) = &description.settings_schema {
            (given.go_with)(schema)?;
        }
        // What no schema can say.
        let refused =
            |what: &str| LoadFailure::new(Reason::SettingsInvalid, format!("{file}: {what}"));
        let checked = instance(&name).and_then(|it| it.check_settings(settings));
        checked
            .map_err(|it| refused(&it.to_string()))?
            .map_err(|it| refused(&one_line(&it)))?;
        passed(Step::Configured);
        let guest = Guest {
            code,
            pre,
            name,
            description,
            settings: settings.into(),
            limits: Arc::clone(&self.limits),
            wit,
            imports: names.imports,
        };
        try_out(&guest)?;
        passed(Step::TrialRun);
        Ok(guest)
    }
}

impl Sandbox {
    /// Whether an instance can be made, apart from the types of its exports,
    /// which are looked at afterwards.
    fn can_start(&self, pre: &bindings::PluginPre<State>) -> bool {
        let mut store = Instance::store(pre, &"".into(), &self.limits, self.limits.fuel_per_load);
        pre.instance_pre().instantiate(&mut store).is_ok()
    }
}

/// What a component imports and exports, by name.
struct Names {
    imports: Vec<String>,
    exports: Vec<String>,
}

/// Looks at the bytes without running or compiling any of them.
fn inspect(bytes: &[u8], limits: &Limits) -> Result<Names, LoadFailure> {
    let not_a_component = |message: &str| LoadFailure::new(Reason::NotAComponent, message);
    if limits.component_bytes < bytes.len() {
        let message = format!(
            "{} bytes, the limit component-bytes is {}",
            bytes.len(),
            limits.component_bytes
        );
        return Err(LoadFailure::new(Reason::TooLarge, message));
    }
    if bytes.is_empty() {
        return Err(not_a_component("the file is empty"));
    }
    if bytes.starts_with(b"\x7fELF") {
        return Err(not_a_component(
            "a precompiled artefact; the host compiles plugins itself and trusts no other's code: \
             hand it the .wasm that was built",
        ));
    }
    if !bytes.starts_with(b"\0asm") {
        return Err(not_a_component("the file is not WebAssembly"));
    }
    let mut names = Names {
        imports: Vec::new(),
        exports: Vec::new(),
    };
    let mut depth = 0_usize;
    for payload in Parser::new(0).parse_all(bytes) {
        let payload = payload.map_err(|err| {
            not_a_component(&format!(
                "cut off or damaged: {}",
                one_line(&err.to_string())
            ))
        })?;
        match payload {
            Payload::Version {
                encoding: Encoding::Module,
                ..
            } if depth == 0 => {
                return Err(not_a_component(
                    "a core module, not a component; wrap it first: portent plugin componentize FILE -o OUT",
                ));
            }
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::ComponentImportSection(section) if depth == 0 => {
                let read = section
                    .into_iter()
                    .map(|it| it.map(|it| it.name.name.to_owned()));
                names.imports.extend(read.flatten());
            }
            Payload::ComponentExportSection(section) if depth == 0 => {
                let read = section
                    .into_iter()
                    .map(|it| it.map(|it| it.name.name.to_owned()));
                names.exports.extend(read.flatten());
            }
            _ => {}
        }
    }
    Ok(names)
}

/// The package without its version, and the track that is served: within 0.1
/// versions are looked up by it, whatever their last number.
const PACKAGE: &str = "portent:classifier/";
const TRACK: &str = "0.1.";

/// Says which version of the contract the component was built for.
fn check_exports(exports: &[String]) -> Result<String, LoadFailure> {
    let unsupported = |message| LoadFailure::new(Reason::AbiUnsupported, message);
    let mut wit = None;
    for wanted in ["descriptor", "classifier"] {
        let version = exports.iter().find_map(|it| {
            it.strip_prefix(PACKAGE)?
                .strip_prefix(wanted)?
                .strip_prefix('@')
        });
        match version {
            Some(version) if version.starts_with(TRACK) => {
                wit = Some(format!("portent:classifier@{version}"));
            }
            Some(version) => {
                return Err(unsupported(format!(
                    "built for portent:classifier@{}; this host serves {WIT_PACKAGE}: build it with \
                     the portent-sdk of this host's release",
                    one_line(version)
                )));
            }
            None => {
                let found = if exports.is_empty() {
                    "nothing".to_owned()
                } else {
                    exports.join(", ")
                };
                return Err(unsupported(format!(
                    "no classifier: it does not export {PACKAGE}{wanted}@0.1.0; it exports {}",
                    one_line(&found)
                )));
            }
        }
    }
    wit.ok_or_else(|| unsupported("no classifier".to_owned()))
}

fn check_imports(imports: &[String]) -> Result<(), LoadFailure> {
    let allowed = |it: &str| {
        let interface = it.strip_prefix(PACKAGE).and_then(|it| it.split_once('@'));
        matches!(interface, Some(("log" | "types", version)) if version.starts_with(TRACK))
    };
    let forbidden: Vec<_> = imports
        .iter()
        .filter(|it| !allowed(it))
        .map(String::as_str)
        .collect();
    if forbidden.is_empty() {
        return Ok(());
    }
    let remedy = if forbidden.iter().any(|it| it.starts_with("wasi:")) {
        "; a classifier has no clock, files, sockets or random numbers. Build it without WASI: in Rust \
         for wasm32-unknown-unknown (not wasm32-wasip1 or -wasip2), in C with -mexec-model=reactor and \
         no stdio, with componentize-js with all features disabled (--disable all), with componentize-py \
         with --stub-wasi"
    } else {
        ""
    };
    Err(LoadFailure::new(
        Reason::ForbiddenImport,
        format!(
            "imports {}; a classifier may import nothing but `log`{remedy}",
            one_line(&forbidden.join(", "))
        ),
    ))
}

/// Calls the guest on made-up subjects, of interest to it, and holds its answer
/// against the contract.
fn try_out(guest: &Guest) -> Result<(), LoadFailure> {
    let failed = |message: String| {
        LoadFailure::new(
            Reason::SelfTestFailed,
            format!("on a made-up event, {message}"),
        )
    };
    let interest = guest
        .description
        .interests
        .first()
        .cloned()
        .unwrap_or_default();
    let subjects: Vec<_> = ["self-test-0", "self-test-1"]
        .iter()
        .filter_map(|name| made_up(name, &interest))
        .collect();
    let outcomes = guest
        .classify(&subjects, &Interner::default(), &mut Spent::default())
        .map_err(|it| failed(it.to_string()))?;
    let outcomes: Result<Vec<_>, _> = outcomes.into_iter().collect();
    let outcomes = outcomes.map_err(|it| failed(it.to_string()))?;
    let said: Vec<_> = subjects.iter().zip(&outcomes).collect();
    let until = Instant::now() + 2 * guest.deadline(&subjects);
    match guest.impurity(&said, until) {
        None => Ok(()),
        Some(it) => Err(LoadFailure::new(
            Reason::Impure,
            format!(
                "of two made-up subjects, {}: answer each subject by itself, whatever is beside it",
                it.what
            ),
        )),
    }
}

/// A subject with an event that meets the interest.
fn made_up(name: &str, interest: &Interest) -> Option<Subject> {
    let first = |field: &[String], or: &str| {
        serde_json::Value::from(field.first().map_or(or, String::as_str))
    };
    let reason = if interest.reasons.is_empty() {
        &interest.reason_prefixes
    } else {
        &interest.reasons
    };
    let event = serde_json::json!({
        "metadata": {
            "name": format!("{name}.1"), "namespace": "default", "uid": "self-test",
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "regarding": {
            "apiVersion": "v1", "kind": first(&interest.kinds, "Pod"), "namespace": "default",
            "name": name, "uid": "self-test",
        },
        "type": first(&interest.event_types, "Warning"),
        "reason": first(reason, "SelfTest"),
        "reportingController": first(&interest.controllers, "portent"),
        "note": first(&interest.note_contains, "a made-up event, to see that the plugin answers"),
    });
    let text = event.to_string();
    let wire: WireEvent<'_> = serde_json::from_str(&text).ok()?;
    let (object, record): (ObjectKey, Record) =
        Record::pare_down(&wire, Caps::default(), &Interner::default()).ok()?;
    let key = SubjectKey {
        object: object.clone(),
        uid: record.object_uid().into(),
    };
    let store = Store::default();
    store.put(object.clone(), record, Confirmation::default());
    store
        .view(&object, |bucket| Subject::of(key, bucket, |_| true))
        .flatten()
}
