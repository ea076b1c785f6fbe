//! English words whose forms no suffix rule joins: irregular verbs and plurals, and words that the rules would spoil.

use std::collections::HashMap;
use std::sync::LazyLock;

/// The base form of a folded irregular word; `None` for all others.
///
/// Forms that are common words of their own (`bit`, `ground`, `rose`, `left`, `bore`) are left out.
pub(super) fn base_form(word: &str) -> Option<&'static str> {
    let (first, second) =
        (word.as_bytes().first()?.checked_sub(b'a')?, word.as_bytes().get(1)?.checked_sub(b'a')?);
    let first = usize::from(first);
    if SECONDS.get(first)? & (1 << (second % 32)) == 0 {
        return None;
    }
    let (from, to) = (*STARTS.get(first)?, *STARTS.get(first + 1)?);
    let same_letter = &TABLE[from..to];
    same_letter.binary_search_by(|(form, _)| (*form).cmp(word)).ok().map(|at| same_letter[at].1)
}

/// Where the forms with each first letter begin in the table, and its end: this is asked for every word of a text.
const STARTS: [usize; 27] = {
    let mut starts = [TABLE.len(); 27];
    let mut at = TABLE.len();
    let mut letter = 26;
    while letter > 0 {
        letter -= 1;
        while at > 0 && TABLE[at - 1].0.as_bytes()[0] >= b'a' + letter as u8 {
            at -= 1;
        }
        starts[letter] = at;
    }
    starts
};

/// Which second letters the forms with each first letter have, a bit each: most words end here.
const SECONDS: [u32; 26] = {
    let mut seconds = [0; 26];
    let mut at = 0;
    while at < TABLE.len() {
        let form = TABLE[at].0.as_bytes();
        seconds[(form[0] - b'a') as usize] |= 1 << ((form[1] - b'a') % 32);
        at += 1;
    }
    seconds
};

/// The irregular forms with the stem `stem`.
pub(super) fn forms_with_stem(stem: &str) -> &'static [&'static str] {
    static FORMS: LazyLock<HashMap<String, Vec<&'static str>>> = LazyLock::new(|| {
        let mut forms: HashMap<String, Vec<&'static str>> = HashMap::new();
        for (form, _) in TABLE {
            let mut stemmed = String::new();
            super::stem::stem(form, &mut stemmed);
            forms.entry(stemmed).or_default().push(form);
        }
        forms
    });
    FORMS.get(stem).map_or(&[], Vec::as_slice)
}

/// Form and base form, ascending by form. A form that is its own base form is not stemmed.
const TABLE: &[(&str, &str)] = &[
    ("analyses", "analysis"),
    ("arisen", "arise"),
    ("arose", "arise"),
    ("ate", "eat"),
    ("awoke", "awake"),
    ("awoken", "awake"),
    ("beaten", "beat"),
    ("became", "become"),
    ("began", "begin"),
    ("begun", "begin"),
    ("bent", "bend"),
    ("bitten", "bite"),
    ("bled", "bleed"),
    ("blew", "blow"),
    ("blown", "blow"),
    ("bought", "buy"),
    ("bred", "breed"),
    ("broke", "break"),
    ("broken", "break"),
    ("brought", "bring"),
    ("built", "build"),
    ("burnt", "burn"),
    ("calves", "calf"),
    ("came", "come"),
    ("caught", "catch"),
    ("children", "child"),
    ("chose", "choose"),
    ("chosen", "choose"),
    ("clung", "cling"),
    ("crept", "creep"),
    ("crises", "crisis"),
    ("criteria", "criterion"),
    ("dealt", "deal"),
    ("diagnoses", "diagnosis"),
    ("drank", "drink"),
    ("drawn", "draw"),
    ("dreamt", "dream"),
    ("drew", "draw"),
    ("driven", "drive"),
    ("drove", "drive"),
    ("drunk", "drink"),
    ("dug", "dig"),
    ("dying", "die"),
    ("eaten", "eat"),
    ("fallen", "fall"),
    ("fed", "feed"),
    ("feet", "foot"),
    ("fell", "fall"),
    ("felt", "feel"),
    ("fled", "flee"),
    ("flew", "fly"),
    ("flown", "fly"),
    ("flung", "fling"),
    ("forbade", "forbid"),
    ("forbidden", "forbid"),
    ("forgave", "forgive"),
    ("forgiven", "forgive"),
    ("forgot", "forget"),
    ("forgotten", "forget"),
    ("fought", "fight"),
    ("froze", "freeze"),
    ("frozen", "freeze"),
    ("gave", "give"),
    ("geese", "goose"),
    ("given", "give"),
    ("gone", "go"),
    ("grew", "grow"),
    ("grown", "grow"),
    ("halves", "half"),
    ("heard", "hear"),
    ("held", "hold"),
    ("hid", "hide"),
    ("hidden", "hide"),
    ("hung", "hang"),
    ("hypotheses", "hypothesis"),
    ("indices", "index"),
    ("kept", "keep"),
    ("knelt", "kneel"),
    ("knew", "know"),
    ("knives", "knife"),
    ("known", "know"),
    ("laid", "lay"),
    ("leapt", "leap"),
    ("learnt", "learn"),
    ("led", "lead"),
    ("lent", "lend"),
    ("lit", "light"),
    ("lives", "life"),
    ("loaves", "loaf"),
    ("lost", "lose"),
    ("lying", "lie"),
    ("made", "make"),
    ("matrices", "matrix"),
    ("meant", "mean"),
    ("men", "man"),
    ("met", "meet"),
    ("mice", "mouse"),
    ("mistaken", "mistake"),
    ("mistook", "mistake"),
    ("news", "news"),
    ("overcame", "overcome"),
    ("overtaken", "overtake"),
    ("overtook", "overtake"),
    ("oxen", "ox"),
    ("paid", "pay"),
    ("phenomena", "phenomenon"),
    ("proven", "prove"),
    ("ran", "run"),
    ("rang", "ring"),
    ("rebuilt", "rebuild"),
    ("reran", "rerun"),
    ("rewritten", "rewrite"),
    ("rewrote", "rewrite"),
    ("ridden", "ride"),
    ("risen", "rise"),
    ("rode", "ride"),
    ("rung", "ring"),
    ("said", "say"),
    ("sang", "sing"),
    ("sank", "sink"),
    ("sat", "sit"),
    ("saw", "see"),
    ("seen", "see"),
    ("sent", "send"),
    ("shaken", "shake"),
    ("shelves", "shelf"),
    ("shone", "shine"),
    ("shook", "shake"),
    ("shot", "shoot"),
    ("shown", "show"),
    ("shrank", "shrink"),
    ("shrunk", "shrink"),
    ("skies", "sky"),
    ("slept", "sleep"),
    ("slid", "slide"),
    ("sold", "sell"),
    ("sought", "seek"),
    ("spent", "spend"),
    ("spoke", "speak"),
    ("spoken", "speak"),
    ("sprang", "spring"),
    ("stank", "stink"),
    ("stole", "steal"),
    ("stolen", "steal"),
    ("stood", "stand"),
    ("stricken", "strike"),
    ("struck", "strike"),
    ("stuck", "stick"),
    ("stung", "sting"),
    ("sung", "sing"),
    ("sunk", "sink"),
    ("swam", "swim"),
    ("swept", "sweep"),
    ("swore", "swear"),
    ("sworn", "swear"),
    ("swum", "swim"),
    ("swung", "swing"),
    ("taken", "take"),
    ("taught", "teach"),
    ("teeth", "tooth"),
    ("theses", "thesis"),
    ("thieves", "thief"),
    ("thought", "think"),
    ("threw", "throw"),
    ("thrown", "throw"),
    ("told", "tell"),
    ("took", "take"),
    ("tore", "tear"),
    ("torn", "tear"),
    ("tying", "tie"),
    ("undergone", "undergo"),
    ("understood", "understand"),
    ("undertook", "undertake"),
    ("underwent", "undergo"),
    ("undid", "undo"),
    ("undone", "undo"),
    ("vertices", "vertex"),
    ("went", "go"),
    ("withdrawn", "withdraw"),
    ("withdrew", "withdraw"),
    ("withstood", "withstand"),
    ("wives", "wife"),
    ("woke", "wake"),
    ("woken", "wake"),
    ("wolves", "wolf"),
    ("women", "woman"),
    ("won", "win"),
    ("wore", "wear"),
    ("worn", "wear"),
    ("written", "write"),
    ("wrote", "write"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_no_base_form_is_a_form() {
        assert!(TABLE.windows(2).all(|pair| pair[0].0 < pair[1].0));
        for (form, base) in TABLE {
            assert!(form == base || base_form(base).is_none_or(|again| again == *base), "{form} {base}");
        }
    }

    #[test]
    fn irregular_forms_meet_their_base_form() {
        assert_eq!(base_form("went"), Some("go"));
        assert_eq!(base_form("children"), Some("child"));
        assert_eq!(base_form("go"), None);
        assert!(TABLE.iter().all(|(form, base)| base_form(form) == Some(base)));
        assert_eq!(forms_with_stem("go"), ["gone", "went"]);
    }
}
