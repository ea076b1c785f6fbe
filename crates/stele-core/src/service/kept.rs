//! Reading and committing documents.

use crate::id::WorkspaceId;
use crate::list::{Created, Page};
use crate::records::{CommitError, Order, RecordId, RecordQuery, RecordWrite, Tag};
use crate::service::Stele;
use crate::storage::StorageError;
use crate::time::Timestamp;
use crate::work::document::{Document, Kept};

/// How often a use case begins again because another writer came first. Within one process changes of one thing take
/// turns, so this counts the writers of other processes.
pub(super) const ATTEMPTS: usize = 128;

/// A place in a list by creation: after this one.
pub type Position = (Timestamp, RecordId);

/// What a list of documents is asked for.
#[derive(Clone, Debug)]
pub(super) struct Listing {
    pub(super) tag: Option<Tag>,
    pub(super) created: Created,
    pub(super) order: Order,
    pub(super) after: Option<Position>,
    pub(super) limit: usize,
}

impl Listing {
    /// The first `limit` with this tag, newest first.
    pub(super) fn tagged(tag: Tag, limit: usize) -> Self {
        let (created, order) = (Created::default(), Order::NewestFirst);
        Self { tag: Some(tag), created, order, after: None, limit }
    }
}

impl Stele {
    /// The document of this id.
    pub(super) async fn find<D: Document>(
        &self,
        workspace: WorkspaceId,
        id: RecordId,
    ) -> Result<Option<Kept<D>>, StorageError> {
        self.storage.record(workspace, D::KIND, id).await?.as_ref().map(Kept::of).transpose()
    }

    /// The documents of these ids that exist, in their order.
    pub(super) async fn find_many<D: Document>(
        &self,
        workspace: WorkspaceId,
        ids: Vec<RecordId>,
    ) -> Result<Vec<Kept<D>>, StorageError> {
        self.storage.record_many(workspace, D::KIND, ids).await?.iter().map(Kept::of).collect()
    }

    /// The document of any workspace with this key.
    pub(super) async fn find_by_key<D: Document>(
        &self,
        key: [u8; 32],
    ) -> Result<Option<Kept<D>>, StorageError> {
        self.storage.record_by_key(D::KIND, key).await?.as_ref().map(Kept::of).transpose()
    }

    /// Documents by creation.
    pub(super) async fn list<D: Document>(
        &self,
        workspace: WorkspaceId,
        listing: Listing,
    ) -> Result<Page<Kept<D>>, StorageError> {
        let Listing { tag, created, order, after, limit } = listing;
        let query = RecordQuery { workspace, kind: D::KIND, tag, created, order, after, limit };
        let page = self.storage.record_list(query).await?;
        let items = page.items.iter().map(Kept::of).collect::<Result<_, _>>()?;
        Ok(Page { items, more: page.more })
    }

    /// Commits; false if another writer came first and nothing was written.
    pub(super) async fn commit(&self, writes: Vec<RecordWrite>) -> Result<bool, StorageError> {
        match self.storage.commit(writes).await {
            Ok(()) => Ok(true),
            Err(CommitError::Conflict(_)) => Ok(false),
            Err(CommitError::Failed(error)) => Err(error),
        }
    }

    /// Commits documents that are new; that one of their ids or keys is taken does not happen by chance.
    pub(super) async fn commit_new(&self, writes: Vec<RecordWrite>) -> Result<(), StorageError> {
        if self.commit(writes).await? { Ok(()) } else { Err(StorageError::Overloaded) }
    }
}

/// The page's documents without their revisions.
pub(super) fn docs<D>(page: Page<Kept<D>>) -> Page<D> {
    Page { items: page.items.into_iter().map(|kept| kept.doc).collect(), more: page.more }
}
