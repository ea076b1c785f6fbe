//! Response objects, spelled as the wire spells them; every field is always present. spec/anthropic.md 2.1, 3.1, 4.1.

use std::collections::BTreeMap;

use bytes::Bytes;
use schemars::JsonSchema;
use serde::Serialize;
use stele_core::model::{Actor, Memory, Operation, Store, Version};
use stele_core::refusal::Refusal;
use stele_http::query::Query;
use stele_http::reply::text;

use crate::id::Prefixed;

/// How much of a memory or version is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum View {
    /// Without content.
    Basic,
    /// With content.
    Full,
}

impl View {
    /// The view that a request asks for.
    pub(crate) fn of(query: &Query, default: View) -> Result<View, Refusal> {
        match query.get("view") {
            None => Ok(default),
            Some("basic") => Ok(View::Basic),
            Some("full") => Ok(View::Full),
            Some(_) => Err(Refusal::shape("view", "must be basic or full")),
        }
    }
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "MemoryStore")]
pub(crate) struct StoreView<'a> {
    id: String,
    r#type: &'static str,
    name: &'a str,
    description: &'a str,
    metadata: &'a BTreeMap<String, String>,
    created_at: String,
    updated_at: String,
    archived_at: Option<String>,
}

impl<'a> StoreView<'a> {
    pub(crate) fn of(store: &'a Store) -> Self {
        Self {
            id: store.id.spell(),
            r#type: "memory_store",
            name: store.name.as_str(),
            description: store.description.as_str(),
            metadata: store.metadata.pairs(),
            created_at: store.created_at.to_string(),
            updated_at: store.updated_at.to_string(),
            archived_at: store.archived_at.map(|at| at.to_string()),
        }
    }
}

/// A live memory; `content` is null where the view is basic.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Memory")]
pub(crate) struct MemoryView<'a> {
    id: String,
    r#type: &'static str,
    memory_store_id: String,
    memory_version_id: String,
    path: &'a str,
    content: Option<&'a str>,
    content_size_bytes: u64,
    content_sha256: String,
    created_at: String,
    updated_at: String,
}

impl<'a> MemoryView<'a> {
    pub(crate) fn of(memory: &'a Memory, content: Option<&'a Bytes>) -> Self {
        Self {
            id: memory.id.spell(),
            r#type: "memory",
            memory_store_id: memory.store.spell(),
            memory_version_id: memory.version.spell(),
            path: memory.path.as_str(),
            content: content.map(text),
            content_size_bytes: memory.size_bytes,
            content_sha256: memory.content_sha256.to_string(),
            created_at: memory.created_at.to_string(),
            updated_at: memory.updated_at.to_string(),
        }
    }
}

/// A directory in a list of depth 1; its path ends with `/`.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "MemoryPrefix")]
pub(crate) struct PrefixView<'a> {
    r#type: &'static str,
    path: &'a str,
}

impl<'a> PrefixView<'a> {
    pub(crate) fn of(path: &'a str) -> Self {
        Self { r#type: "memory_prefix", path }
    }
}

/// One entry of a list of memories.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "MemoryEntry")]
pub(crate) enum EntryView<'a> {
    Memory(MemoryView<'a>),
    Prefix(PrefixView<'a>),
}

#[derive(Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[schemars(rename = "Actor")]
#[expect(clippy::enum_variant_names, reason = "the wire's names")]
pub(crate) enum ActorView {
    ApiActor { api_key_id: String },
    SessionActor { session_id: String },
    UserActor { user_id: String },
    ServiceAccountActor { service_account_id: String },
}

impl From<Actor> for ActorView {
    fn from(actor: Actor) -> Self {
        match actor {
            Actor::ApiKey(id) => Self::ApiActor { api_key_id: id.spell() },
            Actor::Session(id) => Self::SessionActor { session_id: id.spell() },
            Actor::User(id) => Self::UserActor { user_id: id.spell() },
            Actor::ServiceAccount(id) => Self::ServiceAccountActor { service_account_id: id.spell() },
        }
    }
}

/// The operation as this dialect names it. spec/recursion.md 16.2.
pub(crate) fn operation(operation: Operation) -> &'static str {
    match operation {
        Operation::Created => "created",
        Operation::Updated | Operation::Renamed | Operation::Recreated => "modified",
        Operation::Deleted => "deleted",
    }
}

/// An entry of history; redacted ones show neither path nor content.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "MemoryVersion")]
pub(crate) struct VersionView<'a> {
    id: String,
    r#type: &'static str,
    memory_store_id: String,
    memory_id: String,
    operation: &'static str,
    created_at: String,
    created_by: ActorView,
    path: Option<&'a str>,
    content: Option<&'a str>,
    content_sha256: Option<String>,
    content_size_bytes: Option<u64>,
    redacted_at: Option<String>,
    redacted_by: Option<ActorView>,
}

impl<'a> VersionView<'a> {
    pub(crate) fn of(version: &'a Version, content: Option<&'a Bytes>) -> Self {
        let recorded = version.recorded.as_ref();
        // A redaction through the other dialect keeps the path in storage; here a redacted version never shows one.
        let path = version.path.as_ref().filter(|_| version.redaction.is_none());
        Self {
            id: version.id.spell(),
            r#type: "memory_version",
            memory_store_id: version.store.spell(),
            memory_id: version.memory.spell(),
            operation: operation(version.operation),
            created_at: version.created_at.to_string(),
            created_by: version.author.into(),
            path: path.map(|path| path.as_str()),
            content: content.map(text),
            content_sha256: recorded.map(|r| r.content_sha256.to_string()),
            content_size_bytes: recorded.map(|r| r.size_bytes),
            redacted_at: version.redaction.map(|r| r.at.to_string()),
            redacted_by: version.redaction.map(|r| r.by.into()),
        }
    }
}

/// One page of a list.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "PageOf{T}")]
pub(crate) struct PageView<T> {
    pub(crate) data: Vec<T>,
    pub(crate) next_page: Option<String>,
}

/// What is left of a deleted object.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Deleted")]
pub(crate) struct DeletedView {
    pub(crate) id: String,
    pub(crate) r#type: &'static str,
}
