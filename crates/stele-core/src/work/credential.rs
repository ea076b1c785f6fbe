//! The narrow credentials: keys of environments, tokens of sessions. DESIGN 6, spec/anthropic.md 12.1 and 17.1.

use serde::{Deserialize, Serialize};

use crate::access::{Permissions, SessionScope};
use crate::id::{EnvironmentId, EnvironmentKeyId, KeyId, SessionId, SessionTokenId, StoreId, WorkItemId};
use crate::records::{Kind, RecordId, Tag};
use crate::time::Timestamp;
use crate::work::attachment::Access;
use crate::work::document::{Document, kind};

/// A key of a self-hosted environment, as its workers hold it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvironmentKey {
    /// Its id.
    pub id: EnvironmentKeyId,
    /// The environment.
    pub environment: EnvironmentId,
    /// Its name, if it has one.
    pub name: Option<String>,
    /// The hash of its secret.
    pub hash: [u8; 32],
    /// When it was made.
    pub created_at: Timestamp,
}

/// A token of a session, as its sandbox holds it. What it reaches never changes, as attachments don't.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionToken {
    /// Its id.
    pub id: SessionTokenId,
    /// The session.
    pub session: SessionId,
    /// The item of the work queue that it was handed out with: it ends some time after that. One without an item ends
    /// with its session.
    pub item: Option<WorkItemId>,
    /// The environment of that item.
    pub environment: Option<EnvironmentId>,
    /// The attached stores.
    pub stores: Vec<(StoreId, Access)>,
    /// The API key that it was made with, whose revocation ends it; none where it was handed out with work.
    pub made_with: Option<KeyId>,
    /// The permissions of that key, as bits: it may do no more.
    pub permissions: u8,
    /// The hash of its secret.
    pub hash: [u8; 32],
    /// When it was made.
    pub created_at: Timestamp,
}

impl SessionToken {
    /// What it reaches.
    pub fn scope(&self) -> SessionScope {
        SessionScope {
            token: self.id,
            session: self.session,
            item: self.item,
            environment: self.environment,
            stores: self.stores.clone(),
            permissions: Permissions::from_bits(self.permissions),
        }
    }
}

/// The tag of an environment's keys.
pub fn keys_of(environment: EnvironmentId) -> Tag {
    Tag { name: 1, value: environment.as_bytes().to_vec() }
}

/// The tag of a session's tokens.
pub fn tokens_of(session: SessionId) -> Tag {
    Tag { name: 1, value: session.as_bytes().to_vec() }
}

impl Document for EnvironmentKey {
    const KIND: Kind = kind::ENVIRONMENT_KEY;

    fn record_id(&self) -> RecordId {
        *self.id.as_bytes()
    }

    fn created_at(&self) -> Timestamp {
        self.created_at
    }

    fn tags(&self) -> Vec<Tag> {
        vec![keys_of(self.environment)]
    }

    fn key(&self) -> Option<[u8; 32]> {
        Some(self.hash)
    }
}

impl Document for SessionToken {
    const KIND: Kind = kind::SESSION_TOKEN;

    fn record_id(&self) -> RecordId {
        *self.id.as_bytes()
    }

    fn created_at(&self) -> Timestamp {
        self.created_at
    }

    fn tags(&self) -> Vec<Tag> {
        vec![tokens_of(self.session)]
    }

    fn key(&self) -> Option<[u8; 32]> {
        Some(self.hash)
    }
}
