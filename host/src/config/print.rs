//! A configuration as a file, with each key explained.

use super::{
    Config,
    keys::{Key, TakenUp, keys, sections},
};

/// Columns of a comment.
const WIDTH: usize = 96;

const HEADER: &str = "The configuration of `portent run`. A change of a key takes a restart, but for \
                      those that are marked as live.";

impl Config {
    /// A file that says this and nothing else, whatever the defaults are. Keys that
    /// are not set stand in it as comments, with what they are then.
    #[must_use]
    pub fn to_yaml(&self) -> String {
        let mut yaml = String::new();
        comment(&mut yaml, "", HEADER);
        let mut open = "";
        for key in keys() {
            let section = key.path.rsplit_once('.').map_or("", |(section, _)| section);
            if section != open {
                open = section;
                self.header(&mut yaml, section);
            } else if section.is_empty() {
                yaml.push('\n');
            }
            let indent = indent(key.path);
            let mut about = meaning(key);
            if key.taken_up == TakenUp::Live {
                about += " Live.";
            }
            comment(&mut yaml, &indent, &about);
            let name = key.path.rsplit('.').next().unwrap_or_default();
            let line = match (key.shown(self), &key.default) {
                (Some(value), _) => format!("{indent}{name}: {value}\n"),
                (None, default) => {
                    format!(
                        "{indent}# {name}: {}\n",
                        default.as_deref().unwrap_or_default()
                    )
                }
            };
            yaml.push_str(&line);
        }
        yaml
    }

    /// The line that a section begins with; a comment if nothing in it is set.
    fn header(&self, yaml: &mut String, section: &str) {
        let Some((_, about)) = sections().into_iter().find(|(path, _)| *path == section) else {
            yaml.push('\n');
            return;
        };
        let indent = indent(section);
        if indent.is_empty() {
            yaml.push('\n');
        }
        comment(yaml, &indent, about);
        let below = format!("{section}.");
        let is_set = keys()
            .iter()
            .any(|it| it.path.starts_with(&below) && it.shown(self).is_some());
        let mark = if is_set { "" } else { "# " };
        let name = section.rsplit('.').next().unwrap_or_default();
        yaml.extend([&*indent, mark, name, ":\n"]);
    }
}

/// What a key decides, what it may be, and when a change of it is taken up.
pub(super) fn explained(key: &Key) -> String {
    let change = match key.taken_up {
        TakenUp::Live => "A change is taken up live.",
        TakenUp::Restart => "A change needs a restart.",
    };
    format!("{} {change}", meaning(key))
}

fn meaning(key: &Key) -> String {
    let range = key
        .range
        .as_ref()
        .map(|(low, high)| format!(" From {low} to {high}."));
    format!("{}{}", key.meaning, range.unwrap_or_default())
}

fn indent(path: &str) -> String {
    "  ".repeat(path.matches('.').count())
}

/// Writes a text as comment lines, broken between words.
fn comment(yaml: &mut String, indent: &str, text: &str) {
    let mut line = String::new();
    for word in text.split(' ') {
        if !line.is_empty() && WIDTH < indent.len() + 2 + line.len() + 1 + word.len() {
            yaml.extend([indent, "#", &line, "\n"]);
            line.clear();
        }
        line.push(' ');
        line.push_str(word);
    }
    yaml.extend([indent, "#", &line, "\n"]);
}
