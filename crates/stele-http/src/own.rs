//! Stele's own routes under `/stele/v1`: keys, workspaces and tokens of sessions. DESIGN 6, spec/recursion.md 18 X4.
//!
//! snake_case, closed bodies, UUIDs, errors in the flat envelope.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stele_core::access::{Action, Caller, Grant, Permission, Permissions, Principal, Resource, Role};
use stele_core::id::{KeyId, SessionId, WorkspaceId};
use stele_core::key::{ApiKey, Contract};
use stele_core::refusal::Refusal;
use stele_core::service::{NewKey, NewWorkspace, Stele};
use stele_core::storage::{Workspace, WorkspacePatch};
use stele_core::text::Name;
use stele_core::time::Timestamp;

use crate::flat::{self, FlatError};
use crate::openapi::{Endpoint, Family, PRINTABLE, Param};
use crate::{auth, body};

pub(crate) type Answer = Result<Response, FlatError>;

static OWN: Family = Family {
    tag: "Keys and workspaces",
    about: "Stele's own routes.",
    headers: Vec::new,
    error: flat::schema,
    statuses: &[400, 401, 403, 404, 500, 503],
    keyed: true,
};

/// The routes with what is said of them.
pub(crate) fn endpoints() -> Vec<Endpoint> {
    let (keys, workspaces) = ("/stele/v1/api_keys", "/stele/v1/workspaces");
    let uuid = serde_json::json!({"type": "string", "format": "uuid"});
    vec![
        Endpoint::new(Method::GET, "/stele/v1/self", "get_self", &OWN, show_self)
            .about("Say what the credential of this request is and may do.")
            .answers::<SelfView>(200),
        Endpoint::new(Method::GET, keys, "list_api_keys", &OWN, list_keys)
            .about("List the workspace's keys that work, without their secrets.")
            .answers::<KeysView>(200),
        Endpoint::new(Method::POST, keys, "create_api_key", &OWN, create_key)
            .about("Make a key; the answer alone shows it.")
            .takes::<CreateKey>()
            .answers::<KeyView>(201)
            .or(&[408, 413]),
        Endpoint::new(Method::DELETE, "/stele/v1/api_keys/{api_key_id}", "revoke_api_key", &OWN, revoke_key)
            .about("Revoke a key.")
            .params([Param::path("api_key_id", "The key's id.", uuid.clone())])
            .answers_plain(204, ""),
        Endpoint::new(Method::GET, workspaces, "list_workspaces", &OWN, list_workspaces)
            .about("List the workspaces; for admins of the first one.")
            .answers::<WorkspacesView>(200),
        Endpoint::new(Method::POST, workspaces, "create_workspace", &OWN, create_workspace)
            .about("Make a workspace; the answer alone shows its admin key.")
            .takes::<CreateWorkspace>()
            .answers::<WorkspaceView>(201)
            .or(&[408, 413]),
        Endpoint::new(
            Method::POST,
            "/stele/v1/workspaces/{workspace_id}",
            "update_workspace",
            &OWN,
            update_workspace,
        )
        .about("Change the name or the cap of a workspace; for admins of the first one.")
        .params([Param::path("workspace_id", "The workspace's id.", uuid)])
        .takes::<UpdateWorkspace>()
        .answers::<WorkspaceView>(200)
        .or(&[408, 413]),
        Endpoint::new(
            Method::POST,
            "/stele/v1/sessions/{session_id}/tokens",
            "create_session_token",
            &OWN,
            create_session_token,
        )
        .about("Make a token of a session, for its sandbox; it ends with the session. The answer alone shows it.")
        .params([Param::path("session_id", "The session's id.", serde_json::json!({"type": "string", "format": "uuid"}))])
        .may_take::<NoFields>()
        .answers::<TokenView>(201)
        .or(&[408, 409, 413]),
    ]
}

/// The body of an action: none, or an object without fields.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NoFields {}

/// A token of a session.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "SessionToken")]
struct TokenView {
    token: String,
}

/// A credential as its holder sees it; ids are of what it belongs to.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Self")]
struct SelfView {
    /// `api_key`, `environment_key` or `session_token`.
    r#type: &'static str,
    workspace_id: String,
    /// What it may do with memories; of a session's token, in the stores that are attached read_write.
    permissions: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    api_key_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    environment_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<String>,
}

impl SelfView {
    fn of(caller: &Caller) -> Self {
        let names = |permissions: Permissions| permissions.iter().map(Permission::as_str).collect();
        let none = Self {
            r#type: "api_key",
            workspace_id: caller.workspace.to_string(),
            permissions: Vec::new(),
            api_key_id: None,
            role: None,
            environment_id: None,
            session_id: None,
        };
        match &caller.principal {
            Principal::Key { key, grant, .. } => Self {
                permissions: names(grant.permissions()),
                api_key_id: Some(key.to_string()),
                role: match grant {
                    Grant::Role(role) => Some(role.as_str()),
                    Grant::Permissions(_) => None,
                },
                ..none
            },
            Principal::Environment { environment, .. } => {
                Self { r#type: "environment_key", environment_id: Some(environment.to_string()), ..none }
            }
            Principal::Session(scope) => Self {
                r#type: "session_token",
                permissions: names(scope.permissions),
                session_id: Some(scope.session.to_string()),
                ..none
            },
        }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("not" = {"required": ["role", "permissions"]}))]
struct CreateKey {
    /// 1 to 255 characters, no control characters.
    #[schemars(length(min = 1, max = 255), regex(pattern = PRINTABLE))]
    name: String,
    /// admin, developer (the default), contributor or reader.
    #[schemars(extend("enum" = ["admin", "developer", "contributor", "reader", null]))]
    role: Option<String>,
    /// Some of read, create, update and delete, instead of a role.
    #[schemars(length(min = 1), inner(regex(pattern = "^(read|create|update|delete)$")))]
    permissions: Option<Vec<String>>,
    /// recursion-0.0 or recursion-0.14.
    #[schemars(extend("enum" = ["recursion-0.0", "recursion-0.14", null]))]
    contract: Option<String>,
    /// An RFC 3339 time.
    #[schemars(extend("format" = "date-time"))]
    expires_at: Option<String>,
    /// The person who holds it, by name: what is written with it at the console is that person's in history.
    #[schemars(length(min = 1, max = 255), regex(pattern = PRINTABLE))]
    user: Option<String>,
}

/// A key, its secret only where it was just made.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ApiKey")]
struct KeyView {
    api_key_id: String,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
    permissions: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    contract: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    created_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ApiKeys")]
struct KeysView {
    api_keys: Vec<KeyView>,
}

impl KeyView {
    fn of(key: &ApiKey, user: Option<String>, secret: Option<&str>) -> Self {
        Self {
            api_key_id: key.id.to_string(),
            name: key.name.as_str().to_owned(),
            role: match key.grant {
                Grant::Role(role) => Some(role.as_str()),
                Grant::Permissions(_) => None,
            },
            permissions: key.grant.permissions().iter().map(Permission::as_str).collect(),
            contract: (key.contract != Contract::default()).then_some(key.contract.as_str()),
            key: secret.map(str::to_owned),
            created_at: key.created_at.to_string(),
            expires_at: key.expires_at.map(|at| at.to_string()),
            user,
        }
    }
}

fn parse_name(name: &str) -> Result<Name, Refusal> {
    Name::parse(name).map_err(|error| Refusal::invalid("name", error))
}

fn parse_user(name: &str) -> Result<Name, Refusal> {
    Name::parse(name).map_err(|error| Refusal::invalid("user", error))
}

impl CreateKey {
    fn parse(self) -> Result<NewKey, Refusal> {
        let name = parse_name(&self.name)?;
        let grant =
            match (self.role, self.permissions) {
                (Some(_), Some(_)) => {
                    return Err(Refusal::shape("permissions", "cannot be given together with role"));
                }
                (Some(role), None) => Grant::Role(Role::parse(&role).ok_or_else(|| {
                    Refusal::shape("role", "must be admin, developer, contributor or reader")
                })?),
                (None, Some(names)) => Grant::Permissions(parse_permissions(&names)?),
                (None, None) => Grant::Role(Role::Developer),
            };
        let contract = self.contract.map(|name| {
            Contract::parse(&name)
                .ok_or_else(|| Refusal::shape("contract", "must be recursion-0.0 or recursion-0.14"))
        });
        let expires_at = self.expires_at.map(|text| {
            Timestamp::parse(&text).ok_or_else(|| Refusal::shape("expires_at", "must be an RFC 3339 time"))
        });
        Ok(NewKey {
            name,
            grant,
            contract: contract.transpose()?.unwrap_or_default(),
            expires_at: expires_at.transpose()?,
            person: self.user.as_deref().map(parse_user).transpose()?,
        })
    }
}

fn parse_permissions(names: &[String]) -> Result<Permissions, Refusal> {
    let find = |name: &String| Permission::ALL.into_iter().find(|p| p.as_str() == name);
    let found: Option<Vec<_>> = names.iter().map(find).collect();
    match found {
        Some(members) if !members.is_empty() => Ok(Permissions::of(members)),
        _ => Err(Refusal::shape("permissions", "must be some of read, create, update and delete")),
    }
}

/// A call by somebody known.
pub(crate) struct Call {
    pub(crate) stele: Arc<Stele>,
    pub(crate) caller: Caller,
}

impl FromRequestParts<Arc<Stele>> for Call {
    type Rejection = FlatError;

    async fn from_request_parts(parts: &mut Parts, stele: &Arc<Stele>) -> Result<Self, FlatError> {
        Ok(Self { stele: stele.clone(), caller: auth::caller(stele, &parts.headers).await? })
    }
}

/// Reads a body of the shape `T` from a caller who may do `action` on `resource`.
pub(crate) async fn allowed_body<T: serde::de::DeserializeOwned>(
    caller: &Caller,
    (resource, action): (Resource, Action),
    body: Body,
) -> Result<T, FlatError> {
    caller.may(resource, action).map_err(Refusal::from)?;
    let bytes = body::read(body).await?;
    Ok(body::object(&bytes)?)
}

async fn create_key(Call { stele, caller }: Call, body: Body) -> Answer {
    let wanted: CreateKey = allowed_body(&caller, (Resource::ApiKey, Action::Create), body).await?;
    let user = wanted.user.clone();
    let issued = stele.key_create(&caller, wanted.parse()?).await?;
    let view = KeyView::of(&issued.key, user, Some(issued.secret.reveal()));
    Ok((StatusCode::CREATED, [("cache-control", "no-store")], Json(view)).into_response())
}

/// Any credential may ask this of itself.
async fn show_self(Call { caller, .. }: Call) -> Answer {
    Ok(Json(SelfView::of(&caller)).into_response())
}

async fn list_keys(Call { stele, caller }: Call) -> Answer {
    let keys = stele.key_list(&caller).await?;
    let mut holders = stele.key_holders(&caller, &keys).await?;
    let api_keys = keys.iter().map(|key| KeyView::of(key, holders.remove(&key.id), None)).collect();
    Ok(Json(KeysView { api_keys }).into_response())
}

async fn revoke_key(Call { stele, caller }: Call, Path(id): Path<String>) -> Answer {
    caller.may(Resource::ApiKey, Action::Delete).map_err(Refusal::from)?;
    let id = KeyId::parse(&id).ok_or_else(|| FlatError::malformed_id("api_key_id"))?;
    stele.key_revoke(&caller, id).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn create_session_token(Call { stele, caller }: Call, Path(id): Path<String>, body: Body) -> Answer {
    caller.may(Resource::SessionToken, Action::Create).map_err(Refusal::from)?;
    let id = SessionId::parse(&id).ok_or_else(|| FlatError::malformed_id("session_id"))?;
    let bytes = body::read(body).await?;
    if !body::is_empty(&bytes) {
        body::object::<NoFields>(&bytes).map(|NoFields {}| ())?;
    }
    let secret = stele.session_token_create(&caller, id).await?;
    let view = TokenView { token: secret.reveal().to_owned() };
    Ok((StatusCode::CREATED, [("cache-control", "no-store")], Json(view)).into_response())
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CreateWorkspace {
    /// 1 to 255 characters, no control characters.
    #[schemars(length(min = 1, max = 255), regex(pattern = PRINTABLE))]
    name: String,
    /// Instead of the server's cap.
    #[schemars(range(min = 1, max = i64::MAX as u64))]
    max_memories_per_store: Option<u64>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct UpdateWorkspace {
    /// 1 to 255 characters, no control characters.
    #[schemars(length(min = 1, max = 255), regex(pattern = PRINTABLE))]
    name: Option<String>,
    /// `null` goes back to the server's cap.
    #[serde(default, deserialize_with = "body::given")]
    #[schemars(with = "Option<u64>", range(min = 1, max = i64::MAX as u64))]
    max_memories_per_store: Option<Option<u64>>,
}

/// A workspace, its admin key only where it was just made.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Workspace")]
struct WorkspaceView {
    workspace_id: String,
    name: String,
    created_at: String,
    /// Absent where the server's cap counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    max_memories_per_store: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Workspaces")]
struct WorkspacesView {
    workspaces: Vec<WorkspaceView>,
}

impl WorkspaceView {
    fn of(workspace: &Workspace, key: Option<String>) -> Self {
        Self {
            workspace_id: workspace.id.to_string(),
            name: workspace.name.as_str().to_owned(),
            created_at: workspace.created_at.to_string(),
            max_memories_per_store: workspace.max_memories_per_store,
            key,
        }
    }
}

async fn create_workspace(Call { stele, caller }: Call, body: Body) -> Answer {
    let wanted: CreateWorkspace = allowed_body(&caller, (Resource::Workspace, Action::Create), body).await?;
    let new = NewWorkspace {
        name: parse_name(&wanted.name)?,
        max_memories_per_store: parse_cap(wanted.max_memories_per_store)?,
    };
    let (workspace, issued) = stele.workspace_create(&caller, new).await?;
    let view = WorkspaceView::of(&workspace, Some(issued.secret.reveal().to_owned()));
    Ok((StatusCode::CREATED, [("cache-control", "no-store")], Json(view)).into_response())
}

async fn update_workspace(Call { stele, caller }: Call, Path(id): Path<String>, body: Body) -> Answer {
    let wanted: UpdateWorkspace = allowed_body(&caller, (Resource::Workspace, Action::Update), body).await?;
    let id = WorkspaceId::parse(&id).ok_or_else(|| FlatError::malformed_id("workspace_id"))?;
    let patch = WorkspacePatch {
        name: wanted.name.as_deref().map(parse_name).transpose()?,
        max_memories_per_store: wanted.max_memories_per_store.map(parse_cap).transpose()?,
    };
    let workspace = stele.workspace_update(&caller, id, patch).await?;
    Ok(Json(WorkspaceView::of(&workspace, None)).into_response())
}

/// A cap of zero would lock every store; one beyond SQL's integers no back end can keep.
fn parse_cap(cap: Option<u64>) -> Result<Option<u64>, Refusal> {
    match cap {
        Some(cap) if cap == 0 || i64::try_from(cap).is_err() => {
            Err(Refusal::shape("max_memories_per_store", format!("must be from 1 to {}", i64::MAX)))
        }
        cap => Ok(cap),
    }
}

async fn list_workspaces(Call { stele, caller }: Call) -> Answer {
    let workspaces = stele.workspace_list(&caller).await?;
    let workspaces = workspaces.iter().map(|workspace| WorkspaceView::of(workspace, None)).collect();
    Ok(Json(WorkspacesView { workspaces }).into_response())
}
