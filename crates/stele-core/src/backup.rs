//! Backups: what is remembered of them and of redactions, and the ports of what makes them. DESIGN 3.3 and 14.
//!
//! A redaction is remembered for good, by ids alone, also after retention or a deleted store removed the version: a
//! backup may hold its text longer than the database does. The list of them only grows, so that how many of them a
//! backup does not know is a difference of two counts, whatever clocks and the order of commits did.

use std::path::PathBuf;

use crate::command::RedactedPath;
use crate::id::{BackupId, StoreId, VersionId, WorkspaceId};
use crate::model::Redaction;
use crate::storage::{Answer, Error, StorageError};
use crate::time::Timestamp;

/// A redaction that was carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RedactionRecord {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The store.
    pub store: StoreId,
    /// The version.
    pub version: VersionId,
    /// When the version was written.
    pub written_at: Timestamp,
    /// When and by whom it was redacted.
    pub redaction: Redaction,
    /// Whether the path went too.
    pub path: RedactedPath,
}

/// The place of a redaction in their list.
pub type RedactionPlace = (WorkspaceId, StoreId, VersionId);

impl RedactionRecord {
    /// Its place in the list.
    pub fn place(&self) -> RedactionPlace {
        (self.workspace, self.store, self.version)
    }
}

/// A backup that this installation made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupRecord {
    /// Its id.
    pub id: BackupId,
    /// The machine that it was written on.
    pub host: String,
    /// Its directory there, absolute.
    pub path: String,
    /// When it was made: it holds what was committed until then.
    pub made_at: Timestamp,
    /// When the newest version in it was written.
    pub newest_at: Option<Timestamp>,
    /// How many redactions of versions up to `newest_at` are carried out in it.
    pub redactions: u64,
    /// How many versions are in it.
    pub versions: u64,
    /// Bytes of its files.
    pub bytes: u64,
}

/// A backup, and how many redactions it does not know: their texts it may still hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupStanding {
    /// The backup.
    pub record: BackupRecord,
    /// Redactions, made since, of versions old enough to be in it.
    pub unapplied: u64,
}

/// What a back end remembers of redactions and backups.
pub trait Remembered: Send + Sync + 'static {
    /// Redactions by place, at most `limit`.
    fn redaction_list(
        &self,
        after: Option<RedactionPlace>,
        limit: usize,
    ) -> Answer<'_, Result<Vec<RedactionRecord>, StorageError>>;

    /// All managed backups, oldest first.
    fn backup_list(&self) -> Answer<'_, Result<Vec<BackupStanding>, StorageError>>;

    /// Remembers a backup; in place of an older entry with its id.
    fn backup_keep(&self, record: BackupRecord) -> Answer<'_, Result<(), StorageError>>;

    /// Forgets a backup; false if there is no such one.
    fn backup_forget(&self, id: BackupId) -> Answer<'_, Result<bool, StorageError>>;
}

/// What a backup is going through in this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It is being made.
    Making,
    /// It is being rewritten without what was redacted.
    Scrubbing,
    /// That ended well.
    Done,
    /// That failed, for this reason.
    Failed(String),
}

/// Why something about backups did not happen.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// Refused, or the storage failed.
    #[error(transparent)]
    Storage(#[from] Error),
    /// One thing at a time.
    #[error("another backup is being made or scrubbed; wait for it to end")]
    Busy,
    /// There is no such backup.
    #[error("backup not found: {0}")]
    NotFound(BackupId),
    /// It was written on another machine, whose files this one cannot reach.
    #[error("that backup was written on {0}: look after it there")]
    Elsewhere(String),
}

/// Who makes backups and looks after them: the program around the server, which alone touches files.
pub trait Keeper: Send + Sync + 'static {
    /// Begins a backup in a new directory below `to`, which must be there; answers with its id.
    fn begin(&self, to: PathBuf) -> Answer<'_, Result<BackupId, BackupError>>;

    /// Begins to rewrite a backup without what was redacted since.
    fn begin_scrub(&self, id: BackupId) -> Answer<'_, Result<(), BackupError>>;

    /// All managed backups, oldest first.
    fn list(&self) -> Answer<'_, Result<Vec<BackupStanding>, BackupError>>;

    /// What this process did last with a backup, if anything.
    fn progress(&self, id: BackupId) -> Option<Progress>;

    /// Forgets a backup, whose files are somebody else's business from now on.
    fn forget(&self, id: BackupId) -> Answer<'_, Result<(), BackupError>>;
}
