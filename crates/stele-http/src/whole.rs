//! Much of a store at once: its tree as of one moment, and many texts in one answer. DESIGN 7.

use axum::body::Body;
use axum::extract::Path;
use axum::http::HeaderValue;
use axum::http::Method;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stele_core::access::{Action, Resource};
use stele_core::feed::Wanted;
use stele_core::id::{MemoryId, StoreId, VersionId};
use stele_core::model::{Memory, VersionText};
use stele_core::refusal::Refusal;
use stele_core::storage::At;

use crate::flat::{self, FlatError};
use crate::openapi::{Endpoint, Family, Param};
use crate::own::{Answer, Call, allowed_body};
use crate::reply::{at, bytes, json, text};
use crate::stream::{self, Making};

/// The pattern of a UUID in its one spelling.
const UUID: &str = "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$";
/// Most ids of one request for texts.
const IDS: usize = 1_000;
/// Bytes of a snapshot that are made at once.
const PART: usize = 64 * 1024;

static WHOLE: Family = Family {
    tag: "Whole stores",
    about: "Stele's own routes for those who mirror a store: its tree of one moment, and many texts at once.",
    headers: Vec::new,
    error: flat::schema,
    statuses: &[400, 401, 403, 404, 500, 503],
    keyed: true,
};

/// The routes with what is said of them.
pub(crate) fn endpoints() -> Vec<Endpoint> {
    let uuid = serde_json::json!({"type": "string", "format": "uuid"});
    let store = || Param::path("memory_store_id", "The store's id.", uuid.clone());
    vec![
        Endpoint::new(
            Method::GET,
            "/stele/v1/memory_stores/{memory_store_id}/snapshot",
            "snapshot_memory_store",
            &WHOLE,
            snapshot,
        )
        .about("Get the whole tree as of one sequence, without contents.")
        .params([store()])
        .answers::<SnapshotView>(200),
        Endpoint::new(
            Method::POST,
            "/stele/v1/memory_stores/{memory_store_id}/contents",
            "get_contents",
            &WHOLE,
            contents,
        )
        .about("Get the texts of many memories or versions.")
        .params([store()])
        .takes::<WantedIds>()
        .answers::<ContentsView<'_>>(200)
        .or(&[408, 413]),
    ]
}

/// A store's tree, by path. `sequence` and `epoch` are where its changes go on; `max_memories` is the cap that counts for
/// the store now.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Snapshot")]
struct SnapshotView {
    memory_store_id: String,
    sequence: u64,
    epoch: String,
    max_memories: u64,
    memories: Vec<NodeView>,
}

/// One memory of a snapshot.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "SnapshotMemory")]
struct NodeView {
    path: String,
    memory_id: String,
    memory_version_id: String,
    content_sha256: String,
    content_size_bytes: u64,
    created_at: String,
    updated_at: String,
}

impl NodeView {
    fn of(memory: &Memory) -> Self {
        Self {
            path: memory.path.as_str().to_owned(),
            memory_id: memory.id.to_string(),
            memory_version_id: memory.version.to_string(),
            content_sha256: memory.content_sha256.to_string(),
            content_size_bytes: memory.size_bytes,
            created_at: memory.created_at.to_string(),
            updated_at: memory.updated_at.to_string(),
        }
    }
}

fn store_id(text: &str) -> Result<StoreId, FlatError> {
    StoreId::parse(text).ok_or_else(|| FlatError::malformed_id("memory_store_id"))
}

/// One read, so that it is of one moment and holds no snapshot of the database while the client takes it.
async fn snapshot(Call { stele, caller }: Call, Path(id): Path<String>) -> Answer {
    caller.may(Resource::Memory, Action::Read).map_err(Refusal::from)?;
    let store = store_id(&id)?;
    let At { sequence, value } = stele.snapshot(&caller, store).await?;
    let head = SnapshotView {
        memory_store_id: store.to_string(),
        sequence,
        epoch: stele.installation().epoch.to_string(),
        max_memories: stele.memories_cap(&caller).await?,
        memories: Vec::new(),
    };
    let mut opening = serde_json::to_vec(&head).expect("a view is always JSON");
    // The list is last, and goes on where the empty one ends.
    opening.truncate(opening.len() - 2);
    let rest = Rest { part: opening, memories: value, next: 0 };
    let mut response = stream::body(Some(rest), Rest::part).into_response();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(at(sequence, response))
}

/// What of a snapshot is not sent yet.
struct Rest {
    part: Vec<u8>,
    memories: Vec<Memory>,
    next: usize,
}

impl Rest {
    fn part(rest: Option<Self>) -> Making<Option<Self>> {
        Box::pin(std::future::ready(rest.map(Self::fill)))
    }

    fn fill(mut self) -> (Bytes, Option<Self>) {
        while let Some(memory) = self.memories.get(self.next).filter(|_| self.part.len() < PART) {
            if self.next > 0 {
                self.part.push(b',');
            }
            self.part.extend_from_slice(&bytes(&NodeView::of(memory)));
            self.next += 1;
        }
        let over = self.next == self.memories.len();
        if over {
            self.part.extend_from_slice(b"]}");
        }
        let part = Bytes::from(std::mem::take(&mut self.part));
        (part, (!over).then_some(self))
    }
}

/// Ids of memories, for their present texts, and of versions: at least one, at most 1,000 together.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "GetContents")]
struct WantedIds {
    /// For their present contents.
    #[serde(default)]
    #[schemars(length(max = 1000), inner(regex(pattern = UUID)))]
    memory_ids: Vec<String>,
    /// For the contents as they stood.
    #[serde(default)]
    #[schemars(length(max = 1000), inner(regex(pattern = UUID)))]
    memory_version_ids: Vec<String>,
}

/// Texts in the order asked for, memories before versions. `unknown` are not there; `remaining` did not fit: ask for
/// them next.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Contents")]
struct ContentsView<'a> {
    contents: Vec<ContentView<'a>>,
    unknown: IdsView,
    remaining: IdsView,
}

/// Ids of memories and versions, as they were asked for.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ContentIds")]
struct IdsView {
    memory_ids: Vec<String>,
    memory_version_ids: Vec<String>,
}

/// One text; null where the version was redacted or records a deletion.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Content")]
struct ContentView<'a> {
    memory_id: String,
    memory_version_id: String,
    path: Option<&'a str>,
    summary: Option<&'a str>,
    content: Option<&'a str>,
    content_sha256: Option<String>,
    content_size_bytes: Option<u64>,
    redacted: bool,
}

impl<'a> ContentView<'a> {
    fn of(shown: &'a VersionText) -> Self {
        let VersionText { version, summary, content, .. } = shown;
        let recorded = version.recorded.as_ref();
        Self {
            memory_id: version.memory.to_string(),
            memory_version_id: version.id.to_string(),
            path: version.path.as_ref().map(|path| path.as_str()),
            summary: summary.as_ref().map(|summary| summary.as_str()),
            content: content.as_ref().map(text),
            content_sha256: recorded.map(|r| r.content_sha256.to_string()),
            content_size_bytes: recorded.map(|r| r.size_bytes),
            redacted: version.redaction.is_some(),
        }
    }
}

impl WantedIds {
    fn parse(self) -> Result<Vec<Wanted>, Refusal> {
        let count = self.memory_ids.len() + self.memory_version_ids.len();
        if !(1..=IDS).contains(&count) {
            let problem = format!("and memory_version_ids must be from 1 to {IDS} ids together");
            return Err(Refusal::shape("memory_ids", problem));
        }
        let memories = self
            .memory_ids
            .iter()
            .map(|text| MemoryId::parse(text).map(Wanted::Memory).ok_or_else(|| malformed("memory_ids")));
        let versions = self.memory_version_ids.iter().map(|text| {
            VersionId::parse(text).map(Wanted::Version).ok_or_else(|| malformed("memory_version_ids"))
        });
        memories.chain(versions).collect()
    }
}

impl IdsView {
    fn of(wanted: &[Wanted]) -> Self {
        let mut ids = Self { memory_ids: Vec::new(), memory_version_ids: Vec::new() };
        for wanted in wanted {
            match wanted {
                Wanted::Memory(id) => ids.memory_ids.push(id.to_string()),
                Wanted::Version(id) => ids.memory_version_ids.push(id.to_string()),
            }
        }
        ids
    }
}

fn malformed(field: &str) -> Refusal {
    Refusal::shape(field, "must be a list of UUIDs")
}

async fn contents(Call { stele, caller }: Call, Path(id): Path<String>, body: Body) -> Answer {
    let wanted: WantedIds = allowed_body(&caller, (Resource::Memory, Action::Read), body).await?;
    let store = store_id(&id)?;
    let wanted = wanted.parse()?;
    let At { sequence, value } = stele.contents(&caller, store, wanted.clone()).await?;
    let (asked, remaining) = wanted.split_at(value.len().min(wanted.len()));
    let unknown: Vec<Wanted> =
        asked.iter().zip(&value).filter(|(_, found)| found.is_none()).map(|(wanted, _)| *wanted).collect();
    let view = ContentsView {
        contents: value.iter().flatten().map(ContentView::of).collect(),
        unknown: IdsView::of(&unknown),
        remaining: IdsView::of(remaining),
    };
    let response: Response = json(bytes(&view));
    Ok(at(sequence, response))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_is_json_however_it_is_cut() {
        let memory = |n: u8| Memory {
            id: MemoryId::from_bytes([n; 16]),
            store: StoreId::from_bytes([1; 16]),
            path: stele_core::path::MemoryPath::parse(&format!("/{n}")).expect("a path"),
            version: VersionId::from_bytes([n; 16]),
            content_sha256: stele_core::hash::Sha256::of(&[n]),
            size_bytes: 1,
            created_at: stele_core::time::Timestamp::from_micros(1),
            updated_at: stele_core::time::Timestamp::from_micros(2),
        };
        for count in [0u8, 1, 255] {
            let memories: Vec<_> = (0..count).map(memory).collect();
            let (mut whole, mut rest) =
                (Vec::new(), Some(Rest { part: b"{\"memories\":[".to_vec(), memories, next: 0 }));
            while let Some(now) = rest {
                let (part, then) = now.fill();
                whole.extend_from_slice(&part);
                rest = then;
            }
            let read: serde_json::Value = serde_json::from_slice(&whole).expect("JSON");
            assert_eq!(read["memories"].as_array().map(Vec::len), Some(usize::from(count)));
        }
    }
}
