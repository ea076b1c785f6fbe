//! Automations: sessions that are started by hand or by a schedule. spec/recursion.md 11.

use serde::{Deserialize, Serialize};

use crate::id::{AgentId, AgentVersionId, AutomationId, EnvironmentId, KeyId, TriggerId};
use crate::records::{Kind, RecordId};
use crate::text::Metadata;
use crate::time::Timestamp;
use crate::work::Fields;
use crate::work::attachment::Wanted;
use crate::work::document::{Document, kind};
use crate::work::schedule::{Schedule, ScheduleError};

/// Most curated stores of an automation: with the learned one they are as many as a session has.
pub const MAX_STORES: usize = 7;

/// What happens on an occasion while the session of the last one still goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Overlap {
    /// The occasion is left out.
    #[default]
    Skip,
    /// The first such occasion waits; further ones are left out.
    BufferOne,
    /// All such occasions wait.
    BufferAll,
    /// It starts a session all the same.
    AllowAll,
    /// It cancels the other session and starts its own.
    CancelOther,
}

impl Overlap {
    /// All of them.
    pub const ALL: [Overlap; 5] =
        [Self::Skip, Self::BufferOne, Self::BufferAll, Self::AllowAll, Self::CancelOther];

    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Skip => "skip",
            Self::BufferOne => "buffer_one",
            Self::BufferAll => "buffer_all",
            Self::AllowAll => "allow_all",
            Self::CancelOther => "cancel_other",
        }
    }

    /// The one of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|overlap| overlap.as_str() == name)
    }
}

/// When a trigger fires. What is not said has a default; it is shown as it was said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timing {
    /// Five fields of cron.
    pub cron: String,
    /// The name of an IANA time zone.
    pub timezone: String,
    /// How late an occasion may be made up for.
    pub catchup_secs: Option<u32>,
    /// By how much an occasion may be put off, so that not all come at once.
    pub jitter_secs: Option<u32>,
    /// What happens while the session of the last occasion goes on.
    pub overlap: Option<Overlap>,
    /// No occasion is before.
    pub start_at: Option<Timestamp>,
    /// No occasion is after.
    pub end_at: Option<Timestamp>,
}

impl Timing {
    /// The schedule of it.
    ///
    /// # Errors
    /// There is none; a definition that was accepted has one.
    pub fn schedule(&self) -> Result<Schedule, ScheduleError> {
        Schedule::parse(&self.cron, &self.timezone)
    }

    /// The first occasion after `after`.
    pub fn next_occasion(&self, after: Timestamp) -> Option<Timestamp> {
        let before_start = self.start_at.map(|start| Timestamp::from_micros(start.as_micros() - 1));
        let after = before_start.map_or(after, |before| before.max(after));
        let next = self.schedule().ok()?.next_occasion(after)?;
        self.end_at.is_none_or(|end| next <= end).then_some(next)
    }

    /// How late an occasion may be made up for, in milliseconds.
    pub fn catchup_millis(&self) -> u64 {
        u64::from(self.catchup_secs.unwrap_or(900)) * 1_000
    }

    /// By how much an occasion may be put off, in milliseconds.
    pub fn jitter_millis(&self) -> u64 {
        u64::from(self.jitter_secs.unwrap_or(10)) * 1_000
    }
}

/// Something that starts sessions by itself: a schedule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trigger {
    /// Its id, by which who defines the automation knows it.
    pub id: TriggerId,
    /// Whether it fires.
    pub enabled: bool,
    /// When.
    pub timing: Timing,
}

/// What an automation is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AutomationDefinition {
    /// Its name.
    pub name: String,
    /// Its agent.
    pub agent: AgentId,
    /// The version of the agent.
    pub agent_version: AgentVersionId,
    /// Where its sessions run.
    pub environment: EnvironmentId,
    /// The message that its sessions begin with.
    pub prompt: String,
    /// What starts it by itself.
    pub triggers: Vec<Trigger>,
    /// Pairs of its sessions.
    pub metadata: Option<Metadata>,
    /// Curated stores of its sessions, in order.
    pub stores: Vec<Wanted>,
    /// Further defaults of its runs, kept as they were sent.
    #[serde(default)]
    pub other_defaults: Fields,
}

/// An automation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Automation {
    /// Its id.
    pub id: AutomationId,
    /// What it is.
    pub definition: AutomationDefinition,
    /// Whether its triggers fire. It can be run by hand in any case.
    pub active: bool,
    /// 1 at first, +1 with each change.
    pub revision: u64,
    /// The key that made it: its sessions are started in that name.
    pub made_by: KeyId,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

impl Automation {
    /// The trigger of this id.
    pub fn trigger(&self, id: TriggerId) -> Option<&Trigger> {
        self.definition.triggers.iter().find(|trigger| trigger.id == id)
    }
}

impl Document for Automation {
    const KIND: Kind = kind::AUTOMATION;

    fn record_id(&self) -> RecordId {
        *self.id.as_bytes()
    }

    fn created_at(&self) -> Timestamp {
        self.created_at
    }
}
