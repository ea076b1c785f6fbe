//! The answer without an index: for the first query, while the index is being built. DESIGN 8.

use super::query::{How, Query};
use super::rank::Typing;
use super::wanted::Wanted;
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
        Self { wanted: wanted(&query), query, index: Index::default() }
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

/// The words that a query may be about.
fn wanted(query: &Query) -> Wanted {
    let mut wanted = Wanted::default();
    for clause in &query.clauses {
        wanted.add_beginning(&clause.term);
        wanted.add_beginning(&clause.word);
        if clause.how == How::Term {
            wanted.add_stem(&clause.term);
        }
    }
    wanted
}
