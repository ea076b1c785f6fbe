//! Backups under `/stele/v1/backups`, for admins of the first workspace. DESIGN 14.
//!
//! Making and scrubbing go on after their answer; whoever wants to know how it went asks again.

use std::path::PathBuf;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::Path;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json, Router};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stele_core::access::{Action, Resource};
use stele_core::backup::{BackupError, BackupStanding, Keeper, Progress};
use stele_core::id::BackupId;
use stele_core::refusal::Refusal;
use stele_core::service::Stele;

use crate::flat::{self, FlatError};
use crate::openapi::{self, Endpoint, Family, Param};
use crate::own::{Call, allowed_body};

type Answer = Result<Response, FlatError>;
type Kept = Extension<Arc<dyn Keeper>>;

static BACKUPS: Family = Family {
    tag: "Backups",
    about: "For admins of the first workspace. Directories are those of the machine that the server runs on.",
    headers: Vec::new,
    error: flat::schema,
    statuses: &[400, 401, 403, 500, 503],
    keyed: true,
};

/// The routes, with `keeper` behind them.
pub fn routes(stele: Arc<Stele>, keeper: Arc<dyn Keeper>) -> Router {
    openapi::router(endpoints(), "").layer(Extension(keeper)).with_state(stele)
}

pub(crate) fn endpoints() -> Vec<Endpoint> {
    let (all, one) = ("/stele/v1/backups", "/stele/v1/backups/{backup_id}");
    let id = || {
        let uuid = serde_json::json!({"type": "string", "format": "uuid"});
        [Param::path("backup_id", "The backup's id.", uuid)]
    };
    vec![
        Endpoint::new(Method::GET, all, "list_backups", &BACKUPS, list)
            .about("List the managed backups, oldest first, and how many redactions each does not know.")
            .answers::<BackupsView>(200),
        Endpoint::new(Method::POST, all, "create_backup", &BACKUPS, create)
            .about("Begin a backup of the whole installation.")
            .takes::<CreateBackup>()
            .answers::<BegunView>(202)
            .or(&[408, 409, 413]),
        Endpoint::new(Method::GET, one, "get_backup", &BACKUPS, get)
            .about("Say how a backup is, or how it is going.")
            .params(id())
            .answers::<StateView>(200)
            .or(&[404]),
        Endpoint::new(Method::POST, "/stele/v1/backups/{backup_id}/scrub", "scrub_backup", &BACKUPS, scrub)
            .about("Begin to rewrite a backup without what was redacted since.")
            .params(id())
            .answers::<BegunView>(202)
            .or(&[404, 409]),
        Endpoint::new(Method::DELETE, one, "forget_backup", &BACKUPS, forget)
            .about("Forget a backup; its files stay where they are.")
            .params(id())
            .answers_plain(204, "")
            .or(&[404]),
    ]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CreateBackup {
    /// An absolute path of a directory on the server's machine; the backup becomes a directory in it.
    #[schemars(regex(pattern = r"^/[^\u0000]+$"))]
    to: String,
}

/// A managed backup.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Backup")]
struct BackupView {
    backup_id: String,
    /// The machine that it was written on.
    host: String,
    path: String,
    made_at: String,
    versions: u64,
    bytes: u64,
    /// Redactions made since, whose texts it may still hold.
    unapplied_redactions: u64,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Backups")]
struct BackupsView {
    backups: Vec<BackupView>,
}

/// What has begun.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "BackupBegun")]
struct BegunView {
    backup_id: String,
    #[schemars(extend("enum" = ["making", "scrubbing"]))]
    state: &'static str,
}

/// How a backup is.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "BackupState")]
struct StateView {
    backup_id: String,
    #[schemars(extend("enum" = ["making", "scrubbing", "made", "failed"]))]
    state: &'static str,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// Absent until it is made.
    #[serde(skip_serializing_if = "Option::is_none")]
    backup: Option<BackupView>,
}

impl BackupView {
    fn of(standing: BackupStanding) -> Self {
        let BackupStanding { record, unapplied } = standing;
        Self {
            backup_id: record.id.to_string(),
            host: record.host,
            path: record.path,
            made_at: record.made_at.to_string(),
            versions: record.versions,
            bytes: record.bytes,
            unapplied_redactions: unapplied,
        }
    }
}

impl From<BackupError> for FlatError {
    fn from(error: BackupError) -> Self {
        let message = error.to_string();
        match error {
            BackupError::Storage(error) => error.into(),
            BackupError::Busy => Self::new(StatusCode::CONFLICT, "conflict", message),
            BackupError::NotFound(_) => Self::new(StatusCode::NOT_FOUND, "not_found", message),
            BackupError::Elsewhere(_) => Self::new(StatusCode::CONFLICT, "conflict", message).on("backup_id"),
        }
    }
}

fn id(text: &str) -> Result<BackupId, FlatError> {
    BackupId::parse(text).ok_or_else(|| FlatError::malformed_id("backup_id"))
}

fn begun(id: BackupId, state: &'static str) -> Response {
    let view = BegunView { backup_id: id.to_string(), state };
    (StatusCode::ACCEPTED, Json(view)).into_response()
}

async fn list(Call { caller, .. }: Call, Extension(keeper): Kept) -> Answer {
    caller.may(Resource::Backup, Action::Read).map_err(Refusal::from)?;
    let backups = keeper.list().await?.into_iter().map(BackupView::of).collect();
    Ok(Json(BackupsView { backups }).into_response())
}

async fn create(Call { caller, .. }: Call, Extension(keeper): Kept, body: Body) -> Answer {
    let wanted: CreateBackup = allowed_body(&caller, (Resource::Backup, Action::Create), body).await?;
    let id = keeper.begin(PathBuf::from(wanted.to)).await?;
    Ok(begun(id, "making"))
}

async fn get(Call { caller, .. }: Call, Extension(keeper): Kept, Path(text): Path<String>) -> Answer {
    caller.may(Resource::Backup, Action::Read).map_err(Refusal::from)?;
    let id = id(&text)?;
    let progress = keeper.progress(id);
    let backup = keeper.list().await?.into_iter().find(|standing| standing.record.id == id);
    let (state, reason) = match (progress, &backup) {
        (Some(Progress::Making), _) => ("making", None),
        (Some(Progress::Scrubbing), _) => ("scrubbing", None),
        (Some(Progress::Failed(reason)), _) => ("failed", Some(reason)),
        (_, Some(_)) => ("made", None),
        (_, None) => return Err(BackupError::NotFound(id).into()),
    };
    let view = StateView { backup_id: text, state, reason, backup: backup.map(BackupView::of) };
    Ok(Json(view).into_response())
}

async fn scrub(Call { caller, .. }: Call, Extension(keeper): Kept, Path(text): Path<String>) -> Answer {
    caller.may(Resource::Backup, Action::Update).map_err(Refusal::from)?;
    let id = id(&text)?;
    keeper.begin_scrub(id).await?;
    Ok(begun(id, "scrubbing"))
}

async fn forget(Call { caller, .. }: Call, Extension(keeper): Kept, Path(text): Path<String>) -> Answer {
    caller.may(Resource::Backup, Action::Delete).map_err(Refusal::from)?;
    keeper.forget(id(&text)?).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
