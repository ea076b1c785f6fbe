//! The five fields of cron.

use jiff::civil::Date;

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// Which minutes, hours and days, each as a set of bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fields {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    /// Whether both kinds of days are restricted: then either is enough.
    either_day: bool,
}

impl Fields {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let fields: Vec<&str> = text.split_ascii_whitespace().collect();
        let [minutes, hours, days, months, weekdays] = fields[..] else { return None };
        let week = set(weekdays, 0, 7, &DAYS, 0)?;
        Some(Self {
            minutes: set(minutes, 0, 59, &[], 0)?,
            hours: set(hours, 0, 23, &[], 0)?,
            days: set(days, 1, 31, &[], 0)?,
            months: set(months, 1, 12, &MONTHS, 1)?,
            // Sunday is 0 as well as 7.
            weekdays: (week | week >> 7) & 0x7F,
            either_day: !days.starts_with('*') && !weekdays.starts_with('*'),
        })
    }

    pub(super) fn has_day(&self, day: Date) -> bool {
        let has = |set: u64, number: i8| set >> number & 1 == 1;
        let in_month = has(self.days, day.day());
        let in_week = has(self.weekdays, day.weekday().to_sunday_zero_offset());
        let fits = if self.either_day { in_month || in_week } else { in_month && in_week };
        has(self.months, day.month()) && fits
    }

    /// Whether it has this minute of a day.
    pub(super) fn has_minute(&self, minute: u32) -> bool {
        self.hours >> (minute / 60) & 1 == 1 && self.minutes >> (minute % 60) & 1 == 1
    }

    pub(super) fn every_hour(&self) -> bool {
        self.hours == (1 << 24) - 1
    }
}

/// Reads a field: `*`, numbers, names, ranges and steps, in a list.
fn set(text: &str, least: u32, most: u32, names: &[&str], first_name: u32) -> Option<u64> {
    let number = |text: &str| {
        let named = names.iter().position(|name| text.eq_ignore_ascii_case(name));
        let number = match named {
            Some(place) => u32::try_from(place).ok()? + first_name,
            None if text.len() <= 2 && text.bytes().all(|b| b.is_ascii_digit()) => text.parse().ok()?,
            None => return None,
        };
        (least..=most).contains(&number).then_some(number)
    };
    let mut bits = 0;
    for part in text.split(',') {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => (range, Some(step)),
            None => (part, None),
        };
        let (from, to) = match range.split_once('-') {
            _ if range == "*" => (least, most),
            Some((from, to)) => (number(from)?, number(to)?),
            // `5/15` goes on from 5 to the end.
            None => (number(range)?, if step.is_some() { most } else { number(range)? }),
        };
        let step = match step {
            None => 1,
            Some(step) if step.len() <= 2 && step.bytes().all(|b| b.is_ascii_digit()) => step.parse().ok()?,
            Some(_) => return None,
        };
        if step == 0 || from > to {
            return None;
        }
        for number in (from..=to).step_by(step) {
            bits |= 1 << number;
        }
    }
    Some(bits)
}
