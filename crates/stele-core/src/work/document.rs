//! Documents and the records that keep them.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::id::WorkspaceId;
use crate::records::{Kind, Record, RecordId, RecordWrite, Tag};
use crate::storage::StorageError;
use crate::time::Timestamp;

/// The kinds of records. A number is never used again for something else.
pub mod kind {
    use crate::records::Kind;

    /// [`crate::work::agent::Agent`].
    pub const AGENT: Kind = Kind(10);
    /// [`crate::work::agent::AgentVersion`].
    pub const AGENT_VERSION: Kind = Kind(11);
    /// [`crate::work::environment::Environment`].
    pub const ENVIRONMENT: Kind = Kind(12);
    /// [`crate::work::session::Session`].
    pub const SESSION: Kind = Kind(13);
    /// [`crate::work::session::SessionState`].
    pub const SESSION_STATE: Kind = Kind(14);
    /// [`crate::work::item::WorkItem`].
    pub const WORK_ITEM: Kind = Kind(15);
    /// [`crate::work::credential::EnvironmentKey`].
    pub const ENVIRONMENT_KEY: Kind = Kind(16);
    /// [`crate::work::credential::SessionToken`].
    pub const SESSION_TOKEN: Kind = Kind(17);
    /// [`crate::work::automation::Automation`].
    pub const AUTOMATION: Kind = Kind(18);
    /// [`crate::work::timer::Timer`].
    pub const TIMER: Kind = Kind(19);
    /// [`crate::work::run::Run`].
    pub const RUN: Kind = Kind(20);
    /// [`crate::work::receipt::Receipt`].
    pub const RECEIPT: Kind = Kind(21);
    /// [`crate::models::spending::DaySpending`].
    pub const DAY_SPENDING: Kind = Kind(30);
    /// [`crate::work::console::ConsoleSession`].
    pub const CONSOLE_SESSION: Kind = Kind(40);
    /// [`crate::work::console::Person`].
    pub const PERSON: Kind = Kind(41);
    /// [`crate::work::console::KeyHolder`].
    pub const KEY_HOLDER: Kind = Kind(42);
}

/// What is kept as a record.
pub trait Document: Clone + Serialize + DeserializeOwned {
    /// Its kind.
    const KIND: Kind;

    /// The record's id.
    fn record_id(&self) -> RecordId;

    /// What orders lists of it.
    fn created_at(&self) -> Timestamp;

    /// What it is found by.
    fn tags(&self) -> Vec<Tag> {
        Vec::new()
    }

    /// The hash that no other document of its kind has.
    fn key(&self) -> Option<[u8; 32]> {
        None
    }

    /// When it is to be looked at next.
    fn due_at(&self) -> Option<Timestamp> {
        None
    }
}

/// A document as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept<D> {
    /// Its workspace.
    pub workspace: WorkspaceId,
    /// The revision read.
    pub revision: u64,
    /// The document.
    pub doc: D,
}

impl<D: Document> Kept<D> {
    /// The document in a record.
    ///
    /// # Errors
    /// It is none of this kind.
    pub fn of(record: &Record) -> Result<Self, StorageError> {
        let doc = serde_json::from_slice(&record.body).map_err(|_| {
            let id = uuid::Uuid::from_bytes(record.id);
            StorageError::Corrupt(format!("{id} of kind {}", record.kind.0))
        })?;
        Ok(Self { workspace: record.workspace, revision: record.revision, doc })
    }

    /// The write that puts `doc` in the place of what was read.
    pub fn replaced_by(&self, doc: &D) -> RecordWrite {
        put(self.workspace, doc, self.revision + 1)
    }

    /// The write that removes what was read.
    pub fn removed(&self) -> RecordWrite {
        RecordWrite::Delete {
            workspace: self.workspace,
            kind: D::KIND,
            id: self.doc.record_id(),
            revision: self.revision,
        }
    }
}

/// The write that makes a new document.
pub fn made<D: Document>(workspace: WorkspaceId, doc: &D) -> RecordWrite {
    put(workspace, doc, 1)
}

fn put<D: Document>(workspace: WorkspaceId, doc: &D, revision: u64) -> RecordWrite {
    RecordWrite::Put(Record {
        workspace,
        kind: D::KIND,
        id: doc.record_id(),
        revision,
        created_at: doc.created_at(),
        due_at: doc.due_at(),
        key: doc.key(),
        tags: doc.tags(),
        body: serde_json::to_vec(doc).expect("a document is always JSON").into(),
    })
}
