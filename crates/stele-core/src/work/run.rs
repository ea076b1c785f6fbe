//! Runs of automations: one start of a session, or the failure to start one. spec/recursion.md 11.5.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::{AutomationId, RunId, SessionId, TriggerId};
use crate::records::{Kind, RecordId, Tag};
use crate::time::Timestamp;
use crate::work::automation::Automation;
use crate::work::document::{Document, kind};

/// Why a run began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Cause {
    /// Somebody asked for it.
    Manual {
        /// What they sent along.
        payload: Option<Value>,
    },
    /// An occasion of a schedule.
    Schedule {
        /// The trigger.
        trigger: TriggerId,
        /// The revision of the automation that the trigger is of.
        incarnation: u64,
        /// The occasion.
        occasion: Timestamp,
    },
}

impl Cause {
    /// Its name.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Manual { .. } => "manual",
            Self::Schedule { .. } => "schedule",
        }
    }
}

/// What became of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Ran {
    /// It started this session.
    Created {
        /// The session.
        session: SessionId,
    },
    /// It could not start one.
    Failed {
        /// Why, for a person.
        message: String,
    },
}

impl Ran {
    /// Its name.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Created { .. } => "created",
            Self::Failed { .. } => "failed",
        }
    }
}

/// A run. Never changes: it is written down with the session that it starts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Its id.
    pub id: RunId,
    /// The automation, as it was.
    pub automation: Automation,
    /// Why it began.
    pub cause: Cause,
    /// What became of it.
    pub ran: Ran,
    /// When.
    pub created_at: Timestamp,
}

impl Run {
    /// The trigger that it comes from.
    pub fn trigger(&self) -> Option<TriggerId> {
        match self.cause {
            Cause::Manual { .. } => None,
            Cause::Schedule { trigger, .. } => Some(trigger),
        }
    }
}

/// The tag of an automation's runs.
pub fn runs_of(automation: AutomationId) -> Tag {
    Tag { name: 1, value: automation.as_bytes().to_vec() }
}

impl Document for Run {
    const KIND: Kind = kind::RUN;

    fn record_id(&self) -> RecordId {
        *self.id.as_bytes()
    }

    fn created_at(&self) -> Timestamp {
        self.created_at
    }

    fn tags(&self) -> Vec<Tag> {
        vec![runs_of(self.automation.id)]
    }
}
