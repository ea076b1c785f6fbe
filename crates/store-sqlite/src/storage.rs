//! The storage port, carried out by the writer and the readers.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::thread::JoinHandle;

use rusqlite::{Connection, OptionalExtension, params};
use stele_core::access::Grant;
use stele_core::clock::{Clock, Random};
use stele_core::command::{Command, NewStore};
use stele_core::dump::StorePlace;
use stele_core::feed::{Changes, History, Wanted};
use stele_core::id::{KeyId, OrganizationId, StoreId, VersionId, WorkspaceId};
use stele_core::key::{ApiKey, KeyHash};
use stele_core::limits::Limits;
use stele_core::list::{Detail, MemoryEntry, MemoryQuery, Page, StoreFilter, StorePosition, VersionQuery};
use stele_core::model::{Actor, Memory, Store, VersionText};
use stele_core::storage::{
    Answer, At, Change, ChangeAll, Changed, ChangedAll, Error, InStore, Installation, KeyRecord, KnownBodies,
    MemoryRead, MemoryRef, Remains, Rows, Storage, StorageError, Swept, Workspace, WorkspacePatch,
};
use stele_core::text::Content;
use stele_core::time::Timestamp;
use stele_core::watch::Watches;
use store_codec::Compression;

use crate::content::{LARGE_BYTES, encode};
use crate::fault::{Fault, Stop};
use crate::feed;
use crate::lock::{Locked, lock};
use crate::open::{COPY_DRAFT, Config, OpenError, RESTORE_DRAFT, make_data_dir, open_writer};
use crate::queue::Lane;
use crate::reader::Readers;
use crate::reads::{self, Stretch};
use crate::reclaim::{Progress, reclaim};
use crate::replace;
use crate::restore::{self, Kept};
use crate::rows::{self, Col, Cursor, Sql};
use crate::sweep::{self, Purge};
use crate::writer::{Needs, Writer};
use crate::writes::{self, Contents, Env};

/// Sequences looked through in one read snapshot where a filter may let few through.
const STRETCH: i64 = 5_000;

/// The embedded database of one data directory.
pub struct SqliteStorage {
    pub(crate) writer: Writer,
    pub(crate) readers: Readers,
    pub(crate) watches: Arc<Watches>,
    writer_thread: Mutex<Option<JoinHandle<()>>>,
    shared: Arc<Shared>,
    new: bool,
    _locked: Locked,
}

/// What a write needs on the writer thread.
struct Shared {
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    limits: Limits,
    compression: Compression,
    /// Whether the disk had room when the batch under way began.
    room: Arc<AtomicBool>,
}

impl Shared {
    /// What surrounds one write; the present is read on the writer thread, which is every store's lock.
    fn env(&self) -> Env<'_> {
        Env {
            now: self.clock.now(),
            random: [self.random.bits(), self.random.bits()],
            limits: &self.limits,
            room: self.room.load(Ordering::Relaxed),
        }
    }
}

impl SqliteStorage {
    /// Opens the data directory, making it if it is missing.
    ///
    /// # Errors
    /// It is in use, cannot be used, or holds what this program does not know.
    pub fn open(
        config: Config,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
    ) -> Result<Arc<Self>, OpenError> {
        make_data_dir(&config.data_dir)?;
        let locked = lock(&config.data_dir)?;
        for draft in [COPY_DRAFT, RESTORE_DRAFT] {
            replace::remove(&config.data_dir.join(draft))?;
        }
        let (connection, new) = open_writer(&config.data_dir)?;
        let gate = Arc::new(RwLock::new(()));
        let room = Arc::new(AtomicBool::new(true));
        let readers = Readers::start(&config.data_dir, config.readers, gate.clone())?;
        let (writer, thread) = Writer::start(connection, &config.data_dir, gate, room.clone())
            .map_err(|source| OpenError::Io { path: config.data_dir.clone(), source })?;
        let shared = Shared { clock, random, limits: config.limits, compression: config.compression, room };
        Ok(Arc::new(Self {
            writer,
            readers,
            watches: Arc::default(),
            writer_thread: Mutex::new(Some(thread)),
            shared: Arc::new(shared),
            new,
            _locked: locked,
        }))
    }

    /// Whether the database was made by this opening.
    pub fn is_new(&self) -> bool {
        self.new
    }

    /// Ends the threads after what waits is done, and merges the log.
    pub fn close(&self) {
        self.writer.close();
        if let Some(thread) = self.writer_thread.lock().expect("no panic under the lock").take() {
            // A panic was logged by the thread.
            let _ = thread.join();
        }
        self.readers.stop();
    }

    /// Tells who waits for the store that it changed, if it did.
    fn announce<T>(&self, store: StoreId) -> impl Fn(&(T, Option<Timestamp>)) + Send + use<T> {
        let (watches, topic) = (self.watches.clone(), *store.as_bytes());
        move |(_, changed_at)| {
            if let Some(at) = changed_at {
                watches.announce(topic, at.as_micros().unsigned_abs());
            }
        }
    }

    /// Contents of the commands as they are to be stored; many bytes are made ready on a blocking thread.
    async fn prepare(&self, commands: &[Command]) -> Result<Contents, StorageError> {
        let compression = self.shared.compression;
        let encoded = move |contents: Vec<Content>| -> Contents {
            let one = |content: &Content| (*content.sha256().as_bytes(), encode(content, compression));
            contents.iter().map(one).collect()
        };
        let contents: Vec<Content> = commands.iter().filter_map(Command::content).cloned().collect();
        if contents.iter().map(Content::size_bytes).sum::<u64>() <= LARGE_BYTES as u64 {
            return Ok(encoded(contents));
        }
        let made = tokio::task::spawn_blocking(move || encoded(contents)).await;
        made.map_err(|error| StorageError::Internal(Box::new(error)))
    }

    /// A write that concerns no memories.
    async fn write<T: Send + 'static>(
        &self,
        workspace: WorkspaceId,
        work: impl FnOnce(&Connection) -> Result<T, Stop> + Send + 'static,
    ) -> Result<T, StorageError> {
        Ok(self.writer.write(Lane::Workspace(workspace), Needs::default(), work).await?)
    }

    async fn sweep_versions(&self) -> Result<u64, StorageError> {
        let now = self.shared.clock.now();
        let (mut removed, mut after) = (0, None);
        loop {
            let shared = self.shared.clone();
            let read = move |c: &Connection| sweep::candidates(c, after, now, &shared.limits);
            let mut candidates = self.readers.read(read).await?;
            let Some(last) = candidates.last() else { break };
            after = Some(*last);
            while !candidates.is_empty() {
                let (shared, slice) = (self.shared.clone(), candidates.clone());
                let work = move |c: &Connection| sweep::remove(c, &slice, now, &shared.limits);
                let (done, gone) = self.writer.write(Lane::Background, Needs::default(), work).await?;
                removed += gone;
                candidates.drain(..done);
            }
        }
        Ok(removed)
    }

    async fn sweep_marks(&self) -> Result<(), StorageError> {
        let now = self.shared.clock.now();
        let mut done = false;
        while !done {
            let shared = self.shared.clone();
            let work = move |c: &Connection| sweep::remove_marks(c, now, &shared.limits);
            done = self.writer.write(Lane::Background, Needs::default(), work).await?;
        }
        Ok(())
    }

    /// Gives the space of what was removed back to the database.
    async fn reclaim(&self) -> Result<(), StorageError> {
        let needs = Needs { room: true, scrub: false };
        let mut progress = Progress::default();
        while !progress.done {
            let work = move |c: &Connection| reclaim(c, progress);
            progress = self.writer.write(Lane::Background, needs, work).await?;
        }
        Ok(())
    }

    /// Removes what deleted stores and dropped logs left.
    async fn purge_all(&self) -> Result<Swept, StorageError> {
        let (stores, logs) = (self.purge_each(sweep::purge).await?, self.purge_each(sweep::purge_log).await?);
        if stores > 0 || logs > 0 {
            // What is deleted for good leaves the log too.
            let needs = Needs { scrub: true, ..Needs::default() };
            self.writer.write(Lane::Background, needs, |_| Ok(())).await?;
        }
        Ok(Swept { stores, logs, ..Swept::default() })
    }

    async fn purge_each(&self, slice: fn(&Connection) -> Result<Purge, Stop>) -> Result<u64, StorageError> {
        let mut purged = 0;
        loop {
            match self.writer.write(Lane::Background, Needs::default(), slice).await? {
                Purge::Nothing => return Ok(purged),
                Purge::Some => {}
                Purge::All => purged += 1,
            }
        }
    }

    async fn versions(
        &self,
        workspace: WorkspaceId,
        store: StoreId,
        query: VersionQuery,
    ) -> Result<InStore<Page<VersionText>>, StorageError> {
        let newest = self.readers.read(move |c| Ok(reads::store_number(c, workspace, store)?)).await?;
        let Some((number, sequence)) = newest else { return Ok(None) };
        let newest = i64::try_from(sequence).unwrap_or(i64::MAX);
        let page = |items| Ok(Some(At { sequence, value: Page::cut(items, query.limit) }));
        let mut before = query
            .before
            .map_or(i64::MAX, |b| i64::try_from(b).unwrap_or(i64::MAX))
            .min(newest.saturating_add(1));
        let mut authors = query.filter.authors.iter();
        let first = authors.next();
        if authors.any(|other| Some(other) != first) {
            return page(Vec::new());
        }
        let mut items = Vec::new();
        // A memory's versions are found by its own index; else a snapshot looks through so many and no more.
        let stretch = if query.filter.memory.is_some() { i64::MAX } else { STRETCH };
        while before > 0 && items.len() <= query.limit {
            let from = before.saturating_sub(stretch).max(0);
            let limit = query.limit + 1 - items.len();
            let (filter, part) = (query.filter.clone(), Stretch { before, from, limit, full: query.full });
            let (found, next) =
                self.readers.read(move |c| reads::versions_on(c, number, store, &filter, part)).await?;
            items.extend(found);
            before = next;
        }
        page(items)
    }
}

impl Drop for SqliteStorage {
    fn drop(&mut self) {
        self.close();
    }
}

pub(crate) fn insert_workspace(connection: &Connection, workspace: &Workspace) -> Sql<()> {
    connection
        .prepare_cached(
            "INSERT INTO workspaces (id, name, created_at, max_memories_per_store) VALUES (?, ?, ?, ?)",
        )?
        .execute(params![
            Col(workspace.id),
            workspace.name.as_str(),
            Col(workspace.created_at),
            workspace.max_memories_per_store
        ])?;
    Ok(())
}

fn update_workspace(
    connection: &Connection,
    id: WorkspaceId,
    patch: &WorkspacePatch,
) -> Sql<Option<Workspace>> {
    let sql = format!("SELECT {} FROM workspaces WHERE id = ?", rows::WORKSPACE);
    let found = connection.prepare_cached(&sql)?.query_row([Col(id)], rows::workspace).optional()?;
    let Some(mut workspace) = found else { return Ok(None) };
    workspace.name = patch.name.clone().unwrap_or(workspace.name);
    workspace.max_memories_per_store =
        patch.max_memories_per_store.unwrap_or(workspace.max_memories_per_store);
    connection
        .prepare_cached("UPDATE workspaces SET name = ?, max_memories_per_store = ? WHERE id = ?")?
        .execute(params![workspace.name.as_str(), workspace.max_memories_per_store, Col(id)])?;
    Ok(Some(workspace))
}

pub(crate) fn insert_key(connection: &Connection, record: &KeyRecord) -> Sql<()> {
    let key = &record.key;
    let role = match key.grant {
        Grant::Role(role) => Some(role.as_str()),
        Grant::Permissions(_) => None,
    };
    connection
        .prepare_cached(
            "INSERT INTO api_keys (id, workspace, hash, name, role, permissions, contract, created_at, expires_at) \
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        )?
        .execute(params![
            Col(key.id),
            Col(key.workspace),
            record.hash.as_bytes(),
            key.name.as_str(),
            role,
            key.grant.permissions().bits(),
            key.contract.as_str(),
            Col(key.created_at),
            key.expires_at.map(Col)
        ])?;
    Ok(())
}

/// Keeps the one installation.
pub(crate) fn insert_installation(connection: &Connection, new: Installation) -> Sql<()> {
    connection.execute(
        "INSERT INTO installation (one, organization, first_workspace, epoch) VALUES (1, ?, ?, ?)",
        params![Col(new.organization), Col(new.first_workspace), Col(new.epoch)],
    )?;
    Ok(())
}

pub(crate) fn installation(connection: &Connection) -> Sql<Option<Installation>> {
    connection
        .prepare_cached("SELECT organization, first_workspace, epoch FROM installation")?
        .query_row([], |row| {
            let c = &mut Cursor::new(row);
            Ok(Installation { organization: c.col()?, first_workspace: c.col()?, epoch: c.col()? })
        })
        .optional()
}

impl Storage for SqliteStorage {
    fn change(&self, change: Change) -> Answer<'_, Result<Changed, Error>> {
        Box::pin(async move {
            let contents = self.prepare(std::slice::from_ref(&change.command)).await?;
            let needs = Needs { room: false, scrub: matches!(change.command, Command::RedactVersion { .. }) };
            let (lane, shared) = (Lane::Workspace(change.workspace), self.shared.clone());
            let announce = self.announce(change.store);
            let work = move |c: &Connection| writes::change(c, &change, &contents, &shared.env());
            Ok(self.writer.write_and_announce(lane, needs, work, announce).await?.0)
        })
    }

    fn change_all(&self, change: ChangeAll) -> Answer<'_, Result<ChangedAll, Error>> {
        Box::pin(async move {
            let contents = self.prepare(change.changeset.commands()).await?;
            let (lane, shared) = (Lane::Workspace(change.workspace), self.shared.clone());
            let announce = self.announce(change.store);
            let work = move |c: &Connection| writes::change_all(c, &change, &contents, &shared.env());
            Ok(self.writer.write_and_announce(lane, Needs::default(), work, announce).await?.0)
        })
    }

    fn store_create(
        &self,
        workspace: WorkspaceId,
        actor: Actor,
        new: NewStore,
    ) -> Answer<'_, Result<Store, Error>> {
        Box::pin(async move {
            let shared = self.shared.clone();
            let work = move |c: &Connection| writes::create_store(c, workspace, actor, &new, &shared.env());
            Ok(self.writer.write(Lane::Workspace(workspace), Needs::default(), work).await?)
        })
    }

    fn store_by_id(
        &self,
        workspace: WorkspaceId,
        id: StoreId,
    ) -> Answer<'_, Result<Option<Store>, StorageError>> {
        Box::pin(self.readers.read(move |c| Ok(reads::store(c, workspace, id)?)))
    }

    fn store_list(
        &self,
        workspace: WorkspaceId,
        filter: StoreFilter,
        after: Option<StorePosition>,
        limit: usize,
    ) -> Answer<'_, Result<Page<Store>, StorageError>> {
        Box::pin(self.readers.read(move |c| Ok(reads::stores(c, workspace, &filter, after, limit)?)))
    }

    fn memory_get(
        &self,
        workspace: WorkspaceId,
        store: StoreId,
        memory: MemoryRef,
        detail: Detail,
        known: Option<Arc<dyn KnownBodies>>,
    ) -> Answer<'_, Result<InStore<Option<MemoryRead>>, StorageError>> {
        Box::pin(self.readers.read(move |c| reads::memory(c, workspace, store, &memory, detail, known)))
    }

    fn memory_list(
        &self,
        workspace: WorkspaceId,
        store: StoreId,
        query: MemoryQuery,
    ) -> Answer<'_, Result<InStore<Page<MemoryEntry>>, StorageError>> {
        Box::pin(self.readers.read(move |c| reads::memories(c, workspace, store, &query)))
    }

    fn version_by_id(
        &self,
        workspace: WorkspaceId,
        store: StoreId,
        id: VersionId,
        full: bool,
    ) -> Answer<'_, Result<InStore<Option<VersionText>>, StorageError>> {
        Box::pin(self.readers.read(move |c| reads::version(c, workspace, store, id, full)))
    }

    fn version_list(
        &self,
        workspace: WorkspaceId,
        store: StoreId,
        query: VersionQuery,
    ) -> Answer<'_, Result<InStore<Page<VersionText>>, StorageError>> {
        Box::pin(self.versions(workspace, store, query))
    }

    fn changes(
        &self,
        workspace: WorkspaceId,
        store: StoreId,
        after: u64,
        limit: usize,
    ) -> Answer<'_, Result<Option<Changes>, StorageError>> {
        Box::pin(self.readers.read(move |c| feed::changes(c, workspace, store, after, limit)))
    }

    fn snapshot(
        &self,
        workspace: WorkspaceId,
        store: StoreId,
    ) -> Answer<'_, Result<InStore<Vec<Memory>>, StorageError>> {
        Box::pin(self.readers.read(move |c| feed::snapshot(c, workspace, store)))
    }

    fn contents(
        &self,
        workspace: WorkspaceId,
        store: StoreId,
        wanted: Vec<Wanted>,
        bytes: u64,
    ) -> Answer<'_, Result<InStore<Vec<Option<VersionText>>>, StorageError>> {
        Box::pin(self.readers.read(move |c| feed::contents(c, workspace, store, &wanted, bytes)))
    }

    fn history(
        &self,
        workspace: WorkspaceId,
        store: StoreId,
        after: u64,
        limit: usize,
        bytes: u64,
    ) -> Answer<'_, Result<Option<History>, StorageError>> {
        Box::pin(self.readers.read(move |c| restore::history(c, workspace, store, after, (limit, bytes))))
    }

    fn restore_begin(&self, store: Store) -> Answer<'_, Result<Remains, Error>> {
        let shared = self.shared.clone();
        let work = move |c: &Connection| restore::begin(c, &store, &shared.limits);
        Box::pin(async move {
            Ok(self.writer.write(Lane::Background, Needs { room: true, scrub: false }, work).await?)
        })
    }

    fn restore_rows(&self, place: StorePlace, rows: Rows) -> Answer<'_, Result<(), Error>> {
        Box::pin(async move {
            let needs = Needs { room: true, scrub: false };
            match rows {
                Rows::Past(past) => {
                    let compression = self.shared.compression;
                    let made = tokio::task::spawn_blocking(move || {
                        restore::slices(past.into_iter().map(|past| Kept::of(past, compression)).collect())
                    });
                    let slices = made.await.map_err(|error| StorageError::Internal(Box::new(error)))?;
                    for slice in slices {
                        let work = move |c: &Connection| restore::keep(c, place, &slice);
                        self.writer.write(Lane::Background, needs, work).await?;
                    }
                }
                Rows::Memories(memories) => {
                    for slice in restore::slices_of_memories(&memories) {
                        let work = move |c: &Connection| restore::keep_memories(c, place, &slice);
                        self.writer.write(Lane::Background, needs, work).await?;
                    }
                }
            }
            Ok(())
        })
    }

    fn restore_end(&self, store: Store) -> Answer<'_, Result<Store, Error>> {
        Box::pin(async move {
            let (shared, announce) = (self.shared.clone(), self.announce(store.id));
            let work = move |c: &Connection| {
                let store = restore::end(c, &store, &shared.limits)?;
                let changed_at = Some(store.changed_at);
                Ok((store, changed_at))
            };
            let needs = Needs { room: true, scrub: false };
            Ok(self.writer.write_and_announce(Lane::Background, needs, work, announce).await?.0)
        })
    }

    fn restore_abandon(&self, place: StorePlace) -> Answer<'_, Result<(), StorageError>> {
        let work = move |c: &Connection| restore::abandon(c, place);
        Box::pin(async move { Ok(self.writer.write(Lane::Background, Needs::default(), work).await?) })
    }

    fn installation(&self) -> Answer<'_, Result<Option<Installation>, StorageError>> {
        Box::pin(self.readers.read(|c| Ok(installation(c)?)))
    }

    fn install(
        &self,
        organization: OrganizationId,
        workspace: Workspace,
        key: KeyRecord,
    ) -> Answer<'_, Result<Installation, StorageError>> {
        Box::pin(self.write(workspace.id, move |c| {
            if let Some(there) = installation(c)? {
                return Ok(there);
            }
            let new = Installation::new(organization, workspace.id);
            insert_installation(c, new)?;
            insert_workspace(c, &workspace)?;
            insert_key(c, &key)?;
            Ok(new)
        }))
    }

    fn key_by_hash(&self, hash: KeyHash) -> Answer<'_, Result<Option<ApiKey>, StorageError>> {
        Box::pin(self.readers.read(move |c| {
            let sql = format!("SELECT {} FROM api_keys WHERE hash = ?", rows::API_KEY);
            Ok(c.prepare_cached(&sql)?.query_row([hash.as_bytes()], rows::api_key).optional()?)
        }))
    }

    fn key_create(&self, record: KeyRecord) -> Answer<'_, Result<(), StorageError>> {
        Box::pin(self.write(record.key.workspace, move |c| Ok(insert_key(c, &record)?)))
    }

    fn key_list(&self, workspace: WorkspaceId) -> Answer<'_, Result<Vec<ApiKey>, StorageError>> {
        Box::pin(self.readers.read(move |c| {
            let sql = format!(
                "SELECT {} FROM api_keys WHERE workspace = ? AND revoked_at IS NULL ORDER BY created_at, id",
                rows::API_KEY
            );
            Ok(rows::all(&mut *c.prepare_cached(&sql)?, [Col(workspace)], rows::api_key)?)
        }))
    }

    fn key_revoke(&self, workspace: WorkspaceId, id: KeyId) -> Answer<'_, Result<bool, StorageError>> {
        let shared = self.shared.clone();
        Box::pin(self.write(workspace, move |c| {
            let revoked = c
                .prepare_cached(
                    "UPDATE api_keys SET revoked_at = ? WHERE id = ? AND workspace = ? AND revoked_at IS NULL",
                )?
                .execute(params![Col(shared.clock.now()), Col(id), Col(workspace)])?;
            Ok(revoked == 1)
        }))
    }

    fn workspace_create(&self, workspace: Workspace, key: KeyRecord) -> Answer<'_, Result<(), StorageError>> {
        Box::pin(self.write(workspace.id, move |c| {
            insert_workspace(c, &workspace)?;
            Ok(insert_key(c, &key)?)
        }))
    }

    fn workspace_update(
        &self,
        id: WorkspaceId,
        patch: WorkspacePatch,
    ) -> Answer<'_, Result<Option<Workspace>, StorageError>> {
        Box::pin(self.write(id, move |c| Ok(update_workspace(c, id, &patch)?)))
    }

    fn workspace_list(&self) -> Answer<'_, Result<Vec<Workspace>, StorageError>> {
        Box::pin(self.readers.read(|c| {
            let sql = format!("SELECT {} FROM workspaces ORDER BY created_at, id", rows::WORKSPACE);
            Ok(rows::all(&mut *c.prepare_cached(&sql)?, [], rows::workspace)?)
        }))
    }

    fn sweep(&self) -> Answer<'_, Result<Swept, StorageError>> {
        Box::pin(async {
            let versions = self.sweep_versions().await?;
            let swept = Swept { versions, ..self.purge_all().await? };
            self.sweep_marks().await?;
            self.reclaim().await?;
            Ok(swept)
        })
    }

    fn purge(&self) -> Answer<'_, Result<Swept, StorageError>> {
        Box::pin(self.purge_all())
    }

    fn store_count(&self) -> Answer<'_, Result<u64, StorageError>> {
        Box::pin(self.readers.read(|c| {
            let sql = "SELECT count(*) FROM stores WHERE deleted_at IS NULL";
            c.query_row(sql, [], |row| row.get(0)).map_err(Fault::from)
        }))
    }

    fn ping(&self) -> Answer<'_, Result<(), StorageError>> {
        Box::pin(self.readers.read(|c| {
            Ok(c.prepare_cached("SELECT 1 FROM installation")?
                .query_row([], |_| Ok(()))
                .optional()
                .map(|_| ())?)
        }))
    }
}
