//! Which models there are, and what they cost.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::models::answer::Usage;
use crate::models::failure::ModelError;

/// What the configured providers list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Catalogue {
    /// The models, by provider and id.
    pub models: Vec<ModelEntry>,
    /// Providers that list nothing now, and why.
    pub silent: Vec<Silent>,
}

/// A provider that lists nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct Silent {
    /// Its name in the configuration.
    pub provider: String,
    /// Why.
    pub error: ModelError,
}

impl Catalogue {
    /// The models, unless all that there is to know is that providers do not answer.
    ///
    /// # Errors
    /// [`ModelError::Unreachable`].
    pub fn reachable(self) -> Result<Vec<ModelEntry>, ModelError> {
        if self.models.is_empty() && !self.silent.is_empty() {
            let providers = self.silent.into_iter().map(|silent| silent.provider).collect();
            return Err(ModelError::Unreachable { providers });
        }
        Ok(self.models)
    }

    /// Whether a model of this name may be asked for: a provider lists it, or does not answer and may list it.
    pub fn may_have(&self, name: &str) -> bool {
        let silent = |provider: &str| self.silent.iter().any(|silent| silent.provider == provider);
        match name.split_once('/') {
            Some((provider, _)) if silent(provider) => true,
            None if !self.silent.is_empty() => true,
            parts => self.models.iter().any(|model| {
                let own =
                    parts.is_some_and(|(provider, id)| model.provider == provider && is_named(&model.id, id));
                own || is_named(&model.id, name)
            }),
        }
    }
}

/// Whether a listed id is meant by `name`: itself, or a name without the date that the id ends with, as Anthropic's
/// aliases are.
pub fn is_named(id: &str, name: &str) -> bool {
    match id.strip_prefix(name) {
        Some("") => true,
        Some(rest) => {
            let date = rest.strip_prefix('-').unwrap_or_default();
            date.len() == 8 && date.bytes().all(|b| b.is_ascii_digit())
        }
        None => false,
    }
}

/// A model of a configured provider.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelEntry {
    /// The provider's name in the configuration.
    pub provider: String,
    /// The provider's id of it.
    pub id: String,
    /// What people call it; its id where the provider does not say.
    pub display_name: String,
    /// Tokens of conversation and answer together.
    pub context_tokens: u64,
    /// Most tokens of an answer, where the provider says.
    pub output_tokens: Option<u64>,
    /// Whether it can be offered tools.
    pub tools: bool,
    /// What its tokens cost, where the configuration says.
    pub price: Option<Price>,
}

impl ModelEntry {
    /// Its name among all providers: `provider/model`.
    pub fn reference(&self) -> String {
        format!("{}/{}", self.provider, self.id)
    }
}

/// The price of a million tokens, in the currency that the operator thinks in.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Price {
    /// Read.
    pub input: f64,
    /// Written.
    pub output: f64,
    /// Read from the cache.
    pub cache_read: f64,
    /// Put into the cache.
    pub cache_write: f64,
}

impl Price {
    /// What these tokens cost.
    pub fn of(&self, usage: &Usage) -> Cost {
        let parts = [
            (usage.input, self.input),
            (usage.output, self.output),
            (usage.cache_read, self.cache_read),
            (usage.cache_write, self.cache_write),
        ];
        #[expect(clippy::cast_precision_loss, reason = "tokens far below 2^52")]
        let whole: f64 = parts.into_iter().map(|(tokens, price)| tokens as f64 * price / 1e6).sum();
        Cost::from_units(whole)
    }
}

/// An amount of money, in billionths of the unit that prices are in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Cost(u64);

impl Cost {
    /// Nothing.
    pub const NONE: Self = Self(0);

    /// The amount of so many units; nothing for what is negative or no number.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a cast of a float saturates, and no number becomes 0"
    )]
    pub fn from_units(units: f64) -> Self {
        Self((units * 1e9).round() as u64)
    }

    /// The amount in units.
    #[expect(clippy::cast_precision_loss, reason = "shown with few digits")]
    pub fn units(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// What is left without the other; nothing if that is more.
    #[must_use]
    pub fn less(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl fmt::Display for Cost {
    /// With six decimals.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.6}", self.units())
    }
}

/// How a provider is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Its name in the configuration.
    pub provider: String,
    /// The kind of its wire: `anthropic` or `openai`.
    pub kind: &'static str,
    /// Seconds until it is asked again, where it rests after too many failures.
    pub rests_secs: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(provider: &str, id: &str) -> ModelEntry {
        ModelEntry {
            provider: provider.into(),
            id: id.into(),
            display_name: id.into(),
            context_tokens: 1,
            output_tokens: None,
            tools: true,
            price: None,
        }
    }

    #[test]
    fn an_alias_is_an_id_without_its_date() {
        assert!(is_named("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"));
        assert!(is_named("m", "m"));
        for other in ["claude-sonnet-4", "claude-sonnet", "laude-sonnet-4-5-20250929"] {
            assert!(!is_named("claude-sonnet-4-5-20250929", other), "{other}");
        }
    }

    #[test]
    fn a_catalogue_has_what_is_listed_and_may_have_what_the_silent_list() {
        let models = vec![entry("p", "m"), entry("p", "org/deep"), entry("p", "x-20260101")];
        let mut catalogue = Catalogue { models, silent: Vec::new() };
        for name in ["p/m", "m", "p/org/deep", "org/deep", "p/x", "x"] {
            assert!(catalogue.may_have(name), "{name}");
        }
        for name in ["p/n", "n", "q/m", "p/", "", "deep"] {
            assert!(!catalogue.may_have(name), "{name}");
        }
        catalogue.silent.push(Silent { provider: "q".into(), error: ModelError::Unconfigured });
        assert!(catalogue.may_have("q/m") && catalogue.may_have("n") && !catalogue.may_have("p/n"));
    }

    #[test]
    fn a_cost_is_the_sum_of_its_parts_to_the_billionth() {
        let price = Price { input: 3.0, output: 15.0, cache_read: 0.3, cache_write: 3.75 };
        let usage = Usage { input: 1_000, output: 10, cache_read: 2_000, cache_write: 400, estimated: false };
        let cost = price.of(&usage);
        assert_eq!(cost, Cost(3_000_000 + 150_000 + 600_000 + 1_500_000));
        assert_eq!(cost.to_string(), "0.005250");
        assert_eq!((Cost(5).plus(Cost(2)), Cost(5).less(Cost(7))), (Cost(7), Cost(0)));
        assert_eq!((Cost::from_units(-1.0), Cost::from_units(f64::NAN)), (Cost(0), Cost(0)));
    }
}
