//! Moving a whole installation from one back end to another: rows of domain types, page by page, in an order that
//! both sides share. DESIGN 3.13 and 5.
//!
//! The calls block: copies are made by the command line, next to stopped servers.

use bytes::Bytes;

use crate::backup::{BackupRecord, RedactionPlace, RedactionRecord};
use crate::id::{KeyId, MemoryId, StoreId, WorkspaceId};
use crate::model::{Mark, Memory, Store, Version};
use crate::records::{Entry, Kind, Record, RecordId};
use crate::storage::{Installation, KeyRecord, StorageError, Workspace};
use crate::text::Summary;

/// How much there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Workspaces.
    pub workspaces: u64,
    /// Keys, revoked and expired ones too.
    pub keys: u64,
    /// Stores that are not deleted.
    pub stores: u64,
    /// Their live memories.
    pub memories: u64,
    /// Their versions.
    pub versions: u64,
    /// Their changes without a version.
    pub marks: u64,
    /// Records of all kinds.
    pub records: u64,
    /// Entries of logs that are not dropped.
    pub entries: u64,
}

/// A content as it is stored: encodings are the same in every back end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// How it is encoded.
    pub encoding: u8,
    /// The bytes.
    pub bytes: Bytes,
}

/// A version with its texts, the content as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionRow {
    /// The version.
    pub version: Version,
    /// Its summary.
    pub summary: Option<Summary>,
    /// Why it was written.
    pub reason: Option<String>,
    /// Its content.
    pub content: Option<Stored>,
}

/// A store by workspace and id.
pub type StorePlace = (WorkspaceId, StoreId);

/// A log by workspace and id.
pub type LogPlace = (WorkspaceId, RecordId);

/// A log that is not dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Log {
    /// Whose it is, and which.
    pub place: LogPlace,
    /// The sequence of its last entry.
    pub last: u64,
}

/// Reads everything, as of one moment. Pages hold at most `limit` rows, the empty one ends a list.
pub trait Dump {
    /// The installation; `None` if there is none.
    fn installation(&mut self) -> Result<Option<Installation>, StorageError>;
    /// How much there is.
    fn totals(&mut self) -> Result<Totals, StorageError>;
    /// All workspaces by id.
    fn workspaces(&mut self) -> Result<Vec<Workspace>, StorageError>;
    /// Keys by workspace and id.
    fn keys(
        &mut self,
        after: Option<(WorkspaceId, KeyId)>,
        limit: usize,
    ) -> Result<Vec<KeyRecord>, StorageError>;
    /// Stores by workspace and id.
    fn stores(&mut self, after: Option<StorePlace>, limit: usize) -> Result<Vec<Store>, StorageError>;
    /// Versions of a store by sequence.
    fn versions(
        &mut self,
        place: StorePlace,
        after: u64,
        limit: usize,
    ) -> Result<Vec<VersionRow>, StorageError>;
    /// Changes of a store without a version, by sequence.
    fn marks(&mut self, place: StorePlace, after: u64, limit: usize) -> Result<Vec<Mark>, StorageError>;
    /// Live memories of a store by id.
    fn memories(
        &mut self,
        place: StorePlace,
        after: Option<MemoryId>,
        limit: usize,
    ) -> Result<Vec<Memory>, StorageError>;
    /// Records by workspace, kind and id.
    fn records(
        &mut self,
        after: Option<(WorkspaceId, Kind, RecordId)>,
        limit: usize,
    ) -> Result<Vec<Record>, StorageError>;
    /// Logs by workspace and id.
    fn logs(&mut self, after: Option<LogPlace>, limit: usize) -> Result<Vec<Log>, StorageError>;
    /// Entries of a log by sequence.
    fn entries(&mut self, place: LogPlace, after: u64, limit: usize) -> Result<Vec<Entry>, StorageError>;
    /// Redactions by place.
    fn redactions(
        &mut self,
        after: Option<RedactionPlace>,
        limit: usize,
    ) -> Result<Vec<RedactionRecord>, StorageError>;
    /// All managed backups, oldest first.
    fn backups(&mut self) -> Result<Vec<BackupRecord>, StorageError>;
}

/// Fills an empty back end. Until [`Load::finish`] nothing of it can be seen by others, and what is dropped before
/// leaves nothing behind.
pub trait Load {
    /// Keeps workspaces.
    fn workspaces(&mut self, rows: &[Workspace]) -> Result<(), StorageError>;
    /// Keeps keys.
    fn keys(&mut self, rows: &[KeyRecord]) -> Result<(), StorageError>;
    /// Keeps stores with their counters.
    fn stores(&mut self, rows: &[Store]) -> Result<(), StorageError>;
    /// Keeps versions of a store.
    fn versions(&mut self, place: StorePlace, rows: &[VersionRow]) -> Result<(), StorageError>;
    /// Keeps changes of a store without a version.
    fn marks(&mut self, place: StorePlace, rows: &[Mark]) -> Result<(), StorageError>;
    /// Keeps live memories of a store, whose versions were kept before.
    fn memories(&mut self, place: StorePlace, rows: &[Memory]) -> Result<(), StorageError>;
    /// Keeps records.
    fn records(&mut self, rows: &[Record]) -> Result<(), StorageError>;
    /// Keeps logs, without their entries.
    fn logs(&mut self, rows: &[Log]) -> Result<(), StorageError>;
    /// Keeps entries of a log that was kept before.
    fn entries(&mut self, place: LogPlace, rows: &[Entry]) -> Result<(), StorageError>;
    /// Keeps redactions.
    fn redactions(&mut self, rows: &[RedactionRecord]) -> Result<(), StorageError>;
    /// Keeps managed backups.
    fn backups(&mut self, rows: &[BackupRecord]) -> Result<(), StorageError>;
    /// Makes it all durable, as this installation.
    fn finish(self: Box<Self>, installation: Installation) -> Result<(), StorageError>;
}
