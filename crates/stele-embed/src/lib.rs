//! The port [`Embedder`] over an OpenAI-compatible endpoint: `POST {base_url}/embeddings`, as hosted providers,
//! Ollama, vLLM, llama.cpp and many others serve it.
//!
//! It never holds anybody up for long: a query has 300 ms, and an endpoint that fails again and again is left alone
//! for a while. Log lines say what happened, with the status at most: never a text, a key or the body of an answer.

mod answer;
mod rest;

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use reqwest::redirect::Policy;
use reqwest::{Client, Response, StatusCode, Url};
use serde::Serialize;
use stele_core::embedder::{EmbedError, Embedder};
use stele_core::meter::EmbeddingResult;
use stele_core::storage::Answer;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::answer::{Unusable, vectors};
use crate::rest::Rest;

/// How long a search waits for the vector of its query.
const QUERY_PATIENCE: Duration = Duration::from_millis(300);
/// How long passages may take: a small machine needs some seconds for a handful of them.
const PASSAGES_PATIENCE: Duration = Duration::from_secs(120);
const CONNECT_PATIENCE: Duration = Duration::from_secs(5);
/// Longest answer that is read: 16 vectors of 8,192 components as decimal numbers are a fifth of it.
const ANSWER_BYTES: usize = 16 * 1024 * 1024;
/// Longest time that `retry-after` is obeyed.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(60);

/// A secret that is never shown.
#[derive(Clone)]
pub struct Key(String);

impl Key {
    /// The key as the provider gave it, without white space around it.
    pub fn new(text: &str) -> Self {
        Self(text.trim().to_owned())
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Which model is asked, where and how.
#[derive(Clone, Debug)]
pub struct Config {
    /// What `/embeddings` is appended to, such as `http://127.0.0.1:11434/v1`.
    pub base_url: String,
    /// The model, as the endpoint names it.
    pub model: String,
    /// Sent as bearer token.
    pub key: Option<Key>,
    /// Components of a vector, where the model leaves a choice.
    pub dimensions: Option<u32>,
    /// Longest passage in characters: what the model reads at once.
    pub passage_chars: usize,
    /// What the model wants before a passage, such as `passage: `.
    pub passage_prefix: String,
    /// What the model wants before a query, such as `query: `.
    pub query_prefix: String,
}

/// Why there can be no embedder.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The address is none.
    #[error("the base URL must look like http://127.0.0.1:11434/v1, without a user, a query or a fragment")]
    BaseUrl,
    /// The key cannot stand in a header.
    #[error("the key holds characters that no key has")]
    Key,
    /// No client could be made.
    #[error("no HTTP client can be made")]
    Client(#[source] reqwest::Error),
}

/// A model behind an OpenAI-compatible endpoint.
pub struct OpenAiEmbedder {
    config: Config,
    client: Client,
    url: Url,
    authorization: Option<HeaderValue>,
    /// Passages go one call at a time, so that queries find a model that is not overrun.
    turns: Semaphore,
    passages: Rest,
    queries: Rest,
    /// Of all vectors, once the first have come.
    dimension: OnceLock<usize>,
}

#[derive(Serialize)]
struct Request<'a> {
    model: &'a str,
    input: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    dimensions: Option<u32>,
}

/// Why a call brought nothing.
#[derive(Debug)]
enum Failure {
    Timeout,
    Unreachable,
    /// An answer that says so, and when to ask again if it does.
    Status(StatusCode, Option<Duration>),
    Unusable,
}

impl From<Unusable> for Failure {
    fn from(_: Unusable) -> Self {
        Self::Unusable
    }
}

impl Failure {
    /// Whether the endpoint is well and only the texts are not to its liking.
    fn blames_the_texts(&self) -> bool {
        matches!(self, Self::Status(status, _) if matches!(status.as_u16(), 400 | 413 | 422))
    }

    fn result(&self) -> EmbeddingResult {
        match self {
            Self::Timeout => EmbeddingResult::Timeout,
            Self::Unusable => EmbeddingResult::Unusable,
            Self::Status(..) if self.blames_the_texts() => EmbeddingResult::Refused,
            Self::Status(..) | Self::Unreachable => EmbeddingResult::Unavailable,
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status(_, retry_after) => *retry_after,
            Self::Timeout | Self::Unreachable | Self::Unusable => None,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Timeout => f.write_str("it took too long"),
            Self::Unreachable => f.write_str("it cannot be reached"),
            Self::Status(status, _) => write!(f, "it answered {}", status.as_u16()),
            Self::Unusable => f.write_str("its answer is not what was asked for"),
        }
    }
}

impl OpenAiEmbedder {
    /// An embedder that has asked nothing yet.
    ///
    /// # Errors
    /// Something in the configuration cannot be right.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        let url = endpoint(&config.base_url).ok_or(ConfigError::BaseUrl)?;
        let authorization = config.key.as_ref().map(|key| {
            let mut value =
                HeaderValue::from_str(&format!("Bearer {}", key.0)).map_err(|_| ConfigError::Key)?;
            value.set_sensitive(true);
            Ok(value)
        });
        let client = Client::builder()
            .tls_backend_preconfigured(tls())
            .connect_timeout(CONNECT_PATIENCE)
            // A redirect would take texts and key to somewhere that nobody named.
            .redirect(Policy::none())
            .build()
            .map_err(ConfigError::Client)?;
        Ok(Self {
            config,
            client,
            url,
            authorization: authorization.transpose()?,
            turns: Semaphore::new(1),
            passages: Rest::default(),
            queries: Rest::default(),
            dimension: OnceLock::new(),
        })
    }

    async fn ask(
        &self,
        texts: Vec<String>,
        patience: Duration,
        rest: &Rest,
    ) -> Result<Vec<Vec<f32>>, EmbedError> {
        if rest.is_on() {
            return Err(EmbedError::Unavailable);
        }
        let result = timeout(patience, self.call(&texts)).await.unwrap_or(Err(Failure::Timeout));
        let result = result.and_then(|vectors| self.checked(vectors));
        match result {
            Ok(vectors) => {
                EmbeddingResult::Ok.count();
                rest.end();
                Ok(vectors)
            }
            Err(failure) => {
                failure.result().count();
                // Before anything was ever accepted it is rather the model's name that is refused.
                if failure.blames_the_texts() && self.dimension.get().is_some() {
                    return Err(EmbedError::Refused);
                }
                if let Some(rests) = rest.after_failure(failure.retry_after()) {
                    let rests_secs = rests.as_secs();
                    tracing::warn!(
                        why = %failure,
                        rests_secs,
                        "the embedding model is not asked for a while: searches rank by words alone meanwhile"
                    );
                }
                Err(EmbedError::Unavailable)
            }
        }
    }

    async fn call(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, Failure> {
        let Config { model, dimensions, .. } = &self.config;
        let body = serde_json::to_vec(&Request { model, input: texts, dimensions: *dimensions });
        let body = body.map_err(|_| Failure::Unusable)?;
        let mut request =
            self.client.post(self.url.clone()).header(CONTENT_TYPE, "application/json").body(body);
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        let answer = request.send().await.map_err(|_| Failure::Unreachable)?;
        if answer.status() != StatusCode::OK {
            return Err(Failure::Status(answer.status(), retry_after(&answer)));
        }
        Ok(vectors(&bounded(answer).await?, texts.len())?)
    }

    /// The vectors, if they have the dimension that all have.
    fn checked(&self, vectors: Vec<Vec<f32>>) -> Result<Vec<Vec<f32>>, Failure> {
        let Some(first) = vectors.first() else { return Ok(vectors) };
        let dimension = *self.dimension.get_or_init(|| first.len());
        if vectors.iter().all(|vector| vector.len() == dimension) {
            Ok(vectors)
        } else {
            Err(Failure::Unusable)
        }
    }
}

impl Embedder for OpenAiEmbedder {
    fn passage_chars(&self) -> usize {
        self.config.passage_chars
    }

    fn passages(&self, passages: Vec<String>) -> Answer<'_, Result<Vec<Vec<f32>>, EmbedError>> {
        Box::pin(async move {
            let prefix = &self.config.passage_prefix;
            let texts = passages.into_iter().map(|text| prefixed(prefix, text)).collect();
            let _turn = self.turns.acquire().await.map_err(|_| EmbedError::Unavailable)?;
            self.ask(texts, PASSAGES_PATIENCE, &self.passages).await
        })
    }

    fn query(&self, query: String) -> Answer<'_, Result<Vec<f32>, EmbedError>> {
        Box::pin(async move {
            let texts = vec![prefixed(&self.config.query_prefix, query)];
            let vectors = self.ask(texts, QUERY_PATIENCE, &self.queries).await?;
            vectors.into_iter().next().ok_or(EmbedError::Unavailable)
        })
    }
}

fn prefixed(prefix: &str, text: String) -> String {
    if prefix.is_empty() { text } else { format!("{prefix}{text}") }
}

fn endpoint(base_url: &str) -> Option<Url> {
    let base = Url::parse(base_url).ok()?;
    let plain = base.username().is_empty() && base.password().is_none();
    let plain = plain && base.query().is_none() && base.fragment().is_none();
    if !plain || !matches!(base.scheme(), "http" | "https") {
        return None;
    }
    Url::parse(&format!("{}/embeddings", base_url.trim_end_matches('/'))).ok()
}

/// TLS by ring with the certificates that the system trusts, as towards PostgreSQL.
fn tls() -> rustls::ClientConfig {
    let mut roots = rustls::RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring speaks the default versions of TLS")
        .with_root_certificates(roots)
        .with_no_client_auth()
}

fn retry_after(answer: &Response) -> Option<Duration> {
    let secs = answer.headers().get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(secs).min(LONGEST_RETRY_AFTER))
}

async fn bounded(mut answer: Response) -> Result<Vec<u8>, Failure> {
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(|_| Failure::Unreachable)? {
        if body.len() + chunk.len() > ANSWER_BYTES {
            return Err(Failure::Unusable);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

#[cfg(test)]
mod tests;
