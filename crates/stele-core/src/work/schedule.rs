//! When a schedule's occasions are: five fields of cron in a time zone. spec/recursion.md 11.2.
//!
//! Time zones are those that the binary brings along, so that all servers on one database agree whatever their
//! machines know.

mod cron;

use std::sync::LazyLock;

use jiff::civil::Date;
use jiff::tz::{AmbiguousOffset, TimeZone, TimeZoneDatabase};
use jiff::{Span, Timestamp as Instant};

use crate::time::Timestamp;
use cron::Fields;

/// Days that are looked through for an occasion: eight years bring every date that there is, and some.
const LOOK_DAYS: usize = 366 * 9;
const MINUTES_A_DAY: u32 = 24 * 60;
const MICROS_A_MINUTE: i64 = 60_000_000;

static ZONES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// A schedule: which minutes of which days, in which time zone.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    fields: Fields,
    zone: TimeZone,
}

/// What is wrong with a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// The text is no cron expression.
    #[error("must be five fields of cron: minute, hour, day of the month, month, day of the week")]
    Cron,
    /// There is no day that it could be on.
    #[error("names no day that there is")]
    Never,
    /// There is no such time zone.
    #[error("must be the name of an IANA time zone, such as Europe/Berlin")]
    Zone,
}

impl Schedule {
    /// Reads a cron expression and the name of a time zone.
    ///
    /// # Errors
    /// One of them is none, or no day fits.
    pub fn parse(cron: &str, zone: &str) -> Result<Self, ScheduleError> {
        let fields = Fields::parse(cron).ok_or(ScheduleError::Cron)?;
        let zone = ZONES.get(zone).map_err(|_| ScheduleError::Zone)?;
        let schedule = Self { fields, zone };
        match schedule.next_occasion(Timestamp::from_micros(0)) {
            Some(_) => Ok(schedule),
            None => Err(ScheduleError::Never),
        }
    }

    /// The first occasion after `after`.
    ///
    /// Where the clock is put forward over an hour that the schedule names, that occasion comes later by as much, so
    /// that a daily run is not lost; where it is put back, the occasion is the first of the two. A schedule for every
    /// hour goes by the time that passes instead: it leaves out minutes that there aren't and has both of those that
    /// come twice. SW-06.
    pub fn next_occasion(&self, after: Timestamp) -> Option<Timestamp> {
        let start = self.zone.to_datetime(Instant::from_microsecond(after.as_micros()).ok()?);
        // Where the clock is put forward over midnight, an occasion of the day before comes today.
        let mut day = start.date().checked_sub(Span::new().days(1)).ok()?;
        let mut found: Option<Timestamp> = None;
        for _ in 0..LOOK_DAYS {
            let next = if self.fields.has_day(day) { self.first_on(day, after) } else { None };
            match (found, next) {
                // An occasion that was put off may come after the first of the next day.
                (Some(found), next) => return Some(next.map_or(found, |next| next.min(found))),
                (None, next) => found = next,
            }
            day = day.tomorrow().ok()?;
        }
        found
    }

    /// The first occasion of a day after `after`.
    fn first_on(&self, day: Date, after: Timestamp) -> Option<Timestamp> {
        match self.plain_midnight(day) {
            Some(midnight) => {
                let passed = (after.as_micros() - midnight).div_euclid(MICROS_A_MINUTE) + 1;
                let from = u32::try_from(passed.max(0)).ok()?;
                let minute = (from..MINUTES_A_DAY).find(|minute| self.fields.has_minute(*minute))?;
                Some(Timestamp::from_micros(midnight + i64::from(minute) * MICROS_A_MINUTE))
            }
            None => {
                let minutes = (0..MINUTES_A_DAY).filter(|minute| self.fields.has_minute(*minute));
                minutes.flat_map(|minute| self.instants(day, minute)).filter(|at| *at > after).min()
            }
        }
    }

    /// Midnight of a day that has 24 hours without a change of the clock.
    fn plain_midnight(&self, day: Date) -> Option<i64> {
        let [midnight, next] = [day, day.tomorrow().ok()?].map(|day| {
            self.zone.to_ambiguous_timestamp(day.at(0, 0, 0, 0)).unambiguous().map(Instant::as_microsecond)
        });
        let (midnight, next) = (midnight.ok()?, next.ok()?);
        (next - midnight == i64::from(MINUTES_A_DAY) * MICROS_A_MINUTE).then_some(midnight)
    }

    /// The instants of a minute of a day: mostly one.
    fn instants(&self, day: Date, minute: u32) -> Vec<Timestamp> {
        let (hour, minute) = (i8::try_from(minute / 60), i8::try_from(minute % 60));
        let (Ok(hour), Ok(minute)) = (hour, minute) else { return Vec::new() };
        let ambiguous = self.zone.to_ambiguous_timestamp(day.at(hour, minute, 0, 0));
        let by_time = self.fields.every_hour();
        let instants = match ambiguous.offset() {
            AmbiguousOffset::Gap { .. } if by_time => Vec::new(),
            AmbiguousOffset::Fold { .. } if by_time => vec![ambiguous.earlier(), ambiguous.later()],
            _ => vec![ambiguous.compatible()],
        };
        instants.into_iter().flatten().map(|at| Timestamp::from_micros(at.as_microsecond())).collect()
    }
}

#[cfg(test)]
mod tests;
