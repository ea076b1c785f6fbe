//! `/v1/sessions/{id}/threads`: each session has one thread, its primary one. spec/anthropic.md 9.

use axum::body::Body;
use schemars::JsonSchema;
use serde::Serialize;
use stele_core::access::{Action, Resource};
use stele_core::id::SessionId;
use stele_core::refusal::Refusal;
use stele_core::work::refusal::WorkRefusal;
use stele_core::work::session::{SessionStatus, Whole};
use stele_http::reply::{bytes, json};
use stele_http::request::base58;

use crate::agents::DefinitionView;
use crate::error::ApiError;
use crate::id::Prefixed;
use crate::view::PageView;
use crate::work::{Answer, WorkCall};
use crate::{events, stream};

/// A session's thread.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "SessionThread")]
pub(crate) struct ThreadView {
    id: String,
    r#type: &'static str,
    session_id: String,
    agent: DefinitionView,
    status: &'static str,
    parent_thread_id: Option<String>,
    workflow_run_id: Option<String>,
    stats: Option<String>,
    usage: Option<String>,
    created_at: String,
    updated_at: String,
    archived_at: Option<String>,
}

impl ThreadView {
    fn of(whole: &Whole) -> Self {
        Self {
            id: primary(whole.session.id),
            r#type: "session_thread",
            session_id: whole.session.id.spell(),
            agent: DefinitionView::of(&whole.session.agent),
            status: whole.state.status.as_str(),
            parent_thread_id: None,
            workflow_run_id: None,
            stats: None,
            usage: None,
            created_at: whole.session.created_at.to_string(),
            updated_at: whole.updated_at().to_string(),
            archived_at: whole.session.archived_at.map(|at| at.to_string()),
        }
    }
}

/// The id of a session's primary thread: the session's own, under another prefix.
fn primary(session: SessionId) -> String {
    format!("sthr_01{}", base58(session.raw()))
}

impl WorkCall {
    /// The session in the address, whose thread is there too.
    fn thread(&self) -> Result<SessionId, ApiError> {
        let session = self.session()?;
        if self.param("thread") == primary(session) {
            return Ok(session);
        }
        Err(Refusal::from(WorkRefusal::ThreadNotFound).into())
    }
}

pub(crate) async fn list(call: WorkCall) -> Answer {
    call.query.number("limit", 1, 1000, 100)?;
    let whole = call.stele.session_get(&call.caller, call.session()?).await?;
    let statuses = call.query.all("statuses").map(|name| {
        let problem = "must be some of idle, running, rescheduling and terminated";
        SessionStatus::parse(name).ok_or_else(|| Refusal::shape("statuses", problem))
    });
    let statuses = statuses.collect::<Result<Vec<_>, _>>()?;
    let shown = statuses.is_empty() || statuses.contains(&whole.state.status);
    let data = shown.then(|| ThreadView::of(&whole)).into_iter().collect();
    Ok(json(bytes(&PageView { data, next_page: None })))
}

pub(crate) async fn retrieve(call: WorkCall) -> Answer {
    let whole = call.stele.session_get(&call.caller, call.thread()?).await?;
    Ok(json(bytes(&ThreadView::of(&whole))))
}

pub(crate) async fn archive(call: WorkCall, body: Body) -> Answer {
    let id = call.thread()?;
    call.may(Resource::Session, Action::Archive)?;
    call.no_fields(body).await?;
    call.stele.session_get(&call.caller, id).await?;
    Err(ApiError::invalid("the primary thread ends with its session: archive the session"))
}

pub(crate) async fn events(call: WorkCall) -> Answer {
    let id = call.thread()?;
    events::list_of(&call, id).await
}

pub(crate) async fn stream(call: WorkCall) -> Answer {
    let id = call.thread()?;
    stream::stream_of(&call, id).await
}
