//! Agents, environments and sessions, as the Anthropic dialect spells them. spec/anthropic.md 7, 8, 10, 11 and 17.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::memory_stores::encoded;
use crate::{Client, ClientError};

/// Most agents or environments of a page.
const PAGE: usize = 100;
/// Most sessions of a page.
const SESSIONS: usize = 1_000;
/// Events of a page: each may be large.
const EVENTS: usize = 50;

/// An agent; `rest` is what else the server says of it.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[expect(missing_docs, reason = "spec/anthropic.md 10.1 says what each field is")]
pub struct Agent {
    pub id: String,
    pub name: String,
    pub model: Value,
    pub metadata: BTreeMap<String, String>,
    pub created_at: String,
    pub archived_at: Option<String>,
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// An environment; `rest` is what else the server says of it.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[expect(missing_docs, reason = "spec/anthropic.md 11 says what each field is")]
pub struct Environment {
    pub id: String,
    pub name: String,
    pub config: Map<String, Value>,
    pub created_at: String,
    pub archived_at: Option<String>,
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// A session of an agent; `rest` is what else the server says of it.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[expect(missing_docs, reason = "spec/anthropic.md 7.1 says what each field is")]
pub struct AgentSession {
    pub id: String,
    pub agent: Value,
    pub environment_id: Option<String>,
    pub status: String,
    pub resources: Vec<Value>,
    pub metadata: BTreeMap<String, String>,
    pub title: Option<String>,
    pub usage: Map<String, Value>,
    pub created_at: String,
    pub updated_at: String,
    pub archived_at: Option<String>,
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// Which sessions are listed.
#[derive(Clone, Debug, Default)]
pub struct SessionFilter<'a> {
    /// Of this agent.
    pub agent: Option<&'a str>,
    /// With this status.
    pub status: Option<&'a str>,
    /// Made at this RFC 3339 time or later.
    pub since: Option<&'a str>,
    /// Archived ones too.
    pub archived_too: bool,
}

/// A memory with what it is about, as the other dialect browses. spec/recursion.md 6.2.
#[derive(Clone, Debug, Deserialize)]
pub struct Summary {
    /// Its path.
    pub path: String,
    /// What it is about; may be empty.
    pub summary: String,
}

#[derive(Deserialize)]
struct Browsed {
    entries: Vec<Summary>,
}

#[derive(Deserialize)]
struct Sent {
    data: Vec<Map<String, Value>>,
}

#[derive(Deserialize)]
struct Note {
    text: String,
}

/// The calls; each fails with the server's refusal, or where there is no server.
#[expect(clippy::missing_errors_doc, reason = "all of them the same, as the line above says")]
impl Client {
    /// Agents that are not archived, newest first.
    pub fn agents(&self) -> impl Iterator<Item = Result<Agent, ClientError>> {
        self.pages(format!("/v1/agents?limit={PAGE}"))
    }

    /// An agent.
    pub fn agent(&self, id: &str) -> Result<Agent, ClientError> {
        self.typed(self.get(&format!("/v1/agents/{}", encoded(id)))?)
    }

    /// Makes an agent.
    pub fn agent_create(&self, body: &Value) -> Result<Agent, ClientError> {
        self.typed(self.post("/v1/agents", body)?)
    }

    /// Archives an agent.
    pub fn agent_archive(&self, id: &str) -> Result<Agent, ClientError> {
        self.typed(self.post(&format!("/v1/agents/{}/archive", encoded(id)), &json!({}))?)
    }

    /// Environments that are not archived, newest first.
    pub fn environments(&self) -> impl Iterator<Item = Result<Environment, ClientError>> {
        self.pages(format!("/v1/environments?limit={PAGE}"))
    }

    /// An environment.
    pub fn environment(&self, id: &str) -> Result<Environment, ClientError> {
        self.typed(self.get(&format!("/v1/environments/{}", encoded(id)))?)
    }

    /// Makes an environment.
    pub fn environment_create(&self, body: &Value) -> Result<Environment, ClientError> {
        self.typed(self.post("/v1/environments", body)?)
    }

    /// Archives an environment.
    pub fn environment_archive(&self, id: &str) -> Result<Environment, ClientError> {
        self.typed(self.post(&format!("/v1/environments/{}/archive", encoded(id)), &json!({}))?)
    }

    /// Makes a key of an environment; its secret is in the answer and never again.
    pub fn environment_key_create(&self, id: &str, name: Option<&str>) -> Result<Value, ClientError> {
        self.post(&format!("/v1/environments/{}/keys", encoded(id)), &json!({"name": name}))
    }

    /// Sessions, newest first.
    pub fn sessions(
        &self,
        filter: &SessionFilter<'_>,
    ) -> impl Iterator<Item = Result<AgentSession, ClientError>> {
        let mut address = format!("/v1/sessions?limit={SESSIONS}&include_archived={}", filter.archived_too);
        for (name, value) in [
            ("agent_id", filter.agent),
            ("statuses%5B%5D", filter.status),
            ("created_at%5Bgte%5D", filter.since),
        ] {
            if let Some(value) = value {
                address = format!("{address}&{name}={}", encoded(value));
            }
        }
        self.pages(address)
    }

    /// A session.
    pub fn session(&self, id: &str) -> Result<AgentSession, ClientError> {
        self.typed(self.get(&session_address(id, ""))?)
    }

    /// Starts a session.
    pub fn session_create(&self, body: &Value) -> Result<AgentSession, ClientError> {
        self.typed(self.post("/v1/sessions", body)?)
    }

    /// Gives a session a title.
    pub fn session_entitle(&self, id: &str, title: &str) -> Result<AgentSession, ClientError> {
        self.typed(self.post(&session_address(id, ""), &json!({"title": title}))?)
    }

    /// The note about the stores of a session; empty where it has none. spec/anthropic.md 17.3.
    pub fn memory_note(&self, id: &str) -> Result<String, ClientError> {
        Ok(self.typed::<Note>(self.get(&session_address(id, "/memory_note"))?)?.text)
    }

    /// Sends events, those of a recorded session too: all or none. spec/anthropic.md 17.2.
    pub fn events_send(&self, id: &str, events: &[Value]) -> Result<Vec<Map<String, Value>>, ClientError> {
        let answer = self.post(&session_address(id, "/events"), &json!({"events": events}))?;
        Ok(self.typed::<Sent>(answer)?.data)
    }

    /// The events of a session, oldest first.
    pub fn events(&self, id: &str) -> impl Iterator<Item = Result<Map<String, Value>, ClientError>> {
        self.pages(session_address(id, &format!("/events?limit={EVENTS}")))
    }

    /// The newest events of a session, newest first.
    pub fn events_newest(&self, id: &str) -> impl Iterator<Item = Result<Map<String, Value>, ClientError>> {
        self.pages(session_address(id, &format!("/events?order=desc&limit={EVENTS}")))
    }

    /// Every memory of a store with its summary, by path. `store` is a UUID.
    pub fn summaries(&self, store: &str) -> Result<Vec<Summary>, ClientError> {
        let address = format!("/managed-agents/v1/memory_stores/{}/memories?depth=0", encoded(store));
        Ok(self.typed::<Browsed>(self.get(&address)?)?.entries)
    }
}

fn session_address(id: &str, rest: &str) -> String {
    format!("/v1/sessions/{}{rest}", encoded(id))
}
