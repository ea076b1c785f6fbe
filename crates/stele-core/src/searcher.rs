//! Search of stores: their indexes, within a budget of bytes, kept up to their committed sequences. DESIGN 8.
//!
//! An index is built when its store is first searched; that first query is answered by a scan meanwhile. Each search
//! is answered by an index that is not behind the store's present sequence, so that it sees what any process has
//! answered before.

mod meaning;
mod slot;

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedMutexGuard, oneshot};

use self::meaning::Embedding;
use self::slot::{Head, Slot, Text};
use crate::embedder::Embedder;
use crate::feed::{Told, Wanted};
use crate::id::{MemoryId, StoreId, WorkspaceId};
use crate::meter;
use crate::model::Memory;
use crate::path::PathPrefix;
use crate::refusal::Refusal;
use crate::search::{Found, Index, Nearness, Position, Quantized, Query, Request, Scan, Snippet, Snippets};
use crate::storage::{At, Error, Storage, StorageError};
use crate::text::Summary;
use crate::time::Timestamp;

/// Bytes of contents that are read at once.
const READ_BYTES: u64 = 4 * 1024 * 1024;
/// Bytes of contents that one part of a whole store has about.
const PART_BYTES: u64 = 1024 * 1024;
/// Memories that one part of a whole store has at most.
const PART_MEMORIES: usize = 200;
/// Parts that are fetched at once.
const PARTS_AT_ONCE: usize = 3;
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
    fn request<'a>(&'a self, nearness: Option<&'a Nearness>) -> Request<'a> {
        Request { prefix: self.prefix.as_ref(), after: self.after.as_ref(), limit: self.limit, nearness }
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
    embedding: Option<Embedding>,
    budget: usize,
    slots: Mutex<HashMap<Place, Arc<Slot>>>,
    /// Counts uses, so that the longest unused is known.
    uses: AtomicU64,
}

/// What is held for searches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SearchFigures {
    /// Stores with an index.
    pub indexes: usize,
    /// Bytes of indexes and vectors.
    pub bytes: usize,
    /// Passages with a vector.
    pub vectors: usize,
    /// Memories whose vectors are not there yet.
    pub wanting: usize,
}

/// A store as it is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
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
    /// A searcher that keeps indexes of at most `budget` bytes together, with vectors if there is a model for them.
    pub fn new(
        storage: Arc<dyn Storage>,
        workers: Arc<dyn Workers>,
        embedder: Option<Arc<dyn Embedder>>,
        budget: usize,
    ) -> Arc<Self> {
        let embedding = embedder.map(Embedding::new);
        let (slots, uses) = (Mutex::default(), AtomicU64::new(0));
        Arc::new(Self { storage, workers, embedding, budget, slots, uses })
    }

    /// What is held at the moment.
    pub fn figures(&self) -> SearchFigures {
        let slots: Vec<_> = self.slots().values().cloned().collect();
        slots.iter().fold(SearchFigures::default(), |sum, slot| {
            let vectors = slot.vectors();
            SearchFigures {
                indexes: sum.indexes + usize::from(slot.sequence().is_some()),
                bytes: sum.bytes + slot.bytes.load(Ordering::Relaxed),
                vectors: sum.vectors + vectors.len(),
                wanting: sum.wanting + vectors.wanting_count(),
            }
        })
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
        let slot = self.slot(place);
        let vector = self.query_vector(&slot, question).await;
        let answer = self.answer(place, &slot, question, vector.as_deref()).await;
        match &answer {
            Ok(_) => {
                let blended = vector.is_some() && slot.has_vectors();
                if blended { &meter::SEARCHES_BLENDED } else { &meter::SEARCHES_BY_WORDS }.count();
                if !blended || slot.vectors().wanting_count() > 0 {
                    self.fetch_vectors(place, &slot);
                }
            }
            Err(Error::Refused { .. }) => drop(self.slots().remove(&place)),
            Err(Error::Failed(_)) => {}
        }
        answer
    }

    /// Takes note that a store was changed here: where a model is asked, its vectors follow without a search.
    pub fn changed(self: &Arc<Self>, workspace: WorkspaceId, store: StoreId) {
        if self.embedding.is_none() {
            return;
        }
        let place = Place { workspace, store };
        // A store that nobody searches pushes out none that somebody does.
        let known = self.slots().get(&place).cloned();
        if known.is_some() || self.figures().bytes < self.budget / 2 {
            self.fetch_vectors(place, &known.unwrap_or_else(|| self.slot(place)));
        }
    }

    async fn answer(
        self: &Arc<Self>,
        place: Place,
        slot: &Arc<Slot>,
        question: &Question,
        vector: Option<&Quantized>,
    ) -> Result<At<SearchPage>, Error> {
        if let Some(answer) = self.answer_by_index(place, slot, question, vector).await? {
            return Ok(answer);
        }
        // The first query reads the store itself; those that come meanwhile wait for the index that is then built.
        if let Ok(tending) = slot.tending.clone().try_lock_owned()
            && let Some(found) = self.scan(place, question).await?
        {
            let answer = self.show(place, found).await?;
            if !slot.oversized.load(Ordering::Relaxed) {
                let (searcher, slot) = (self.clone(), slot.clone());
                // Where it fails, the next query finds no index and tries again.
                let build = async move { drop(searcher.build(place, &slot, tending).await) };
                self.workers.spawn(Box::pin(build));
            }
            return Ok(answer);
        }
        if !slot.oversized.load(Ordering::Relaxed) {
            let tending = slot.tending.clone().lock_owned().await;
            self.build(place, slot, tending).await?;
            if let Some(answer) = self.answer_by_index(place, slot, question, vector).await? {
                return Ok(answer);
            }
        }
        // There is no room to keep the index: it is made for this query alone.
        let (index, question) = (self.read_index(place).await?, question.clone());
        let nothing = self.nothing_near();
        let search = move || {
            let found = index.search(&question.query, &question.request(nothing.as_ref()));
            At { sequence: index.sequence(), value: found }
        };
        let found = self.on_worker(search).await?;
        self.show(place, found).await
    }

    /// The answer of the index, if there is one: the read that fetches the texts of the hits tells at which sequence
    /// the store is, and where that is not the index's, the index follows and is asked again.
    async fn answer_by_index(
        self: &Arc<Self>,
        place: Place,
        slot: &Arc<Slot>,
        question: &Question,
        vector: Option<&Quantized>,
    ) -> Result<Option<At<SearchPage>>, Error> {
        let mut followed = false;
        loop {
            let search = |index: &Index| {
                // While the index is held: vectors are never older than it.
                let nearness = self.nearness(slot, vector, index.len());
                index.search(&question.query, &question.request(nearness.as_ref()))
            };
            let found = slot.look(|index| At { sequence: index.sequence(), value: search(index) });
            let Some(At { sequence, value: found }) = found else { return Ok(None) };
            let heads = self.heads(place, &memories(&found)).await?;
            if followed || heads.sequence <= sequence {
                return Ok(Some(At { sequence, value: self.page(found, heads.value).await? }));
            }
            if !self.follow(place, slot, heads.sequence).await? {
                return Ok(None);
            }
            followed = true;
        }
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
            let heads = self.heads(place, &touched).await?.value;
            let passage_chars = self.passage_chars();
            if heads.iter().map(Head::bytes).sum::<usize>() < WORKER_BYTES {
                slot.advance(to, &heads, passage_chars);
            } else {
                let slot = slot.clone();
                self.on_worker(move || slot.advance(to, &heads, passage_chars)).await?;
            }
        }
        self.keep_within_budget(place);
        Ok(true)
    }

    /// Brings the index to the store's present sequence, building it where there is none.
    async fn bring_up_to_date(self: &Arc<Self>, place: Place, slot: &Arc<Slot>) -> Result<(), Error> {
        if slot.sequence().is_none() && !slot.oversized.load(Ordering::Relaxed) {
            let tending = slot.tending.clone().lock_owned().await;
            self.build(place, slot, tending).await?;
        }
        let present = self.heads(place, &[]).await?.sequence;
        if slot.sequence().is_some_and(|known| known < present) {
            self.follow(place, slot, present).await?;
        }
        Ok(())
    }

    /// Builds the index unless somebody else did; `tending` is that of the slot.
    async fn build(
        self: &Arc<Self>,
        place: Place,
        slot: &Slot,
        _tending: OwnedMutexGuard<()>,
    ) -> Result<(), Error> {
        if slot.sequence().is_none() {
            let index = self.read_index(place).await?;
            if self.passage_chars().is_some() && !slot.oversized_vectors.load(Ordering::Relaxed) {
                slot.vectors_mut().reset(index.memories());
            }
            slot.set(Some(index));
            self.keep_within_budget(place);
        }
        Ok(())
    }

    fn passage_chars(&self) -> Option<usize> {
        self.embedding.as_ref().map(Embedding::passage_chars)
    }

    /// The answer of a scan; `None` if that takes an index.
    async fn scan(self: &Arc<Self>, place: Place, question: &Question) -> Result<Option<At<Found>>, Error> {
        let scan = Scan::new(question.query.clone());
        let read = |scan: &mut Scan, heads: Vec<Head>| scan.read(heads.iter().filter_map(Head::document));
        let At { sequence, value: scan } = self.read_all(place, scan, read).await?;
        let (question, nothing) = (question.clone(), self.nothing_near());
        let found = self.on_worker(move || scan.answer(&question.request(nothing.as_ref()))).await?;
        Ok(found.map(|value| At { sequence, value }))
    }

    async fn read_index(self: &Arc<Self>, place: Place) -> Result<Index, Error> {
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
        self: &Arc<Self>,
        place: Place,
        into: T,
        read: impl Fn(&mut T, Vec<Head>) + Copy + Send + 'static,
    ) -> Result<At<T>, Error> {
        let snapshot = self.storage.snapshot(place.workspace, place.store).await?;
        let At { sequence, value: memories } = snapshot.ok_or_else(|| place.unknown())?;
        let mut parts = parts(&memories).map(|ids| self.start_reading(place, ids));
        let mut coming: VecDeque<_> = parts.by_ref().take(PARTS_AT_ONCE).collect();
        let mut reading = self.start_on_worker(move || into);
        while let Some(heads) = coming.pop_front() {
            let heads = heads.await.map_err(|_| worker_is_gone())??;
            coming.extend(parts.next());
            let mut into = reading.await.map_err(|_| worker_is_gone())?;
            reading = self.start_on_worker(move || {
                read(&mut into, heads);
                into
            });
        }
        let value = reading.await.map_err(|_| worker_is_gone())?;
        Ok(At { sequence, value })
    }

    /// Fetches the heads beside whatever else goes on.
    fn start_reading(
        self: &Arc<Self>,
        place: Place,
        ids: Vec<MemoryId>,
    ) -> oneshot::Receiver<Result<Vec<Head>, Error>> {
        let (done, result) = oneshot::channel();
        let searcher = self.clone();
        self.workers.spawn(Box::pin(async move {
            let heads = searcher.heads(place, &ids).await;
            // Whoever asked may have gone away.
            drop(done.send(heads.map(|heads| heads.value)));
        }));
        result
    }

    /// The memories as they now are: none is older than the sequence. A damaged one counts as none, so that it does not
    /// hide the others; it is found by asking for half as many until it is alone.
    async fn heads(&self, place: Place, memories: &[MemoryId]) -> Result<At<Vec<Head>>, Error> {
        let mut heads: Vec<Head> = Vec::with_capacity(memories.len());
        let mut sequence = None;
        let mut most = memories.len();
        loop {
            let rest = &memories[heads.len()..];
            let asked = &rest[..rest.len().min(most)];
            let wanted = asked.iter().map(|memory| Wanted::Memory(*memory)).collect();
            let found = match self.storage.contents(place.workspace, place.store, wanted, READ_BYTES).await {
                Err(StorageError::Corrupt(_)) if !asked.is_empty() => {
                    match asked {
                        [damaged] => {
                            heads.push(Head::of(*damaged, None));
                            most = memories.len();
                        }
                        _ => most = asked.len() / 2,
                    }
                    continue;
                }
                found => found?.ok_or_else(|| place.unknown())?,
            };
            if found.value.is_empty() && !asked.is_empty() {
                return Err(StorageError::Internal("texts were asked for and none came".into()).into());
            }
            let sequence = *sequence.get_or_insert(found.sequence);
            heads.extend(asked.iter().zip(found.value).map(|(memory, found)| Head::of(*memory, found)));
            if heads.len() >= memories.len() {
                return Ok(At { sequence, value: heads });
            }
        }
    }

    /// What was found as an answer shows it.
    async fn show(&self, place: Place, found: At<Found>) -> Result<At<SearchPage>, Error> {
        let At { sequence, value: found } = found;
        let heads = self.heads(place, &memories(&found)).await?.value;
        Ok(At { sequence, value: self.page(found, heads).await? })
    }

    /// The hits with what an answer shows of them; without those that are gone by now.
    async fn page(&self, found: Found, heads: Vec<Head>) -> Result<SearchPage, Error> {
        let Found { hits, total_matches, next, terms } = found;
        let many = heads.iter().map(Head::bytes).sum::<usize>() > WORKER_BYTES;
        let show = move || {
            let snippets = Snippets::of(&terms);
            let shown = hits.into_iter().zip(heads).filter_map(|(hit, head)| {
                let snippet = snippets.cut(head.document()?.content);
                let Text { path, summary, updated_at, .. } = head.text?;
                Some(SearchHit { memory: hit.memory, path, summary, snippet, score: hit.score, updated_at })
            });
            shown.collect()
        };
        let hits = if many { self.on_worker(show).await? } else { show() };
        Ok(SearchPage { hits, total_matches, next })
    }

    fn slots(&self) -> MutexGuard<'_, HashMap<Place, Arc<Slot>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn slot(&self, place: Place) -> Arc<Slot> {
        let slot = self.slots().entry(place).or_default().clone();
        slot.used.store(self.uses.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        slot
    }

    /// Whether the slot is that of the store still, and has an index and room for vectors.
    fn keeps_vectors(&self, place: Place, slot: &Arc<Slot>) -> bool {
        let kept = self.slots().get(&place).is_some_and(|kept| Arc::ptr_eq(kept, slot));
        kept && slot.sequence().is_some() && !slot.oversized_vectors.load(Ordering::Relaxed)
    }

    /// Drops what was longest unused, until the rest is within the budget. What alone is beyond it is not kept:
    /// first the vectors, then the index.
    fn keep_within_budget(&self, latest: Place) {
        let mut slots = self.slots();
        let bytes = |slot: &Slot| slot.bytes.load(Ordering::Relaxed);
        if let Some(slot) = slots.get(&latest) {
            if bytes(slot) > self.budget {
                slot.oversized_vectors.store(true, Ordering::Relaxed);
                slot.drop_vectors();
            }
            if bytes(slot) > self.budget {
                slot.oversized.store(true, Ordering::Relaxed);
                slot.set(None);
            }
        }
        let mut total: usize = slots.values().map(|slot| bytes(slot)).sum();
        while total > self.budget {
            let used = |(_, slot): &(&Place, &Arc<Slot>)| slot.used.load(Ordering::Relaxed);
            let oldest = slots.iter().filter(|(_, slot)| bytes(slot) > 0).min_by_key(used);
            let Some((&place, slot)) = oldest else { break };
            total -= bytes(slot);
            slot.set(None);
            slots.remove(&place);
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

fn memories(found: &Found) -> Vec<MemoryId> {
    found.hits.iter().map(|hit| hit.memory).collect()
}

/// The ids of memories in parts that are read at once.
fn parts(memories: &[Memory]) -> impl Iterator<Item = Vec<MemoryId>> {
    let mut rest = memories;
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let fits = |memory: &&Memory| {
            let before = bytes;
            bytes += memory.size_bytes;
            before < PART_BYTES
        };
        let count = rest.iter().take(PART_MEMORIES).take_while(fits).count();
        let (part, later) = rest.split_at(count);
        rest = later;
        (count > 0).then(|| part.iter().map(|memory| memory.id).collect())
    })
}

fn worker_is_gone() -> Error {
    StorageError::Internal("a search panicked".into()).into()
}
