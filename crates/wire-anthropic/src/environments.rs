//! `/v1/environments` and their keys. spec/anthropic.md 11 and 17.1.

use std::collections::BTreeMap;

use axum::body::Body;
use axum::http::HeaderValue;
use axum::http::header::CACHE_CONTROL;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use stele_core::access::{Action, Resource};
use stele_core::id::EnvironmentKeyId;
use stele_core::refusal::Refusal;
use stele_core::service::{EnvironmentPatch, NewEnvironment};
use stele_core::work::credential::EnvironmentKey;
use stele_core::work::environment::{Environment, Hosting};
use stele_core::work::{Dialect, Fields};
use stele_http::body;
use stele_http::cursor::List;
use stele_http::reply::{bytes, json};

use crate::error::ApiError;
use crate::id::Prefixed;
use crate::stores::{Pairs, bounded_metadata, parse_metadata};
use crate::view::DeletedView;
use crate::work::{Answer, WorkCall, new_metadata, page, pairs, text};

const NAME: usize = 256;
const DESCRIPTION: usize = 2_048;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateEnvironment {
    #[schemars(length(min = 1, max = 256))]
    name: String,
    #[schemars(length(max = 2048))]
    description: Option<String>,
    /// `{"type":"self_hosted"}` for workers of your own; left out: a cloud one, which is a record only.
    config: Option<Fields>,
    #[schemars(with = "Option<BTreeMap<String, String>>", transform = bounded_metadata)]
    metadata: Option<Pairs>,
    #[schemars(extend("enum" = ["organization", null]))]
    scope: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UpdateEnvironment {
    #[schemars(length(min = 1, max = 256))]
    name: Option<String>,
    #[serde(default, deserialize_with = "body::given")]
    #[schemars(with = "Option<String>", length(max = 2048))]
    description: Option<Option<String>>,
    config: Option<Fields>,
    #[schemars(transform = bounded_metadata)]
    metadata: Option<Pairs>,
    #[schemars(extend("enum" = ["organization", null]))]
    scope: Option<String>,
}

/// The kind of an environment and the rest of its configuration, completed as responses need it.
fn parse_config(config: Option<Fields>) -> Result<(Hosting, Fields), Refusal> {
    let Some(mut config) = config else { return Ok((Hosting::Elsewhere, cloud(&Fields::new())?)) };
    match config.remove("type").as_ref().and_then(Value::as_str) {
        Some("self_hosted") => match config.keys().next() {
            Some(name) => {
                Err(Refusal::shape(format!("config.{name}"), "is not a field of a self_hosted environment"))
            }
            None => Ok((Hosting::SelfHosted, Fields::new())),
        },
        Some("cloud") => Ok((Hosting::Elsewhere, cloud(&config)?)),
        _ => Err(Refusal::shape("config.type", "must be self_hosted or cloud")),
    }
}

fn cloud(given: &Fields) -> Result<Fields, Refusal> {
    let unknown = given.keys().find(|name| !matches!(name.as_str(), "networking" | "packages"));
    if let Some(unknown) = unknown {
        return Err(Refusal::shape(format!("config.{unknown}"), "is not a field of a cloud environment"));
    }
    let object = |name: &str| match given.get(name) {
        None | Some(Value::Null) => Ok(Fields::new()),
        Some(Value::Object(fields)) => Ok(fields.clone()),
        Some(_) => Err(Refusal::shape(format!("config.{name}"), "must be an object")),
    };
    let mut networking = object("networking")?;
    if networking.is_empty() {
        networking.insert("type".into(), "unrestricted".into());
    }
    let mut packages = object("packages")?;
    packages.insert("type".into(), "packages".into());
    for manager in ["apt", "cargo", "gem", "go", "npm", "pip"] {
        if packages.get(manager).is_none_or(Value::is_null) {
            packages.insert(manager.into(), json!([]));
        }
    }
    Ok(Fields::from_iter([("networking".into(), networking.into()), ("packages".into(), packages.into())]))
}

fn parse_scope(scope: Option<String>) -> Result<(), Refusal> {
    match scope.as_deref() {
        None | Some("organization") => Ok(()),
        Some(_) => Err(Refusal::shape("scope", "must be organization")),
    }
}

/// Bad metadata of an environment has a code of its own.
fn metadata_coded(refusal: Refusal) -> ApiError {
    let of_metadata = matches!(&refusal, Refusal::Invalid { field, .. } if field.starts_with("metadata"));
    let error = ApiError::from(refusal);
    if of_metadata { error.code("invalid_metadata") } else { error }
}

impl CreateEnvironment {
    fn parse(self) -> Result<NewEnvironment, ApiError> {
        parse_scope(self.scope)?;
        let (hosting, config) = parse_config(self.config)?;
        let description = self.description.map(|value| text("description", value, 0, DESCRIPTION));
        Ok(NewEnvironment {
            made_through: Dialect::Anthropic,
            name: text("name", self.name, 1, NAME)?,
            description: description.transpose()?,
            hosting,
            config,
            metadata: new_metadata(self.metadata).map_err(metadata_coded)?,
            extra: Fields::new(),
        })
    }
}

impl UpdateEnvironment {
    fn parse(self) -> Result<EnvironmentPatch, ApiError> {
        parse_scope(self.scope)?;
        let description = self
            .description
            .map(|value| value.map(|value| text("description", value, 0, DESCRIPTION)).transpose());
        Ok(EnvironmentPatch {
            name: self.name.map(|name| text("name", name, 1, NAME)).transpose()?,
            description: description.transpose()?,
            config: self.config.map(|config| parse_config(Some(config))).transpose()?,
            metadata: parse_metadata(self.metadata).map_err(metadata_coded)?,
        })
    }
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Environment")]
pub(crate) struct EnvironmentView {
    id: String,
    r#type: &'static str,
    name: String,
    description: Option<String>,
    config: Fields,
    metadata: BTreeMap<String, String>,
    scope: &'static str,
    created_at: String,
    updated_at: String,
    archived_at: Option<String>,
}

impl EnvironmentView {
    fn of(environment: &Environment) -> Self {
        let mut config = environment.config.clone();
        let hosting = match environment.hosting {
            Hosting::SelfHosted => "self_hosted",
            Hosting::Elsewhere => "cloud",
        };
        // One made through Recursion has nothing of this; the SDK needs it.
        if environment.hosting == Hosting::Elsewhere && config.is_empty() {
            config = cloud(&config).expect("no field is a legal configuration");
        }
        config.insert("type".into(), hosting.into());
        Self {
            id: environment.id.spell(),
            r#type: "environment",
            name: environment.name.clone(),
            description: environment.description.clone(),
            config,
            metadata: pairs(&environment.metadata),
            scope: "organization",
            created_at: environment.created_at.to_string(),
            updated_at: environment.updated_at.to_string(),
            archived_at: environment.archived_at.map(|at| at.to_string()),
        }
    }
}

pub(crate) async fn create(call: WorkCall, body: Body) -> Answer {
    let wanted: CreateEnvironment = call.body(Resource::Environment, Action::Create, body).await?;
    let environment = call.stele.environment_create(&call.caller, wanted.parse()?).await?;
    Ok(json(bytes(&EnvironmentView::of(&environment))))
}

pub(crate) async fn retrieve(call: WorkCall) -> Answer {
    let environment = call.stele.environment_get(&call.caller, call.environment()?).await?;
    Ok(json(bytes(&EnvironmentView::of(&environment))))
}

pub(crate) async fn update(call: WorkCall, body: Body) -> Answer {
    let id = call.environment()?;
    let wanted: UpdateEnvironment = call.body(Resource::Environment, Action::Update, body).await?;
    let environment = call.stele.environment_update(&call.caller, id, wanted.parse()?).await?;
    Ok(json(bytes(&EnvironmentView::of(&environment))))
}

pub(crate) async fn archive(call: WorkCall, body: Body) -> Answer {
    let id = call.environment()?;
    call.no_fields(body).await?;
    let environment = call.stele.environment_archive(&call.caller, id).await?;
    Ok(json(bytes(&EnvironmentView::of(&environment))))
}

pub(crate) async fn delete(call: WorkCall, body: Body) -> Answer {
    let id = call.environment()?;
    call.no_fields(body).await?;
    call.stele.environment_delete(&call.caller, id).await?;
    Ok(json(bytes(&DeletedView { id: id.spell(), r#type: "environment_deleted" })))
}

pub(crate) async fn list(call: WorkCall) -> Answer {
    let limit = call.query.number("limit", 1, 100, 20)?;
    let archived = call.query.flag("include_archived")?;
    let list = List::new(&["anthropic environments", if archived { "all" } else { "open" }]);
    let after = call.after(&list)?;
    let found = call.stele.environment_list(&call.caller, archived, after, limit).await?;
    let last = found.items.last().map(|one| (one.created_at, *one.id.as_bytes()));
    Ok(page(&list, found.more, last, found.items.iter().map(EnvironmentView::of).collect()))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateKey {
    #[schemars(length(max = 255))]
    name: Option<String>,
}

/// A key of an environment, its secret only where it was just made.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "EnvironmentKey")]
pub(crate) struct KeyView {
    id: String,
    r#type: &'static str,
    environment_id: String,
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    created_at: String,
}

impl KeyView {
    fn of(key: &EnvironmentKey, secret: Option<&str>) -> Self {
        Self {
            id: key.id.spell(),
            r#type: "environment_key",
            environment_id: key.environment.spell(),
            name: key.name.clone(),
            key: secret.map(str::to_owned),
            created_at: key.created_at.to_string(),
        }
    }
}

pub(crate) async fn create_key(call: WorkCall, body: Body) -> Answer {
    let id = call.environment()?;
    let wanted: CreateKey = call.body(Resource::EnvironmentKey, Action::Create, body).await?;
    let name = wanted.name.map(|name| text("name", name, 0, 255)).transpose()?;
    let (key, secret) = call.stele.environment_key_create(&call.caller, id, name).await?;
    let mut response = json(bytes(&KeyView::of(&key, Some(secret.reveal()))));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

pub(crate) async fn list_keys(call: WorkCall) -> Answer {
    let id = call.environment()?;
    let limit = call.query.number("limit", 1, 100, 20)?;
    let list = List::new(&["anthropic environment keys", &id.spell()]);
    let after = call.after(&list)?;
    let found = call.stele.environment_key_list(&call.caller, id, after, limit).await?;
    let last = found.items.last().map(|key| (key.created_at, *key.id.as_bytes()));
    Ok(page(&list, found.more, last, found.items.iter().map(|key| KeyView::of(key, None)).collect()))
}

pub(crate) async fn revoke_key(call: WorkCall, body: Body) -> Answer {
    let id = call.environment()?;
    let key: EnvironmentKeyId = call.id("key", "environment key")?;
    call.no_fields(body).await?;
    call.stele.environment_key_revoke(&call.caller, id, key).await?;
    Ok(json(bytes(&DeletedView { id: key.spell(), r#type: "environment_key_deleted" })))
}
