//! The place of one store's index and vectors, and the heads that they are made of.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use bytes::Bytes;
use tokio::sync::Mutex as AsyncMutex;

use crate::id::MemoryId;
use crate::model::VersionText;
use crate::search::{Change, Document, Index, PassageKey, Vectors, passage_key, passages};
use crate::text::Summary;
use crate::time::Timestamp;

/// The place of one store's index.
#[derive(Default)]
pub(super) struct Slot {
    index: RwLock<Option<Index>>,
    /// Of the same memories; empty where no embedding model is asked.
    vectors: RwLock<Vectors>,
    /// Held while the index is built or follows the store: one at a time.
    pub(super) tending: Arc<AsyncMutex<()>>,
    /// Held while vectors are fetched: one at a time.
    pub(super) embedding: Arc<AsyncMutex<()>>,
    /// Whether somebody wants vectors fetched, or looked after once more.
    pub(super) embedding_wanted: AtomicBool,
    pub(super) used: AtomicU64,
    pub(super) bytes: AtomicUsize,
    /// Whether the index alone is beyond the budget, so that it is not kept.
    pub(super) oversized: AtomicBool,
    /// Whether the vectors are what is beyond the budget, so that only the index is kept.
    pub(super) oversized_vectors: AtomicBool,
}

impl Slot {
    /// What `look` says of the index, if there is one.
    pub(super) fn look<T>(&self, look: impl FnOnce(&Index) -> T) -> Option<T> {
        self.index.read().unwrap_or_else(PoisonError::into_inner).as_ref().map(look)
    }

    pub(super) fn sequence(&self) -> Option<u64> {
        self.look(Index::sequence)
    }

    pub(super) fn vectors(&self) -> RwLockReadGuard<'_, Vectors> {
        self.vectors.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn vectors_mut(&self) -> RwLockWriteGuard<'_, Vectors> {
        self.vectors.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the vectors cover the store well enough to rank by them.
    pub(super) fn has_vectors(&self) -> bool {
        self.look(Index::len).is_some_and(|memories| self.vectors().are_ready(memories))
    }

    pub(super) fn set(&self, index: Option<Index>) {
        *self.index.write().unwrap_or_else(PoisonError::into_inner) = index;
        self.weigh();
    }

    /// Brings the index to `sequence`, and the vectors along where they are of passages of `passage_chars`.
    pub(super) fn advance(&self, sequence: u64, heads: &[Head], passage_chars: Option<usize>) {
        // The vectors first: a search that sees the new index must not see vectors of texts that are no more.
        if let Some(most) = passage_chars.filter(|_| !self.oversized_vectors.load(Ordering::Relaxed)) {
            let passages: Vec<_> = heads.iter().map(|head| (head, head.passage_keys(most))).collect();
            let mut vectors = self.vectors_mut();
            for (head, keys) in passages {
                match head.document() {
                    Some(_) => vectors.set(head.memory, &keys),
                    None => vectors.remove(head.memory),
                }
            }
        }
        self.advance_index(sequence, heads);
        self.weigh();
    }

    /// The index is out of its place meanwhile: a panic leaves none rather than half of one.
    fn advance_index(&self, sequence: u64, heads: &[Head]) {
        let mut place = self.index.write().unwrap_or_else(PoisonError::into_inner);
        let Some(mut index) = place.take() else { return };
        index.advance(sequence, heads.iter().map(Head::change));
        *place = Some(index);
    }

    pub(super) fn drop_vectors(&self) {
        *self.vectors_mut() = Vectors::default();
        self.weigh();
    }

    /// Notes how many bytes are held.
    pub(super) fn weigh(&self) {
        let index = self.look(Index::size_bytes).unwrap_or(0);
        let vectors = self.vectors();
        let vectors =
            if vectors.is_empty() && vectors.wanting_count() == 0 { 0 } else { vectors.size_bytes() };
        self.bytes.store(index + vectors, Ordering::Relaxed);
    }
}

/// The texts of a memory's head.
pub(super) struct Text {
    pub(super) path: Box<str>,
    pub(super) summary: Summary,
    content: Bytes,
    pub(super) updated_at: Timestamp,
}

/// A memory as it now is; without texts if it is gone.
pub(super) struct Head {
    pub(super) memory: MemoryId,
    pub(super) text: Option<Text>,
}

impl Head {
    pub(super) fn of(memory: MemoryId, found: Option<VersionText>) -> Self {
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

    pub(super) fn document(&self) -> Option<Document<'_>> {
        let Text { path, summary, content, updated_at } = self.text.as_ref()?;
        let content = std::str::from_utf8(content).unwrap_or_default();
        let (memory, updated_at) = (self.memory, *updated_at);
        Some(Document { memory, path, summary: summary.as_str(), content, updated_at })
    }

    pub(super) fn change(&self) -> Change<'_> {
        self.document().map_or(Change::Remove(self.memory), Change::Upsert)
    }

    /// The passages of at most `most` characters that an embedding model is given.
    pub(super) fn passages(&self, most: usize) -> Vec<&str> {
        self.document().map_or(Vec::new(), |document| passages(document.summary, document.content, most))
    }

    fn passage_keys(&self, most: usize) -> Vec<PassageKey> {
        self.passages(most).into_iter().map(passage_key).collect()
    }

    pub(super) fn bytes(&self) -> usize {
        self.text.as_ref().map_or(0, |text| text.content.len())
    }
}
