//! Folding: the spelling under which a word is kept and looked for.
//!
//! Lower case, compatibility forms as their plain ones (`ﬁ`, full width), no accents, vowel points or tatweel.

use unicode_normalization::UnicodeNormalization;

/// Longest folded word, in bytes; what is longer is cut alike in memories and queries.
pub(super) const MAX_WORD_BYTES: usize = 64;

/// Writes the folded `text` to `out`, cut to `MAX_WORD_BYTES` at a character.
pub(super) fn fold(text: &str, out: &mut String) {
    out.clear();
    append(text, out);
}

/// Appends the folded `text` to `out`, never beyond `MAX_WORD_BYTES` in all.
pub(super) fn append(text: &str, out: &mut String) {
    if text.is_ascii() {
        return append_ascii(text, out);
    }
    // A word longer than this is cut anyway; marks and ignored characters are why more than the bound is read.
    let plain = text.chars().take(4 * MAX_WORD_BYTES).flat_map(char::to_lowercase).nfkd();
    for c in plain.filter(|c| !is_dropped(*c)).flat_map(char::to_lowercase).nfc() {
        let written = letters(c);
        let written =
            if written.is_empty() { c.encode_utf8(&mut [0; 4]).to_owned() } else { written.to_owned() };
        if out.len() + written.len() > MAX_WORD_BYTES {
            return;
        }
        out.push_str(&written);
    }
}

/// As `append`, of a text that is known to be ASCII.
pub(super) fn append_ascii(text: &str, out: &mut String) {
    let room = MAX_WORD_BYTES.saturating_sub(out.len());
    let from = out.len();
    out.push_str(&text[..text.len().min(room)]);
    out[from..].make_ascii_lowercase();
}

/// Letters that Unicode does not decompose but people type plainly; empty for the others.
fn letters(c: char) -> &'static str {
    match c {
        'ß' => "ss",
        'æ' => "ae",
        'œ' => "oe",
        'ø' => "o",
        'ł' => "l",
        'đ' | 'ð' => "d",
        'þ' => "th",
        'ı' => "i",
        'ς' => "σ",
        _ => "",
    }
}

/// Accents, vowel points and characters that only shape others.
fn is_dropped(c: char) -> bool {
    is_shaping(c)
        || matches!(c, '\u{300}'..='\u{36f}' | '\u{591}'..='\u{5c7}' | '\u{610}'..='\u{61a}' | '\u{640}'
            | '\u{64b}'..='\u{65f}' | '\u{670}' | '\u{6d6}'..='\u{6dc}')
}

/// Characters without a form of their own: joiners, soft hyphen, direction marks, variation selectors.
pub(super) fn is_shaping(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2064}'
        | '\u{2066}'..='\u{2069}' | '\u{20e3}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_accents_and_compatibility_forms_are_folded() {
        let cases = [
            ("Straße", "strasse"),
            ("CAFÉ", "cafe"),
            ("cafe\u{301}", "cafe"),
            ("İstanbul", "istanbul"),
            ("ﬁle", "file"),
            ("ＡＢＣ", "abc"),
            ("Ærøskøbing", "aeroskobing"),
            ("ΟΔΟΣ", "οδοσ"),
            ("Ёлка", "елка"),
            ("שָׁלוֹם", "שלום"),
            ("مُحَمَّد", "محمد"),
            ("soft\u{ad}hyphen", "softhyphen"),
        ];
        let mut out = String::new();
        for (text, expected) in cases {
            fold(text, &mut out);
            assert_eq!(out, expected, "{text}");
        }
    }

    #[test]
    fn a_long_word_is_cut_at_a_character() {
        let mut out = String::new();
        fold(&"a".repeat(100_000), &mut out);
        assert_eq!(out.len(), MAX_WORD_BYTES);
        fold(&"ж".repeat(100), &mut out);
        assert_eq!(out, "ж".repeat(32));
        fold(&"€".repeat(100), &mut out);
        assert_eq!(out, "€".repeat(21));
    }
}
