//! What an archive says of itself and of each row, as JSON.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::Digest;
use stele_core::feed::Past;
use stele_core::hash::Sha256;
use stele_core::id::{
    AgentId, Epoch, KeyId, MemoryId, OrganizationId, ServiceAccountId, SessionId, StoreId, UserId, VersionId,
    WorkspaceId,
};
use stele_core::limits::Limits;
use stele_core::model::{
    Actor, Counters, Mark, MarkKind, Memory, Operation, Origin, Recorded, Redaction, Store, Version,
    VersionText,
};
use stele_core::path::MemoryPath;
use stele_core::text::{Content, Description, Metadata, MetadataPatch, Name, Reason, Summary};
use stele_core::time::Timestamp;

/// The name of an archive's first entry, which says what it is.
pub const ENTRY: &str = "stele-archive.json";
/// What [`Manifest::format`] says.
pub const FORMAT: &str = "stele-archive";
/// The version of the format that this program writes, and the only one that it reads.
pub const VERSION: u32 = 1;
/// The greatest sequence that an archive may claim: up to it every JSON parser keeps whole numbers apart, and far above it
/// the back ends, which count in 64 bits with a sign, have room for what is written later. A store with a thousand writes
/// a second gets there after 285,000 years.
const MOST_SEQUENCE: u64 = 1 << 53;

/// The first entry of an archive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// [`FORMAT`].
    pub format: String,
    /// [`VERSION`].
    pub version: u32,
    /// The installation that it was made of.
    pub installation: OrganizationId,
    /// The life of its database.
    pub epoch: Epoch,
    /// The workspace there.
    pub workspace: WorkspaceId,
    /// The store.
    pub store: StoreFields,
    /// The sequence that all in it is of.
    pub sequence: u64,
    /// Live memories.
    pub memories: u64,
    /// Bytes of their contents together.
    pub bytes: u64,
    /// What [`tree_sha256`] gives of them.
    pub tree_sha256: String,
}

/// A store's own fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "stele_core::model::Store says what each field is")]
pub struct StoreFields {
    pub id: StoreId,
    pub name: String,
    pub slug: String,
    pub description: String,
    pub metadata: BTreeMap<String, String>,
    /// `curated` or `reflection`.
    pub origin: String,
    pub agent: Option<AgentId>,
    pub created_by: ActorFields,
    pub created_at: String,
    pub updated_at: String,
    pub changed_at: String,
    pub archived_at: Option<String>,
}

/// Who: `api_key`, `session`, `user` or `service_account`, and the id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActorFields {
    kind: String,
    id: String,
}

impl From<Actor> for ActorFields {
    fn from(actor: Actor) -> Self {
        let (kind, id) = match actor {
            Actor::ApiKey(id) => ("api_key", id.to_string()),
            Actor::Session(id) => ("session", id.to_string()),
            Actor::User(id) => ("user", id.to_string()),
            Actor::ServiceAccount(id) => ("service_account", id.to_string()),
        };
        Self { kind: kind.to_owned(), id }
    }
}

impl ActorFields {
    fn parse(&self) -> Option<Actor> {
        match self.kind.as_str() {
            "api_key" => KeyId::parse(&self.id).map(Actor::ApiKey),
            "session" => SessionId::parse(&self.id).map(Actor::Session),
            "user" => UserId::parse(&self.id).map(Actor::User),
            "service_account" => ServiceAccountId::parse(&self.id).map(Actor::ServiceAccount),
            _ => None,
        }
    }
}

/// What is wrong with a row, in words.
type Wrong = String;

fn time(text: &str) -> Result<Timestamp, Wrong> {
    Timestamp::parse(text).ok_or_else(|| "a time in it is no RFC 3339 time".to_owned())
}

fn actor(fields: &ActorFields) -> Result<Actor, Wrong> {
    fields.parse().ok_or_else(|| "an author in it is none".to_owned())
}

fn wrong(field: &str, error: impl std::fmt::Display) -> Wrong {
    format!("its {field} {error}")
}

impl Manifest {
    /// The manifest of a store whose live memories at `sequence` are these, by path.
    pub fn of(
        (installation, epoch): (OrganizationId, Epoch),
        store: &Store,
        sequence: u64,
        memories: &[Memory],
    ) -> Self {
        let hashes = memories.iter().map(|memory| (memory.content_sha256, &memory.path));
        Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            installation,
            epoch,
            workspace: store.workspace,
            store: StoreFields::of(store),
            sequence,
            memories: memories.len() as u64,
            bytes: memories.iter().map(|memory| memory.size_bytes).sum(),
            tree_sha256: tree_sha256(hashes).to_string(),
        }
    }

    /// The store that it describes, in another workspace. `floor` and `versions` of its counters are not known yet, and are 0.
    ///
    /// # Errors
    /// What is wrong with a field, in words.
    pub fn store(&self, workspace: WorkspaceId) -> Result<Store, String> {
        let fields = &self.store;
        let pairs = fields.metadata.iter().map(|(key, value)| (key.clone(), Some(value.clone()))).collect();
        let patch = MetadataPatch::parse(pairs).map_err(|(_, error)| wrong("metadata", error))?;
        let slug = stele_core::text::slug(&fields.slug);
        if (slug != fields.slug || slug.is_empty()) && StoreId::parse(&fields.slug) != Some(fields.id) {
            return Err("its slug is none".to_owned());
        }
        if self.sequence > MOST_SEQUENCE {
            return Err(format!(
                "its sequence {} is beyond 2^53, the greatest that an archive may claim",
                self.sequence
            ));
        }
        Ok(Store {
            id: fields.id,
            workspace,
            name: Name::parse(&fields.name).map_err(|error| wrong("name", error))?,
            slug: fields.slug.clone(),
            description: Description::parse(&fields.description)
                .map_err(|error| wrong("description", error))?,
            metadata: Metadata::default().patched(&patch).map_err(|error| wrong("metadata", error))?,
            origin: match fields.origin.as_str() {
                "curated" => Origin::Curated,
                "reflection" => Origin::Reflection,
                _ => return Err("its origin is neither curated nor reflection".to_owned()),
            },
            agent: fields.agent,
            created_by: actor(&fields.created_by)?,
            created_at: time(&fields.created_at)?,
            updated_at: time(&fields.updated_at)?,
            changed_at: time(&fields.changed_at)?,
            archived_at: fields.archived_at.as_deref().map(time).transpose()?,
            counters: Counters {
                sequence: self.sequence,
                floor: 0,
                memories: self.memories,
                bytes: self.bytes,
                versions: 0,
            },
        })
    }
}

impl StoreFields {
    fn of(store: &Store) -> Self {
        Self {
            id: store.id,
            name: store.name.as_str().to_owned(),
            slug: store.slug.clone(),
            description: store.description.as_str().to_owned(),
            metadata: store.metadata.pairs().clone(),
            origin: match store.origin {
                Origin::Curated => "curated",
                Origin::Reflection => "reflection",
            }
            .to_owned(),
            agent: store.agent,
            created_by: store.created_by.into(),
            created_at: store.created_at.to_string(),
            updated_at: store.updated_at.to_string(),
            changed_at: store.changed_at.to_string(),
            archived_at: store.archived_at.map(|at| at.to_string()),
        }
    }
}

/// The SHA-256 of a tree: of a line `<sha256 of the content> <path>` for each memory, by path, each ended by a line feed.
pub fn tree_sha256<'a>(memories: impl Iterator<Item = (Sha256, &'a MemoryPath)>) -> Sha256 {
    let mut tree = TreeHash::default();
    memories.for_each(|(sha256, path)| tree.add(sha256, path));
    tree.finish()
}

#[derive(Default)]
pub(crate) struct TreeHash(sha2::Sha256);

impl TreeHash {
    pub(crate) fn add(&mut self, sha256: Sha256, path: &MemoryPath) {
        self.0.update(format!("{sha256} {path}\n"));
    }

    pub(crate) fn finish(self) -> Sha256 {
        Sha256::from_bytes(self.0.finalize().into())
    }
}

/// A live memory, without its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexRow {
    /// The memory.
    pub memory: Memory,
    /// Its summary.
    pub summary: Summary,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct IndexLine {
    path: String,
    memory: MemoryId,
    version: VersionId,
    sha256: String,
    size: u64,
    summary: String,
    created_at: String,
    updated_at: String,
}

impl IndexLine {
    pub(crate) fn of(row: &IndexRow) -> Self {
        let memory = &row.memory;
        Self {
            path: memory.path.as_str().to_owned(),
            memory: memory.id,
            version: memory.version,
            sha256: memory.content_sha256.to_string(),
            size: memory.size_bytes,
            summary: row.summary.as_str().to_owned(),
            created_at: memory.created_at.to_string(),
            updated_at: memory.updated_at.to_string(),
        }
    }

    /// The row, of a store.
    pub(crate) fn parse(self, store: StoreId, limits: &Limits) -> Result<IndexRow, Wrong> {
        Ok(IndexRow {
            memory: Memory {
                id: self.memory,
                store,
                path: MemoryPath::parse(&self.path).map_err(|error| wrong("path", error))?,
                version: self.version,
                content_sha256: Sha256::parse(&self.sha256).map_err(|error| wrong("hash", error))?,
                size_bytes: self.size,
                created_at: time(&self.created_at)?,
                updated_at: time(&self.updated_at)?,
            },
            summary: Summary::parse(&self.summary, limits.summary_chars)
                .map_err(|error| wrong("summary", error))?,
        })
    }
}

/// A line of the history.
#[derive(Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum PastLine {
    Version(VersionLine),
    Mark(MarkLine),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct VersionLine {
    sequence: u64,
    version: VersionId,
    memory: MemoryId,
    operation: String,
    created_at: String,
    author: ActorFields,
    path: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    redacted: Option<RedactedFields>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    summary: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    content: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RedactedFields {
    at: String,
    by: ActorFields,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MarkLine {
    sequence: u64,
    kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    memory: Option<MemoryId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    version: Option<VersionId>,
    created_at: String,
    author: ActorFields,
}

fn operation_name(operation: Operation) -> &'static str {
    match operation {
        Operation::Created => "created",
        Operation::Updated => "updated",
        Operation::Renamed => "renamed",
        Operation::Deleted => "deleted",
        Operation::Recreated => "recreated",
    }
}

impl PastLine {
    pub(crate) fn of(past: &Past) -> Self {
        let text = match past {
            Past::Version(text) => text,
            Past::Mark(mark) => return Self::Mark(MarkLine::of(mark)),
        };
        let version = &text.version;
        let utf8 = |content: &_| String::from_utf8_lossy(content).into_owned();
        Self::Version(VersionLine {
            sequence: version.sequence,
            version: version.id,
            memory: version.memory,
            operation: operation_name(version.operation).to_owned(),
            created_at: version.created_at.to_string(),
            author: version.author.into(),
            path: version.path.as_ref().map(|path| path.as_str().to_owned()),
            reason: text.reason.clone(),
            redacted: version
                .redaction
                .map(|redaction| RedactedFields { at: redaction.at.to_string(), by: redaction.by.into() }),
            summary: text.summary.as_ref().map(|summary| summary.as_str().to_owned()),
            sha256: version.recorded.as_ref().map(|recorded| recorded.content_sha256.to_string()),
            size: version.recorded.as_ref().map(|recorded| recorded.size_bytes),
            content: text.content.as_ref().map(|content| utf8(content)),
        })
    }

    /// The entry, of a store.
    pub(crate) fn parse(self, store: StoreId, limits: &Limits) -> Result<Past, Wrong> {
        match self {
            Self::Version(line) => line.parse(store, limits).map(|text| Past::Version(Box::new(text))),
            Self::Mark(line) => line.parse(store).map(Past::Mark),
        }
    }

    pub(crate) fn sequence(&self) -> u64 {
        match self {
            Self::Version(line) => line.sequence,
            Self::Mark(line) => line.sequence,
        }
    }
}

impl VersionLine {
    fn parse(self, store: StoreId, limits: &Limits) -> Result<VersionText, Wrong> {
        let operation =
            Operation::ALL.into_iter().find(|operation| operation_name(*operation) == self.operation);
        let operation = operation.ok_or("its operation is none")?;
        let path = self.path.as_deref().map(MemoryPath::parse).transpose().map_err(|e| wrong("path", e))?;
        let redaction = self
            .redacted
            .as_ref()
            .map(|redacted| Ok::<_, Wrong>(Redaction { at: time(&redacted.at)?, by: actor(&redacted.by)? }));
        let redaction = redaction.transpose()?;
        let has_text = operation != Operation::Deleted && redaction.is_none();
        let texts = (self.sha256, self.size, self.content, self.summary);
        let (recorded, content, summary) = match texts {
            (Some(sha256), Some(size), Some(content), Some(summary)) if has_text => {
                let content =
                    Content::parse(content, limits.content_bytes).map_err(|error| wrong("content", error))?;
                if content.sha256().to_string() != sha256 || content.size_bytes() != size {
                    return Err("its content has another hash or size than it says".to_owned());
                }
                let summary =
                    Summary::parse(&summary, limits.summary_chars).map_err(|e| wrong("summary", e))?;
                let recorded = Recorded { content_sha256: content.sha256(), size_bytes: size };
                (Some(recorded), Some(content.bytes().clone()), Some(summary))
            }
            (None, None, None, None) if !has_text => (None, None, None),
            _ => {
                return Err(
                    "it has a text where there can be none, or none where there must be one".to_owned()
                );
            }
        };
        if path.is_none() && redaction.is_none() {
            return Err("it has no path".to_owned());
        }
        if redaction.is_some() && self.reason.is_some() {
            return Err("it is redacted and has a reason".to_owned());
        }
        let reason = self.reason.as_deref().map(Reason::parse).transpose().map_err(|e| wrong("reason", e))?;
        let version = Version {
            id: self.version,
            store,
            memory: self.memory,
            sequence: self.sequence,
            operation,
            created_at: time(&self.created_at)?,
            author: actor(&self.author)?,
            path,
            recorded,
            redaction,
        };
        Ok(VersionText { version, summary, reason: reason.map(|reason| reason.as_str().to_owned()), content })
    }
}

impl MarkLine {
    fn of(mark: &Mark) -> Self {
        let (kind, memory, version) = match mark.kind {
            MarkKind::Redacted { memory, version } => ("redacted", Some(memory), Some(version)),
            MarkKind::StoreArchived => ("store_archived", None, None),
            MarkKind::StoreDeleted => ("store_deleted", None, None),
        };
        Self {
            sequence: mark.sequence,
            kind: kind.to_owned(),
            memory,
            version,
            created_at: mark.created_at.to_string(),
            author: mark.author.into(),
        }
    }

    fn parse(self, store: StoreId) -> Result<Mark, Wrong> {
        let kind = match (self.kind.as_str(), self.memory, self.version) {
            ("redacted", Some(memory), Some(version)) => MarkKind::Redacted { memory, version },
            ("store_archived", None, None) => MarkKind::StoreArchived,
            // An archive is of a store that lives.
            _ => return Err("it is no mark of a store that lives".to_owned()),
        };
        let (created_at, author) = (time(&self.created_at)?, actor(&self.author)?);
        Ok(Mark { store, sequence: self.sequence, kind, created_at, author })
    }
}

/// The last entry of an archive.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EndLine {
    pub(crate) versions: u64,
    pub(crate) marks: u64,
    pub(crate) floor: u64,
    pub(crate) history_sha256: String,
}
