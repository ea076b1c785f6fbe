//! Sessions as they are shown. spec/recursion.md 10.5 and 11.4.

use serde_json::{Value, json};
use stele_core::id::WorkspaceId;
use stele_core::service::SKIPPED_STORES;
use stele_core::work::Fields;
use stele_core::work::attachment::Attachment;
use stele_core::work::session::{Outcome, Phase, SessionStatus, Whole};

use super::SOURCES;
use crate::agents::snapshot_view;

/// How much of a session is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detail {
    /// All.
    Full,
    /// Without configuration and snapshots.
    Summary,
}

/// The name of a phase, as statuses are called here.
pub(super) fn status(phase: Phase) -> &'static str {
    match phase {
        Phase::Active => "active",
        Phase::Completed => "completed",
        Phase::Failed => "failed",
        Phase::Cancelled => "cancelled",
    }
}

fn execution_state(whole: &Whole) -> &'static str {
    match whole.state.status {
        _ if whole.has_ended() => "completed",
        SessionStatus::Running => "running",
        SessionStatus::Idle if whole.state.is_going() && whole.state.taken_up == 0 => "queued",
        SessionStatus::Idle if whole.state.is_going() => "running",
        SessionStatus::Idle | SessionStatus::Terminated => "idle",
        SessionStatus::Rescheduling => "queued",
    }
}

fn attachment(attachment: &Attachment) -> Value {
    let mut view = json!({
        "memory_store_id": attachment.store,
        "name": attachment.name,
        "description": attachment.description,
        "slug": attachment.directory,
        "mount_path": attachment.mount_path(),
        "access": attachment.access.as_str(),
        "learned": attachment.learned,
    });
    if let (Some(instructions), Value::Object(view)) = (&attachment.instructions, &mut view) {
        view.insert("instructions".into(), json!(instructions));
    }
    view
}

/// A session.
pub(crate) fn session(organization: WorkspaceId, whole: &Whole, detail: Detail) -> Fields {
    let (session, state) = (&whole.session, &whole.state);
    let mut view = Fields::new();
    let mut put = |name: &str, value: Value| view.insert(name.to_owned(), value);
    put("session_id", json!(session.id));
    put("root_session_id", json!(session.id));
    put("session_path", json!("/"));
    put("organization_id", json!(organization));
    put("kind", json!("api_call"));
    put("status", json!(status(whole.phase())));
    put("execution_state", json!(execution_state(whole)));
    put("computer_use", json!(false));
    put("credential_refs_configured", json!(false));
    put("credential_refs", Value::Null);
    put("agent_id", json!(session.agent.id));
    put("agent_version_id", json!(session.agent.version_id));
    put("effective_model", json!(session.agent.definition.model));
    put("last_activity_at", json!(state.last_at.to_string()));
    put("created_at", json!(session.created_at.to_string()));
    put("updated_at", json!(whole.updated_at().to_string()));
    if let Some(environment) = session.environment {
        put("environment_id", json!(environment));
    }
    if !session.metadata.pairs().is_empty() {
        put("metadata", json!(session.metadata));
    }
    if !session.vaults.is_empty() {
        put("vault_ids", json!(session.vaults));
    }
    for field in SOURCES {
        if let Some(value) = session.extra.get(field) {
            put(field, value.clone());
        }
    }
    if let Some(end) = &state.end {
        put("stop_reason", json!(status(whole.phase())));
        if let Outcome::Failed { code, message } = &end.outcome {
            put(
                "failure",
                json!({
                    "at": end.at.to_string(),
                    "category": "internal",
                    "code": code,
                    "message": message,
                    "phase": "execution",
                    "retryable": false,
                }),
            );
        }
    } else if let Some(reason) = state.stop_reason.as_ref().and_then(|reason| reason.get("type")) {
        put("stop_reason", reason.clone());
    }
    let mut config = Fields::new();
    if detail == Detail::Full {
        let stores: Vec<Value> = session.attachments().map(attachment).collect();
        config.insert("memory_stores".into(), stores.into());
        if let Some(skipped) = session.extra.get(SKIPPED_STORES) {
            config.insert(SKIPPED_STORES.into(), skipped.clone());
        }
        put("agent_snapshot", snapshot_view(organization, &session.agent, session.created_at).into());
    }
    put("config", config.into());
    view
}

/// A session in a list.
pub(super) fn row(organization: WorkspaceId, whole: &Whole) -> Fields {
    let mut view = session(organization, whole, Detail::Summary);
    let eligibility = json!({"eligible": false, "reason": "unsupported_kind"});
    view.insert("evaluation_eligibility".into(), eligibility);
    view.insert("latest_evaluation".into(), Value::Null);
    view
}

/// The one thread of a session, made up from it.
pub(super) fn thread(whole: &Whole) -> Value {
    let session = &whole.session;
    let status = match whole.state.status {
        _ if whole.has_ended() => "terminated",
        SessionStatus::Running | SessionStatus::Rescheduling => "running",
        SessionStatus::Idle | SessionStatus::Terminated => "idle",
    };
    json!({
        "thread_id": session.id,
        "session_id": session.id,
        "root_session_id": session.id,
        "session_path": "/",
        "thread_path": "/",
        "agent_id": session.agent.id,
        "agent_version_id": session.agent.version_id,
        "role": "primary",
        "status": status,
        "created_at": session.created_at.to_string(),
        "updated_at": whole.updated_at().to_string(),
    })
}
