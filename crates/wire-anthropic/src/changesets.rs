//! `POST /v1/memory_stores/{id}/changesets`: several changes, all or nothing. DESIGN 7.

use axum::body::Body;
use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use stele_core::access::{Action, Resource};
use stele_core::changeset::{Applied, Changeset};
use stele_core::command::{Command, Expected, MemoryRef, OnArchived};
use stele_core::id::MemoryId;
use stele_core::limits::Limits;
use stele_core::refusal::Refusal;
use stele_core::text::{Reason, Summary};
use stele_http::body;
use stele_http::openapi::NO_NUL;
use stele_http::reply::{at, bytes, json};

use crate::context::{Call, object};
use crate::error::ApiError;
use crate::id::Prefixed;
use crate::memories::{PATH, parse_content, parse_hash, parse_path};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewChangeset {
    /// Why, 1 to 4,096 characters; history keeps it with every version.
    #[schemars(length(min = 1, max = 4_096), regex(pattern = NO_NUL))]
    reason: Option<String>,
    /// In order; contents of at most 8 MiB together.
    #[schemars(with = "Vec<Change>", length(min = 1, max = 1_000))]
    changes: Vec<Value>,
}

/// One change.
#[derive(Deserialize, JsonSchema)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
enum Change {
    /// Make a memory; never overwrites.
    Create {
        #[schemars(regex(pattern = PATH))]
        path: String,
        #[schemars(length(max = 102_400), regex(pattern = NO_NUL))]
        content: String,
        #[schemars(length(max = 512), regex(pattern = NO_NUL))]
        summary: Option<String>,
    },
    /// Change content, summary, path (by `new_path`) of the memory that `memory_id` or `path` names.
    Update {
        memory_id: Option<String>,
        #[schemars(regex(pattern = PATH))]
        path: Option<String>,
        #[schemars(length(max = 102_400), regex(pattern = NO_NUL))]
        content: Option<String>,
        #[schemars(length(max = 512), regex(pattern = NO_NUL))]
        summary: Option<String>,
        #[schemars(regex(pattern = PATH))]
        new_path: Option<String>,
        #[schemars(regex(pattern = "^[0-9a-f]{64}$"))]
        expected_content_sha256: Option<String>,
    },
    /// Delete the memory that `memory_id` or `path` names.
    Delete {
        memory_id: Option<String>,
        #[schemars(regex(pattern = PATH))]
        path: Option<String>,
        #[schemars(regex(pattern = "^[0-9a-f]{64}$"))]
        expected_content_sha256: Option<String>,
    },
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ChangesetResult")]
pub(crate) struct ChangesetView {
    /// What became of each change, in order.
    data: Vec<AppliedView>,
    /// The store's sequence afterwards.
    sequence: u64,
}

#[derive(Serialize, JsonSchema)]
struct AppliedView {
    memory_id: String,
    /// Null where nothing changed.
    memory_version_id: Option<String>,
    path: String,
}

impl AppliedView {
    fn of(applied: &Applied) -> Self {
        Self {
            memory_id: applied.memory.spell(),
            memory_version_id: applied.version.map(|version| version.spell()),
            path: applied.path.as_str().to_owned(),
        }
    }
}

fn named(memory_id: Option<&str>, path: Option<&str>) -> Result<MemoryRef, Refusal> {
    match (memory_id, path) {
        (Some(id), None) => {
            // As in an address: malformed or of another kind is as good as unknown.
            let nowhere = MemoryRef::Id(MemoryId::from_bytes([0; 16]));
            Ok(MemoryId::read(id).map_or(nowhere, MemoryRef::Id))
        }
        (None, Some(path)) => Ok(MemoryRef::Path(parse_path(path)?)),
        _ => Err(Refusal::shape("memory_id", "or path must name the memory, one of the two")),
    }
}

fn expected(hash: Option<&str>) -> Result<Expected, Refusal> {
    hash.map_or(Ok(Expected::Anything), |hash| parse_hash("expected_content_sha256", hash))
}

fn parse_summary(text: &str, limits: &Limits) -> Result<Summary, Refusal> {
    Summary::parse(text, limits.summary_chars).map_err(|error| Refusal::invalid("summary", error))
}

impl Change {
    /// Reads one change, with what a person can do about a wrong one.
    fn read(change: Value) -> Result<Self, Refusal> {
        let op = change.get("op").and_then(Value::as_str);
        if !op.is_some_and(|op| ["create", "update", "delete"].contains(&op)) {
            return Err(Refusal::shape("op", "must be create, update or delete"));
        }
        serde_json::from_value(change).map_err(|error| Refusal::shape("change", error.to_string()))
    }

    fn parse(self, limits: &Limits) -> Result<Command, Refusal> {
        match self {
            Self::Create { path, content, summary } => Ok(Command::CreateMemory {
                path: parse_path(&path)?,
                summary: parse_summary(summary.as_deref().unwrap_or_default(), limits)?,
                content: parse_content(content, limits)?,
            }),
            Self::Update { memory_id, path, content, summary, new_path, expected_content_sha256 } => {
                if content.is_none() && summary.is_none() && new_path.is_none() {
                    let problem = "content, summary or new_path is required: there is nothing to update";
                    return Err(Refusal::shape("content", problem));
                }
                Ok(Command::UpdateMemory {
                    memory: named(memory_id.as_deref(), path.as_deref())?,
                    path: new_path
                        .map(|path| {
                            parse_path(&path).map_err(|refusal| match refusal {
                                Refusal::Invalid { error, .. } => Refusal::invalid("new_path", error),
                                other => other,
                            })
                        })
                        .transpose()?,
                    summary: summary.map(|text| parse_summary(&text, limits)).transpose()?,
                    content: content.map(|text| parse_content(text, limits)).transpose()?,
                    expected: expected(expected_content_sha256.as_deref())?,
                })
            }
            Self::Delete { memory_id, path, expected_content_sha256 } => Ok(Command::DeleteMemory {
                memory: named(memory_id.as_deref(), path.as_deref())?,
                expected: expected(expected_content_sha256.as_deref())?,
                on_archived: OnArchived::Allow,
            }),
        }
    }
}

impl NewChangeset {
    fn parse(self, limits: &Limits) -> Result<Changeset, Refusal> {
        let reason = self.reason.as_deref().map(Reason::parse).transpose();
        let reason = reason.map_err(|error| Refusal::invalid("reason", error))?;
        let parse = |(index, change): (usize, Value)| {
            Change::read(change).and_then(|change| change.parse(limits)).map_err(|refusal| refusal.at(index))
        };
        let commands: Vec<Command> =
            self.changes.into_iter().enumerate().map(parse).collect::<Result<_, _>>()?;
        Changeset::new(reason, commands)
    }
}

pub(crate) async fn create(call: Call, body: Body) -> Result<Response, ApiError> {
    let store = call.store()?;
    // Whoever may write nothing cannot make the server hold what it sends.
    let writes = [Action::Update, Action::Create, Action::Delete];
    let allowed = writes.into_iter().find(|action| call.may(Resource::Memory, *action).is_ok());
    let needed = (Resource::Memory, allowed.unwrap_or(Action::Update));
    call.may(needed.0, needed.1)?;
    let body = body::read(body).await?;
    let parsed = object(&body).and_then(|wanted: NewChangeset| Ok(wanted.parse(call.stele.limits())?));
    let changeset = call.or_first(parsed, store, None, needed).await?;
    let changed = call.stele.change_all(&call.caller, store, changeset).await?;
    let data = changed.applied.iter().map(AppliedView::of).collect();
    let sequence = changed.sequence;
    Ok(at(sequence, json(bytes(&ChangesetView { data, sequence }))))
}
