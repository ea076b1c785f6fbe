//! What a character is to the search: part of a word, of a script without spaces, a symbol, a space.

use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory};

use super::fold::is_shaping;

/// The role of a character.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Class {
    /// White space and control characters: they end everything.
    Space,
    /// Letters, digits and the marks on them.
    Word,
    /// Scripts that write without spaces: looked for by pairs of characters.
    Gram,
    /// Punctuation, mathematics, emoji.
    Symbol,
    /// No form of its own: goes with whatever is around it.
    Shaping,
}

/// The class of a character.
pub(super) fn class(c: char) -> Class {
    if c.is_ascii() {
        return ascii_class(c as u8);
    }
    if is_shaping(c) {
        Class::Shaping
    } else if is_unspaced(c) {
        Class::Gram
    } else if c.is_alphanumeric() || c.general_category_group() == GeneralCategoryGroup::Mark {
        Class::Word
    } else if c.is_whitespace() || c.is_control() {
        Class::Space
    } else {
        Class::Symbol
    }
}

/// The class of an ASCII character.
pub(super) fn ascii_class(byte: u8) -> Class {
    match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => Class::Word,
        0..=b' ' | 0x7f => Class::Space,
        _ => Class::Symbol,
    }
}

/// Han, kana, hangul, and the scripts of South East Asia.
fn is_unspaced(c: char) -> bool {
    matches!(c,
        '\u{e00}'..='\u{eff}'         // Thai, Lao
        | '\u{1000}'..='\u{109f}'     // Myanmar
        | '\u{1100}'..='\u{11ff}'     // Hangul jamo
        | '\u{1780}'..='\u{17ff}'     // Khmer
        | '\u{3005}'..='\u{3007}' | '\u{3040}'..='\u{30ff}' | '\u{3105}'..='\u{318e}' | '\u{31f0}'..='\u{31ff}'
        | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{a960}'..='\u{a97f}'
        | '\u{ac00}'..='\u{d7ff}' | '\u{f900}'..='\u{faff}' | '\u{ff66}'..='\u{ffdc}'
        | '\u{20000}'..='\u{3ffff}')
        && c != '\u{30fb}'
}

/// Whether the character goes with the one before it in a script without spaces: voicing marks, hangul vowels.
pub(super) fn continues_gram(c: char) -> bool {
    matches!(c, '\u{3099}' | '\u{309a}' | '\u{ff9e}' | '\u{ff9f}' | '\u{1160}'..='\u{11ff}')
}

/// Whether a symbol means something among words: emoji and pictures, not punctuation.
pub(super) fn is_picture(c: char) -> bool {
    !c.is_ascii() && c.general_category() == GeneralCategory::OtherSymbol
}

/// Characters that join the parts of one name: `snake_case`, `kebab-case`, `node.js`, `o'brien`.
pub(super) fn is_joiner(c: char) -> bool {
    matches!(c, '_' | '-' | '.' | '\'' | '\u{2019}' | '\u{2010}' | '\u{2011}')
}

/// Whether the character is an apostrophe.
pub(super) fn is_apostrophe(c: char) -> bool {
    matches!(c, '\'' | '\u{2019}')
}
