//! Scores of words and nearness of meaning in one ranking. DESIGN 8: by score, not by rank, which was measured to
//! make good lexical search worse.

/// What the score of words counts.
const WORDS_WEIGHT: f32 = 0.6;
/// What the nearness counts.
const NEARNESS_WEIGHT: f32 = 0.4;
/// How near a memory must be to be found without a word in common, from 0 for the farthest to 1 for the nearest of
/// the store. Every memory is near to some degree, and how near what belongs together is depends on the model.
const FOUND_FROM: f32 = 0.5;

/// Whether a memory may be found that no word of the query is in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum WithoutWords {
    /// If it is near.
    IfNear,
    /// No: the query says what must be there.
    Never,
}

/// Puts in place of the score of every memory of a store the blend with its nearness, both scaled to 0..1 within the
/// store; what is not found stays 0.
///
/// Where the nearness is unknown (`NAN`), since a vector is not there yet, the words count for both: a memory just
/// written is not behind for it.
pub(super) fn blend(scores: &mut [f32], nearness: &[f32], without_words: WithoutWords) {
    let most = scores.iter().copied().fold(0.0, f32::max);
    let known = || nearness.iter().copied().filter(|near| !near.is_nan());
    let (lowest, highest) =
        (known().fold(f32::INFINITY, f32::min), known().fold(f32::NEG_INFINITY, f32::max));
    for (score, near) in scores.iter_mut().zip(nearness) {
        let words = if most > 0.0 { *score / most } else { 0.0 };
        // Where all are as near, nothing speaks against any.
        let near = match *near {
            near if near.is_nan() => words,
            near if highest > lowest => (near - lowest) / (highest - lowest),
            _ => 1.0,
        };
        let found = *score > 0.0 || (without_words == WithoutWords::IfNear && near >= FOUND_FROM);
        let blended = WORDS_WEIGHT * words + NEARNESS_WEIGHT * near;
        *score = if found { blended.max(f32::MIN_POSITIVE) } else { 0.0 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blended<const N: usize>(mut scores: [f32; N], nearness: [f32; N], how: WithoutWords) -> [f32; N] {
        blend(&mut scores, &nearness, how);
        scores.map(|score| (score * 1000.0).round() / 1000.0)
    }

    #[test]
    fn both_are_scaled_before_they_are_weighed() {
        let found = blended([10.0, 5.0, 0.0, 0.0], [-1.0, 1.0, 0.0, -0.5], WithoutWords::IfNear);
        assert_eq!(found, [0.6, 0.7, 0.2, 0.0]);
    }

    #[test]
    fn what_must_be_there_is_not_found_for_its_nearness() {
        assert_eq!(blended([2.0, 0.0], [0.1, 0.9], WithoutWords::Never), [0.6, 0.0]);
        assert_eq!(blended([0.0, 0.0], [0.1, 0.9], WithoutWords::Never), [0.0, 0.0]);
    }

    #[test]
    fn a_memory_without_a_vector_yet_is_ranked_by_its_words() {
        assert_eq!(blended([4.0, 2.0, 0.0], [f32::NAN; 3], WithoutWords::IfNear), [1.0, 0.5, 0.0]);
        assert_eq!(blended([4.0, 2.0, 0.0], [f32::NAN, 0.3, 0.9], WithoutWords::IfNear), [1.0, 0.3, 0.4]);
    }

    #[test]
    fn one_memory_alone_is_near_enough() {
        assert_eq!(blended([0.0], [0.2], WithoutWords::IfNear), [0.4]);
        assert_eq!(blended::<0>([], [], WithoutWords::IfNear), [0.0; 0]);
    }

    #[test]
    fn what_is_found_by_a_word_alone_has_a_score() {
        let mut scores = [f32::MIN_POSITIVE, 8.0];
        blend(&mut scores, &[0.0, 1.0], WithoutWords::IfNear);
        assert!(scores[0] > 0.0);
    }
}
