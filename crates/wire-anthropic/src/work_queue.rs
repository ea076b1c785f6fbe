//! `/v1/environments/{env}/work`: the queue that workers of self-hosted environments speak. spec/anthropic.md 12.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::body::Body;
use axum::http::HeaderValue;
use axum::http::header::CACHE_CONTROL;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use stele_core::access::{Action, Resource};
use stele_core::refusal::Refusal;
use stele_core::time::Timestamp;
use stele_core::work::Fields;
use stele_core::work::item::WorkItem;
use stele_http::cursor::List;
use stele_http::reply::{bytes, json};
use tokio::time::{Instant, timeout_at};

use crate::id::Prefixed;
use crate::stores::{Pairs, bounded_metadata, parse_metadata};
use crate::work::{Answer, WorkCall, page, pairs};

/// How long a poll waits at most before it looks again: another server's queue grows unheard.
const LOOK: Duration = Duration::from_millis(250);
/// The longest time after which an unacknowledged item is offered again, in milliseconds.
const RECLAIM: usize = 86_400_000;
/// Longest name that a worker gives itself.
const WORKER: usize = 256;

/// An item of the queue; its secret only where it is offered.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Work")]
pub(crate) struct WorkView {
    id: String,
    r#type: &'static str,
    environment_id: String,
    data: Fields,
    state: &'static str,
    metadata: BTreeMap<String, String>,
    secret: Option<String>,
    created_at: String,
    acknowledged_at: Option<String>,
    started_at: Option<String>,
    latest_heartbeat_at: Option<String>,
    stop_requested_at: Option<String>,
    stopped_at: Option<String>,
}

impl WorkView {
    fn of(item: &WorkItem, secret: Option<String>) -> Self {
        let time = |at: Option<Timestamp>| at.map(|at| at.to_string());
        let data = [("type", "session".to_owned()), ("id", item.session.spell())];
        Self {
            id: item.id.spell(),
            r#type: "work",
            environment_id: item.environment.spell(),
            data: data.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect(),
            state: item.state.as_str(),
            metadata: pairs(&item.metadata),
            secret,
            created_at: item.created_at.to_string(),
            acknowledged_at: time(item.acknowledged_at),
            started_at: time(item.started_at),
            latest_heartbeat_at: time(item.last_heartbeat),
            stop_requested_at: time(item.stop_requested_at),
            stopped_at: time(item.stopped_at),
        }
    }
}

pub(crate) async fn poll(call: WorkCall) -> Answer {
    let environment = call.environment()?;
    call.may(Resource::WorkItem, Action::Claim)?;
    let block = match call.query.get("block_ms") {
        None => 0,
        Some(_) => call.query.number("block_ms", 1, 999, 1)?,
    };
    let reclaim = call.query.number("reclaim_older_than_ms", 0, RECLAIM, 5_000)? as u64;
    let worker = call.headers().get("anthropic-worker-id").and_then(|value| value.to_str().ok());
    let worker = worker.filter(|name| name.len() <= WORKER);
    let end = Instant::now() + Duration::from_millis(block as u64);
    let mut queue = call.stele.work_watch(environment);
    loop {
        if let Some(offer) = call.stele.work_poll(&call.caller, environment, worker, reclaim).await? {
            let payload = json!({"sessions_token": offer.token.reveal()});
            let secret = URL_SAFE_NO_PAD.encode(payload.to_string());
            let mut response = json(bytes(&WorkView::of(&offer.item, Some(secret))));
            response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
            return Ok(response);
        }
        if Instant::now() >= end {
            return Ok(json(bytes(&())));
        }
        // Woken or not: look again.
        let _ = timeout_at(end.min(Instant::now() + LOOK), queue.changed()).await;
    }
}

pub(crate) async fn acknowledge(call: WorkCall, body: Body) -> Answer {
    let (environment, id) = (call.environment()?, call.work_item()?);
    call.may(Resource::WorkItem, Action::Claim)?;
    call.no_fields(body).await?;
    let item = call.stele.work_acknowledge(&call.caller, environment, id).await?;
    Ok(json(bytes(&WorkView::of(&item, None))))
}

/// What a heartbeat answers.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "WorkHeartbeat")]
pub(crate) struct BeatView {
    r#type: &'static str,
    last_heartbeat: String,
    lease_extended: bool,
    state: &'static str,
    ttl_seconds: u64,
}

pub(crate) async fn heartbeat(call: WorkCall, body: Body) -> Answer {
    let (environment, id) = (call.environment()?, call.work_item()?);
    call.may(Resource::WorkItem, Action::Heartbeat)?;
    call.no_fields(body).await?;
    let ttl = call
        .query
        .get("desired_ttl_seconds")
        .map(|_| call.query.number("desired_ttl_seconds", 1, RECLAIM, 1).map(|secs| secs as u64));
    let expected = call.query.get("expected_last_heartbeat").ok_or_else(|| {
        Refusal::shape("expected_last_heartbeat", "is required: NO_HEARTBEAT, or what the last one answered")
    })?;
    let beat = call.stele.work_heartbeat(&call.caller, environment, id, expected, ttl.transpose()?).await?;
    Ok(json(bytes(&BeatView {
        r#type: "work_heartbeat",
        last_heartbeat: beat.last_heartbeat,
        lease_extended: beat.extended,
        state: beat.state.as_str(),
        ttl_seconds: beat.ttl_seconds,
    })))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct StopWork {
    /// Now, not when its worker hears of it.
    force: Option<bool>,
}

pub(crate) async fn stop(call: WorkCall, body: Body) -> Answer {
    let (environment, id) = (call.environment()?, call.work_item()?);
    let wanted: StopWork = call.body(Resource::WorkItem, Action::Stop, body).await?;
    let force = wanted.force.unwrap_or(false);
    let item = call.stele.work_stop(&call.caller, environment, id, force).await?;
    Ok(json(bytes(&WorkView::of(&item, None))))
}

pub(crate) async fn retrieve(call: WorkCall) -> Answer {
    let item = call.stele.work_get(&call.caller, call.environment()?, call.work_item()?).await?;
    Ok(json(bytes(&WorkView::of(&item, None))))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UpdateWork {
    #[schemars(transform = bounded_metadata)]
    metadata: Option<Pairs>,
}

pub(crate) async fn update(call: WorkCall, body: Body) -> Answer {
    let (environment, id) = (call.environment()?, call.work_item()?);
    let wanted: UpdateWork = call.body(Resource::WorkItem, Action::Update, body).await?;
    let metadata = parse_metadata(wanted.metadata)?;
    let item = call.stele.work_update(&call.caller, environment, id, metadata).await?;
    Ok(json(bytes(&WorkView::of(&item, None))))
}

pub(crate) async fn list(call: WorkCall) -> Answer {
    let environment = call.environment()?;
    let limit = call.query.number("limit", 1, 1000, 100)?;
    let list = List::new(&["anthropic work", &environment.spell()]);
    let after = call.after(&list)?;
    let found = call.stele.work_list(&call.caller, environment, after, limit).await?;
    let last = found.items.last().map(|item| (item.created_at, *item.id.as_bytes()));
    Ok(page(&list, found.more, last, found.items.iter().map(|item| WorkView::of(item, None)).collect()))
}

/// What there is in a queue.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "WorkQueueStats")]
pub(crate) struct StatsView {
    r#type: &'static str,
    depth: u64,
    pending: u64,
    oldest_queued_at: Option<String>,
    workers_polling: Option<u64>,
}

pub(crate) async fn stats(call: WorkCall) -> Answer {
    let stats = call.stele.work_stats(&call.caller, call.environment()?).await?;
    Ok(json(bytes(&StatsView {
        r#type: "work_queue_stats",
        depth: stats.depth,
        pending: stats.pending,
        oldest_queued_at: stats.oldest_queued_at.map(|at| at.to_string()),
        workers_polling: Some(stats.workers_polling),
    })))
}
