use super::*;

fn stemmed(word: &str) -> String {
    let mut out = String::new();
    stem(word, &mut out);
    out
}

/// From Porter's paper and the vocabulary published with it, step by step.
#[test]
fn the_examples_of_the_paper_have_their_stems() {
    let cases = "caresses caress, ponies poni, ties ti, caress caress, cats cat, feed feed, agreed agre,
        plastered plaster, bled bled, motoring motor, sing sing, conflated conflat, troubled troubl, sized size,
        hopping hop, tanned tan, falling fall, hissing hiss, fizzed fizz, failing fail, filing file, happy happi,
        sky sky, relational relat, conditional condit, rational ration, valenci valenc, hesitanci hesit,
        digitizer digit, conformabli conform, radicalli radic, differentli differ, vileli vile, analogousli analog,
        vietnamization vietnam, predication predic, operator oper, feudalism feudal, decisiveness decis,
        hopefulness hope, callousness callous, formaliti formal, sensitiviti sensit, sensibiliti sensibl,
        triplicate triplic, formative form, formalize formal, electriciti electr, electrical electr, hopeful hope,
        goodness good, revival reviv, allowance allow, inference infer, airliner airlin, gyroscopic gyroscop,
        adjustable adjust, defensible defens, irritant irrit, replacement replac, adjustment adjust,
        dependent depend, adoption adopt, homologou homolog, communism commun, activate activ, angulariti angular,
        homologous homolog, effective effect, bowdlerize bowdler, probate probat, rate rate, cease ceas,
        controll control, roll roll, generalizations gener, oscillators oscil, crying cry, by by, say sai, yes ye,
        archaeology archaeolog, possibly possibl, deployment deploy, memories memori, syzygy syzygi";
    for case in cases.split(',') {
        let (word, expected) = case.trim().split_once(' ').expect("a word and its stem");
        if base_form(word).is_none() {
            assert_eq!(stemmed(word), expected, "{word}");
        }
    }
}

#[test]
fn irregular_forms_have_the_stem_of_their_base_form() {
    for (form, base) in [("went", "go"), ("bought", "buy"), ("children", "child"), ("dying", "die")] {
        assert_eq!(stemmed(form), stemmed(base));
    }
    assert_eq!(stemmed("news"), "news");
}

#[test]
fn other_alphabets_digits_and_short_words_stay() {
    for word in ["дела", "x86s", "is", "", "2ing", "naïves"] {
        assert_eq!(stemmed(word), word);
    }
}
