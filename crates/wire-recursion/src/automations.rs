//! `/automations` and `/automation-runs`: camelCase, closed bodies, ETags. spec/recursion.md 11.

mod definition;
mod runs;
mod view;

use axum::body::Body;
use axum::http::header::{ETAG, IF_MATCH, IF_NONE_MATCH};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::json;
use stele_core::access::{Action, Resource};
use stele_core::id::AutomationId;
use stele_core::refusal::Refusal;
use stele_core::service::Stele;
use stele_core::work::Fields;
use stele_core::work::automation::Automation;
use stele_http::cursor::{List, created_key, created_position};
use stele_http::flat::FlatError;
use stele_http::query::Query;

use crate::context::{Answer, Call};
use crate::once::{self, Key, Success};
use crate::view::shown;

pub(crate) use runs::{list as list_runs, retrieve as retrieve_run, run};

/// Occasions to come that a status shows.
const UPCOMING: usize = 5;

/// Errors of automations know one code for whatever is wrong with a body. spec/recursion.md 3.2.
fn one_code(mut error: FlatError) -> FlatError {
    if error.code == "invalid_json" {
        error.code = "invalid_request";
    }
    error
}

fn etag(automation: &Automation) -> String {
    format!("\"{}\"", automation.revision)
}

/// Whether a header names this ETag. Weak ones match nothing here.
fn names(call: &Call, header: HeaderName, etag: &str) -> Option<bool> {
    let mut sent = call.headers.get_all(header).iter().peekable();
    sent.peek()?;
    let mut tags = sent.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    Some(tags.any(|tag| matches!(tag.trim(), "*") || tag.trim() == etag))
}

/// The condition that a change carries.
fn if_match(call: &Call) -> Result<impl Fn(u64) -> bool + use<'_>, FlatError> {
    if names(call, IF_MATCH, "").is_none() {
        let message = "If-Match is required: send the ETag that you read";
        let error = FlatError::new(StatusCode::PRECONDITION_REQUIRED, "precondition_required", message);
        return Err(error.on("If-Match"));
    }
    Ok(|revision| names(call, IF_MATCH, &format!("\"{revision}\"")) == Some(true))
}

fn answer(automation: &Automation) -> Response {
    with_etag(shown(&view::automation(automation)), automation)
}

fn with_etag(mut response: Response, automation: &Automation) -> Response {
    if let Ok(etag) = HeaderValue::from_str(&etag(automation)) {
        response.headers_mut().insert(ETAG, etag);
    }
    response
}

fn made(automation: &Automation) -> Success {
    Success::of(StatusCode::CREATED, &view::automation(automation))
        .at(format!("/managed-agents/v1/automations/{}", automation.id))
        .tagged(etag(automation))
}

pub(crate) async fn create(call: Call, body: Body) -> Answer {
    call.may(Resource::Automation, Action::Create)?;
    let (raw, body) = call.raw_object::<Fields>(body).await.map_err(one_code)?;
    let once = once::once(&call, Key::Required, &raw, made)?;
    let wanted = body.and_then(|body| definition::parse(body, call.stele.limits()))?;
    once::answer(call.stele.automation_create(&call.caller, wanted, once).await?, made)
}

/// The page of a list with totals.
struct Page {
    limit: usize,
    list: List,
    after: Option<stele_core::service::Position>,
}

/// Reads the page of a list; `filters` is what its cursors are bound to besides.
fn page(call: &Call, query: &Query, filters: &str) -> Result<Page, Refusal> {
    let limit = query.number("limit", 1, 100, 50)?;
    let organization = call.caller.workspace.to_string();
    let list = List::new(&["recursion automations", &organization, &limit.to_string(), filters]);
    let position = |text: &str| list.key(text).and_then(|key| created_position(&key));
    let after = query.get("cursor").map(position).transpose();
    let after = after.map_err(|_| Refusal::shape("cursor", "is not a cursor of this list"))?;
    Ok(Page { limit, list, after })
}

pub(crate) async fn list(call: Call) -> Answer {
    call.may(Resource::Automation, Action::Read)?;
    let Page { limit, list, after } = page(&call, &call.query()?, "automations")?;
    let found = call.stele.automation_list(&call.caller, after, limit).await?;
    let total = call.stele.automation_count(&call.caller).await?;
    let mut items = Vec::with_capacity(found.items.len());
    for automation in &found.items {
        let latest = call.stele.run_latest(&call.caller, automation.id).await?;
        items.push(view::row(automation, latest.as_ref()));
    }
    let last = found.items.last().filter(|_| found.more);
    let next = last.map(|last| list.cursor(&created_key((last.created_at, *last.id.as_bytes()))));
    Ok(shown(&json!({"items": items, "nextCursor": next, "total": total})))
}

pub(crate) async fn retrieve(call: Call) -> Answer {
    call.may(Resource::Automation, Action::Read)?;
    let automation = call.stele.automation_get(&call.caller, call.id("automation_id")?).await?;
    if names(&call, IF_NONE_MATCH, &etag(&automation)) == Some(true) {
        return Ok(with_etag(StatusCode::NOT_MODIFIED.into_response(), &automation));
    }
    Ok(answer(&automation))
}

pub(crate) async fn replace(call: Call, body: Body) -> Answer {
    call.may(Resource::Automation, Action::Update)?;
    let body = call.object::<Fields>(body).await.map_err(one_code)?;
    let id: AutomationId = call.id("automation_id")?;
    call.stele.automation_judged(&call.caller, id, Action::Update).await?;
    let expected = if_match(&call)?;
    let wanted = body.and_then(|body| definition::parse(body, call.stele.limits()))?;
    Ok(answer(&call.stele.automation_replace(&call.caller, id, expected, wanted).await?))
}

async fn activate(call: Call, body: Body, active: bool) -> Answer {
    call.may(Resource::Automation, Action::Update)?;
    call.no_object(body).await.map_err(one_code)?;
    let id = call.id("automation_id")?;
    call.stele.automation_judged(&call.caller, id, Action::Update).await?;
    let expected = if_match(&call)?;
    Ok(answer(&call.stele.automation_activate(&call.caller, id, expected, active).await?))
}

pub(crate) async fn pause(call: Call, body: Body) -> Answer {
    activate(call, body, false).await
}

pub(crate) async fn resume(call: Call, body: Body) -> Answer {
    activate(call, body, true).await
}

pub(crate) async fn delete(call: Call) -> Answer {
    call.may(Resource::Automation, Action::Delete)?;
    let id = call.id("automation_id")?;
    call.stele.automation_judged(&call.caller, id, Action::Delete).await?;
    let expected = if_match(&call)?;
    call.stele.automation_delete(&call.caller, id, expected).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

pub(crate) async fn status(call: Call) -> Answer {
    call.may(Resource::Automation, Action::Read)?;
    let (automation, timers) = call.stele.automation_timers(&call.caller, call.id("automation_id")?).await?;
    let timer = |timer| view::timer(&automation, timer, &Stele::upcoming(&automation, timer, UPCOMING));
    let triggers: Vec<_> = timers.iter().map(timer).collect();
    Ok(shown(&json!({"automationId": automation.id, "triggers": triggers})))
}
