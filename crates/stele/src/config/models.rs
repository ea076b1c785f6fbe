//! `[models.providers.NAME]`: the providers of language models. spec/learning.md 15, docs/MODELS.md.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, bail, ensure};
use serde::Deserialize;
use serde::de::IgnoredAny;
use stele_core::models::Price;
use stele_models::{Key, Kind, ProviderSettings, Structured};

use crate::config::Env;

const ANTHROPIC: &str = "https://api.anthropic.com";
/// Characters of a provider's name.
const NAME: usize = 64;
/// Calls that a provider is given at a time. spec/learning.md 3.
const CONCURRENT_CALLS: usize = 2;

/// The table `models` of the file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ModelsTable {
    #[serde(default)]
    providers: BTreeMap<String, ProviderTable>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProviderTable {
    kind: String,
    base_url: Option<String>,
    api_key_env: Option<String>,
    api_key_file: Option<String>,
    /// Read so that it can be refused without being shown, as an unknown key would be.
    api_key: Option<IgnoredAny>,
    context_tokens: Option<u64>,
    tools: Option<bool>,
    structured: Option<String>,
    price: Option<PriceTable>,
    models: Option<Vec<String>>,
    concurrent_calls: Option<usize>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PriceTable {
    #[serde(default)]
    input: f64,
    #[serde(default)]
    output: f64,
    #[serde(default)]
    cache_read: f64,
    #[serde(default)]
    cache_write: f64,
}

impl ModelsTable {
    /// The providers; keys are read now. `file` is where the table stands: a key's file may be named relative to it.
    pub(super) fn read(self, file: &Path, env: Env<'_>) -> anyhow::Result<Vec<ProviderSettings>> {
        let read = |(name, table): (String, ProviderTable)| {
            let place = format!("models.providers.{name} in {}", file.display());
            table.read(&name, file, env).context(place)
        };
        self.providers.into_iter().map(read).collect()
    }
}

impl ProviderTable {
    fn read(self, name: &str, file: &Path, env: Env<'_>) -> anyhow::Result<ProviderSettings> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        ensure!(
            !name.is_empty() && name.len() <= NAME && name.chars().all(is_plain),
            "the name of a provider has letters, digits, -, _ and . only, at most {NAME} of them"
        );
        let Some(kind) = Kind::parse(&self.kind) else {
            bail!("kind must be anthropic or openai, not {:?}", self.kind);
        };
        let base_url = match (self.base_url.clone(), kind) {
            (Some(url), _) => url,
            (None, Kind::Anthropic) => ANTHROPIC.to_owned(),
            (None, Kind::OpenAi) => bail!("base_url is missing, such as http://127.0.0.1:11434/v1"),
        };
        let structured = self.structured.as_deref().unwrap_or(Structured::JsonSchema.as_str());
        let Some(structured) = Structured::parse(structured) else {
            bail!("structured must be json_schema, json_object or none, not {structured:?}");
        };
        ensure!(self.context_tokens != Some(0), "context_tokens must be at least 1");
        ensure!(self.concurrent_calls != Some(0), "concurrent_calls must be at least 1");
        Ok(ProviderSettings {
            name: name.to_owned(),
            kind,
            base_url,
            key: self.key(file, env)?,
            context_tokens: self.context_tokens,
            tools: self.tools.unwrap_or(true),
            structured,
            price: self.price.map(PriceTable::read).transpose()?,
            models: self.models.map(models).transpose()?,
            concurrent_calls: self.concurrent_calls.unwrap_or(CONCURRENT_CALLS),
        })
    }

    fn key(&self, file: &Path, env: Env<'_>) -> anyhow::Result<Option<Key>> {
        ensure!(
            self.api_key.is_none(),
            "api_key is not taken: a key belongs into the environment (api_key_env) or a file of its own (api_key_file)"
        );
        let (text, place) = match (&self.api_key_env, &self.api_key_file) {
            (None, None) => return Ok(None),
            (Some(_), Some(_)) => bail!("api_key_env and api_key_file are both given: one is enough"),
            (Some(variable), None) => {
                let value = env(variable);
                let value = value.with_context(|| {
                    format!("api_key_env: the environment variable {variable} is not set")
                })?;
                (value, format!("api_key_env: the value of {variable}"))
            }
            (None, Some(named)) => {
                let path = file.parent().unwrap_or(Path::new("")).join(named);
                let text = std::fs::read_to_string(&path);
                let text = text.with_context(|| format!("api_key_file: cannot read {}", path.display()))?;
                (text, format!("api_key_file: the content of {}", path.display()))
            }
        };
        let key = Key::parse(&text);
        Ok(Some(key.with_context(|| format!("{place} is no key: one line of printable ASCII is wanted"))?))
    }
}

impl PriceTable {
    fn read(self) -> anyhow::Result<Price> {
        let Self { input, output, cache_read, cache_write } = self;
        let is_price = |price: f64| price.is_finite() && price >= 0.0;
        ensure!(
            [input, output, cache_read, cache_write].into_iter().all(is_price),
            "price: each price is a number of at least 0, for a million tokens"
        );
        Ok(Price { input, output, cache_read, cache_write })
    }
}

fn models(named: Vec<String>) -> anyhow::Result<Vec<String>> {
    let is_id = |id: &String| !id.is_empty() && !id.contains(|c: char| c.is_whitespace() || c.is_control());
    ensure!(!named.is_empty() && named.iter().all(is_id), "models must be ids of models, at least one");
    Ok(named)
}

/// What `stele config check` shows of a provider.
pub(crate) fn shown(provider: &ProviderSettings) -> String {
    let key = if provider.key.is_some() { "with a key" } else { "without a key" };
    let models = match &provider.models {
        Some(models) => format!("models {}", models.join(", ")),
        None => "models as it lists them".into(),
    };
    format!("{} at {}, {key}, {models}", provider.kind.as_str(), provider.base_url)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "sk-very-secret";

    fn read(text: &str) -> anyhow::Result<Vec<ProviderSettings>> {
        let table: ModelsTable = toml::from_str(text)?;
        let env = |name: &str| (name == "LOCAL_KEY").then(|| SECRET.to_owned());
        table.read(Path::new("/nowhere/stele.toml"), &env)
    }

    #[test]
    fn a_whole_table_is_read_and_its_key_not_shown() {
        let text = "[providers.local]\nkind = 'openai'\nbase_url = 'http://127.0.0.1:11434/v1'\n\
                    api_key_env = 'LOCAL_KEY'\ncontext_tokens = 32768\ntools = false\nstructured = 'json_object'\n\
                    price = { input = 1.0, output = 2 }\nmodels = ['m']\nconcurrent_calls = 4\n\
                    [providers.claude]\nkind = 'anthropic'\n";
        let providers = read(text).expect("a configuration");
        let [claude, local] = providers.as_slice() else { panic!("two providers") };
        assert_eq!((claude.base_url.as_str(), claude.tools, claude.concurrent_calls), (ANTHROPIC, true, 2));
        assert_eq!((local.context_tokens, local.tools, local.concurrent_calls), (Some(32_768), false, 4));
        assert_eq!(local.structured, Structured::JsonObject);
        assert_eq!(local.price.map(|price| (price.output, price.cache_read)), Some((2.0, 0.0)));
        assert_eq!(shown(local), "openai at http://127.0.0.1:11434/v1, with a key, models m");
        assert!(!format!("{local:?}").contains(SECRET));
    }

    #[test]
    fn a_key_may_stand_in_a_file_beside_the_configuration() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("key");
        std::fs::write(&file, format!("{SECRET}\n")).expect("written");
        let table = "[providers.p]\nkind = 'anthropic'\napi_key_file = 'key'\n";
        let table: ModelsTable = toml::from_str(table).expect("a table");
        let providers = table.read(&dir.path().join("stele.toml"), &|_| None).expect("a configuration");
        assert_eq!(providers[0].key, Key::parse(SECRET));
    }

    #[test]
    fn what_is_wrong_is_named_and_no_key_is_shown() {
        let cases = [
            ("kind = 'other'", "kind must be anthropic or openai"),
            ("kind = 'openai'", "base_url is missing"),
            ("kind = 'anthropic'\napi_key = 'sk-very-secret'", "api_key_env"),
            ("kind = 'anthropic'\napi_key_env = 'UNSET'", "UNSET is not set"),
            ("kind = 'anthropic'\napi_key_file = 'none'", "/nowhere/none"),
            ("kind = 'anthropic'\napi_key_env = 'LOCAL_KEY'\napi_key_file = 'x'", "one is enough"),
            ("kind = 'anthropic'\nstructured = 'yes'", "structured must be"),
            ("kind = 'anthropic'\ncontext_tokens = 0", "context_tokens"),
            ("kind = 'anthropic'\nconcurrent_calls = 0", "concurrent_calls"),
            ("kind = 'anthropic'\nprice = { input = -1.0 }", "price"),
            ("kind = 'anthropic'\nprice = { in = 1.0 }", "unknown field `in`"),
            ("kind = 'anthropic'\nmodels = []", "models"),
            ("kind = 'anthropic'\ntimeout = 1", "unknown field `timeout`"),
            ("base_url = 'http://x'", "missing field `kind`"),
        ];
        for (table, expected) in cases {
            let error = read(&format!("[providers.p]\n{table}\n")).expect_err(table);
            let text = format!("{error:#} {error:?}");
            assert!(text.contains(expected) && !text.contains(SECRET), "{table}: {text}");
        }
        let named = read("[providers.'a/b']\nkind = 'anthropic'\n").expect_err("a name with a slash");
        assert!(format!("{named:#}").contains("models.providers.a/b"), "{named:#}");
    }
}
