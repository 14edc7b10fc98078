//! Runs a workload to be timed or to be counted.

use std::{env, fs, hint::black_box, mem::forget, path::PathBuf, time::Duration};

use criterion::{BatchSize, Criterion, SamplingMode, Throughput};

use super::clock::Cpu;

/// What is done with a workload.
pub(crate) enum Meter<'a> {
    /// criterion times it.
    Time(&'a mut Criterion<Cpu>),
    /// It is run once, if it is among these or these are none, for somebody
    /// outside to count what happens between two calls of [`boundary`].
    Count(&'a [&'a str]),
    /// What criterion measured last is printed: name, and nanoseconds an Event, the
    /// median and the least.
    Report,
}

/// A criterion of processor time. All workloads take a minute and a half.
pub(crate) fn criterion() -> Criterion<Cpu> {
    Criterion::default()
        .with_measurement(Cpu)
        // Many and short: what runs beside it only ever adds, and not all the time.
        .sample_size(40)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(2))
        .configure_from_args()
}

impl Meter<'_> {
    /// A workload: what `run` does with what `make` made, to so many Events. What
    /// it returns is dropped where nobody measures.
    pub(crate) fn workload<S, T>(
        &mut self,
        name: &str,
        n_events: usize,
        mut make: impl FnMut() -> S,
        mut run: impl FnMut(S) -> T,
    ) {
        let n = u32::try_from(n_events).expect("a workload is of a few seconds");
        match self {
            Self::Time(criterion) => {
                let mut group = criterion.benchmark_group(name);
                group.throughput(Throughput::Elements(n.into()));
                group.sampling_mode(SamplingMode::Flat);
                group.bench_function("event", |bencher| {
                    bencher.iter_batched(&mut make, &mut run, BatchSize::PerIteration);
                });
            }
            Self::Count(names) if names.is_empty() || names.contains(&name) => {
                let state = black_box(make());
                boundary();
                let result = black_box(run(state));
                boundary();
                forget(result);
                println!("{name}\t{n_events}");
            }
            Self::Count(_) => {}
            Self::Report => {
                if let Some((median, least)) = times(name) {
                    let of_each = |nanos| nanos / f64::from(n);
                    println!("{name}\t{}\t{}", of_each(median), of_each(least));
                }
            }
        }
    }
}

/// Is called before and after what is to be counted; callgrind is told its name.
#[inline(never)]
fn boundary() {
    black_box(());
}

/// The nanoseconds that a workload took in criterion's last run: the median of
/// its samples, and the least.
fn times(name: &str) -> Option<(f64, f64)> {
    let folder =
        env::var_os("CRITERION_HOME").map_or_else(|| "target/criterion".into(), PathBuf::from);
    let read = |file: &str| {
        let json = fs::read(folder.join(name).join("event/new").join(file)).ok()?;
        serde_json::from_slice::<serde_json::Value>(&json).ok()
    };
    let median = read("estimates.json")?["median"]["point_estimate"].as_f64()?;
    let sample = read("sample.json")?;
    let of_each = sample["times"]
        .as_array()?
        .iter()
        .zip(sample["iters"].as_array()?);
    let of_each = of_each.filter_map(|(nanos, n)| Some(nanos.as_f64()? / n.as_f64()?));
    Some((median, of_each.fold(f64::INFINITY, f64::min)))
}
