//! The things themselves: stores, memories, versions, who wrote them. DESIGN 2, spec/recursion.md 16.2.

use bytes::Bytes;

use crate::hash::Sha256;
use crate::id::{
    AgentId, KeyId, MemoryId, ServiceAccountId, SessionId, StoreId, UserId, VersionId, WorkspaceId,
};
use crate::path::MemoryPath;
use crate::text::{Description, Metadata, Name, Summary};
use crate::time::Timestamp;

/// Who wrote or redacted something. Recorded once and never rewritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Actor {
    /// A program with an API key.
    ApiKey(KeyId),
    /// A session, through whichever door.
    Session(SessionId),
    /// A person at the console.
    User(UserId),
    /// A workload identity.
    ServiceAccount(ServiceAccountId),
}

/// Who curates a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// People and agents write it.
    Curated,
    /// Stele writes it, by learning; nobody edits it by hand.
    Reflection,
}

/// Whether a store takes changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It does.
    Active,
    /// It is read-only for good.
    Archived,
}

/// A store's counters; they move with its memories, in the transaction of the change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Changes committed so far; orders versions and [`Mark`]s, which share it without gaps.
    pub sequence: u64,
    /// The newest sequence that retention removed; what changed up to there cannot be told any more. DESIGN 7.
    pub floor: u64,
    /// Live memories.
    pub memories: u64,
    /// Bytes of their contents together.
    pub bytes: u64,
    /// Versions kept.
    pub versions: u64,
}

/// A memory store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Store {
    /// Its id.
    pub id: StoreId,
    /// The workspace that owns it.
    pub workspace: WorkspaceId,
    /// Its name.
    pub name: Name,
    /// Directory name made from the first name; unique in the workspace, survives renames.
    pub slug: String,
    /// Its description.
    pub description: Description,
    /// Its metadata.
    pub metadata: Metadata,
    /// Who curates it.
    pub origin: Origin,
    /// The agent that it belongs to, if any.
    pub agent: Option<AgentId>,
    /// Who made it.
    pub created_by: Actor,
    /// When it was made.
    pub created_at: Timestamp,
    /// When its own fields last changed; memory writes don't move it.
    pub updated_at: Timestamp,
    /// When it or one of its memories last changed. Times of versions are minted after it.
    pub changed_at: Timestamp,
    /// When it became read-only.
    pub archived_at: Option<Timestamp>,
    /// Its counters.
    pub counters: Counters,
}

impl Store {
    /// Whether it takes changes.
    pub fn status(&self) -> Status {
        match self.archived_at {
            Some(_) => Status::Archived,
            None => Status::Active,
        }
    }
}

/// The current document at a path, without its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Its id.
    pub id: MemoryId,
    /// The store that it is in.
    pub store: StoreId,
    /// Its path.
    pub path: MemoryPath,
    /// Its head: the version that holds its content.
    pub version: VersionId,
    /// Hash of its content.
    pub content_sha256: Sha256,
    /// Bytes of its content.
    pub size_bytes: u64,
    /// When it was created.
    pub created_at: Timestamp,
    /// When its content, path or summary last changed.
    pub updated_at: Timestamp,
}

/// What happened to a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// It came to be.
    Created,
    /// Its content or summary changed, perhaps with its path.
    Updated,
    /// Only its path changed.
    Renamed,
    /// It was deleted.
    Deleted,
    /// It came back under its old id, after it had been deleted.
    Recreated,
}

impl Operation {
    /// All of them.
    pub const ALL: [Operation; 5] =
        [Self::Created, Self::Updated, Self::Renamed, Self::Deleted, Self::Recreated];
}

/// That a version's text is gone for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Redaction {
    /// Since when.
    pub at: Timestamp,
    /// On whose word.
    pub by: Actor,
}

/// What a version recorded of the memory, as it stood after the change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// Hash of the content.
    pub content_sha256: Sha256,
    /// Bytes of the content.
    pub size_bytes: u64,
}

/// One entry of a store's history, without its text. Never changes, save by redaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// Its id.
    pub id: VersionId,
    /// The store that it belongs to.
    pub store: StoreId,
    /// The memory that it is about; the memory may be gone.
    pub memory: MemoryId,
    /// Its place in the store's history.
    pub sequence: u64,
    /// What happened.
    pub operation: Operation,
    /// When; strictly increasing within a store.
    pub created_at: Timestamp,
    /// Who did it.
    pub author: Actor,
    /// The path after the change, or before a deletion; `None` once a redaction scrubbed it.
    pub path: Option<MemoryPath>,
    /// Hash and size; `None` on a deletion and once redacted.
    pub recorded: Option<Recorded>,
    /// The redaction, if it was redacted.
    pub redaction: Option<Redaction>,
}

/// A change of a store that takes a sequence and writes no version. It holds no text. DESIGN 7.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The store; it may be gone.
    pub store: StoreId,
    /// Its place in the store's history.
    pub sequence: u64,
    /// What happened.
    pub kind: MarkKind,
    /// When; strictly increasing within a store, versions included.
    pub created_at: Timestamp,
    /// Who did it.
    pub author: Actor,
}

/// What a [`Mark`] says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkKind {
    /// A version lost its text, or its path too.
    Redacted {
        /// The memory that it is about.
        memory: MemoryId,
        /// Which.
        version: VersionId,
    },
    /// The store became read-only.
    StoreArchived,
    /// The store is gone with all that was in it.
    StoreDeleted,
}

/// A memory with as much of its text as was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryText {
    /// The memory.
    pub memory: Memory,
    /// Its summary.
    pub summary: Summary,
    /// Its content: UTF-8, as it was sent.
    pub content: Bytes,
}

/// A version with its texts; they are `None` on a deletion, once redacted, or where they were not asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionText {
    /// The version.
    pub version: Version,
    /// The summary as it stood.
    pub summary: Option<Summary>,
    /// Why it was written, where a reason was given.
    pub reason: Option<String>,
    /// The content as it stood: UTF-8.
    pub content: Option<Bytes>,
}
