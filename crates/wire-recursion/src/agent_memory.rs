//! What agents have learned, as far as there is learning: nothing yet, but for the stores that it will fill.
//! spec/recursion.md 8.

use axum::body::Body;
use serde_json::{Value, json};
use stele_core::access::{Action, Resource};
use stele_core::id::AgentId;
use stele_core::model::Counters;
use stele_core::refusal::Refusal;
use stele_core::storage::Error;
use stele_core::work::Fields;
use stele_core::work::agent::Agent;
use stele_http::flat::FlatError;

use crate::agents;
use crate::context::{Answer, Call, query_id};
use crate::models;
use crate::view::shown;

/// Longest id of a model, in bytes.
const MODEL: usize = 256;
const STATUSES: [&str; 5] = ["pending", "running", "completed", "failed", "canceled"];
const TRIGGERS: [&str; 3] = ["schedule", "counter", "manual"];

/// spec/recursion.md 4.5.
async fn summary(call: &Call, agent: &Agent) -> Result<Fields, FlatError> {
    let store = match agent.learned_store {
        Some(id) => match call.stele.store_get(&call.caller, id).await {
            Ok(store) => Some(store),
            // Noted with the agent, and not made yet.
            Err(Error::Refused { refusal: Refusal::StoreNotFound(_), .. }) => None,
            Err(error) => return Err(error.into()),
        },
        None => None,
    };
    let counters = store.as_ref().map_or(Counters::default(), |store| store.counters);
    let mut view = Fields::new();
    let mut put = |name: &str, value: Value| view.insert(name.to_owned(), value);
    put("agent_id", json!(agent.id));
    put("agent_name", json!(agent.definition.name));
    if let Some(store) = store {
        put("memory_store_id", json!(store.id));
    }
    put("memory_count", json!(counters.memories));
    put("total_bytes", json!(counters.bytes));
    put("revision", json!(0));
    put("state", json!("waiting"));
    put("effective_model", json!(agent.effective_memory_model()));
    if let Some(model) = &agent.memory_model {
        put("memory_model_ref", json!(model));
    }
    put("pending_session_count", json!(0));
    put("failed_session_count", json!(0));
    Ok(view)
}

async fn agent(call: &Call) -> Result<Agent, FlatError> {
    call.may(Resource::Agent, Action::Read)?;
    Ok(call.stele.agent_get(&call.caller, call.id("agent_id")?).await?)
}

/// The summaries of all agents, the oldest agent first.
pub(crate) async fn list(call: Call) -> Answer {
    call.may(Resource::Agent, Action::Read)?;
    let mut views = Vec::new();
    for agent in agents::all(&call).await?.iter().rev() {
        views.push(summary(&call, agent).await?);
    }
    Ok(shown(&json!({"agents": views})))
}

pub(crate) async fn retrieve(call: Call) -> Answer {
    let agent = agent(&call).await?;
    Ok(shown(&summary(&call, &agent).await?))
}

/// Nobody writes into learned stores yet.
pub(crate) async fn memories(call: Call) -> Answer {
    agent(&call).await?;
    let query = call.query()?;
    query.number("limit", 1, 100, 50)?;
    if query.get("sort").is_some_and(|sort| !["updated", "alphabetical"].contains(&sort)) {
        return Err(Refusal::shape("sort", "must be updated or alphabetical").into());
    }
    Ok(shown(&json!({"memories": [], "topics": []})))
}

pub(crate) async fn activity(call: Call) -> Answer {
    agent(&call).await?;
    call.query()?.number("limit", 1, 100, 50)?;
    Ok(shown(&json!({"reflections": []})))
}

/// spec/recursion.md 4.7.
fn learning_view(agent: &Agent) -> Value {
    match &agent.memory_model {
        Some(model) => json!({"memory_model_ref": model}),
        None => json!({}),
    }
}

pub(crate) async fn learning(call: Call) -> Answer {
    Ok(shown(&learning_view(&agent(&call).await?)))
}

/// A model as `provider/model`.
fn parse_model(value: &Value) -> Result<String, Refusal> {
    let split = value.as_str().and_then(|text| text.split_once('/'));
    let is_name =
        |text: &str| !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || c.is_control());
    match split {
        Some((provider, model))
            if is_name(provider) && is_name(model) && provider.len() + model.len() < MODEL =>
        {
            Ok(format!("{provider}/{model}"))
        }
        _ => Err(Refusal::shape("memory_model_ref", "must be the id of a model, as provider/model")),
    }
}

/// `null` goes back to the agent's own model; a field that is left out changes nothing. spec/recursion.md 8.5.
pub(crate) async fn update_learning(call: Call, body: Body) -> Answer {
    call.may(Resource::Agent, Action::Update)?;
    let body = call.object::<Fields>(body).await?;
    let id = call.id("agent_id")?;
    // What is not there is said before what is malformed.
    let agent = call.stele.agent_get(&call.caller, id).await?;
    let agent = match body?.get("memory_model_ref") {
        None => agent,
        Some(Value::Null) => call.stele.agent_memory_model(&call.caller, id, None).await?,
        Some(model) => {
            let model = parse_model(model)?;
            models::listed(&call, "memory_model_ref", &model).await?;
            call.stele.agent_memory_model(&call.caller, id, Some(model)).await?
        }
    };
    Ok(shown(&learning_view(&agent)))
}

/// Runs of learning of all agents: none yet.
pub(crate) async fn reflections(call: Call) -> Answer {
    call.may(Resource::Agent, Action::Read)?;
    let query = call.query()?;
    query.number("limit", 1, 100, 50)?;
    query_id::<AgentId>(&query, "agent_id")?;
    for (name, words) in [("status", &STATUSES[..]), ("triggered_by", &TRIGGERS[..])] {
        if query.get(name).is_some_and(|word| !words.contains(&word)) {
            return Err(Refusal::shape(name, format!("must be one of {}", words.join(", "))).into());
        }
    }
    Ok(shown(&json!({"reflections": []})))
}
