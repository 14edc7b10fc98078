//! Writes the kit to a folder: `NAME.wasm` for every guest, and `expected.json` with what a host has to do.
//!
//! `cargo xtask hostile DIR` runs it.

use std::{env, fs, path::PathBuf};

use anyhow::{Context as _, Result};
use portent_hostile::GUESTS;
use serde_json::json;

fn main() -> Result<()> {
    let folder = env::args_os().nth(1).map(PathBuf::from);
    let folder = folder.context("write where it goes: portent-hostile DIR")?;
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.join(name);
        fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))
    };
    let mut expected = Vec::new();
    for guest in GUESTS {
        let file = format!("{}.wasm", guest.name);
        write(&file, &guest.component())?;
        expected.push(json!({
            "file": file,
            "does": guest.does,
            "stop": guest.stop.as_str(),
            "reason": guest.stop.reason(),
        }));
    }
    let mut text = serde_json::to_string_pretty(&expected)?;
    text.push('\n');
    write("expected.json", text.as_bytes())
}
