//! Configuration: flags over environment over one TOML file over defaults. DESIGN 14.

mod embedding;
pub(crate) mod models;

use std::io::ErrorKind;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use serde::Deserialize;
use stele_core::limits::Limits;
use stele_models::{Patience, ProviderSettings};
use store_postgres::Url;
use store_sqlite::Compression;
use tracing::level_filters::LevelFilter;
use wire_recursion::ErrorCodes;

use crate::cli::ServeFlags;
use crate::failure::{Class, fail};

const FILE: &str = "stele.toml";
const BODY_CACHE_BYTES: u64 = 64 * 1024 * 1024;
const SEARCH_INDEX_BYTES: u64 = 256 * 1024 * 1024;
/// Where the address of a PostgreSQL may stand.
pub(crate) const DATABASE_URL: &str = "STELE_DATABASE_URL";
const LISTEN: &str = "127.0.0.1:7878";

/// What `stele serve` runs with.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) data_dir: PathBuf,
    /// PostgreSQL, if not the embedded database.
    pub(crate) database_url: Option<Url>,
    pub(crate) listen: SocketAddr,
    pub(crate) log: LevelFilter,
    pub(crate) compression: Compression,
    pub(crate) limits: Limits,
    /// Seconds between two sweeps.
    pub(crate) sweep_secs: u64,
    /// Whether `/metrics` answers.
    pub(crate) metrics: bool,
    /// Bytes of ready response bodies kept in memory.
    pub(crate) body_cache_bytes: u64,
    /// Bytes of indexes for searches kept in memory.
    pub(crate) search_index_bytes: u64,
    /// The embedding model for searches, if one is named.
    pub(crate) embedding: Option<stele_embed::Config>,
    /// Of the Recursion dialect.
    pub(crate) error_codes: ErrorCodes,
    /// Origins of web pages that may call `/mcp`, beside those of this machine.
    pub(crate) mcp_origins: Vec<String>,
    /// The providers of models.
    pub(crate) providers: Vec<ProviderSettings>,
    /// How long to wait for models.
    pub(crate) patience: Patience,
}

/// The settings that a file or the environment may give; unknown ones in a file are errors.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    data_dir: Option<PathBuf>,
    database_url: Option<String>,
    listen: Option<String>,
    log: Option<String>,
    compression: Option<String>,
    insecure: Option<bool>,
    metrics: Option<String>,
    version_retention_seconds: Option<u64>,
    sweep_seconds: Option<u64>,
    body_cache_bytes: Option<u64>,
    search_index_bytes: Option<u64>,
    #[serde(default)]
    search: SearchSettings,
    max_memories_per_store: Option<u64>,
    max_stores_per_workspace: Option<u64>,
    max_bytes_per_store: Option<u64>,
    max_versions_per_store: Option<u64>,
    error_codes: Option<String>,
    mcp_origins: Option<Vec<String>>,
    model_timeout_seconds: Option<u64>,
    model_breaker_seconds: Option<u64>,
    #[serde(default)]
    models: models::ModelsTable,
}

/// The table `[search]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct SearchSettings {
    #[serde(default)]
    embedding: embedding::Settings,
}

/// A source of environment variables, so that tests have their own.
pub(crate) type Env<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The process's environment.
#[expect(clippy::disallowed_methods, reason = "the binary is where the environment is read")]
pub(crate) fn process_env(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The data directory where none is named.
pub(crate) fn default_data_dir(env: Env<'_>) -> anyhow::Result<PathBuf> {
    if let Some(dir) = env("STELE_DATA_DIR") {
        return Ok(dir.into());
    }
    if let Some(dir) = env("XDG_DATA_HOME") {
        return Ok(Path::new(&dir).join("stele"));
    }
    let home = env("HOME").context("there is no home directory: name a data directory with --data-dir")?;
    Ok(Path::new(&home).join(".local/share/stele"))
}

/// Where this user's configuration of Stele lies.
pub(crate) fn user_config_dir(env: Env<'_>) -> Option<PathBuf> {
    let config = env("XDG_CONFIG_HOME").map(PathBuf::from);
    let config = config.or_else(|| Some(Path::new(&env("HOME")?).join(".config")))?;
    Some(config.join("stele"))
}

fn read_file(path: &Path) -> anyhow::Result<Settings> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        let class = if error.kind() == ErrorKind::NotFound { Class::NotFound } else { Class::Other };
        fail(class, format!("cannot read {}: {error}", path.display()))
    })?;
    toml::from_str(&text).map_err(|error| malformed(path, &text, &error))
}

/// What is wrong with a file, without the line that it is in: that may be a key which was put under a wrong name.
fn malformed(path: &Path, text: &str, error: &toml::de::Error) -> anyhow::Error {
    let before = error.span().and_then(|span| text.get(..span.start));
    let line =
        before.map(|before| format!(", line {}", before.matches('\n').count() + 1)).unwrap_or_default();
    anyhow::anyhow!("{} is not a valid configuration{line}: {}", path.display(), error.message())
}

/// The configuration file that counts: the one named, else that of the data directory, else the user's.
fn file_settings(flags: &ServeFlags, env: Env<'_>) -> anyhow::Result<(Settings, PathBuf)> {
    if let Some(named) = &flags.config {
        return Ok((read_file(named)?, named.clone()));
    }
    let data_dir = flags.data_dir.clone().map_or_else(|| default_data_dir(env), Ok)?;
    let places = [Some(data_dir.join(FILE)), user_config_dir(env).map(|dir| dir.join(FILE))];
    match places.into_iter().flatten().find(|path| path.exists()) {
        Some(path) => Ok((read_file(&path)?, path)),
        None => Ok((Settings::default(), PathBuf::from(FILE))),
    }
}

fn number(env: Env<'_>, name: &str) -> anyhow::Result<Option<u64>> {
    let parse =
        |text: String| text.parse().with_context(|| format!("{name} must be a whole number, not {text:?}"));
    env(name).map(parse).transpose()
}

fn env_settings(env: Env<'_>) -> anyhow::Result<Settings> {
    Ok(Settings {
        data_dir: env("STELE_DATA_DIR").map(PathBuf::from),
        database_url: env(DATABASE_URL),
        listen: env("STELE_LISTEN"),
        log: env("STELE_LOG"),
        compression: env("STELE_COMPRESSION"),
        insecure: None,
        metrics: env("STELE_METRICS"),
        version_retention_seconds: number(env, "STELE_VERSION_RETENTION_SECONDS")?,
        sweep_seconds: number(env, "STELE_SWEEP_SECONDS")?,
        body_cache_bytes: number(env, "STELE_BODY_CACHE_BYTES")?,
        search_index_bytes: number(env, "STELE_SEARCH_INDEX_BYTES")?,
        search: SearchSettings::default(),
        max_memories_per_store: number(env, "STELE_MAX_MEMORIES_PER_STORE")?,
        max_stores_per_workspace: number(env, "STELE_MAX_STORES_PER_WORKSPACE")?,
        max_bytes_per_store: number(env, "STELE_MAX_BYTES_PER_STORE")?,
        max_versions_per_store: number(env, "STELE_MAX_VERSIONS_PER_STORE")?,
        error_codes: env("STELE_ERROR_CODES"),
        mcp_origins: env("STELE_MCP_ORIGINS")
            .map(|list| list.split(',').map(|one| one.trim().into()).collect()),
        model_timeout_seconds: number(env, "STELE_MODEL_TIMEOUT_SECONDS")?,
        model_breaker_seconds: number(env, "STELE_MODEL_BREAKER_SECONDS")?,
        models: models::ModelsTable::default(),
    })
}

impl Config {
    /// Every setting with its value, as a person or `stele config check` reads it. What is secret is masked.
    pub(crate) fn settings(&self) -> Vec<(&'static str, String)> {
        let embedding = self.embedding.as_ref();
        let cap = |cap: Option<u64>| cap.map_or("none".into(), |cap| cap.to_string());
        vec![
            ("data_dir", self.data_dir.display().to_string()),
            ("database_url", self.database_url.as_ref().map_or("none".into(), ToString::to_string)),
            ("listen", self.listen.to_string()),
            ("log", self.log.to_string()),
            ("compression", if self.compression == Compression::On { "on" } else { "off" }.into()),
            ("version_retention_seconds", self.limits.version_retention_secs.to_string()),
            ("sweep_seconds", self.sweep_secs.to_string()),
            ("body_cache_bytes", self.body_cache_bytes.to_string()),
            ("search_index_bytes", self.search_index_bytes.to_string()),
            (
                "mcp_origins",
                if self.mcp_origins.is_empty() { "none".into() } else { self.mcp_origins.join(", ") },
            ),
            ("search.embedding.base_url", embedding.map_or("none".into(), |e| e.base_url.clone())),
            ("search.embedding.model", embedding.map_or("none".into(), |e| e.model.clone())),
            ("search.embedding.key", embedding.and_then(|e| e.key.as_ref()).map_or("none", |_| "***").into()),
            ("error_codes", if self.error_codes == ErrorCodes::Sdk { "sdk" } else { "seed" }.into()),
            ("max_memories_per_store", self.limits.memories_per_store.to_string()),
            ("max_stores_per_workspace", cap(self.limits.stores_per_workspace)),
            ("max_bytes_per_store", cap(self.limits.store_bytes)),
            ("max_versions_per_store", cap(self.limits.versions_per_store)),
            ("model_timeout_seconds", self.patience.timeout.as_secs().to_string()),
            ("model_breaker_seconds", self.patience.rest.as_secs().to_string()),
            ("metrics", if self.metrics { "on" } else { "off" }.into()),
        ]
    }

    /// The configuration out of all its sources.
    pub(crate) fn load(flags: &ServeFlags, env: Env<'_>) -> anyhow::Result<Self> {
        let (file, path) = file_settings(flags, env)?;
        let over = env_settings(env)?;
        // Where a value came from that turns out to be wrong.
        let origin = |key: &str, in_env: bool| match in_env {
            true => format!("STELE_{}", key.to_uppercase()),
            false => format!("{key} in {}", path.display()),
        };
        let mcp_origins_origin = origin("mcp_origins", over.mcp_origins.is_some());
        let (log_origin, compression_origin, metrics_origin) = (
            origin("log", over.log.is_some()),
            origin("compression", over.compression.is_some()),
            origin("metrics", over.metrics.is_some()),
        );
        let data_dir = match flags.data_dir.clone().or(over.data_dir).or(file.data_dir) {
            Some(dir) => dir,
            None => default_data_dir(env)?,
        };
        let data_dir = std::path::absolute(&data_dir)
            .with_context(|| format!("the data directory {} has no absolute path", data_dir.display()))?;
        let database_url = flags.database_url.clone().or(over.database_url).or(file.database_url);
        let listen = flags.listen.clone().or(over.listen).or(file.listen);
        let insecure = flags.insecure || file.insecure.unwrap_or(false);
        let patience = Patience::default();
        let seconds = |given: Option<u64>, default: Duration| given.map_or(default, Duration::from_secs);
        let patience = Patience {
            timeout: seconds(over.model_timeout_seconds.or(file.model_timeout_seconds), patience.timeout),
            rest: seconds(over.model_breaker_seconds.or(file.model_breaker_seconds), patience.rest),
            ..patience
        };
        ensure!(!patience.timeout.is_zero(), "model_timeout_seconds must be at least 1");
        let limits = Limits::default();
        let limits = Limits {
            memories_per_store: over
                .max_memories_per_store
                .or(file.max_memories_per_store)
                .unwrap_or(limits.memories_per_store),
            version_retention_secs: over
                .version_retention_seconds
                .or(file.version_retention_seconds)
                .unwrap_or(limits.version_retention_secs),
            stores_per_workspace: over.max_stores_per_workspace.or(file.max_stores_per_workspace),
            store_bytes: over.max_bytes_per_store.or(file.max_bytes_per_store),
            versions_per_store: over.max_versions_per_store.or(file.max_versions_per_store),
            ..limits
        };
        Ok(Self {
            data_dir,
            database_url: database_url
                .as_deref()
                .map(database)
                .transpose()
                .map_err(|error| if flags.database_url.is_some() { usage(error) } else { error })?,
            listen: address(listen.as_deref().unwrap_or(LISTEN), insecure)
                .map_err(|error| if flags.listen.is_some() { usage(error) } else { error })?,
            log: level(over.log.or(file.log).as_deref().unwrap_or("info")).context(log_origin)?,
            compression: compression(over.compression.or(file.compression).as_deref().unwrap_or("on"))
                .context(compression_origin)?,
            limits,
            metrics: switch(over.metrics.or(file.metrics).as_deref().unwrap_or("on"))
                .context(metrics_origin)?,
            sweep_secs: over.sweep_seconds.or(file.sweep_seconds).unwrap_or(3600).max(1),
            body_cache_bytes: over.body_cache_bytes.or(file.body_cache_bytes).unwrap_or(BODY_CACHE_BYTES),
            search_index_bytes: over
                .search_index_bytes
                .or(file.search_index_bytes)
                .unwrap_or(SEARCH_INDEX_BYTES),
            embedding: embedding::load(file.search.embedding, env).context("search.embedding")?,
            providers: file.models.read(&path, env)?,
            patience,
            error_codes: error_codes(over.error_codes.or(file.error_codes).as_deref().unwrap_or("seed"))?,
            mcp_origins: origins(over.mcp_origins.or(file.mcp_origins).unwrap_or_default())
                .context(mcp_origins_origin)?,
        })
    }
}

/// An error of the command line rather than of the environment or a file.
fn usage(error: anyhow::Error) -> anyhow::Error {
    fail(Class::Usage, format!("{error:#}"))
}

fn address(text: &str, insecure: bool) -> anyhow::Result<SocketAddr> {
    let mut found = text
        .to_socket_addrs()
        .with_context(|| format!("the listen address must look like 127.0.0.1:7878, not {text:?}"))?;
    let address = found.next().with_context(|| format!("the listen address {text:?} leads nowhere"))?;
    ensure!(
        address.ip().is_loopback() || insecure,
        "{address} is reachable from other machines, and plain HTTP would show them keys and memories: listen on \
         127.0.0.1 behind a proxy that speaks TLS, or pass --insecure if the network is your own"
    );
    Ok(address)
}

/// Reads a database's address; what is wrong is said without showing it.
pub(crate) fn database(text: &str) -> anyhow::Result<Url> {
    text.parse().with_context(|| format!("--database-url or {DATABASE_URL} is not right"))
}

fn level(text: &str) -> anyhow::Result<LevelFilter> {
    match text {
        "error" | "warn" | "info" | "debug" | "trace" => Ok(text.parse()?),
        other => bail!("the log level must be error, warn, info, debug or trace, not {other:?}"),
    }
}

fn compression(text: &str) -> anyhow::Result<Compression> {
    Ok(if switch(text)? { Compression::On } else { Compression::Off })
}

fn switch(text: &str) -> anyhow::Result<bool> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        other => bail!("must be on or off, not {other:?}"),
    }
}

fn error_codes(text: &str) -> anyhow::Result<ErrorCodes> {
    ErrorCodes::parse(text).with_context(|| format!("the error codes must be seed or sdk, not {text:?}"))
}

/// Origins of web pages (RFC 6454), each with its port: `https://app.example` means port 443.
fn origins(given: Vec<String>) -> anyhow::Result<Vec<String>> {
    let parse = |origin: String| {
        let (scheme, host) = origin.split_once("://").unwrap_or_default();
        let port = match scheme {
            "http" => 80,
            "https" => 443,
            _ => 0,
        };
        let host_ends = host.rfind(']').unwrap_or_default();
        ensure!(
            port > 0 && !host.is_empty() && !host.contains(['/', '@', '?', '#']),
            "an origin must look like https://app.example or http://app.example:8080, not {origin:?}"
        );
        Ok(if host[host_ends..].contains(':') { origin } else { format!("{origin}:{port}") })
    };
    given.into_iter().map(parse).collect()
}

/// How much `stele mcp` says on standard error.
pub(crate) fn client_log(env: Env<'_>) -> anyhow::Result<LevelFilter> {
    level(env("STELE_LOG").as_deref().unwrap_or("warn")).context("STELE_LOG")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(dir: &Path, file: &str, vars: &[(&str, &str)], flags: ServeFlags) -> anyhow::Result<Config> {
        let path = dir.join("stele.toml");
        std::fs::write(&path, file)?;
        let env = |name: &str| vars.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned());
        Config::load(&ServeFlags { config: Some(path), ..flags }, &env)
    }

    #[test]
    fn origins_have_a_scheme_and_a_port() {
        let of = |text: &str| origins(vec![text.into()]).ok().and_then(|mut found| found.pop());
        assert_eq!(of("https://app.example").as_deref(), Some("https://app.example:443"));
        assert_eq!(of("http://[::1]").as_deref(), Some("http://[::1]:80"));
        for kept in ["http://app.example:8080", "http://[::1]:9"] {
            assert_eq!(of(kept).as_deref(), Some(kept));
        }
        for bad in ["", "app.example", "ftp://x", "https://", "https://a/b", "https://me@a"] {
            assert_eq!(of(bad), None, "{bad}");
        }
        let dir = tempfile::tempdir().expect("a directory");
        let vars = [("HOME", "/home"), ("STELE_MCP_ORIGINS", "https://a.example, http://b:1")];
        let config =
            load(dir.path(), "mcp_origins = ['http://c']", &vars, ServeFlags::default()).expect("a config");
        assert_eq!(config.mcp_origins, ["https://a.example:443", "http://b:1"]);
    }

    #[test]
    fn flags_win_over_the_environment_and_that_over_the_file() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = "listen = '127.0.0.1:1'\ndata_dir = '/file'\nlog = 'warn'\nmax_memories_per_store = 5\n";
        let vars = [
            ("STELE_DATA_DIR", "/env"),
            ("STELE_LISTEN", "127.0.0.1:2"),
            ("STELE_MAX_MEMORIES_PER_STORE", "7"),
        ];
        let flags = ServeFlags { listen: Some("127.0.0.1:3".into()), ..ServeFlags::default() };
        let config = load(dir.path(), file, &vars, flags).expect("a configuration");
        assert_eq!(config.listen.port(), 3);
        assert_eq!(config.data_dir, Path::new("/env"));
        assert_eq!(config.log, LevelFilter::WARN);
        assert_eq!(config.limits.memories_per_store, 7);
    }

    #[test]
    fn passwords_of_databases_are_never_shown() {
        let dir = tempfile::tempdir().expect("a directory");
        let vars = [("HOME", "/x"), ("STELE_DATABASE_URL", "postgres://stele:secret@127.0.0.1/stele")];
        let config = load(dir.path(), "", &vars, ServeFlags::default()).expect("a configuration");
        let shown = format!("{config:?}");
        assert!(
            shown.contains("postgres://stele:***@127.0.0.1/stele") && !shown.contains("secret"),
            "{shown}"
        );
        let checked = ("database_url", "postgres://stele:***@127.0.0.1/stele".to_owned());
        assert!(config.settings().contains(&checked), "{:?}", config.settings());
        for bad in ["mysql://stele:secret@db/x", "postgres://stele:secret@db:x/x", "postgres://:secret@"] {
            let flags = ServeFlags { database_url: Some(bad.into()), ..ServeFlags::default() };
            let error = load(dir.path(), "", &[("HOME", "/x")], flags).expect_err("refused");
            let text = format!("{error:#} {error:?}");
            assert!(text.contains("--database-url") && !text.contains("secret"), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let dir = tempfile::tempdir().expect("a directory");
        let home = [("HOME", "/nowhere")];
        let text = |file, vars: &[_], flags| {
            format!("{:#}", load(dir.path(), file, vars, flags).expect_err("refused"))
        };
        let unknown = text("lisen = 'x'\n", &home, ServeFlags::default());
        assert!(unknown.contains("stele.toml") && unknown.contains("lisen"), "{unknown}");
        let table = "log = 'info'\n[models.providers.p]\nkind = 'openai'\napikey = 'sk-secret'\n";
        let misspelt = text(table, &home, ServeFlags::default());
        assert!(
            misspelt.contains("line 4: unknown field `apikey`") && !misspelt.contains("secret"),
            "{misspelt}"
        );
        let open = ServeFlags { listen: Some("0.0.0.0:7878".into()), ..ServeFlags::default() };
        assert!(text("", &home, open).contains("--insecure"));
        let number = text("", &[("HOME", "/x"), ("STELE_SWEEP_SECONDS", "soon")], ServeFlags::default());
        assert!(number.contains("STELE_SWEEP_SECONDS"), "{number}");
        assert!(text("log = 'loud'\n", &home, ServeFlags::default()).contains("loud"));
        assert!(text("error_codes = 'all'\n", &home, ServeFlags::default()).contains("seed or sdk"));
    }
}
