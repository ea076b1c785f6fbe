//! The storage port, carried out by the lanes, the pool and the shared connections.

use std::sync::Arc;

use quick_cache::sync::Cache;
use stele_core::clock::{Clock, Random};
use stele_core::command::NewStore;
use stele_core::dump::StorePlace;
use stele_core::feed::{Changes, History, Wanted};
use stele_core::id::{KeyId, OrganizationId, StoreId, VersionId, WorkspaceId};
use stele_core::key::{ApiKey, KeyHash};
use stele_core::list::{Detail, MemoryEntry, MemoryQuery, Page, StoreFilter, StorePosition, VersionQuery};
use stele_core::model::{Actor, Memory, Store, VersionText};
use stele_core::storage::{
    Answer, Change, ChangeAll, Changed, ChangedAll, Error, InStore, Installation, KeyRecord, KnownBodies,
    MemoryRead, MemoryRef, Remains, Rows, Storage, StorageError, Swept, Workspace, WorkspacePatch,
};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;

use crate::announce::Announcer;
use crate::batch::{Prepared, PreparedAll};
use crate::connect::{Connected, Connector};
use crate::lanes::Lanes;
use crate::open::{Config, OpenError, reach};
use crate::points::Points;
use crate::pool::Pool;
use crate::rows::{self, Col};
use crate::shared::Shared;
use crate::tenancy::installation;
use crate::{feed, migrate, reads, restore};

/// Memories whose last head is remembered, so that a content that the caller has need not be sent.
const HINTS: usize = 100_000;

/// One database, as one process uses it.
pub struct PostgresStorage {
    pub(crate) shared: Arc<Shared>,
    new: bool,
    /// The tasks that tell and hear what was committed.
    heralds: [JoinHandle<()>; 3],
}

/// Begins to tell the other processes what is committed here, and to hear and look up what they commit.
fn heralds(shared: &Arc<Shared>, connector: Arc<Connector>) -> [JoinHandle<()>; 3] {
    let [tells, listens, looks] = [shared.clone(), shared.clone(), shared.clone()];
    [
        tokio::spawn(async move { tells.tell().await }),
        tokio::spawn(async move { listens.listen(&connector).await }),
        tokio::spawn(async move { looks.look().await }),
    ]
}

impl Drop for PostgresStorage {
    fn drop(&mut self) {
        self.heralds.iter().for_each(JoinHandle::abort);
    }
}

impl PostgresStorage {
    /// Connects, and brings the schema up to date.
    ///
    /// # Errors
    /// The server cannot be reached or will not do, or the database holds what this program does not know.
    pub async fn open(
        config: Config,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
    ) -> Result<Arc<Self>, OpenError> {
        let connector = Arc::new(Connector::new(&config.url, config.patience)?);
        let new = migrate::run(&mut reach(&config.url, &connector).await?).await?;
        let mut holder = [0; 16];
        random.fill(&mut holder);
        let points = || Points::new(connector.clone(), config.readers.max(1), config.patience);
        let shared = Shared {
            clock,
            random,
            limits: config.limits,
            compression: config.compression,
            patience: config.patience,
            pool: Pool::new(connector.clone(), config.connections.max(1), config.patience),
            points: points(),
            lists: points(),
            lanes: Lanes::default(),
            commits: Lanes::default(),
            tracker: TaskTracker::new(),
            sweeping: Mutex::default(),
            holder,
            announcer: Announcer::default(),
            heads: Cache::new(HINTS),
        };
        // Made ready now, they show what would else fail at every request.
        shared.points.connect().await?;
        shared.lists.connect().await?;
        let shared = Arc::new(shared);
        let heralds = heralds(&shared, connector);
        Ok(Arc::new(Self { shared, new, heralds }))
    }

    /// Whether the schema was made by this opening.
    pub fn is_new(&self) -> bool {
        self.new
    }

    /// Ends after what waits is done.
    pub async fn close(&self) {
        self.shared.lanes.close();
        self.shared.commits.close();
        self.shared.tracker.close();
        self.shared.tracker.wait().await;
        self.heralds.iter().for_each(JoinHandle::abort);
        self.shared.pool.close();
        self.shared.points.close();
        self.shared.lists.close();
    }
}

impl Storage for PostgresStorage {
    fn change(&self, change: Change) -> Answer<'_, Result<Changed, Error>> {
        Box::pin(async move {
            let contents = self.shared.encoded(std::slice::from_ref(&change.command)).await?;
            self.shared.lanes.change(&self.shared, Prepared { change, contents }).await
        })
    }

    fn change_all(&self, change: ChangeAll) -> Answer<'_, Result<ChangedAll, Error>> {
        Box::pin(async move {
            let contents = self.shared.encoded(change.changeset.commands()).await?;
            self.shared.lanes.change_all(&self.shared, PreparedAll { change, contents }).await
        })
    }

    fn store_create(
        &self,
        workspace: WorkspaceId,
        actor: Actor,
        new: NewStore,
    ) -> Answer<'_, Result<Store, Error>> {
        Box::pin(async move { Ok(self.shared.store_create(workspace, actor, &new).await?) })
    }

    fn store_by_id(
        &self,
        workspace: WorkspaceId,
        id: StoreId,
    ) -> Answer<'_, Result<Option<Store>, StorageError>> {
        Box::pin(async move {
            Ok(self.shared.points.read(|c| async move { reads::store(&c, workspace, id).await }).await?)
        })
    }

    fn store_list(
        &self,
        workspace: WorkspaceId,
        filter: StoreFilter,
        after: Option<StorePosition>,
        limit: usize,
    ) -> Answer<'_, Result<Page<Store>, StorageError>> {
        Box::pin(async move {
            let filter = &filter;
            let read =
                |c: Arc<Connected>| async move { reads::stores(&c, workspace, filter, after, limit).await };
            Ok(self.shared.lists.read(read).await?)
        })
    }

    fn memory_get(
        &self,
        workspace: WorkspaceId,
        store: StoreId,
        memory: MemoryRef,
        detail: Detail,
        known: Option<Arc<dyn KnownBodies>>,
    ) -> Answer<'_, Result<InStore<Option<MemoryRead>>, StorageError>> {
        Box::pin(async move { Ok(self.shared.memory_get((workspace, store), memory, detail, known).await?) })
    }

    fn memory_list(
        &self,
        workspace: WorkspaceId,
        store: StoreId,
        query: MemoryQuery,
    ) -> Answer<'_, Result<InStore<Page<MemoryEntry>>, StorageError>> {
        Box::pin(async move {
            let query = &query;
            let read = |c: Arc<Connected>| async move { reads::memories(&c, workspace, store, query).await };
            Ok(self.shared.lists.read(read).await?)
        })
    }

    fn version_by_id(
        &self,
        workspace: WorkspaceId,
        store: StoreId,
        id: VersionId,
        full: bool,
    ) -> Answer<'_, Result<InStore<Option<VersionText>>, StorageError>> {
        Box::pin(async move {
            let read =
                |c: Arc<Connected>| async move { reads::version(&c, workspace, store, id, full).await };
            Ok(self.shared.points.read(read).await?)
        })
    }

    fn version_list(
        &self,
        workspace: WorkspaceId,
        store: StoreId,
        query: VersionQuery,
    ) -> Answer<'_, Result<InStore<Page<VersionText>>, StorageError>> {
        Box::pin(async move { Ok(self.shared.version_list(workspace, store, &query).await?) })
    }

    fn changes(
        &self,
        workspace: WorkspaceId,
        store: StoreId,
        after: u64,
        limit: usize,
    ) -> Answer<'_, Result<Option<Changes>, StorageError>> {
        Box::pin(async move {
            let read =
                |c: Arc<Connected>| async move { feed::changes(&c, workspace, store, after, limit).await };
            Ok(self.shared.lists.read(read).await?)
        })
    }

    fn snapshot(
        &self,
        workspace: WorkspaceId,
        store: StoreId,
    ) -> Answer<'_, Result<InStore<Vec<Memory>>, StorageError>> {
        Box::pin(async move {
            let read = |c: Arc<Connected>| async move { feed::snapshot(&c, workspace, store).await };
            Ok(self.shared.lists.read(read).await?)
        })
    }

    fn contents(
        &self,
        workspace: WorkspaceId,
        store: StoreId,
        wanted: Vec<Wanted>,
        bytes: u64,
    ) -> Answer<'_, Result<InStore<Vec<Option<VersionText>>>, StorageError>> {
        Box::pin(async move {
            let wanted = &wanted;
            let read =
                |c: Arc<Connected>| async move { feed::contents(&c, workspace, store, wanted, bytes).await };
            Ok(self.shared.lists.read(read).await?)
        })
    }

    fn history(
        &self,
        workspace: WorkspaceId,
        store: StoreId,
        after: u64,
        limit: usize,
        bytes: u64,
    ) -> Answer<'_, Result<Option<History>, StorageError>> {
        Box::pin(async move {
            let place = (workspace, store);
            let read =
                |c: Arc<Connected>| async move { restore::history(&c, place, after, (limit, bytes)).await };
            Ok(self.shared.lists.read(read).await?)
        })
    }

    fn restore_begin(&self, store: Store) -> Answer<'_, Result<Remains, Error>> {
        Box::pin(async move { Ok(self.shared.restore_begin(&store).await?) })
    }

    fn restore_rows(&self, place: StorePlace, rows: Rows) -> Answer<'_, Result<(), Error>> {
        Box::pin(async move { Ok(self.shared.restore_rows(place, rows).await?) })
    }

    fn restore_end(&self, store: Store) -> Answer<'_, Result<Store, Error>> {
        Box::pin(async move { Ok(self.shared.restore_end(store).await?) })
    }

    fn restore_abandon(&self, place: StorePlace) -> Answer<'_, Result<(), StorageError>> {
        Box::pin(async move { Ok(self.shared.restore_abandon(place).await?) })
    }

    fn installation(&self) -> Answer<'_, Result<Option<Installation>, StorageError>> {
        Box::pin(async { Ok(self.shared.points.read(|c| async move { installation(&c).await }).await?) })
    }

    fn install(
        &self,
        organization: OrganizationId,
        workspace: Workspace,
        key: KeyRecord,
    ) -> Answer<'_, Result<Installation, StorageError>> {
        Box::pin(async move { Ok(self.shared.install(organization, &workspace, &key).await?) })
    }

    fn key_by_hash(&self, hash: KeyHash) -> Answer<'_, Result<Option<ApiKey>, StorageError>> {
        Box::pin(async move {
            let read = |c: Arc<Connected>| async move {
                let statement = &c.statements.key_by_hash;
                let row = c.client.query_opt(statement, &[&hash.as_bytes().as_slice()]).await?;
                row.as_ref().map(rows::api_key).transpose()
            };
            Ok(self.shared.points.read(read).await?)
        })
    }

    fn key_create(&self, record: KeyRecord) -> Answer<'_, Result<(), StorageError>> {
        Box::pin(async move { Ok(self.shared.key_create(&record).await?) })
    }

    fn key_list(&self, workspace: WorkspaceId) -> Answer<'_, Result<Vec<ApiKey>, StorageError>> {
        Box::pin(async move {
            let read = |c: Arc<Connected>| async move {
                let rows = c.client.query(&c.statements.key_list, &[&Col(workspace)]).await?;
                rows.iter().map(rows::api_key).collect()
            };
            Ok(self.shared.lists.read(read).await?)
        })
    }

    fn key_revoke(&self, workspace: WorkspaceId, id: KeyId) -> Answer<'_, Result<bool, StorageError>> {
        Box::pin(async move { Ok(self.shared.key_revoke(workspace, id).await?) })
    }

    fn workspace_create(&self, workspace: Workspace, key: KeyRecord) -> Answer<'_, Result<(), StorageError>> {
        Box::pin(async move { Ok(self.shared.workspace_create(&workspace, &key).await?) })
    }

    fn workspace_update(
        &self,
        id: WorkspaceId,
        patch: WorkspacePatch,
    ) -> Answer<'_, Result<Option<Workspace>, StorageError>> {
        Box::pin(async move { Ok(self.shared.workspace_update(id, &patch).await?) })
    }

    fn workspace_list(&self) -> Answer<'_, Result<Vec<Workspace>, StorageError>> {
        Box::pin(async move {
            let read = |c: Arc<Connected>| async move {
                let found = c.client.query(&c.statements.workspace_list, &[]).await?;
                found.iter().map(rows::workspace).collect()
            };
            Ok(self.shared.lists.read(read).await?)
        })
    }

    fn sweep(&self) -> Answer<'_, Result<Swept, StorageError>> {
        Box::pin(async { Ok(self.shared.sweep().await?) })
    }

    fn purge(&self) -> Answer<'_, Result<Swept, StorageError>> {
        Box::pin(async { Ok(self.shared.purge().await?) })
    }

    fn store_count(&self) -> Answer<'_, Result<u64, StorageError>> {
        Box::pin(async {
            let read = |c: Arc<Connected>| async move {
                let count: i64 = c.client.query_one(&c.statements.store_count, &[]).await?.try_get(0)?;
                Ok(count.unsigned_abs())
            };
            Ok(self.shared.lists.read(read).await?)
        })
    }

    fn ping(&self) -> Answer<'_, Result<(), StorageError>> {
        Box::pin(async {
            let read = |c: Arc<Connected>| async move {
                c.client.query_one(&c.statements.ping, &[]).await?;
                Ok(())
            };
            Ok(self.shared.points.read(read).await?)
        })
    }
}
