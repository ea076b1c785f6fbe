//! Changes without a version, in their table. DESIGN 7.

use rusqlite::{Connection, params};
use stele_core::id::{MemoryId, VersionId, WorkspaceId};
use stele_core::model::{Mark, MarkKind};

use crate::rows::{self, Col, Cursor, Sql, actor_columns};

/// Columns that [`mark`] reads.
pub(crate) const MARK: &str =
    "m.store, m.sequence, m.kind, m.memory_id, m.version_id, m.created_at, m.author_kind, m.author";

/// A mark.
pub(crate) fn mark(c: &mut Cursor<'_, '_>) -> Sql<Mark> {
    let (store, sequence, kind) = (c.col()?, c.take()?, c.take::<i64>()?);
    let about: (Option<MemoryId>, Option<VersionId>) = (c.maybe()?, c.maybe()?);
    let kind = match (kind, about) {
        (1, (Some(memory), Some(version))) => MarkKind::Redacted { memory, version },
        (2, _) => MarkKind::StoreArchived,
        (3, _) => MarkKind::StoreDeleted,
        (other, _) => return Err(rusqlite::types::FromSqlError::OutOfRange(other).into()),
    };
    Ok(Mark { store, sequence, kind, created_at: c.col()?, author: rows::actor(c.take()?, c.take()?)? })
}

/// Keeps a mark.
pub(crate) fn insert_mark(connection: &Connection, workspace: WorkspaceId, mark: &Mark) -> Sql<()> {
    let (kind, memory, version) = match mark.kind {
        MarkKind::Redacted { memory, version } => (1, Some(Col(memory)), Some(Col(version))),
        MarkKind::StoreArchived => (2, None, None),
        MarkKind::StoreDeleted => (3, None, None),
    };
    let (author_kind, author) = actor_columns(mark.author);
    connection
        .prepare_cached(
            "INSERT INTO marks (workspace, store, sequence, kind, memory_id, version_id, created_at, author_kind, \
             author) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        )?
        .execute(params![
            Col(workspace),
            Col(mark.store),
            mark.sequence,
            kind,
            memory,
            version,
            Col(mark.created_at),
            author_kind,
            author
        ])?;
    Ok(())
}
