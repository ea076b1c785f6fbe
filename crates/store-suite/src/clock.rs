//! A clock that tests set.

use std::sync::atomic::{AtomicI64, Ordering};

use stele_core::clock::Clock;
use stele_core::time::Timestamp;

const DAY_MICROS: i64 = 24 * 60 * 60 * 1_000_000;

/// A clock that stands still until it is moved, either way.
pub struct TestClock(AtomicI64);

impl Default for TestClock {
    /// Stands in the year 2026.
    fn default() -> Self {
        Self(AtomicI64::new(1_790_000_000_000_000))
    }
}

impl TestClock {
    /// Moves it by so many microseconds.
    pub fn advance(&self, micros: i64) {
        self.0.fetch_add(micros, Ordering::SeqCst);
    }

    /// Moves it by so many days.
    pub fn advance_days(&self, days: i64) {
        self.advance(days * DAY_MICROS);
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.load(Ordering::SeqCst))
    }
}
