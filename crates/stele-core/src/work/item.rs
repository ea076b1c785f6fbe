//! Items of a self-hosted environment's work queue: the life of one stay in it, as pure rules. spec/anthropic.md 12.
//!
//! An item is *queued*, offered by a poll, acknowledged (*starting*), claimed by its first heartbeat (*active*), and at
//! some time *stopped*, perhaps after it was asked to stop (*stopping*). Whoever holds it has a lease, which each
//! heartbeat extends; when it passes, the item goes back into the queue, or ends where nothing is left to do.

use serde::{Deserialize, Serialize};

use crate::id::{EnvironmentId, SessionId, SessionTokenId, WorkItemId};
use crate::records::{Kind, RecordId, Tag};
use crate::text::Metadata;
use crate::time::Timestamp;
use crate::work::document::{Document, kind};
use crate::work::refusal::WorkRefusal;

/// The longest lease, and the one given where none is asked for, in seconds.
pub const LEASE_SECS: u64 = 300;
/// What a first heartbeat expects.
pub const NO_HEARTBEAT: &str = "NO_HEARTBEAT";
/// How long a token outlives its item, in seconds: the worker's last calls may be under way. spec/anthropic.md 12.2.
pub const TOKEN_GRACE_SECS: u64 = 60;

/// Where an item is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemState {
    /// It waits for a worker.
    Queued,
    /// A worker has taken it.
    Starting,
    /// A worker works on it.
    Active,
    /// Its worker is to end.
    Stopping,
    /// It is over.
    Stopped,
}

impl ItemState {
    /// Its name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Starting => "starting",
            Self::Active => "active",
            Self::Stopping => "stopping",
            Self::Stopped => "stopped",
        }
    }
}

/// One stay of a session in the queue of its environment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkItem {
    /// Its id.
    pub id: WorkItemId,
    /// The environment.
    pub environment: EnvironmentId,
    /// The session to work on.
    pub session: SessionId,
    /// Where it is.
    pub state: ItemState,
    /// Free pairs.
    #[serde(default)]
    pub metadata: Metadata,
    /// When it came into the queue first.
    pub created_at: Timestamp,
    /// When it was last offered by a poll and not acknowledged yet.
    pub offered_at: Option<Timestamp>,
    /// When it was acknowledged.
    pub acknowledged_at: Option<Timestamp>,
    /// When it was claimed.
    pub started_at: Option<Timestamp>,
    /// The last heartbeat, which its holder must name at the next.
    pub last_heartbeat: Option<Timestamp>,
    /// How long the holder's lease is, in seconds.
    pub lease_secs: u64,
    /// When the lease passes.
    pub lease_until: Option<Timestamp>,
    /// When it was first asked to stop.
    pub stop_requested_at: Option<Timestamp>,
    /// When it stopped.
    pub stopped_at: Option<Timestamp>,
    /// The token handed out with it, which counts alone.
    pub token: Option<SessionTokenId>,
    /// Whether its session is over, so that it need not go back into the queue.
    #[serde(default)]
    pub session_over: bool,
}

/// What a heartbeat answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beat {
    /// What the next heartbeat must name; empty if there never was one.
    pub last_heartbeat: String,
    /// Whether the lease goes on.
    pub extended: bool,
    /// The item's state.
    pub state: ItemState,
    /// The length of the lease, in seconds.
    pub ttl_seconds: u64,
}

impl WorkItem {
    /// An item for the session's work, in the queue.
    pub fn queued(id: WorkItemId, environment: EnvironmentId, session: SessionId, now: Timestamp) -> Self {
        Self {
            id,
            environment,
            session,
            state: ItemState::Queued,
            metadata: Metadata::default(),
            created_at: now,
            offered_at: None,
            acknowledged_at: None,
            started_at: None,
            last_heartbeat: None,
            lease_secs: LEASE_SECS,
            lease_until: None,
            stop_requested_at: None,
            stopped_at: None,
            token: None,
            session_over: false,
        }
    }

    /// The item as it is at `now`: a lease that has passed puts it back into the queue, or ends it.
    #[must_use]
    pub fn settled(&self, now: Timestamp) -> Self {
        if self.lease_until.is_none_or(|until| now < until) {
            return self.clone();
        }
        let over = self.session_over || self.state == ItemState::Stopping;
        let mut item = self.clone();
        if over {
            return item.ended(now);
        }
        item.state = ItemState::Queued;
        (item.offered_at, item.acknowledged_at, item.started_at) = (None, None, None);
        (item.last_heartbeat, item.lease_until) = (None, None);
        item
    }

    /// Whether a poll at `now` may offer it: one that was offered and not acknowledged only after a while.
    pub fn is_available(&self, now: Timestamp, reclaim_older_than_millis: u64) -> bool {
        let offered = |at: Timestamp| at.plus_millis(reclaim_older_than_millis) <= now;
        self.state == ItemState::Queued && self.offered_at.is_none_or(offered)
    }

    /// The item as a poll offers it, with the token that counts from now on.
    #[must_use]
    pub fn offered(&self, now: Timestamp, token: SessionTokenId) -> Self {
        Self { offered_at: Some(now), token: Some(token), ..self.clone() }
    }

    /// The item once a worker has acknowledged it; a repeat changes nothing.
    ///
    /// # Errors
    /// It is stopped.
    pub fn acknowledged(&self, now: Timestamp) -> Result<Self, WorkRefusal> {
        match self.state {
            ItemState::Stopped => Err(WorkRefusal::WorkItemStopped(self.id)),
            ItemState::Starting | ItemState::Active | ItemState::Stopping => Ok(self.clone()),
            ItemState::Queued => {
                let mut item = self.clone();
                item.state = ItemState::Starting;
                item.acknowledged_at = Some(now);
                item.lease_secs = LEASE_SECS;
                item.lease_until = Some(now.plus_millis(LEASE_SECS * 1_000));
                Ok(item)
            }
        }
    }

    /// A heartbeat of who holds it: who names the last one, or none where there was none.
    ///
    /// # Errors
    /// Somebody else's.
    pub fn beaten(&self, expected: &str, ttl_secs: u64, now: Timestamp) -> Result<(Self, Beat), WorkRefusal> {
        let mut item = self.clone();
        let holds = match (self.state, self.last_heartbeat) {
            (ItemState::Stopping | ItemState::Stopped, _) => {
                let beat = item.beat(false);
                return Ok((item, beat));
            }
            (ItemState::Queued, _) => false,
            (ItemState::Starting | ItemState::Active, None) => expected == NO_HEARTBEAT,
            (ItemState::Starting | ItemState::Active, Some(last)) => expected == last.to_string(),
        };
        if !holds {
            return Err(WorkRefusal::HeartbeatMismatch {
                state: self.state,
                last_heartbeat: self.last_heartbeat.map(|at| at.to_string()),
                ttl_seconds: self.lease_secs,
            });
        }
        let at = self.last_heartbeat.map_or(now, |last| now.after(last));
        item.state = ItemState::Active;
        item.started_at.get_or_insert(at);
        item.last_heartbeat = Some(at);
        item.lease_secs = ttl_secs.clamp(1, LEASE_SECS);
        item.lease_until = Some(at.plus_millis(item.lease_secs * 1_000));
        let beat = item.beat(true);
        Ok((item, beat))
    }

    fn beat(&self, extended: bool) -> Beat {
        Beat {
            last_heartbeat: self.last_heartbeat.map(|at| at.to_string()).unwrap_or_default(),
            extended,
            state: self.state,
            ttl_seconds: self.lease_secs,
        }
    }

    /// The item after a request to stop: at once where nobody holds it or it is forced, else when its worker hears of
    /// it. spec/anthropic.md 12.6.
    #[must_use]
    pub fn asked_to_stop(&self, force: bool, now: Timestamp) -> Self {
        let mut item = self.clone();
        match self.state {
            ItemState::Stopped => item,
            ItemState::Starting | ItemState::Active if !force => {
                item.state = ItemState::Stopping;
                item.stop_requested_at = Some(now);
                item
            }
            ItemState::Stopping if !force => item,
            ItemState::Queued | ItemState::Starting | ItemState::Active | ItemState::Stopping => {
                item.stop_requested_at.get_or_insert(now);
                item.ended(now)
            }
        }
    }

    /// The item after its session has ended: out of the queue; a worker that holds it ends by itself, syncs a last time
    /// and stops it, with the token that it has.
    #[must_use]
    pub fn session_ended(&self, now: Timestamp) -> Self {
        let item = Self { session_over: true, ..self.clone() };
        if item.state == ItemState::Queued { item.ended(now) } else { item }
    }

    fn ended(mut self, now: Timestamp) -> Self {
        self.state = ItemState::Stopped;
        self.stopped_at = Some(now);
        self.lease_until = None;
        self
    }

    /// Until when its token works; `None` for no end yet.
    pub fn token_until(&self) -> Option<Timestamp> {
        self.stopped_at.map(|at| at.plus_millis(TOKEN_GRACE_SECS * 1_000))
    }
}

/// The tag of an environment's items.
pub fn of_environment(id: EnvironmentId) -> Tag {
    Tag { name: 1, value: id.as_bytes().to_vec() }
}

/// The tag of the items in an environment's queue.
pub fn in_queue_of(id: EnvironmentId) -> Tag {
    Tag { name: 2, value: id.as_bytes().to_vec() }
}

/// The tag of a session's items.
pub fn of_session(id: SessionId) -> Tag {
    Tag { name: 3, value: id.as_bytes().to_vec() }
}

impl Document for WorkItem {
    const KIND: Kind = kind::WORK_ITEM;

    fn record_id(&self) -> RecordId {
        *self.id.as_bytes()
    }

    fn created_at(&self) -> Timestamp {
        self.created_at
    }

    fn tags(&self) -> Vec<Tag> {
        let queued = (self.state == ItemState::Queued).then(|| in_queue_of(self.environment));
        [of_environment(self.environment), of_session(self.session)].into_iter().chain(queued).collect()
    }

    /// When the lease passes; of a stopped one, when its token is to be removed.
    fn due_at(&self) -> Option<Timestamp> {
        self.lease_until.or_else(|| self.token_until().filter(|_| self.token.is_some()))
    }
}

#[cfg(test)]
mod tests;
