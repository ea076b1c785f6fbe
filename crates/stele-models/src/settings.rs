//! What the operator says of a provider. spec/learning.md 15.

use std::fmt;
use std::time::Duration;

use stele_core::models::Price;

/// Which wire a provider speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Anthropic's Messages.
    Anthropic,
    /// Chat completions.
    OpenAi,
}

impl Kind {
    /// Its name in the configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAi => "openai",
        }
    }

    /// The kind of that name.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Anthropic, Self::OpenAi].into_iter().find(|kind| kind.as_str() == name)
    }

    /// Tokens of a context where nobody says how many.
    pub(crate) const fn context_tokens(self) -> u64 {
        match self {
            Self::Anthropic => 200_000,
            Self::OpenAi => 131_072,
        }
    }
}

/// How far a provider's answers can be made to fit a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Structured {
    /// To the schema.
    JsonSchema,
    /// To any JSON object.
    JsonObject,
    /// Not at all.
    None,
}

impl Structured {
    /// Its name in the configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::JsonSchema => "json_schema",
            Self::JsonObject => "json_object",
            Self::None => "none",
        }
    }

    /// The one of that name.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::JsonSchema, Self::JsonObject, Self::None].into_iter().find(|way| way.as_str() == name)
    }
}

/// A provider's key. It is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(String);

impl Key {
    /// The key in a text, without the white space around it; `None` for what no header could carry.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let is_sendable = !text.is_empty() && text.bytes().all(|b| b.is_ascii_graphic());
        is_sendable.then(|| Self(text.to_owned()))
    }

    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(***)")
    }
}

/// A provider.
#[derive(Clone, Debug)]
pub struct ProviderSettings {
    /// Its name: the first half of `provider/model`.
    pub name: String,
    /// Its wire.
    pub kind: Kind,
    /// Where it is, such as `https://api.anthropic.com` or `http://127.0.0.1:11434/v1`.
    pub base_url: String,
    /// Its key, where it wants one.
    pub key: Option<Key>,
    /// Tokens of conversation and answer together; `None`: as its catalogue says, else by kind.
    pub context_tokens: Option<u64>,
    /// Whether its models are offered tools.
    pub tools: bool,
    /// How far its answers can be made to fit a schema.
    pub structured: Structured,
    /// What its tokens cost.
    pub price: Option<Price>,
    /// Its models, in the place of what it lists itself.
    pub models: Option<Vec<String>>,
    /// Calls that it is given at a time.
    pub concurrent_calls: usize,
}

/// How long to wait for what.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// For a whole answer, to the last byte.
    pub timeout: Duration,
    /// First rest of a failing provider; zero: it never rests.
    pub rest: Duration,
    /// Before the second try; twice as long before the third.
    pub backoff: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(120),
            rest: Duration::from_secs(60),
            backoff: Duration::from_secs(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_never_shown_and_is_one_that_a_header_can_carry() {
        let key = Key::parse(" sk-secret\n").expect("a key");
        assert_eq!((key.reveal(), format!("{key:?}").as_str()), ("sk-secret", "Key(***)"));
        for bad in ["", " \n", "two words", "line\nbreak", "schl\u{fc}ssel"] {
            assert_eq!(Key::parse(bad), None, "{bad:?}");
        }
    }
}
