//! The storage port: what a back end does. DESIGN 5.
//!
//! Back ends hold no rules. A write loads a [`crate::decide::Situation`] inside its transaction, lets
//! [`crate::decide::decide`] judge it, applies the writes and is answered after the commit is durable.

use std::error::Error as StdError;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;

use crate::backup::RedactionRecord;
use crate::changeset::{Applied, Changeset};
pub use crate::command::MemoryRef;
use crate::command::{Command, NewStore};
use crate::decide::Outcome;
use crate::dump::StorePlace;
use crate::feed::{Changes, History, Past, Wanted};
use crate::id::{Epoch, KeyId, OrganizationId, StoreId, VersionId, WorkspaceId};
use crate::key::{ApiKey, KeyHash};
use crate::list::{Detail, MemoryEntry, MemoryQuery, Page, StoreFilter, StorePosition, VersionQuery};
use crate::model::{Actor, Memory, Store, VersionText};
use crate::records::Records;
use crate::refusal::Refusal;
use crate::text::{Name, Summary};
use crate::time::Timestamp;

/// The answer of a storage call, some time later.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What a back end could not do, as far as a caller can act on it.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// Too much waits already; a repeat a little later may pass.
    #[error("the server has too much to do; try again in a moment")]
    Overloaded,
    /// A redaction is carried out, but a reader kept the log from being emptied; a repeat ends it.
    #[error("the redaction is pending: old readers still hold the log; repeat the request")]
    RedactionPending,
    /// A store that is to be put back is being put back already, or a process that is gone had begun to: the rest of that
    /// goes by itself.
    #[error(
        "another restore of the memory store {store} is under way or was broken off; it may be tried again in {secs} s"
    )]
    Restoring {
        /// The store.
        store: StoreId,
        /// When a repeat may pass at the earliest.
        secs: u32,
    },
    /// The disk has no room for more.
    #[error("the disk is nearly full, so writes are refused; reads go on")]
    Full,
    /// The database cannot be reached or is closing.
    #[error("the storage is out of reach")]
    Unavailable(#[source] Option<Box<dyn StdError + Send + Sync>>),
    /// A record is damaged; the others are not.
    #[error("the stored record {0} is damaged")]
    Corrupt(String),
    /// Something that should not happen.
    #[error("the storage failed")]
    Internal(#[source] Box<dyn StdError + Send + Sync>),
}

/// Why a use case did not happen.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A rule refuses it.
    #[error("{refusal}")]
    Refused {
        /// Which, and of what.
        refusal: Refusal,
        /// The sequence of the store that was asked, where it is there.
        sequence: Option<u64>,
    },
    /// The storage could not.
    #[error(transparent)]
    Failed(#[from] StorageError),
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        Self::Refused { refusal, sequence: None }
    }
}

impl Error {
    /// The refusal by a store at `sequence`.
    pub fn refused(refusal: Refusal, sequence: Option<u64>) -> Self {
        Self::Refused { refusal, sequence }
    }
}

/// An answer about a store, and the store's sequence in the same snapshot: what follows from there on misses nothing.
/// DESIGN 7.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At<T> {
    /// The sequence of the store.
    pub sequence: u64,
    /// The answer.
    pub value: T,
}

impl<T> At<T> {
    /// The answer turned into another one.
    pub fn map<U>(self, turn: impl FnOnce(T) -> U) -> At<U> {
        At { sequence: self.sequence, value: turn(self.value) }
    }
}

/// What a store answers; `None` if it is unknown, deleted or of another workspace.
pub type InStore<T> = Option<At<T>>;

/// A change to carry out.
#[derive(Clone, Debug)]
pub struct Change {
    /// The caller's workspace.
    pub workspace: WorkspaceId,
    /// The store.
    pub store: StoreId,
    /// Who writes.
    pub actor: Actor,
    /// What.
    pub command: Command,
    /// Whether the answer is to bring the content of the memory as it then is.
    pub with_content: bool,
}

/// A change carried out, durably.
#[derive(Clone, Debug)]
pub struct Changed {
    /// The answer.
    pub outcome: Outcome,
    /// The content of the outcome's memory, if it was asked for.
    pub content: Option<Bytes>,
    /// The store's sequence afterwards.
    pub sequence: u64,
}

/// A changeset to carry out: all of it or nothing.
#[derive(Clone, Debug)]
pub struct ChangeAll {
    /// The caller's workspace.
    pub workspace: WorkspaceId,
    /// The store.
    pub store: StoreId,
    /// Who writes.
    pub actor: Actor,
    /// What.
    pub changeset: Changeset,
}

/// A changeset carried out, durably.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedAll {
    /// What became of each change, in order.
    pub applied: Vec<Applied>,
    /// The store's sequence afterwards.
    pub sequence: u64,
}

/// A memory that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemoryRead {
    /// Its head is this version, whose ready body was known: see [`KnownBodies`].
    Known(Bytes),
    /// The memory, with as much of its text as was asked for.
    Read {
        /// The memory.
        memory: Memory,
        /// Its summary, with `Detail::Summary` and `Full`.
        summary: Option<Summary>,
        /// Its content, with `Detail::Full`.
        content: Option<Bytes>,
    },
}

/// Ready response bodies by head version. A back end asks for one only after the read's own snapshot has named
/// the head, so that a body is never older than the database.
pub trait KnownBodies: Send + Sync {
    /// The body for this head, if it is known.
    fn body(&self, head: VersionId) -> Option<Bytes>;
}

/// What an installation is: made once; only a restore renews its epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Installation {
    /// The tenant; its id is also the first epoch.
    pub organization: OrganizationId,
    /// The first workspace, whose admins run the installation.
    pub first_workspace: WorkspaceId,
    /// The present life of the database.
    pub epoch: Epoch,
}

impl Installation {
    /// A new one, in its first epoch.
    pub fn new(organization: OrganizationId, first_workspace: WorkspaceId) -> Self {
        Self { organization, first_workspace, epoch: Epoch::from_bytes(*organization.as_bytes()) }
    }
}

/// A workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workspace {
    /// Its id.
    pub id: WorkspaceId,
    /// Its name.
    pub name: Name,
    /// When it was made.
    pub created_at: Timestamp,
    /// The cap of memories of each of its stores, where it differs from the server's.
    pub max_memories_per_store: Option<u64>,
}

/// A change of a workspace; `None` keeps a part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkspacePatch {
    /// New name.
    pub name: Option<Name>,
    /// New cap of memories a store; `Some(None)` goes back to the server's.
    pub max_memories_per_store: Option<Option<u64>>,
}

/// A key to keep, by the hash of its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRecord {
    /// The key.
    pub key: ApiKey,
    /// The hash of its secret.
    pub hash: KeyHash,
}

/// A back end, whose other part is [`Records`]. All lists are keysets; every id of another workspace is as good as
/// unknown.
pub trait Storage: Records {
    /// Carries out one change and answers once it is durable.
    fn change(&self, change: Change) -> Answer<'_, Result<Changed, Error>>;

    /// Carries out all changes in order in one transaction and answers once it is durable; the first refusal, as a
    /// [`Refusal::InChangeset`] with its index, leaves nothing of them.
    fn change_all(&self, change: ChangeAll) -> Answer<'_, Result<ChangedAll, Error>>;

    /// Makes a store.
    fn store_create(
        &self,
        workspace: WorkspaceId,
        actor: Actor,
        new: NewStore,
    ) -> Answer<'_, Result<Store, Error>>;

    /// The store, if the workspace has it.
    fn store_by_id(
        &self,
        workspace: WorkspaceId,
        id: StoreId,
    ) -> Answer<'_, Result<Option<Store>, StorageError>>;

    /// Stores of the workspace, newest first, at most `limit`.
    fn store_list(
        &self,
        workspace: WorkspaceId,
        filter: StoreFilter,
        after: Option<StorePosition>,
        limit: usize,
    ) -> Answer<'_, Result<Page<Store>, StorageError>>;

    /// A live memory.
    fn memory_get(
        &self,
        workspace: WorkspaceId,
        store: StoreId,
        memory: MemoryRef,
        detail: Detail,
        known: Option<Arc<dyn KnownBodies>>,
    ) -> Answer<'_, Result<InStore<Option<MemoryRead>>, StorageError>>;

    /// Live memories by path.
    fn memory_list(
        &self,
        workspace: WorkspaceId,
        store: StoreId,
        query: MemoryQuery,
    ) -> Answer<'_, Result<InStore<Page<MemoryEntry>>, StorageError>>;

    /// A version, with its content if `full`.
    fn version_by_id(
        &self,
        workspace: WorkspaceId,
        store: StoreId,
        id: VersionId,
        full: bool,
    ) -> Answer<'_, Result<InStore<Option<VersionText>>, StorageError>>;

    /// Versions, newest first.
    fn version_list(
        &self,
        workspace: WorkspaceId,
        store: StoreId,
        query: VersionQuery,
    ) -> Answer<'_, Result<InStore<Page<VersionText>>, StorageError>>;

    /// The changes of a store after a sequence, oldest first, at most `limit`; `None` if the workspace never had the
    /// store, or nothing is known of it any more.
    fn changes(
        &self,
        workspace: WorkspaceId,
        store: StoreId,
        after: u64,
        limit: usize,
    ) -> Answer<'_, Result<Option<Changes>, StorageError>>;

    /// The live memories of a store by path, all of one moment.
    fn snapshot(
        &self,
        workspace: WorkspaceId,
        store: StoreId,
    ) -> Answer<'_, Result<InStore<Vec<Memory>>, StorageError>>;

    /// The texts of memories and versions, `None` for what is not there: in order, as many until they are `bytes`
    /// together or more, at least one. None of them is older than the sequence.
    fn contents(
        &self,
        workspace: WorkspaceId,
        store: StoreId,
        wanted: Vec<Wanted>,
        bytes: u64,
    ) -> Answer<'_, Result<InStore<Vec<Option<VersionText>>>, StorageError>>;

    /// The history of a store after a sequence, oldest first, with all its texts: as many entries as are `bytes`
    /// together or `limit`, at least one. `None` for an unknown or deleted store.
    fn history(
        &self,
        workspace: WorkspaceId,
        store: StoreId,
        after: u64,
        limit: usize,
        bytes: u64,
    ) -> Answer<'_, Result<Option<History>, StorageError>>;

    /// Begins to put a store back with its ids; its counters do not count yet. Until [`Self::restore_end`] nobody sees it, and
    /// what is not ended is purged as a deleted store is: after [`Self::restore_abandon`], when the process is gone, or
    /// when a minute passes without a further call.
    ///
    /// Refused where the database has a store of this id, or is still removing one. Where one of this id is being put back, or
    /// was by a process that is gone, it fails with [`StorageError::Restoring`].
    fn restore_begin(&self, store: Store) -> Answer<'_, Result<Remains, Error>>;

    /// Keeps rows of a store that is put back, in slices between other work. Versions come before the memories that
    /// have them as their heads.
    fn restore_rows(&self, place: StorePlace, rows: Rows) -> Answer<'_, Result<(), Error>>;

    /// Ends it: from now on the store is there with these counters, under a slug of its own if its own is taken. What
    /// was left of a store of this id that was deleted, the mark of its deletion, goes.
    fn restore_end(&self, store: Store) -> Answer<'_, Result<Store, Error>>;

    /// Gives it up.
    fn restore_abandon(&self, place: StorePlace) -> Answer<'_, Result<(), StorageError>>;

    /// The installation, once it was made.
    fn installation(&self) -> Answer<'_, Result<Option<Installation>, StorageError>>;

    /// Makes the installation with its first workspace and key, unless there is one; answers with what there is.
    fn install(
        &self,
        organization: OrganizationId,
        workspace: Workspace,
        key: KeyRecord,
    ) -> Answer<'_, Result<Installation, StorageError>>;

    /// The key whose secret has this hash, revoked and expired ones too.
    fn key_by_hash(&self, hash: KeyHash) -> Answer<'_, Result<Option<ApiKey>, StorageError>>;

    /// Keeps a key.
    fn key_create(&self, record: KeyRecord) -> Answer<'_, Result<(), StorageError>>;

    /// The workspace's keys that are not revoked, oldest first.
    fn key_list(&self, workspace: WorkspaceId) -> Answer<'_, Result<Vec<ApiKey>, StorageError>>;

    /// Revokes a key; false if the workspace has no such key that works.
    fn key_revoke(&self, workspace: WorkspaceId, id: KeyId) -> Answer<'_, Result<bool, StorageError>>;

    /// Makes a workspace with its first key.
    fn workspace_create(&self, workspace: Workspace, key: KeyRecord) -> Answer<'_, Result<(), StorageError>>;

    /// Changes a workspace and answers with it as it then is; `None` if there is no such one.
    fn workspace_update(
        &self,
        id: WorkspaceId,
        patch: WorkspacePatch,
    ) -> Answer<'_, Result<Option<Workspace>, StorageError>>;

    /// All workspaces, oldest first.
    fn workspace_list(&self) -> Answer<'_, Result<Vec<Workspace>, StorageError>>;

    /// Removes, in small steps between other work, what has outlived its retention and what deleted stores and
    /// dropped logs left.
    fn sweep(&self) -> Answer<'_, Result<Swept, StorageError>>;

    /// The part of [`Self::sweep`] that removes what deleted stores and dropped logs left; costs nothing where there
    /// are none.
    fn purge(&self) -> Answer<'_, Result<Swept, StorageError>>;

    /// How many stores there are in all.
    fn store_count(&self) -> Answer<'_, Result<u64, StorageError>>;

    /// Whether it can serve: one cheap read.
    fn ping(&self) -> Answer<'_, Result<(), StorageError>>;
}

/// What the database still knows of a store that it had before and that is put back now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remains {
    /// Redactions of its versions: they hold for what is put back too. DESIGN 3.3.
    pub redactions: Vec<RedactionRecord>,
    /// The sequence that its deletion took, if that is still told.
    pub deleted_at: Option<u64>,
}

/// Rows of a store that is put back.
#[derive(Clone, Debug)]
pub enum Rows {
    /// Entries of its history, oldest first.
    Past(Vec<Past>),
    /// Live memories.
    Memories(Vec<Memory>),
}

/// What a sweep removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Versions past their retention.
    pub versions: u64,
    /// Deleted stores of which now nothing is left.
    pub stores: u64,
    /// Dropped logs of which now nothing is left.
    pub logs: u64,
}
