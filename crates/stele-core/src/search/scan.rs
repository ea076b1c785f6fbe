//! The answer without an index: for the first query, while the index is being built. DESIGN 8.

use super::irregular;
use super::query::{How, Query};
use super::rank::Typing;
use super::{Document, Found, Index, Request};

/// Answers as `Index::search` does on an index of the same documents, by reading them once, in parts.
pub struct Scan {
    query: Query,
    wanted: Wanted,
    index: Index,
}

impl Scan {
    /// A scan for the query that has read nothing yet.
    pub fn new(query: Query) -> Self {
        Self { wanted: Wanted::of(&query), query, index: Index::default() }
    }

    /// Reads more documents, each memory once.
    pub fn read<'a>(&mut self, documents: impl IntoIterator<Item = Document<'a>>) {
        self.index.take(documents, |word| self.wanted.holds(word));
    }

    /// The answer, once all documents were read; `None` where nothing matches as it is written, so that typing errors
    /// are to be corrected, which takes an index of all words.
    pub fn answer(&self, request: &Request<'_>) -> Option<Found> {
        let found = self.index.find(&self.query, request, Typing::AsWritten);
        (found.total_matches > 0 || !self.query.may_be_corrected()).then_some(found)
    }
}

/// How the words begin that a query may be about: most words of a text need not be looked at further.
struct Wanted {
    /// Whether any begins with these two bytes.
    pairs: Box<[bool; 1 << 16]>,
    beginnings: Vec<Box<[u8]>>,
}

impl Wanted {
    fn of(query: &Query) -> Self {
        let mut wanted = Self { pairs: Box::new([false; 1 << 16]), beginnings: Vec::new() };
        for clause in &query.clauses {
            wanted.add(&clause.term);
            wanted.add(&clause.word);
            if clause.how == How::Term {
                irregular::forms_with_stem(&clause.term).into_iter().for_each(|form| wanted.add(form));
            }
        }
        wanted.beginnings.sort_unstable();
        wanted.beginnings.dedup();
        wanted
    }

    fn add(&mut self, term: &str) {
        let bytes = term.as_bytes();
        match *bytes {
            [] => return,
            [first] => (0..=255).for_each(|second| self.pairs[key(first, second)] = true),
            [first, second, ..] => self.pairs[key(first, second)] = true,
        }
        // Of two or three letters the second may be a `y` that became an `i`.
        let sure = if bytes.len() < 4 { 1 } else { bytes.len() - 1 };
        self.beginnings.push(bytes[..sure].into());
    }

    /// Whether the query may be about the word.
    ///
    /// A word of four letters or more begins as its stem does without the last letter: suffixes go, and at the end
    /// of what stays a `y` becomes an `i`. Irregular forms are asked for one by one.
    fn holds(&self, word: &str) -> bool {
        match *word.as_bytes() {
            [first, second, _, _, ..] => {
                self.pairs[key(first, second)]
                    && self.beginnings.iter().any(|b| word.as_bytes().starts_with(b))
            }
            _ => true,
        }
    }
}

fn key(first: u8, second: u8) -> usize {
    let second = if second == b'y' { b'i' } else { second };
    usize::from(first) << 8 | usize::from(second)
}
