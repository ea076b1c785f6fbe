use super::Kind::*;
use super::*;

fn all(text: &str) -> Vec<(Kind, String, u32)> {
    let mut found = Vec::new();
    tokens(text, 0, &mut |token| {
        assert!(text.get(token.span.clone()).is_some(), "{token:?}");
        found.push((token.kind, token.word.to_owned(), token.position));
    });
    found
}

fn of_kind(text: &str, kind: Kind) -> Vec<String> {
    all(text).into_iter().filter(|(k, ..)| *k == kind).map(|(_, word, _)| word).collect()
}

#[test]
fn words_have_consecutive_positions_whatever_stands_between_them() {
    let words: Vec<_> =
        all("One, two -- three\n/four").into_iter().filter(|(kind, ..)| *kind == Word).collect();
    let expected = [("one", 0), ("two", 1), ("three", 2), ("four", 3)];
    assert_eq!(words, expected.map(|(word, at)| (Word, word.to_owned(), at)));
}

#[test]
fn identifiers_have_parts_and_joined_spellings() {
    assert_eq!(of_kind("parseHTTPHeader", Part), ["parse", "http", "header"]);
    assert_eq!(of_kind("parseHTTPHeader", Word), ["parsehttpheader"]);
    assert_eq!(of_kind("E0277", Part), ["0277"]);
    assert_eq!(of_kind("user_id", Joined), ["userid"]);
    assert_eq!(of_kind("kebab-case-name", Joined), ["kebabcasename"]);
    assert_eq!(of_kind("Node.js", Joined), ["nodejs"]);
    assert_eq!(of_kind("user_id.md", Joined), ["userid", "idmd"]);
    assert_eq!(of_kind("src/main.rs", Word), ["src", "main", "rs"]);
    assert_eq!(of_kind("std::io", Joined), [""; 0]);
}

#[test]
fn a_hash_has_no_parts() {
    assert_eq!(of_kind("3f5a9c0d7e1b2a4c", Part), [""; 0]);
}

#[test]
fn possessives_lose_their_ending_and_contractions_their_apostrophe() {
    assert_eq!(of_kind("Anna's don't we’ve O'Brien", Word), ["anna", "dont", "weve", "o", "brien"]);
    assert_eq!(of_kind("Anna's don't we’ve O'Brien", Joined), ["obrien"]);
}

#[test]
fn scripts_without_spaces_give_pairs_and_a_tail() {
    let expected = [(Gram, "東京", 0), (Gram, "京都", 1), (Tail, "都", 2)];
    assert_eq!(all("東京都"), expected.map(|(kind, word, at)| (kind, word.to_owned(), at)));
    assert_eq!(all("猫"), [(Gram, "猫".to_owned(), 0)]);
    assert_eq!(of_kind("か\u{3099}く", Gram), ["がく"]);
    assert_eq!(of_kind("ｶﾞｸ", Gram), ["ガク"]);
}

#[test]
fn symbols_give_pairs_and_take_no_position() {
    assert_eq!(of_kind("a -> b", Symbol), ["->"]);
    assert_eq!(all("a % b")[2], (Word, "b".to_owned(), 1));
    assert_eq!(of_kind("❤\u{fe0f}", Symbol), ["❤"]);
}
