//! Points in time, in microseconds since the epoch. DESIGN 4.

use std::fmt;

/// A point in time: microseconds since 1970-01-01T00:00:00Z. Shown as RFC 3339 in UTC with six decimals.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The time this many microseconds after the epoch.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Microseconds since the epoch.
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// Reads an RFC 3339 time with any offset; digits beyond the microsecond are cut off.
    pub fn parse(text: &str) -> Option<Self> {
        let time: jiff::Timestamp = text.parse().ok()?;
        Some(Self(time.as_microsecond()))
    }

    /// The later of `self` and one microsecond after `last`: strictly increasing whatever the clock does.
    pub fn after(self, last: Timestamp) -> Self {
        Self(self.0.max(last.0 + 1))
    }

    /// This time less so many seconds.
    pub const fn minus_secs(self, secs: u64) -> Self {
        Self(self.0.saturating_sub_unsigned(secs.saturating_mul(1_000_000)))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = jiff::Timestamp::from_microsecond(self.0).unwrap_or(jiff::Timestamp::MAX);
        write!(f, "{time:.6}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shown_in_utc_with_six_decimals() {
        assert_eq!(Timestamp::from_micros(0).to_string(), "1970-01-01T00:00:00.000000Z");
        assert_eq!(Timestamp::from_micros(1_790_604_131_123_456).to_string(), "2026-09-28T14:02:11.123456Z");
    }

    #[test]
    fn any_offset_is_read_and_reads_back() {
        let time = Timestamp::parse("2026-01-01T02:00:00.5+02:00").expect("a valid time");
        assert_eq!(time.to_string(), "2026-01-01T00:00:00.500000Z");
        assert_eq!(Timestamp::parse(&time.to_string()), Some(time));
        for bad in ["yesterday", "", "2026-01-01", "2026-01-01T00:00:00", "1767225600"] {
            assert_eq!(Timestamp::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn after_always_moves_on() {
        let last = Timestamp::from_micros(10);
        assert_eq!(Timestamp::from_micros(5).after(last).as_micros(), 11);
        assert_eq!(Timestamp::from_micros(50).after(last).as_micros(), 50);
    }
}
