//! `/v1/sessions`. spec/anthropic.md 7 and 17.3.

mod create;
mod list;

use std::collections::BTreeMap;

use axum::body::Body;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use stele_core::access::{Action, Resource as Kind};
use stele_core::refusal::Refusal;
use stele_core::service::{SessionPatch, ShowAgent, WhenRunning};
use stele_core::work::Fields;
use stele_core::work::agent::{AgentSnapshot, DefinitionPatch};
use stele_core::work::session::Whole;
use stele_http::body;
use stele_http::reply::{bytes, json};

use crate::agents::{DefinitionView, parse_tools};
use crate::id::Prefixed;
use crate::resources;
use crate::stores::{Pairs, bounded_metadata, parse_metadata};
use crate::view::DeletedView;
use crate::work::{Answer, WorkCall, pairs, text, typed};

pub(crate) use create::{CreateSession, create};
pub(crate) use list::{SessionsView, list};

/// Longest title, in characters.
const TITLE: usize = 1_024;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UpdateSession {
    #[serde(default, deserialize_with = "body::given")]
    #[schemars(with = "Option<String>", length(max = 1024))]
    title: Option<Option<String>>,
    #[schemars(transform = bounded_metadata)]
    metadata: Option<Pairs>,
    /// Not while the session is running.
    agent: Option<AgentChange>,
    #[serde(default, deserialize_with = "body::given")]
    #[schemars(with = "Option<Fields>")]
    budget: Option<Option<Value>>,
    /// Cannot be changed.
    #[schemars(with = "Option<Vec<String>>")]
    vault_ids: Option<Value>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AgentChange {
    #[schemars(with = "Option<Vec<Fields>>")]
    tools: Option<Vec<Value>>,
    #[schemars(with = "Option<Vec<Fields>>")]
    mcp_servers: Option<Vec<Value>>,
}

impl AgentChange {
    fn parse(self) -> Result<DefinitionPatch, Refusal> {
        let tools = self.tools.map(|tools| parse_tools("agent.tools", tools)).transpose()?;
        let mcp_servers = self.mcp_servers.map(|servers| typed("agent.mcp_servers", servers)).transpose()?;
        Ok(DefinitionPatch { tools, mcp_servers, ..DefinitionPatch::default() })
    }
}

impl UpdateSession {
    fn parse(self) -> Result<SessionPatch, Refusal> {
        if self.vault_ids.is_some() {
            return Err(Refusal::shape("vault_ids", "cannot be changed"));
        }
        let agent = self.agent.map(AgentChange::parse).transpose()?;
        let title = self.title.map(|title| title.map(|title| text("title", title, 0, TITLE)).transpose());
        Ok(SessionPatch {
            title: title.transpose()?,
            metadata: parse_metadata(self.metadata)?,
            budget: self.budget,
            agent: agent.map(|patch| (patch, show_agent as ShowAgent)),
        })
    }
}

/// The agent in an event that tells of its change.
fn show_agent(agent: &AgentSnapshot) -> Value {
    serde_json::to_value(DefinitionView::of(agent)).expect("a view is always JSON")
}

/// A session, with what its events made of it.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Session")]
pub(crate) struct SessionView {
    id: String,
    r#type: &'static str,
    agent: DefinitionView,
    /// Null for a session made through Recursion without one.
    environment_id: Option<String>,
    status: &'static str,
    #[schemars(with = "Vec<Fields>")]
    resources: Vec<Value>,
    metadata: BTreeMap<String, String>,
    title: Option<String>,
    vault_ids: Vec<String>,
    usage: UsageView,
    #[schemars(with = "Fields")]
    stats: Fields,
    #[schemars(with = "Vec<Fields>")]
    outcome_evaluations: [Fields; 0],
    #[schemars(with = "Option<Fields>")]
    budget: Option<Value>,
    deployment_id: Option<String>,
    created_at: String,
    updated_at: String,
    archived_at: Option<String>,
}

/// Tokens of the model requests that were reported.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "SessionUsage")]
struct UsageView {
    input_tokens: u64,
    output_tokens: u64,
    cache_read_input_tokens: u64,
}

impl SessionView {
    pub(crate) fn of(whole: &Whole) -> Self {
        let (session, state) = (&whole.session, &whole.state);
        Self {
            id: session.id.spell(),
            r#type: "session",
            agent: DefinitionView::of(&session.agent),
            environment_id: session.environment.map(|id| id.spell()),
            status: state.status.as_str(),
            resources: session.resources.iter().map(resources::view).collect(),
            metadata: pairs(&session.metadata),
            title: session.title.clone(),
            vault_ids: session.vaults.clone(),
            usage: UsageView {
                input_tokens: state.usage.input_tokens,
                output_tokens: state.usage.output_tokens,
                cache_read_input_tokens: state.usage.cache_read_input_tokens,
            },
            stats: Fields::new(),
            outcome_evaluations: [],
            budget: session.budget.clone(),
            deployment_id: None,
            created_at: session.created_at.to_string(),
            updated_at: whole.updated_at().to_string(),
            archived_at: session.archived_at.map(|at| at.to_string()),
        }
    }
}

pub(crate) async fn retrieve(call: WorkCall) -> Answer {
    let whole = call.stele.session_get(&call.caller, call.session()?).await?;
    Ok(json(bytes(&SessionView::of(&whole))))
}

pub(crate) async fn update(call: WorkCall, body: Body) -> Answer {
    let id = call.session()?;
    let wanted: UpdateSession = call.body(Kind::Session, Action::Update, body).await?;
    let whole = call.stele.session_update(&call.caller, id, wanted.parse()?).await?;
    Ok(json(bytes(&SessionView::of(&whole))))
}

pub(crate) async fn archive(call: WorkCall, body: Body) -> Answer {
    let id = call.session()?;
    call.no_fields(body).await?;
    Ok(json(bytes(&SessionView::of(&call.stele.session_archive(&call.caller, id).await?))))
}

pub(crate) async fn delete(call: WorkCall, body: Body) -> Answer {
    let id = call.session()?;
    call.no_fields(body).await?;
    call.stele.session_delete(&call.caller, id, WhenRunning::Refuse).await?;
    Ok(json(bytes(&DeletedView { id: id.spell(), r#type: "session_deleted" })))
}

/// What tells an agent of its stores.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "MemoryNote")]
pub(crate) struct NoteView {
    r#type: &'static str,
    text: String,
}

pub(crate) async fn memory_note(call: WorkCall) -> Answer {
    let text = call.stele.memory_note(&call.caller, call.session()?).await?;
    Ok(json(bytes(&NoteView { r#type: "memory_note", text })))
}
