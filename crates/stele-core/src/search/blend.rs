//! Lexical and dense scores in one ranking. DESIGN 8: by score, not by rank.

use std::collections::BTreeMap;

/// What the lexical score counts.
pub const LEXICAL_WEIGHT: f32 = 0.6;
/// What the dense score counts.
pub const DENSE_WEIGHT: f32 = 0.4;

/// Both scores scaled to 0..1 within the store and added by weight, best first, then by `K`.
///
/// What has no lexical score matched no word and counts 0 there; `dense` is expected to cover the store, and what it
/// leaves out counts as its lowest. Scores are finite.
pub fn blend<K: Ord + Clone>(lexical: &[(K, f32)], dense: &[(K, f32)]) -> Vec<(K, f32)> {
    let mut sums: BTreeMap<&K, f32> = BTreeMap::new();
    let highest = lexical.iter().map(|(_, score)| *score).fold(0.0, f32::max);
    for (key, score) in lexical {
        *sums.entry(key).or_default() += LEXICAL_WEIGHT * scaled(*score, 0.0, highest);
    }
    let lowest = dense.iter().map(|(_, score)| *score).fold(f32::INFINITY, f32::min);
    let highest = dense.iter().map(|(_, score)| *score).fold(f32::NEG_INFINITY, f32::max);
    for (key, score) in dense {
        *sums.entry(key).or_default() += DENSE_WEIGHT * scaled(*score, lowest, highest);
    }
    let mut blended: Vec<_> = sums.into_iter().map(|(key, score)| (key.clone(), score)).collect();
    blended.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    blended
}

fn scaled(score: f32, lowest: f32, highest: f32) -> f32 {
    if highest > lowest { (score - lowest) / (highest - lowest) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_are_scaled_before_they_are_weighed() {
        let blended = blend(&[("a", 10.0), ("b", 5.0)], &[("a", -1.0), ("b", 1.0), ("c", 0.0)]);
        let (keys, scores): (Vec<_>, Vec<_>) = blended.into_iter().unzip();
        assert_eq!(keys, ["b", "a", "c"]);
        assert!(scores.iter().zip([0.7, 0.6, 0.2]).all(|(score, expected)| (score - expected).abs() < 1e-6));
    }

    #[test]
    fn one_sided_and_even_scores_are_no_trouble() {
        assert_eq!(blend(&[("a", 3.0)], &[]), [("a", 0.6)]);
        assert_eq!(blend(&[], &[("b", 2.0), ("a", 2.0)]), [("a", 0.0), ("b", 0.0)]);
        assert_eq!(blend::<u8>(&[], &[]), []);
    }
}
