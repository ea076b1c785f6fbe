//! Points in time, in microseconds since the epoch. DESIGN 4.

use std::fmt;

use jiff::SignedDuration;
use jiff::civil::DateTime;
use serde::{Deserialize, Serialize};

/// A point in time: microseconds since 1970-01-01T00:00:00Z. Shown as RFC 3339 in UTC with six decimals.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
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

    /// Reads an RFC 3339 time with any offset, in the one form that the RFC has; digits beyond the microsecond are
    /// cut off.
    pub fn parse(text: &str) -> Option<Self> {
        let (local, offset) = split_offset(text)?;
        let (whole, fraction) = local.split_once('.').unwrap_or((local, "0"));
        let shape: String = whole.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
        let digits = !fraction.is_empty() && fraction.bytes().all(|b| b.is_ascii_digit());
        if !matches!(shape.as_str(), "0000-00-00T00:00:00" | "0000-00-00t00:00:00") || !digits {
            return None;
        }
        let civil: DateTime = whole.parse().ok()?;
        let micros = format!("{fraction:0<6}")[..6].parse::<i64>().ok()?;
        let seconds = civil.duration_since(EPOCH).as_secs() - offset;
        Some(Self(seconds * 1_000_000 + micros))
    }

    /// The later of `self` and one microsecond after `last`: strictly increasing whatever the clock does.
    pub fn after(self, last: Timestamp) -> Self {
        Self(self.0.max(last.0 + 1))
    }

    /// This time and so many milliseconds more.
    pub const fn plus_millis(self, millis: u64) -> Self {
        Self(self.0.saturating_add_unsigned(millis.saturating_mul(1_000)))
    }

    /// This time less so many seconds.
    pub const fn minus_secs(self, secs: u64) -> Self {
        Self(self.0.saturating_sub_unsigned(secs.saturating_mul(1_000_000)))
    }
}

const EPOCH: DateTime = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);

/// The time of day and date in a text, and its offset in seconds.
fn split_offset(text: &str) -> Option<(&str, i64)> {
    if let Some(local) = text.strip_suffix(['Z', 'z']) {
        return Some((local, 0));
    }
    let (local, offset) = text.split_at_checked(text.len().checked_sub(6)?)?;
    let sign = match offset.as_bytes()[0] {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let (hours, minutes) = offset[1..].split_once(':')?;
    let two_digits = |text: &str, most: i64| {
        let number =
            (text.len() == 2 && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok())??;
        (0..=most).contains(&number).then_some(number)
    };
    Some((local, sign * (two_digits(hours, 23)? * 3600 + two_digits(minutes, 59)? * 60)))
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = EPOCH.saturating_add(SignedDuration::from_micros(self.0));
        write!(f, "{time:.6}Z")
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
    }

    #[test]
    fn the_ends_of_the_calendar_are_times() {
        for text in
            ["9999-12-31T23:59:59.999999Z", "0001-01-01T00:00:00.000000Z", "1969-12-31T23:59:59.500000Z"]
        {
            assert_eq!(Timestamp::parse(text).map(|time| time.to_string()).as_deref(), Some(text));
        }
    }

    #[test]
    fn other_forms_are_no_times() {
        let bad = [
            "yesterday",
            "",
            "Z",
            "2026-01-01",
            "2026-01-01T00:00:00",
            "1767225600",
            "2026-01-01T00:00Z",
            "20260101T000000Z",
            "2026-01-01T00Z",
            "2026-01-01T00:00:00Z[UTC]",
            "+002026-01-01T00:00:00Z",
            "2026-01-01T00:00:00,5Z",
            "2026-01-01T00:00:00.Z",
            "2026-01-01T00:00:00+0000",
            "2026-01-01T00:00:00+00",
            "2026-01-01T00:00:00+00:00:00",
            "2026-01-01T00:00:00+25:59",
            "2026-02-30T00:00:00Z",
            "2026-01-01T24:00:00Z",
            "2026-01-01 00:00:00Z",
            "2026-01-01T00:00:00\u{e9}00:00",
        ];
        for text in bad {
            assert_eq!(Timestamp::parse(text), None, "{text}");
        }
    }

    #[test]
    fn after_always_moves_on() {
        let last = Timestamp::from_micros(10);
        assert_eq!(Timestamp::from_micros(5).after(last).as_micros(), 11);
        assert_eq!(Timestamp::from_micros(50).after(last).as_micros(), 50);
    }
}
