//! The terms of an index and where they occur, found whole or by their first letters.

use std::collections::HashMap;
use std::mem::size_of;

use super::postings::Postings;

/// Terms by their first two bytes, so that those with a common beginning need no search through all.
#[derive(Debug, Default)]
pub(super) struct Vocabulary {
    buckets: HashMap<[u8; 2], HashMap<Box<str>, Postings>>,
    heap_bytes: usize,
}

fn bucket(term: &str) -> [u8; 2] {
    let bytes = term.as_bytes();
    [bytes.first().copied().unwrap_or(0), bytes.get(1).copied().unwrap_or(0)]
}

impl Vocabulary {
    /// Adds an occurrence of `term`.
    pub(super) fn push(&mut self, term: &str, slot: u32, position: u32) {
        let terms = self.buckets.entry(bucket(term)).or_default();
        let postings = match terms.get_mut(term) {
            Some(postings) => postings,
            None => {
                // The entry itself, with the share of the table that stands empty.
                self.heap_bytes += term.len() + size_of::<(Box<str>, Postings)>() * 3 / 2;
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
        let short = short.filter(move |(key, _)| bytes.first().is_none_or(|first| *first == key[0]));
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
            for at in postings.iter() {
                if let Some(slot) = number[at.slot as usize] {
                    new.push(term, slot, at.position);
                }
            }
        }
        new.shrink();
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
