//! Response objects, spelled as the wire spells them; what is unset is left out, never `null`. spec/recursion.md 4.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use serde::Serialize;
use stele_core::id::WorkspaceId;
use stele_core::model::{Actor, Memory, Operation, Origin, Status, Store, VersionText};
use stele_core::text::Summary;
use stele_http::reply::{at, bytes, json, text};

/// A 200 with this view.
pub(crate) fn shown(view: &impl Serialize) -> Response {
    json(bytes(view))
}

/// A 200 with this view of what a store was at `sequence`.
pub(crate) fn shown_at(sequence: u64, view: &impl Serialize) -> Response {
    at(sequence, shown(view))
}

/// A 201 with this view.
pub(crate) fn created_at(sequence: u64, view: &impl Serialize) -> Response {
    at(sequence, (StatusCode::CREATED, shown(view)).into_response())
}

/// A 204: not one byte of body.
pub(crate) fn nothing_at(sequence: u64) -> Response {
    at(sequence, StatusCode::NO_CONTENT.into_response())
}

pub(crate) fn origin(origin: Origin) -> &'static str {
    match origin {
        Origin::Curated => "curated",
        Origin::Reflection => "reflection",
    }
}

pub(crate) fn status(status: Status) -> &'static str {
    match status {
        Status::Active => "active",
        Status::Archived => "archived",
    }
}

/// The id behind an actor, whatever its kind.
fn principal(actor: Actor) -> String {
    match actor {
        Actor::ApiKey(id) => id.to_string(),
        Actor::Session(id) => id.to_string(),
        Actor::User(id) => id.to_string(),
        Actor::ServiceAccount(id) => id.to_string(),
    }
}

/// spec/recursion.md 4.1.
#[derive(Serialize)]
pub(crate) struct StoreView<'a> {
    memory_store_id: String,
    organization_id: String,
    name: &'a str,
    slug: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_id: Option<String>,
    origin: &'static str,
    status: &'static str,
    memory_count: u64,
    total_bytes: u64,
    /// Learning runs that changed something; there are none yet.
    revision: u64,
    created_at: String,
    updated_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    archived_at: Option<String>,
    created_by: String,
}

impl<'a> StoreView<'a> {
    pub(crate) fn of(store: &'a Store) -> Self {
        Self {
            memory_store_id: store.id.to_string(),
            organization_id: store.workspace.to_string(),
            name: store.name.as_str(),
            slug: &store.slug,
            description: store.description.as_str(),
            agent_id: store.agent.map(|id| id.to_string()),
            origin: origin(store.origin),
            status: status(store.status()),
            memory_count: store.counters.memories,
            total_bytes: store.counters.bytes,
            revision: 0,
            created_at: store.created_at.to_string(),
            updated_at: store.changed_at.to_string(),
            archived_at: store.archived_at.map(|at| at.to_string()),
            created_by: principal(store.created_by),
        }
    }
}

#[derive(Serialize)]
pub(crate) struct StoresView<'a> {
    pub(crate) memory_stores: Vec<StoreView<'a>>,
}

/// A live memory, whole. spec/recursion.md 4.2.
#[derive(Serialize)]
pub(crate) struct MemoryView<'a> {
    memory_id: String,
    memory_store_id: String,
    organization_id: String,
    path: &'a str,
    summary: &'a str,
    content: &'a str,
    content_sha256: String,
    byte_size: u64,
    status: &'static str,
    head_version_id: String,
    created_at: String,
    updated_at: String,
}

impl<'a> MemoryView<'a> {
    pub(crate) fn of(
        organization: WorkspaceId,
        memory: &'a Memory,
        summary: Option<&'a Summary>,
        content: Option<&'a Bytes>,
    ) -> Self {
        Self {
            memory_id: memory.id.to_string(),
            memory_store_id: memory.store.to_string(),
            organization_id: organization.to_string(),
            path: memory.path.as_str(),
            summary: summary.map_or("", Summary::as_str),
            content: content.map_or("", text),
            content_sha256: memory.content_sha256.to_string(),
            byte_size: memory.size_bytes,
            status: ACTIVE,
            head_version_id: memory.version.to_string(),
            created_at: memory.created_at.to_string(),
            updated_at: memory.updated_at.to_string(),
        }
    }
}

/// The status of every memory that nobody learned.
const ACTIVE: &str = "active";

/// One entry of a listing. spec/recursion.md 4.4.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum EntryView<'a> {
    Memory { path: &'a str, summary: &'a str, byte_size: u64 },
    MemoryPrefix { path: &'a str, count: u64 },
}

#[derive(Serialize)]
pub(crate) struct EntriesView<'a> {
    pub(crate) entries: Vec<EntryView<'a>>,
}

/// The operation as this dialect names it. spec/recursion.md 7.1.
fn operation(operation: Operation) -> &'static str {
    match operation {
        Operation::Created | Operation::Recreated => "create",
        Operation::Updated => "update",
        Operation::Renamed => "rename",
        Operation::Deleted => "delete",
    }
}

/// Who wrote a version: spec/recursion.md 16.2.
fn author_kind(author: Actor) -> &'static str {
    match author {
        Actor::ApiKey(_) | Actor::ServiceAccount(_) => "api",
        Actor::User(_) => "admin",
        Actor::Session(_) => "session",
    }
}

/// spec/recursion.md 4.3.
#[derive(Serialize)]
pub(crate) struct VersionView<'a> {
    memory_version_id: String,
    memory_id: String,
    memory_store_id: String,
    organization_id: String,
    operation: &'static str,
    author_kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    author_principal: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    author_session_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rationale: Option<&'a str>,
    /// Empty once a redaction through the other dialect scrubbed it: 7.5 (D8).
    path: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content_sha256: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    byte_size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'static str>,
    created_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    redacted_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    redacted_by: Option<String>,
}

impl<'a> VersionView<'a> {
    pub(crate) fn of(organization: WorkspaceId, shown: &'a VersionText) -> Self {
        let VersionText { version, summary, reason, content } = shown;
        let recorded = version.recorded.as_ref();
        let (principal_id, session) = match version.author {
            Actor::Session(id) => (None, Some(id.to_string())),
            author => (Some(principal(author)), None),
        };
        Self {
            memory_version_id: version.id.to_string(),
            memory_id: version.memory.to_string(),
            memory_store_id: version.store.to_string(),
            organization_id: organization.to_string(),
            operation: operation(version.operation),
            author_kind: author_kind(version.author),
            author_principal: principal_id,
            author_session_id: session,
            rationale: reason.as_deref(),
            path: version.path.as_ref().map_or("", |path| path.as_str()),
            summary: summary.as_ref().map(Summary::as_str),
            content: content.as_ref().map(text),
            content_sha256: recorded.map(|r| r.content_sha256.to_string()),
            byte_size: recorded.map(|r| r.size_bytes),
            status: (version.operation != Operation::Deleted).then_some(ACTIVE),
            created_at: version.created_at.to_string(),
            redacted_at: version.redaction.map(|r| r.at.to_string()),
            redacted_by: version.redaction.map(|r| principal(r.by)),
        }
    }
}

#[derive(Serialize)]
pub(crate) struct VersionsView<'a> {
    pub(crate) memory_versions: Vec<VersionView<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_cursor: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use stele_core::hash::Sha256;
    use stele_core::id::{KeyId, MemoryId, ServiceAccountId, SessionId, StoreId, UserId, VersionId};
    use stele_core::model::{Recorded, Redaction, Version};
    use stele_core::path::MemoryPath;
    use stele_core::time::Timestamp;

    fn version(author: Actor, operation: Operation) -> VersionText {
        let recorded = Recorded { content_sha256: Sha256::of(b"text"), size_bytes: 4 };
        let version = Version {
            id: VersionId::from_bytes([1; 16]),
            store: StoreId::from_bytes([2; 16]),
            memory: MemoryId::from_bytes([3; 16]),
            sequence: 7,
            operation,
            created_at: Timestamp::from_micros(1_790_604_131_123_456),
            author,
            path: MemoryPath::parse("/a.md").ok(),
            recorded: Some(recorded),
            redaction: None,
        };
        let summary = Some(Summary::empty());
        VersionText { version, summary, reason: Some("why".into()), content: Some("text".into()) }
    }

    fn json_of(text: &VersionText) -> String {
        serde_json::to_string_pretty(&VersionView::of(WorkspaceId::from_bytes([9; 16]), text)).expect("JSON")
    }

    #[test]
    fn a_version_by_each_kind_of_author() {
        let authors = [
            Actor::ApiKey(KeyId::from_bytes([4; 16])),
            Actor::Session(SessionId::from_bytes([5; 16])),
            Actor::User(UserId::from_bytes([6; 16])),
            Actor::ServiceAccount(ServiceAccountId::from_bytes([7; 16])),
        ];
        let views = authors.map(|author| json_of(&version(author, Operation::Updated)));
        insta::assert_snapshot!(views.join("\n"));
    }

    #[test]
    fn a_version_redacted_through_the_other_dialect_and_a_deletion() {
        let author = Actor::ApiKey(KeyId::from_bytes([4; 16]));
        let mut redacted = version(author, Operation::Created);
        redacted.version.redaction =
            Some(Redaction { at: Timestamp::from_micros(1_790_604_131_000_000), by: author });
        redacted.version.recorded = None;
        redacted.version.path = None;
        (redacted.summary, redacted.reason, redacted.content) = (None, None, None);
        let mut deletion = version(author, Operation::Deleted);
        deletion.version.recorded = None;
        (deletion.summary, deletion.reason, deletion.content) = (None, None, None);
        insta::assert_snapshot!([redacted, deletion].map(|text| json_of(&text)).join("\n"));
    }

    #[test]
    fn operations_have_the_names_of_this_dialect() {
        let names = Operation::ALL.map(operation);
        assert_eq!(names, ["create", "update", "rename", "delete", "create"]);
    }
}
