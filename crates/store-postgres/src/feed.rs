//! What followers of a store read: its changes, its tree, many texts. DESIGN 7.

use stele_core::feed::{Before, Changes, Told, Wanted};
use stele_core::id::{MemoryId, StoreId, VersionId, WorkspaceId};
use stele_core::model::{Memory, Operation, VersionText};
use stele_core::path::MemoryPath;
use stele_core::storage::{At, InStore};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::connect::Connected;
use crate::fault::Fault;
use crate::marks;
use crate::pipeline::send;
use crate::reads::version_text;
use crate::rows::{self, Col, Cursor, operation_number, signed};

/// The last column of a text: whether it was found as the head of a memory.
const FOUND_AS_HEAD: usize = 18;
/// Texts of one statement: at most so many times the cap of a content are held at once.
pub(crate) const TEXTS: usize = 50;

/// The changes of a store after a sequence. Three statements, each in a snapshot of its own: the store's row comes
/// first, so that the later ones see everything up to its sequence, but for what retention takes in between.
pub(crate) async fn changes(
    connected: &Connected,
    workspace: WorkspaceId,
    id: StoreId,
    after: u64,
    limit: usize,
) -> Result<Option<Changes>, Fault> {
    let (client, statements) = (&connected.client, &connected.statements);
    let (space, place) = (Col(workspace), Col(id));
    let (behind, most) = (signed(after), signed(limit as u64));
    let parameters: [&(dyn ToSql + Sync); 4] = [&space, &place, &behind, &most];
    let row = send(client.query_opt(&statements.followed_store, &parameters[..2])).await;
    let versions = send(client.query(&statements.versions_after, &parameters)).await;
    let marks = send(client.query(&statements.marks_after, &parameters)).await;
    let (row, versions, marks) = (row.answer().await?, versions.answer().await?, marks.answer().await?);
    let versions = versions.iter().map(|row| told(row, id)).collect::<Result<Vec<_>, _>>()?;
    let marks = marks.iter().map(|row| marks::mark(&mut Cursor::new(row))).collect::<Result<Vec<_>, _>>()?;
    let Some(row) = row else {
        // Purged: the mark of its deletion is left.
        let deletion = marks.into_iter().map(Told::Mark).collect::<Vec<_>>();
        return match deletion.last() {
            Some(last) => {
                Ok(Some(Changes { store: None, sequence: last.sequence(), floor: 0, told: deletion }))
            }
            None => forgotten(connected, workspace, id).await,
        };
    };
    let deleted: bool = row.try_get(0)?;
    let c = &mut Cursor::new(&row);
    let _: bool = c.take()?;
    let store = rows::store(c)?;
    let (sequence, floor) = (store.counters.sequence, store.counters.floor);
    let mut told = Changes::merged(versions, marks, limit);
    told.retain(|told| told.sequence() <= sequence);
    Ok(Some(Changes { store: (!deleted).then_some(store), sequence, floor, told }))
}

/// A purged store whose deletion the reader knows of already.
async fn forgotten(
    connected: &Connected,
    workspace: WorkspaceId,
    id: StoreId,
) -> Result<Option<Changes>, Fault> {
    let statement = &connected.statements.marks_after;
    let (space, place) = (Col(workspace), Col(id));
    let found = connected.client.query(statement, &[&space, &place, &0i64, &1i64]).await?;
    let mark = found.first().map(|row| marks::mark(&mut Cursor::new(row))).transpose()?;
    Ok(mark.map(|mark| Changes { store: None, sequence: mark.sequence, floor: 0, told: Vec::new() }))
}

/// Reads the operation, path and redaction of the version before, and the columns of a version.
fn told(row: &Row, store: StoreId) -> Result<Told, Fault> {
    let c = &mut Cursor::new(row);
    let (number, path, redacted): (Option<i16>, Option<String>, bool) = (c.take()?, c.take()?, c.take()?);
    let operation = number.and_then(|number| {
        Operation::ALL.into_iter().find(|operation| operation_number(*operation) == number)
    });
    let path = path.map(MemoryPath::from_trusted);
    let before = operation.map(|operation| Before { operation, path, redacted });
    Ok(Told::version(rows::version(c, store)?, before))
}

/// The live memories of a store by path, in one statement.
pub(crate) async fn snapshot(
    connected: &Connected,
    workspace: WorkspaceId,
    store: StoreId,
) -> Result<InStore<Vec<Memory>>, Fault> {
    let statement = &connected.statements.snapshot;
    let found = connected.client.query(statement, &[&Col(workspace), &Col(store)]).await?;
    let Some(first) = found.first() else { return Ok(None) };
    let sequence = Cursor::new(first).number()?;
    let mut value = Vec::with_capacity(found.len());
    for row in &found {
        // The one row of an empty store has no memory.
        if row.try_get::<_, Option<Col<MemoryId>>>(1)?.is_some() {
            let c = &mut Cursor::new(row);
            let _: u64 = c.number()?;
            value.push(rows::memory(c, store)?);
        }
    }
    Ok(Some(At { sequence, value }))
}

/// The texts of memories and versions.
pub(crate) async fn contents(
    connected: &Connected,
    workspace: WorkspaceId,
    store: StoreId,
    wanted: &[Wanted],
    bytes: u64,
) -> Result<InStore<Vec<Option<VersionText>>>, Fault> {
    let statement = &connected.statements.store_sequence;
    let row = connected.client.query_opt(statement, &[&Col(workspace), &Col(store)]).await?;
    let Some(row) = row else { return Ok(None) };
    let sequence = Cursor::new(&row).number()?;
    let (mut value, mut read) = (Vec::with_capacity(wanted.len()), 0);
    for part in wanted.chunks(TEXTS) {
        for text in texts(connected, (workspace, store), part).await? {
            read += text.as_ref().and_then(|text| text.content.as_ref()).map_or(0, |c| c.len() as u64);
            value.push(text);
            if read >= bytes {
                return Ok(Some(At { sequence, value }));
            }
        }
    }
    Ok(Some(At { sequence, value }))
}

/// The texts of a few, in order.
async fn texts(
    connected: &Connected,
    (workspace, store): (WorkspaceId, StoreId),
    wanted: &[Wanted],
) -> Result<Vec<Option<VersionText>>, Fault> {
    let memories: Vec<Col<MemoryId>> = wanted
        .iter()
        .filter_map(|w| match w {
            Wanted::Memory(id) => Some(Col(*id)),
            Wanted::Version(_) => None,
        })
        .collect();
    let versions: Vec<Col<VersionId>> = wanted
        .iter()
        .filter_map(|w| match w {
            Wanted::Version(id) => Some(Col(*id)),
            Wanted::Memory(_) => None,
        })
        .collect();
    let statement = &connected.statements.contents;
    let (workspace, place) = (Col(workspace), Col(store));
    let found = connected.client.query(statement, &[&workspace, &place, &memories, &versions]).await?;
    let found = found
        .iter()
        .map(|row| Ok((row.try_get::<_, bool>(FOUND_AS_HEAD)?, version_text(row, store, true)?)))
        .collect::<Result<Vec<_>, Fault>>()?;
    let fits = |wanted: &Wanted| {
        let fitting = found.iter().find(|(as_head, text)| match wanted {
            Wanted::Memory(id) => *as_head && text.version.memory == *id,
            Wanted::Version(id) => !*as_head && text.version.id == *id,
        });
        fitting.map(|(_, text)| text.clone())
    };
    Ok(wanted.iter().map(fits).collect())
}
