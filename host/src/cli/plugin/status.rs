//! `portent plugin status`: what a running portent says of its plugins.
//!
//! It asks the admin port, which has no authentication and no TLS, so a plain request over a
//! socket is all that it takes. How long it waits and how much it reads is bounded.

use std::{
    io::{self, Read as _, Write},
    net::{TcpStream, ToSocketAddrs as _},
    process::ExitCode,
    time::Duration,
};

use anyhow::{Context as _, bail};
use serde_json::Value;

use crate::text::Visible;

/// How long it waits for an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Bytes of an answer: some thousand plugins' worth.
const ANSWER_MAX_BYTES: u64 = 4 << 20;

pub(super) fn status(url: &str, is_json: bool) -> anyhow::Result<ExitCode> {
    let answer = ask(url).with_context(|| format!("cannot ask {}", Visible(url)))?;
    let mut to = io::stdout().lock();
    if is_json {
        writeln!(to, "{answer}")?;
    } else {
        print(&mut to, &answer)?;
    }
    Ok(ExitCode::from(u8::from(!all_is_well(&answer))))
}

/// Whether every plugin serves, nothing is wrong with how, and no newer version of it failed.
fn all_is_well(status: &Value) -> bool {
    let mut plugins = status["plugins"].as_array().into_iter().flatten();
    plugins.all(|it| {
        let serves = it["serving"].is_object() && it["serving"]["reason"].is_null();
        serves && it["newest"]["reason"].is_null()
    })
}

fn ask(url: &str) -> anyhow::Result<Value> {
    let host = url.strip_prefix("http://").unwrap_or(url);
    let host = host.trim_end_matches('/');
    if host.contains('/') || !host.contains(':') {
        bail!("write the address of admin.listen: http://HOST:PORT");
    }
    let address = host
        .to_socket_addrs()?
        .next()
        .context("the name has no address")?;
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    write!(
        stream,
        "GET /plugins HTTP/1.0\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    )?;
    let mut answer = String::new();
    stream
        .take(ANSWER_MAX_BYTES)
        .read_to_string(&mut answer)
        .context("no answer that is text")?;
    let (head, body) = answer
        .split_once("\r\n\r\n")
        .context("the answer is no HTTP")?;
    let line = head.lines().next().unwrap_or_default();
    if line.split(' ').nth(1) != Some("200") {
        bail!("it answers {}; is that admin.listen?", Visible(line));
    }
    serde_json::from_str(body).context("the answer is no JSON; is that admin.listen?")
}

fn print(to: &mut dyn Write, status: &Value) -> io::Result<()> {
    let none = Vec::new();
    let plugins = status["plugins"].as_array().unwrap_or(&none);
    if plugins.is_empty() {
        writeln!(to, "no plugins")?;
    }
    for it in plugins {
        writeln!(to, "{}", text(&it["file"]))?;
        if it["serving"].is_object() {
            version(to, "serves", &it["serving"])?;
        }
        if it["newest"].is_object() {
            version(to, "newest", &it["newest"])?;
        }
    }
    let number = |key: &str| status[key].as_u64().unwrap_or_default();
    writeln!(
        to,
        "{} swaps, {} batches held by them, {} subjects to be asked again, {} late results",
        number("swaps"),
        number("batchesHeldBySwaps"),
        number("backlog"),
        number("lateResults")
    )
}

fn version(to: &mut dyn Write, what: &str, it: &Value) -> io::Result<()> {
    let reason = match it["reason"].as_str() {
        Some(_) => format!(" ({})", text(&it["reason"])),
        None => String::new(),
    };
    let name = match it["name"].as_str() {
        Some(_) => format!("{} {}, ", text(&it["name"]), text(&it["version"])),
        None => String::new(),
    };
    writeln!(
        to,
        "  {what}  {}{reason}: {name}component {}, settings {}",
        text(&it["state"]),
        short(&it["digest"]),
        short(&it["settingsDigest"])
    )
}

fn text(it: &Value) -> String {
    Visible(it.as_str().unwrap_or("?")).to_string()
}

/// The first digits of a digest, as many as people compare.
fn short(digest: &Value) -> String {
    let digest = text(digest);
    let hex = digest.strip_prefix("sha256:").unwrap_or(&digest);
    hex.chars().take(12).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_serves_and_what_failed_is_told_on_a_line_each() {
        let version = |state: &str, reason: Option<&str>, name: Option<&str>| {
            serde_json::json!({
                "name": name, "version": name.map(|_| "1.2.0"), "digest": "sha256:0123456789abcdef",
                "settingsDigest": "sha256:44136fa355b3678a", "state": state, "reason": reason,
            })
        };
        let status = serde_json::json!({
            "plugins": [
                {
                    "file": "gpu-fault", "serving": version("active", None, Some("gpu-fault")),
                    "newest": version("failed", Some("not-a-component"), None),
                },
            ],
            "swaps": 3, "batchesHeldBySwaps": 2, "backlog": 0, "lateResults": 1,
        });
        let mut printed = Vec::new();
        print(&mut printed, &status).unwrap();
        assert_eq!(
            String::from_utf8(printed).unwrap(),
            "gpu-fault\n  \
             serves  active: gpu-fault 1.2.0, component 0123456789ab, settings 44136fa355b3\n  \
             newest  failed (not-a-component): component 0123456789ab, settings 44136fa355b3\n\
             3 swaps, 2 batches held by them, 0 subjects to be asked again, 1 late results\n"
        );
    }

    #[test]
    fn what_is_no_address_is_told_what_to_write() {
        for it in ["localhost", "http://localhost:80/plugins", ""] {
            let err = ask(it).unwrap_err();
            assert!(err.to_string().contains("http://HOST:PORT"), "{err:#}");
        }
    }

    #[test]
    fn all_is_well_when_every_plugin_serves_and_nothing_is_wrong() {
        let it = |serving: Value, newest: Value| {
            let good = serde_json::json!({"state": "active", "reason": null});
            all_is_well(&serde_json::json!({
                "plugins": [{"serving": good, "newest": null}, {"serving": serving, "newest": newest}],
            }))
        };
        let version = |state: &str, reason: Option<&str>| serde_json::json!({"state": state, "reason": reason});
        let active = || version("active", None);
        assert!(all_is_well(&serde_json::json!({"plugins": []})));
        assert!(it(active(), Value::Null));
        assert!(it(active(), version("compiled", None)), "it is on its way");
        assert!(
            !it(Value::Null, version("compiled", None)),
            "none of it serves"
        );
        assert!(!it(active(), version("failed", Some("not-a-component"))));
        assert!(!it(version("quarantined", Some("trap")), Value::Null));
        assert!(!it(version("active", Some("impure")), Value::Null));
    }
}
