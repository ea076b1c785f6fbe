//! A blocking client of a Stele server: JSON in, JSON out, errors that say what to do.

mod address;
mod archives;
mod error;
mod finding;
mod history;
mod memory_stores;
mod mirror;
mod work;

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::Value;
use ureq::http::Request;

pub use address::{is_loopback, same_origin};
pub use error::ClientError;
pub use finding::{Change, Changes, Hit, Hits, Node, Span, Text};
pub use history::Recorded;
pub use memory_stores::{Actor, Entry, Memory, Slug, Store, Update, Version, encoded};
pub use mirror::{
    Applied, Edit, Failure, RemainingVersions, Snapshot, Told, TreeNode, VersionText, VersionTexts,
};
pub use work::{Agent, AgentSession, Environment, SessionFilter, Summary};

/// Longest time for one call.
const PATIENCE: Duration = Duration::from_secs(60);
/// Most bytes of an answer: a page of 20 whole memories, each escaped to six times its size, fits well.
const MOST_BYTES: u64 = 64 * 1024 * 1024;
/// How often a call is repeated that the server was too busy for.
const REPEATS: u32 = 3;
/// How often a patient client repeats one, after waiting twice as long each time up to [`LONGEST_WAIT`].
const PATIENT_REPEATS: u32 = 12;
/// Longest time between two of its attempts.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// The version of the wire that is spoken. spec/anthropic.md 1.1.
const WIRE: &str = "2026-10-21";
/// What opens the memory routes. spec/anthropic.md 1.3.
const MEMORY: &str = "agent-memory-2026-07-22";
/// What opens the routes of agents, environments and sessions, and lets recorded events in. spec/anthropic.md 17.2.
const WORK: &str = "managed-agents-2026-04-01,stele-ingest-2026-12-01";

/// A server and the key for it.
pub struct Client {
    agent: ureq::Agent,
    base: String,
    key: String,
    patient: bool,
}

/// What a call brought.
pub(crate) struct Answer {
    pub(crate) body: Value,
    /// The sequence that an answer about a store reflects.
    pub(crate) sequence: Option<u64>,
    /// The life of the database that the sequence is of.
    pub(crate) epoch: Option<String>,
}

impl Client {
    /// A client of the server at `url`, with or without a trailing slash.
    pub fn new(url: &str, key: impl Into<String>) -> Self {
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(PATIENCE))
            .http_status_as_error(false)
            // A redirect would carry the key elsewhere.
            .max_redirects(0);
        // A proxy of the environment would see the key of this machine, and could not lead back to it anyway.
        let config = if is_loopback(url) { config.proxy(None) } else { config };
        let base = url.trim_end_matches('/').to_owned();
        Self { agent: config.build().into(), base, key: key.into(), patient: false }
    }

    /// A client for long work with a server that counts requests: what is too much or fails inside it is asked for
    /// again after the time that the server names, else after a growing one, for some minutes.
    #[must_use]
    pub fn patient(self) -> Self {
        Self { patient: true, ..self }
    }

    /// The address of the server.
    pub fn url(&self) -> &str {
        &self.base
    }

    /// A client of the same server with another key.
    pub fn with_key(&self, key: impl Into<String>) -> Self {
        Self { agent: self.agent.clone(), base: self.base.clone(), key: key.into(), patient: self.patient }
    }

    /// Whether the server is on this machine.
    pub fn is_local(&self) -> bool {
        is_loopback(&self.base)
    }

    /// GETs `path`.
    ///
    /// # Errors
    /// The server's refusal, or no server.
    pub fn get(&self, path: &str) -> Result<Value, ClientError> {
        self.call("GET", path, None)
    }

    /// GETs `path`, with where in its store's history the answer stands.
    pub(crate) fn get_at(&self, path: &str) -> Result<Answer, ClientError> {
        self.answer("GET", path, None)
    }

    /// POSTs `body` to `path`.
    ///
    /// # Errors
    /// The server's refusal, or no server.
    pub fn post(&self, path: &str, body: &Value) -> Result<Value, ClientError> {
        self.call("POST", path, Some(body))
    }

    /// DELETEs `path`.
    ///
    /// # Errors
    /// The server's refusal, or no server.
    pub fn delete(&self, path: &str) -> Result<Value, ClientError> {
        self.call("DELETE", path, None)
    }

    fn call(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value, ClientError> {
        Ok(self.answer(method, path, body)?.body)
    }

    /// Calls, and calls again where the server says that it was too busy and did nothing.
    fn answer(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Answer, ClientError> {
        let mut repeats = 0;
        loop {
            let (result, after) = self.call_once(method, path, body);
            let Some(wait) = self.wait(&result, after, repeats) else { return result };
            repeats += 1;
            std::thread::sleep(wait);
        }
    }

    /// How long to wait before the next attempt; `None` where there is to be none.
    fn wait(
        &self,
        result: &Result<Answer, ClientError>,
        after: Option<Duration>,
        repeats: u32,
    ) -> Option<Duration> {
        if !self.patient {
            return after.filter(|_| repeats < REPEATS).map(|after| after.min(Duration::from_secs(5)));
        }
        let status = result.as_ref().err()?.status()?;
        let passing = matches!(status, 429 | 500 | 502 | 503 | 504 | 529) && repeats < PATIENT_REPEATS;
        let growing = Duration::from_millis(500) * 2_u32.pow(repeats.min(10));
        passing.then(|| after.unwrap_or(growing).min(LONGEST_WAIT))
    }

    /// The answer; and after what time a repeat may pass, if the server says so.
    fn call_once(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> (Result<Answer, ClientError>, Option<Duration>) {
        let url = format!("{}{path}", self.base);
        let strange = |cause: String| ClientError::Strange { url: url.clone(), cause };
        let request = Request::builder()
            .method(method)
            .uri(&url)
            .header("authorization", format!("Bearer {}", self.key))
            .header("anthropic-beta", beta(path))
            .header("anthropic-version", WIRE)
            .header("content-type", "application/json");
        let text = body.map(Value::to_string).unwrap_or_default();
        let request = match request.body(text) {
            Ok(request) => request,
            Err(error) => return (Err(strange(error.to_string())), None),
        };
        let mut answer = match self.agent.run(request) {
            Ok(answer) => answer,
            Err(ureq::Error::Timeout(_)) => return (Err(ClientError::Slow { url: self.base.clone() }), None),
            Err(cause) => {
                let (url, cause) = (self.base.clone(), cause.to_string());
                return (Err(ClientError::Unreachable { url, cause }), None);
            }
        };
        let status = answer.status();
        let busy = matches!(status.as_u16(), 429 | 503 | 529);
        let after = answer.headers().get("retry-after").filter(|_| busy);
        let after = after.and_then(|secs| secs.to_str().ok()?.parse().ok()).map(Duration::from_secs);
        let header = |name: &str| Some(answer.headers().get(name)?.to_str().ok()?.to_owned());
        let (sequence, epoch) = (header("stele-sequence"), header("stele-epoch"));
        let text = answer.body_mut().with_config().limit(MOST_BYTES).read_to_string();
        let parsed = text.map_err(|error| strange(error.to_string())).and_then(|text| match text.trim() {
            "" => Ok(Value::Null),
            text => serde_json::from_str(text).map_err(|_| strange(format!("status {status}, no JSON"))),
        });
        match parsed {
            Ok(body) if status.is_success() => {
                (Ok(Answer { body, sequence: sequence.and_then(|text| text.parse().ok()), epoch }), None)
            }
            Ok(body) => (Err(ClientError::refused(status.as_u16(), &body)), after),
            Err(error) => (Err(error), None),
        }
    }

    /// Reads an answer as a `T`.
    fn typed<T: DeserializeOwned>(&self, answer: Value) -> Result<T, ClientError> {
        serde_json::from_value(answer)
            .map_err(|error| ClientError::Strange { url: self.base.clone(), cause: error.to_string() })
    }
}

/// What the header `anthropic-beta` must hold for a request to `path`. spec/anthropic.md 1.3.
pub fn beta(path: &str) -> &'static str {
    let work = ["/v1/agents", "/v1/environments", "/v1/sessions"];
    if work.iter().any(|family| path.starts_with(family)) { WORK } else { MEMORY }
}
