//! The port of records and logs, carried out by the writer and the readers.

use std::sync::Arc;

use stele_core::id::WorkspaceId;
use stele_core::list::Page;
use stele_core::records::{
    CommitError, Entry, EntryQuery, Kind, Record, RecordId, RecordQuery, RecordWrite, Records,
};
use stele_core::storage::{Answer, StorageError};
use stele_core::time::Timestamp;
use stele_core::watch::Watches;

use crate::queue::Lane;
use crate::record_reads as reads;
use crate::record_writes::{self, News};
use crate::storage::SqliteStorage;
use crate::writer::Needs;

impl Records for SqliteStorage {
    fn record(
        &self,
        workspace: WorkspaceId,
        kind: Kind,
        id: RecordId,
    ) -> Answer<'_, Result<Option<Record>, StorageError>> {
        Box::pin(self.readers.read(move |c| Ok(reads::one(c, workspace, kind, id)?)))
    }

    fn record_many(
        &self,
        workspace: WorkspaceId,
        kind: Kind,
        ids: Vec<RecordId>,
    ) -> Answer<'_, Result<Vec<Record>, StorageError>> {
        Box::pin(self.readers.read(move |c| Ok(reads::many(c, workspace, kind, &ids)?)))
    }

    fn record_by_key(&self, kind: Kind, key: [u8; 32]) -> Answer<'_, Result<Option<Record>, StorageError>> {
        Box::pin(self.readers.read(move |c| Ok(reads::by_key(c, kind, key)?)))
    }

    fn record_list(&self, query: RecordQuery) -> Answer<'_, Result<Page<Record>, StorageError>> {
        Box::pin(self.readers.read(move |c| Ok(reads::list(c, &query)?)))
    }

    fn record_due(
        &self,
        kind: Kind,
        now: Timestamp,
        limit: usize,
    ) -> Answer<'_, Result<Vec<Record>, StorageError>> {
        Box::pin(self.readers.read(move |c| Ok(reads::due(c, kind, now, limit)?)))
    }

    fn entries(&self, query: EntryQuery) -> Answer<'_, Result<Page<Entry>, StorageError>> {
        Box::pin(self.readers.read(move |c| Ok(reads::entries(c, &query)?)))
    }

    fn commit(&self, writes: Vec<RecordWrite>) -> Answer<'_, Result<(), CommitError>> {
        Box::pin(async move {
            let Some(first) = writes.first() else { return Ok(()) };
            let lane = Lane::Workspace(first.workspace());
            let needs = Needs { room: !writes.iter().all(RecordWrite::makes_room), scrub: false };
            let watches = self.watches.clone();
            let announce = move |news: &News| {
                news.iter().for_each(|(topic, position)| watches.announce(*topic, *position));
            };
            self.writer
                .write_and_announce(lane, needs, move |c| record_writes::commit(c, &writes), announce)
                .await?;
            Ok(())
        })
    }

    fn watches(&self) -> &Arc<Watches> {
        &self.watches
    }
}
