//! The inverted index of one store. DESIGN 8.

use std::collections::HashMap;
use std::mem::size_of;

use super::stem::stem;
use super::vocabulary::Vocabulary;
use super::words::{Kind, tokens};
use super::{Change, Document};
use crate::id::MemoryId;
use crate::time::Timestamp;

/// Positions between two fields, so that nothing is adjacent across them.
const FIELD_GAP: u32 = 64;
/// So many dead memories are kept at least before the index is compacted.
const MIN_DEAD: usize = 64;
/// What an occurrence in the path counts, of one in the content.
const PATH_WEIGHT: f32 = 2.0;
/// What an occurrence in the summary counts.
const SUMMARY_WEIGHT: f32 = 1.5;

/// The inverted index of one store, in memory, as of a sequence of the store.
///
/// It holds no texts: words, positions, paths and times. A removed memory's words stay, unreachable, until a quarter
/// of the index is dead; then it is compacted.
#[derive(Debug, Default)]
pub struct Index {
    sequence: u64,
    /// Stems, joined names, parts, pairs of characters.
    pub(super) terms: Vocabulary,
    /// Words as spelled, where their stem differs.
    pub(super) forms: Vocabulary,
    /// By slot, ascending in the order in which they came.
    pub(super) entries: Vec<Entry>,
    /// By slot: what each occurrence that is looked at needs to know.
    pub(super) extents: Vec<Extent>,
    slots: HashMap<MemoryId, u32>,
    entry_bytes: usize,
    words: u64,
}

/// A memory in the index.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) memory: MemoryId,
    pub(super) path: Box<str>,
    pub(super) updated_at: Timestamp,
}

/// How long a memory is and where its fields end, in positions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    pub(super) live: bool,
    /// Words and pairs of characters in all fields.
    pub(super) length: u32,
    path_end: u32,
    summary_end: u32,
}

impl Extent {
    /// What an occurrence at `position` counts.
    pub(super) fn weight(&self, position: u32) -> f32 {
        if position >= self.summary_end {
            1.0
        } else if position >= self.path_end {
            SUMMARY_WEIGHT
        } else {
            PATH_WEIGHT
        }
    }
}

/// Bytes that a memory takes beside its words.
fn entry_bytes(path: &str) -> usize {
    size_of::<Entry>() + size_of::<Extent>() + path.len()
}

impl Index {
    /// The index of the heads of a store as of `sequence`.
    pub fn build<'a>(sequence: u64, documents: impl IntoIterator<Item = Document<'a>>) -> Self {
        let mut index = Self::build_of(documents, |_| true);
        index.sequence = sequence;
        index.shrink();
        index
    }

    /// An index that holds only the words that `wanted` says: it answers queries for them as the whole one does.
    pub(super) fn build_of<'a>(
        documents: impl IntoIterator<Item = Document<'a>>,
        wanted: impl Fn(&str) -> bool,
    ) -> Self {
        let mut index = Self::default();
        index.take(documents, wanted);
        index
    }

    /// Takes what the heads of the store are as of `sequence`, as far as they changed since the index's own.
    ///
    /// Heads may be newer than that: their change comes once more with a later call, and changes nothing then.
    pub fn advance<'a>(&mut self, sequence: u64, changes: impl IntoIterator<Item = Change<'a>>) {
        for change in changes {
            match change {
                Change::Upsert(document) => self.upsert(&document, &|_| true),
                Change::Remove(memory) => self.remove(memory),
                Change::Nothing => {}
            }
        }
        self.sequence = self.sequence.max(sequence);
    }

    /// Gives back what growing has taken in advance.
    pub fn shrink(&mut self) {
        self.terms.shrink();
        self.forms.shrink();
    }

    /// The sequence of the store that this index is up to.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Memories in the index.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether no memory is in the index.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// The memories in the index.
    pub fn memories(&self) -> impl Iterator<Item = MemoryId> {
        self.slots.keys().copied()
    }

    pub(super) fn slot(&self, memory: MemoryId) -> Option<u32> {
        self.slots.get(&memory).copied()
    }

    /// Estimate of the memory held, in bytes.
    pub fn size_bytes(&self) -> usize {
        let slots = self.slots.capacity() * (size_of::<(MemoryId, u32)>() + 1) * 8 / 7;
        size_of::<Self>() + self.terms.heap_bytes() + self.forms.heap_bytes() + self.entry_bytes + slots
    }

    /// Carries out the change with this sequence; one that the index already holds changes nothing.
    pub fn apply(&mut self, sequence: u64, change: Change<'_>) {
        if sequence <= self.sequence {
            return;
        }
        self.advance(sequence, [change]);
    }

    /// Takes documents with the words that `wanted` says.
    pub(super) fn take<'a>(
        &mut self,
        documents: impl IntoIterator<Item = Document<'a>>,
        wanted: impl Fn(&str) -> bool,
    ) {
        for document in documents {
            self.upsert(&document, &wanted);
        }
    }

    fn upsert(&mut self, document: &Document<'_>, wanted: &impl Fn(&str) -> bool) {
        self.remove(document.memory);
        let slot = u32::try_from(self.entries.len()).expect("a store has fewer than 2^32 memories");
        let path_end = self.add(slot, document.path, 0, wanted);
        let summary_end = self.add(slot, document.summary, path_end + FIELD_GAP, wanted);
        let end = self.add(slot, document.content, summary_end + FIELD_GAP, wanted);
        let length = end - 2 * FIELD_GAP;
        self.words += u64::from(length);
        self.entry_bytes += entry_bytes(document.path);
        self.slots.insert(document.memory, slot);
        let (memory, updated_at) = (document.memory, document.updated_at);
        self.entries.push(Entry { memory, path: document.path.into(), updated_at });
        let (path_end, summary_end) = (path_end + FIELD_GAP, summary_end + FIELD_GAP);
        self.extents.push(Extent { live: true, length, path_end, summary_end });
    }

    /// Adds the wanted words of a field that begins at `position`; returns its end.
    fn add(&mut self, slot: u32, text: &str, position: u32, wanted: &impl Fn(&str) -> bool) -> u32 {
        let mut stemmed = String::new();
        tokens(text, position, &mut |token| {
            if !wanted(token.word) {
                return;
            }
            match token.kind {
                Kind::Word | Kind::Part | Kind::Joined => {
                    stem(token.word, &mut stemmed);
                    self.terms.push(&stemmed, slot, token.position);
                    if stemmed != token.word {
                        self.forms.push(token.word, slot, token.position);
                    }
                }
                Kind::Gram | Kind::Symbol | Kind::Tail | Kind::Shaping => {
                    self.terms.push(token.word, slot, token.position);
                }
            }
        })
    }

    fn remove(&mut self, memory: MemoryId) {
        let Some(slot) = self.slots.remove(&memory) else { return };
        let extent = &mut self.extents[slot as usize];
        extent.live = false;
        self.words -= u64::from(extent.length);
        let dead = self.entries.len() - self.slots.len();
        if dead > MIN_DEAD && dead > self.slots.len() / 3 {
            self.compact();
        }
    }

    /// Drops dead memories and what they held.
    fn compact(&mut self) {
        let mut next = 0;
        let number = self.extents.iter().map(|extent| {
            next += u32::from(extent.live);
            extent.live.then(|| next - 1)
        });
        let number: Vec<Option<u32>> = number.collect();
        self.terms = self.terms.renumbered(&number);
        self.forms = self.forms.renumbered(&number);
        let mut live = number.iter().map(Option::is_some);
        self.entries.retain(|_| live.next() == Some(true));
        self.extents.retain(|extent| extent.live);
        self.slots = self.entries.iter().zip(0..).map(|(entry, slot)| (entry.memory, slot)).collect();
        self.entry_bytes = self.entries.iter().map(|entry| entry_bytes(&entry.path)).sum();
    }

    /// Words of a memory, on average; 1 where there are none.
    pub(super) fn average_length(&self) -> f32 {
        let average = self.words as f64 / self.slots.len().max(1) as f64;
        average.max(1.0) as f32
    }
}
