//! `/memory_stores/{id}/memories` and `/memory`. spec/recursion.md 6.

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use serde::Deserialize;
use serde::de::IgnoredAny;
use stele_core::access::{Action, Resource};
use stele_core::command::{Command, Expected, OnArchived};
use stele_core::decide::{Current, Outcome};
use stele_core::hash::Sha256;
use stele_core::id::{MemoryId, StoreId};
use stele_core::limits::Limits;
use stele_core::list::{Depth, Detail, MemoryEntry};
use stele_core::path::{MemoryPath, PathPrefix};
use stele_core::refusal::Refusal;
use stele_core::service::Target;
use stele_core::storage::{At, Changed, MemoryRead, MemoryRef};
use stele_core::text::{Content, Summary, TextError};
use stele_http::query::Query;
use stele_http::reply::{at, bytes, json};

use crate::context::{Answer, Call};
use crate::view::{EntriesView, EntryView, MemoryView, created_at, nothing_at, shown_at};

/// The form of ready bodies: a memory whole.
const BODY: &str = "recursion";

/// A field that is `null` counts as left out; fields that nobody knows are ignored. spec/recursion.md 2.
#[derive(Deserialize)]
struct CreateMemory {
    path: Option<String>,
    summary: Option<String>,
    content: Option<String>,
}

#[derive(Deserialize)]
struct UpdateMemory {
    path: Option<String>,
    summary: Option<String>,
    content: Option<String>,
    content_sha256: Option<String>,
    /// The other dialect's: to ignore it would make a safe write a blind one.
    precondition: Option<IgnoredAny>,
}

fn required<T>(field: &str, value: Option<T>) -> Result<T, Refusal> {
    value.ok_or_else(|| Refusal::shape(field, "is required"))
}

fn parse_path(text: &str) -> Result<MemoryPath, Refusal> {
    MemoryPath::parse(text).map_err(|error| Refusal::invalid("path", error))
}

/// This dialect asks for at least one character, the core for none. spec/recursion.md 6.1 and 16.4.
fn not_empty(field: &str, text: &str) -> Result<(), Refusal> {
    if text.is_empty() { Err(Refusal::invalid(field, TextError::Empty)) } else { Ok(()) }
}

fn parse_summary(text: &str, limits: &Limits) -> Result<Summary, Refusal> {
    not_empty("summary", text)?;
    Summary::parse(text, limits.summary_chars).map_err(|error| Refusal::invalid("summary", error))
}

fn parse_content(text: String, limits: &Limits) -> Result<Content, Refusal> {
    not_empty("content", &text)?;
    Content::parse(text, limits.content_bytes).map_err(|error| Refusal::invalid("content", error))
}

/// What is no hash is unequal to every hash. spec/recursion.md 6.4.
fn parse_expected(text: &str) -> Expected {
    Sha256::parse(text).map_or(Expected::Impossible, Expected::Content)
}

impl CreateMemory {
    fn parse(self, limits: &Limits) -> Result<Command, Refusal> {
        Ok(Command::CreateMemory {
            path: parse_path(&required("path", self.path)?)?,
            summary: parse_summary(&required("summary", self.summary)?, limits)?,
            content: parse_content(required("content", self.content)?, limits)?,
        })
    }
}

impl UpdateMemory {
    fn parse(self, memory: MemoryId, limits: &Limits) -> Result<Command, Refusal> {
        if self.precondition.is_some() {
            let problem = "is not of this API: send the hash that you read as content_sha256";
            return Err(Refusal::shape("precondition", problem));
        }
        Ok(Command::UpdateMemory {
            memory: memory.into(),
            path: self.path.as_deref().map(parse_path).transpose()?,
            summary: self.summary.as_deref().map(|text| parse_summary(text, limits)).transpose()?,
            content: self.content.map(|text| parse_content(text, limits)).transpose()?,
            expected: self.content_sha256.as_deref().map_or(Expected::Anything, parse_expected),
        })
    }
}

/// The memory that a change has as its outcome.
pub(crate) fn changed_view<'a>(call: &Call, changed: &'a Changed) -> MemoryView<'a> {
    match &changed.outcome {
        Outcome::Memory(current) => {
            let Current { memory, summary } = &**current;
            MemoryView::of(call.caller.workspace, memory, Some(summary), changed.content.as_ref())
        }
        Outcome::Store(_) | Outcome::StoreDeleted(_) | Outcome::MemoryDeleted(_) | Outcome::Version(_) => {
            unreachable!("what changes a memory has that memory as its outcome")
        }
    }
}

pub(crate) async fn create(call: Call, body: Body) -> Answer {
    let needed = (Resource::Memory, Action::Create);
    call.may(needed.0, needed.1)?;
    let wanted = call.object::<CreateMemory>(body).await?;
    let store = call.store()?;
    let parsed = wanted.and_then(|wanted| wanted.parse(call.stele.limits()));
    let changed = call.carry_out(store, Target::Store, needed, parsed).await?;
    Ok(created_at(changed.sequence, &changed_view(&call, &changed)))
}

pub(crate) async fn update(call: Call, body: Body) -> Answer {
    let needed = (Resource::Memory, Action::Update);
    call.may(needed.0, needed.1)?;
    let wanted = call.object::<UpdateMemory>(body).await?;
    let (store, memory) = (call.store()?, call.memory()?);
    let parsed = wanted.and_then(|wanted| wanted.parse(memory, call.stele.limits()));
    let changed = call.carry_out(store, Target::Memory(memory), needed, parsed).await?;
    Ok(shown_at(changed.sequence, &changed_view(&call, &changed)))
}

pub(crate) async fn delete(call: Call) -> Answer {
    call.may(Resource::Memory, Action::Delete)?;
    let (store, memory) = (call.store()?, call.memory()?);
    let (expected, on_archived) = (Expected::Anything, OnArchived::Refuse);
    let command = Command::DeleteMemory { memory: memory.into(), expected, on_archived };
    let changed = call.act(store, Target::Memory(memory), command).await?;
    Ok(nothing_at(changed.sequence))
}

pub(crate) async fn retrieve(call: Call) -> Answer {
    call.may(Resource::Memory, Action::Read)?;
    let (store, memory) = (call.store()?, call.memory()?);
    Ok(read(&call, store, MemoryRef::Id(memory)).await?)
}

pub(crate) async fn retrieve_by_path(call: Call) -> Answer {
    call.may(Resource::Memory, Action::Read)?;
    let store = call.store()?;
    let query = call.query()?;
    let path = match query.get("path") {
        None | Some("") => Err(Refusal::shape("path", "is required")),
        // No memory can be at a path that is none.
        Some(text) => MemoryPath::parse(text).map_err(|_| Refusal::PathNotFound),
    };
    match path {
        Ok(path) => Ok(read(&call, store, MemoryRef::Path(path)).await?),
        Err(refusal) => Err(call.after_store(store, refusal).await),
    }
}

async fn read(
    call: &Call,
    store: StoreId,
    memory: MemoryRef,
) -> Result<Response, stele_core::storage::Error> {
    let At { sequence, value: read } =
        call.stele.memory_get(&call.caller, store, memory, Detail::Full, Some(BODY)).await?;
    let body = match read {
        MemoryRead::Known(body) => body,
        MemoryRead::Read { memory, summary, content } => {
            let view = MemoryView::of(call.caller.workspace, &memory, summary.as_ref(), content.as_ref());
            let body: Bytes = bytes(&view);
            call.stele.keep_body(memory.version, BODY, body.clone());
            body
        }
    };
    Ok(at(sequence, json(body)))
}

fn parse_browse(query: &Query) -> Result<(PathPrefix, Depth), Refusal> {
    let text = query.get("path_prefix").unwrap_or("/");
    let prefix = PathPrefix::parse(text).map_err(|error| Refusal::invalid("path_prefix", error))?;
    let depth = match query.get("depth") {
        Some("0") => Depth::All,
        None | Some("1") => Depth::One,
        Some(_) => return Err(Refusal::shape("depth", "must be 0 or 1")),
    };
    Ok((prefix, depth))
}

/// One level of a store by default: D1 in spec/recursion.md 6.2.
pub(crate) async fn list(call: Call) -> Answer {
    call.may(Resource::Memory, Action::Read)?;
    let store = call.store()?;
    let (prefix, depth) = match parse_browse(&call.query()?) {
        Ok(wanted) => wanted,
        Err(malformed) => return Err(call.after_store(store, malformed).await),
    };
    let At { sequence, value: found } = call.stele.memory_browse(&call.caller, store, prefix, depth).await?;
    let entries = found.iter().map(|entry| match entry {
        MemoryEntry::Memory { memory, summary, .. } => EntryView::Memory {
            path: memory.path.as_str(),
            summary: summary.as_ref().map_or("", Summary::as_str),
            byte_size: memory.size_bytes,
        },
        MemoryEntry::Directory { path, count } => {
            EntryView::MemoryPrefix { path, count: count.unwrap_or_default() }
        }
    });
    Ok(shown_at(sequence, &EntriesView { entries: entries.collect() }))
}
