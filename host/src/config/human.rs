//! Lengths of time and sizes as people write them: `65m`, `1h30m`, `256Mi`.
//!
//! What is printed can be written, and means the same: the largest unit of which
//! it is a whole number. There are no fractions and no decimal units, since
//! `256M` is rarely meant.

use std::{fmt, str::FromStr, time::Duration};

/// A length of time in whole seconds: `90s`, `65m`, `1h30m`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Period {
    n_seconds: u64,
}

/// A number of bytes: `1000`, `2Ki`, `256Mi`, `4Gi`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size {
    n_bytes: u64,
}

const SECONDS: [(&str, u64); 3] = [("h", 3_600), ("m", 60), ("s", 1)];

const BYTES: [(&str, u64); 3] = [("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10)];

impl Period {
    /// So many seconds.
    #[must_use]
    pub const fn seconds(n: u64) -> Self {
        Self { n_seconds: n }
    }

    /// So many minutes.
    #[must_use]
    pub const fn minutes(n: u64) -> Self {
        Self::seconds(n * 60)
    }

    /// So many hours.
    #[must_use]
    pub const fn hours(n: u64) -> Self {
        Self::minutes(n * 60)
    }

    /// For those who wait.
    #[must_use]
    pub const fn get(self) -> Duration {
        Duration::from_secs(self.n_seconds)
    }
}

impl Size {
    /// So many bytes.
    #[must_use]
    pub const fn bytes(n: u64) -> Self {
        Self { n_bytes: n }
    }

    /// So many times 1,024 bytes.
    #[must_use]
    pub const fn kib(n: u64) -> Self {
        Self::bytes(n << 10)
    }

    /// So many times 1,024² bytes.
    #[must_use]
    pub const fn mib(n: u64) -> Self {
        Self::kib(n << 10)
    }

    /// So many times 1,024³ bytes.
    #[must_use]
    pub const fn gib(n: u64) -> Self {
        Self::mib(n << 10)
    }

    /// The number of bytes; all that can be addressed if it is more.
    #[must_use]
    pub fn get(self) -> usize {
        usize::try_from(self.n_bytes).unwrap_or(usize::MAX)
    }

    /// The number of bytes.
    pub(super) const fn n_bytes(self) -> u64 {
        self.n_bytes
    }
}

/// The text is of neither form, or too large a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotHuman;

impl FromStr for Period {
    type Err = NotHuman;

    /// Each unit at most once, the larger before the smaller.
    fn from_str(text: &str) -> Result<Self, NotHuman> {
        let mut rest = text;
        let mut n_seconds = 0_u64;
        for (unit, seconds) in SECONDS {
            if let Some((digits, behind)) = rest.split_once(unit) {
                let seconds = number(digits)?.checked_mul(seconds).ok_or(NotHuman)?;
                n_seconds = n_seconds.checked_add(seconds).ok_or(NotHuman)?;
                rest = behind;
            }
        }
        if text.is_empty() || !rest.is_empty() {
            return Err(NotHuman);
        }
        Ok(Self { n_seconds })
    }
}

impl FromStr for Size {
    type Err = NotHuman;

    fn from_str(text: &str) -> Result<Self, NotHuman> {
        let of_unit = |(unit, bytes)| text.strip_suffix(unit).map(|digits| (digits, bytes));
        let (digits, bytes) = BYTES.into_iter().find_map(of_unit).unwrap_or((text, 1));
        let n_bytes = number(digits)?.checked_mul(bytes).ok_or(NotHuman)?;
        Ok(Self { n_bytes })
    }
}

/// Digits and nothing else: `u64::from_str` would take a sign.
fn number(digits: &str) -> Result<u64, NotHuman> {
    let is_number = digits.bytes().all(|it| it.is_ascii_digit());
    let parsed = is_number.then(|| digits.parse().ok()).flatten();
    parsed.ok_or(NotHuman)
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_in_units(self.n_seconds, SECONDS, "s", f)
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_in_units(self.n_bytes, BYTES, "", f)
    }
}

fn write_in_units(
    n: u64,
    units: [(&str, u64); 3],
    smallest: &str,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let is_whole = |(_, of): &(&str, u64)| n != 0 && n.is_multiple_of(*of);
    let (unit, of) = units.into_iter().find(is_whole).unwrap_or((smallest, 1));
    write!(f, "{}{unit}", n / of)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check_period(text: &str, n_seconds: u64, printed: &str) {
        let period: Period = text.parse().unwrap();
        assert_eq!(period.get(), Duration::from_secs(n_seconds), "{text}");
        assert_eq!(period.to_string(), printed);
    }

    #[test]
    fn a_period_is_hours_minutes_and_seconds() {
        check_period("65m", 3_900, "65m");
        check_period("90s", 90, "90s");
        check_period("120s", 120, "2m");
        check_period("1h30m", 5_400, "90m");
        check_period("1h1s", 3_601, "3601s");
        check_period("2h", 7_200, "2h");
        check_period("0s", 0, "0s");
        check_period("007s", 7, "7s");
        check_period("18446744073709551615s", u64::MAX, "18446744073709551615s");
    }

    #[test]
    fn what_is_no_period_is_refused() {
        for it in [
            "",
            "h",
            "s",
            "65",
            "65 m",
            " 65m",
            "65m ",
            "1.5h",
            "-1s",
            "+1s",
            "1d",
            "100ms",
            "30m1h",
            "1h1h",
            "1h30",
            "1H",
            "m5",
            "1_0s",
            "\u{661}s",
            "18446744073709551616s",
            "18446744073709551615m",
            "5124095576030431h18446744073709551615s",
        ] {
            assert_eq!(it.parse::<Period>(), Err(NotHuman), "{it}");
        }
    }

    #[track_caller]
    fn check_size(text: &str, n_bytes: usize, printed: &str) {
        let size: Size = text.parse().unwrap();
        assert_eq!(size.get(), n_bytes, "{text}");
        assert_eq!(size.to_string(), printed);
    }

    #[test]
    fn a_size_is_bytes_or_a_binary_unit_of_them() {
        check_size("256Mi", 256 << 20, "256Mi");
        check_size("2Ki", 2_048, "2Ki");
        check_size("1024Ki", 1 << 20, "1Mi");
        check_size("4Gi", 4 << 30, "4Gi");
        check_size("1000", 1_000, "1000");
        check_size("2048", 2_048, "2Ki");
        check_size("0", 0, "0");
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for it in [
            "",
            "Mi",
            "256M",
            "256MB",
            "256MiB",
            "256 Mi",
            "256mi",
            "1.5Gi",
            "-1",
            "+1",
            "1_000",
            "0x10",
            "18446744073709551616",
            "17179869184Gi",
        ] {
            assert_eq!(it.parse::<Size>(), Err(NotHuman), "{it}");
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_means_the_same(n in any::<u64>(), shift in 0_u32..64) {
            let (period, size) = (Period::seconds(n >> shift), Size { n_bytes: n >> shift << (shift / 2) });
            prop_assert_eq!(period.to_string().parse(), Ok(period));
            prop_assert_eq!(size.to_string().parse(), Ok(size));
        }

        #[test]
        fn whatever_is_read_is_printed_so_that_it_means_the_same(
            text in any::<String>(),
            near in "[0-9]{0,30}[hmsKMGi]{0,3}[0-9]{0,3}s?",
        ) {
            for it in [&text, &near] {
                if let Ok(period) = it.parse::<Period>() {
                    prop_assert_eq!(period.to_string().parse(), Ok(period));
                }
                if let Ok(size) = it.parse::<Size>() {
                    prop_assert_eq!(size.to_string().parse(), Ok(size));
                }
            }
        }
    }
}
