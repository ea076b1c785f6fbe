//! Words of the index that a word of the query stands for: those that it begins, and those that it misspells.

use super::index::Index;
use super::matches::Matches;
use super::postings::Postings;
use super::query::{Clause, How};
use super::vocabulary::Vocabulary;

/// Most terms that a beginning stands for: the shortest ones.
const MAX_EXPANSIONS: usize = 256;

/// What a clause matches.
pub(super) fn matches(index: &Index, clause: &Clause) -> Matches {
    let known = |postings: Option<&Postings>| postings.map(|p| Matches::of(index, p)).unwrap_or_default();
    match clause.how {
        How::Term => known(index.terms.get(&clause.term)),
        How::Form => known(index.forms.get(&clause.term)),
        How::Beginning => beginning(index, &[&index.terms], &clause.term),
        How::Open => beginning(index, &[&index.terms, &index.forms], &clause.term),
    }
}

fn beginning(index: &Index, vocabularies: &[&Vocabulary], prefix: &str) -> Matches {
    let mut terms: Vec<_> = vocabularies.iter().flat_map(|v| v.starting_with(prefix)).collect();
    terms.sort_unstable_by_key(|(term, _)| (term.len(), *term));
    let live = terms.iter().map(|(_, postings)| Matches::of(index, postings)).filter(|m| !m.items.is_empty());
    let parts: Vec<_> = live.take(MAX_EXPANSIONS).collect();
    Matches::union(&parts, index.entries.len())
}

/// What a misspelled word stands for.
#[derive(Default)]
pub(super) struct Correction {
    pub(super) matches: Matches,
    pub(super) stems: Vec<Box<str>>,
    pub(super) forms: Vec<Box<str>>,
}

/// The words of the index that are nearest to `word`: one edit away, for eight letters or more also two. A word of
/// three letters or less, or with a digit, is taken to be meant as it is.
pub(super) fn correct(index: &Index, word: &str) -> Correction {
    let letters: Vec<char> = word.chars().collect();
    if letters.len() < 4 || letters.iter().any(|c| !c.is_alphabetic()) {
        return Correction::default();
    }
    let bag = bag(word);
    let mut best = if letters.len() < 8 { 1 } else { 2 };
    let mut found: Vec<(&str, bool, Matches)> = Vec::new();
    let mut rows = Rows::default();
    for (vocabulary, is_stem) in [(&index.terms, true), (&index.forms, false)] {
        for (term, postings) in vocabulary.starting_with("") {
            if is_far(word, bag, term, best) {
                continue;
            }
            let Some(distance) = rows.distance(&letters, term, best) else { continue };
            let matches = Matches::of(index, postings);
            if matches.items.is_empty() {
                continue;
            }
            if distance < best {
                found.clear();
                best = distance;
            }
            found.push((term, is_stem, matches));
        }
    }
    let words = |stems: bool| found.iter().filter(|f| f.1 == stems).map(|f| f.0.into()).collect();
    let (stems, forms) = (words(true), words(false));
    let parts: Vec<_> = found.into_iter().map(|(_, _, matches)| matches).collect();
    Correction { matches: Matches::union(&parts, index.entries.len()), stems, forms }
}

/// Whether more than `most` edits lie between them, as far as a look tells: nearly every word of an index ends here.
fn is_far(word: &str, bag: u64, term: &str, most: usize) -> bool {
    // Of two lengths in bytes one tells the number of letters only where all are ASCII; four bytes are the most.
    let lengths = term.len().abs_diff(word.len());
    if lengths > 4 * most || (lengths > most && word.is_ascii() && term.is_ascii()) {
        return true;
    }
    // An edit takes one kind of letter away and brings one, at most.
    (bag ^ self::bag(term)).count_ones() as usize > 2 * most
}

/// Which letters are in a word, many that are not ASCII sharing a bit.
fn bag(word: &str) -> u64 {
    word.chars().fold(0, |bag, c| bag | 1 << (u32::from(c) % 64))
}

/// The rows of a table of edits, kept from one word to the next.
#[derive(Default)]
struct Rows {
    rows: [Vec<usize>; 3],
    letters: Vec<char>,
}

impl Rows {
    /// Edits from `a` to `b`, at most `most`: insertions, deletions, replacements, and neighbours swapped (the
    /// optimal string alignment distance).
    fn distance(&mut self, a: &[char], b: &str, most: usize) -> Option<usize> {
        self.letters.clear();
        self.letters.extend(b.chars().take(a.len() + most + 1));
        let b = &self.letters;
        if a.len().abs_diff(b.len()) > most {
            return None;
        }
        self.rows.iter_mut().for_each(|row| row.resize(b.len() + 1, 0));
        self.rows[1].iter_mut().zip(0..).for_each(|(edits, at)| *edits = at);
        for i in 1..=a.len() {
            let [before, last, row] = &mut self.rows;
            row[0] = i;
            for j in 1..=b.len() {
                let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
                row[j] = replaced.min(last[j] + 1).min(row[j - 1] + 1);
                if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                    row[j] = row[j].min(before[j - 2] + 1);
                }
            }
            if row.iter().all(|edits| *edits > most) {
                return None;
            }
            self.rows.rotate_left(1);
        }
        Some(self.rows[1][b.len()]).filter(|edits| *edits <= most)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn edits_are_counted_up_to_the_bound() {
        let mut rows = Rows::default();
        let mut edits = |a: &str, b, most| rows.distance(&a.chars().collect::<Vec<_>>(), b, most);
        assert_eq!(edits("kubernetes", "kubernetes", 2), Some(0));
        assert_eq!(edits("kubernets", "kubernetes", 2), Some(1));
        assert_eq!(edits("recieve", "receive", 1), Some(1));
        assert_eq!(edits("kitten", "sitting", 2), None);
        assert_eq!(edits("naïve", "naive", 1), Some(1));
        assert_eq!(edits("abc", "abcdef", 2), None);
    }

    proptest! {
        #[test]
        fn what_is_far_at_a_look_is_far(a in "[abcé日]{4,9}", b in "[abcdé日]{1,9}", most in 1_usize..3) {
            let letters: Vec<char> = a.chars().collect();
            if Rows::default().distance(&letters, &b, most).is_some() {
                prop_assert!(!is_far(&a, bag(&a), &b, most));
            }
        }
    }
}
