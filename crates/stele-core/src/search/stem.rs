//! Stems of English words: Porter's algorithm (M. F. Porter, "An algorithm for suffix stripping", 1980, with the
//! author's two later changes), with a table of irregular forms before it.
//!
//! Words of other alphabets, with digits or of one or two letters are their own stems.

use super::irregular::base_form;

/// Writes the stem of a folded word to `out`.
pub(super) fn stem(word: &str, out: &mut String) {
    let base = base_form(word);
    out.clear();
    out.push_str(base.unwrap_or(word));
    let is_final = base == Some(word);
    if !is_final && out.len() > 2 && out.bytes().all(|b| b.is_ascii_lowercase()) {
        plurals(out);
        past_and_gerund(out);
        final_y(out);
        replace_first(out, STEP_2, 0);
        replace_first(out, STEP_3, 0);
        drop_suffix(out);
        final_e_and_double_l(out);
    }
}

const STEP_2: &[(&str, &str)] = &[
    ("ational", "ate"),
    ("tional", "tion"),
    ("enci", "ence"),
    ("anci", "ance"),
    ("izer", "ize"),
    ("bli", "ble"),
    ("alli", "al"),
    ("entli", "ent"),
    ("eli", "e"),
    ("ousli", "ous"),
    ("ization", "ize"),
    ("ation", "ate"),
    ("ator", "ate"),
    ("alism", "al"),
    ("iveness", "ive"),
    ("fulness", "ful"),
    ("ousness", "ous"),
    ("aliti", "al"),
    ("iviti", "ive"),
    ("biliti", "ble"),
    ("logi", "log"),
];

const STEP_3: &[(&str, &str)] = &[
    ("icate", "ic"),
    ("ative", ""),
    ("alize", "al"),
    ("iciti", "ic"),
    ("ical", "ic"),
    ("ful", ""),
    ("ness", ""),
];

/// Longer suffixes first where one ends another.
const STEP_4: &[&str] = &[
    "ement", "ment", "ent", "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ion", "ou", "ism",
    "ate", "iti", "ous", "ive", "ize",
];

fn is_consonant(word: &[u8], at: usize) -> bool {
    match word[at] {
        b'a' | b'e' | b'i' | b'o' | b'u' => false,
        b'y' => at == 0 || !is_consonant(word, at - 1),
        _ => true,
    }
}

/// How often a vowel is followed by a consonant: Porter's `m`.
fn measure(word: &str) -> usize {
    let mut previous_vowel = false;
    let mut count = 0;
    for at in 0..word.len() {
        // As `is_consonant`, without walking back: a `y` after a consonant is a vowel.
        let vowel = match word.as_bytes()[at] {
            b'a' | b'e' | b'i' | b'o' | b'u' => true,
            b'y' => at > 0 && !previous_vowel,
            _ => false,
        };
        count += usize::from(previous_vowel && !vowel);
        previous_vowel = vowel;
    }
    count
}

fn has_vowel(word: &str) -> bool {
    (0..word.len()).any(|at| !is_consonant(word.as_bytes(), at))
}

fn ends_double_consonant(word: &str) -> bool {
    let w = word.as_bytes();
    w.len() >= 2 && w[w.len() - 1] == w[w.len() - 2] && is_consonant(w, w.len() - 1)
}

/// Consonant, vowel, consonant other than w, x, y at the end: `hop`, not `snow`.
fn ends_short(word: &str) -> bool {
    let w = word.as_bytes();
    let n = w.len();
    n >= 3
        && is_consonant(w, n - 1)
        && !is_consonant(w, n - 2)
        && is_consonant(w, n - 3)
        && !matches!(w[n - 1], b'w' | b'x' | b'y')
}

fn plurals(word: &mut String) {
    if word.ends_with("sses") || word.ends_with("ies") {
        word.truncate(word.len() - 2);
    } else if word.ends_with('s') && !word.ends_with("ss") {
        word.pop();
    }
}

fn past_and_gerund(word: &mut String) {
    if let Some(stem) = word.strip_suffix("eed") {
        if measure(stem) > 0 {
            word.pop();
        }
        return;
    }
    let Some(stem) = word.strip_suffix("ed").or_else(|| word.strip_suffix("ing")) else { return };
    if !has_vowel(stem) {
        return;
    }
    let length = stem.len();
    word.truncate(length);
    if word.ends_with("at") || word.ends_with("bl") || word.ends_with("iz") {
        word.push('e');
    } else if ends_double_consonant(word) {
        if !word.ends_with(['l', 's', 'z']) {
            word.pop();
        }
    } else if measure(word) == 1 && ends_short(word) {
        word.push('e');
    }
}

fn final_y(word: &mut String) {
    if word.strip_suffix('y').is_some_and(has_vowel) {
        word.pop();
        word.push('i');
    }
}

/// Whether the suffix ends in this letter: what is cheap is asked first, for every word of a text comes here.
fn ends_in(suffix: &str, last: Option<u8>) -> bool {
    suffix.as_bytes().last().copied() == last
}

/// Replaces the suffix that `word` ends in by its partner if the measure of what is before it exceeds `above`.
fn replace_first(word: &mut String, table: &[(&str, &str)], above: usize) {
    let last = word.as_bytes().last().copied();
    for (suffix, replacement) in table.iter().filter(|(suffix, _)| ends_in(suffix, last)) {
        if let Some(stem) = word.strip_suffix(suffix) {
            if measure(stem) > above {
                let length = stem.len();
                word.truncate(length);
                word.push_str(replacement);
            }
            return;
        }
    }
}

fn drop_suffix(word: &mut String) {
    let last = word.as_bytes().last().copied();
    for suffix in STEP_4.iter().filter(|suffix| ends_in(suffix, last)) {
        if let Some(stem) = word.strip_suffix(suffix) {
            if measure(stem) > 1 && (*suffix != "ion" || stem.ends_with(['s', 't'])) {
                let length = stem.len();
                word.truncate(length);
            }
            return;
        }
    }
}

fn final_e_and_double_l(word: &mut String) {
    if let Some(stem) = word.strip_suffix('e') {
        let m = measure(stem);
        if m > 1 || (m == 1 && !ends_short(stem)) {
            word.pop();
        }
    }
    if word.ends_with("ll") && measure(&word[..word.len() - 1]) > 1 {
        word.pop();
    }
}

#[cfg(test)]
mod tests;
