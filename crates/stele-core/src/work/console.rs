//! Who is signed in at the console, and which person a key belongs to. DESIGN 6 and 13.

use serde::{Deserialize, Serialize};

use crate::hash::Sha256;
use crate::id::{ConsoleSessionId, KeyId, UserId, WorkspaceId};
use crate::records::{Kind, RecordId};
use crate::time::Timestamp;
use crate::work::document::{Document, kind};

/// How long a person stays signed in, in microseconds: two weeks.
pub const SIGNED_IN_MICROS: i64 = 14 * 24 * 60 * 60 * 1_000_000;

/// One stay at the console. It opens what the key opens that it was begun with, and ends with that key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConsoleSession {
    /// Its id.
    pub id: ConsoleSessionId,
    /// The hash of the key.
    pub key_hash: [u8; 32],
    /// The hash of the session's own secret, which the cookie holds.
    pub hash: [u8; 32],
    /// When the person signed in.
    pub created_at: Timestamp,
    /// When the stay ends by itself.
    pub expires_at: Timestamp,
}

/// A person, known by a name in a workspace: several keys may name the same one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Person {
    /// The id that history records.
    pub id: UserId,
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The name.
    pub name: String,
    /// When the first key named the person.
    pub created_at: Timestamp,
}

impl Person {
    /// What finds the person of that name.
    pub fn key_of(workspace: WorkspaceId, name: &str) -> [u8; 32] {
        *Sha256::of(&[&workspace.as_bytes()[..], name.as_bytes()].concat()).as_bytes()
    }
}

/// Which person a key names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyHolder {
    /// The key.
    pub key: KeyId,
    /// The person.
    pub person: UserId,
    /// The person's name.
    pub name: String,
    /// When the key was made.
    pub created_at: Timestamp,
}

impl Document for ConsoleSession {
    const KIND: Kind = kind::CONSOLE_SESSION;

    fn record_id(&self) -> RecordId {
        *self.id.as_bytes()
    }

    fn created_at(&self) -> Timestamp {
        self.created_at
    }

    fn key(&self) -> Option<[u8; 32]> {
        Some(self.hash)
    }

    fn due_at(&self) -> Option<Timestamp> {
        Some(self.expires_at)
    }
}

impl Document for Person {
    const KIND: Kind = kind::PERSON;

    fn record_id(&self) -> RecordId {
        *self.id.as_bytes()
    }

    fn created_at(&self) -> Timestamp {
        self.created_at
    }

    fn key(&self) -> Option<[u8; 32]> {
        Some(Self::key_of(self.workspace, &self.name))
    }
}

impl Document for KeyHolder {
    const KIND: Kind = kind::KEY_HOLDER;

    fn record_id(&self) -> RecordId {
        *self.key.as_bytes()
    }

    fn created_at(&self) -> Timestamp {
        self.created_at
    }
}
