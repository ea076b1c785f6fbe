//! Timers: where the schedule of a trigger stands. spec/recursion.md 11.1 and 11.2.
//!
//! A timer is a record with a due time. Whoever looks at it moves it on and writes down the run in one commit, with the
//! revision read: of several servers one comes first, and the others have done nothing. SW-07.

use serde::{Deserialize, Serialize};

use crate::hash::Sha256;
use crate::id::{AutomationId, SessionId, TriggerId};
use crate::records::{Kind, RecordId, Tag};
use crate::time::Timestamp;
use crate::work::automation::{Overlap, Timing};
use crate::work::document::{Document, kind};

/// Most occasions that wait for a session to end.
const MOST_WAITING: usize = 100;
/// Between two looks at whether a session has ended that occasions wait for.
const LOOK_MILLIS: u64 = 5_000;
/// Most occasions that one step counts as missed.
const MOST_MISSED: usize = 500;

/// Where the schedule of a trigger stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timer {
    /// The automation.
    pub automation: AutomationId,
    /// The trigger.
    pub trigger: TriggerId,
    /// The revision of the automation that brought the trigger as it is.
    pub incarnation: u64,
    /// The next occasion; `None` while nothing is to come.
    pub next: Option<Timestamp>,
    /// When to look at it again.
    pub due: Option<Timestamp>,
    /// Occasions that wait for the session to end, the oldest first.
    pub waiting: Vec<Timestamp>,
    /// The session of the last run.
    pub last_session: Option<SessionId>,
    /// When the last run began.
    pub last_run_at: Option<Timestamp>,
    /// Occasions left out because a session was going on.
    pub skipped: u64,
    /// Occasions left out because they were too long ago.
    pub missed: u64,
    /// When it was made.
    pub created_at: Timestamp,
}

/// A run that is to begin now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// The occasion.
    pub occasion: Timestamp,
    /// Whether the session of the last run is cancelled first.
    pub cancels: bool,
}

impl Timer {
    /// A timer that does not run yet.
    pub fn new(automation: AutomationId, trigger: TriggerId, incarnation: u64, now: Timestamp) -> Self {
        Self {
            automation,
            trigger,
            incarnation,
            next: None,
            due: None,
            waiting: Vec::new(),
            last_session: None,
            last_run_at: None,
            skipped: 0,
            missed: 0,
            created_at: now,
        }
    }

    /// The id of a trigger's timer.
    pub fn id_of(automation: AutomationId, trigger: TriggerId) -> RecordId {
        let hash = Sha256::of(&[&b"timer"[..], automation.as_bytes(), trigger.as_bytes()].concat());
        let mut id = [0; 16];
        id.copy_from_slice(&hash.as_bytes()[..16]);
        id
    }

    /// The timer from now on: occasions that have passed are none.
    #[must_use]
    pub fn running(mut self, timing: &Timing, now: Timestamp) -> Self {
        self.next = timing.next_occasion(now);
        self.waiting.clear();
        self.due = self.next.map(|next| self.put_off(next, timing));
        self
    }

    /// The timer at rest.
    #[must_use]
    pub fn stopped(mut self) -> Self {
        (self.next, self.due) = (None, None);
        self.waiting.clear();
        self
    }

    /// When an occasion is due: put off by as much as comes out of the occasion itself, so that all servers agree.
    fn put_off(&self, occasion: Timestamp, timing: &Timing) -> Timestamp {
        let at = occasion.as_micros().to_be_bytes();
        let hash = Sha256::of(&[&self.record_id()[..], &at].concat());
        let mut bits = [0; 8];
        bits.copy_from_slice(&hash.as_bytes()[..8]);
        occasion.plus_millis(u64::from_be_bytes(bits) % (timing.jitter_millis() + 1))
    }

    /// Moves the timer on to `now`; at most one run begins. `going` says whether the session of the last run goes on.
    pub fn step(&self, timing: &Timing, now: Timestamp, going: bool) -> (Timer, Option<Start>) {
        let mut timer = self.clone();
        let start = timer.first_start(timing, now, going);
        let next = timer.next.map(|next| timer.put_off(next, timing));
        let look = (!timer.waiting.is_empty()).then(|| now.plus_millis(LOOK_MILLIS));
        timer.due = next.into_iter().chain(look).min();
        (timer, start)
    }

    fn first_start(&mut self, timing: &Timing, now: Timestamp, going: bool) -> Option<Start> {
        let overlap = timing.overlap.unwrap_or_default();
        let going = going && overlap != Overlap::AllowAll;
        if !going && !self.waiting.is_empty() {
            return Some(Start { occasion: self.waiting.remove(0), cancels: false });
        }
        for _ in 0..MOST_MISSED {
            let occasion = self.next?;
            let due = self.put_off(occasion, timing);
            if due > now {
                return None;
            }
            self.next = timing.next_occasion(occasion);
            if due.plus_millis(timing.catchup_millis()) < now {
                self.missed += 1;
                continue;
            }
            if !going {
                return Some(Start { occasion, cancels: false });
            }
            match overlap {
                Overlap::CancelOther => return Some(Start { occasion, cancels: true }),
                Overlap::BufferOne if self.waiting.is_empty() => self.waiting.push(occasion),
                Overlap::BufferAll if self.waiting.len() < MOST_WAITING => self.waiting.push(occasion),
                Overlap::Skip | Overlap::BufferOne | Overlap::BufferAll | Overlap::AllowAll => {
                    self.skipped += 1;
                }
            }
        }
        None
    }
}

/// The tag of an automation's timers.
pub fn timers_of(automation: AutomationId) -> Tag {
    Tag { name: 1, value: automation.as_bytes().to_vec() }
}

impl Document for Timer {
    const KIND: Kind = kind::TIMER;

    fn record_id(&self) -> RecordId {
        Self::id_of(self.automation, self.trigger)
    }

    fn created_at(&self) -> Timestamp {
        self.created_at
    }

    fn tags(&self) -> Vec<Tag> {
        vec![timers_of(self.automation)]
    }

    fn due_at(&self) -> Option<Timestamp> {
        self.due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: u64 = 60_000;

    fn timing(overlap: Overlap) -> Timing {
        Timing {
            cron: "* * * * *".into(),
            timezone: "UTC".into(),
            catchup_secs: None,
            jitter_secs: Some(0),
            overlap: Some(overlap),
            start_at: None,
            end_at: None,
        }
    }

    fn at(minute: u64) -> Timestamp {
        Timestamp::from_micros(0).plus_millis(minute * MINUTE)
    }

    fn timer(timing: &Timing) -> Timer {
        let (automation, trigger) = (AutomationId::from_bytes([1; 16]), TriggerId::from_bytes([2; 16]));
        Timer::new(automation, trigger, 1, at(0)).running(timing, at(0))
    }

    /// All that begins at `now`, one after the other; `going` as it is before the first.
    fn starts(timer: Timer, timing: &Timing, now: Timestamp, going: bool) -> (Timer, Vec<Timestamp>) {
        let (mut timer, mut going, mut all) = (timer, going, Vec::new());
        loop {
            let (after, start) = timer.step(timing, now, going);
            timer = after;
            let Some(start) = start else { return (timer, all) };
            going = true;
            all.push(start.occasion);
        }
    }

    #[test]
    fn sw_07_each_occasion_is_run_skipped_or_missed() {
        let timing = timing(Overlap::Skip);
        let (mut timer, mut run) = (timer(&timing), 0);
        // Nobody looks from the third minute to the twenty-fourth; sessions end at once.
        for minute in [1, 2, 3, 24, 25] {
            let (after, began) = starts(timer, &timing, at(minute), false);
            (timer, run) = (after, run + began.len() as u64);
        }
        assert_eq!((run, timer.skipped, timer.missed), (5, 15, 5));
        assert_eq!(run + timer.skipped + timer.missed, 25);
        assert_eq!(timer.due, Some(at(26)));
    }

    #[test]
    fn what_happens_while_a_session_goes_on() {
        let of = |overlap| {
            let timing = timing(overlap);
            starts(timer(&timing), &timing, at(3), true)
        };
        let (skip, began) = of(Overlap::Skip);
        assert_eq!((began.len(), skip.skipped, skip.waiting.len()), (0, 3, 0));
        let (one, began) = of(Overlap::BufferOne);
        assert_eq!((began.len(), one.skipped, one.waiting), (0, 2, vec![at(1)]));
        let (all, began) = of(Overlap::BufferAll);
        assert_eq!((began.len(), all.skipped, all.waiting.clone()), (0, 0, vec![at(1), at(2), at(3)]));
        assert_eq!(all.due, Some(at(3).plus_millis(LOOK_MILLIS)));
        let (_, start) = all.step(&timing(Overlap::BufferAll), at(3).plus_millis(LOOK_MILLIS), false);
        assert_eq!(start, Some(Start { occasion: at(1), cancels: false }));
        assert_eq!(of(Overlap::AllowAll).1, [at(1), at(2), at(3)]);
        let timing = timing(Overlap::CancelOther);
        let (_, start) = timer(&timing).step(&timing, at(1), true);
        assert_eq!(start, Some(Start { occasion: at(1), cancels: true }));
    }

    #[test]
    fn an_occasion_is_put_off_by_the_same_on_every_server_and_by_no_more_than_the_jitter() {
        let timing = Timing { jitter_secs: Some(10), ..timing(Overlap::Skip) };
        let timer = timer(&timing);
        let due = timer.due.expect("a minutely schedule goes on");
        assert!((at(1)..=at(1).plus_millis(10_000)).contains(&due));
        assert_eq!(timer.clone().running(&timing, at(0)).due, Some(due));
        assert_eq!(timer.step(&timing, Timestamp::from_micros(due.as_micros() - 1), false).1, None);
        assert!(timer.step(&timing, due, false).1.is_some());
    }

    #[test]
    fn a_schedule_begins_and_ends_where_it_is_said() {
        let timing = Timing { start_at: Some(at(5)), end_at: Some(at(6)), ..timing(Overlap::AllowAll) };
        let (over, began) = starts(timer(&timing), &timing, at(9), false);
        assert_eq!(began, [at(5), at(6)]);
        assert_eq!((over.next, over.due), (None, None));
    }
}
