//! Which versions retention may remove. spec/anthropic.md 4.5, spec/recursion.md 7.3.

use crate::limits::Limits;
use crate::time::Timestamp;

/// What matters for one version, read in the transaction that would remove it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// When it was written.
    pub created_at: Timestamp,
    /// How many newer versions its memory has.
    pub newer: u64,
    /// When its memory was deleted; `None` while it lives.
    pub memory_deleted_at: Option<Timestamp>,
}

/// The time before which versions have outlived their retention.
pub fn cutoff(now: Timestamp, limits: &Limits) -> Timestamp {
    now.minus_secs(limits.version_retention_secs)
}

/// Whether the version may go: it is old, and neither among the newest of a live memory nor of a memory that was
/// deleted too short a time ago to be brought back.
pub fn expired(standing: Standing, now: Timestamp, limits: &Limits) -> bool {
    let cutoff = cutoff(now, limits);
    let old = standing.created_at < cutoff;
    match standing.memory_deleted_at {
        // The head has no newer version, so it is kept whatever `versions_kept` says.
        None => old && standing.newer >= limits.versions_kept.max(1),
        Some(deleted_at) => old && deleted_at < cutoff,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 86_400_000_000;

    fn standing(age_days: i64, newer: u64, deleted_days_ago: Option<i64>) -> Standing {
        let at = |days: i64| Timestamp::from_micros((100 - days) * DAY);
        Standing { created_at: at(age_days), newer, memory_deleted_at: deleted_days_ago.map(at) }
    }

    #[test]
    fn the_newest_of_live_memories_and_whatever_is_young_stay() {
        let now = Timestamp::from_micros(100 * DAY);
        let limits = Limits::default();
        let gone = |s| expired(s, now, &limits);
        assert!(gone(standing(40, 10, None)));
        assert!(!gone(standing(40, 9, None)), "one of the newest ten");
        assert!(!gone(standing(29, 50, None)), "young");
        assert!(gone(standing(40, 0, Some(40))));
        assert!(!gone(standing(90, 12, Some(3))), "deleted three days ago");
        let none_kept = Limits { versions_kept: 0, ..Limits::default() };
        assert!(!expired(standing(40, 0, None), now, &none_kept), "a head is never pruned");
    }
}
