//! Sessions: one run of an agent. spec/anthropic.md 7, spec/recursion.md 10.5.
//!
//! [`Session`] is fixed when it is made, but for title, metadata and the like; [`SessionState`] is the small part that
//! moves with its events. Both are shown together.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::{AgentId, EnvironmentId, ResourceId, SessionId, StoreId, WorkItemId};
use crate::records::{Kind, RecordId, Tag};
use crate::text::Metadata;
use crate::time::Timestamp;
use crate::work::agent::AgentSnapshot;
use crate::work::attachment::Attachment;
use crate::work::document::{Document, kind};
use crate::work::{Dialect, Fields};

/// What a session does now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionStatus {
    /// It waits for input.
    Idle,
    /// The agent works.
    Running,
    /// The agent is about to go on, after a fault.
    Rescheduling,
    /// It has ended.
    Terminated,
}

impl SessionStatus {
    /// All of them.
    pub const ALL: [SessionStatus; 4] = [Self::Idle, Self::Running, Self::Rescheduling, Self::Terminated];

    /// Its name in Anthropic's dialect.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Running => "running",
            Self::Rescheduling => "rescheduling",
            Self::Terminated => "terminated",
        }
    }

    /// The status of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == name)
    }
}

/// How a session ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It did what it was to do, as far as anybody said.
    Completed,
    /// It failed.
    Failed {
        /// A machine-readable reason.
        code: String,
        /// What a person reads.
        message: String,
    },
    /// Somebody broke it off.
    Cancelled,
}

/// The end of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// When.
    pub at: Timestamp,
    /// How.
    pub outcome: Outcome,
}

/// Something that a session carries beside its events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Resource {
    /// A memory store.
    Store(Attachment),
    /// A file or repository: kept and shown, never fetched.
    Other {
        /// Its id.
        id: ResourceId,
        /// Its fields.
        fields: Fields,
        /// When it came.
        created_at: Timestamp,
    },
}

/// A session: what is fixed when it is made, and the few fields that its owner may change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// Its id.
    pub id: SessionId,
    /// The dialect that it was made through.
    pub made_through: Dialect,
    /// The agent as it was, with what the session overrides.
    pub agent: AgentSnapshot,
    /// Where it runs, if that was said.
    pub environment: Option<EnvironmentId>,
    /// Whether workers of that environment take it from its queue.
    pub self_hosted: bool,
    /// What it carries, in the order asked for.
    pub resources: Vec<Resource>,
    /// Its title.
    pub title: Option<String>,
    /// Free pairs.
    #[serde(default)]
    pub metadata: Metadata,
    /// Vaults, kept and shown.
    #[serde(default)]
    pub vaults: Vec<String>,
    /// The budget, kept and shown.
    #[serde(default)]
    pub budget: Option<Value>,
    /// What only Recursion knows, kept as it was sent.
    #[serde(default)]
    pub extra: Fields,
    /// When it was made.
    pub created_at: Timestamp,
    /// When one of these fields last changed.
    pub updated_at: Timestamp,
    /// When it was archived.
    pub archived_at: Option<Timestamp>,
}

impl Session {
    /// The stores attached, in order.
    pub fn attachments(&self) -> impl Iterator<Item = &Attachment> {
        self.resources.iter().filter_map(|resource| match resource {
            Resource::Store(attachment) => Some(attachment),
            Resource::Other { .. } => None,
        })
    }

    /// The log of its events. It has an id of its own, so that who waits for events is not woken by, and does not
    /// mistake, revisions of the session's records.
    pub fn log(&self) -> RecordId {
        log_of(self.id)
    }
}

/// Tokens counted over a session's model requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Read by the model.
    pub input_tokens: u64,
    /// Written by the model.
    pub output_tokens: u64,
    /// Read from a cache.
    pub cache_read_input_tokens: u64,
    /// Written into a cache.
    pub cache_creation_input_tokens: u64,
}

/// The part of a session that moves with its events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionState {
    /// The session.
    pub session: SessionId,
    /// When the session was made.
    pub created_at: Timestamp,
    /// What it does now.
    pub status: SessionStatus,
    /// Its end, once it has ended.
    pub end: Option<End>,
    /// The sequence of its last event; 0 before the first.
    pub last_sequence: u64,
    /// The time of its last event, or of its making: times of events are minted after it.
    pub last_at: Timestamp,
    /// Queued input up to this sequence has been taken up by the agent.
    pub taken_up: u64,
    /// The item in the work queue that is not stopped yet.
    pub live_item: Option<WorkItemId>,
    /// Why it is idle: Anthropic's `stop_reason`.
    #[serde(default)]
    pub stop_reason: Option<Value>,
    /// Tokens so far.
    #[serde(default)]
    pub usage: Usage,
}

impl SessionState {
    /// The state of a session just made.
    pub fn new(session: SessionId, now: Timestamp) -> Self {
        Self {
            session,
            created_at: now,
            status: SessionStatus::Idle,
            end: None,
            last_sequence: 0,
            last_at: now,
            taken_up: 0,
            live_item: None,
            stop_reason: None,
            usage: Usage::default(),
        }
    }
}

impl SessionState {
    /// Whether its work goes on, as far as anybody said: it has neither ended nor waits for input.
    pub fn is_going(&self) -> bool {
        match self.status {
            SessionStatus::Running | SessionStatus::Rescheduling => true,
            SessionStatus::Idle => self.stop_reason.is_none(),
            SessionStatus::Terminated => false,
        }
    }
}

/// A session with its state.
#[derive(Clone, Debug, PartialEq)]
pub struct Whole {
    /// The session.
    pub session: Session,
    /// Its state.
    pub state: SessionState,
}

/// How far a session is, as Recursion counts. spec/recursion.md 10.5.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It has not ended.
    Active,
    /// It has ended well, as far as anybody said.
    Completed,
    /// It has failed.
    Failed,
    /// Somebody broke it off.
    Cancelled,
}

impl Whole {
    /// How far it is.
    pub fn phase(&self) -> Phase {
        match self.state.end.as_ref().map(|end| &end.outcome) {
            None if self.has_ended() => Phase::Completed,
            None => Phase::Active,
            Some(Outcome::Completed) => Phase::Completed,
            Some(Outcome::Failed { .. }) => Phase::Failed,
            Some(Outcome::Cancelled) => Phase::Cancelled,
        }
    }

    /// When anything of it last changed.
    pub fn updated_at(&self) -> Timestamp {
        self.session.updated_at.max(self.state.last_at)
    }

    /// Whether it takes no more events.
    pub fn has_ended(&self) -> bool {
        self.session.archived_at.is_some() || self.state.status == SessionStatus::Terminated
    }
}

/// The log of a session's events.
pub fn log_of(session: SessionId) -> RecordId {
    flipped(session, 0x80)
}

/// The id of a session's state.
pub fn state_of(session: SessionId) -> RecordId {
    flipped(session, 0x40)
}

/// The id with bits of its version field flipped, which no minted id has.
fn flipped(session: SessionId, bits: u8) -> RecordId {
    let mut id = *session.as_bytes();
    id[6] ^= bits;
    id
}

/// What a list of sessions is narrowed to by the database; anything more is looked at one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Facet {
    /// All.
    All,
    /// Of an agent.
    Agent(AgentId),
    /// With a store attached.
    Store(StoreId),
    /// In an environment.
    Environment(EnvironmentId),
}

impl Facet {
    /// The tag that stands for it; `None` for everything.
    pub fn tag(self, include_archived: bool) -> Option<Tag> {
        let (name, value) = match self {
            Self::All if include_archived => return None,
            Self::All => (1, Vec::new()),
            Self::Agent(id) => (2, id.as_bytes().to_vec()),
            Self::Store(id) => (4, id.as_bytes().to_vec()),
            Self::Environment(id) => (6, id.as_bytes().to_vec()),
        };
        let open = self != Self::All && !include_archived;
        Some(Tag { name: name + u16::from(open), value })
    }
}

/// The tag of the states with this status.
pub fn with_status(status: SessionStatus) -> Tag {
    Tag { name: 1, value: status.as_str().into() }
}

impl Document for Session {
    const KIND: Kind = kind::SESSION;

    fn record_id(&self) -> RecordId {
        *self.id.as_bytes()
    }

    fn created_at(&self) -> Timestamp {
        self.created_at
    }

    fn tags(&self) -> Vec<Tag> {
        let facets = [Facet::All, Facet::Agent(self.agent.id)]
            .into_iter()
            .chain(self.environment.map(Facet::Environment))
            .chain(self.attachments().map(|attachment| Facet::Store(attachment.store)));
        let open = self.archived_at.is_none();
        facets.flat_map(|facet| [facet.tag(true), facet.tag(false).filter(|_| open)]).flatten().collect()
    }
}

impl Document for SessionState {
    const KIND: Kind = kind::SESSION_STATE;

    fn record_id(&self) -> RecordId {
        state_of(self.session)
    }

    fn created_at(&self) -> Timestamp {
        self.created_at
    }

    fn tags(&self) -> Vec<Tag> {
        vec![with_status(self.status)]
    }
}
