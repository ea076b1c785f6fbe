//! What a mirror of a store asks: one call at a time, each with a patience of its own and no repeats, for whoever
//! decides by himself what to do about a failure. DESIGN 7.

use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use ureq::http::Request;

use crate::memory_stores::{encoded, store_address};
use crate::{Changes, Client, ClientError, MOST_BYTES, Store, beta};

/// An answer about a store.
#[derive(Debug)]
pub struct Told<T> {
    /// What it says.
    pub value: T,
    /// The sequence that it reflects.
    pub sequence: u64,
    /// The life of the database that the sequence is of.
    pub epoch: String,
}

/// Why a call brought nothing, with what a mirror needs to judge it by.
#[derive(Debug)]
pub struct Failure {
    /// The error.
    pub error: ClientError,
    /// The life of the database of who answered; `None` where nobody did.
    pub epoch: Option<String>,
    /// After what time a repeat may pass, where the server says so.
    pub retry_after: Option<Duration>,
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        Self { error, epoch: None, retry_after: None }
    }
}

/// A memory in the tree of a store; ids are UUIDs, times RFC 3339.
#[derive(Clone, Debug, Deserialize)]
#[expect(missing_docs, reason = "docs/openapi.json says what each field is")]
pub struct TreeNode {
    pub path: String,
    pub memory_id: String,
    pub memory_version_id: String,
    pub content_sha256: String,
    pub content_size_bytes: u64,
    pub updated_at: String,
}

/// The whole tree of a store as of one sequence.
#[derive(Clone, Debug, Deserialize)]
pub struct Snapshot {
    /// Where to follow on.
    pub sequence: u64,
    /// The life of the database that the sequence is of.
    pub epoch: String,
    /// How many memories the store may hold; `None` from servers that do not say.
    pub max_memories: Option<u64>,
    /// Every memory, by path.
    pub memories: Vec<TreeNode>,
}

/// The text of a version; null where it was redacted or records a deletion.
#[derive(Clone, Debug, Deserialize)]
#[expect(missing_docs, reason = "docs/openapi.json says what each field is")]
pub struct VersionText {
    pub memory_version_id: String,
    pub content: Option<String>,
    pub content_sha256: Option<String>,
}

/// Texts of versions, in the order asked for.
#[derive(Clone, Debug, Deserialize)]
pub struct VersionTexts {
    /// Those that are there and fitted; what is missing is gone, or was too much for one answer.
    pub contents: Vec<VersionText>,
    /// What was too much.
    pub remaining: RemainingVersions,
}

/// Ids of versions that did not fit.
#[derive(Clone, Debug, Deserialize)]
pub struct RemainingVersions {
    /// The ids, as UUIDs.
    pub memory_version_ids: Vec<String>,
}

/// One change of a changeset. Memories are named by the Anthropic dialect's ids. DESIGN 7.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "op", rename_all = "snake_case")]
#[expect(missing_docs, reason = "DESIGN 7 says what each field is")]
pub enum Edit<'a> {
    Create {
        path: &'a str,
        content: &'a str,
    },
    Update {
        memory_id: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        content: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        new_path: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        expected_content_sha256: Option<&'a str>,
    },
    Delete {
        memory_id: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        expected_content_sha256: Option<&'a str>,
    },
}

/// What became of one change; `memory_version_id` is null where it changed nothing.
#[derive(Clone, Debug, Deserialize)]
#[expect(missing_docs, reason = "DESIGN 7 says what each field is")]
pub struct Applied {
    pub memory_id: String,
    pub memory_version_id: Option<String>,
    pub path: String,
}

#[derive(Serialize)]
struct Changeset<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    changes: &'a [Edit<'a>],
}

#[derive(Deserialize)]
struct Data<T> {
    data: Vec<T>,
}

/// The calls; each fails with the server's refusal, or where there is no answer within `patience`. `store` is a UUID
/// where the address is one of Stele's own, else an id of the Anthropic dialect.
#[expect(clippy::missing_errors_doc, reason = "all of them the same, as the line above says")]
impl Client {
    /// A store, and where its history stands. `store` is an id of the Anthropic dialect.
    pub fn store_now(&self, store: &str, patience: Duration) -> Result<Told<Store>, Failure> {
        self.ask("GET", &store_address(store, ""), String::new(), patience)
    }

    /// The whole tree of a store as of one sequence. `store` is a UUID.
    pub fn snapshot(&self, store: &str, patience: Duration) -> Result<Snapshot, Failure> {
        let address = format!("/stele/v1/memory_stores/{}/snapshot", encoded(store));
        Ok(self.ask("GET", &address, String::new(), patience)?.value)
    }

    /// The texts of up to 1,000 versions; all ids are UUIDs.
    pub fn version_texts_once(
        &self,
        store: &str,
        versions: &[String],
        patience: Duration,
    ) -> Result<VersionTexts, Failure> {
        let address = format!("/stele/v1/memory_stores/{}/contents", encoded(store));
        let body = serde_json::json!({"memory_version_ids": versions}).to_string();
        Ok(self.ask("POST", &address, body, patience)?.value)
    }

    /// Up to 1,000 changes of a store behind `after`, waited for up to `wait_secs` where there are none. `store` is an
    /// id of the Anthropic dialect.
    pub fn changes_behind(
        &self,
        store: &str,
        after: u64,
        epoch: &str,
        wait_secs: u64,
        patience: Duration,
    ) -> Result<Told<Changes>, Failure> {
        let query = format!("/changes?after={after}&limit=1000&wait={wait_secs}&epoch={}", encoded(epoch));
        self.ask("GET", &store_address(store, &query), String::new(), patience)
    }

    /// Carries out changes in order, all or nothing. `store` is an id of the Anthropic dialect.
    pub fn changeset_once(
        &self,
        store: &str,
        reason: Option<&str>,
        changes: &[Edit<'_>],
        patience: Duration,
    ) -> Result<Told<Vec<Applied>>, Failure> {
        let body = serde_json::to_string(&Changeset { reason, changes })
            .map_err(|error| ClientError::Strange { url: store.to_owned(), cause: error.to_string() })?;
        let told: Told<Data<Applied>> =
            self.ask("POST", &store_address(store, "/changesets"), body, patience)?;
        Ok(Told { value: told.value.data, sequence: told.sequence, epoch: told.epoch })
    }

    /// One call, never repeated.
    fn ask<T: DeserializeOwned>(
        &self,
        method: &str,
        path: &str,
        body: String,
        patience: Duration,
    ) -> Result<Told<T>, Failure> {
        let until = Instant::now() + patience;
        let url = format!("{}{path}", self.base);
        let strange = |cause: String| ClientError::Strange { url: self.base.clone(), cause };
        let request = Request::builder()
            .method(method)
            .uri(&url)
            .header("authorization", format!("Bearer {}", self.key))
            .header("anthropic-beta", beta(path))
            .header("content-type", "application/json")
            .body(body)
            .map_err(|error| strange(error.to_string()))?;
        let request = self.agent.configure_request(request).timeout_global(Some(patience)).build();
        let mut answer = self.agent.run(request).map_err(|error| self.unanswered(error, until))?;
        let header = |name: &str| Some(answer.headers().get(name)?.to_str().ok()?.to_owned());
        let sequence = header("stele-sequence").and_then(|text| text.parse().ok()).unwrap_or_default();
        let epoch = header("stele-epoch");
        let retry_after = header("retry-after").and_then(|text| text.parse().ok()).map(Duration::from_secs);
        let status = answer.status();
        let text = answer.body_mut().with_config().limit(MOST_BYTES).read_to_vec();
        let text = text.map_err(|error| self.unanswered(error, until))?;
        if status.is_success() {
            let value = serde_json::from_slice(&text).map_err(|error| strange(error.to_string()))?;
            let epoch = epoch.ok_or_else(|| strange("it names no stele-epoch".into()))?;
            return Ok(Told { value, sequence, epoch });
        }
        let error = match serde_json::from_slice(&text) {
            Ok(body) => ClientError::refused(status.as_u16(), &body),
            Err(_) => strange(format!("status {status}, no JSON")),
        };
        Err(Failure { error, epoch, retry_after })
    }

    /// Why no answer came, or only half of one.
    fn unanswered(&self, error: ureq::Error, until: Instant) -> ClientError {
        let url = self.base.clone();
        match error {
            ureq::Error::Timeout(_) => ClientError::Slow { url },
            _ if Instant::now() >= until => ClientError::Slow { url },
            cause => ClientError::Unreachable { url, cause: cause.to_string() },
        }
    }
}
