//! What requests and their tasks share, and the transactions that they open.

use std::sync::Arc;
use std::time::Duration;

use quick_cache::sync::Cache;
use stele_core::clock::{Clock, Random};
use stele_core::command::Command;
use stele_core::decide::Context;
use stele_core::id::{MemoryId, StoreId, VersionId, WorkspaceId};
use stele_core::limits::Limits;
use stele_core::list::{Detail, Page, VersionQuery};
use stele_core::model::{Actor, VersionText};
use stele_core::storage::{At, InStore, KnownBodies, MemoryRead, MemoryRef, StorageError};
use stele_core::text::{Content, Reason};
use stele_core::watch::Topic;
use store_codec::{Compression, LARGE_BYTES, encode};
use tokio::sync::Mutex;
use tokio_util::task::TaskTracker;

use crate::announce::Announcer;
use crate::batch::{BEGIN, Contents};
use crate::connect::Connected;
use crate::fault::Fault;
use crate::lanes::{Job, Lanes, RECONNECTS};
use crate::points::Points;
use crate::pool::{Lent, Pool};
use crate::reads::{self, Stretch};
use crate::record_writes::Commit;

/// What requests and their tasks share.
pub(crate) struct Shared {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) random: Arc<dyn Random>,
    pub(crate) limits: Limits,
    pub(crate) compression: Compression,
    pub(crate) patience: Duration,
    pub(crate) pool: Pool,
    pub(crate) points: Points,
    pub(crate) lists: Points,
    pub(crate) lanes: Lanes<Job>,
    pub(crate) commits: Lanes<Commit>,
    pub(crate) tracker: TaskTracker,
    pub(crate) sweeping: Mutex<()>,
    /// How this process is known to the others.
    pub(crate) holder: [u8; 16],
    pub(crate) announcer: Announcer,
    pub(crate) heads: Cache<MemoryId, VersionId>,
}

/// A transaction that is open. Dropped without [`Tx::commit`], it is undone by closing its connection.
pub(crate) struct Tx {
    pub(crate) lent: Lent,
}

impl Tx {
    pub(crate) fn connected(&self) -> &Connected {
        self.lent.connected()
    }

    pub(crate) async fn commit(mut self) -> Result<(), Fault> {
        self.connected().client.batch_execute("COMMIT").await?;
        self.lent.clean();
        Ok(())
    }
}

impl Shared {
    /// Tells of what was committed: the waiters of this process and, soon, of the others.
    pub(crate) fn announce(&self, news: &[(Topic, u64)]) {
        for (topic, position) in news {
            self.announcer.announce(*topic, *position);
        }
    }

    /// Begins a transaction, on another connection if one turns out to be dead.
    pub(crate) async fn begin(&self) -> Result<Tx, Fault> {
        let mut lost = 0;
        loop {
            let mut lent = self.pool.lend().await?;
            match lent.dirty().client.batch_execute(BEGIN).await.map_err(Fault::from) {
                Ok(()) => return Ok(Tx { lent }),
                Err(fault) if lost < RECONNECTS && fault.is_lost() => lost += 1,
                Err(fault) => return Err(fault),
            }
        }
    }

    /// The contents of the commands as they are to be stored; many bytes are made ready on a blocking thread.
    pub(crate) async fn encoded(&self, commands: &[Command]) -> Result<Contents, StorageError> {
        let compression = self.compression;
        let encoded = move |contents: Vec<Content>| -> Contents {
            contents.iter().map(|content| (content.sha256(), encode(content, compression))).collect()
        };
        let contents: Vec<Content> = commands.iter().filter_map(Command::content).cloned().collect();
        if contents.iter().map(Content::size_bytes).sum::<u64>() <= LARGE_BYTES as u64 {
            return Ok(encoded(contents));
        }
        let made = tokio::task::spawn_blocking(move || encoded(contents)).await;
        made.map_err(|error| StorageError::Internal(Box::new(error)))
    }

    /// What surrounds a decision; the present is read under the lock.
    pub(crate) fn context<'a>(&'a self, actor: Actor, reason: Option<&'a Reason>) -> Context<'a> {
        let random = [self.random.bits(), self.random.bits()];
        Context { actor, reason, now: self.clock.now(), random, limits: &self.limits }
    }

    pub(crate) async fn memory_get(
        &self,
        (workspace, store): (WorkspaceId, StoreId),
        which: MemoryRef,
        detail: Detail,
        known: Option<Arc<dyn KnownBodies>>,
    ) -> Result<InStore<Option<MemoryRead>>, Fault> {
        let hint = match &which {
            MemoryRef::Id(id) if known.is_some() => self.heads.get(id),
            _ => None,
        };
        let (which, known) = (Arc::new(which), &known);
        let read = self
            .points
            .read(|c| {
                let which = which.clone();
                async move { reads::memory(&c, workspace, store, &which, detail, known.as_ref(), hint).await }
            })
            .await?;
        if let Some(At { value: Some(MemoryRead::Read { memory, .. }), .. }) = &read
            && known.is_some()
            && hint != Some(memory.version)
        {
            self.heads.insert(memory.id, memory.version);
        }
        Ok(read)
    }

    pub(crate) async fn version_list(
        &self,
        workspace: WorkspaceId,
        store: StoreId,
        query: &VersionQuery,
    ) -> Result<InStore<Page<VersionText>>, Fault> {
        let newest =
            self.points.read(|c| async move { reads::newest_sequence(&c, workspace, store).await }).await?;
        let Some(newest) = newest else { return Ok(None) };
        let page =
            |items| Ok(Some(At { sequence: newest.unsigned_abs(), value: Page::cut(items, query.limit) }));
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
        while before > 0 && items.len() <= query.limit {
            let from = before.saturating_sub(reads::stretch_length(query)).max(0);
            let stretch = Stretch { before, from, limit: query.limit + 1 - items.len() };
            let read = self
                .lists
                .read(|c| async move { reads::versions_on(&c, workspace, store, query, stretch).await });
            let (found, next) = read.await?;
            items.extend(found);
            before = next;
        }
        page(items)
    }
}
