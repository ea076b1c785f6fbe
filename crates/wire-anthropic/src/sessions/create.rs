//! A new session: what it may ask for. spec/anthropic.md 6.1 and 7.2.

use std::collections::BTreeMap;

use axum::body::Body;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use stele_core::access::{Action, Resource as Kind};
use stele_core::id::{AgentId, EnvironmentId, StoreId};
use stele_core::refusal::Refusal;
use stele_core::service::NewSession;
use stele_core::work::agent::DefinitionPatch;
use stele_core::work::attachment::Naming;
use stele_core::work::event::{EventKind, NewEvent};
use stele_core::work::{Dialect, Fields};
use stele_http::reply::{bytes, json};

use super::{SessionView, TITLE};
use crate::agents::{parse_model, parse_tools};
use crate::events::parse_events;
use crate::id::Prefixed;
use crate::resources;
use crate::stores::{Pairs, bounded_metadata};
use crate::work::{Answer, WorkCall, new_metadata, nothing_left, take_text, text, typed};

/// Most events that a session begins with.
const INITIAL_EVENTS: usize = 50;
/// Most resources and vaults of a session.
const RESOURCES: usize = 500;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateSession {
    /// The agent's id, or `{"type":"agent","id","version"?}`, or `{"type":"agent_with_overrides","id",...}`.
    #[schemars(with = "AgentShape")]
    agent: Value,
    environment_id: String,
    /// Memory stores, each `{"type":"memory_store","memory_store_id","access"?,"instructions"?}`, files, repositories.
    #[schemars(with = "Option<Vec<Fields>>")]
    resources: Option<Vec<Value>>,
    /// `user.message` and `user.define_outcome`, at most 50.
    #[schemars(with = "Option<Vec<Fields>>")]
    initial_events: Option<Vec<Value>>,
    #[schemars(with = "Option<BTreeMap<String, String>>", transform = bounded_metadata)]
    metadata: Option<Pairs>,
    #[schemars(length(max = 1024))]
    title: Option<String>,
    vault_ids: Option<Vec<String>>,
    #[schemars(with = "Option<Fields>")]
    budget: Option<Value>,
}

/// How the agent of a session is named.
#[derive(JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "SessionAgent")]
#[expect(dead_code, reason = "a schema only")]
enum AgentShape {
    Id(String),
    Reference(Fields),
}

/// An id in a body that is malformed names nothing, as any that is unknown.
fn read<T: Prefixed>(text: &str) -> T {
    T::read(text).unwrap_or_else(|| T::from_raw([0; 16]))
}

/// The agent, its version, and what the session overrides.
fn parse_agent(agent: Value) -> Result<(AgentId, Option<u32>, DefinitionPatch), Refusal> {
    let mut fields = match agent {
        Value::String(id) => return Ok((read(&id), None, DefinitionPatch::default())),
        Value::Object(fields) => fields,
        _ => return Err(Refusal::shape("agent", "must be an id or an object")),
    };
    let overrides = match take_text(&mut fields, "agent", "type")?.as_deref() {
        Some("agent") => false,
        Some("agent_with_overrides") => true,
        _ => return Err(Refusal::shape("agent.type", "must be agent or agent_with_overrides")),
    };
    let id = take_text(&mut fields, "agent", "id")?;
    let id = id.ok_or_else(|| Refusal::shape("agent.id", "is required"))?;
    let version = match fields.remove("version") {
        None | Some(Value::Null) => None,
        Some(number) => match number.as_u64().and_then(|number| u32::try_from(number).ok()) {
            Some(version) if version > 0 => Some(version),
            _ => return Err(Refusal::shape("agent.version", "must be a whole number from 1")),
        },
    };
    let patch = if overrides { parse_overrides(&mut fields)? } else { DefinitionPatch::default() };
    nothing_left(&fields, "agent")?;
    Ok((read(&id), version, patch))
}

fn parse_overrides(fields: &mut Fields) -> Result<DefinitionPatch, Refusal> {
    let model = fields.remove("model").filter(|model| !model.is_null());
    let system = match fields.remove("system") {
        None => None,
        Some(Value::Null) => Some(None),
        Some(Value::String(system)) => Some(Some(text("agent.system", system, 0, 100_000)?)),
        Some(_) => return Err(Refusal::shape("agent.system", "must be a string")),
    };
    let mut list = |name: &str| match fields.remove(name) {
        None => Ok(None),
        Some(Value::Null) => Ok(Some(Vec::new())),
        Some(Value::Array(items)) => typed(&format!("agent.{name}"), items).map(Some),
        Some(_) => Err(Refusal::shape(format!("agent.{name}"), "must be a list")),
    };
    let (tools, mcp_servers, skills) = (list("tools")?, list("mcp_servers")?, list("skills")?);
    Ok(DefinitionPatch {
        model: model.map(|model| parse_model("agent.model", model)).transpose()?,
        system,
        tools: tools.map(|tools| parse_tools("agent.tools", tools)).transpose()?,
        mcp_servers,
        skills,
        ..DefinitionPatch::default()
    })
}

fn parse_initial(events: Vec<Value>) -> Result<Vec<NewEvent>, Refusal> {
    if events.len() > INITIAL_EVENTS {
        return Err(Refusal::shape("initial_events", format!("must be at most {INITIAL_EVENTS} events")));
    }
    let events = parse_events("initial_events", events, false)?;
    let may = |event: &NewEvent| [EventKind::USER_MESSAGE, EventKind::DEFINE_OUTCOME].contains(&event.kind);
    match events.iter().position(|event| !may(event)) {
        Some(place) => {
            let problem = "must be user.message or user.define_outcome";
            Err(Refusal::shape(format!("initial_events.{place}.type"), problem))
        }
        None => Ok(events),
    }
}

/// The directory of a store whose name leaves nothing: its id without the prefix, lowercased. spec/anthropic.md 6.3.
fn directory(store: StoreId) -> String {
    let spelled = store.spell();
    spelled.split_once('_').map_or(spelled.as_str(), |(_, token)| token).to_lowercase()
}

impl CreateSession {
    fn parse(self) -> Result<NewSession, Refusal> {
        let (agent, version, overrides) = parse_agent(self.agent)?;
        let resources = self.resources.unwrap_or_default();
        let vaults = self.vault_ids.unwrap_or_default();
        if resources.len() > RESOURCES || vaults.len() > RESOURCES {
            let field = if resources.len() > RESOURCES { "resources" } else { "vault_ids" };
            return Err(Refusal::shape(field, format!("must be at most {RESOURCES} items")));
        }
        let wanted = |(place, sent)| resources::parse(&format!("resources.{place}"), sent);
        let environment: EnvironmentId = read(&self.environment_id);
        Ok(NewSession {
            made_through: Dialect::Anthropic,
            agent,
            version,
            overrides,
            environment: Some(environment),
            resources: resources.into_iter().enumerate().map(wanted).collect::<Result<_, _>>()?,
            naming: Naming::ByName(directory),
            title: self.title.map(|title| text("title", title, 0, TITLE)).transpose()?,
            metadata: new_metadata(self.metadata)?,
            vaults,
            budget: self.budget.filter(|budget| !budget.is_null()),
            extra: Fields::new(),
            events: parse_initial(self.initial_events.unwrap_or_default())?,
        })
    }
}

pub(crate) async fn create(call: WorkCall, body: Body) -> Answer {
    let wanted: CreateSession = call.body(Kind::Session, Action::Create, body).await?;
    let whole = call.stele.session_create(&call.caller, wanted.parse()?).await?;
    Ok(json(bytes(&SessionView::of(&whole))))
}
