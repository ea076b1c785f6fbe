//! `stele agent` and `stele environment`, and finding or making either by its name.

use serde_json::{Value, json};
use stele_client::{Client, ClientError, Environment as Place};

use super::Session;
use crate::cli::{Agent, Environment};
use crate::failure::{Class, fail};
use crate::output::{print, print_json, print_table, time};

pub(crate) fn agent(session: &Session, action: Agent) -> anyhow::Result<()> {
    match action {
        Agent::Create { name, model, description, no_learned } => {
            let mut body = new_agent(&name, &model, !no_learned);
            if let Some(description) = description {
                body["description"] = description.into();
            }
            let made = session.client.agent_create(&body)?;
            if session.json {
                print_json(&made)
            } else {
                print(&format!("created {} ({})", made.name, made.id))
            }
        }
        Agent::List => {
            let agents = session.client.agents().collect::<Result<Vec<_>, _>>()?;
            if session.json {
                return print_json(&json!({"data": agents}));
            }
            let rows: Vec<_> = agents
                .into_iter()
                .map(|agent| {
                    let (model, learns) = (model(&agent), learns(&agent));
                    [agent.name, agent.id, model, learns, time(&agent.created_at)]
                })
                .collect();
            print_table(["NAME", "ID", "MODEL", "LEARNED", "CREATED"], &rows)
        }
        Agent::Show { agent } => {
            let agent = named_agent(&session.client, &agent)?;
            if session.json {
                return print_json(&agent);
            }
            let (model, learns) = (model(&agent), learns(&agent));
            let described =
                agent.rest.get("description").and_then(Value::as_str).unwrap_or_default().to_owned();
            let version = agent.rest.get("version").map(Value::to_string).unwrap_or_default();
            let mut rows = vec![
                ["name".into(), agent.name],
                ["id".into(), agent.id],
                ["description".into(), described],
                ["model".into(), model],
                ["learned".into(), learns],
                ["version".into(), version],
                ["created".into(), time(&agent.created_at)],
                ["archived".into(), agent.archived_at.as_deref().map_or("no".into(), time)],
            ];
            rows.extend(agent.metadata.into_iter().map(|(key, value)| [format!("metadata.{key}"), value]));
            print_table(["FIELD", "VALUE"], &rows)
        }
    }
}

fn model(agent: &stele_client::Agent) -> String {
    agent.model.get("id").and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn learns(agent: &stele_client::Agent) -> String {
    agent.metadata.get("stele.learned").cloned().unwrap_or_else(|| "off".into())
}

pub(crate) fn environment(session: &Session, action: Environment) -> anyhow::Result<()> {
    match action {
        Environment::Create { name, self_hosted } => {
            let kind = if self_hosted { "self_hosted" } else { "cloud" };
            let body = json!({"name": name, "config": {"type": kind}});
            let made = session.client.environment_create(&body)?;
            if session.json {
                print_json(&made)
            } else {
                print(&format!("created {} ({})", made.name, made.id))
            }
        }
        Environment::List => {
            let environments = session.client.environments().collect::<Result<Vec<_>, _>>()?;
            if session.json {
                return print_json(&json!({"data": environments}));
            }
            let kind = |place: &Place| {
                place.config.get("type").and_then(Value::as_str).unwrap_or_default().to_owned()
            };
            let rows: Vec<_> = environments
                .into_iter()
                .map(|place| {
                    let kind = kind(&place);
                    [place.name, place.id, kind, time(&place.created_at)]
                })
                .collect();
            print_table(["NAME", "ID", "KIND", "CREATED"], &rows)
        }
        Environment::Key { environment, name } => {
            let client = &session.client;
            let found = named(&environment, "env_", client.environments(), |id| client.environment(id))?;
            let id = found.ok_or_else(|| missing("environment", &environment))?.id;
            let made = client.environment_key_create(&id, name.as_deref())?;
            if session.json {
                return print_json(&made);
            }
            let field = |name: &str| made[name].as_str().unwrap_or_default();
            print(&format!("environment_key_id: {}", field("id")))?;
            print(&format!("key (shown once): {}", field("key")))
        }
    }
}

/// What agents and environments have in common.
trait Named {
    fn name(&self) -> &str;
}

impl Named for stele_client::Agent {
    fn name(&self) -> &str {
        &self.name
    }
}

impl Named for Place {
    fn name(&self) -> &str {
        &self.name
    }
}

/// The one of that id, or the oldest of that name: whoever made two at once finds the same one from then on.
fn named<T: Named>(
    wanted: &str,
    prefix: &str,
    all: impl Iterator<Item = Result<T, ClientError>>,
    by_id: impl FnOnce(&str) -> Result<T, ClientError>,
) -> anyhow::Result<Option<T>> {
    if wanted.starts_with(prefix) {
        return Ok(Some(by_id(wanted)?));
    }
    let mut found = None;
    for one in all {
        let one = one?;
        if one.name() == wanted {
            found = Some(one);
        }
    }
    Ok(found)
}

fn missing(what: &str, wanted: &str) -> anyhow::Error {
    fail(Class::NotFound, format!("there is no {what} {wanted:?}: `stele {what} list` shows them"))
}

/// The agent of that name or id.
pub(super) fn named_agent(client: &Client, wanted: &str) -> anyhow::Result<stele_client::Agent> {
    let found = named(wanted, "agent_", client.agents(), |id| client.agent(id))?;
    found.ok_or_else(|| missing("agent", wanted))
}

/// The id of the agent of that name or id; one of that name is made where there is none.
pub(super) fn agent_for(client: &Client, wanted: &str, model: Option<&str>) -> anyhow::Result<String> {
    let find = || named(wanted, "agent_", client.agents(), |id| client.agent(id));
    if let Some(agent) = find()? {
        return Ok(agent.id);
    }
    let made = client.agent_create(&new_agent(wanted, model.unwrap_or("unknown"), true))?;
    match find()? {
        // Somebody else made one at the same moment: that one is everybody's.
        Some(oldest) if oldest.id != made.id => {
            client.agent_archive(&made.id)?;
            Ok(oldest.id)
        }
        _ => Ok(made.id),
    }
}

fn new_agent(name: &str, model: &str, learns: bool) -> Value {
    let metadata = if learns { json!({"stele.learned": "on"}) } else { json!({}) };
    json!({"name": name, "model": model, "metadata": metadata})
}

/// The id of the environment of that name or id; one of that name is made where there is none.
pub(super) fn environment_for(client: &Client, wanted: &str) -> anyhow::Result<String> {
    let find = || named(wanted, "env_", client.environments(), |id| client.environment(id));
    if let Some(environment) = find()? {
        return Ok(environment.id);
    }
    let body = json!({"name": wanted, "description": "Sessions of agents that run elsewhere."});
    let made = client.environment_create(&body)?;
    match find()? {
        Some(oldest) if oldest.id != made.id => {
            client.environment_archive(&made.id)?;
            Ok(oldest.id)
        }
        _ => Ok(made.id),
    }
}
