//! Runs of automations. spec/recursion.md 11.5.

use axum::body::Body;
use axum::http::StatusCode;
use serde_json::json;
use stele_core::access::{Action, Resource};
use stele_core::list::Created;
use stele_core::refusal::Refusal;
use stele_core::service::RunQuery;
use stele_core::time::Timestamp;
use stele_core::work::Fields;
use stele_core::work::run::Run;
use stele_http::cursor::created_key;
use stele_http::query::Query;

use super::{Page, one_code, page, view};
use crate::context::{Answer, Call, query_id};
use crate::fields::{nothing_left, take};
use crate::once::{self, Key, Success};
use crate::view::shown;

const CAUSES: [&str; 5] = ["manual", "schedule", "webhook", "slack", "github"];
/// A run is never seen pending: it is written down with its session.
const STATUSES: [&str; 3] = ["pending", "created", "failed"];

fn ran(run: &Run) -> Success {
    Success::of(StatusCode::OK, &view::run(run)).at(view::run_path(run))
}

pub(crate) async fn run(call: Call, body: Body) -> Answer {
    call.may(Resource::Automation, Action::Update)?;
    let (raw, body) = call.raw_object::<Fields>(body).await.map_err(one_code)?;
    let id = call.id("automation_id")?;
    let once = once::once(&call, Key::Required, &raw, ran)?;
    let mut body = body?;
    let payload = take(&mut body, "payload");
    body.remove("payload");
    nothing_left(&body, "")?;
    once::answer(call.stele.automation_run(&call.caller, id, payload, once).await?, ran)
}

pub(crate) async fn retrieve(call: Call) -> Answer {
    call.may(Resource::Automation, Action::Read)?;
    let run = call.stele.run_get(&call.caller, call.id("automation_run_id")?).await?;
    Ok(shown(&view::run(&run)))
}

fn word(query: &Query, name: &str, words: &[&'static str]) -> Result<Option<&'static str>, Refusal> {
    let Some(text) = query.get(name) else { return Ok(None) };
    let found = words.iter().find(|word| **word == text);
    found
        .map(|word| Some(*word))
        .ok_or_else(|| Refusal::shape(name, format!("must be one of {}", words.join(", "))))
}

pub(crate) async fn list(call: Call) -> Answer {
    call.may(Resource::Automation, Action::Read)?;
    let query = call.query()?;
    // `from` and `to` are both within; the query's end is not.
    let before = query.time("createdAtLt")?.map(|end| Timestamp::from_micros(end.as_micros() - 1));
    let mut wanted = RunQuery {
        automation: query_id(&query, "automationId")?,
        trigger: query_id(&query, "triggerId")?,
        cause: word(&query, "triggerType", &CAUSES)?,
        ran: word(&query, "status", &STATUSES)?,
        created: Created { from: query.time("createdAtGte")?, to: before },
        after: None,
        limit: 0,
    };
    let Page { limit, list, after } = page(&call, &query, &format!("runs {wanted:?}"))?;
    (wanted.limit, wanted.after) = (limit, after);
    let (found, total) = call.stele.run_list(&call.caller, &wanted).await?;
    let items: Vec<_> = found.items.iter().map(view::run_row).collect();
    let last = found.items.last().filter(|_| found.more);
    let next = last.map(|last| list.cursor(&created_key((last.created_at, *last.id.as_bytes()))));
    Ok(shown(&json!({"items": items, "nextCursor": next, "total": total})))
}
