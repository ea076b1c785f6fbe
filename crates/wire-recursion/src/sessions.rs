//! `/sessions`. spec/recursion.md 10.5, 11.4 and 18 X1.

mod list;
mod view;

use axum::body::Body;
use axum::http::StatusCode;
use serde_json::{Value, json};
use stele_core::access::{Action, Resource};
use stele_core::id::SessionId;
use stele_core::refusal::Refusal;
use stele_core::service::{NewSession, ReadEventId, WhenRunning};
use stele_core::storage::Error;
use stele_core::text::TextError;
use stele_core::work::agent::DefinitionPatch;
use stele_core::work::attachment::Naming;
use stele_core::work::event::{EventKind, NewEvent};
use stele_core::work::refusal::WorkRefusal;
use stele_core::work::session::{Outcome, Whole};
use stele_core::work::{Dialect, Fields};
use stele_http::flat::FlatError;

use crate::context::{Answer, Call, Id};
use crate::events;
use crate::fields::{missing, session_metadata, take_bounded, take_id, take_list, take_object, take_text};
use crate::once::{self, Key, Success};
use crate::view::shown;

pub(crate) use list::list;
pub(crate) use view::Detail;
use view::{session, thread};

/// Longest code of a failure, in characters.
const CODE: usize = 128;
/// Longest text about a failure, in characters.
const MESSAGE: usize = 4_096;
/// Longest name of an external source, in characters.
const SOURCE: usize = 512;
/// Fields that are kept as they are sent, and can be searched for.
const SOURCES: [&str; 2] = ["external_source_type", "external_source_id"];

/// How this dialect names events.
pub(crate) const READ_EVENT: ReadEventId = |text| Id::read(text);

fn parse(mut body: Fields) -> Result<NewSession, Refusal> {
    let agent = take_id(&mut body, "agent_id", "agent_id")?.ok_or_else(|| missing("agent_id"))?;
    let environment = take_id(&mut body, "environment_id", "environment_id")?;
    let message = take_text(&mut body, "message", "message")?.filter(|message| !message.is_empty());
    if message.as_ref().is_some_and(|message| message.contains('\0')) {
        return Err(Refusal::invalid("message", TextError::Nul));
    }
    let metadata = take_object(&mut body, "metadata", "metadata")?;
    let mut vaults = Vec::new();
    for (place, vault) in take_list(&mut body, "vault_ids", "vault_ids")?.into_iter().flatten().enumerate() {
        match vault {
            Value::String(vault) => vaults.push(vault),
            _ => return Err(Refusal::shape(format!("vault_ids[{place}]"), "must be a string")),
        }
    }
    let mut extra = Fields::new();
    for field in SOURCES {
        if let Some(source) = take_bounded(&mut body, field, field, SOURCE)? {
            extra.insert(field.to_owned(), source.into());
        }
    }
    Ok(NewSession {
        made_through: Dialect::Recursion,
        agent,
        version: None,
        overrides: DefinitionPatch::default(),
        environment,
        resources: Vec::new(),
        naming: Naming::BySlug,
        title: None,
        metadata: metadata.map(|pairs| session_metadata(pairs, "metadata")).transpose()?.unwrap_or_default(),
        vaults,
        budget: None,
        extra,
        events: message.map(|text| events::message(EventKind::USER_MESSAGE, text)).into_iter().collect(),
    })
}

pub(crate) fn path_of(session: SessionId) -> String {
    format!("/managed-agents/v1/sessions/{session}")
}

fn started(whole: &Whole) -> Success {
    let (id, path) = (whole.session.id, path_of(whole.session.id));
    Success::of(StatusCode::ACCEPTED, &json!({"session_id": id, "status_path": path})).at(path)
}

pub(crate) async fn start(call: Call, body: Body) -> Answer {
    call.may(Resource::Session, Action::Create)?;
    let (raw, body) = call.raw_object::<Fields>(body).await?;
    let once = once::once(&call, Key::Required, &raw, started)?;
    let new = body.and_then(parse)?;
    once::answer(call.stele.session_create_once(&call.caller, new, once).await?, started)
}

pub(crate) async fn retrieve(call: Call) -> Answer {
    call.may(Resource::Session, Action::Read)?;
    let id = call.id("session_id")?;
    let query = call.query()?;
    let detail = match query.get("view") {
        None | Some("full") => Detail::Full,
        Some("summary") => Detail::Summary,
        Some(_) => return Err(Refusal::shape("view", "must be full or summary").into()),
    };
    let whole = call.stele.session_get(&call.caller, id).await?;
    Ok(shown(&session(call.caller.workspace, &whole, detail)))
}

pub(crate) async fn delete(call: Call) -> Answer {
    call.may(Resource::Session, Action::Delete)?;
    call.stele.session_delete(&call.caller, call.id("session_id")?, WhenRunning::End).await?;
    Ok(shown(&json!({"deleted": true})))
}

/// Also of a session that has ended.
pub(crate) async fn cancel(call: Call, body: Body) -> Answer {
    call.may(Resource::Session, Action::Update)?;
    call.no_object(body).await?;
    match call.stele.session_end(&call.caller, call.id("session_id")?, Outcome::Cancelled).await {
        Ok(_) | Err(Error::Refused { refusal: Refusal::Work(WorkRefusal::SessionEnded(_)), .. }) => {
            Ok(shown(&json!({"cancelled": true})))
        }
        Err(error) => Err(error.into()),
    }
}

pub(crate) async fn interrupt(call: Call, body: Body) -> Answer {
    call.may(Resource::Event, Action::Create)?;
    call.no_object(body).await?;
    let events = vec![NewEvent::bare(EventKind::INTERRUPT)];
    call.stele.event_send(&call.caller, call.id("session_id")?, events, READ_EVENT).await?;
    Ok(shown(&json!({"interrupted": true, "temporal_signaled": false})))
}

fn parse_outcome(mut body: Fields) -> Result<Outcome, Refusal> {
    let status = take_text(&mut body, "status", "status")?.ok_or_else(|| missing("status"))?;
    let failure = take_object(&mut body, "failure", "failure")?;
    match (status.as_str(), failure) {
        ("completed", None) => Ok(Outcome::Completed),
        ("completed", Some(_)) => Err(Refusal::shape("failure", "goes with the status failed only")),
        ("failed", failure) => {
            let mut failure = failure.unwrap_or_default();
            let code = take_bounded(&mut failure, "code", "failure.code", CODE)?;
            let message = take_bounded(&mut failure, "message", "failure.message", MESSAGE)?;
            Ok(Outcome::Failed {
                code: code.unwrap_or_else(|| "failed".into()),
                message: message.unwrap_or_else(|| "the session failed".into()),
            })
        }
        _ => Err(Refusal::shape("status", "must be completed or failed")),
    }
}

/// Ends a session that somebody drives from outside. X1.
pub(crate) async fn complete(call: Call, body: Body) -> Answer {
    call.may(Resource::Session, Action::Update)?;
    let outcome = call.object::<Fields>(body).await?;
    let id = call.id("session_id")?;
    // What is not there is said before what is malformed.
    let outcome = match outcome.and_then(parse_outcome) {
        Ok(outcome) => outcome,
        Err(malformed) => {
            call.stele.session_get(&call.caller, id).await?;
            return Err(malformed.into());
        }
    };
    let whole = call.stele.session_end(&call.caller, id, outcome).await?;
    Ok(shown(&session(call.caller.workspace, &whole, Detail::Full)))
}

pub(crate) async fn list_threads(call: Call) -> Answer {
    call.may(Resource::Session, Action::Read)?;
    let whole = call.stele.session_get(&call.caller, call.id("session_id")?).await?;
    Ok(shown(&json!({"threads": [thread(&whole)]})))
}

/// A session's one thread goes by the session's id.
pub(crate) async fn retrieve_thread(call: Call) -> Answer {
    call.may(Resource::Session, Action::Read)?;
    let (id, named): (SessionId, SessionId) = (call.id("session_id")?, call.id("thread_id")?);
    let whole = call.stele.session_get(&call.caller, id).await?;
    if named != id {
        return Err(FlatError::from(Refusal::from(WorkRefusal::ThreadNotFound)));
    }
    Ok(shown(&thread(&whole)))
}

/// Files of a session; Stele keeps none for this dialect.
pub(crate) async fn list_resources(call: Call) -> Answer {
    call.may(Resource::Session, Action::Read)?;
    call.stele.session_get(&call.caller, call.id("session_id")?).await?;
    Ok(shown(&json!({"resources": []})))
}

/// Questions that wait for a person; nobody asks any.
pub(crate) async fn list_pending_inputs(call: Call) -> Answer {
    call.may(Resource::Session, Action::Read)?;
    call.stele.session_get(&call.caller, call.id("session_id")?).await?;
    Ok(shown(&json!({"pending_inputs": []})))
}
