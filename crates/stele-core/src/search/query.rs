//! What is looked for: literal text, taken apart. Nothing is an error, nothing is an operator but a pair of quotes.

use std::collections::HashMap;

use super::characters::{Class, class, is_picture};
use super::function_words::is_function_word;
use super::stem::stem;
use super::words::{Kind, Token, tokens};

/// Most distinct terms of a query; what comes after them is not looked for.
pub(super) const MAX_CLAUSES: usize = 64;
/// Most tokens that are looked at to find them.
const MAX_TOKENS: usize = 2048;
/// What a part of a run counts, of the whole one.
const PART_WEIGHT: f32 = 0.4;
/// What the spelling of a word counts beside its stem.
const FORM_WEIGHT: f32 = 0.3;
/// What the words that the last one begins count, of the word itself.
const OPEN_WEIGHT: f32 = 0.5;
/// Most characters of a query that its meaning is taken from.
const MEANING_CHARS: usize = 2_000;

/// A query. Parsing never fails; the same text is the same query everywhere.
///
/// Words are alternatives, the more of them and the rarer the better; function words count only where there is
/// nothing else. A quoted phrase must be there word by word, unless it is nowhere and other words are asked for. The
/// last word is also a beginning of words, unless white space or punctuation follows. Text without a letter or digit
/// is looked for literally.
#[derive(Clone, Debug, Default)]
pub struct Query {
    pub(super) clauses: Vec<Clause>,
    /// Neighbouring clauses: close together they count more.
    pub(super) pairs: Vec<(usize, usize)>,
    /// What must be there.
    pub(super) phrases: Vec<Phrase>,
    /// Texts in scripts without spaces, by their pairs of characters: substrings where they occur.
    pub(super) runs: Vec<Phrase>,
    /// Whether there is anything to look for beside the phrases.
    pub(super) has_loose_words: bool,
    /// The text, where it may be about a meaning.
    meaning: Option<Box<str>>,
}

/// Clauses at distances from the first; where there is no distance, anywhere in the memory.
pub(super) type Phrase = Vec<(usize, Option<u32>)>;

/// One thing that is looked for.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Clause {
    pub(super) how: How,
    /// As kept in the index.
    pub(super) term: Box<str>,
    /// Folded, as the query spells it.
    pub(super) word: Box<str>,
    pub(super) weight: f32,
}

/// How a clause is looked for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum How {
    /// The term.
    Term,
    /// The spelling.
    Form,
    /// Every term that begins so.
    Beginning,
    /// Every term or spelling that begins so, in memories that the clause before does not find.
    Open,
}

/// A token with its text, and the quotes that it stands in.
struct Part {
    kind: Kind,
    word: String,
    position: u32,
    end: usize,
    quoted: Option<usize>,
}

impl Query {
    /// Reads a query.
    pub fn parse(text: &str) -> Self {
        let parts = parts(text);
        if parts.iter().any(|part| matches!(part.kind, Kind::Word | Kind::Gram)) {
            Builder::default().words(text, &parts)
        } else {
            Builder::default().literal(text)
        }
    }

    /// Whether there is nothing to look for: white space, or characters without a form.
    pub fn is_empty(&self) -> bool {
        self.clauses.is_empty()
    }

    /// What an embedding model may be asked about: the query's text, if it has words that need not be there as they
    /// are. Of a very long one, the beginning.
    pub fn meaning(&self) -> Option<&str> {
        self.meaning.as_deref()
    }

    /// Whether typing errors are looked for where nothing matches.
    pub(super) fn may_be_corrected(&self) -> bool {
        self.phrases.is_empty()
    }
}

/// The tokens of a query, quotes taken off.
fn parts(text: &str) -> Vec<Part> {
    let quotes: Vec<(usize, char)> = text.char_indices().filter(|(_, c)| "\"“”„«»".contains(*c)).collect();
    let paired = quotes.len() / 2 * 2;
    let mut parts = Vec::new();
    let (mut from, mut position) = (0, 0);
    let ends = quotes.iter().map(|(at, c)| (*at, at + c.len_utf8())).chain([(text.len(), text.len())]);
    for (number, (to, next)) in ends.enumerate() {
        let quoted = (number % 2 == 1 && number < paired).then_some(number);
        position = tokens(&text[from..to], position, &mut |token: Token<'_>| {
            if parts.len() < MAX_TOKENS {
                let (word, end) = (token.word.to_owned(), from + token.span.end);
                parts.push(Part { kind: token.kind, word, position: token.position, end, quoted });
            }
        });
        if parts.len() >= MAX_TOKENS {
            break;
        }
        from = next;
    }
    parts
}

#[derive(Default)]
struct Builder {
    query: Query,
    known: HashMap<(How, Box<str>), usize>,
}

impl Builder {
    /// The clause for a term, new or known; `None` when there are enough.
    fn clause(&mut self, how: How, term: &str, word: &str, weight: f32) -> Option<usize> {
        let clauses = &mut self.query.clauses;
        if let Some(at) = self.known.get(&(how, term.into())) {
            clauses[*at].weight = clauses[*at].weight.max(weight);
            return Some(*at);
        }
        if clauses.len() >= MAX_CLAUSES {
            return None;
        }
        clauses.push(Clause { how, term: term.into(), word: word.into(), weight });
        self.known.insert((how, term.into()), clauses.len() - 1);
        Some(clauses.len() - 1)
    }

    fn term(&mut self, word: &str, weight: f32) -> Option<usize> {
        let mut term = String::new();
        stem(word, &mut term);
        let at = self.clause(How::Term, &term, word, weight)?;
        if term != word && weight > 0.0 {
            self.clause(How::Form, word, word, weight * FORM_WEIGHT);
        }
        Some(at)
    }

    /// A query without a word: all of its symbols, side by side as they are; where it has none either, the
    /// characters without a form of their own.
    fn literal(mut self, text: &str) -> Query {
        let (mut phrase, mut shaping) = (Phrase::new(), Vec::new());
        tokens(text, 0, &mut |token: Token<'_>| {
            if token.kind == Kind::Shaping {
                shaping.push(token.word.to_owned());
            } else if let Some(at) = self.characters(token.kind, token.word) {
                phrase.push((at, None));
            }
        });
        if phrase.is_empty() {
            let clauses = shaping.iter().filter_map(|c| self.clause(How::Term, c, c, 1.0));
            phrase.extend(clauses.map(|at| (at, None)));
        }
        self.query.phrases.extend((!phrase.is_empty()).then_some(phrase));
        self.query
    }

    /// A pair of characters, or a lonely one as the beginning of pairs.
    fn characters(&mut self, kind: Kind, word: &str) -> Option<usize> {
        let how = if word.chars().nth(1).is_some() { How::Term } else { How::Beginning };
        if kind == Kind::Tail { None } else { self.clause(how, word, word, 1.0) }
    }

    fn words(mut self, text: &str, parts: &[Part]) -> Query {
        let matters = |part: &Part| match part.kind {
            Kind::Word => !is_function_word(&part.word),
            kind => kind == Kind::Gram,
        };
        let only_function_words = !parts.iter().any(matters);
        let mut phrases: Vec<(usize, Phrase, u32)> = Vec::new();
        let (mut previous, mut run): (Option<(usize, u32)>, Phrase) = (None, Phrase::new());
        for part in parts {
            let weight = if only_function_words || matters(part) { 1.0 } else { 0.0 };
            let Some(at) = self.part(part, weight) else { continue };
            if part.kind == Kind::Gram {
                let follows = previous.is_some_and(|(_, position)| position + 1 == part.position);
                if !follows || run.is_empty() || part.quoted.is_some() {
                    self.end_run(std::mem::take(&mut run));
                }
                run.push((at, Some(run.len() as u32)));
            }
            if !matches!(part.kind, Kind::Word | Kind::Gram) {
                continue;
            }
            self.query.has_loose_words |= part.quoted.is_none() && weight > 0.0;
            if let Some(quote) = part.quoted {
                match phrases.last_mut() {
                    Some((of, phrase, first)) if *of == quote => {
                        phrase.push((at, Some(part.position - *first)))
                    }
                    _ => phrases.push((quote, vec![(at, Some(0))], part.position)),
                }
            }
            if weight > 0.0 {
                if let Some((before, _)) = previous.filter(|(before, _)| *before != at) {
                    self.query.pairs.push((before, at));
                }
                previous = Some((at, part.position));
            }
        }
        self.end_run(run);
        self.query.phrases.extend(phrases.into_iter().map(|(_, phrase, _)| phrase));
        self.open(text, parts);
        if self.query.has_loose_words {
            let end = text.char_indices().nth(MEANING_CHARS).map_or(text.len(), |(end, _)| end);
            self.query.meaning = Some(text[..end].trim().into());
        }
        self.query
    }

    /// The clause for a token, if it is looked for; `weight` is that of a word.
    fn part(&mut self, part: &Part, weight: f32) -> Option<usize> {
        match part.kind {
            Kind::Word if weight == 0.0 && part.quoted.is_none() => None,
            Kind::Word => self.term(&part.word, weight),
            Kind::Part if is_function_word(&part.word) => None,
            Kind::Part => self.term(&part.word, PART_WEIGHT),
            Kind::Joined => self.term(&part.word, 1.0),
            Kind::Symbol if part.word.chars().all(is_picture) => self.characters(part.kind, &part.word),
            Kind::Symbol | Kind::Tail | Kind::Shaping => None,
            Kind::Gram => self.characters(part.kind, &part.word),
        }
    }

    fn end_run(&mut self, run: Phrase) {
        if !run.is_empty() {
            self.query.runs.push(run);
        }
    }

    /// The last word as a beginning, if nothing follows it.
    fn open(&mut self, text: &str, parts: &[Part]) {
        let last = parts.iter().rev().find(|part| part.kind == Kind::Word);
        let Some(last) = last.filter(|part| part.end == text.len() && part.quoted.is_none()) else { return };
        let closed = text.chars().next_back().is_none_or(|c| class(c) != Class::Word);
        if closed || last.word.len() < 2 || is_function_word(&last.word) {
            return;
        }
        self.clause(How::Open, &last.word, &last.word, OPEN_WEIGHT);
    }
}

#[cfg(test)]
mod tests;
