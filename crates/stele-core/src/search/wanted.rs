//! Which words of a text need not be looked at further: most of them.

use super::irregular::forms_with_stem;

/// How the words begin that somebody looks for. It never says no to one of them, and rarely yes to another.
#[derive(Default)]
pub(super) struct Wanted {
    /// Whether any begins with these two bytes, a bit each.
    pairs: Pairs,
    beginnings: Vec<Box<[u8]>>,
}

struct Pairs(Box<[u64; 1 << 10]>);

impl Default for Pairs {
    fn default() -> Self {
        Self(Box::new([0; 1 << 10]))
    }
}

impl Pairs {
    fn set(&mut self, first: u8, second: u8) {
        let key = key(first, second);
        self.0[key / 64] |= 1 << (key % 64);
    }

    fn has(&self, first: u8, second: u8) -> bool {
        let key = key(first, second);
        self.0[key / 64] & (1 << (key % 64)) != 0
    }
}

/// Of two letters the second may be a `y` that became an `i`.
fn key(first: u8, second: u8) -> usize {
    let second = if second == b'y' { b'i' } else { second };
    usize::from(first) << 8 | usize::from(second)
}

impl Wanted {
    /// Wants the words with this stem.
    pub(super) fn add_stem(&mut self, stem: &str) {
        self.add_beginning(stem);
        forms_with_stem(stem).iter().for_each(|form| self.add_beginning(form));
    }

    /// Wants the words that begin so, or whose stem does, but for irregular forms.
    pub(super) fn add_beginning(&mut self, term: &str) {
        let bytes = term.as_bytes();
        match *bytes {
            [] => return,
            [first] => (0..=255).for_each(|second| self.pairs.set(first, second)),
            [first, second, ..] => self.pairs.set(first, second),
        }
        let sure = if bytes.len() < 4 { 1 } else { bytes.len() - 1 };
        let sure = &bytes[..sure];
        if !self.beginnings.iter().any(|known| **known == *sure) {
            self.beginnings.push(sure.into());
        }
    }

    /// Whether the word may be one of them.
    ///
    /// A word of four letters or more begins as its stem does without the last letter: suffixes go, and at the end
    /// of what stays a `y` becomes an `i`. Irregular forms are asked for one by one.
    pub(super) fn holds(&self, word: &str) -> bool {
        match *word.as_bytes() {
            [first, second, _, _, ..] => {
                self.pairs.has(first, second)
                    && self.beginnings.iter().any(|beginning| word.as_bytes().starts_with(beginning))
            }
            _ => true,
        }
    }
}
