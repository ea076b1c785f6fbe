//! The port of records and logs, carried out by the pool and the shared connections.

use std::sync::Arc;

use stele_core::id::WorkspaceId;
use stele_core::list::Page;
use stele_core::records::{
    CommitError, Entry, EntryQuery, Kind, Record, RecordId, RecordQuery, RecordWrite, Records,
};
use stele_core::storage::{Answer, StorageError};
use stele_core::time::Timestamp;
use stele_core::watch::Watches;

use crate::connect::Connected;
use crate::record_reads as reads;
use crate::storage::PostgresStorage;

impl Records for PostgresStorage {
    fn record(
        &self,
        workspace: WorkspaceId,
        kind: Kind,
        id: RecordId,
    ) -> Answer<'_, Result<Option<Record>, StorageError>> {
        Box::pin(async move {
            let read = |c: Arc<Connected>| async move { reads::one(&c, workspace, kind, id).await };
            Ok(self.shared.points.read(read).await?)
        })
    }

    fn record_many(
        &self,
        workspace: WorkspaceId,
        kind: Kind,
        ids: Vec<RecordId>,
    ) -> Answer<'_, Result<Vec<Record>, StorageError>> {
        Box::pin(async move {
            let ids = &ids;
            let read = |c: Arc<Connected>| async move { reads::many(&c, workspace, kind, ids).await };
            Ok(self.shared.lists.read(read).await?)
        })
    }

    fn record_by_key(&self, kind: Kind, key: [u8; 32]) -> Answer<'_, Result<Option<Record>, StorageError>> {
        Box::pin(async move {
            let read = |c: Arc<Connected>| async move { reads::by_key(&c, kind, &key).await };
            Ok(self.shared.points.read(read).await?)
        })
    }

    fn record_list(&self, query: RecordQuery) -> Answer<'_, Result<Page<Record>, StorageError>> {
        Box::pin(async move {
            let query = &query;
            let read = |c: Arc<Connected>| async move { reads::list(&c, query).await };
            Ok(self.shared.lists.read(read).await?)
        })
    }

    fn record_due(
        &self,
        kind: Kind,
        now: Timestamp,
        limit: usize,
    ) -> Answer<'_, Result<Vec<Record>, StorageError>> {
        Box::pin(async move {
            let read = |c: Arc<Connected>| async move { reads::due(&c, kind, now, limit).await };
            Ok(self.shared.lists.read(read).await?)
        })
    }

    fn entries(&self, query: EntryQuery) -> Answer<'_, Result<Page<Entry>, StorageError>> {
        Box::pin(async move {
            let query = &query;
            let read = |c: Arc<Connected>| async move { reads::entries(&c, query).await };
            Ok(self.shared.lists.read(read).await?)
        })
    }

    fn commit(&self, writes: Vec<RecordWrite>) -> Answer<'_, Result<(), CommitError>> {
        Box::pin(async move { self.shared.commit(writes).await })
    }

    fn watches(&self) -> &Arc<Watches> {
        self.shared.announcer.watches()
    }
}
