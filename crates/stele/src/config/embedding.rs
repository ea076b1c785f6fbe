//! `[search.embedding]`: the embedding model for searches, named as providers of models are. spec/learning.md 15.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use serde::Deserialize;
use stele_embed::{Config, Key};

use super::{Env, number};

/// Characters of a passage where nothing is said: about 250 word pieces of English, what small models read at once.
const PASSAGE_CHARS: u64 = 1_000;

/// The table of the file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Settings {
    base_url: Option<String>,
    model: Option<String>,
    api_key_env: Option<String>,
    api_key_file: Option<PathBuf>,
    dimensions: Option<u64>,
    passage_chars: Option<u64>,
    passage_prefix: Option<String>,
    query_prefix: Option<String>,
}

/// The model out of the environment over the file; `None` where none is named.
pub(super) fn load(file: Settings, env: Env<'_>) -> anyhow::Result<Option<Config>> {
    let base_url = env("STELE_EMBEDDING_BASE_URL").or(file.base_url.clone());
    let model = env("STELE_EMBEDDING_MODEL").or(file.model.clone());
    let (base_url, model) = match (base_url, model) {
        (None, None) => return Ok(None),
        (Some(base_url), Some(model)) => (base_url, model),
        (None, Some(_)) => {
            bail!("an embedding model needs a base_url (STELE_EMBEDDING_BASE_URL) beside its name")
        }
        (Some(_), None) => bail!("an embedding endpoint needs the name of a model (STELE_EMBEDDING_MODEL)"),
    };
    let dimensions = number(env, "STELE_EMBEDDING_DIMENSIONS")?.or(file.dimensions);
    let passage_chars = number(env, "STELE_EMBEDDING_PASSAGE_CHARS")?.or(file.passage_chars);
    let passage_chars = passage_chars.unwrap_or(PASSAGE_CHARS);
    ensure!((100..=100_000).contains(&passage_chars), "passage_chars must be from 100 to 100000");
    let dimensions = dimensions.map(|n| {
        let in_bounds = u32::try_from(n).ok().filter(|n| (1..=8192).contains(n));
        in_bounds.context("dimensions must be from 1 to 8192")
    });
    Ok(Some(Config {
        base_url,
        model,
        key: key(&file, env)?,
        dimensions: dimensions.transpose()?,
        passage_chars: usize::try_from(passage_chars)?,
        passage_prefix: env("STELE_EMBEDDING_PASSAGE_PREFIX").or(file.passage_prefix).unwrap_or_default(),
        query_prefix: env("STELE_EMBEDDING_QUERY_PREFIX").or(file.query_prefix).unwrap_or_default(),
    }))
}

fn key(file: &Settings, env: Env<'_>) -> anyhow::Result<Option<Key>> {
    if let Some(key) = env("STELE_EMBEDDING_API_KEY") {
        return Ok(Some(Key::new(&key)));
    }
    if let Some(path) = env("STELE_EMBEDDING_API_KEY_FILE") {
        return read(Path::new(&path)).map(Some);
    }
    match (&file.api_key_env, &file.api_key_file) {
        (Some(_), Some(_)) => bail!("name api_key_env or api_key_file, not both"),
        (Some(name), None) => {
            let key = env(name).with_context(|| format!("api_key_env names {name}, which is not set"))?;
            Ok(Some(Key::new(&key)))
        }
        (None, Some(path)) => read(path).map(Some),
        (None, None) => Ok(None),
    }
}

fn read(path: &Path) -> anyhow::Result<Key> {
    let text = std::fs::read_to_string(path);
    Ok(Key::new(&text.with_context(|| format!("cannot read the key in {}", path.display()))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(table: &str, vars: &[(&str, &str)]) -> anyhow::Result<Option<Config>> {
        let env = |name: &str| vars.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned());
        super::load(toml::from_str(table)?, &env)
    }

    const TABLE: &str = "base_url = 'http://127.0.0.1:1/v1'\nmodel = 'small'\n";

    #[test]
    fn nothing_named_is_no_model_and_the_environment_wins() {
        assert!(load("", &[]).expect("legal").is_none());
        let vars = [("STELE_EMBEDDING_MODEL", "large"), ("STELE_EMBEDDING_PASSAGE_CHARS", "4000")];
        let config = load(TABLE, &vars).expect("legal").expect("a model");
        assert_eq!((config.base_url.as_str(), config.model.as_str()), ("http://127.0.0.1:1/v1", "large"));
        assert_eq!(config.passage_chars, 4000);
        assert!(config.key.is_none());
    }

    #[test]
    fn keys_come_from_the_environment_or_a_file_and_are_never_shown() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), "secret\n").expect("written");
        let by_name = format!("{TABLE}api_key_env = 'MY_KEY'\n");
        let by_file = format!("{TABLE}api_key_file = '{}'\n", file.path().display());
        let cases: [(&str, &[(&str, &str)]); 3] = [
            (TABLE, &[("STELE_EMBEDDING_API_KEY", "secret")]),
            (&by_name, &[("MY_KEY", "secret")]),
            (&by_file, &[]),
        ];
        for (table, vars) in cases {
            let config = load(table, vars).expect("legal").expect("a model");
            assert!(config.key.is_some() && !format!("{config:?}").contains("secret"));
        }
    }

    #[test]
    fn what_is_missing_or_wrong_is_named() {
        let text = |table: &str, vars: &[_]| format!("{:#}", load(table, vars).expect_err("refused"));
        assert!(text("model = 'm'\n", &[]).contains("STELE_EMBEDDING_BASE_URL"));
        assert!(text("base_url = 'http://x'\n", &[]).contains("STELE_EMBEDDING_MODEL"));
        assert!(text(&format!("{TABLE}api_key_env = 'GONE'\n"), &[]).contains("GONE"));
        assert!(text(&format!("{TABLE}api_key_file = '/no/such'\n"), &[]).contains("/no/such"));
        assert!(text(&format!("{TABLE}api_key_file = '/x'\napi_key_env = 'X'\n"), &[]).contains("not both"));
        assert!(text(&format!("{TABLE}key = 'x'\n"), &[]).contains("unknown field `key`"));
        assert!(text(TABLE, &[("STELE_EMBEDDING_DIMENSIONS", "0")]).contains("1 to 8192"));
        assert!(text(TABLE, &[("STELE_EMBEDDING_PASSAGE_CHARS", "many")]).contains("PASSAGE_CHARS"));
    }
}
