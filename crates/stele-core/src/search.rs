//! Search in one store: an inverted index in memory, BM25 over path, summary and content. DESIGN 8.
//!
//! Pure: documents, changes and queries come in, ranked ids go out. `Index` answers when it is built, `Scan` until
//! then, alike to the last bit of a score. `Snippets` show why a memory was found, from the content that the caller
//! read for the answer; the index keeps no text.

mod blend;
mod characters;
mod expand;
mod fold;
mod function_words;
mod index;
mod irregular;
mod matches;
mod passages;
mod postings;
mod query;
mod rank;
mod scan;
mod snippet;
mod stem;
mod vectors;
mod vocabulary;
mod wanted;
mod words;

pub use index::Index;
pub use passages::{PassageKey, passage_key, passages};
pub use query::Query;
pub use scan::Scan;
pub use snippet::{MAX_SNIPPET_CHARS, Snippet, Snippets};
pub use vectors::{Nearness, Quantized, Vectors};

use std::collections::HashMap;

use crate::id::MemoryId;
use crate::path::PathPrefix;
use crate::time::Timestamp;

/// The head of a memory, as far as search is concerned.
#[derive(Clone, Copy, Debug)]
pub struct Document<'a> {
    /// Whose it is.
    pub memory: MemoryId,
    /// Its path.
    pub path: &'a str,
    /// Its summary; empty when it has none.
    pub summary: &'a str,
    /// Its content.
    pub content: &'a str,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// What one committed change does to the heads of a store.
#[derive(Clone, Copy, Debug)]
pub enum Change<'a> {
    /// The memory is now this: created, updated or renamed.
    Upsert(Document<'a>),
    /// The memory is gone.
    Remove(MemoryId),
    /// No head changed: a redaction of an old version, a change of the store itself.
    Nothing,
}

/// Which part of the answer is wanted.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Only memories below this directory; the statistics of words stay those of the store.
    pub prefix: Option<&'a PathPrefix>,
    /// After this hit.
    pub after: Option<&'a Position>,
    /// At most so many hits.
    pub limit: usize,
    /// How near memories are to what the query means, where an embedding model is asked: scores are then blended and
    /// from 0 to 1, also as long as nothing is known of any. `None` where there is no model: words alone.
    pub nearness: Option<&'a Nearness>,
}

/// Where an answer goes on: after the hit with this score and path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Position {
    /// The bits of the score, `f32::to_bits`: order and equality do not suffer from a decimal spelling.
    pub score_bits: u32,
    /// The path.
    pub path: Box<str>,
}

/// A memory that was found.
#[derive(Clone, PartialEq, Debug)]
pub struct Hit {
    /// Its id.
    pub memory: MemoryId,
    /// Its path.
    pub path: Box<str>,
    /// How well it matches: above 0, comparable within one answer only.
    pub score: f32,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// One page of the answer to a query.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Found {
    /// The hits, by falling score, then by the bytes of the path.
    pub hits: Vec<Hit>,
    /// Memories found, on all pages.
    pub total_matches: usize,
    /// Where the next page begins; `None` on the last.
    pub next: Option<Position>,
    /// What was in the end looked for, for `Snippets`.
    pub terms: Terms,
}

/// The terms that an answer was found by, after prefixes and typing errors were resolved.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Terms {
    /// Stems and pairs of characters, with what each is worth.
    stems: HashMap<Box<str>, f32>,
    /// Words as spelled.
    forms: HashMap<Box<str>, f32>,
    /// Beginnings of words.
    beginnings: Vec<Box<str>>,
}

#[cfg(test)]
mod tests;
