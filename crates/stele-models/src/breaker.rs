//! The rest of a provider that fails. spec/learning.md 15.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Failed calls in a row after which a provider rests.
const FAILURES: u32 = 5;
/// The longest rest.
const LONGEST: Duration = Duration::from_secs(15 * 60);

/// Counts failed calls in a row. After a rest one more failure begins the next one, twice as long.
#[derive(Debug)]
pub(crate) struct Breaker {
    first: Duration,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    failures: u32,
    next: Duration,
    until: Option<Instant>,
}

impl Breaker {
    /// With a first rest of `first`; never a rest if that is zero.
    pub(crate) fn new(first: Duration) -> Self {
        Self { first, state: Mutex::new(State { failures: 0, next: first, until: None }) }
    }

    /// How long it still rests.
    pub(crate) fn rests(&self, now: Instant) -> Option<Duration> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.until.filter(|until| *until > now).map(|until| until - now)
    }

    /// Counts a call that failed for good; true if a rest begins.
    pub(crate) fn failed(&self, now: Instant) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.failures = state.failures.saturating_add(1);
        // Calls that were under way when the rest began neither lengthen it nor the next one.
        let rests = state.until.is_some_and(|until| until > now);
        if self.first.is_zero() || rests || state.failures < FAILURES {
            return false;
        }
        state.until = Some(now + state.next);
        state.next = (state.next * 2).min(LONGEST.max(self.first));
        true
    }

    /// Counts a call that the provider answered.
    pub(crate) fn answered(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        *state = State { failures: 0, next: self.first, until: None };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn five_failures_in_a_row_begin_a_rest_that_doubles_up_to_a_quarter_of_an_hour() {
        let breaker = Breaker::new(MINUTE);
        let mut now = Instant::now();
        for _ in 0..4 {
            assert!(!breaker.failed(now));
        }
        breaker.answered();
        for _ in 0..4 {
            assert!(!breaker.failed(now));
        }
        for rest in [1, 2, 4, 8, 15, 15] {
            assert!(breaker.failed(now), "a rest of {rest} min");
            assert_eq!(breaker.rests(now), Some(MINUTE * rest));
            assert!(!breaker.failed(now), "what was under way changes nothing");
            now += MINUTE * rest;
            assert_eq!(breaker.rests(now), None);
        }
        breaker.answered();
        assert!(!breaker.failed(now));
    }

    #[test]
    fn without_a_rest_it_never_rests() {
        let (breaker, now) = (Breaker::new(Duration::ZERO), Instant::now());
        assert!((0..20).all(|_| !breaker.failed(now)));
        assert_eq!(breaker.rests(now), None);
    }
}
