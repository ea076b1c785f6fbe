//! Search by meaning, where an embedding model is there to be asked: vectors are fetched in the background, and a
//! search uses what is there. DESIGN 8.
//!
//! Vectors follow the index, and the index follows the store after every change here, so that a memory can be found
//! by its meaning soon after it was written, and not only after somebody has searched.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use quick_cache::sync::Cache;

use super::slot::Slot;
use super::{Place, Question, Searcher};
use crate::embedder::{EmbedError, Embedder};
use crate::search::{Nearness, PassageKey, Quantized, passage_key};

/// Queries whose vectors are kept: pages of one answer ask again, and so do agents.
const QUERIES_KEPT: usize = 256;
/// Memories whose texts are read at once.
const MEMORIES: usize = 64;
/// Passages that the model is given at once: a query that comes meanwhile waits for them, if the model is busy.
const PASSAGES: usize = 16;

/// The model, and the vectors of late queries.
pub(super) struct Embedding {
    embedder: Arc<dyn Embedder>,
    queries: Cache<Box<str>, Arc<Quantized>>,
}

impl Embedding {
    pub(super) fn new(embedder: Arc<dyn Embedder>) -> Self {
        Self { embedder, queries: Cache::new(QUERIES_KEPT) }
    }

    pub(super) fn passage_chars(&self) -> usize {
        self.embedder.passage_chars()
    }

    async fn query(&self, meaning: &str) -> Option<Arc<Quantized>> {
        if let Some(known) = self.queries.get(meaning) {
            return Some(known);
        }
        let vector = self.embedder.query(meaning.to_owned()).await.ok()?;
        let vector = Arc::new(Quantized::of(&vector)?);
        self.queries.insert(meaning.into(), vector.clone());
        Some(vector)
    }

    /// The vectors of the passages, without those that the model refuses; `None` if it does not answer.
    async fn passages(&self, passages: Vec<(PassageKey, String)>) -> Option<HashMap<PassageKey, Quantized>> {
        let mut found = HashMap::with_capacity(passages.len());
        let mut parts = vec![passages];
        while let Some(mut part) = parts.pop() {
            if part.len() > PASSAGES {
                parts.push(part.split_off(PASSAGES));
            }
            let texts = part.iter().map(|(_, text)| text.clone()).collect();
            match self.embedder.passages(texts).await {
                Ok(vectors) => {
                    let vectors = part.iter().zip(&vectors);
                    found.extend(vectors.filter_map(|((key, _), v)| Some((*key, Quantized::of(v)?))));
                }
                Err(EmbedError::Refused) if part.len() > 1 => {
                    // One of them is to blame, and the others are not.
                    let later = part.split_off(part.len() / 2);
                    parts.extend([later, part]);
                }
                Err(EmbedError::Refused) => {}
                Err(EmbedError::Unavailable) => return None,
            }
        }
        Some(found)
    }
}

impl Searcher {
    /// The vector of what the question means, if vectors of the store are there to compare it with and the model
    /// answers in time.
    pub(super) async fn query_vector(&self, slot: &Slot, question: &Question) -> Option<Arc<Quantized>> {
        let embedding = self.embedding.as_ref()?;
        let meaning = question.query.meaning().filter(|_| slot.has_vectors())?;
        embedding.query(meaning).await
    }

    /// How near the memories of the store, so many, are to the vector. Empty, so that words alone rank, as long as
    /// vectors are missing; `None` if no model is asked.
    pub(super) fn nearness(
        &self,
        slot: &Slot,
        vector: Option<&Quantized>,
        memories: usize,
    ) -> Option<Nearness> {
        let vectors = slot.vectors();
        let vector = vector.filter(|_| vectors.are_ready(memories));
        vector.map(|vector| vectors.nearness(vector)).or_else(|| self.nothing_near())
    }

    /// The nearness where no vectors are there.
    pub(super) fn nothing_near(&self) -> Option<Nearness> {
        self.embedding.is_some().then(Nearness::default)
    }

    /// Sees to it that the store gets its vectors, soon and in the background. Costs nothing where no model is asked.
    pub(super) fn fetch_vectors(self: &Arc<Self>, place: Place, slot: &Arc<Slot>) {
        if self.embedding.is_none() {
            return;
        }
        slot.embedding_wanted.store(true, Ordering::Release);
        let Ok(fetching) = slot.embedding.clone().try_lock_owned() else { return };
        let (searcher, slot) = (self.clone(), slot.clone());
        self.workers.spawn(Box::pin(async move {
            let mut goes_on = true;
            while goes_on && slot.embedding_wanted.swap(false, Ordering::Acquire) {
                goes_on = searcher.fetch_wanting(place, &slot).await.is_some();
            }
            drop(fetching);
            // Who came between the last look and the end found the place taken.
            if goes_on && slot.embedding_wanted.load(Ordering::Acquire) {
                searcher.fetch_vectors(place, &slot);
            }
        }));
    }

    /// Brings the index up to date and then all vectors that it wants; `None` where that has to wait for the next
    /// one who searches or writes.
    async fn fetch_wanting(self: &Arc<Self>, place: Place, slot: &Arc<Slot>) -> Option<()> {
        let embedding = self.embedding.as_ref()?;
        self.bring_up_to_date(place, slot).await.ok()?;
        loop {
            let wanting = slot.vectors().wanting(MEMORIES);
            if wanting.is_empty() {
                return Some(());
            }
            if !self.keeps_vectors(place, slot) {
                return None;
            }
            let ids: Vec<_> = wanting.iter().map(|(memory, _)| *memory).collect();
            let heads = self.heads(place, &ids).await.ok()?.value;
            let (most, known) = (embedding.passage_chars(), slot.clone());
            let (keys, unknown) = self
                .on_worker(move || {
                    let (mut keys, mut unknown) = (Vec::with_capacity(heads.len()), HashMap::new());
                    for passages in heads.iter().map(|head| head.passages(most)) {
                        let named: Vec<_> = passages.iter().map(|text| passage_key(text)).collect();
                        let vectors = known.vectors();
                        let new = named.iter().zip(passages).filter(|(key, _)| !vectors.knows(key));
                        unknown.extend(new.map(|(key, text)| (*key, text.to_owned())));
                        keys.push(named);
                    }
                    (keys, unknown.into_iter().collect::<Vec<_>>())
                })
                .await
                .ok()?;
            let new = if unknown.is_empty() { HashMap::new() } else { embedding.passages(unknown).await? };
            {
                let mut vectors = slot.vectors_mut();
                for (wanting, keys) in wanting.into_iter().zip(&keys) {
                    if !vectors.complete(wanting, keys, &new) {
                        return None;
                    }
                }
            }
            slot.weigh();
            self.keep_within_budget(place);
        }
    }
}
