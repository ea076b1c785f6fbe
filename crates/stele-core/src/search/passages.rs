//! A memory cut into passages that an embedding model reads as a whole.
//!
//! A question is about a passage, so a memory is as near to it as its nearest passage; the mean of many would be near
//! to nothing in particular.

use crate::hash::Sha256;

/// What names a passage: the first half of the hash of its text. Equal texts have one vector.
pub type PassageKey = [u8; 16];

/// The key of a passage.
pub fn passage_key(passage: &str) -> PassageKey {
    let mut key = PassageKey::default();
    key.copy_from_slice(&Sha256::of(passage.as_bytes()).as_bytes()[..16]);
    key
}

/// The passages of a memory: its summary, if it has one, and its content in pieces of at most `most` characters. A
/// piece ends with a paragraph, else with a line, a sentence or a word, as long as it is not much shorter for it.
pub fn passages<'a>(summary: &'a str, content: &'a str, most: usize) -> Vec<&'a str> {
    let mut pieces = Vec::new();
    for text in [summary, content] {
        let mut rest = text.trim();
        while !rest.is_empty() {
            let end = rest.char_indices().nth(most.max(1)).map_or(rest.len(), |(end, _)| cut(rest, end));
            pieces.push(rest[..end].trim_end());
            rest = rest[end..].trim_start();
        }
    }
    pieces
}

/// Where a piece of `text` ends that is to end by `end`.
fn cut(text: &str, end: usize) -> usize {
    let piece = &text[..end];
    let last = |boundary: &str| piece.rfind(boundary).map(|at| at + boundary.len());
    let word = || piece.char_indices().rev().find(|(_, c)| c.is_whitespace()).map(|(at, _)| at);
    let ends = ["\n\n", "\n", ". ", "。"].into_iter().map(last).chain([word()]);
    ends.flatten().find(|at| *at > end / 2).unwrap_or(end)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_short_memory_is_one_passage_and_its_summary_another() {
        assert_eq!(passages("about tea", "Green tea.\n", 100), ["about tea", "Green tea."]);
        assert_eq!(passages("", "Green tea.\n", 100), ["Green tea."]);
        assert_eq!(passages(" ", "\n", 100), [""; 0]);
    }

    #[test]
    fn a_long_memory_is_cut_where_something_ends() {
        assert_eq!(passages("", "one two\n\nthree four\nfive", 12), ["one two", "three four", "five"]);
        assert_eq!(passages("", "One two. Three four.", 12), ["One two.", "Three four."]);
        assert_eq!(passages("", "word another", 7), ["word", "another"]);
        assert_eq!(passages("", "aaaaaaaaaaaa", 5), ["aaaaa", "aaaaa", "aa"]);
    }

    proptest! {
        #[test]
        fn nothing_but_white_space_is_lost(text in "[a-z é日。.\n]{0,200}", most in 1_usize..40) {
            let pieces = passages("", &text, most);
            prop_assert!(pieces.iter().all(|piece| !piece.is_empty() && piece.chars().count() <= most));
            let dense = |text: &str| text.split_whitespace().collect::<String>();
            prop_assert_eq!(dense(&pieces.concat()), dense(&text));
        }
    }
}
