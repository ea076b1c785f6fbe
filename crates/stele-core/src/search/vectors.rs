//! The vectors of one store's memories, in memory only: what a vector was made of can be guessed from it, so that a
//! copy on disk would have to be redacted with the text.

use std::collections::HashMap;
use std::mem::size_of;

use super::passages::PassageKey;
use crate::id::MemoryId;

/// The largest component of a row: a byte each loses less than the models are exact to.
const LARGEST: f32 = 127.0;
/// Of ten memories, so many must have vectors before these are used.
const READY_TENTHS: usize = 9;

/// The vectors of passages, a row of bytes each, and whose they are.
///
/// A memory whose text has no vector yet is *wanting*: somebody asks for it ([`Vectors::wanting`]) and brings the
/// vectors ([`Vectors::complete`]). Vectors are known by the hash of their passage, so that a rename, a move of text
/// between memories or a new index asks for nothing twice.
#[derive(Debug, Default)]
pub struct Vectors {
    /// Components of a row; 0 as long as there is none.
    dimension: usize,
    rows: Vec<i8>,
    meta: Vec<Row>,
    /// Rows that nobody uses any more.
    free: Vec<u32>,
    known: HashMap<PassageKey, u32>,
    /// The rows of each memory; none for one without a text that the model takes.
    memories: HashMap<MemoryId, Box<[u32]>>,
    /// With a stamp that says since when.
    wanting: HashMap<MemoryId, u64>,
    stamps: u64,
    /// Rows in use by memories, counted as often as they are used.
    used: usize,
}

#[derive(Debug)]
struct Row {
    key: PassageKey,
    /// One over the length of the row.
    scale: f32,
    uses: u32,
}

/// A vector as it is kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Quantized {
    components: Box<[i8]>,
    scale: f32,
}

impl Quantized {
    /// The vector to the precision of a byte a component; `None` for one without a direction.
    pub fn of(vector: &[f32]) -> Option<Self> {
        let largest = vector.iter().fold(0.0_f32, |largest, x| largest.max(x.abs()));
        if largest == 0.0 || !vector.iter().all(|x| x.is_finite()) {
            return None;
        }
        let components: Box<[i8]> = vector.iter().map(|x| (x / largest * LARGEST).round() as i8).collect();
        let scale = 1.0 / (dot(&components, &components) as f32).sqrt();
        Some(Self { components, scale })
    }
}

/// The sum of products. Up to 2^17 components do not overflow it.
fn dot(a: &[i8], b: &[i8]) -> i32 {
    a.iter().zip(b).map(|(a, b)| i32::from(*a) * i32::from(*b)).sum()
}

impl Vectors {
    /// Says of which passages a memory now consists. Where all their vectors are known it has them at once; else it
    /// is wanting, and without any.
    pub fn set(&mut self, memory: MemoryId, passages: &[PassageKey]) {
        let rows: Option<Vec<u32>> = passages.iter().map(|key| self.known.get(key).copied()).collect();
        match rows {
            Some(rows) => self.assign(memory, rows),
            None => {
                self.remove(memory);
                self.want(memory);
            }
        }
    }

    /// Keeps to these memories, and wants the vectors of all of them again: their texts may be others.
    pub fn reset(&mut self, memories: impl IntoIterator<Item = MemoryId>) {
        let mut gone = std::mem::take(&mut self.memories);
        self.wanting.clear();
        for memory in memories {
            if let Some(rows) = gone.remove(&memory) {
                self.memories.insert(memory, rows);
            }
            self.want(memory);
        }
        gone.into_values().for_each(|rows| self.release(&rows));
    }

    fn want(&mut self, memory: MemoryId) {
        self.stamps += 1;
        self.wanting.insert(memory, self.stamps);
    }

    /// Forgets a memory.
    pub fn remove(&mut self, memory: MemoryId) {
        self.wanting.remove(&memory);
        if let Some(rows) = self.memories.remove(&memory) {
            self.release(&rows);
        }
    }

    /// Some memories that want vectors, with the stamps to complete them by.
    pub fn wanting(&self, most: usize) -> Vec<(MemoryId, u64)> {
        self.wanting.iter().take(most).map(|(memory, stamp)| (*memory, *stamp)).collect()
    }

    /// How many memories want vectors.
    pub fn wanting_count(&self) -> usize {
        self.wanting.len()
    }

    /// Whether the passage has a vector.
    pub fn knows(&self, passage: &PassageKey) -> bool {
        self.known.contains_key(passage)
    }

    /// Gives a wanting memory its vectors, the new ones from `new`; a passage that is not there has none. If the text
    /// has changed since the stamp, nothing happens. False if the dimension of a vector is not that of the others.
    pub fn complete(
        &mut self,
        (memory, stamp): (MemoryId, u64),
        passages: &[PassageKey],
        new: &HashMap<PassageKey, Quantized>,
    ) -> bool {
        if self.wanting.get(&memory) != Some(&stamp) {
            return true;
        }
        let mut brought = passages.iter().filter_map(|key| new.get(key)).peekable();
        if self.known.is_empty()
            && let Some(first) = brought.peek()
        {
            self.begin(first.components.len());
        }
        if brought.any(|vector| vector.components.len() != self.dimension) {
            return false;
        }
        let rows = passages.iter().filter_map(|key| {
            let known = self.known.get(key).copied();
            known.or_else(|| Some(self.add(*key, new.get(key)?)))
        });
        let rows = rows.collect();
        self.assign(memory, rows);
        true
    }

    /// Makes room for vectors of another dimension; no memory has any.
    fn begin(&mut self, dimension: usize) {
        let (memories, wanting) = (std::mem::take(&mut self.memories), std::mem::take(&mut self.wanting));
        *self = Self { dimension, memories, wanting, stamps: self.stamps, ..Self::default() };
    }

    fn add(&mut self, key: PassageKey, vector: &Quantized) -> u32 {
        let meta = Row { key, scale: vector.scale, uses: 0 };
        let row = match self.free.pop() {
            Some(row) => {
                let at = row as usize * self.dimension;
                self.rows[at..at + self.dimension].copy_from_slice(&vector.components);
                self.meta[row as usize] = meta;
                row
            }
            None => {
                self.rows.extend_from_slice(&vector.components);
                self.meta.push(meta);
                u32::try_from(self.meta.len() - 1).expect("fewer than 2^32 passages fit into memory")
            }
        };
        self.known.insert(key, row);
        row
    }

    fn assign(&mut self, memory: MemoryId, rows: Vec<u32>) {
        self.wanting.remove(&memory);
        rows.iter().for_each(|row| self.meta[*row as usize].uses += 1);
        self.used += rows.len();
        if let Some(before) = self.memories.insert(memory, rows.into()) {
            self.release(&before);
        }
    }

    fn release(&mut self, rows: &[u32]) {
        self.used -= rows.len();
        for row in rows {
            let meta = &mut self.meta[*row as usize];
            meta.uses -= 1;
            if meta.uses == 0 {
                self.known.remove(&meta.key);
                let at = *row as usize * self.dimension;
                self.rows[at..at + self.dimension].fill(0);
                self.free.push(*row);
            }
        }
    }

    /// Whether nearly all of a store's memories have vectors; before, the others would be at a disadvantage.
    pub fn are_ready(&self, memories: usize) -> bool {
        !self.known.is_empty() && self.memories.len() * 10 >= memories * READY_TENTHS
    }

    /// How near each memory is to a vector: the cosine of its nearest passage. Nothing for a vector of another
    /// dimension.
    pub fn nearness(&self, vector: &Quantized) -> Nearness {
        if vector.components.len() != self.dimension {
            return Nearness::default();
        }
        let rows = self.rows.chunks_exact(self.dimension).zip(&self.meta);
        let cosines: Vec<f32> =
            rows.map(|(row, meta)| dot(row, &vector.components) as f32 * meta.scale * vector.scale).collect();
        let nearest = |rows: &[u32]| rows.iter().map(|row| cosines[*row as usize]).reduce(f32::max);
        Nearness(self.memories.iter().filter_map(|(memory, rows)| Some((*memory, nearest(rows)?))).collect())
    }

    /// Passages with a vector.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Whether no passage has a vector.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Estimate of the memory held, in bytes.
    pub fn size_bytes(&self) -> usize {
        let known = self.known.capacity() * (size_of::<(PassageKey, u32)>() + 1);
        let memories = self.memories.capacity() * (size_of::<(MemoryId, Box<[u32]>)>() + 1);
        let wanting = self.wanting.capacity() * (size_of::<(MemoryId, u64)>() + 1);
        let lists = self.used * size_of::<u32>() + self.free.capacity() * size_of::<u32>();
        let rows = self.rows.capacity() + self.meta.capacity() * size_of::<Row>();
        size_of::<Self>() + rows + known + memories + wanting + lists
    }
}

/// How near memories of a store are to a query; empty where nothing is known of that.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Nearness(pub(super) Vec<(MemoryId, f32)>);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::passages::passage_key;
    use crate::time::Timestamp;

    fn id(number: u64) -> MemoryId {
        MemoryId::mint(Timestamp::from_micros(0), number)
    }

    fn vector(components: &[f32]) -> Quantized {
        Quantized::of(components).expect("a direction")
    }

    /// The passages of memories with the vector of each.
    type Texts<'a> = [(MemoryId, &'a [(&'a str, &'a [f32])])];

    /// Gives every wanting memory the vectors that `texts` says.
    fn bring(vectors: &mut Vectors, texts: &Texts<'_>) -> bool {
        vectors.wanting(100).into_iter().all(|(memory, stamp)| {
            let (_, passages) = texts.iter().find(|(of, _)| *of == memory).expect("a text");
            let keys: Vec<_> = passages.iter().map(|(text, _)| passage_key(text)).collect();
            let new = passages.iter().map(|(text, v)| (passage_key(text), vector(v))).collect();
            vectors.complete((memory, stamp), &keys, &new)
        })
    }

    fn near(vectors: &Vectors, to: &[f32]) -> Vec<(MemoryId, f32)> {
        let mut near = vectors.nearness(&vector(to)).0;
        near.iter_mut().for_each(|(_, cosine)| *cosine = (*cosine * 100.0).round() / 100.0);
        near.sort_by_key(|(memory, _)| *memory);
        near
    }

    #[test]
    fn a_memory_is_as_near_as_its_nearest_passage() {
        let mut vectors = Vectors::default();
        vectors.reset([id(1), id(2)]);
        let texts: &Texts<'_> =
            &[(id(1), &[("a", &[1.0, 0.0]), ("b", &[0.0, 9.0])]), (id(2), &[("c", &[-3.0, 3.0])])];
        assert!(bring(&mut vectors, texts));
        assert_eq!(near(&vectors, &[0.0, 1.0]), [(id(1), 1.0), (id(2), 0.71)]);
        assert_eq!(near(&vectors, &[2.0, 0.0]), [(id(1), 1.0), (id(2), -0.71)]);
        assert_eq!(near(&vectors, &[1.0, 0.0, 0.0]), [], "another dimension");
        assert!(vectors.are_ready(2) && !vectors.are_ready(3));
    }

    #[test]
    fn a_known_passage_is_not_wanted_again_and_one_that_nobody_has_is_gone() {
        let mut vectors = Vectors::default();
        vectors.set(id(1), &[passage_key("a")]);
        assert!(bring(&mut vectors, &[(id(1), &[("a", &[1.0, 0.0])])]));
        vectors.set(id(2), &[passage_key("a")]);
        assert_eq!((vectors.wanting_count(), vectors.len()), (0, 1));
        vectors.remove(id(1));
        assert!(vectors.knows(&passage_key("a")), "the other memory has it");
        vectors.set(id(2), &[passage_key("b")]);
        assert!(vectors.is_empty() && vectors.wanting_count() == 1);
        assert!(vectors.rows.iter().all(|byte| *byte == 0));
        assert_eq!(near(&vectors, &[1.0, 0.0]), []);
        assert!(bring(&mut vectors, &[(id(2), &[("b", &[1.0, 1.0, 0.0])])]), "a dimension of its own again");
        assert_eq!(near(&vectors, &[1.0, 1.0, 0.0]), [(id(2), 1.0)]);
    }

    #[test]
    fn vectors_of_a_text_that_has_changed_meanwhile_are_not_taken() {
        let mut vectors = Vectors::default();
        vectors.set(id(1), &[passage_key("old")]);
        let old = vectors.wanting(1)[0];
        vectors.set(id(1), &[passage_key("new")]);
        let brought = HashMap::from([(passage_key("old"), vector(&[1.0]))]);
        assert!(vectors.complete(old, &[passage_key("old")], &brought));
        assert!(vectors.is_empty() && vectors.wanting_count() == 1);
    }

    #[test]
    fn a_new_index_keeps_what_is_known_and_asks_for_all_again() {
        let mut vectors = Vectors::default();
        vectors.reset([id(1), id(2)]);
        assert!(bring(&mut vectors, &[(id(1), &[("a", &[1.0])]), (id(2), &[("b", &[-1.0])])]));
        vectors.reset([id(2), id(3)]);
        assert_eq!((vectors.wanting_count(), vectors.len()), (2, 1));
        vectors.set(id(2), &[passage_key("b")]);
        assert_eq!(vectors.wanting(9).iter().map(|(memory, _)| *memory).collect::<Vec<_>>(), [id(3)]);
    }

    #[test]
    fn a_text_that_the_model_refuses_leaves_its_memory_without_a_vector() {
        let mut vectors = Vectors::default();
        vectors.set(id(1), &[passage_key("a")]);
        assert!(vectors.complete(vectors.wanting(1)[0], &[passage_key("a")], &HashMap::new()));
        assert_eq!((vectors.wanting_count(), near(&vectors, &[1.0])), (0, vec![]));
    }

    #[test]
    fn a_vector_of_another_dimension_is_not_taken() {
        let mut vectors = Vectors::default();
        vectors.reset([id(1), id(2)]);
        let texts: &Texts<'_> = &[(id(1), &[("a", &[1.0])]), (id(2), &[("b", &[1.0, 2.0])])];
        assert!(!bring(&mut vectors, texts));
        assert_eq!(vectors.len(), 1);
    }

    #[test]
    fn what_has_no_direction_is_no_vector() {
        assert_eq!(Quantized::of(&[0.0, 0.0]), None);
        assert_eq!(Quantized::of(&[f32::NAN, 1.0]), None);
        assert_eq!(Quantized::of(&[f32::INFINITY, 1.0]), None);
        assert_eq!(Quantized::of(&[]), None);
    }
}
