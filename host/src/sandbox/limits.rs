//! What a guest may use: each limit by its name, with its default and its unit.
//!
//! Fuel decides, since the same work costs the same fuel on every machine and on
//! every day. The deadline is a backstop, for what may yet be found to spend much
//! time and little fuel. Nothing in here is enforced: that is done where the
//! thing is used.

use std::{ops::RangeInclusive, time::Duration};

/// Declares a limit once: its field, type, name, default and documentation.
macro_rules! limits {
    ($($(#[doc = $doc:literal])+ $field:ident: $type:ty = $name:literal, $default:expr, $range:expr;)+) => {
        /// The limits of one call and of one plugin.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct Limits {
            $($(#[doc = $doc])+ pub $field: $type,)+
        }

        impl Default for Limits {
            fn default() -> Self {
                Self { $($field: $default,)+ }
            }
        }

        impl Limits {
            /// Name, default, range and meaning of every limit.
            #[must_use]
            pub fn catalogue() -> Vec<(&'static str, String, &'static str)> {
                let default = Self::default();
                let range = |it: &dyn std::fmt::Debug| format!("{it:?}").replace("..=", " to ");
                vec![$({
                    let allowed: RangeInclusive<$type> = $range;
                    let value = format!("{}, from {}", default.$field, range(&allowed));
                    ($name, value, concat!($($doc),+).trim_ascii())
                },)+]
            }

            /// The value of every limit, as [`set`](Self::set) takes it.
            #[must_use]
            pub fn values(&self) -> Vec<(&'static str, String)> {
                vec![$(($name, self.$field.to_string())),+]
            }

            /// Sets a limit by its name.
            ///
            /// # Errors
            ///
            /// If there is no such limit, or the value is not in its range.
            pub fn set(&mut self, name: &str, value: &str) -> Result<(), LimitError> {
                match name {
                    $($name => {
                        let range: RangeInclusive<$type> = $range;
                        let parsed = value.replace('_', "").parse::<$type>().ok();
                        self.$field = parsed.filter(|it| range.contains(it)).ok_or_else(|| {
                            LimitError::Value {
                                name: $name,
                                value: value.to_owned(),
                                range: format!("{} to {}", range.start(), range.end()),
                            }
                        })?;
                    })+
                    _ => return Err(LimitError::Unknown {
                        name: name.to_owned(),
                        known: [$($name),+].join(", "),
                    }),
                }
                Ok(())
            }
        }
    };
}

limits! {
    /// Bytes of a plugin file. JS and Python guests are 12 to 18 MB.
    component_bytes: usize = "component-bytes", 32 << 20, 1_024..=1_073_741_824;
    /// Bytes of memory that compiling a plugin may take. A JS or Python guest needs 536870912.
    compile_memory_bytes: usize = "compile-memory-bytes", 128 << 20, 33_554_432..=17_179_869_184;
    /// Seconds that compiling a plugin may take, by the clock on the wall. A JS or Python guest needs 10.
    compile_seconds: u64 = "compile-seconds", 30, 1..=3_600;
    /// Bytes of a guest's memory. A Rust guest starts at 1.1 MB, a Python guest uses 5 MB.
    memory_bytes: usize = "memory-bytes", 16 << 20, 65_536..=4_294_967_296;
    /// Tables of a guest. A Python guest needs 20.
    tables: u32 = "tables", 20, 1..=100;
    /// Elements of each table.
    table_elements: u32 = "table-elements", 20_000, 1..=1_000_000;
    /// Units of fuel for each event of a call: 160 times what an ordinary one costs the heavier of our plugins (3,120), 30 times their heaviest (16,560).
    fuel_per_event: u64 = "fuel-per-event", 500_000, 1..=1_000_000_000_000;
    /// Units of fuel for a call beyond that: its instance, its settings.
    fuel_per_call: u64 = "fuel-per-call", 1_000_000, 1..=1_000_000_000_000;
    /// Units of fuel for `describe` or `check-settings`.
    fuel_per_load: u64 = "fuel-per-load", 100_000_000, 1..=1_000_000_000_000;
    /// Bytes that one call may hand back, counted as they are lifted.
    lifted_bytes: usize = "lifted-bytes", 4 << 20, 1_024..=268_435_456;
    /// Findings of one subject.
    findings_per_subject: usize = "findings-per-subject", 64, 1..=10_000;
    /// Additional reasons of one subject, for each of its events.
    additional_reasons_per_event: usize = "additional-reasons-per-event", 4, 1..=1_000;
    /// Attributes of a finding, an additional reason, a verdict or an outcome.
    attributes: usize = "attributes", 32, 1..=1_000;
    /// Bytes of one text that a guest hands back.
    text_bytes: usize = "text-bytes", 4_096, 64..=1_048_576;
    /// Lines that one call may log. The rest is counted and dropped.
    log_lines: u32 = "log-lines", 32, 0..=10_000;
    /// Bytes of one such line. The rest is cut.
    log_line_bytes: usize = "log-line-bytes", 4_096, 64..=65_536;
    /// Events in a batch. A subject is never split, so one may be over.
    batch_events: usize = "batch-events", 64, 1..=10_000;
    /// Bytes of the events of a batch. A subject is never split, so one may be over.
    batch_bytes: usize = "batch-bytes", 256 << 10, 1_024..=16_777_216;
}

/// Nanoseconds that a unit of fuel is worth, generously: 0.3 were measured.
const NANOS_PER_FUEL: u64 = 1;

/// How many times its fuel's worth a call may take.
const DEADLINE_FACTOR: u64 = 10;

/// No deadline is shorter: a throttled process may lose 100 ms at a stretch.
const DEADLINE_MIN: Duration = Duration::from_millis(200);

impl Limits {
    /// The fuel of a call with so many events.
    #[must_use]
    pub fn fuel(&self, n_events: usize) -> u64 {
        let events = u64::try_from(n_events).unwrap_or(u64::MAX);
        self.fuel_per_event
            .saturating_mul(events)
            .saturating_add(self.fuel_per_call)
    }

    /// The deadline of a call with so much fuel.
    #[must_use]
    pub fn deadline(fuel: u64) -> Duration {
        let worth = Duration::from_nanos(fuel.saturating_mul(NANOS_PER_FUEL * DEADLINE_FACTOR));
        worth.max(DEADLINE_MIN)
    }
}

/// Why a limit could not be set.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum LimitError {
    /// There is none of this name.
    #[error("there is no limit `{name}`; the limits are {known}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// The value is none that it may have.
    #[error("the limit `{name}` cannot be `{value}`: write a whole number from {range}")]
    Value {
        /// The limit.
        name: &'static str,
        /// What was asked for.
        value: String,
        /// What it may be.
        range: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sets a limit, and wants its field, and no other, to hold this.
    #[track_caller]
    fn check_set(name: &str, value: &str, want: &str) {
        let mut limits = Limits::default();
        limits.set(name, value).unwrap();
        let (shown, field) = (format!("{limits:?}"), name.replace('-', "_"));
        assert!(shown.contains(&format!(" {field}: {want}")), "{shown}");
        limits.set(name, &default_of(name)).unwrap();
        assert_eq!(limits, Limits::default());
    }

    fn default_of(name: &str) -> String {
        let catalogue = Limits::catalogue();
        let (_, value, _) = catalogue.iter().find(|(it, ..)| *it == name).unwrap();
        value.split_once(',').unwrap().0.to_owned()
    }

    #[test]
    fn a_limit_is_set_by_its_name() {
        check_set("component-bytes", "1024", "1024");
        check_set("memory-bytes", "4294967296", "4294967296");
        check_set("fuel-per-event", "1", "1");
        check_set("log-lines", "0", "0");
        check_set("log-lines", "007", "7");
        check_set("batch-events", "10_000", "10000");
        check_set("fuel-per-call", "1_000_000_000_000", "1000000000000");
        check_set("tables", "__1_0__0_", "100");
    }

    #[track_caller]
    fn check_refused(name: &str, value: &str, want: &str) {
        let mut limits = Limits::default();
        let err = limits.set(name, value).unwrap_err();
        assert_eq!(err.to_string(), want);
        assert_eq!(limits, Limits::default(), "and nothing is changed");
    }

    #[test]
    fn a_value_out_of_range_is_refused_with_the_range() {
        for value in [
            "0",
            "101",
            "-1",
            "",
            "_",
            "x",
            "1.5",
            "1e2",
            " 1",
            "1 ",
            "0x10",
            "4294967297",
            "18446744073709551616",
        ] {
            let want = format!(
                "the limit `tables` cannot be `{value}`: write a whole number from 1 to 100"
            );
            check_refused("tables", value, &want);
        }
        let want = "the limit `component-bytes` cannot be `1_023`: write a whole number from 1024 to 1073741824";
        check_refused("component-bytes", "1_023", want);
    }

    #[test]
    fn an_unknown_limit_is_refused_with_those_there_are() {
        for name in ["", "table", "Tables", "table_elements", " tables"] {
            let mut limits = Limits::default();
            let err = limits.set(name, "1").unwrap_err().to_string();
            assert!(
                err.starts_with(&format!(
                    "there is no limit `{name}`; the limits are component-bytes, "
                )),
                "{err}"
            );
            for (known, ..) in Limits::catalogue() {
                assert!(err.contains(known), "{err}");
            }
        }
    }

    #[test]
    fn each_default_is_one_that_may_be_set_and_both_ends_of_its_range_are() {
        for (name, value, meaning) in Limits::catalogue() {
            let (default, range) = value.split_once(", from ").unwrap();
            let (low, high) = range.split_once(" to ").unwrap();
            let mut limits = Limits::default();
            for it in [low, high, default] {
                limits.set(name, it).unwrap();
            }
            assert_eq!(limits, Limits::default());
            let (low, high): (u64, u64) = (low.parse().unwrap(), high.parse().unwrap());
            assert!(limits.set(name, &(high + 1).to_string()).is_err());
            assert!(low == 0 || limits.set(name, &(low - 1).to_string()).is_err());
            assert!(!meaning.is_empty());
        }
    }

    #[test]
    fn the_values_of_all_limits_make_the_same_limits() {
        let mut limits = Limits::default();
        limits.set("tables", "7").unwrap();
        limits.set("batch-bytes", "1024").unwrap();
        let mut again = Limits::default();
        for (name, value) in limits.values() {
            again.set(name, &value).unwrap();
        }
        assert_eq!(again, limits);
        assert_eq!(limits.values().len(), Limits::catalogue().len());
    }

    #[track_caller]
    fn check_fuel(per_event: u64, per_call: u64, n_events: usize, want: u64) {
        let limits = Limits {
            fuel_per_event: per_event,
            fuel_per_call: per_call,
            ..Limits::default()
        };
        assert_eq!(limits.fuel(n_events), want);
    }

    #[test]
    fn fuel_is_for_each_event_and_some_for_the_call() {
        check_fuel(500_000, 1_000_000, 0, 1_000_000);
        check_fuel(500_000, 1_000_000, 1, 1_500_000);
        check_fuel(500_000, 1_000_000, 64, 33_000_000);
        // The most that can be set does not run over, nor does anything else.
        check_fuel(
            1_000_000_000_000,
            1_000_000_000_000,
            10_000,
            10_001_000_000_000_000,
        );
        check_fuel(u64::MAX, 0, 2, u64::MAX);
        check_fuel(1, u64::MAX, 1, u64::MAX);
        check_fuel(1, 1, usize::MAX, u64::MAX);
    }

    #[track_caller]
    fn check_deadline(fuel: u64, want: Duration) {
        assert_eq!(Limits::deadline(fuel), want);
    }

    #[test]
    fn a_deadline_is_ten_times_the_worth_of_the_fuel_and_never_too_short() {
        check_deadline(0, Duration::from_millis(200));
        check_deadline(1_500_000, Duration::from_millis(200));
        check_deadline(19_999_999, Duration::from_millis(200));
        check_deadline(20_000_000, Duration::from_millis(200));
        check_deadline(20_000_001, Duration::from_nanos(200_000_010));
        check_deadline(33_000_000, Duration::from_millis(330));
        check_deadline(u64::MAX, Duration::from_nanos(u64::MAX));
    }
}
