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
    let mut best = if letters.len() < 8 { 1 } else { 2 };
    let mut found: Vec<(&str, bool, Matches)> = Vec::new();
    for (vocabulary, is_stem) in [(&index.terms, true), (&index.forms, false)] {
        for (term, postings) in vocabulary.starting_with("") {
            if term.len().abs_diff(word.len()) > 4 * best {
                continue;
            }
            let Some(distance) = distance(&letters, term, best) else { continue };
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

/// Edits from `a` to `b`, at most `most`: insertions, deletions, replacements, and neighbours swapped (the optimal
/// string alignment distance).
fn distance(a: &[char], b: &str, most: usize) -> Option<usize> {
    let b: Vec<char> = b.chars().take(a.len() + most + 1).collect();
    if a.len().abs_diff(b.len()) > most {
        return None;
    }
    let mut rows = [vec![0; b.len() + 1], (0..=b.len()).collect::<Vec<_>>(), vec![0; b.len() + 1]];
    for i in 1..=a.len() {
        let [before, last, row] = &mut rows;
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
        rows.rotate_left(1);
    }
    Some(rows[1][b.len()]).filter(|edits| *edits <= most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_counted_up_to_the_bound() {
        let edits = |a: &str, b, most| distance(&a.chars().collect::<Vec<_>>(), b, most);
        assert_eq!(edits("kubernetes", "kubernetes", 2), Some(0));
        assert_eq!(edits("kubernets", "kubernetes", 2), Some(1));
        assert_eq!(edits("recieve", "receive", 1), Some(1));
        assert_eq!(edits("kitten", "sitting", 2), None);
        assert_eq!(edits("naïve", "naive", 1), Some(1));
        assert_eq!(edits("abc", "abcdef", 2), None);
    }
}
