//! Following a session's events, in whichever dialect, with what ends it. spec/anthropic.md 8.3, spec/recursion.md 10.1.
//!
//! The stream is pulled by the connection: it holds a place in the log, and reads on when the client has taken what was
//! there. So a slow reader costs nothing but its connection, which is cut off when nothing was taken for a minute, and
//! it never sees a gap.

use std::sync::Arc;
use std::time::Duration;

use stele_core::service::{EventFeed, FollowedBy, Stele};
use stele_core::storage::StorageError;
use tokio::sync::watch;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

/// Between two signs of life of a quiet stream.
const QUIET: Duration = Duration::from_secs(15);
/// Between two looks at whether the credential still works; a key is believed for 3 s, and 5 are promised.
const CREDENTIAL: Duration = Duration::from_millis(1_500);

/// One who follows a session's events.
pub struct Attendant {
    stele: Arc<Stele>,
    /// The credential that it came with.
    shown: String,
    feed: EventFeed,
    ending: watch::Receiver<bool>,
    quiet: Interval,
    looks: Interval,
}

/// What an attendant has to say.
pub enum Attended {
    /// These events, or that the session was deleted.
    Followed(FollowedBy),
    /// Nothing for a while.
    Quiet,
}

enum News {
    Followed(Result<FollowedBy, StorageError>),
    Quiet,
    Look,
}

impl Attendant {
    /// One who came with the credential `shown` and follows `feed`.
    pub fn new(stele: Arc<Stele>, shown: &str, feed: EventFeed) -> Self {
        let every = |period: Duration| {
            let mut ticks = interval_at(Instant::now() + period, period);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            ticks
        };
        let ending = stele.ending();
        Self { stele, shown: shown.to_owned(), feed, ending, quiet: every(QUIET), looks: every(CREDENTIAL) }
    }

    /// The server that is followed.
    pub fn stele(&self) -> &Stele {
        &self.stele
    }

    /// What happens next; `None` ends the stream: the credential works no more, the server stops, or the log cannot be
    /// read.
    pub async fn next(&mut self) -> Option<Attended> {
        loop {
            let news = tokio::select! {
                followed = self.feed.next() => News::Followed(followed),
                _ = self.quiet.tick() => News::Quiet,
                _ = self.looks.tick() => News::Look,
                _ = self.ending.wait_for(|ending| *ending) => return None,
            };
            match news {
                News::Followed(Ok(followed)) => return Some(Attended::Followed(followed)),
                News::Followed(Err(error)) => {
                    tracing::warn!(error = &error as &dyn std::error::Error, "a stream of events ends");
                    return None;
                }
                News::Quiet => return Some(Attended::Quiet),
                // A storage that is out of reach for a moment says nothing about the credential.
                News::Look if matches!(self.stele.authenticate(&self.shown).await, Ok(None)) => return None,
                News::Look => {}
            }
        }
    }
}
