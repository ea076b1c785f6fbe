//! About how many tokens a text is. spec/learning.md 5.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

/// Reported usages that count.
const LAST: usize = 20;
/// Bytes of a token where nothing is known.
const BYTES: f64 = 3.0;
/// Models that are remembered; names of models come from callers.
const MODELS: usize = 1_000;

/// What the models of one provider reported, as a share of what bytes / 3 would have been.
#[derive(Debug, Default)]
pub(crate) struct Estimates(Mutex<HashMap<String, VecDeque<f64>>>);

impl Estimates {
    /// Tokens of so many bytes, rounded up.
    #[expect(clippy::cast_precision_loss, reason = "bytes far below 2^52")]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive and bounded")]
    pub(crate) fn tokens(&self, model: &str, bytes: usize) -> u64 {
        (bytes as f64 / BYTES * self.ratio(model)).ceil() as u64
    }

    /// Remembers that `bytes` were `tokens`.
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    pub(crate) fn reported(&self, model: &str, bytes: usize, tokens: u64) {
        if bytes == 0 || tokens == 0 {
            return;
        }
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MODELS && !all.contains_key(model) {
            all.clear();
        }
        let ratios = all.entry(model.to_owned()).or_default();
        ratios.push_back(tokens as f64 / (bytes as f64 / BYTES));
        if ratios.len() > LAST {
            ratios.pop_front();
        }
    }

    fn ratio(&self, model: &str) -> f64 {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(ratios) = all.get(model) else { return 1.0 };
        let mut sorted: Vec<f64> = ratios.iter().copied().collect();
        sorted.sort_by(f64::total_cmp);
        let (low, high) = (sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
        f64::midpoint(low, high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_the_last_twenty_reports_corrects_a_third_of_the_bytes() {
        let estimates = Estimates::default();
        assert_eq!((estimates.tokens("m", 300), estimates.tokens("m", 1)), (100, 1));
        estimates.reported("m", 300, 50);
        estimates.reported("m", 300, 9_000);
        estimates.reported("m", 300, 60);
        assert_eq!(estimates.tokens("m", 300), 60, "one odd report does not count");
        assert_eq!(estimates.tokens("other", 300), 100);
        for _ in 0..20 {
            estimates.reported("m", 300, 200);
        }
        assert_eq!(estimates.tokens("m", 300), 200, "old reports are forgotten");
        estimates.reported("m", 0, 5);
        estimates.reported("m", 5, 0);
        assert_eq!(estimates.tokens("m", 300), 200);
    }
}
