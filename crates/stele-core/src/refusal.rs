//! Why a request is refused: values with data, one exhaustive table of answers in each dialect.

use crate::access::Forbidden;
use crate::hash::{HashError, Sha256};
use crate::id::{AgentId, KeyId, MemoryId, StoreId, VersionId, WorkspaceId};
use crate::import::Unfit;
use crate::path::{MemoryPath, PathError};
use crate::text::TextError;
use crate::work::refusal::WorkRefusal;

/// What is wrong with one field of a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    /// A path or prefix.
    #[error(transparent)]
    Path(#[from] PathError),
    /// A text.
    #[error(transparent)]
    Text(#[from] TextError),
    /// A hash.
    #[error(transparent)]
    Hash(#[from] HashError),
    /// A shape that the dialect refuses: missing, of the wrong type, unknown, out of bounds.
    #[error("{0}")]
    Shape(String),
}

/// A request that is refused; nothing changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The caller lacks a permission. Judged before anything is looked up.
    #[error(transparent)]
    Forbidden(#[from] Forbidden),
    /// A field is malformed or out of bounds.
    #[error("{field}: {error}")]
    Invalid {
        /// The field, as the wire spells it; dotted where nested.
        field: String,
        /// What is wrong with it.
        error: FieldError,
    },
    /// No such store in the caller's workspace.
    #[error("memory store not found")]
    StoreNotFound(StoreId),
    /// No such live memory in the store.
    #[error("memory not found")]
    MemoryNotFound(MemoryId),
    /// No live memory at the path.
    #[error("no memory at this path")]
    PathNotFound,
    /// No such version in the store.
    #[error("memory version not found")]
    VersionNotFound(VersionId),
    /// No such key in the workspace.
    #[error("API key not found")]
    KeyNotFound(KeyId),
    /// No such agent in the workspace.
    #[error("agent not found")]
    AgentNotFound(AgentId),
    /// No such workspace in the installation.
    #[error("workspace not found")]
    WorkspaceNotFound(WorkspaceId),
    /// The store is archived and takes no such change.
    #[error("the memory store is archived and read-only")]
    StoreArchived(StoreId),
    /// The store is learned, and nobody edits it by hand.
    #[error("the memory store is learned and is not edited by hand")]
    StoreLearned(StoreId),
    /// The content is not what the caller read.
    #[error("content_sha256 of the memory does not match: it changed since it was read")]
    ContentChanged {
        /// The memory.
        memory: MemoryId,
        /// Its current hash.
        actual: Sha256,
    },
    /// A live memory is at the path, above it or below it.
    #[error("the path {wanted} is occupied by the memory at {at}")]
    PathOccupied {
        /// The path that was wanted.
        wanted: MemoryPath,
        /// The memory in the way.
        by: MemoryId,
        /// Where that memory is.
        at: MemoryPath,
    },
    /// The store has as many memories as it may have.
    #[error("the memory store holds {limit} memories, its most; delete some first")]
    MemoryLimit {
        /// The cap.
        limit: u64,
    },
    /// The workspace has as many stores as it may have.
    #[error("the workspace has {limit} memory stores, its most; delete some first")]
    StoreLimit {
        /// The cap.
        limit: u64,
    },
    /// The store's contents would be too many bytes together.
    #[error("the memory store's contents would exceed {limit} bytes")]
    StoreBytesLimit {
        /// The cap.
        limit: u64,
    },
    /// The store has as many versions as it may have.
    #[error("the memory store has {limit} versions, its most")]
    VersionLimit {
        /// The cap.
        limit: u64,
    },
    /// A change of a changeset is refused, and with it the whole.
    #[error("change {index} of the changeset: {refusal}; nothing was changed")]
    InChangeset {
        /// Which, counted from 0.
        index: usize,
        /// Why.
        refusal: Box<Refusal>,
    },
    /// The head of a live memory cannot be redacted.
    #[error(
        "the version is the current content of a live memory: write a clean version first, then redact this one"
    )]
    VersionIsHead(VersionId),
    /// There is no text to write back.
    #[error("the version holds no text to restore: it is redacted or records a deletion")]
    VersionNotRestorable(VersionId),
    /// What changed since the reader's sequence cannot be told any more, or the sequence is of another life of the
    /// database.
    #[error(
        "the changes after this sequence cannot be told: they are past their retention, or the sequence is of another \
         database; list the store again and go on from there"
    )]
    SequenceExpired(StoreId),
    /// What is to be put back is there already: a store of this id, or memories or versions of it in another one.
    #[error(
        "the memory store {0} is in this database already, or something of it is: delete it before it is put back"
    )]
    StoreExists(StoreId),
    /// Files that cannot be imported as they are.
    #[error(transparent)]
    Unfit(Unfit),
    /// It is about agents, environments, sessions or their work.
    #[error(transparent)]
    Work(#[from] WorkRefusal),
}

impl Refusal {
    /// The refusal of `field`, as the wire spells it.
    pub fn invalid(field: impl Into<String>, error: impl Into<FieldError>) -> Self {
        Self::Invalid { field: field.into(), error: error.into() }
    }

    /// The refusal of a changeset for the sake of the change with this index.
    pub fn at(self, index: usize) -> Self {
        Self::InChangeset { index, refusal: Box::new(self) }
    }

    /// The refusal of a field's shape.
    pub fn shape(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Invalid { field: field.into(), error: FieldError::Shape(problem.into()) }
    }
}
