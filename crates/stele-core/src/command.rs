//! Changes as data: what a writer asks of a store. `decide` judges them.

use crate::hash::Sha256;
use crate::id::{AgentId, MemoryId, StoreId, VersionId};
use crate::path::MemoryPath;
use crate::refusal::Refusal;
use crate::text::{Content, Description, MetadataPatch, Name, Summary};

/// A new store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewStore {
    /// Its name.
    pub name: Name,
    /// Its description.
    pub description: Description,
    /// Its metadata, as a patch of none.
    pub metadata: MetadataPatch,
    /// The agent that it belongs to, if any.
    pub agent: Option<AgentId>,
    /// The id of a store that Stele itself will write, by learning; `None` for one that others curate.
    pub learned: Option<StoreId>,
}

/// Whether a change is allowed on an archived store; the dialects differ in deletions. spec/recursion.md 16.4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnArchived {
    /// Do it all the same.
    Allow,
    /// Refuse it.
    Refuse,
}

/// What a redaction does with the path. spec/recursion.md 7.5 (D8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedactedPath {
    /// It stays as it stood.
    Keep,
    /// It is removed with the text.
    Scrub,
}

/// How a memory is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemoryRef {
    /// By its id.
    Id(MemoryId),
    /// By its path.
    Path(MemoryPath),
}

impl From<MemoryId> for MemoryRef {
    fn from(id: MemoryId) -> Self {
        Self::Id(id)
    }
}

impl From<MemoryPath> for MemoryRef {
    fn from(path: MemoryPath) -> Self {
        Self::Path(path)
    }
}

impl MemoryRef {
    /// The refusal where there is no such live memory.
    pub fn missing(&self) -> Refusal {
        match self {
            Self::Id(id) => Refusal::MemoryNotFound(*id),
            Self::Path(_) => Refusal::PathNotFound,
        }
    }
}

/// One change of one store or of a memory in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Change the store's own fields; `None` keeps one.
    UpdateStore {
        /// New name.
        name: Option<Name>,
        /// New description.
        description: Option<Description>,
        /// Change of the metadata.
        metadata: MetadataPatch,
    },
    /// Make the store read-only for good.
    ArchiveStore,
    /// Remove the store and all that belongs to it.
    DeleteStore,
    /// Create a memory; never overwrites.
    CreateMemory {
        /// Where.
        path: MemoryPath,
        /// Its summary.
        summary: Summary,
        /// Its content.
        content: Content,
    },
    /// Change a memory; `None` keeps a part.
    UpdateMemory {
        /// Which.
        memory: MemoryRef,
        /// New path.
        path: Option<MemoryPath>,
        /// New summary.
        summary: Option<Summary>,
        /// New content.
        content: Option<Content>,
        /// What the caller knows.
        expected: Expected,
    },
    /// Delete a memory; its history stays.
    DeleteMemory {
        /// Which.
        memory: MemoryRef,
        /// What the caller knows.
        expected: Expected,
        /// On an archived store.
        on_archived: OnArchived,
    },
    /// Write the text of an old version back, or bring a deleted memory back under its id.
    RestoreVersion {
        /// Which.
        version: VersionId,
    },
    /// Remove the text of a version for good.
    RedactVersion {
        /// Which.
        version: VersionId,
        /// What becomes of its path.
        path: RedactedPath,
    },
}

/// The state that a writer believes the content to be in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// The writer doesn't care.
    Anything,
    /// Content of this hash.
    Content(Sha256),
    /// Something that no content's hash can be (a malformed hash where the dialect doesn't refuse it).
    Impossible,
}

impl Expected {
    /// Whether content of hash `actual` is what the writer expects.
    pub fn fits(self, actual: Sha256) -> bool {
        match self {
            Self::Anything => true,
            Self::Content(expected) => expected == actual,
            Self::Impossible => false,
        }
    }
}

impl Command {
    /// The live memory that must be loaded to judge the command; for versions it is the version's own memory.
    pub fn memory(&self) -> Option<&MemoryRef> {
        match self {
            Self::UpdateMemory { memory, .. } | Self::DeleteMemory { memory, .. } => Some(memory),
            Self::UpdateStore { .. }
            | Self::ArchiveStore
            | Self::DeleteStore
            | Self::CreateMemory { .. }
            | Self::RestoreVersion { .. }
            | Self::RedactVersion { .. } => None,
        }
    }

    /// The version that must be loaded to judge the command.
    pub fn version(&self) -> Option<VersionId> {
        match self {
            Self::RestoreVersion { version } | Self::RedactVersion { version, .. } => Some(*version),
            _ => None,
        }
    }

    /// The path that the command wants to take, of which the occupant must be loaded.
    pub fn wanted_path(&self) -> Option<&MemoryPath> {
        match self {
            Self::CreateMemory { path, .. } => Some(path),
            Self::UpdateMemory { path, .. } => path.as_ref(),
            _ => None,
        }
    }

    /// The new content that it brings.
    pub fn content(&self) -> Option<&Content> {
        match self {
            Self::CreateMemory { content, .. } => Some(content),
            Self::UpdateMemory { content, .. } => content.as_ref(),
            Self::UpdateStore { .. }
            | Self::ArchiveStore
            | Self::DeleteStore
            | Self::DeleteMemory { .. }
            | Self::RestoreVersion { .. }
            | Self::RedactVersion { .. } => None,
        }
    }

    /// Whether it may add a memory, so that the cap of the workspace must be loaded.
    pub fn may_add_memory(&self) -> bool {
        matches!(self, Self::CreateMemory { .. } | Self::RestoreVersion { .. })
    }

    /// Whether the content of the memory that results is the one in the command.
    pub fn brings_content(&self) -> bool {
        matches!(self, Self::CreateMemory { .. } | Self::UpdateMemory { content: Some(_), .. })
    }

    /// Whether it may be carried out while the disk is nearly full: it makes room or erases.
    pub fn makes_room(&self) -> bool {
        matches!(self, Self::DeleteStore | Self::DeleteMemory { .. } | Self::RedactVersion { .. })
    }
}
