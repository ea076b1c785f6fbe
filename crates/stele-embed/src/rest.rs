//! Leaving an endpoint alone that fails again and again, so that not every search waits for it in vain.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// After so many failures in a row it rests.
const FAILURES: u32 = 3;
/// The first rest; each one after it is twice as long.
const FIRST: Duration = Duration::from_secs(5);
const LONGEST: Duration = Duration::from_secs(300);

/// Whether an endpoint rests, and until when.
#[derive(Debug, Default)]
pub(crate) struct Rest(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    failures: u32,
    until: Option<Instant>,
}

impl Rest {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it is not to be asked at the moment.
    pub(crate) fn is_on(&self) -> bool {
        self.state().until.is_some_and(|until| Instant::now() < until)
    }

    /// It answered.
    pub(crate) fn end(&self) {
        *self.state() = State::default();
    }

    /// It failed, and perhaps said for how long it is to be left alone; how long it rests if it does.
    pub(crate) fn after_failure(&self, asked_for: Option<Duration>) -> Option<Duration> {
        let mut state = self.state();
        state.failures += 1;
        let doubled = state.failures.checked_sub(FAILURES);
        let rests = doubled.map(|times| FIRST.saturating_mul(1 << times.min(10)).min(LONGEST));
        let rests = rests.into_iter().chain(asked_for).max()?;
        state.until = Some(Instant::now() + rests);
        Some(rests)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_rests_longer_and_longer_until_it_answers() {
        let rest = Rest::default();
        let after = |rest: &Rest| rest.after_failure(None).map(|rests| rests.as_secs());
        assert_eq!([after(&rest), after(&rest)], [None, None]);
        assert!(!rest.is_on());
        assert_eq!([after(&rest), after(&rest), after(&rest)], [Some(5), Some(10), Some(20)]);
        assert!(rest.is_on());
        assert_eq!((0..20).filter_map(|_| after(&rest)).max(), Some(300));
        rest.end();
        assert!(!rest.is_on());
        assert_eq!(after(&rest), None);
        assert_eq!(rest.after_failure(Some(Duration::from_secs(7))).map(|rests| rests.as_secs()), Some(7));
        assert!(rest.is_on());
    }
}
