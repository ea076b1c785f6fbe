//! Following a store, and reading much of it at once. DESIGN 7.

use tokio::sync::watch;

use super::Stele;
use crate::access::{Action, Caller, Resource};
use crate::feed::{Changes, Reader, Standing, Told, Wanted};
use crate::id::StoreId;
use crate::model::{Memory, VersionText};
use crate::refusal::Refusal;
use crate::storage::{At, Error};
use crate::watch::Watch;

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
        caller.may(Resource::Memory, Action::Read).map_err(Refusal::from)?;
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
        // Retention may have come between two looks of the back end. What is left of a deleted store has gaps.
        let whole = changes.store.is_none()
            || changes
                .told
                .iter()
                .map(Told::sequence)
                .zip(standing.after + 1..)
                .all(|(told, next)| told == next);
        ours && known && whole
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
        caller.may(Resource::Memory, Action::Read).map_err(Refusal::from)?;
        let found = self.storage.snapshot(caller.workspace, store).await?;
        Ok(found.ok_or(Refusal::StoreNotFound(store))?)
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
        caller.may(Resource::Memory, Action::Read).map_err(Refusal::from)?;
        if wanted.iter().any(|wanted| matches!(wanted, Wanted::Version(_))) {
            caller.may(Resource::Version, Action::Read).map_err(Refusal::from)?;
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
