//! `/v1/sessions/{id}/events`: sending and listing. spec/anthropic.md 8 and 17.2. `stream` follows.

use axum::body::Body;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use stele_core::access::{Action, Resource};
use stele_core::id::{EventId, SessionId};
use stele_core::records::Order;
use stele_core::refusal::Refusal;
use stele_core::service::EventsQuery;
use stele_core::work::Fields;
use stele_core::work::event::{Event, EventKind, NewEvent, kinds};
use stele_http::cursor::{List, sequence_position};
use stele_http::reply::{bytes, json};
use stele_http::request::base58;

use crate::context::{page_cursor, read_cursor};
use crate::id::Prefixed;
use crate::view::PageView;
use crate::work::{Answer, WorkCall, created, order};

/// Most events of one request.
const SENT: usize = 1_000;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SendEvents {
    /// At most 1,000; all are taken or none.
    #[schemars(with = "Vec<Fields>", length(min = 1, max = 1000))]
    events: Vec<Value>,
}

/// The events that were taken, with their ids.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "SentEvents")]
pub(crate) struct SentView {
    data: Vec<Fields>,
}

/// Reads events as they are sent; `recorder` lets those in that only who runs the agent reports.
pub(crate) fn parse_events(at: &str, events: Vec<Value>, recorder: bool) -> Result<Vec<NewEvent>, Refusal> {
    let parse = |(place, event): (usize, Value)| match event {
        Value::Object(fields) => kinds::parse(fields, recorder)
            .map_err(|(field, problem)| Refusal::shape(format!("{at}.{place}.{field}"), problem)),
        _ => Err(Refusal::shape(format!("{at}.{place}"), "must be an object")),
    };
    events.into_iter().enumerate().map(parse).collect()
}

/// An event as it is shown. `taken_up` is its session's.
pub(crate) fn view(event: &Event, taken_up: u64) -> Fields {
    let kind = event.new.kind;
    let mut shown = event.new.fields.clone();
    shown.insert("id".into(), event.new.given_id.clone().unwrap_or_else(|| event.id.spell()).into());
    shown.insert("type".into(), kind.as_str().into());
    let processed_at = event.processed_at(taken_up).map(|at| at.to_string());
    shown.insert("processed_at".into(), processed_at.into());
    if kind == EventKind::DEFINE_OUTCOME {
        shown.insert("outcome_id".into(), format!("outc_01{}", base58(event.id.raw())).into());
    }
    if kind == EventKind::IDLE {
        shown.entry("stop_details").or_insert(Value::Null);
    }
    shown
}

pub(crate) async fn send(call: WorkCall, body: Body) -> Answer {
    let id = call.session()?;
    let recorder = call.records();
    let needed = if recorder { Resource::Recording } else { Resource::Event };
    let sent: SendEvents = call.body(needed, Action::Create, body).await?;
    if sent.events.is_empty() || sent.events.len() > SENT {
        return Err(Refusal::shape("events", format!("must be 1 to {SENT} events")).into());
    }
    let events = parse_events("events", sent.events, recorder)?;
    let (written, state) = call.stele.event_send(&call.caller, id, events, EventId::read).await?;
    let data = written.iter().map(|event| view(event, state.taken_up)).collect();
    Ok(json(bytes(&SentView { data })))
}

pub(crate) async fn list(call: WorkCall) -> Answer {
    let id = call.session()?;
    list_of(&call, id).await
}

/// A page of a session's events.
pub(crate) async fn list_of(call: &WorkCall, id: SessionId) -> Answer {
    let query = &call.query;
    // A type that the vendor has and no event here ever is narrows the list to nothing, not to everything.
    let kinds: Vec<EventKind> = query.all("types").filter_map(EventKind::parse).collect();
    let none = kinds.is_empty() && query.all("types").next().is_some();
    let mut wanted = EventsQuery {
        kinds,
        at: created(query)?,
        order: order(query, Order::OldestFirst)?,
        after: None,
        limit: query.number("limit", 1, 1000, 100)?,
    };
    let filter = format!("{:?} {:?} {:?}", wanted.kinds, wanted.at, wanted.order);
    let list = List::new(&["anthropic events", &id.spell(), &filter]);
    wanted.after = read_cursor(query, &list, |key| sequence_position(&key))?;
    if none {
        call.stele.session_get(&call.caller, id).await?;
        return Ok(json(bytes(&PageView::<Fields> { data: Vec::new(), next_page: None })));
    }
    let (page, state) = call.stele.event_list(&call.caller, id, wanted).await?;
    let last = page.items.last().map(|event| event.sequence.to_be_bytes().to_vec());
    let data = page.items.iter().map(|event| view(event, state.taken_up)).collect();
    Ok(json(bytes(&PageView { data, next_page: page_cursor(&list, page.more, last) })))
}
