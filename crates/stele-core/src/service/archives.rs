//! Whole stores: exporting one, importing files into one, putting one back. DESIGN 3.13 and 7.

use super::{First, Stele, Target};
use crate::access::{Action, Caller, Resource};
use crate::changeset::Changeset;
use crate::feed::{History, Past};
use crate::id::StoreId;
use crate::import::{OnConflict, Plan};
use crate::model::{Counters, Memory, Store};
use crate::refusal::Refusal;
use crate::restoration::Known;
use crate::storage::{At, ChangedAll, Error, Rows, StorageError};
use crate::time::Timestamp;

/// Entries of a history that are read at once, and how many bytes of texts.
const PAGE: (usize, u64) = (500, 1024 * 1024);
/// How often a store whose own fields change meanwhile is read again.
const TRIES: usize = 5;

/// What an export is of: a store with its live memories at one sequence.
#[derive(Clone, Debug)]
pub struct Exported {
    /// The store; its counters may be older.
    pub store: Store,
    /// The sequence.
    pub sequence: u64,
    /// The live memories at that sequence, by path.
    pub memories: Vec<Memory>,
}

impl Stele {
    /// Begins an export. What the memories are at its sequence, and the history up to it, can be read later: versions do
    /// not change, save by redaction and retention, so no snapshot of the database is held.
    ///
    /// # Errors
    /// No read permission, no key but a session's token, or no such store.
    pub async fn export_begin(&self, caller: &Caller, id: StoreId) -> Result<Exported, Error> {
        caller.may_in(id, Resource::Archive, Action::Read)?;
        let mut before = self.store_get(caller, id).await?;
        for _ in 0..TRIES {
            let tree = self.snapshot(caller, id).await?;
            let after = self.store_get(caller, id).await?;
            let same =
                Store { counters: after.counters, changed_at: after.changed_at, ..before.clone() } == after;
            if same {
                // What changed the store behind the tree's sequence is not in the export, and neither is its time.
                let as_of = if after.counters.sequence == tree.sequence { after } else { before };
                return Ok(Exported { store: as_of, sequence: tree.sequence, memories: tree.value });
            }
            before = after;
        }
        Err(StorageError::Overloaded.into())
    }

    /// The history of a store after a sequence, oldest first, some of it with all its texts.
    ///
    /// # Errors
    /// No read permission, no key but a session's token, or no such store.
    pub async fn history(&self, caller: &Caller, store: StoreId, after: u64) -> Result<History, Error> {
        caller.may_in(store, Resource::Archive, Action::Read)?;
        let found = self.storage.history(caller.workspace, store, after, PAGE.0, PAGE.1).await?;
        Ok(found.ok_or(Refusal::StoreNotFound(store))?)
    }

    /// Begins an import into a store, or plans the rest of one anew: says what is there, and at which sequence.
    ///
    /// # Errors
    /// No create permission, no such store, or one that takes no changes.
    pub async fn import_begin(
        &self,
        caller: &Caller,
        store: StoreId,
        on_conflict: OnConflict,
    ) -> Result<At<Plan>, Error> {
        caller.may_in(store, Resource::Archive, Action::Update)?;
        let needed = (Resource::Memory, Action::Create);
        self.precondition(caller, store, Target::Store, needed, First::State).await?;
        if on_conflict == OnConflict::Overwrite {
            caller.may_in(store, Resource::Memory, Action::Update)?;
        }
        let there = self.snapshot(caller, store).await?;
        let most = self.memories_cap(caller).await?;
        Ok(there.map(|there| Plan::new(there, on_conflict, most)))
    }

    /// Carries out a slice of an import that was checked whole.
    ///
    /// # Errors
    /// What [`Self::change_all`] refuses: somebody else wrote meanwhile.
    pub async fn import_slice(
        &self,
        caller: &Caller,
        store: StoreId,
        slice: Changeset,
    ) -> Result<ChangedAll, Error> {
        caller.may_in(store, Resource::Archive, Action::Update)?;
        self.change_all(caller, store, slice).await
    }

    /// Begins to put a store back. Its rows were looked through by [`crate::restoration::Check`] before, whose counters
    /// `store` has.
    ///
    /// # Errors
    /// Not an admin, the store is here already, or a cap.
    pub async fn restore_begin<'a>(
        &'a self,
        caller: &Caller,
        store: Store,
    ) -> Result<Restoration<'a>, Error> {
        caller.may(Resource::Archive, Action::Create).map_err(Refusal::from)?;
        let limit = self.memories_cap(caller).await?;
        if store.counters.memories > limit {
            return Err(Refusal::MemoryLimit { limit }.into());
        }
        // What is left of a deleted store of this id would be in the way.
        self.storage.purge().await?;
        let remains = self.storage.restore_begin(store.clone()).await?;
        let known = Known::new(remains.redactions);
        Ok(Restoration { stele: self, last: store.changed_at, store, known, deleted_at: remains.deleted_at })
    }
}

/// A store that is being put back.
pub struct Restoration<'a> {
    stele: &'a Stele,
    store: Store,
    known: Known,
    deleted_at: Option<u64>,
    /// The time of the last entry, or of the store's own last change, whichever is later.
    last: Timestamp,
}

impl Restoration<'_> {
    /// Keeps entries of the history, oldest first.
    ///
    /// # Errors
    /// The storage's.
    pub async fn past(&mut self, past: Vec<Past>) -> Result<(), Error> {
        self.last = past.last().map_or(self.last, |past| self.last.max(past.created_at()));
        let past = past.into_iter().map(|past| self.known.redact(past)).collect();
        self.rows(Rows::Past(past)).await
    }

    async fn rows(&self, rows: Rows) -> Result<(), Error> {
        self.stele.storage.restore_rows((self.store.workspace, self.store.id), rows).await
    }

    /// Keeps the live memories and ends: from now on the store is there.
    ///
    /// # Errors
    /// The storage's, or a cap.
    pub async fn end(&mut self, memories: Vec<Memory>) -> Result<Store, Error> {
        let mut counters = self.store.counters;
        let (mut live, mut deletions) = (Vec::with_capacity(memories.len()), Vec::new());
        for memory in memories {
            let at = Timestamp::from_micros(self.last.as_micros() + 1);
            let (sequence, random) = (counters.sequence + 1, self.stele.random.bits());
            let Some(deletion) = self.known.deletion(&memory, sequence, at, random) else {
                live.push(memory);
                continue;
            };
            self.last = deletion.version.created_at;
            counters = Counters {
                sequence,
                memories: counters.memories - 1,
                bytes: counters.bytes - memory.size_bytes,
                versions: counters.versions + 1,
                ..counters
            };
            deletions.push(Past::Version(Box::new(deletion)));
        }
        if !deletions.is_empty() {
            self.rows(Rows::Past(deletions)).await?;
        }
        self.rows(Rows::Memories(live)).await?;
        if let Some(deleted_at) = self.deleted_at {
            // Who followed the store to its deletion has sequences of that life: none of them means anything in this one.
            counters.sequence = counters.sequence.max(deleted_at) + 1;
            counters.floor = counters.sequence;
        }
        let store = Store { counters, changed_at: self.last, ..self.store.clone() };
        self.stele.storage.restore_end(store).await
    }

    /// Gives it up: nothing of it is left soon.
    ///
    /// # Errors
    /// The storage's; then it ends by itself a little later.
    pub async fn abandon(self) -> Result<(), StorageError> {
        let abandoned = self.stele.storage.restore_abandon((self.store.workspace, self.store.id)).await;
        (self.stele.purge_wanted)();
        abandoned
    }
}
