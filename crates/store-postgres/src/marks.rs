//! Changes without a version, in their table. DESIGN 7.

use stele_core::id::{MemoryId, VersionId};
use stele_core::model::{Mark, MarkKind};

use crate::fault::Fault;
use crate::load::Place;
use crate::pipeline::{Sent, send};
use crate::rows::{self, Col, Cursor, actor_columns, signed};

/// A mark in the columns of `mark_columns!`.
pub(crate) fn mark(c: &mut Cursor<'_>) -> Result<Mark, Fault> {
    let (store, sequence, kind) = (c.col()?, c.number()?, c.take::<i16>()?);
    let about: (Option<MemoryId>, Option<VersionId>) = (c.maybe()?, c.maybe()?);
    let kind = match (kind, about) {
        (1, (Some(memory), Some(version))) => MarkKind::Redacted { memory, version },
        (2, _) => MarkKind::StoreArchived,
        (3, _) => MarkKind::StoreDeleted,
        (other, _) => return Err(Fault::Damaged(format!("with a mark of kind {other}"))),
    };
    Ok(Mark { store, sequence, kind, created_at: c.time()?, author: rows::actor(c.take()?, c.take()?)? })
}

/// The columns of a mark's kind: its number, the memory and the version.
pub(crate) fn kind_columns(kind: MarkKind) -> (i16, Option<Col<MemoryId>>, Option<Col<VersionId>>) {
    match kind {
        MarkKind::Redacted { memory, version } => (1, Some(Col(memory)), Some(Col(version))),
        MarkKind::StoreArchived => (2, None, None),
        MarkKind::StoreDeleted => (3, None, None),
    }
}

pub(crate) async fn insert_mark<'a>(
    place: &Place<'a>,
    mark: &'a Mark,
) -> Sent<'a, Result<u64, tokio_postgres::Error>> {
    let Place { connected, workspace, store } = *place;
    send(async move {
        let (kind, memory, version) = kind_columns(mark.kind);
        let (author_kind, author) = actor_columns(mark.author);
        let (sequence, at) = (signed(mark.sequence), mark.created_at.as_micros());
        connected
            .client
            .execute(
                &connected.statements.insert_mark,
                &[
                    &Col(workspace),
                    &Col(store),
                    &sequence,
                    &kind,
                    &memory,
                    &version,
                    &at,
                    &author_kind,
                    &author,
                ],
            )
            .await
    })
    .await
}
