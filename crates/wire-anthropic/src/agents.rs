//! `/v1/agents`. spec/anthropic.md 10.

use std::collections::BTreeMap;

use axum::body::Body;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use stele_core::access::{Action, Resource};
use stele_core::refusal::Refusal;
use stele_core::service::{ExpectedVersion, NewAgent};
use stele_core::time::Timestamp;
use stele_core::work::agent::{Agent, AgentSnapshot, AgentVersion, Definition, DefinitionPatch};
use stele_core::work::{Dialect, Fields};
use stele_http::body;
use stele_http::cursor::List;
use stele_http::reply::{bytes, json};

use crate::error::ApiError;
use crate::id::Prefixed;
use crate::stores::{Pairs, bounded_metadata, parse_metadata};
use crate::work::{Answer, WorkCall, created, new_metadata, page, pairs, text, typed};

/// Longest name, description and system prompt, in characters.
const NAME: usize = 256;
const DESCRIPTION: usize = 2_048;
const SYSTEM: usize = 100_000;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateAgent {
    /// 1 to 256 characters.
    #[schemars(length(min = 1, max = 256))]
    name: String,
    /// The model's id, or an object with it. Model names are not judged.
    #[schemars(with = "ModelShape")]
    model: Value,
    /// At most 2,048 characters.
    #[schemars(length(max = 2048))]
    description: Option<String>,
    /// At most 100,000 characters.
    #[schemars(length(max = 100_000))]
    system: Option<String>,
    #[schemars(with = "Option<Vec<Fields>>")]
    tools: Option<Vec<Value>>,
    #[schemars(with = "Option<Vec<Fields>>")]
    mcp_servers: Option<Vec<Value>>,
    #[schemars(with = "Option<Vec<Fields>>")]
    skills: Option<Vec<Value>>,
    #[schemars(with = "Option<Fields>")]
    multiagent: Option<Value>,
    /// At most 16 pairs. `stele.learned` set to `on` gives the agent a learned store.
    #[schemars(with = "Option<BTreeMap<String, String>>", transform = bounded_metadata)]
    metadata: Option<Pairs>,
    /// Accepted; every agent runs as the service.
    #[schemars(with = "Option<Fields>")]
    #[serde(rename = "execution_identity")]
    _execution_identity: Option<Value>,
}

/// How a model is named.
#[derive(JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "AgentModel")]
#[expect(dead_code, reason = "a schema only")]
enum ModelShape {
    Id(String),
    Config(Fields),
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UpdateAgent {
    /// The version that was read; another newest one is a conflict.
    #[schemars(range(min = 1))]
    version: Option<u32>,
    #[serde(default, deserialize_with = "body::given")]
    #[schemars(with = "String", length(min = 1, max = 256))]
    name: Option<Option<String>>,
    #[serde(default, deserialize_with = "body::given")]
    #[schemars(with = "ModelShape")]
    model: Option<Option<Value>>,
    #[serde(default, deserialize_with = "body::given")]
    #[schemars(with = "Option<String>", length(max = 2048))]
    description: Option<Option<String>>,
    #[serde(default, deserialize_with = "body::given")]
    #[schemars(with = "Option<String>", length(max = 100_000))]
    system: Option<Option<String>>,
    #[serde(default, deserialize_with = "body::given")]
    #[schemars(with = "Option<Vec<Fields>>")]
    tools: Option<Option<Vec<Value>>>,
    #[serde(default, deserialize_with = "body::given")]
    #[schemars(with = "Option<Vec<Fields>>")]
    mcp_servers: Option<Option<Vec<Value>>>,
    #[serde(default, deserialize_with = "body::given")]
    #[schemars(with = "Option<Vec<Fields>>")]
    skills: Option<Option<Vec<Value>>>,
    #[serde(default, deserialize_with = "body::given")]
    #[schemars(with = "Option<Fields>")]
    multiagent: Option<Option<Value>>,
    #[schemars(transform = bounded_metadata)]
    metadata: Option<Pairs>,
    #[schemars(with = "Option<Fields>")]
    #[serde(rename = "execution_identity")]
    _execution_identity: Option<Value>,
}

/// The model's id, and what is said of it beside.
pub(crate) fn parse_model(field: &str, model: Value) -> Result<(String, Fields), Refusal> {
    let mut options = match model {
        Value::String(id) => return Ok((text(field, id, 1, NAME)?, Fields::new())),
        Value::Object(options) => options,
        _ => return Err(Refusal::shape(field, "must be a string or an object with an id")),
    };
    let Some(Value::String(id)) = options.remove("id") else {
        return Err(Refusal::shape(format!("{field}.id"), "is required"));
    };
    options.retain(|_, value| !value.is_null());
    if let Some(unknown) =
        options.keys().find(|key| !matches!(key.as_str(), "speed" | "effort" | "inference_geo"))
    {
        return Err(Refusal::shape(format!("{field}.{unknown}"), "is not a field of a model"));
    }
    if let Some(Value::String(effort)) = options.get("effort") {
        let effort = json!({"type": effort});
        options.insert("effort".into(), effort);
    }
    match options.get("speed").map(|speed| speed.as_str().unwrap_or_default()) {
        None | Some("standard" | "fast") => Ok((text(&format!("{field}.id"), id, 1, NAME)?, options)),
        Some(_) => Err(Refusal::shape(format!("{field}.speed"), "must be standard or fast")),
    }
}

/// Tools with what responses must say of toolsets. spec/anthropic.md 10.1.
pub(crate) fn parse_tools(field: &str, tools: Vec<Value>) -> Result<Vec<Value>, Refusal> {
    let mut tools = typed(field, tools)?;
    for (place, tool) in tools.iter_mut().enumerate() {
        let Value::Object(tool) = tool else { continue };
        match tool.get("type").and_then(Value::as_str) {
            Some("agent_toolset_20260401") => complete_toolset(tool, "always_allow"),
            Some("mcp_toolset") => complete_toolset(tool, "always_ask"),
            Some("custom") => {
                for required in ["name", "description", "input_schema"] {
                    if tool.get(required).is_none_or(Value::is_null) {
                        return Err(Refusal::shape(format!("{field}.{place}.{required}"), "is required"));
                    }
                }
            }
            _ => {}
        }
    }
    Ok(tools)
}

fn complete_toolset(tool: &mut Fields, policy: &str) {
    let default = json!({"enabled": true, "permission_policy": {"type": policy}});
    let given = tool.remove("default_config").filter(|given| !given.is_null());
    let config = filled(given.unwrap_or_else(|| json!({})), &default);
    let configs = match tool.remove("configs") {
        Some(Value::Array(configs)) => configs.into_iter().map(|one| filled(one, &config)).collect(),
        _ => Vec::new(),
    };
    tool.insert("default_config".into(), config);
    tool.insert("configs".into(), configs.into());
}

/// An object with the members of `default` that it lacks.
fn filled(mut given: Value, default: &Value) -> Value {
    if let (Value::Object(given), Value::Object(default)) = (&mut given, default) {
        for (name, value) in default {
            if given.get(name).is_none_or(Value::is_null) {
                given.insert(name.clone(), value.clone());
            }
        }
    }
    given
}

impl CreateAgent {
    fn parse(self) -> Result<NewAgent, Refusal> {
        let optional = |field: &str, value: Option<String>, most| {
            value.map(|value| text(field, value, 0, most)).transpose()
        };
        let (model, model_options) = parse_model("model", self.model)?;
        let definition = Definition {
            name: text("name", self.name, 1, NAME)?,
            description: optional("description", self.description, DESCRIPTION)?,
            model,
            model_options,
            system: optional("system", self.system, SYSTEM)?,
            tools: parse_tools("tools", self.tools.unwrap_or_default())?,
            mcp_servers: typed("mcp_servers", self.mcp_servers.unwrap_or_default())?,
            skills: typed("skills", self.skills.unwrap_or_default())?,
            multiagent: self.multiagent.filter(|value| !value.is_null()),
            metadata: new_metadata(self.metadata)?,
            extra: Fields::new(),
        };
        Ok(NewAgent { made_through: Dialect::Anthropic, definition, labels: Vec::new() })
    }
}

impl UpdateAgent {
    fn parse(self) -> Result<(Option<ExpectedVersion>, DefinitionPatch), Refusal> {
        let clearable = |field: &'static str, most| {
            move |value: Option<String>| value.map(|value| text(field, value, 0, most)).transpose()
        };
        let kept = |field: &'static str| move || Refusal::shape(field, "cannot be null");
        let name = self.name.map(|name| text("name", name.ok_or_else(kept("name"))?, 1, NAME)).transpose()?;
        let model = self.model.map(|model| parse_model("model", model.ok_or_else(kept("model"))?));
        let list =
            |field: &'static str| move |items: Option<Vec<Value>>| typed(field, items.unwrap_or_default());
        let patch = DefinitionPatch {
            name,
            description: self.description.map(clearable("description", DESCRIPTION)).transpose()?,
            model: model.transpose()?,
            system: self.system.map(clearable("system", SYSTEM)).transpose()?,
            tools: self.tools.map(|tools| parse_tools("tools", tools.unwrap_or_default())).transpose()?,
            mcp_servers: self.mcp_servers.map(list("mcp_servers")).transpose()?,
            skills: self.skills.map(list("skills")).transpose()?,
            multiagent: self.multiagent,
            metadata: parse_metadata(self.metadata)?,
            extra: None,
        };
        Ok((self.version.map(ExpectedVersion::Number), patch))
    }
}

/// What an agent is, in the object and in a session's snapshot.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "AgentDefinition")]
pub(crate) struct DefinitionView {
    id: String,
    r#type: &'static str,
    name: String,
    description: Option<String>,
    #[schemars(with = "Fields")]
    model: Value,
    system: Option<String>,
    #[schemars(with = "Vec<Fields>")]
    tools: Vec<Value>,
    #[schemars(with = "Vec<Fields>")]
    mcp_servers: Vec<Value>,
    #[schemars(with = "Vec<Fields>")]
    skills: Vec<Value>,
    #[schemars(with = "Option<Fields>")]
    multiagent: Option<Value>,
    #[schemars(with = "Fields")]
    execution_identity: Value,
    version: u32,
}

impl DefinitionView {
    pub(crate) fn of(snapshot: &AgentSnapshot) -> Self {
        let definition = snapshot.definition.clone();
        let mut model = Fields::new();
        model.insert("id".into(), definition.model.into());
        model.insert("speed".into(), "standard".into());
        model.extend(definition.model_options);
        Self {
            id: snapshot.id.spell(),
            r#type: "agent",
            name: definition.name,
            description: definition.description,
            model: model.into(),
            system: definition.system,
            tools: definition.tools,
            mcp_servers: definition.mcp_servers,
            skills: definition.skills,
            multiagent: definition.multiagent,
            execution_identity: json!({"type": "service_account"}),
            version: snapshot.version,
        }
    }
}

/// An agent in one of its versions.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Agent")]
pub(crate) struct AgentView {
    #[serde(flatten)]
    definition: DefinitionView,
    metadata: BTreeMap<String, String>,
    created_at: String,
    updated_at: String,
    archived_at: Option<String>,
}

impl AgentView {
    fn of(agent: &Agent, snapshot: &AgentSnapshot, updated_at: Timestamp) -> Self {
        Self {
            definition: DefinitionView::of(snapshot),
            metadata: pairs(&snapshot.definition.metadata),
            created_at: agent.created_at.to_string(),
            updated_at: updated_at.to_string(),
            archived_at: agent.archived_at.map(|at| at.to_string()),
        }
    }

    fn newest(agent: &Agent) -> Self {
        Self::of(agent, &agent.snapshot(), agent.updated_at)
    }

    fn version(agent: &Agent, version: &AgentVersion) -> Self {
        let newest = version.version == agent.version;
        let updated_at = if newest { agent.updated_at } else { version.created_at };
        Self::of(agent, &version.snapshot(), updated_at)
    }
}

pub(crate) async fn create(call: WorkCall, body: Body) -> Answer {
    let wanted: CreateAgent = call.body(Resource::Agent, Action::Create, body).await?;
    let agent = call.stele.agent_create(&call.caller, wanted.parse()?).await?;
    Ok(json(bytes(&AgentView::newest(&agent))))
}

pub(crate) async fn retrieve(call: WorkCall) -> Answer {
    let id = call.agent()?;
    let view = match call.query.get("version") {
        None => AgentView::newest(&call.stele.agent_get(&call.caller, id).await?),
        Some(_) => {
            let version = call.query.number("version", 1, u32::MAX as usize, 1)?;
            let version = u32::try_from(version).map_err(|_| ApiError::not_found("no such version"))?;
            let (agent, version) = call.stele.agent_version(&call.caller, id, version).await?;
            AgentView::version(&agent, &version)
        }
    };
    Ok(json(bytes(&view)))
}

pub(crate) async fn update(call: WorkCall, body: Body) -> Answer {
    let id = call.agent()?;
    let wanted: UpdateAgent = call.body(Resource::Agent, Action::Update, body).await?;
    let (expected, patch) = wanted.parse()?;
    let agent = call.stele.agent_update(&call.caller, id, expected, patch).await?;
    Ok(json(bytes(&AgentView::newest(&agent))))
}

pub(crate) async fn archive(call: WorkCall, body: Body) -> Answer {
    let id = call.agent()?;
    call.no_fields(body).await?;
    Ok(json(bytes(&AgentView::newest(&call.stele.agent_archive(&call.caller, id).await?))))
}

pub(crate) async fn list(call: WorkCall) -> Answer {
    let limit = call.query.number("limit", 1, 100, 20)?;
    let (archived, created) = (call.query.flag("include_archived")?, created(&call.query)?);
    let list = List::new(&["anthropic agents", &format!("{archived} {created:?}")]);
    let after = call.after(&list)?;
    let found = call.stele.agent_list(&call.caller, archived, created, after, limit).await?;
    let last = found.items.last().map(|agent| (agent.created_at, *agent.id.as_bytes()));
    Ok(page(&list, found.more, last, found.items.iter().map(AgentView::newest).collect()))
}

pub(crate) async fn versions(call: WorkCall) -> Answer {
    let id = call.agent()?;
    let limit = call.query.number("limit", 1, 100, 20)?;
    let list = List::new(&["anthropic agent versions", &id.spell()]);
    let after = call.after(&list)?;
    let (agent, found) = call.stele.agent_version_list(&call.caller, id, after, limit).await?;
    let last = found.items.last().map(|version| (version.created_at, *version.id.as_bytes()));
    let data = found.items.iter().map(|version| AgentView::version(&agent, version)).collect();
    Ok(page(&list, found.more, last, data))
}
