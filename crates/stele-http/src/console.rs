//! Signing in at the console, and what it needs beside the public API: who am I, who may do what, whose writes are
//! whose. DESIGN 6 and 13.
//!
//! The cookie holds a secret of its own, never the key. What it opens is looked up like any credential, so it works on
//! every process of a database and ends with its key.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::header::{CACHE_CONTROL, ORIGIN, SET_COOKIE};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stele_core::access::{Action, Caller, Grant, Permission, Resource, Role, requirement};
use stele_core::id::AutomationId;
use stele_core::refusal::Refusal;
use stele_core::service::Stele;

use crate::auth::{Unknown, asked_by_console, console_cookie, console_cookie_name};
use crate::body;
use crate::flat::{self, FlatError};
use crate::openapi::{Endpoint, Family, Param};
use crate::own::{Answer, Call};

static CONSOLE: Family = Family {
    tag: "Console",
    about: "Signing in with a key, for the console's own pages. Requests carry the header `stele-console: 1` and come \
            from the server's own origin.",
    headers: Vec::new,
    error: flat::schema,
    statuses: &[400, 401, 403, 500, 503],
    keyed: false,
};

static WHO: Family = Family {
    tag: "Who may do what",
    about: "For any API key, at the console or not.",
    headers: Vec::new,
    error: flat::schema,
    statuses: &[400, 401, 403, 500, 503],
    keyed: true,
};

static AUTOMATIONS: Family = Family {
    tag: "Automations",
    about: "Automations themselves are of the Recursion dialect.",
    headers: Vec::new,
    error: flat::schema,
    statuses: &[400, 401, 403, 404, 500, 503],
    keyed: true,
};

/// The routes with what is said of them.
pub(crate) fn endpoints() -> Vec<Endpoint> {
    let session = "/stele/v1/console/session";
    vec![
        Endpoint::new(Method::POST, session, "sign_in", &CONSOLE, sign_in)
            .about("Sign in with a key: sets the cookie.")
            .takes::<SignIn>()
            .answers::<WhoamiView>(201)
            .or(&[408, 413]),
        Endpoint::new(Method::GET, session, "whoami", &WHO, whoami)
            .about("Tell who asks: the key, its workspace and what it may do.")
            .answers::<WhoamiView>(200),
        Endpoint::new(Method::DELETE, session, "sign_out", &CONSOLE, sign_out)
            .about("Sign out: the cookie opens nothing any more, on any server.")
            .answers_plain(204, ""),
        Endpoint::new(Method::GET, "/stele/v1/permissions", "list_permissions", &WHO, permissions)
            .about("The table of what each action needs, and what each role comes to.")
            .answers::<PermissionsView>(200),
        Endpoint::new(Method::GET, "/stele/v1/users", "list_users", &WHO, users)
            .about("The people that keys have named, for reading history.")
            .answers::<UsersView>(200),
        Endpoint::new(
            Method::GET,
            "/stele/v1/automations/{automation_id}/memory_note",
            "get_automation_memory_note",
            &AUTOMATIONS,
            automation_note,
        )
        .about("Show the note about memory that the automation's next session gets.")
        .params([Param::path(
            "automation_id",
            "The automation's id.",
            serde_json::json!({"type": "string", "format": "uuid"}),
        )])
        .answers::<NoteView>(200)
        .or(&[422]),
    ]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SignIn {
    /// An API key.
    key: String,
}

/// Who asks.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Whoami")]
struct WhoamiView {
    api_key_id: String,
    name: String,
    /// Absent where the key has an explicit set of permissions.
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
    permissions: Vec<&'static str>,
    workspace_id: String,
    workspace_name: String,
    /// Whether the workspace is the installation's first, whose admins run it.
    first_workspace: bool,
    /// The cap of memories of each store.
    max_memories_per_store: u64,
    /// Longest content, in bytes.
    max_content_bytes: usize,
    /// Longest summary, in characters.
    max_summary_chars: usize,
    /// The person that the key names.
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<UserView>,
}

/// A person that a key names.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "User")]
struct UserView {
    user_id: String,
    name: String,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Users")]
struct UsersView {
    users: Vec<UserView>,
}

/// A note about memory.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "AutomationMemoryNote")]
struct NoteView {
    /// Null before the agent's first session, which makes the learned store that stands in the note.
    text: Option<String>,
}

/// What a role comes to.
#[derive(Serialize, JsonSchema)]
struct RoleView {
    role: &'static str,
    permissions: Vec<&'static str>,
}

/// What an action on a resource needs: a permission, or `admin`, `installation_admin` or `worker`.
#[derive(Serialize, JsonSchema)]
struct RequirementView {
    #[schemars(with = "String")]
    resource: Resource,
    #[schemars(with = "String")]
    action: Action,
    needs: &'static str,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "PermissionTable")]
struct PermissionsView {
    roles: Vec<RoleView>,
    actions: Vec<RequirementView>,
}

impl WhoamiView {
    async fn of(stele: &Stele, caller: &Caller) -> Result<Self, FlatError> {
        let who = stele.whoami(caller).await?;
        let limits = stele.limits();
        Ok(Self {
            api_key_id: who.key.id.to_string(),
            name: who.key.name.as_str().to_owned(),
            role: match who.key.grant {
                Grant::Role(role) => Some(role.as_str()),
                Grant::Permissions(_) => None,
            },
            permissions: who.key.grant.permissions().iter().map(Permission::as_str).collect(),
            workspace_id: who.workspace.id.to_string(),
            workspace_name: who.workspace.name.as_str().to_owned(),
            first_workspace: who.first_workspace,
            max_memories_per_store: who.workspace.max_memories_per_store.unwrap_or(limits.memories_per_store),
            max_content_bytes: limits.content_bytes,
            max_summary_chars: limits.summary_chars,
            user: who.person.map(|person| UserView { user_id: person.person.to_string(), name: person.name }),
        })
    }
}

/// Refuses what another page than the console's sends: it could sign a person in as somebody else, or out.
fn own_page(headers: &HeaderMap) -> Result<(), FlatError> {
    if asked_by_console(headers) {
        return Ok(());
    }
    let text =
        "only the console's own page may ask this: it sends `stele-console: 1` from the server's own origin";
    Err(FlatError::new(StatusCode::FORBIDDEN, "forbidden", text))
}

/// The `set-cookie` that keeps `secret` for `seconds`; 0 removes it. `Secure` where the browser says that the page came
/// over TLS, whoever ended it.
fn cookie(headers: &HeaderMap, secret: &str, seconds: i64) -> String {
    let name = console_cookie_name(headers);
    let over_tls = headers.get(ORIGIN).is_some_and(|origin| origin.as_bytes().starts_with(b"https://"));
    let secure = if over_tls { "; Secure" } else { "" };
    format!("{name}={secret}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}")
}

async fn sign_in(State(stele): State<Arc<Stele>>, headers: HeaderMap, body: Body) -> Answer {
    own_page(&headers)?;
    let bytes = body::read(body).await?;
    let SignIn { key } = body::object(&bytes)?;
    let signed_in = stele.console_sign_in(key.trim()).await?;
    let signed_in = signed_in.ok_or(Unknown::Unauthenticated)?;
    // Whoever signs in again leaves no cookie behind that still opens something.
    if let Some(before) = console_cookie(&headers) {
        stele.console_sign_out(before).await?;
    }
    let who = WhoamiView::of(&stele, &signed_in.caller).await?;
    let left = signed_in.expires_at.as_micros() - stele.now().as_micros();
    let seconds = (left / 1_000_000).max(0);
    let set = [
        (SET_COOKIE, cookie(&headers, signed_in.secret.reveal(), seconds)),
        (CACHE_CONTROL, "no-store".into()),
    ];
    Ok((StatusCode::CREATED, set, Json(who)).into_response())
}

async fn whoami(Call { stele, caller }: Call) -> Answer {
    let who = WhoamiView::of(&stele, &caller).await?;
    Ok(([(CACHE_CONTROL, "no-store")], Json(who)).into_response())
}

async fn sign_out(State(stele): State<Arc<Stele>>, headers: HeaderMap) -> Answer {
    own_page(&headers)?;
    if let Some(secret) = console_cookie(&headers) {
        stele.console_sign_out(secret).await?;
    }
    Ok((StatusCode::NO_CONTENT, [(SET_COOKIE, cookie(&headers, "", 0))]).into_response())
}

async fn permissions(Call { .. }: Call) -> Response {
    let roles = Role::ALL.map(|role| RoleView {
        role: role.as_str(),
        permissions: role.permissions().iter().map(Permission::as_str).collect(),
    });
    let each = Resource::ALL.into_iter().flat_map(|resource| Action::ALL.map(|action| (resource, action)));
    let actions = each
        .filter_map(|(resource, action)| {
            let needs = requirement(resource, action)?.as_str();
            Some(RequirementView { resource, action, needs })
        })
        .collect();
    Json(PermissionsView { roles: roles.into(), actions }).into_response()
}

async fn users(Call { stele, caller }: Call) -> Answer {
    let people = stele.person_list(&caller).await?;
    let users =
        people.into_iter().map(|person| UserView { user_id: person.id.to_string(), name: person.name });
    Ok(Json(UsersView { users: users.collect() }).into_response())
}

async fn automation_note(Call { stele, caller }: Call, Path(id): Path<String>) -> Answer {
    caller.may(Resource::Automation, Action::Read).map_err(Refusal::from)?;
    let id = AutomationId::parse(&id).ok_or_else(|| FlatError::malformed_id("automation_id"))?;
    let text = stele.automation_memory_note(&caller, id).await?;
    Ok(Json(NoteView { text }).into_response())
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn the_cookie_is_kept_from_scripts_and_other_sites_and_secure_under_tls() {
        let mut headers = HeaderMap::new();
        headers.insert("host", HeaderValue::from_static("127.0.0.1:7878"));
        let plain = cookie(&headers, "scs_x", 60);
        assert_eq!(plain, "stele_console_7878=scs_x; Path=/; Max-Age=60; HttpOnly; SameSite=Strict");
        headers.insert("host", HeaderValue::from_static("stele.example"));
        headers.insert("origin", HeaderValue::from_static("https://stele.example"));
        let secure = cookie(&headers, "scs_x", 60);
        assert_eq!(secure, "stele_console=scs_x; Path=/; Max-Age=60; HttpOnly; SameSite=Strict; Secure");
    }
}
