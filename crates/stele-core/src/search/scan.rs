//! The answer without an index: for the first query, while the index is being built. DESIGN 8.

use super::irregular;
use super::query::{How, Query};
use super::{Document, Found, Index, Request};

/// Answers as `Index::search` does on an index of the same documents, by reading them once.
///
/// Where nothing matches it reads them a second time, whole, to correct typing errors.
pub fn scan<'a, D>(documents: D, query: &Query, request: &Request<'_>) -> Found
where
    D: IntoIterator<Item = Document<'a>> + Clone,
{
    let wanted = Wanted::of(query);
    let found = Index::build_of(documents.clone(), |word| wanted.holds(word)).search(query, request);
    if found.total_matches > 0 || !query.may_be_corrected() {
        return found;
    }
    Index::build_of(documents, |_| true).search(query, request)
}

/// The first two bytes of all words that a query may be about: most words of a text need not be looked at further.
struct Wanted(Box<[bool; 1 << 16]>);

impl Wanted {
    fn of(query: &Query) -> Self {
        let mut wanted = Self(Box::new([false; 1 << 16]));
        for clause in &query.clauses {
            wanted.add(&clause.term);
            wanted.add(&clause.word);
            if clause.how == How::Term {
                wanted.add_forms(&clause.term);
            }
        }
        wanted
    }

    fn add(&mut self, word: &str) {
        match *word.as_bytes() {
            [] => {}
            [first] => (0..=255).for_each(|second| self.0[key(first, second)] = true),
            [first, second, ..] => self.0[key(first, second)] = true,
        }
    }

    /// Irregular forms with this stem, which may begin otherwise.
    fn add_forms(&mut self, stem: &str) {
        for form in irregular::forms_with_stem(stem) {
            self.add(form);
        }
    }

    /// Whether the query may be about the word. Its stem begins as it does, but for `y` and `i`, if it has four
    /// letters or more.
    fn holds(&self, word: &str) -> bool {
        match *word.as_bytes() {
            [first, second, _, _, ..] => self.0[key(first, second)],
            _ => true,
        }
    }
}

fn key(first: u8, second: u8) -> usize {
    let second = if second == b'y' { b'i' } else { second };
    usize::from(first) << 8 | usize::from(second)
}
