//! `portent plugin`.

use std::{
    fs,
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
};

use anyhow::Context as _;
use clap::Subcommand;

mod status;

use super::LimitArgs;
use crate::{
    componentize::componentize,
    plugins,
    sandbox::{Interest, Limits, Sandbox, WIT_PACKAGE, on_guest_stack},
    text::Visible,
};

#[derive(Debug, Subcommand)]
pub(super) enum Plugin {
    /// Put a plugin through what a load puts it through, and say what it is.
    ///
    /// Settings are read from NAME.yaml beside NAME.wasm, as a load does. Exits
    /// with 0 when the plugin would be loaded, with 1 when it would not.
    #[command(after_help = "Example:\n  portent plugin check target/plugins/gpu-fault.wasm")]
    Check {
        /// The component.
        file: PathBuf,
        /// Print the JSON Schema of its settings, for an editor, and nothing else.
        #[arg(long)]
        schema: bool,
        #[command(flatten)]
        limits: LimitArgs,
    },
    /// Make a plugin out of the core module that a compiler built.
    #[command(after_help = "\
Example:
  cargo build --release --target wasm32-unknown-unknown
  portent plugin componentize target/wasm32-unknown-unknown/release/my_plugin.wasm -o plugins/my-plugin.wasm")]
    Componentize {
        /// The core module.
        module: PathBuf,
        /// Where the component goes.
        #[arg(short, long, value_name = "FILE")]
        output: PathBuf,
    },
    /// Say which plugins a running portent serves, and what became of those that it does not.
    ///
    /// Exits with 0 when all of them serve and nothing is wrong, with 1 when a version failed to
    /// load, is quarantined or impure, or a plugin does not serve, and with 2 when portent could
    /// not be asked.
    #[command(
        after_help = "Example:\n  kubectl port-forward deploy/portent 8081\n  portent plugin status"
    )]
    Status {
        /// Where its `admin.listen` is reached.
        #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8081")]
        url: String,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// List what plugins may use: each limit, its default and its range.
    Limits,
}

impl Plugin {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Self::Check {
                file,
                schema,
                limits,
            } => check(&file, &limits, schema),
            Self::Componentize { module, output } => {
                let bytes = fs::read(&module)
                    .with_context(|| format!("cannot read {}", module.display()))?;
                let component = componentize(&bytes).with_context(|| {
                    format!(
                        "{} is no core module that was built on {WIT_PACKAGE}",
                        module.display()
                    )
                })?;
                if let Some(folder) = output.parent() {
                    fs::create_dir_all(folder)
                        .with_context(|| format!("cannot make {}", folder.display()))?;
                }
                // Whoever watches the folder must never see half a file.
                let half = output.with_extension("wasm.part");
                fs::write(&half, component)
                    .with_context(|| format!("cannot write {}", half.display()))?;
                fs::rename(&half, &output)
                    .with_context(|| format!("cannot write {}", output.display()))?;
                Ok(ExitCode::SUCCESS)
            }
            Self::Status { url, json } => status::status(&url, json),
            Self::Limits => {
                let mut to = io::stdout().lock();
                for (name, value, meaning) in Limits::catalogue() {
                    writeln!(to, "{name}\n    {meaning}\n    Default: {value}.")?;
                }
                Ok(ExitCode::SUCCESS)
            }
        }
    }
}

fn check(
    file: &std::path::Path,
    limits: &LimitArgs,
    is_schema_wanted: bool,
) -> anyhow::Result<ExitCode> {
    let sandbox = Sandbox::with(limits.limits()?, super::compiler(), None)?;
    let loaded = on_guest_stack(|| plugins::Plugin::load(&sandbox, file));
    let mut to = io::stdout().lock();
    let shown = Visible(&file.display().to_string()).to_string();
    match loaded {
        Err(failure) => {
            writeln!(to, "{shown}: would not be loaded: {}", failure.reason)?;
            writeln!(to, "  what       {}", failure.message)?;
            writeln!(to, "  meaning    {}", failure.reason.meaning())?;
            Ok(ExitCode::from(1))
        }
        Ok(plugin) if is_schema_wanted => {
            let none = "{\"maxProperties\": 0}";
            let schema = plugin.description().settings_schema.as_deref();
            writeln!(to, "{}", in_ascii(schema.unwrap_or(none))?)?;
            Ok(ExitCode::SUCCESS)
        }
        Ok(plugin) => {
            describe(&mut to, &shown, &plugin)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// JSON as it is, in characters that no terminal obeys.
fn in_ascii(json: &str) -> serde_json::Result<String> {
    let value: serde_json::Value = serde_json::from_str(json)?;
    let text = serde_json::to_string_pretty(&value)?;
    let mut ascii = String::with_capacity(text.len());
    for it in text.chars() {
        if it.is_ascii() && it != '\u{7f}' {
            ascii.push(it);
        } else {
            let units = it.encode_utf16(&mut [0; 2]).to_vec();
            ascii.extend(units.iter().map(|it| format!("\\u{it:04x}")));
        }
    }
    Ok(ascii)
}

fn describe(to: &mut dyn Write, shown: &str, plugin: &plugins::Plugin) -> io::Result<()> {
    let about = plugin.description();
    let provenance = &plugin.provenance;
    let list = |it: &mut dyn Iterator<Item = &str>, none: &str| {
        let list: Vec<_> = it.map(|it| Visible(it).to_string()).collect();
        if list.is_empty() {
            none.to_owned()
        } else {
            list.join(", ")
        }
    };
    let imports = plugin.guest.imports().iter().map(String::as_str);
    let schema = if about.settings_schema.is_some() {
        "yes, with a schema"
    } else {
        "takes none"
    };
    let rows = [
        ("name", about.name.clone()),
        ("version", about.version.clone()),
        ("summary", about.summary.clone()),
        ("contract", provenance.wit.to_string()),
        ("size", format!("{} bytes", plugin.n_bytes)),
        ("digest", provenance.digest.to_string()),
        ("settings", schema.to_owned()),
        ("imports", list(&mut imports.clone(), "nothing")),
        ("reads", list(&mut about.reads.names(), "everything")),
        (
            "categories",
            list(&mut about.categories.iter().map(String::as_str), "none"),
        ),
        (
            "codes",
            list(&mut about.codes.iter().map(String::as_str), "none"),
        ),
        (
            "failures",
            if about.failures {
                "all failed subjects"
            } else {
                "no"
            }
            .to_owned(),
        ),
    ];
    writeln!(to, "{shown}: would be loaded")?;
    for (name, value) in rows {
        writeln!(to, "  {name:<10} {value}")?;
    }
    for it in &about.interests {
        writeln!(to, "  {:<10} {}", "interest", interest(it))?;
    }
    Ok(())
}

fn interest(it: &Interest) -> String {
    let fields = [
        ("kind", &it.kinds),
        ("type", &it.event_types),
        ("reason", &it.reasons),
        ("reason begins with", &it.reason_prefixes),
        ("controller", &it.controllers),
        ("note contains", &it.note_contains),
    ];
    let fields: Vec<_> = fields
        .into_iter()
        .filter(|(_, entries)| !entries.is_empty())
        .map(|(name, entries)| format!("{name} {}", Visible(&entries.join(" or "))))
        .collect();
    if fields.is_empty() {
        "every event".to_owned()
    } else {
        fields.join(", ")
    }
}
