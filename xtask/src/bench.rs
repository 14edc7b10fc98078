//! `cargo xtask bench`: what each stage of the path costs an Event, against what it may.
//!
//! Times are processor time, and still of this machine and this hour. So the check of a change holds
//! instructions against those that are committed, and never a time. callgrind counts them: it runs the
//! guests' native code as well, and whatever the kernel does it does not see.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};

use crate::plugins;
use crate::process::{
    cargo, optimised_portent, output, plugins_dir, program, root, run as run_child, target_dir,
};

mod churn;
mod gpu;
mod live;
mod reload;
mod replay;
mod store;
mod swap;

pub(crate) use churn::run as run_churn;
pub(crate) use gpu::run as run_gpu;
pub(crate) use live::run as run_live;
pub(crate) use reload::run as run_reload;
pub(crate) use replay::run as run_replay;
pub(crate) use store::run as run_store;
pub(crate) use swap::run as run_swap;

/// Nanoseconds of a processor that an Event may take, by workload.
const BUDGETS: [(&str, f64); 8] = [
    // 300,000 Events a second.
    ("decode-store", 1e9 / 300_000.0),
    ("call-gpu-fault-64x1", 2_000.0),
    ("call-gpu-fault-16x4", 1_200.0),
    ("call-gpu-fault-1x64", 1_000.0),
    ("call-additional-reasons-64x1", 3_000.0),
    ("call-additional-reasons-16x4", 1_800.0),
    ("call-additional-reasons-1x64", 1_200.0),
    // 150,000 Events a second.
    ("replay", 1e9 / 150_000.0),
];

/// How much more than in the baseline is too much.
const TOLERANCE: f64 = 0.05;

/// What is done with the counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counts {
    /// They are shown beside the times.
    Show,
    /// They are held against the baseline.
    Check,
    /// They become the baseline.
    Bless,
}

pub(crate) fn run(counts: Counts) -> Result<()> {
    let cost = build()?;
    let counted = count(&cost)?;
    let rustc = rustc()?;
    match counts {
        Counts::Show => {
            let mut bench = program(&cost);
            bench.arg("--bench").env("CRITERION_HOME", criterion());
            run_child(bench.env("PORTENT_TEST_PLUGINS", plugins_dir()))?;
            let times = output(
                program(&cost)
                    .arg("times")
                    .env("CRITERION_HOME", criterion()),
            )?;
            println!("{}", table(&times, &counted)?);
            Ok(())
        }
        Counts::Check => {
            let baseline = fs::read_to_string(baseline())
                .with_context(|| format!("cannot read {}", baseline().display()))?;
            check(&baseline, &counted, &rustc)?;
            eprintln!("xtask: no workload takes more instructions than it did");
            Ok(())
        }
        Counts::Bless => {
            fs::write(baseline(), written(&counted, &rustc))
                .with_context(|| format!("cannot write {}", baseline().display()))?;
            eprintln!("xtask: wrote {}", baseline().display());
            Ok(())
        }
    }
}

fn baseline() -> PathBuf {
    root().join("host/benches/baseline.tsv")
}

/// Where criterion keeps what it measured.
fn criterion() -> PathBuf {
    target_dir().join("criterion")
}

/// The first line of the compiler's name for itself.
fn rustc() -> Result<String> {
    output(program("rustc").arg("--version"))
}

/// Builds the plugins and the benches, and says where those are.
fn build() -> Result<PathBuf> {
    build_bench("cost")?;
    let mut cost = cargo();
    cost.args([
        "bench", "--quiet", "-p", "portent", "--bench", "cost", "--", "where",
    ]);
    Ok(output(&mut cost)?.into())
}

/// Builds the plugins, and a bench with an optimised portent beside it.
fn build_bench(name: &str) -> Result<()> {
    let host = || {
        run_child(cargo().args(["bench", "-p", "portent", "--bench", name, "--no-run"]))?;
        Ok(optimised_portent())
    };
    plugins::run(host, None, None)
}

/// A bench that [`build_bench`] has built, to be run on the plugins.
fn bench(name: &str) -> Command {
    let mut bench = cargo();
    bench.args(["bench", "-p", "portent", "--bench", name]);
    bench.env("PORTENT_TEST_PLUGINS", plugins_dir());
    bench
}

/// What was counted an Event: instructions of each workload, fuel of each plugin.
type Counted = BTreeMap<String, u64>;

fn count(cost: &Path) -> Result<Counted> {
    let folder = target_dir().join("callgrind");
    if folder.exists() {
        fs::remove_dir_all(&folder)
            .with_context(|| format!("cannot empty {}", folder.display()))?;
    }
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    eprintln!("xtask: counting instructions, for some minutes");
    let mut valgrind = program("valgrind");
    valgrind
        .args(["--quiet", "--tool=callgrind", "--dump-line=no"])
        // Each dump has what was counted since the one before.
        .arg("--dump-before=*meter::boundary*")
        .arg(format!(
            "--callgrind-out-file={}",
            folder.join("out").display()
        ))
        .arg(cost)
        .arg("count")
        .env("PORTENT_TEST_PLUGINS", plugins_dir());
    let workloads = output(&mut valgrind)
        .context("counting needs valgrind: on Debian, `apt-get install valgrind`")?;
    let mut counted = Counted::new();
    // The first dump of a workload is what was made for it.
    for (part, workload) in (2..).step_by(2).zip(workloads.lines()) {
        let (name, n_events) = workload.split_once('\t').context("no number of Events")?;
        let dump = folder.join(format!("out.{part}"));
        let text = fs::read_to_string(&dump)
            .with_context(|| format!("callgrind made no {}", dump.display()))?;
        let n = total(&text).with_context(|| format!("no total in {}", dump.display()))?;
        counted.insert(name.to_owned(), n / n_events.parse::<u64>()?);
    }
    let fuel = output(
        program(cost)
            .arg("fuel")
            .env("PORTENT_TEST_PLUGINS", plugins_dir()),
    )?;
    for line in fuel.lines() {
        let (name, n) = line.split_once('\t').context("no fuel")?;
        counted.insert(name.to_owned(), n.parse()?);
    }
    Ok(counted)
}

/// The instructions of a dump of callgrind's.
fn total(dump: &str) -> Option<u64> {
    let total = dump.lines().find_map(|it| it.strip_prefix("totals: "))?;
    total.trim().parse().ok()
}

/// A row for each workload that was timed, and one for the fuel of each plugin. What may take so long is
/// the sample that took least: what runs beside a bench only ever adds to it.
fn table(times: &str, counted: &Counted) -> Result<String> {
    let mut table = format!(
        "{:<30}{:>10}{:>10}{:>14}{:>14}{:>10}  met\n",
        "an Event, in ns of CPU", "median", "least", "a CPU-second", "instructions", "budget"
    );
    for line in times.lines() {
        let parts: Vec<_> = line.split('\t').collect();
        let &[name, median, least] = &*parts else {
            bail!("cannot read the times {line:?}");
        };
        let (median, least): (f64, f64) = (median.parse()?, least.parse()?);
        let budget = BUDGETS.iter().find(|(it, _)| *it == name);
        let (budget, met) = match budget {
            None => (String::new(), ""),
            Some((_, budget)) if least <= *budget => (format!("{budget:.0}"), "yes"),
            Some((_, budget)) => (format!("{budget:.0}"), "NO"),
        };
        let counted = counted.get(name).map_or_else(String::new, u64::to_string);
        let rate = 1e9 / least;
        writeln!(
            table,
            "{name:<30}{median:>10.0}{least:>10.0}{rate:>14.0}{counted:>14}{budget:>10}  {met}"
        )?;
    }
    for (name, units) in counted.iter().filter(|(name, _)| name.starts_with("fuel-")) {
        writeln!(table, "{name:<30}{units:>10} units an Event")?;
    }
    Ok(table)
}

/// The counts as a baseline.
fn written(counted: &Counted, rustc: &str) -> String {
    let mut text = format!(
        "# Instructions an Event, and fuel: `cargo xtask bench --check` holds a change against them.\n\
         # Written by `cargo xtask bench --bless` with\n# {rustc}\n"
    );
    for (name, n) in counted {
        text.extend([name, "\t", &n.to_string(), "\n"]);
    }
    text
}

/// Holds the counts against a baseline.
fn check(baseline: &str, counted: &Counted, rustc: &str) -> Result<()> {
    let made_with = baseline.lines().find_map(|it| it.strip_prefix("# rustc"));
    let made_with = made_with.map(|it| format!("rustc{it}")).unwrap_or_default();
    ensure!(
        made_with == rustc,
        "the baseline was made with {made_with:?}, and this is {rustc:?}, whose counts are others: \
         run `cargo xtask bench --bless` without the change first, and then check it"
    );
    let mut known = Counted::new();
    for line in baseline.lines().filter(|it| !it.starts_with('#')) {
        let (name, n) = line
            .split_once('\t')
            .with_context(|| format!("the baseline's line {line:?}"))?;
        known.insert(name.to_owned(), n.parse()?);
    }
    let mut wrong = Vec::new();
    for name in known
        .keys()
        .chain(counted.keys().filter(|it| !known.contains_key(*it)))
    {
        match (known.get(name), counted.get(name)) {
            (Some(&known), Some(&now)) => {
                if more(known, now) {
                    wrong.push(format!("{name} takes {now} an Event, and took {known}"));
                } else if more(now, known) {
                    eprintln!(
                        "xtask: {name} takes {now} an Event, and took {known}: `--bless` keeps that"
                    );
                }
            }
            (Some(_), None) => {
                wrong.push(format!("{name} is in the baseline alone: run `--bless`"));
            }
            (None, _) => wrong.push(format!("{name} is not in the baseline: run `--bless`")),
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// Whether it is more than before by more than is tolerated.
#[expect(clippy::cast_precision_loss, reason = "counts an Event are small")]
fn more(before: u64, now: u64) -> bool {
    before as f64 * (1.0 + TOLERANCE) < now as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUSTC: &str = "rustc 1.95.0 (0123456789 2026-04-01)";

    fn counted(counts: &[(&str, u64)]) -> Counted {
        counts
            .iter()
            .map(|(name, n)| ((*name).to_owned(), *n))
            .collect()
    }

    /// Holds counts against a baseline of others.
    #[track_caller]
    fn check_against(before: &[(&str, u64)], now: &[(&str, u64)], want: Result<(), &str>) {
        let baseline = written(&counted(before), RUSTC);
        let said = check(&baseline, &counted(now), RUSTC);
        let said = said.map_err(|it| it.to_string());
        assert_eq!(said.as_ref().map_err(String::as_str).copied(), want);
    }

    #[test]
    fn a_workload_that_takes_over_a_twentieth_more_is_named() {
        let before = [("decode", 1_000), ("replay", 20_000)];
        check_against(&before, &before, Ok(()));
        check_against(&before, &[("decode", 1_050), ("replay", 10_000)], Ok(()));
        check_against(
            &before,
            &[("decode", 1_051), ("replay", 20_000)],
            Err("decode takes 1051 an Event, and took 1000"),
        );
    }

    #[test]
    fn a_workload_that_comes_or_goes_has_to_be_blessed() {
        check_against(
            &[("decode", 1), ("put", 1)],
            &[("decode", 1), ("merge", 1)],
            Err(
                "put is in the baseline alone: run `--bless`\nmerge is not in the baseline: run `--bless`",
            ),
        );
    }

    #[test]
    fn counts_of_another_compiler_are_not_compared() {
        let baseline = written(&counted(&[("decode", 1)]), RUSTC);
        let said = check(&baseline, &counted(&[("decode", 9)]), "rustc 1.96.0");
        let said = said.unwrap_err().to_string();
        assert!(
            said.contains("1.95.0") && said.contains("1.96.0") && said.contains("--bless"),
            "{said}"
        );
    }

    #[test]
    fn a_dump_of_callgrind_has_a_total() {
        assert_eq!(total("events: Ir\nfn=a\n0 5\ntotals: 1234\n"), Some(1_234));
        assert_eq!(total("events: Ir\n"), None);
    }

    #[test]
    fn a_budget_is_met_or_it_is_not() {
        let counted = counted(&[("replay", 30_000), ("fuel-x", 7)]);
        let table = table("replay\t8000\t5000\nreplay\t8000\t7000.5\n", &counted).unwrap();
        let rows: Vec<Vec<_>> = table
            .lines()
            .map(|it| it.split_whitespace().collect())
            .collect();
        let want = ["replay", "8000", "5000", "200000", "30000", "6667", "yes"];
        assert_eq!(rows[1], want);
        assert_eq!(rows[2].last(), Some(&"NO"));
        assert_eq!(rows[3], ["fuel-x", "7", "units", "an", "Event"]);
    }
}
