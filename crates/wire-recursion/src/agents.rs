//! `/agents`. spec/recursion.md 10.1 and 10.2.

use std::collections::BTreeMap;

use axum::body::Body;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use serde_json::{Value, json};
use stele_core::access::{Action, Resource};
use stele_core::id::{AgentId, AgentVersionId, WorkspaceId};
use stele_core::list::Created;
use stele_core::refusal::Refusal;
use stele_core::service::{ExpectedVersion, NewAgent};
use stele_core::text::{Metadata, MetadataPatch, TextError};
use stele_core::time::Timestamp;
use stele_core::work::agent::{Agent, AgentSnapshot, AgentVersion, Definition, DefinitionPatch};
use stele_core::work::{Dialect, Fields};
use stele_http::flat::FlatError;

use crate::context::{Answer, Call};
use crate::fields::{missing, take_bounded, take_id, take_list, take_text};
use crate::models;
use crate::once::{self, Key, Success};
use crate::view::shown;

/// Longest name and model, in characters.
const NAME: usize = 256;
/// Items of a list without pages that are read at a time.
const STEP: usize = 500;

/// Fields that are kept as they are sent.
const KEPT: [&str; 13] = [
    "built_in_integrations",
    "default_credential_refs",
    "default_project_id",
    "default_rubric",
    "default_vault_ids",
    "disabled_integration_mcp_providers",
    "max_concurrent_sessions",
    "metadata",
    "model_config",
    "nativeIntegrations",
    "tools",
    "toolsets",
    "web_search_enabled",
];
/// Lists that are always shown.
const LISTS: [&str; 4] =
    ["default_credential_refs", "default_vault_ids", "disabled_integration_mcp_providers", "toolsets"];

/// Reads what an agent is. Metadata that fit core's are its own, so that the other dialect shows them too.
fn parse(body: &mut Fields) -> Result<Definition, Refusal> {
    let name = take_bounded(body, "name", "name", NAME)?.ok_or_else(|| missing("name"))?;
    let model = take_bounded(body, "model", "model", NAME)?.ok_or_else(|| missing("model"))?;
    let system = take_text(body, "system", "system")?.ok_or_else(|| missing("system"))?;
    for (field, text) in [("name", &name), ("model", &model), ("system", &system)] {
        if text.contains('\0') {
            return Err(Refusal::invalid(field, TextError::Nul));
        }
    }
    let (description, mcp_servers, skills) = (
        take_text(body, "description", "description")?,
        take_list(body, "mcp_servers", "mcp_servers")?.unwrap_or_default(),
        take_list(body, "skills", "skills")?.unwrap_or_default(),
    );
    let mut extra = Fields::new();
    for field in KEPT {
        if let Some(value) = body.remove(field).filter(|value| !value.is_null()) {
            extra.insert(field.to_owned(), value);
        }
    }
    for list in LISTS {
        if extra.get(list).is_some_and(|value| !value.is_array()) {
            return Err(Refusal::shape(list, "must be a list"));
        }
    }
    if extra.get("model_config").is_some_and(|value| !value.is_object()) {
        return Err(Refusal::shape("model_config", "must be an object"));
    }
    let metadata = extra.get("metadata").and_then(pairs);
    if metadata.is_some() {
        extra.remove("metadata");
    }
    Ok(Definition {
        name,
        description,
        model,
        model_options: Fields::new(),
        system: Some(system),
        tools: Vec::new(),
        mcp_servers,
        skills,
        multiagent: body.remove("multiagent").filter(|value| !value.is_null()),
        metadata: metadata.unwrap_or_default(),
        extra,
    })
}

fn pairs(metadata: &Value) -> Option<Metadata> {
    let pairs = metadata.as_object()?.iter();
    let pairs: Option<BTreeMap<_, _>> =
        pairs.map(|(key, value)| Some((key.clone(), Some(value.as_str()?.to_owned())))).collect();
    Metadata::default().patched(&MetadataPatch::parse(pairs?).ok()?).ok()
}

/// What an agent, a version and a snapshot have in common.
fn definition(organization: WorkspaceId, agent: AgentId, of: &Definition) -> Fields {
    let mut view = of.extra.clone();
    let mut put = |name: &str, value: Value| view.insert(name.to_owned(), value);
    put("agent_id", json!(agent));
    put("organization_id", json!(organization));
    put("name", json!(of.name));
    put("model", json!(of.model));
    put("system", json!(of.system.as_deref().unwrap_or_default()));
    put("mcp_servers", json!(of.mcp_servers));
    put("skills", json!(of.skills));
    if let Some(description) = &of.description {
        put("description", json!(description));
    }
    if let Some(multiagent) = &of.multiagent {
        put("multiagent", multiagent.clone());
    }
    if !of.metadata.pairs().is_empty() {
        put("metadata", json!(of.metadata));
    }
    view.remove("tools");
    for list in LISTS {
        view.entry(list).or_insert_with(|| json!([]));
    }
    view.entry("model_config").or_insert_with(|| json!({}));
    view.entry("web_search_enabled").or_insert(Value::Bool(true));
    view
}

fn view(organization: WorkspaceId, agent: &Agent) -> Fields {
    let mut view = definition(organization, agent.id, &agent.definition);
    view.insert("latest_agent_version_id".into(), json!(agent.version_id));
    view.insert("tags".into(), json!(agent.labels));
    view.insert("created_at".into(), json!(agent.created_at.to_string()));
    view.insert("updated_at".into(), json!(agent.updated_at.to_string()));
    view
}

fn version_view(organization: WorkspaceId, version: &AgentVersion) -> Fields {
    let mut view = definition(organization, version.agent, &version.definition);
    view.insert("agent_version_id".into(), json!(version.id));
    view.insert("version_number".into(), json!(version.version));
    view.insert("created_at".into(), json!(version.created_at.to_string()));
    view
}

/// The agent as a session began with it.
pub(crate) fn snapshot_view(organization: WorkspaceId, agent: &AgentSnapshot, at: Timestamp) -> Fields {
    let version = AgentVersion {
        id: agent.version_id,
        agent: agent.id,
        version: agent.version,
        definition: agent.definition.clone(),
        created_at: at,
    };
    version_view(organization, &version)
}

pub(crate) async fn create(call: Call, body: Body) -> Answer {
    call.may(Resource::Agent, Action::Create)?;
    let (raw, body) = call.raw_object::<Fields>(body).await?;
    let organization = call.caller.workspace;
    let success = move |agent: &Agent| Success::of(StatusCode::OK, &view(organization, agent));
    let once = once::once(&call, Key::Optional, &raw, success)?;
    let definition = parse(&mut body?)?;
    models::listed(&call, "model", &definition.model).await?;
    let new = NewAgent { made_through: Dialect::Recursion, definition, labels: Vec::new() };
    once::answer(call.stele.agent_create_once(&call.caller, new, once).await?, success)
}

/// All agents that are not deleted, newest first.
pub(crate) async fn all(call: &Call) -> Result<Vec<Agent>, FlatError> {
    let (mut agents, mut after) = (Vec::new(), None);
    loop {
        let page = call.stele.agent_list(&call.caller, true, Created::default(), after, STEP).await?;
        after = page.items.last().map(|agent| (agent.created_at, *agent.id.as_bytes()));
        agents.extend(page.items);
        if !page.more {
            return Ok(agents);
        }
    }
}

/// There are no tags to set, so a list that asks for some has nothing.
pub(crate) async fn list(call: Call) -> Answer {
    call.may(Resource::Agent, Action::Read)?;
    let tagged = call.query()?.get("tag_ids").is_some_and(|ids| !ids.is_empty());
    let agents = if tagged { Vec::new() } else { all(&call).await? };
    let agents: Vec<_> = agents.iter().map(|agent| view(call.caller.workspace, agent)).collect();
    Ok(shown(&json!({"agents": agents})))
}

pub(crate) async fn retrieve(call: Call) -> Answer {
    call.may(Resource::Agent, Action::Read)?;
    let agent = call.stele.agent_get(&call.caller, call.id("agent_id")?).await?;
    Ok(shown(&view(call.caller.workspace, &agent)))
}

pub(crate) async fn delete(call: Call) -> Answer {
    call.may(Resource::Agent, Action::Delete)?;
    call.stele.agent_delete(&call.caller, call.id("agent_id")?).await?;
    Ok(shown(&json!({"deleted": true})))
}

pub(crate) async fn create_version(call: Call, body: Body) -> Answer {
    call.may(Resource::Agent, Action::Update)?;
    let body = call.object::<Fields>(body).await?;
    let id = call.id("agent_id")?;
    let old = call.stele.agent_get(&call.caller, id).await?;
    let mut body = body?;
    let field = "base_agent_version_id";
    let base: AgentVersionId = take_id(&mut body, field, field)?.ok_or_else(|| missing(field))?;
    let new = parse(&mut body)?;
    if new.model != old.definition.model {
        models::listed(&call, "model", &new.model).await?;
    }
    // What the old metadata have and the new ones haven't goes away.
    let gone = old.definition.metadata.pairs().keys().map(|key| (key.clone(), None));
    let kept = new.metadata.pairs().iter().map(|(key, value)| (key.clone(), Some(value.clone())));
    let metadata = MetadataPatch::parse(gone.chain(kept).collect());
    let patch = DefinitionPatch {
        name: Some(new.name),
        description: Some(new.description),
        model: Some((new.model, new.model_options)),
        system: Some(new.system),
        tools: None,
        mcp_servers: Some(new.mcp_servers),
        skills: Some(new.skills),
        multiagent: Some(new.multiagent),
        metadata: metadata.map_err(|(_, error)| Refusal::invalid("metadata", error))?,
        extra: Some(new.extra),
    };
    let agent = call.stele.agent_update(&call.caller, id, Some(ExpectedVersion::Id(base)), patch).await?;
    Ok((StatusCode::CREATED, shown(&view(call.caller.workspace, &agent))).into_response())
}

pub(crate) async fn list_versions(call: Call) -> Answer {
    call.may(Resource::Agent, Action::Read)?;
    let id = call.id("agent_id")?;
    let (mut versions, mut after) = (Vec::new(), None);
    loop {
        let (_, page) = call.stele.agent_version_list(&call.caller, id, after, STEP).await?;
        after = page.items.last().map(|version| (version.created_at, *version.id.as_bytes()));
        versions.extend(page.items.iter().map(|version| version_view(call.caller.workspace, version)));
        if !page.more {
            return Ok(shown(&json!({"agent_versions": versions})));
        }
    }
}

pub(crate) async fn retrieve_version(call: Call) -> Answer {
    call.may(Resource::Agent, Action::Read)?;
    let (agent, version) = (call.id("agent_id")?, call.id("agent_version_id")?);
    let found = call.stele.agent_version_by_id(&call.caller, agent, version).await?;
    let missing = || FlatError::new(StatusCode::NOT_FOUND, "not_found", "agent version not found");
    Ok(shown(&version_view(call.caller.workspace, &found.ok_or_else(missing)?)))
}
