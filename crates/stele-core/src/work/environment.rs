//! Environments: where sessions run. spec/anthropic.md 11, spec/recursion.md 10.3.

use serde::{Deserialize, Serialize};

use crate::id::EnvironmentId;
use crate::records::{Kind, RecordId, Tag};
use crate::text::Metadata;
use crate::time::Timestamp;
use crate::work::document::{Document, kind};
use crate::work::{Dialect, Fields};

/// Who executes the tools of its sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hosting {
    /// Workers that take its sessions from the work queue.
    SelfHosted,
    /// Somebody else: its sessions are driven from outside.
    Elsewhere,
}

/// An environment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// Its id.
    pub id: EnvironmentId,
    /// The dialect that it was made through.
    pub made_through: Dialect,
    /// Its name.
    pub name: String,
    /// Its description.
    pub description: Option<String>,
    /// Who executes tools.
    pub hosting: Hosting,
    /// What else Anthropic says of an environment that is not self-hosted: networking, packages.
    #[serde(default)]
    pub config: Fields,
    /// Free pairs.
    #[serde(default)]
    pub metadata: Metadata,
    /// What only Recursion knows, kept as it was sent.
    #[serde(default)]
    pub extra: Fields,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// When it was archived: no new sessions, no changes.
    pub archived_at: Option<Timestamp>,
}

/// Environments that are not archived.
const OPEN: u16 = 1;

/// The tag of the environments that a list shows; `None` for all.
pub fn listed(include_archived: bool) -> Option<Tag> {
    (!include_archived).then(|| Tag { name: OPEN, value: Vec::new() })
}

impl Document for Environment {
    const KIND: Kind = kind::ENVIRONMENT;

    fn record_id(&self) -> RecordId {
        *self.id.as_bytes()
    }

    fn created_at(&self) -> Timestamp {
        self.created_at
    }

    fn tags(&self) -> Vec<Tag> {
        listed(self.archived_at.is_some()).into_iter().collect()
    }
}
