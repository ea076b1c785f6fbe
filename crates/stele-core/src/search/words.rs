//! A text taken apart: words at positions, the parts and joined spellings of identifiers, pairs of characters.
//!
//! Every run of letters and digits has one position. At the same position are its parts (`parse` and `Url` of
//! `parseUrl`); at the position of the first run of a joined name is the name without its joiners (`userid` for
//! `user_id`). Scripts without spaces give one pair of neighbouring characters a position; pairs of symbols lie at
//! the position of the next word.

use std::ops::Range;

use unicode_normalization::UnicodeNormalization;

use super::characters::{Class, ascii_class, class, continues_gram, is_apostrophe, is_joiner};
use super::fold::{MAX_WORD_BYTES, append, append_ascii, fold, is_shaping};

/// Most runs of a name that is also kept joined.
const MAX_JOINED_RUNS: usize = 5;
/// Most parts of a run: with more it is a hash or a random key, whose parts mean nothing.
const MAX_PARTS: usize = 6;

/// What a token is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// A whole run of letters and digits.
    Word,
    /// A part of one, of two bytes or more.
    Part,
    /// Several runs without their joiners.
    Joined,
    /// Two neighbouring characters of a script without spaces, or a lonely one.
    Gram,
    /// Two neighbouring symbols, or a lonely one.
    Symbol,
    /// The last character of a run of grams or symbols, so that every character begins a token.
    Tail,
    /// A character without a form of its own, wherever it stands; for those who look for just that.
    Shaping,
}

/// A token of a text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Token<'a> {
    /// What it is.
    pub(super) kind: Kind,
    /// Its folded spelling, not stemmed.
    pub(super) word: &'a str,
    /// Its position, from where the caller said.
    pub(super) position: u32,
    /// Where it is in the text, in bytes.
    pub(super) span: Range<usize>,
}

/// Hands every token of `text` to `sink`, in the order of their ends, those without a form before the others; returns
/// the position after the last.
pub(super) fn tokens(text: &str, position: u32, sink: &mut impl FnMut(Token<'_>)) -> u32 {
    if !text.is_ascii() {
        for (at, c) in text.char_indices().filter(|(_, c)| is_shaping(*c)) {
            let span = at..at + c.len_utf8();
            sink(Token { kind: Kind::Shaping, word: &text[span.clone()], position, span });
        }
    }
    let mut splitter =
        Splitter { text, position, sink, folded: String::new(), runs: Vec::new(), joiner: None };
    let mut at = 0;
    while at < text.len() {
        at = splitter.step(at);
    }
    splitter.end_name();
    splitter.position
}

/// The character at `at` and its class.
fn look(text: &str, at: usize) -> (char, Class) {
    if text.as_bytes()[at].is_ascii() {
        return (char::from(text.as_bytes()[at]), ascii_class(text.as_bytes()[at]));
    }
    let c = text[at..].chars().next().unwrap_or(' ');
    (c, class(c))
}

/// Where the run of `kind` that includes `at` ends.
fn run_end(text: &str, mut at: usize, kind: Class) -> usize {
    let bytes = text.as_bytes();
    while at < text.len() {
        if bytes[at].is_ascii() {
            if ascii_class(bytes[at]) != kind {
                break;
            }
            at += 1;
            continue;
        }
        let (c, class) = look(text, at);
        if class != kind && class != Class::Shaping {
            break;
        }
        at += c.len_utf8();
    }
    at
}

struct Splitter<'t, F> {
    text: &'t str,
    position: u32,
    sink: &'t mut F,
    folded: String,
    /// The runs of the name being read, each with its position.
    runs: Vec<(Range<usize>, u32)>,
    /// What joins them; a name has one kind of joiner.
    joiner: Option<char>,
}

impl<F: FnMut(Token<'_>)> Splitter<'_, F> {
    /// Takes the run at `at`; returns its end.
    fn step(&mut self, at: usize) -> usize {
        let (c, class) = look(self.text, at);
        match class {
            Class::Word => self.word(at),
            Class::Gram => {
                self.end_name();
                let end = run_end(self.text, at, Class::Gram);
                self.pairs(at..end, Kind::Gram);
                end
            }
            Class::Symbol => {
                let end = run_end(self.text, at, Class::Symbol);
                self.pairs(at..end, Kind::Symbol);
                if at + c.len_utf8() == end && is_joiner(c) {
                    self.join(c);
                } else {
                    self.end_name();
                }
                end
            }
            Class::Space | Class::Shaping => {
                self.end_name();
                at + c.len_utf8()
            }
        }
    }

    fn emit(&mut self, kind: Kind, position: u32, span: Range<usize>) {
        if !self.folded.is_empty() {
            (self.sink)(Token { kind, word: &self.folded, position, span });
        }
    }

    /// A word of ASCII letters before a space, which most are; `None` if there is anything else about it.
    fn plain_word(&mut self, at: usize) -> Option<usize> {
        let bytes = self.text.as_bytes();
        let length = bytes[at + 1..].iter().take_while(|byte| byte.is_ascii_lowercase()).count();
        let end = at + 1 + length;
        if !bytes[at].is_ascii_alphabetic() || bytes.get(end) != Some(&b' ') || !self.runs.is_empty() {
            return None;
        }
        self.folded.clear();
        append_ascii(&self.text[at..end], &mut self.folded);
        self.emit(Kind::Word, self.position, at..end);
        self.position += 1;
        Some(end + 1)
    }

    /// A run of letters and digits, with a contraction or possessive that follows.
    fn word(&mut self, at: usize) -> usize {
        if let Some(end) = self.plain_word(at) {
            return end;
        }
        let end = run_end(self.text, at, Class::Word);
        let (position, clitic) = (self.position, clitic(self.text, end));
        self.position += 1;
        match clitic {
            Some(tail) if &self.text[tail.clone()] != "s" && &self.text[tail.clone()] != "S" => {
                self.end_name();
                fold(&self.text[at..end], &mut self.folded);
                append(&self.text[tail.clone()], &mut self.folded);
                self.emit(Kind::Word, position, at..tail.end);
                self.pairs(end..tail.start, Kind::Symbol);
                tail.end
            }
            _ => {
                fold(&self.text[at..end], &mut self.folded);
                self.emit(Kind::Word, position, at..end);
                self.parts(at..end, position);
                self.runs.push((at..end, position));
                let Some(tail) = clitic else { return end };
                self.pairs(end..tail.start, Kind::Symbol);
                self.end_name();
                tail.end
            }
        }
    }

    /// The parts of a run with capitals inside or letters beside digits.
    fn parts(&mut self, run: Range<usize>, position: u32) {
        let text = self.text;
        let bytes = &text.as_bytes()[run.clone()];
        if bytes.len() < 3 || bytes[1..].iter().all(u8::is_ascii_lowercase) || !bytes.is_ascii() {
            return;
        }
        let bounds = || (1..bytes.len()).filter(|at| is_boundary(bytes, *at)).chain([bytes.len()]);
        if !(2..=MAX_PARTS).contains(&bounds().take(MAX_PARTS + 1).count()) {
            return;
        }
        let mut from = 0;
        for to in bounds() {
            if to - from >= 2 {
                let span = run.start + from..run.start + to;
                fold(&text[span.clone()], &mut self.folded);
                self.emit(Kind::Part, position, span);
            }
            from = to;
        }
    }

    /// A joiner was read: the name goes on, or a new one begins with its last run if it is another joiner.
    fn join(&mut self, joiner: char) {
        if self.joiner.is_some_and(|previous| previous != joiner) {
            let last = self.runs.last().cloned();
            self.end_name();
            self.runs.extend(last);
        }
        self.joiner = Some(joiner);
    }

    /// The name ends: its joined spelling, if it has several runs.
    fn end_name(&mut self) {
        self.joiner = None;
        if self.runs.len() < 2 {
            self.runs.clear();
            return;
        }
        let runs = std::mem::take(&mut self.runs);
        let length: usize = runs.iter().map(|(run, _)| run.len()).sum();
        if runs.len() <= MAX_JOINED_RUNS && length <= MAX_WORD_BYTES {
            self.folded.clear();
            for (run, _) in &runs {
                append(&self.text[run.clone()], &mut self.folded);
            }
            self.emit(Kind::Joined, runs[0].1, runs[0].0.start..runs[runs.len() - 1].0.end);
        }
        self.runs = runs;
        self.runs.clear();
    }

    /// The pairs of neighbouring characters of a run, and its last character.
    fn pairs(&mut self, run: Range<usize>, kind: Kind) {
        let text = self.text;
        if run.len() == 1 {
            // Most runs are one comma or full stop.
            self.folded.clear();
            self.folded.push_str(&text[run.clone()]);
            return self.pair(kind, kind, run);
        }
        let mut previous: Option<(char, Range<usize>)> = None;
        let mut alone = true;
        let mut clusters = clusters(text, run).peekable();
        while let Some((c, span)) = clusters.next() {
            if let Some((first, start)) = previous.replace((c, span.clone())) {
                alone = false;
                self.folded.clear();
                self.folded.extend([first, c]);
                self.pair(kind, kind, start.start..span.end);
            }
            if clusters.peek().is_none() {
                self.folded.clear();
                self.folded.push(c);
                self.pair(kind, if alone { kind } else { Kind::Tail }, span);
            }
        }
    }

    fn pair(&mut self, run: Kind, kind: Kind, span: Range<usize>) {
        self.emit(kind, self.position, span);
        self.position += u32::from(run == Kind::Gram);
    }
}

/// The ending of a contraction or possessive after an apostrophe at `at`: `s`, `t`, `re`, `ve`, `ll`, `d`, `m`.
fn clitic(text: &str, at: usize) -> Option<Range<usize>> {
    let apostrophe = text[at..].chars().next().filter(|c| is_apostrophe(*c))?;
    let from = at + apostrophe.len_utf8();
    let end = run_end(text, from, Class::Word);
    let tail = &text[from..end];
    let known = ["s", "t", "re", "ve", "ll", "d", "m"].iter().any(|known| tail.eq_ignore_ascii_case(known));
    known.then_some(from..end)
}

/// Whether a part begins at `at`: a capital after a small letter or before one, a letter beside a digit.
fn is_boundary(bytes: &[u8], at: usize) -> bool {
    let (before, here) = (bytes[at - 1], bytes[at]);
    let capital_word = before.is_ascii_uppercase()
        && here.is_ascii_uppercase()
        && bytes.get(at + 1).is_some_and(u8::is_ascii_lowercase);
    (before.is_ascii_lowercase() && here.is_ascii_uppercase())
        || capital_word
        || before.is_ascii_digit() != here.is_ascii_digit()
}

/// The folded characters of a run, each with the bytes that it stands for.
fn clusters(text: &str, run: Range<usize>) -> impl Iterator<Item = (char, Range<usize>)> {
    let mut at = run.start;
    std::iter::from_fn(move || {
        let start = at;
        at += text[at..run.end].chars().next()?.len_utf8();
        at += text[at..run.end].chars().take_while(|c| continues_gram(*c)).map(char::len_utf8).sum::<usize>();
        Some(start..at)
    })
    .flat_map(move |span| {
        let folded = text[span.clone()].nfkc().filter(|c| !is_shaping(*c) && !c.is_whitespace());
        folded.map(move |c| (c, span.clone()))
    })
}

#[cfg(test)]
mod tests;
