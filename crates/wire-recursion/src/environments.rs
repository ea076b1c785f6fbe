//! `/environments`, as far as sessions need them. spec/recursion.md 10.3.

use axum::body::Body;
use serde_json::{Value, json};
use stele_core::access::{Action, Resource};
use stele_core::id::WorkspaceId;
use stele_core::refusal::Refusal;
use stele_core::service::NewEnvironment;
use stele_core::text::Metadata;
use stele_core::work::environment::{Environment, Hosting};
use stele_core::work::{Dialect, Fields};

use crate::context::{Answer, Call};
use crate::fields::{missing, take_bounded, take_text};
use crate::view::shown;

/// Longest name, in characters.
const NAME: usize = 256;
const STEP: usize = 500;

/// Fields that are kept as they are sent. Not among them: secrets, which nothing here could use.
const KEPT: [&str; 16] = [
    "provider",
    "computer_use",
    "config",
    "env_vars",
    "http_port",
    "idle_stop_after_seconds",
    "image",
    "metadata",
    "mounts",
    "network_policy",
    "privileged",
    "pvc_size_gi",
    "resources",
    "scope",
    "setup",
    "stopped_delete_after_seconds",
];

fn parse(mut body: Fields) -> Result<NewEnvironment, Refusal> {
    let name = take_bounded(&mut body, "name", "name", NAME)?.ok_or_else(|| missing("name"))?;
    match body.get("provider").and_then(Value::as_str) {
        Some("docker" | "runs") => {}
        None if body.get("provider").is_none_or(Value::is_null) => return Err(missing("provider")),
        _ => return Err(Refusal::shape("provider", "must be docker or runs")),
    }
    let description = take_text(&mut body, "description", "description")?;
    let kept = KEPT.into_iter().filter_map(|field| body.remove_entry(field));
    Ok(NewEnvironment {
        made_through: Dialect::Recursion,
        name,
        description,
        hosting: Hosting::Elsewhere,
        config: Fields::new(),
        metadata: Metadata::default(),
        extra: kept.filter(|(_, value)| !value.is_null()).collect(),
    })
}

fn view(organization: WorkspaceId, environment: &Environment) -> Fields {
    let mut view = environment.extra.clone();
    for (field, default) in [
        ("provider", json!("runs")),
        ("scope", json!("organization")),
        ("resources", json!({})),
        ("setup", json!({})),
        ("computer_use", json!(false)),
    ] {
        view.entry(field).or_insert(default);
    }
    let mut put = |name: &str, value: Value| view.insert(name.to_owned(), value);
    put("environment_id", json!(environment.id));
    put("organization_id", json!(organization));
    put("name", json!(environment.name));
    put("created_at", json!(environment.created_at.to_string()));
    put("updated_at", json!(environment.updated_at.to_string()));
    if let Some(description) = &environment.description {
        put("description", json!(description));
    }
    view
}

pub(crate) async fn create(call: Call, body: Body) -> Answer {
    call.may(Resource::Environment, Action::Create)?;
    let new = call.object::<Fields>(body).await?.and_then(parse)?;
    let environment = call.stele.environment_create(&call.caller, new).await?;
    Ok(shown(&view(call.caller.workspace, &environment)))
}

pub(crate) async fn list(call: Call) -> Answer {
    call.may(Resource::Environment, Action::Read)?;
    let (mut environments, mut after) = (Vec::new(), None);
    loop {
        let page = call.stele.environment_list(&call.caller, false, after, STEP).await?;
        after = page.items.last().map(|one| (one.created_at, *one.id.as_bytes()));
        environments.extend(page.items.iter().map(|one| view(call.caller.workspace, one)));
        if !page.more {
            return Ok(shown(&json!({"environments": environments})));
        }
    }
}

pub(crate) async fn retrieve(call: Call) -> Answer {
    call.may(Resource::Environment, Action::Read)?;
    let environment = call.stele.environment_get(&call.caller, call.id("environment_id")?).await?;
    Ok(shown(&view(call.caller.workspace, &environment)))
}

pub(crate) async fn delete(call: Call) -> Answer {
    call.may(Resource::Environment, Action::Delete)?;
    call.stele.environment_delete(&call.caller, call.id("environment_id")?).await?;
    Ok(shown(&json!({"deleted": true})))
}
