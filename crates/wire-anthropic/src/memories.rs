//! `/v1/memory_stores/{id}/memories`. spec/anthropic.md 3.

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use schemars::JsonSchema;
use serde::Deserialize;
use stele_core::access::{Action, Resource};
use stele_core::command::{Command, Expected, OnArchived};
use stele_core::decide::Outcome;
use stele_core::hash::Sha256;
use stele_core::id::MemoryId;
use stele_core::limits::Limits;
use stele_core::list::{Depth, Detail, MemoryEntry, MemoryQuery};
use stele_core::path::{MemoryPath, PathPrefix};
use stele_core::refusal::Refusal;
use stele_core::storage::{At, Changed, MemoryRead, MemoryRef};
use stele_core::text::{Content, Summary};
use stele_http::body;
use stele_http::cursor::{List, path_position};
use stele_http::openapi::NO_NUL;
use stele_http::query::Query;
use stele_http::reply::{at, bytes, json};

use crate::context::{Call, page_cursor, read_cursor};
use crate::error::ApiError;
use crate::id::Prefixed;
use crate::view::{DeletedView, EntryView, MemoryView, PageView, PrefixView, View};

type Answer = Result<Response, ApiError>;

/// Most items of a page with contents; a larger limit is clamped. spec/anthropic.md 1.6.
pub(crate) const FULL_PAGE: usize = 20;
/// The form of ready bodies: a memory with its content.
const FULL_BODY: &str = "anthropic full";

/// A path as the document describes it; that it is NFC without `.` and `..` no pattern can say.
pub(crate) const PATH: &str = r"^(/[^/\u0000-\u001f\u007f-\u009f]+){1,20}$";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateMemory {
    /// Absolute, 1 to 20 segments, none of them `.` or `..`; NFC without control and format characters; at most
    /// 1,024 bytes.
    #[schemars(regex(pattern = PATH))]
    path: String,
    /// UTF-8 without NUL, at most 102,400 bytes; may be empty.
    #[schemars(length(max = 102_400), regex(pattern = NO_NUL))]
    content: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("minProperties" = 1))]
pub(crate) struct UpdateMemory {
    /// UTF-8 without NUL, at most 102,400 bytes; may be empty.
    #[schemars(length(max = 102_400), regex(pattern = NO_NUL))]
    content: Option<String>,
    /// The new path.
    #[schemars(regex(pattern = PATH))]
    path: Option<String>,
    /// What must be there for the update to be carried out.
    precondition: Option<Precondition>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Precondition {
    #[schemars(extend("const" = "content_sha256"))]
    r#type: String,
    /// The SHA-256 of the present content, 64 lowercase hexadecimal digits.
    #[schemars(regex(pattern = "^[0-9a-f]{64}$"))]
    content_sha256: String,
}

pub(crate) fn parse_path(text: &str) -> Result<MemoryPath, Refusal> {
    MemoryPath::parse(text).map_err(|error| Refusal::invalid("path", error))
}

pub(crate) fn parse_content(text: String, limits: &Limits) -> Result<Content, Refusal> {
    Content::parse(text, limits.content_bytes).map_err(|error| Refusal::invalid("content", error))
}

pub(crate) fn parse_hash(field: &str, text: &str) -> Result<Expected, Refusal> {
    Sha256::parse(text).map(Expected::Content).map_err(|error| Refusal::invalid(field, error))
}

impl CreateMemory {
    fn parse(self, limits: &Limits) -> Result<Command, Refusal> {
        let path = parse_path(&self.path)?;
        let content = parse_content(self.content, limits)?;
        Ok(Command::CreateMemory { path, summary: Summary::empty(), content })
    }
}

impl UpdateMemory {
    fn parse(self, memory: MemoryId, limits: &Limits) -> Result<Command, Refusal> {
        if self.content.is_none() && self.path.is_none() {
            return Err(Refusal::shape("content", "or path is required: there is nothing to update"));
        }
        let expected = match self.precondition {
            None => Expected::Anything,
            Some(precondition) if precondition.r#type == "content_sha256" => {
                parse_hash("precondition.content_sha256", &precondition.content_sha256)?
            }
            Some(_) => return Err(Refusal::shape("precondition.type", "must be content_sha256")),
        };
        Ok(Command::UpdateMemory {
            memory: memory.into(),
            path: self.path.as_deref().map(parse_path).transpose()?,
            summary: None,
            content: self.content.map(|text| parse_content(text, limits)).transpose()?,
            expected,
        })
    }
}

fn memory_answer(changed: &Changed) -> Response {
    let answer = match &changed.outcome {
        Outcome::Memory(current) => json(bytes(&MemoryView::of(&current.memory, changed.content.as_ref()))),
        Outcome::MemoryDeleted(id) => json(bytes(&DeletedView { id: id.spell(), r#type: "memory_deleted" })),
        Outcome::Store(_) | Outcome::StoreDeleted(_) | Outcome::Version(_) => {
            unreachable!("commands on memories have outcomes about memories")
        }
    };
    at(changed.sequence, answer)
}

pub(crate) async fn create(call: Call, body: Body) -> Answer {
    let store = call.store()?;
    call.may(Resource::Memory, Action::Create)?;
    let body = body::read(body).await?;
    let parsed =
        call.parse_with_view(&body, View::Basic, |wanted: CreateMemory| wanted.parse(call.stele.limits()));
    let (command, view) = call.or_first(parsed, store, None, (Resource::Memory, Action::Create)).await?;
    Ok(memory_answer(&call.stele.change(&call.caller, store, command, view == View::Full).await?))
}

pub(crate) async fn update(call: Call, body: Body) -> Answer {
    let (store, memory) = (call.store()?, call.memory()?);
    call.may(Resource::Memory, Action::Update)?;
    let body = body::read(body).await?;
    let parsed = call.parse_with_view(&body, View::Basic, |wanted: UpdateMemory| {
        wanted.parse(memory, call.stele.limits())
    });
    let needed = (Resource::Memory, Action::Update);
    let (command, view) = call.or_first(parsed, store, Some(memory), needed).await?;
    Ok(memory_answer(&call.stele.change(&call.caller, store, command, view == View::Full).await?))
}

pub(crate) async fn delete(call: Call, body: Body) -> Answer {
    let (store, memory) = (call.store()?, call.memory()?);
    call.no_fields(body).await?;
    let parsed = match call.query.get("expected_content_sha256") {
        None => Ok(Expected::Anything),
        Some(text) => parse_hash("expected_content_sha256", text).map_err(ApiError::from),
    };
    let needed = (Resource::Memory, Action::Delete);
    let expected = call.or_first(parsed, store, Some(memory), needed).await?;
    let command = Command::DeleteMemory { memory: memory.into(), expected, on_archived: OnArchived::Allow };
    Ok(memory_answer(&call.stele.change(&call.caller, store, command, false).await?))
}

pub(crate) async fn retrieve(call: Call) -> Answer {
    let (store, memory) = (call.store()?, MemoryRef::Id(call.memory()?));
    let (detail, form) = match View::of(&call.query, View::Full)? {
        View::Basic => (Detail::Basic, None),
        View::Full => (Detail::Full, Some(FULL_BODY)),
    };
    let At { sequence, value: read } =
        call.stele.memory_get(&call.caller, store, memory, detail, form).await?;
    let body = match read {
        MemoryRead::Known(body) => body,
        MemoryRead::Read { memory, content, .. } => {
            let body: Bytes = bytes(&MemoryView::of(&memory, content.as_ref()));
            if let Some(form) = form {
                call.stele.keep_body(memory.version, form, body.clone());
            }
            body
        }
    };
    Ok(at(sequence, json(body)))
}

fn parse_list(query: &Query) -> Result<(MemoryQuery, List), ApiError> {
    let text = query.get("path_prefix").unwrap_or("/");
    let prefix = PathPrefix::parse(text).map_err(|error| Refusal::invalid("path_prefix", error))?;
    let depth = match query.get("depth") {
        None | Some("0") => Depth::All,
        Some("1") => Depth::One,
        Some(_) => return Err(Refusal::shape("depth", "must be 0 or 1").into()),
    };
    let limit = query.number("limit", 1, 100, 20)?;
    let (detail, limit) = match View::of(query, View::Basic)? {
        View::Basic => (Detail::Basic, limit),
        View::Full => (Detail::Full, limit.min(FULL_PAGE)),
    };
    let list = List::new(&["anthropic memories", prefix.as_str(), &format!("{depth:?}")]);
    Ok((MemoryQuery { prefix, depth, detail, after: None, limit }, list))
}

pub(crate) async fn list(call: Call) -> Answer {
    let store = call.store()?;
    let (mut query, list) = parse_list(&call.query)?;
    let list = list.of_store(store, call.stele.installation().epoch);
    query.after = read_cursor(&call.query, &list, path_position)?;
    let At { sequence, value: page } = call.stele.memory_list(&call.caller, store, query).await?;
    let last = page.items.last().map(|entry| entry.path().as_bytes().to_vec());
    let data = page.items.iter().map(|entry| match entry {
        MemoryEntry::Memory { memory, content, .. } => {
            EntryView::Memory(MemoryView::of(memory, content.as_ref()))
        }
        MemoryEntry::Directory { path, .. } => EntryView::Prefix(PrefixView::of(path)),
    });
    let view = PageView { data: data.collect(), next_page: page_cursor(&list, page.more, last) };
    Ok(at(sequence, json(bytes(&view))))
}
