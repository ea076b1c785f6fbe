//! `/sessions/{id}/events`. spec/recursion.md 10.6 and 18 X2.
//!
//! Events are kept as Anthropic spells them; here they are translated both ways.

use axum::body::Body;
use serde_json::{Value, json};
use stele_core::access::{Action, Resource};
use stele_core::id::{AgentId, EventId, SessionId};
use stele_core::list::Created;
use stele_core::records::Order;
use stele_core::refusal::Refusal;
use stele_core::service::EventsQuery;
use stele_core::work::Fields;
use stele_core::work::event::{Event, EventKind, NewEvent, kinds};

use crate::context::{Answer, Call, query_id};
use crate::fields::{missing, object, take, take_bounded, take_flag, take_list, take_object, take_text};
use crate::sessions::READ_EVENT;
use crate::view::shown;

/// Most events of one request.
const SENT: usize = 1_000;
/// Longest name of an actor or a tool, in characters.
const NAME: usize = 256;

/// A message of one text.
pub(crate) fn message(kind: EventKind, text: String) -> NewEvent {
    NewEvent::new(kind, Fields::from_iter([("content".to_owned(), json!([{"type": "text", "text": text}]))]))
}

/// Reads the text or the content blocks of an event; `None` where nothing is in them.
fn blocks(sent: &mut Fields, place: &str) -> Result<Option<Vec<Value>>, Refusal> {
    let text = take_text(sent, "text", &format!("{place}.text"))?;
    let content = match take(sent, "content") {
        None => Vec::new(),
        Some(Value::String(text)) => vec![json!({"type": "text", "text": text})],
        Some(Value::Array(blocks)) => blocks,
        Some(Value::Object(mut content)) => {
            take_list(&mut content, "blocks", &format!("{place}.content.blocks"))?.unwrap_or_default()
        }
        Some(_) => return Err(Refusal::shape(format!("{place}.content"), "must be a list of blocks")),
    };
    let text = text.map(|text| json!({"type": "text", "text": text}));
    let is_empty = |block: &Value| block.get("text").and_then(Value::as_str) == Some("");
    let all: Vec<Value> = text.into_iter().chain(content).filter(|block| !is_empty(block)).collect();
    Ok(Some(all).filter(|all| !all.is_empty()))
}

/// Reads one event; `None` for a type that nobody knows and for a message in which nothing is.
fn parse_event(mut sent: Fields, place: &str) -> Result<Option<NewEvent>, Refusal> {
    let kind = take_text(&mut sent, "type", &format!("{place}.type"))?.unwrap_or_default();
    let actor = take_bounded(&mut sent, "actor", &format!("{place}.actor"), NAME)?;
    let message = match kind.as_str() {
        "user.message" => Some(EventKind::USER_MESSAGE),
        "system.message" => Some(EventKind::SYSTEM_MESSAGE),
        "agent.message" => Some(EventKind::AGENT_MESSAGE),
        _ => None,
    };
    let mut fields = Fields::new();
    let mut given_id = None;
    let kind = match (message, kind.as_str()) {
        (Some(kind), _) => {
            let Some(blocks) = blocks(&mut sent, place)? else { return Ok(None) };
            fields.insert("content".into(), blocks.into());
            kind
        }
        (None, "agent.tool_use") => {
            let field = format!("{place}.name");
            let name = take_bounded(&mut sent, "name", &field, NAME)?.ok_or_else(|| missing(&field))?;
            let input = take_object(&mut sent, "input", &format!("{place}.input"))?.unwrap_or_default();
            given_id = take_bounded(&mut sent, "id", &format!("{place}.id"), NAME)?;
            fields.insert("name".into(), name.into());
            fields.insert("input".into(), input.into());
            EventKind::TOOL_USE
        }
        (None, "agent.tool_result") => {
            let field = format!("{place}.tool_use_id");
            let of = take_bounded(&mut sent, "tool_use_id", &field, NAME)?.ok_or_else(|| missing(&field))?;
            fields.insert("tool_use_id".into(), of.into());
            if let Some(blocks) = blocks(&mut sent, place)? {
                fields.insert("content".into(), blocks.into());
            }
            if let Some(is_error) = take_flag(&mut sent, "is_error", &format!("{place}.is_error"))? {
                fields.insert("is_error".into(), is_error.into());
            }
            EventKind::TOOL_RESULT
        }
        (None, _) => return Ok(None),
    };
    let fields = kinds::parse_fields(kind, fields)
        .map_err(|(field, problem)| Refusal::shape(format!("{place}.{field}"), problem))?;
    let extra = actor.map(|actor| ("actor".to_owned(), actor.into())).into_iter().collect();
    Ok(Some(NewEvent { given_id, extra, ..NewEvent::new(kind, fields) }))
}

fn parse(mut body: Fields) -> Result<Vec<NewEvent>, Refusal> {
    let one = take_text(&mut body, "message", "message")?.filter(|text| !text.is_empty());
    let many = take_list(&mut body, "events", "events")?.unwrap_or_default();
    if many.len() > SENT {
        return Err(Refusal::shape("events", format!("must be at most {SENT} events")));
    }
    let mut events: Vec<NewEvent> =
        one.map(|text| message(EventKind::USER_MESSAGE, text)).into_iter().collect();
    if let (Some(first), Some(actor)) = (events.first_mut(), take_bounded(&mut body, "actor", "actor", NAME)?)
    {
        first.extra.insert("actor".into(), actor.into());
    }
    for (place, sent) in many.into_iter().enumerate() {
        let place = format!("events[{place}]");
        events.extend(parse_event(object(sent, &place)?, &place)?);
    }
    if events.is_empty() {
        let problem = "must hold at least one message, or event of a known type, that is not empty";
        return Err(Refusal::shape("events", problem));
    }
    Ok(events)
}

pub(crate) async fn send(call: Call, body: Body) -> Answer {
    call.may(Resource::Event, Action::Create)?;
    let body = call.object::<Fields>(body).await?;
    let id: SessionId = call.id("session_id")?;
    let events = match body.and_then(parse) {
        Ok(events) => events,
        Err(malformed) => {
            call.stele.session_get(&call.caller, id).await?;
            return Err(malformed.into());
        }
    };
    let (written, _) = call.stele.event_send(&call.caller, id, events, READ_EVENT).await?;
    Ok(shown(&json!({
        "ok": true,
        "events_accepted": written.len(),
        "delivery_state": "stored",
        "temporal_signaled": false,
    })))
}

/// The kinds of events that this dialect shows; the others are accounts of the machinery.
fn shown_kinds() -> Vec<EventKind> {
    EventKind::all().filter(|kind| face(*kind).is_some()).collect()
}

/// The type and role of an event here.
fn face(kind: EventKind) -> Option<(&'static str, Option<&'static str>)> {
    Some(match kind.as_str() {
        "user.message" => ("message", Some("user")),
        "system.message" => ("message", Some("system")),
        "agent.message" | "agent.thinking" => ("message", Some("assistant")),
        "agent.tool_use" | "agent.custom_tool_use" | "agent.mcp_tool_use" => {
            ("tool_invocation", Some("assistant"))
        }
        "agent.tool_result" | "agent.mcp_tool_result" | "user.tool_result" | "user.custom_tool_result" => {
            ("tool_result", Some("tool"))
        }
        "session.status_running"
        | "session.status_idle"
        | "session.status_rescheduled"
        | "session.status_terminated" => ("session_status", None),
        _ => return None,
    })
}

/// The id of the use of a tool that an event answers to.
fn answered(fields: &Fields) -> Value {
    let names = ["tool_use_id", "custom_tool_use_id", "mcp_tool_use_id"];
    names.into_iter().find_map(|name| fields.get(name)).cloned().unwrap_or_default()
}

/// An event; `None` for one that this dialect does not show.
pub(crate) fn view(session: SessionId, agent: AgentId, event: &Event) -> Option<Fields> {
    let (event_type, role) = face(event.new.kind)?;
    let fields = &event.new.fields;
    let content = || fields.get("content").cloned().unwrap_or_else(|| json!([]));
    let name = event.new.kind.as_str();
    let own_id = || event.new.given_id.clone().unwrap_or_else(|| event.id.to_string());
    let blocks = match event_type {
        "tool_invocation" => {
            let input = fields.get("input").cloned().unwrap_or_else(|| json!({}));
            json!([{"type": "tool_use", "id": own_id(), "name": fields.get("name"), "input": input}])
        }
        "tool_result" => {
            let is_error = fields.get("is_error").and_then(Value::as_bool).unwrap_or(false);
            json!([{
                "type": "tool_result",
                "tool_use_id": answered(fields),
                "content": content(),
                "is_error": is_error,
            }])
        }
        "session_status" => {
            let status = name.strip_prefix("session.status_").unwrap_or(name);
            json!([{"type": "text", "text": status}])
        }
        _ => content(),
    };
    let actor = match name.split_once('.') {
        Some(("agent", _)) => format!("agent:{agent}"),
        Some(("session", _)) => "system:stele".to_owned(),
        _ => "human:api".to_owned(),
    };
    let mut view = Fields::new();
    let mut put = |name: &str, value: Value| view.insert(name.to_owned(), value);
    put("event_id", json!(event.id));
    put("session_id", json!(session));
    put("event_type", json!(event_type));
    put("actor", event.new.extra.get("actor").cloned().unwrap_or_else(|| json!(actor)));
    put("content", json!({"blocks": blocks}));
    put("inference_config", json!({}));
    put("schema_version", json!(1));
    put("created_at", json!(event.at.to_string()));
    if let Some(role) = role {
        put("role", json!(role));
    }
    match event_type {
        "tool_invocation" => {
            put("tool_name", fields.get("name").cloned().unwrap_or_default());
            put("tool_use_id", json!(own_id()));
        }
        "tool_result" => {
            put("tool_use_id", answered(fields));
        }
        _ => {}
    }
    Some(view)
}

/// The place of the event that a reader has read last.
pub(crate) async fn place(
    call: &Call,
    session: SessionId,
    id: Option<EventId>,
    field: &str,
) -> Result<u64, stele_http::flat::FlatError> {
    let Some(id) = id else { return Ok(0) };
    let place = call.stele.event_place(&call.caller, session, id).await?;
    Ok(place.ok_or_else(|| Refusal::shape(field, "is not an event of this session"))?)
}

pub(crate) async fn list(call: Call) -> Answer {
    call.may(Resource::Event, Action::Read)?;
    let session = call.id("session_id")?;
    let whole = call.stele.session_get(&call.caller, session).await?;
    let query = call.query()?;
    let limit = query.number("limit", 1, 1000, 100)?;
    let after = query_id(&query, "after_event_id")?;
    let after = place(&call, session, after, "after_event_id").await?;
    let (kinds, at, order) = (shown_kinds(), Created::default(), Order::OldestFirst);
    let wanted = EventsQuery { kinds, at, order, after: Some(after), limit };
    let (page, _) = call.stele.event_list(&call.caller, session, wanted).await?;
    let agent = whole.session.agent.id;
    let events: Vec<_> = page.items.iter().filter_map(|event| view(session, agent, event)).collect();
    let next = page.items.last().filter(|_| page.more).map(|last| last.id.to_string());
    let events = if events.is_empty() { Value::Null } else { json!(events) };
    Ok(shown(&json!({"events": events, "next_page_token": next.unwrap_or_default()})))
}
