//! Following a store, and reading much of it at once. DESIGN 7.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use tokio::sync::{Mutex, watch};

use super::Stele;
use crate::access::{Action, Caller, Resource};
use crate::feed::{Changes, Reader, Standing, Told, Wanted};
use crate::id::StoreId;
use crate::model::{Memory, VersionText};
use crate::refusal::Refusal;
use crate::storage::{At, Error};
use crate::watch::Watch;

/// The last page that a follower of a store read: of many who wait at its end, one reads and all tell.
///
/// It holds paths, which a redaction may take: that wakes all who hold it, and the next page replaces it.
#[derive(Clone, Default)]
pub struct LastPage(Arc<Mutex<Option<Page>>>);

pub(super) struct Page {
    after: u64,
    limit: usize,
    changes: Arc<Changes>,
}

/// Those of all stores that are followed.
pub(super) type Pages = std::sync::Mutex<HashMap<StoreId, Weak<Mutex<Option<Page>>>>>;

impl Page {
    /// Whether a reader at `standing` would read the same, who knows that the store has reached `position`.
    fn serves(&self, standing: Standing, limit: usize, position: u64) -> bool {
        let reached = self.changes.store.as_ref().map(|store| store.changed_at.as_micros().unsigned_abs());
        (self.after, self.limit) == (standing.after, limit)
            && reached.is_some_and(|reached| reached >= position)
    }
}

/// Most bytes of contents in one answer; the text that goes beyond is still in it.
const CONTENT_BYTES: u64 = 8 * 1024 * 1024;

impl Stele {
    /// The changes of a store behind a reader's standing, oldest first and without gaps, at most `limit`.
    ///
    /// # Errors
    /// No read permission, no such store, or [`Refusal::SequenceExpired`].
    pub async fn changes(
        &self,
        caller: &Caller,
        store: StoreId,
        standing: Standing,
        limit: usize,
        reader: Reader,
    ) -> Result<Changes, Error> {
        caller.may_in(store, Resource::Memory, Action::Read)?;
        let found = self.storage.changes(caller.workspace, store, standing.after, limit).await?;
        let changes = found.ok_or(Refusal::StoreNotFound(store))?;
        if changes.store.is_none() && reader == Reader::New {
            return Err(Refusal::StoreNotFound(store).into());
        }
        if self.can_tell(&changes, standing) {
            return Ok(changes);
        }
        Err(Error::refused(Refusal::SequenceExpired(store), Some(changes.sequence)))
    }

    /// Whether nothing is missing between where the reader stands and what is told.
    fn can_tell(&self, changes: &Changes, standing: Standing) -> bool {
        let ours = standing.epoch.is_none_or(|epoch| epoch == self.installation.epoch);
        // A reader ahead of the store has its sequence from another database, or from this one before a restore.
        let known = (changes.floor..=changes.sequence).contains(&standing.after);
        if !ours || !known {
            return false;
        }
        // Retention may have come between two looks of the back end. What is left of a deleted store has gaps.
        let mut sequences = changes.told.iter().map(Told::sequence).zip(standing.after + 1..);
        changes.store.is_none() || sequences.all(|(told, next)| told == next)
    }

    /// As [`Self::changes`] for one who follows the store and was told that it has reached `position`.
    ///
    /// # Errors
    /// The same.
    pub async fn changes_at(
        &self,
        caller: &Caller,
        store: StoreId,
        standing: Standing,
        limit: usize,
        (last, position): (&LastPage, u64),
    ) -> Result<Arc<Changes>, Error> {
        let mut last = last.0.lock().await;
        if let Some(page) = last.as_ref().filter(|page| page.serves(standing, limit, position)) {
            return Ok(page.changes.clone());
        }
        let changes = Arc::new(self.changes(caller, store, standing, limit, Reader::Following).await?);
        *last = Some(Page { after: standing.after, limit, changes: changes.clone() });
        Ok(changes)
    }

    /// The page that followers of a store share.
    pub fn last_page(&self, store: StoreId) -> LastPage {
        let mut pages = self.pages.lock().expect("no panic under the lock");
        if let Some(page) = pages.get(&store).and_then(Weak::upgrade) {
            return LastPage(page);
        }
        pages.retain(|_, page| page.strong_count() > 0);
        let page = LastPage::default();
        pages.insert(store, Arc::downgrade(&page.0));
        page
    }

    /// Waits for changes of a store that come after now. Subscribe first and read then, and nothing is missed.
    pub fn watch(&self, store: StoreId) -> Watch {
        self.storage.watches().subscribe(*store.as_bytes())
    }

    /// The live memories of a store by path, all of one moment.
    ///
    /// # Errors
    /// No read permission, or no such store.
    pub async fn snapshot(&self, caller: &Caller, store: StoreId) -> Result<At<Vec<Memory>>, Error> {
        caller.may_in(store, Resource::Memory, Action::Read)?;
        let found = self.storage.snapshot(caller.workspace, store).await?;
        Ok(found.ok_or(Refusal::StoreNotFound(store))?)
    }

    /// How many memories a store of the caller's workspace may hold.
    ///
    /// # Errors
    /// The storage's.
    pub async fn memories_cap(&self, caller: &Caller) -> Result<u64, Error> {
        let workspaces = self.storage.workspace_list().await?;
        let own = workspaces.into_iter().find(|workspace| workspace.id == caller.workspace);
        Ok(own.and_then(|own| own.max_memories_per_store).unwrap_or(self.limits.memories_per_store))
    }

    /// The texts of memories and versions, `None` for what is not there: those of the first of `wanted`, at least of
    /// one, as many as an answer has room for.
    ///
    /// # Errors
    /// No read permission, or no such store.
    pub async fn contents(
        &self,
        caller: &Caller,
        store: StoreId,
        wanted: Vec<Wanted>,
    ) -> Result<At<Vec<Option<VersionText>>>, Error> {
        caller.may_in(store, Resource::Memory, Action::Read)?;
        if wanted.iter().any(|wanted| matches!(wanted, Wanted::Version(_))) {
            caller.may_in(store, Resource::Version, Action::Read)?;
        }
        let found = self.storage.contents(caller.workspace, store, wanted, CONTENT_BYTES).await?;
        Ok(found.ok_or(Refusal::StoreNotFound(store))?)
    }

    /// Ends every stream and every long wait: the server stops.
    pub fn end_streams(&self) {
        self.ending.send_replace(true);
    }

    /// Says when streams are to end.
    pub fn ending(&self) -> watch::Receiver<bool> {
        self.ending.subscribe()
    }
}
