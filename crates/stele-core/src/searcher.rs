//! Search of stores: their indexes, within a budget of bytes, kept up to their committed sequences. DESIGN 8.
//!
//! An index is built when its store is first searched; that first query is answered by a scan meanwhile. Each search
//! first brings the index to the store's present sequence, so that it sees what any process has answered before.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use bytes::Bytes;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard, oneshot};

use crate::feed::{Told, Wanted};
use crate::id::{MemoryId, StoreId, WorkspaceId};
use crate::model::{Memory, VersionText};
use crate::path::PathPrefix;
use crate::refusal::Refusal;
use crate::search::{Change, Document, Found, Index, Position, Query, Request, Scan, Snippet, snippet};
use crate::storage::{At, Error, Storage, StorageError};
use crate::text::Summary;
use crate::time::Timestamp;

/// Bytes of contents that are read at once.
const READ_BYTES: u64 = 4 * 1024 * 1024;
/// Memories that are read at once.
const READ_MEMORIES: usize = 1_000;
/// Changes that are followed at once.
const FOLLOWED: usize = 500;
/// From this many bytes on, snippets are cut by a worker.
const WORKER_BYTES: usize = 64 * 1024;

/// Threads for work that takes a processor rather than waits, and tasks that outlive a request.
pub trait Workers: Send + Sync {
    /// Runs the work on a thread where it may take its time.
    fn run(&self, work: Box<dyn FnOnce() + Send>);
    /// Runs the task to its end, whoever goes away.
    fn spawn(&self, task: Pin<Box<dyn Future<Output = ()> + Send>>);
}

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Question {
    /// The query.
    pub query: Query,
    /// Only memories below this directory.
    pub prefix: Option<PathPrefix>,
    /// After this hit.
    pub after: Option<Position>,
    /// At most so many hits.
    pub limit: usize,
}

impl Question {
    fn request(&self) -> Request<'_> {
        Request { prefix: self.prefix.as_ref(), after: self.after.as_ref(), limit: self.limit }
    }
}

/// A memory that was found, as an answer shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchHit {
    /// Its id.
    pub memory: MemoryId,
    /// Its path.
    pub path: Box<str>,
    /// Its summary.
    pub summary: Summary,
    /// The passage that shows why.
    pub snippet: Snippet,
    /// How well it matches; comparable within one answer only.
    pub score: f32,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// One page of an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchPage {
    /// The hits, best first.
    pub hits: Vec<SearchHit>,
    /// Memories found, on all pages.
    pub total_matches: usize,
    /// Where the next page begins; `None` on the last.
    pub next: Option<Position>,
}

/// The indexes of all stores that are searched.
pub struct Searcher {
    storage: Arc<dyn Storage>,
    workers: Arc<dyn Workers>,
    budget: usize,
    slots: Mutex<HashMap<StoreId, Arc<Slot>>>,
    /// Counts uses, so that the longest unused is known.
    uses: AtomicU64,
}

/// The place of one store's index.
#[derive(Default)]
struct Slot {
    index: RwLock<Option<Index>>,
    /// Held while the index is built or follows the store: one at a time.
    tending: Arc<AsyncMutex<()>>,
    used: AtomicU64,
    bytes: AtomicUsize,
    /// Whether the index alone is beyond the budget, so that it is not kept.
    oversized: AtomicBool,
}

impl Slot {
    /// What `look` says of the index, if there is one.
    fn look<T>(&self, look: impl FnOnce(&Index) -> T) -> Option<T> {
        self.index.read().unwrap_or_else(PoisonError::into_inner).as_ref().map(look)
    }

    fn sequence(&self) -> Option<u64> {
        self.look(Index::sequence)
    }

    fn set(&self, index: Option<Index>) {
        self.bytes.store(index.as_ref().map_or(0, Index::size_bytes), Ordering::Relaxed);
        *self.index.write().unwrap_or_else(PoisonError::into_inner) = index;
    }

    /// Brings the index to `sequence`. It is out of its place meanwhile: a panic leaves none rather than half of one.
    fn advance(&self, sequence: u64, heads: &[Head]) {
        let mut place = self.index.write().unwrap_or_else(PoisonError::into_inner);
        let Some(mut index) = place.take() else { return };
        index.advance(sequence, heads.iter().map(Head::change));
        self.bytes.store(index.size_bytes(), Ordering::Relaxed);
        *place = Some(index);
    }
}

/// The texts of a memory's head.
struct Text {
    path: Box<str>,
    summary: Summary,
    content: Bytes,
    updated_at: Timestamp,
}

/// A memory as it now is; without texts if it is gone.
struct Head {
    memory: MemoryId,
    text: Option<Text>,
}

impl Head {
    fn of(memory: MemoryId, found: Option<VersionText>) -> Self {
        let text = |found: VersionText| {
            Some(Text {
                path: found.version.path?.as_str().into(),
                summary: found.summary.unwrap_or_else(Summary::empty),
                content: found.content?,
                updated_at: found.version.created_at,
            })
        };
        Self { memory, text: found.and_then(text) }
    }

    fn document(&self) -> Option<Document<'_>> {
        let Text { path, summary, content, updated_at } = self.text.as_ref()?;
        let content = std::str::from_utf8(content).unwrap_or_default();
        let (memory, updated_at) = (self.memory, *updated_at);
        Some(Document { memory, path, summary: summary.as_str(), content, updated_at })
    }

    fn change(&self) -> Change<'_> {
        self.document().map_or(Change::Remove(self.memory), Change::Upsert)
    }

    fn bytes(&self) -> usize {
        self.text.as_ref().map_or(0, |text| text.content.len())
    }
}

/// A store as it is asked for.
#[derive(Clone, Copy)]
struct Place {
    workspace: WorkspaceId,
    store: StoreId,
}

impl Place {
    fn unknown(self) -> Error {
        Refusal::StoreNotFound(self.store).into()
    }
}

impl Searcher {
    /// A searcher that keeps indexes of at most `budget` bytes together.
    pub fn new(storage: Arc<dyn Storage>, workers: Arc<dyn Workers>, budget: usize) -> Arc<Self> {
        Arc::new(Self { storage, workers, budget, slots: Mutex::default(), uses: AtomicU64::new(0) })
    }

    /// Bytes of the indexes that are kept.
    pub fn bytes(&self) -> usize {
        self.slots().values().map(|slot| slot.bytes.load(Ordering::Relaxed)).sum()
    }

    /// The answer to a question, as of a sequence not older than the store's when it was asked.
    ///
    /// # Errors
    /// No such store, or the storage failed.
    pub async fn search(
        self: &Arc<Self>,
        workspace: WorkspaceId,
        store: StoreId,
        question: &Question,
    ) -> Result<At<SearchPage>, Error> {
        let place = Place { workspace, store };
        let At { sequence, value: found } = self.found(place, question).await?;
        let hits = self.shown(place, &found).await?;
        let page = SearchPage { hits, total_matches: found.total_matches, next: found.next };
        Ok(At { sequence, value: page })
    }

    async fn found(self: &Arc<Self>, place: Place, question: &Question) -> Result<At<Found>, Error> {
        let slot = self.slot(place.store);
        if let Some(found) = self.follow_and_search(place, &slot, question).await? {
            return Ok(found);
        }
        // The first query reads the store itself; those that come meanwhile wait for the index that is then built.
        if let Ok(tending) = slot.tending.clone().try_lock_owned()
            && let Some(found) = self.scan(place, question).await?
        {
            if !slot.oversized.load(Ordering::Relaxed) {
                let (searcher, slot) = (self.clone(), slot.clone());
                // Where it fails, the next query finds no index and tries again.
                let build = async move { drop(searcher.build(place, &slot, tending).await) };
                self.workers.spawn(Box::pin(build));
            }
            return Ok(found);
        }
        if !slot.oversized.load(Ordering::Relaxed) {
            let tending = slot.tending.clone().lock_owned().await;
            self.build(place, &slot, tending).await?;
            if let Some(found) = self.follow_and_search(place, &slot, question).await? {
                return Ok(found);
            }
        }
        // There is no room to keep the index: it is made for this query alone.
        let (index, question) = (self.read_index(place).await?, question.clone());
        self.on_worker(move || {
            let sequence = index.sequence();
            At { sequence, value: index.search(&question.query, &question.request()) }
        })
        .await
    }

    /// The answer of the index, brought to the store's present sequence; `None` if there is none.
    async fn follow_and_search(
        &self,
        place: Place,
        slot: &Arc<Slot>,
        question: &Question,
    ) -> Result<Option<At<Found>>, Error> {
        let store = self.storage.store_by_id(place.workspace, place.store).await?;
        let Some(store) = store else {
            self.slots().remove(&place.store);
            return Err(place.unknown());
        };
        if slot.sequence().is_some_and(|known| known < store.counters.sequence)
            && !self.follow(place, slot, store.counters.sequence).await?
        {
            return Ok(None);
        }
        Ok(slot.look(|index| {
            let found = index.search(&question.query, &question.request());
            At { sequence: index.sequence(), value: found }
        }))
    }

    /// Brings the index to `sequence` or beyond; false if it cannot be, and is gone.
    async fn follow(&self, place: Place, slot: &Arc<Slot>, sequence: u64) -> Result<bool, Error> {
        let _tending = slot.tending.lock().await;
        loop {
            let Some(known) = slot.sequence() else { return Ok(false) };
            if known >= sequence {
                break;
            }
            let changes = self.storage.changes(place.workspace, place.store, known, FOLLOWED).await?;
            let changes = changes.filter(|changes| changes.store.is_some()).ok_or_else(|| place.unknown())?;
            if changes.floor > known {
                slot.set(None);
                return Ok(false);
            }
            let to = changes.told.last().map_or(changes.sequence, Told::sequence);
            let mut touched: Vec<MemoryId> = Vec::new();
            for told in &changes.told {
                if let Told::Version { version, .. } = told
                    && !touched.contains(&version.memory)
                {
                    touched.push(version.memory);
                }
            }
            let heads = self.heads(place, &touched).await?;
            if heads.iter().map(Head::bytes).sum::<usize>() < WORKER_BYTES {
                slot.advance(to, &heads);
            } else {
                let slot = slot.clone();
                self.on_worker(move || slot.advance(to, &heads)).await?;
            }
        }
        self.keep_within_budget(place.store);
        Ok(true)
    }

    /// Builds the index unless somebody else did; `tending` is that of the slot.
    async fn build(&self, place: Place, slot: &Slot, _tending: OwnedMutexGuard<()>) -> Result<(), Error> {
        if slot.sequence().is_none() {
            slot.set(Some(self.read_index(place).await?));
            self.keep_within_budget(place.store);
        }
        Ok(())
    }

    /// The answer of a scan; `None` if that takes an index.
    async fn scan(&self, place: Place, question: &Question) -> Result<Option<At<Found>>, Error> {
        let scan = Scan::new(question.query.clone());
        let read = |scan: &mut Scan, heads: Vec<Head>| scan.read(heads.iter().filter_map(Head::document));
        let At { sequence, value: scan } = self.read_all(place, scan, read).await?;
        let question = question.clone();
        let found = self.on_worker(move || scan.answer(&question.request())).await?;
        Ok(found.map(|value| At { sequence, value }))
    }

    async fn read_index(&self, place: Place) -> Result<Index, Error> {
        let read = |index: &mut Index, heads: Vec<Head>| index.advance(0, heads.iter().map(Head::change));
        let At { sequence, value: mut index } = self.read_all(place, Index::default(), read).await?;
        self.on_worker(move || {
            index.advance(sequence, []);
            index.shrink();
            index
        })
        .await
    }

    /// Reads all heads of a store into `into`, on a worker while the next ones are fetched.
    async fn read_all<T: Send + 'static>(
        &self,
        place: Place,
        into: T,
        read: impl Fn(&mut T, Vec<Head>) + Copy + Send + 'static,
    ) -> Result<At<T>, Error> {
        let snapshot = self.storage.snapshot(place.workspace, place.store).await?;
        let At { sequence, value: memories } = snapshot.ok_or_else(|| place.unknown())?;
        let mut reading = self.start_on_worker(move || into);
        let mut rest = &memories[..];
        while !rest.is_empty() {
            let mut bytes = 0;
            let fits = |memory: &&Memory| {
                let before = bytes;
                bytes += memory.size_bytes;
                before < READ_BYTES
            };
            let count = rest.iter().take(READ_MEMORIES).take_while(fits).count();
            let (now, later) = rest.split_at(count);
            rest = later;
            let ids: Vec<MemoryId> = now.iter().map(|memory| memory.id).collect();
            let heads = self.heads(place, &ids).await?;
            let mut into = reading.await.map_err(|_| worker_is_gone())?;
            reading = self.start_on_worker(move || {
                read(&mut into, heads);
                into
            });
        }
        let value = reading.await.map_err(|_| worker_is_gone())?;
        Ok(At { sequence, value })
    }

    /// The memories as they now are. A damaged one counts as none, so that it does not hide the others; it is found by
    /// asking for half as many until it is alone.
    async fn heads(&self, place: Place, memories: &[MemoryId]) -> Result<Vec<Head>, Error> {
        let mut heads: Vec<Head> = Vec::with_capacity(memories.len());
        let mut most = memories.len();
        while heads.len() < memories.len() {
            let rest = &memories[heads.len()..];
            let asked = &rest[..rest.len().min(most)];
            let wanted = asked.iter().map(|memory| Wanted::Memory(*memory)).collect();
            let found = match self.storage.contents(place.workspace, place.store, wanted, READ_BYTES).await {
                Err(StorageError::Corrupt(_)) => {
                    match asked {
                        [damaged] => {
                            heads.push(Head::of(*damaged, None));
                            most = memories.len();
                        }
                        _ => most = asked.len() / 2,
                    }
                    continue;
                }
                found => found?.ok_or_else(|| place.unknown())?.value,
            };
            if found.is_empty() {
                return Err(StorageError::Internal("texts were asked for and none came".into()).into());
            }
            heads.extend(asked.iter().zip(found).map(|(memory, found)| Head::of(*memory, found)));
        }
        Ok(heads)
    }

    /// The hits with what an answer shows of them; without those that are gone by now.
    async fn shown(&self, place: Place, found: &Found) -> Result<Vec<SearchHit>, Error> {
        if found.hits.is_empty() {
            return Ok(Vec::new());
        }
        let ids: Vec<MemoryId> = found.hits.iter().map(|hit| hit.memory).collect();
        let heads = self.heads(place, &ids).await?;
        let (hits, terms) = (found.hits.clone(), found.terms.clone());
        let many = heads.iter().map(Head::bytes).sum::<usize>() > WORKER_BYTES;
        let show = move || {
            let shown = hits.into_iter().zip(heads).filter_map(|(hit, head)| {
                let snippet = snippet(&terms, head.document()?.content);
                let Text { path, summary, updated_at, .. } = head.text?;
                Some(SearchHit { memory: hit.memory, path, summary, snippet, score: hit.score, updated_at })
            });
            shown.collect()
        };
        if many { self.on_worker(show).await } else { Ok(show()) }
    }

    fn slots(&self) -> MutexGuard<'_, HashMap<StoreId, Arc<Slot>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn slot(&self, store: StoreId) -> Arc<Slot> {
        let slot = self.slots().entry(store).or_default().clone();
        slot.used.store(self.uses.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        slot
    }

    /// Drops the indexes that were longest unused, until the others are within the budget.
    fn keep_within_budget(&self, latest: StoreId) {
        let mut slots = self.slots();
        let bytes = |slot: &Slot| slot.bytes.load(Ordering::Relaxed);
        let mut total: usize = slots.values().map(|slot| bytes(slot)).sum();
        if let Some(slot) = slots.get(&latest).filter(|slot| bytes(slot) > self.budget) {
            total -= bytes(slot);
            slot.oversized.store(true, Ordering::Relaxed);
            slot.set(None);
        }
        while total > self.budget {
            let used = |(_, slot): &(&StoreId, &Arc<Slot>)| slot.used.load(Ordering::Relaxed);
            let oldest = slots.iter().filter(|(_, slot)| bytes(slot) > 0).min_by_key(used);
            let Some((&store, slot)) = oldest else { break };
            total -= bytes(slot);
            slot.set(None);
            slots.remove(&store);
        }
    }

    fn start_on_worker<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> oneshot::Receiver<T> {
        let (done, result) = oneshot::channel();
        // Whoever asked may have gone away.
        self.workers.run(Box::new(move || drop(done.send(work()))));
        result
    }

    async fn on_worker<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        self.start_on_worker(work).await.map_err(|_| worker_is_gone())
    }
}

fn worker_is_gone() -> Error {
    StorageError::Internal("a search panicked".into()).into()
}
