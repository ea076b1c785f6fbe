//! Records: the objects around memory (agents, environments, sessions, work items, tokens, automations, ...) as
//! documents, and the logs of their events. DESIGN 5 and 11.
//!
//! A back end keeps a record's bytes and finds it by its id, its key, its tags or its due time. What the bytes mean,
//! and every rule about them, is core's: a use case reads records, decides, and commits its writes together, each
//! with the revision that it has read; when another writer came first the commit changes nothing and the use case
//! begins again. So no rule and no lock lives in a back end, and both behave alike with any number of servers.

use std::sync::Arc;

use bytes::Bytes;

use crate::id::WorkspaceId;
use crate::list::{Created, Page};
use crate::storage::{Answer, StorageError};
use crate::time::Timestamp;
use crate::watch::Watches;

/// The 16 bytes of a record's id.
pub type RecordId = [u8; 16];

/// A kind of record: its number in the database. The kinds stand beside the code that owns them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind(pub u16);

/// One way to find records of a kind: a list can be narrowed to those that carry a tag.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag {
    /// What the tag says, a number of its owner's.
    pub name: u16,
    /// The value, at most 64 bytes.
    pub value: Vec<u8>,
}

/// A document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The workspace that it belongs to.
    pub workspace: WorkspaceId,
    /// Its kind.
    pub kind: Kind,
    /// Its id, unique within its kind and workspace.
    pub id: RecordId,
    /// 1 at first, +1 with each write.
    pub revision: u64,
    /// Orders lists, with the id; never changes: what a later write says of it counts for nothing.
    pub created_at: Timestamp,
    /// When a job is to be looked at next; `None` for what is not a job or has nothing to do.
    pub due_at: Option<Timestamp>,
    /// A hash that no other record of its kind has in any workspace: of a secret, of a name that is taken once.
    pub key: Option<[u8; 32]>,
    /// What it can be found by, each once.
    pub tags: Vec<Tag>,
    /// The document.
    pub body: Bytes,
}

/// One entry of a log, such as an event of a session. Never changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its place: 1, 2, 3 and so on without a gap.
    pub sequence: u64,
    /// Its id; that it is unique within the log is its maker's to see to.
    pub id: RecordId,
    /// When it was written.
    pub at: Timestamp,
    /// What it is, for narrowing: at most 64 characters.
    pub kind: String,
    /// The document.
    pub body: Bytes,
}

/// One write of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordWrite {
    /// Writes the record, whose `revision` is the new one: 1 for one that must not exist yet, else the one read + 1.
    Put(Record),
    /// Removes the record, which must still have this revision.
    Delete {
        /// Its workspace.
        workspace: WorkspaceId,
        /// Its kind.
        kind: Kind,
        /// Its id.
        id: RecordId,
        /// The revision that was read.
        revision: u64,
    },
    /// Adds entries to a log; their sequences must go on where the log ends.
    Append {
        /// The log's workspace.
        workspace: WorkspaceId,
        /// The log.
        log: RecordId,
        /// The entries, in order.
        entries: Vec<Entry>,
    },
    /// Removes a log, if it is there: gone from every read at once, from the disk in small steps by the sweep. Nothing
    /// is added to it again: ids are never reused.
    DropLog {
        /// The log's workspace.
        workspace: WorkspaceId,
        /// The log.
        log: RecordId,
    },
}

impl RecordWrite {
    /// The workspace that it concerns.
    pub fn workspace(&self) -> WorkspaceId {
        match self {
            Self::Put(record) => record.workspace,
            Self::Delete { workspace, .. }
            | Self::Append { workspace, .. }
            | Self::DropLog { workspace, .. } => *workspace,
        }
    }

    /// The record or log that it concerns.
    pub fn id(&self) -> RecordId {
        match self {
            Self::Put(record) => record.id,
            Self::Delete { id, .. } => *id,
            Self::Append { log, .. } | Self::DropLog { log, .. } => *log,
        }
    }

    /// Whether it may be carried out while the disk is nearly full.
    pub fn makes_room(&self) -> bool {
        matches!(self, Self::Delete { .. } | Self::DropLog { .. })
    }
}

/// The first and last sequence of entries that follow each other from 1 or later without a gap; `None` where they
/// don't, or where there are none.
pub fn span(entries: &[Entry]) -> Option<(u64, u64)> {
    let (first, last) = (entries.first()?.sequence, entries.last()?.sequence);
    let gapless = (first..).zip(entries).all(|(expected, entry)| entry.sequence == expected);
    (first > 0 && gapless).then_some((first, last))
}

/// Why a commit did not happen; nothing of it was written.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// The write with this index met another revision, a key that is taken, or a log that has gone on.
    #[error("another writer came first")]
    Conflict(usize),
    /// The storage could not.
    #[error(transparent)]
    Failed(#[from] StorageError),
}

/// The order of a list by creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Newest first.
    #[default]
    NewestFirst,
    /// Oldest first.
    OldestFirst,
}

/// What a list of records is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordQuery {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The kind.
    pub kind: Kind,
    /// Only those that carry this tag.
    pub tag: Option<Tag>,
    /// Only those made in this span.
    pub created: Created,
    /// The order.
    pub order: Order,
    /// Those after this place in the order.
    pub after: Option<(Timestamp, RecordId)>,
    /// At most so many.
    pub limit: usize,
}

/// What entries of a log are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryQuery {
    /// The log's workspace.
    pub workspace: WorkspaceId,
    /// The log.
    pub log: RecordId,
    /// Only these kinds; empty for all.
    pub kinds: Vec<String>,
    /// Only those written in this span.
    pub at: Created,
    /// The order, by sequence.
    pub order: Order,
    /// Those after this sequence in the order.
    pub after: Option<u64>,
    /// At most so many.
    pub limit: usize,
}

/// The part of a back end that keeps records and logs. Ids of another workspace are as good as unknown.
pub trait Records: Send + Sync + 'static {
    /// The record.
    fn record(
        &self,
        workspace: WorkspaceId,
        kind: Kind,
        id: RecordId,
    ) -> Answer<'_, Result<Option<Record>, StorageError>>;

    /// Those of the records that exist, in the order asked for; one that is asked for twice is answered twice.
    fn record_many(
        &self,
        workspace: WorkspaceId,
        kind: Kind,
        ids: Vec<RecordId>,
    ) -> Answer<'_, Result<Vec<Record>, StorageError>>;

    /// The record of any workspace with this key.
    fn record_by_key(&self, kind: Kind, key: [u8; 32]) -> Answer<'_, Result<Option<Record>, StorageError>>;

    /// Records by creation.
    fn record_list(&self, query: RecordQuery) -> Answer<'_, Result<Page<Record>, StorageError>>;

    /// Records of all workspaces that are due at `now` or before, the longest due first.
    fn record_due(
        &self,
        kind: Kind,
        now: Timestamp,
        limit: usize,
    ) -> Answer<'_, Result<Vec<Record>, StorageError>>;

    /// Entries of a log; none where there is no such log.
    fn entries(&self, query: EntryQuery) -> Answer<'_, Result<Page<Entry>, StorageError>>;

    /// Carries out all writes, in order, or none, and answers once they are durable. Afterwards the id of each record
    /// and log is announced to [`Self::watches`], with its revision or last sequence; of one that is removed, with the
    /// number after its last. A log and a record that are watched must not share an id: positions of one would hide
    /// those of the other.
    fn commit(&self, writes: Vec<RecordWrite>) -> Answer<'_, Result<(), CommitError>>;

    /// Where committed changes are announced, by whatever process made them: those of records and logs as
    /// [`Self::commit`] says, those of a store under its id with its [`Store::changed_at`] in microseconds, which every
    /// change moves on.
    ///
    /// [`Store::changed_at`]: crate::model::Store::changed_at
    fn watches(&self) -> &Arc<Watches>;
}
