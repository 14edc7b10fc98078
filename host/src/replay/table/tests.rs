//! Which rows are kept, and how times are written.

use super::cells::before;
use super::*;

#[track_caller]
fn check_before(seconds: u64, want: &str) {
    assert_eq!(before(seconds), want);
}

#[test]
fn a_relative_time_has_its_two_largest_units() {
    check_before(0, "0s");
    check_before(59, "-59s");
    check_before(60, "-1m00s");
    check_before(3_599, "-59m59s");
    check_before(3_600, "-1h00m");
    check_before(90_061, "-1d01h");
}

#[test]
fn a_time_is_written_as_asked() {
    let at = 1_788_224_460_000;
    assert_eq!(written(at, &Clock::Utc, at), "09-01 01:01:00Z");
    let zone = TimeZone::fixed(jiff::tz::offset(2));
    assert_eq!(written(at, &Clock::Zone(zone), at), "09-01 03:01:00");
    assert_eq!(written(at, &Clock::Relative, at + 61_000), "-1m01s");
    assert_eq!(written(0, &Clock::Utc, at), "unknown");
}
