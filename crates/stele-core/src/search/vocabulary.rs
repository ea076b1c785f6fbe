//! The terms of an index and where they occur, found whole or by their first letters.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::mem::size_of;

use super::postings::Postings;

/// Terms by their first two bytes, so that those with a common beginning need no search through all.
#[derive(Debug, Default)]
pub(super) struct Vocabulary {
    buckets: HashMap<u16, HashMap<Box<str>, Postings>, BuildHasherDefault<PairHasher>>,
    heap_bytes: usize,
}

fn bucket(term: &str) -> u16 {
    let bytes = term.as_bytes();
    u16::from_be_bytes([bytes.first().copied().unwrap_or(0), bytes.get(1).copied().unwrap_or(0)])
}

/// What the entry of a term takes, with its share of the room in the table that stands empty.
fn entry_bytes(term: &str) -> usize {
    term.len() + size_of::<(Box<str>, Postings)>() * 3 / 2
}

/// Spreads two bytes over 64 bits. There are too few keys for an attack by collisions, and each word asks.
#[derive(Default)]
struct PairHasher(u64);

impl Hasher for PairHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u16(u16::from(*byte)));
    }

    fn write_u16(&mut self, pair: u16) {
        self.0 = (self.0 ^ u64::from(pair)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32);
    }
}

impl Vocabulary {
    /// Adds an occurrence of `term`.
    pub(super) fn push(&mut self, term: &str, slot: u32, position: u32) {
        let terms = self.buckets.entry(bucket(term)).or_default();
        let postings = match terms.get_mut(term) {
            Some(postings) => postings,
            None => {
                self.heap_bytes += entry_bytes(term);
                terms.entry(term.into()).or_default()
            }
        };
        let before = postings.heap_bytes();
        postings.push(slot, position);
        self.heap_bytes += postings.heap_bytes() - before;
    }

    /// The occurrences of `term`.
    pub(super) fn get(&self, term: &str) -> Option<&Postings> {
        self.buckets.get(&bucket(term))?.get(term)
    }

    /// The terms that begin with `prefix`, in no order.
    pub(super) fn starting_with(&self, prefix: &str) -> impl Iterator<Item = (&str, &Postings)> {
        let bytes = prefix.as_bytes();
        let whole = if bytes.len() >= 2 { self.buckets.get(&bucket(prefix)) } else { None };
        let short = (bytes.len() < 2).then(|| self.buckets.iter()).into_iter().flatten();
        let short =
            short.filter(move |(key, _)| bytes.first().is_none_or(|first| *first == (**key >> 8) as u8));
        let terms = whole.into_iter().chain(short.map(|(_, terms)| terms)).flatten();
        terms.map(|(term, postings)| (&**term, postings)).filter(move |(term, _)| term.starts_with(prefix))
    }

    /// Estimate of the bytes held.
    pub(super) fn heap_bytes(&self) -> usize {
        self.heap_bytes
    }

    /// This vocabulary with slots renumbered; what has no new number is gone.
    pub(super) fn renumbered(&self, number: &[Option<u32>]) -> Self {
        let mut new = Self::default();
        for (term, postings) in self.starting_with("") {
            let mut kept = Postings::default();
            for at in postings.iter() {
                if let Some(slot) = number[at.slot as usize] {
                    kept.push(slot, at.position);
                }
            }
            if kept.heap_bytes() > 0 {
                kept.shrink();
                new.heap_bytes += entry_bytes(term) + kept.heap_bytes();
                new.buckets.entry(bucket(term)).or_default().insert(term.into(), kept);
            }
        }
        new
    }

    /// Gives back room that is not used.
    pub(super) fn shrink(&mut self) {
        for postings in self.buckets.values_mut().flat_map(HashMap::values_mut) {
            let before = postings.heap_bytes();
            postings.shrink();
            self.heap_bytes -= before - postings.heap_bytes();
        }
    }
}
