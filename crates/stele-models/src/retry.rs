//! When a failed try is worth another one. spec/learning.md 15.

use std::time::Duration;

use jiff::fmt::rfc2822;
use stele_core::time::Timestamp;

/// Tries of a call.
pub(crate) const TRIES: u32 = 3;
/// The longest wait that a provider may ask for within a call.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// Reads `retry-after`: seconds, or a date.
pub(crate) fn retry_after(value: &str, now: Timestamp) -> Option<Duration> {
    let value = value.trim();
    if let Ok(secs) = value.parse::<f64>() {
        return Duration::try_from_secs_f64(secs).ok();
    }
    let date = rfc2822::DateTimeParser::new().parse_timestamp(value).ok()?;
    let micros = date.as_microsecond().saturating_sub(now.as_micros());
    Some(Duration::from_micros(u64::try_from(micros).unwrap_or(0)))
}

/// The wait before the try after `tries` ones: doubled each time, a quarter more or less by chance.
pub(crate) fn backoff(first: Duration, tries: u32, chance: u64) -> Duration {
    let doubled = first.saturating_mul(1 << tries.saturating_sub(1).min(16));
    let spread = u32::try_from(chance % 512).unwrap_or(0);
    doubled.saturating_mul(768 + spread) / 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_read_as_seconds_and_as_a_date() {
        let now = Timestamp::parse("2026-12-01T12:00:00Z").expect("a time");
        let read = |value| retry_after(value, now);
        assert_eq!(read(" 7 "), Some(Duration::from_secs(7)));
        assert_eq!(read("0.5"), Some(Duration::from_millis(500)));
        assert_eq!(read("Tue, 01 Dec 2026 12:00:30 GMT"), Some(Duration::from_secs(30)));
        assert_eq!(read("Tue, 01 Dec 2026 11:00:00 GMT"), Some(Duration::ZERO));
        for bad in ["", "soon", "-1", "NaN", "1e400"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }

    #[test]
    fn waits_double_and_spread_by_a_quarter() {
        let first = Duration::from_millis(1024);
        assert_eq!(backoff(first, 1, 0), Duration::from_millis(768));
        assert_eq!(backoff(first, 1, 511), Duration::from_millis(1279));
        assert_eq!(backoff(first, 2, 256), Duration::from_millis(2048));
        assert_eq!(backoff(first, 3, 256), Duration::from_millis(4096));
    }
}
