//! A blocking client of a Stele server: JSON in, JSON out, errors that say what to do.

use std::time::Duration;

use serde_json::Value;
use ureq::Agent;

/// Longest time for one call.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server and the key for it.
pub struct Client {
    agent: Agent,
    base: String,
    key: String,
}

/// Why a call brought nothing.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The server cannot be reached.
    #[error("cannot reach {url}: {cause}. Is `stele serve` running there? STELE_URL names another address")]
    Unreachable {
        /// The address.
        url: String,
        /// What the operating system says.
        cause: String,
    },
    /// The server refuses the call.
    #[error("{message}")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// What the server says.
        message: String,
    },
    /// The answer is not one of a Stele server.
    #[error("{url} does not answer like a Stele server: {cause}")]
    Strange {
        /// The address.
        url: String,
        /// What is strange.
        cause: String,
    },
}

impl Client {
    /// A client of the server at `url`, with or without a trailing slash.
    pub fn new(url: &str, key: impl Into<String>) -> Self {
        let config =
            Agent::config_builder().timeout_global(Some(PATIENCE)).http_status_as_error(false).build();
        Self { agent: config.into(), base: url.trim_end_matches('/').to_owned(), key: key.into() }
    }

    /// GETs `path`.
    ///
    /// # Errors
    /// The server's refusal, or no server.
    pub fn get(&self, path: &str) -> Result<Value, ClientError> {
        let url = self.url(path);
        self.read(&url, self.agent.get(&url).header("authorization", self.bearer()).call())
    }

    /// POSTs `body` to `path`.
    ///
    /// # Errors
    /// The server's refusal, or no server.
    pub fn post(&self, path: &str, body: &Value) -> Result<Value, ClientError> {
        let url = self.url(path);
        self.read(&url, self.agent.post(&url).header("authorization", self.bearer()).send_json(body))
    }

    /// DELETEs `path`.
    ///
    /// # Errors
    /// The server's refusal, or no server.
    pub fn delete(&self, path: &str) -> Result<Value, ClientError> {
        let url = self.url(path);
        self.read(&url, self.agent.delete(&url).header("authorization", self.bearer()).call())
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    fn bearer(&self) -> String {
        format!("Bearer {}", self.key)
    }

    fn read(
        &self,
        url: &str,
        answer: Result<ureq::http::Response<ureq::Body>, ureq::Error>,
    ) -> Result<Value, ClientError> {
        let unreachable = |cause: ureq::Error| ClientError::Unreachable {
            url: self.base.clone(),
            cause: cause.to_string(),
        };
        let strange = |cause: String| ClientError::Strange { url: url.to_owned(), cause };
        let mut answer = answer.map_err(unreachable)?;
        let status = answer.status();
        let text = answer.body_mut().read_to_string().map_err(|error| strange(error.to_string()))?;
        let body: Value = match text.trim() {
            "" => Value::Null,
            text => serde_json::from_str(text).map_err(|_| strange(format!("status {status}, no JSON")))?,
        };
        if status.is_success() {
            return Ok(body);
        }
        // The flat envelope of Stele's own routes, or the nested one of the Anthropic dialect.
        let message = body.get("message").or_else(|| body.get("error")?.get("message"));
        let message = message.and_then(Value::as_str).unwrap_or("the server refused the call").to_owned();
        Err(ClientError::Refused { status: status.as_u16(), message })
    }
}
