//! The settings of a plugin, as they stand in its file.
//!
//! They become JSON for the plugin, and keep the places of the file for whoever wrote it: what
//! does not go with the plugin's own schema is told with line, column and key, all at once.
//!
//! What bounds it: [`MAX_BYTES`] of a file, the bounds of the YAML tree, and those of `schema`.

use std::{fs, io, path::Path};

use serde_json::{Map, Value};

use super::schema::{self, Wrong};
use crate::{
    reason::Reason,
    sandbox::{Given, LoadFailure, Sandbox},
    text::{Visible, cut},
    yaml::{self, Node, Place, What},
};

/// Bytes of a settings file. A `ConfigMap`, where such files live, holds 1 MiB.
const MAX_BYTES: u64 = 1 << 20;

/// Bytes of all that is said of settings: eight problems of a line each.
const SAID_MAX_BYTES: usize = 4 << 10;

/// Bytes of a path of keys that is shown.
const KEY_MAX_BYTES: usize = 128;

/// What a settings file says.
#[derive(Debug)]
pub(super) struct Settings {
    /// As JSON; `{}` when there is no file, or it is empty.
    json: String,
    tree: Option<Node>,
    /// The name of the file.
    file: String,
}

impl Settings {
    /// Reads the file beside a component.
    pub(super) fn read(component: &Path) -> Result<Self, LoadFailure> {
        let path = component.with_extension("yaml");
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        let file = Visible(&file).to_string();
        let failed = |reason, what: &dyn std::fmt::Display| {
            LoadFailure::new(reason, format!("{file}: {what}"))
        };
        let n_bytes = match fs::metadata(&path) {
            Ok(file) if file.is_file() => file.len(),
            Ok(_) => return Err(failed(Reason::ReadFailed, &"it is no regular file")),
            Err(err) if err.kind() == io::ErrorKind::NotFound => {
                return Ok(Self {
                    json: "{}".to_owned(),
                    tree: None,
                    file,
                });
            }
            Err(err) => return Err(failed(Reason::ReadFailed, &err)),
        };
        if MAX_BYTES < n_bytes {
            let what = format!("{n_bytes} bytes, settings may have {MAX_BYTES}");
            return Err(failed(Reason::TooLarge, &what));
        }
        let bytes = fs::read(&path).map_err(|err| failed(Reason::ReadFailed, &err))?;
        Self::parse(&bytes, file)
    }

    fn parse(yaml: &[u8], file: String) -> Result<Self, LoadFailure> {
        let invalid = |place: Place, what: &str| {
            let what = Visible(cut(what, 512));
            LoadFailure::new(Reason::SettingsInvalid, format!("{file}:{place}: {what}"))
        };
        let tree = yaml::parse(yaml, MAX_BYTES).map_err(|err| invalid(err.place, &err.what))?;
        let json = match &tree.what {
            What::Nothing => "{}".to_owned(),
            What::Mapping(_) => json(&tree)
                .map_err(|(place, what)| invalid(place, &what))?
                .to_string(),
            _ => {
                let what = "settings are a mapping of keys to values, for example `key: value`";
                return Err(invalid(tree.place, what));
            }
        };
        Ok(Self {
            json,
            tree: Some(tree),
            file,
        })
    }

    /// As JSON.
    pub(super) fn json(&self) -> &str {
        &self.json
    }

    /// For whoever admits the component that they are for.
    pub(super) fn given<'a>(&'a self, go_with: &'a GoWith<'a>) -> Given<'a> {
        Given {
            settings: &self.json,
            file: &self.file,
            go_with,
        }
    }

    /// Says whether they go with the schema that their plugin describes them with.
    pub(super) fn go_with(&self, sandbox: &Sandbox, schema: &str) -> Result<(), LoadFailure> {
        let checked = match sandbox.program() {
            Some(program) => schema::check_apart(program, schema, &self.json),
            None => schema::check(schema.as_bytes(), self.json.as_bytes()),
        };
        let (problems, n_more) = match checked {
            Ok(()) => return Ok(()),
            Err(Wrong::Schema(what)) => {
                let what = format!("settings-schema: {}", Visible(&what));
                return Err(LoadFailure::new(Reason::DescriptionInvalid, what));
            }
            Err(Wrong::Settings(problems, n_more)) => (problems, n_more),
        };
        let mut said: Vec<_> = problems
            .iter()
            .map(|it| {
                let (place, key) = self.find(it);
                let key = cut(&key, KEY_MAX_BYTES);
                let colon = if key.is_empty() { "" } else { ": " };
                let what = cut(&it.what, 512);
                (place, format!("{}{colon}{}", Visible(key), Visible(what)))
            })
            .collect();
        said.sort();
        let file = &self.file;
        let said = said.iter().map(|(place, what)| match place {
            Some(place) => format!("{file}:{place}: {what}"),
            None => format!("{file}, which is not there: {what}"),
        });
        let mut said = cut(&said.collect::<Vec<_>>().join("; "), SAID_MAX_BYTES).to_owned();
        if 0 < n_more {
            said = format!("{said}; and {n_more} more");
        }
        Err(LoadFailure::new(Reason::SettingsInvalid, said))
    }

    /// Where a problem is, and which key it is about.
    fn find(&self, problem: &schema::Problem) -> (Option<Place>, String) {
        let mut key = String::new();
        let mut node = self.tree.as_ref();
        let mut place = node.map(|it| it.place);
        for name in problem.at.split('/').skip(1) {
            let name = name.replace("~1", "/").replace("~0", "~");
            let (of_key, is_index, next) = match node.map(|it| &it.what) {
                Some(What::Mapping(entries)) => {
                    let is_it = |it: &&(Node, Node)| it.0.scalar().as_ref() == Some(&name);
                    let found = entries.iter().find(is_it);
                    (found.map(|it| it.0.place), false, found.map(|it| &it.1))
                }
                Some(What::List(items)) => {
                    let found = name.parse().ok().and_then(|it: usize| items.get(it));
                    (found.map(|it| it.place), true, found)
                }
                _ => (None, false, None),
            };
            place = of_key.or(place);
            node = next;
            if is_index {
                key = format!("{key}[{name}]");
            } else {
                let dot = if key.is_empty() { "" } else { "." };
                key = format!("{key}{dot}{name}");
            }
        }
        (place, key)
    }
}

/// What says whether settings go with a schema.
pub(super) type GoWith<'a> = dyn Fn(&str) -> Result<(), LoadFailure> + 'a;

/// A node as JSON, where that has it.
fn json(node: &Node) -> Result<Value, (Place, String)> {
    Ok(match &node.what {
        What::Nothing => Value::Null,
        What::Bool(it) => Value::Bool(*it),
        What::Text(it) => Value::String(it.clone()),
        What::Number(it) => match &node.number {
            Some(it) => Value::Number(it.clone()),
            None => return Err((node.place, format!("`{it}` is no number that JSON has"))),
        },
        What::List(items) => Value::Array(items.iter().map(json).collect::<Result<_, _>>()?),
        What::Mapping(entries) => {
            let mut map = Map::new();
            for (key, value) in entries {
                let Some(name) = key.scalar() else {
                    let what = "this is no key: write a word";
                    return Err((key.place, what.to_owned()));
                };
                if map.contains_key(&name) {
                    let what = format!("`{}` is there twice: write it once", cut(&name, 64));
                    return Err((key.place, what));
                }
                map.insert(name, json(value)?);
            }
            Value::Object(map)
        }
    })
}
