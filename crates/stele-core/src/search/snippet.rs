//! Why a memory was found: the passage of its content with the most of what was looked for.

use std::ops::Range;

use super::Terms;
use super::stem::stem;
use super::wanted::Wanted;
use super::words::{Kind, Token, tokens};

/// Longest snippet, in characters (Unicode scalar values).
pub const MAX_SNIPPET_CHARS: usize = 240;
/// Characters before the first hit of a passage.
const LEAD_CHARS: usize = 40;

/// A passage of a content: plain text, cut out as it is but for white space at its ends.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Snippet {
    /// At most 240 characters.
    pub text: String,
    /// What was found in it, in characters of `text`, ascending, apart from each other.
    pub highlights: Vec<Range<usize>>,
}

/// What was found in a text, in bytes.
struct Spot {
    span: Range<usize>,
    worth: f32,
    /// The same for the same word.
    word: usize,
}

/// Cuts the snippets of one answer.
pub struct Snippets<'a> {
    terms: &'a Terms,
    /// Stemming every word of a content would take longer than all the rest of a search.
    wanted: Wanted,
}

impl<'a> Snippets<'a> {
    /// Those of an answer that was found by `terms`.
    pub fn of(terms: &'a Terms) -> Self {
        let mut wanted = Wanted::default();
        terms.stems.keys().for_each(|stem| wanted.add_stem(stem));
        terms.forms.keys().chain(&terms.beginnings).for_each(|form| wanted.add_beginning(form));
        Self { terms, wanted }
    }

    /// The best passage of `content`; its beginning if nothing is in it.
    pub fn cut(&self, content: &str) -> Snippet {
        cut(content, &spots(self, content))
    }
}

fn cut(content: &str, spots: &[Spot]) -> Snippet {
    let window = window(content, best(content, spots));
    let text = &content[window.clone()];
    let mut highlights: Vec<Range<usize>> = Vec::new();
    let (mut at, mut chars) = (window.start, 0);
    let mut count = |to: usize| {
        chars += content[at..to].chars().count();
        at = to;
        chars
    };
    for span in merged(spots) {
        if span.start >= window.start && span.end <= window.end {
            highlights.push(count(span.start)..count(span.end));
        }
    }
    Snippet { text: text.to_owned(), highlights }
}

impl Terms {
    /// What a token is worth; `None` if it is not looked for.
    fn worth(&self, token: &Token<'_>, stemmed: &mut String) -> Option<f32> {
        match token.kind {
            Kind::Word | Kind::Part | Kind::Joined => stem(token.word, stemmed),
            Kind::Gram | Kind::Symbol | Kind::Tail | Kind::Shaping => {
                stemmed.clear();
                stemmed.push_str(token.word);
            }
        }
        let begins = || self.beginnings.iter().any(|prefix| token.word.starts_with(&**prefix)).then_some(0.5);
        self.stems.get(&**stemmed).or_else(|| self.forms.get(token.word)).copied().or_else(begins)
    }
}

fn spots(Snippets { terms, wanted }: &Snippets<'_>, content: &str) -> Vec<Spot> {
    let mut spots: Vec<Spot> = Vec::new();
    let mut words: std::collections::HashMap<String, usize> = std::collections::HashMap::new();
    let mut stemmed = String::new();
    tokens(content, 0, &mut |token| {
        if wanted.holds(token.word)
            && let Some(worth) = terms.worth(&token, &mut stemmed)
        {
            let next = words.len();
            let word = *words.entry(stemmed.clone()).or_insert(next);
            let span = if token.kind == Kind::Symbol || token.kind == Kind::Gram {
                lonely(terms, &token, content)
            } else {
                token.span
            };
            spots.push(Spot { span, worth, word });
        }
    });
    spots.sort_by_key(|spot| (spot.span.start, spot.span.end));
    spots
}

/// The part of a pair that was looked for: its first character, if only that was.
fn lonely(terms: &Terms, token: &Token<'_>, content: &str) -> Range<usize> {
    let span = token.span.clone();
    if terms.stems.contains_key(token.word) {
        return span;
    }
    let first = content[span.clone()].chars().next().map_or(0, char::len_utf8);
    span.start..span.start + first
}

/// Where the passage with the most worth begins, each word counted once: the start of its first spot.
fn best(content: &str, spots: &[Spot]) -> usize {
    let reach = (MAX_SNIPPET_CHARS - LEAD_CHARS) * if content.is_ascii() { 1 } else { 2 };
    let mut counts = vec![0_u32; spots.iter().map(|spot| spot.word + 1).max().unwrap_or(0)];
    let (mut sum, mut best, mut to) = (0.0_f32, (0.0_f32, 0), 0);
    for from in spots {
        while to < spots.len() && spots[to].span.end <= from.span.start + reach {
            counts[spots[to].word] += 1;
            sum += if counts[spots[to].word] == 1 { spots[to].worth } else { spots[to].worth / 16.0 };
            to += 1;
        }
        if sum > best.0 + 1e-3 {
            best = (sum, from.span.start);
        }
        if counts[from.word] > 0 {
            counts[from.word] -= 1;
            sum -= if counts[from.word] == 0 { from.worth } else { from.worth / 16.0 };
        }
    }
    best.1
}

/// A window of at most `MAX_SNIPPET_CHARS` around `at`, from the start of a line or word to the end of a word.
fn window(content: &str, at: usize) -> Range<usize> {
    let lead = content[..at].char_indices().rev().take(LEAD_CHARS).last().map_or(at, |(start, _)| start);
    let cut = |c: char| c == '\n' || c == '\r';
    let start = match content[lead..at].rfind(cut) {
        Some(line) => lead + line + 1,
        None if lead == 0 => 0,
        None => content[lead..at].find(char::is_whitespace).map_or(lead, |space| lead + space),
    };
    let start = start + (content[start..].len() - content[start..].trim_start().len());
    let rest = &content[start..];
    let Some((end, _)) = rest.char_indices().nth(MAX_SNIPPET_CHARS) else {
        return start..start + rest.trim_end().len();
    };
    // A word is not cut, unless it would cost half of the snippet.
    let whole = rest[..end].char_indices().rev().find(|(_, c)| c.is_whitespace()).map(|(space, _)| space);
    let end = match whole {
        Some(space) if !rest[end..].starts_with(char::is_whitespace) && space > end / 2 => space,
        _ => end,
    };
    start..start + rest[..end].trim_end().len()
}

/// The spans of the spots, those that touch put together.
fn merged(spots: &[Spot]) -> Vec<Range<usize>> {
    let mut spans: Vec<Range<usize>> = Vec::new();
    for spot in spots {
        match spans.last_mut() {
            Some(last) if spot.span.start <= last.end => last.end = last.end.max(spot.span.end),
            _ => spans.push(spot.span.clone()),
        }
    }
    spans
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::search::{Index, Query, Request, tests as search};

    const WORDS: &[&str] = &[
        "sky",
        "skies",
        "lying",
        "lie",
        "went",
        "goes",
        "go",
        "a",
        "ying",
        "y",
        "try",
        "tried",
        "trying",
        "user_id",
        "userId",
        "deployed",
        "deployment",
        "東京都",
        "京都",
        "猫",
        "🎉",
        "->",
        "fox",
        "foxes",
        "kuberntes",
        "kubernetes",
    ];

    fn text() -> impl Strategy<Value = String> {
        proptest::collection::vec(proptest::sample::select(WORDS), 1..8).prop_map(|words| words.join(" "))
    }

    proptest! {
        #[test]
        fn no_word_with_a_worth_is_left_out(content in text(), query in text()) {
            let memories = [search::memory(0, "/a", "", &content)];
            let request = Request { prefix: None, after: None, limit: 1, nearness: None };
            let found = Index::build(1, search::documents(&memories)).search(&Query::parse(&query), &request);
            let snippets = Snippets::of(&found.terms);
            let mut stemmed = String::new();
            tokens(&content, 0, &mut |token| {
                let worth = snippets.terms.worth(&token, &mut stemmed);
                assert!(worth.is_none() || snippets.wanted.holds(token.word), "{token:?}");
            });
        }
    }
}
