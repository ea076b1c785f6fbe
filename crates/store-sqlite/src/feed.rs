//! What followers of a store read: its changes, its tree, many texts. Each in one short snapshot. DESIGN 7.

use std::time::{Duration, Instant};

use rusqlite::{Connection, OptionalExtension, params};
use stele_core::feed::{Before, Changes, Told, Wanted};
use stele_core::id::{StoreId, WorkspaceId};
use stele_core::model::{Mark, Memory, Store, VersionText};
use stele_core::path::MemoryPath;
use stele_core::storage::{At, InStore};

use crate::fault::Fault;
use crate::marks::{self, MARK};
use crate::reads::{VERSION_TEXTS, store_number, version_text};
use crate::rows::{self, Col, Cursor, Sql};

/// How long the texts of one answer may be read: snapshots are short.
pub(crate) const READING: Duration = Duration::from_millis(100);

/// The changes of a store after a sequence.
pub(crate) fn changes(
    connection: &Connection,
    workspace: WorkspaceId,
    id: StoreId,
    after: u64,
    limit: usize,
) -> Result<Option<Changes>, Fault> {
    let Some((number, store, deleted)) = store_row(connection, workspace, id)? else {
        return Ok(forgotten(connection, workspace, id, after)?);
    };
    let (sequence, floor) = (store.counters.sequence, store.counters.floor);
    let limited = i64::try_from(limit).unwrap_or(i64::MAX);
    let told = if after < floor || after >= sequence {
        Vec::new()
    } else {
        let versions = versions(connection, (number, id), after, limited)?;
        Changes::merged(versions, marks_after(connection, id, after, limited)?, limit)
    };
    Ok(Some(Changes { store: (!deleted).then_some(store), sequence, floor, told }))
}

/// A store with its row number, also one that is deleted and not yet purged, and whether it is.
fn store_row(
    connection: &Connection,
    workspace: WorkspaceId,
    id: StoreId,
) -> Sql<Option<(i64, Store, bool)>> {
    connection
        .prepare_cached(&format!(
            "SELECT {}, s.deleted_at IS NOT NULL FROM stores s WHERE s.id = ? AND s.workspace = ?",
            rows::STORE
        ))?
        .query_row(params![Col(id), Col(workspace)], |row| {
            let (number, store) = rows::store(row)?;
            Ok((number, store, row.get(row.as_ref().column_count() - 1)?))
        })
        .optional()
}

/// What is left of a store that was purged: the mark of its deletion.
fn forgotten(
    connection: &Connection,
    workspace: WorkspaceId,
    id: StoreId,
    after: u64,
) -> Sql<Option<Changes>> {
    let found = connection
        .prepare_cached(&format!(
            "SELECT {MARK} FROM marks m WHERE m.store = ? AND m.workspace = ? AND m.kind = 3"
        ))?
        .query_row(params![Col(id), Col(workspace)], |row| marks::mark(&mut Cursor::new(row)))
        .optional()?;
    Ok(found.map(|mark| {
        let told = if after < mark.sequence { vec![Told::Mark(mark)] } else { Vec::new() };
        Changes { store: None, sequence: mark.sequence, floor: 0, told }
    }))
}

fn versions(connection: &Connection, (number, id): (i64, StoreId), after: u64, limit: i64) -> Sql<Vec<Told>> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {}, b.operation, b.path, b.redacted_at IS NOT NULL FROM versions v \
         LEFT JOIN versions b ON b.version = (SELECT p.version FROM versions p WHERE p.store = v.store \
         AND p.memory_id = v.memory_id AND p.sequence < v.sequence ORDER BY p.sequence DESC LIMIT 1) \
         WHERE v.store = ? AND v.sequence > ? ORDER BY v.sequence LIMIT ?",
        rows::VERSION
    ))?;
    rows::all(&mut statement, params![number, after, limit], |row| {
        let c = &mut Cursor::new(row);
        let version = rows::version(c, id)?;
        let (operation, path, redacted) = (c.maybe()?, c.take::<Option<String>>()?, c.take()?);
        let before = operation.map(|operation| Before {
            operation,
            path: path.map(MemoryPath::from_trusted),
            redacted,
        });
        Ok(Told::version(version, before))
    })
}

pub(crate) fn marks_after(connection: &Connection, id: StoreId, after: u64, limit: i64) -> Sql<Vec<Mark>> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {MARK} FROM marks m WHERE m.store = ? AND m.sequence > ? ORDER BY m.sequence LIMIT ?"
    ))?;
    rows::all(&mut statement, params![Col(id), after, limit], |row| marks::mark(&mut Cursor::new(row)))
}

/// The live memories of a store by path: rows without texts, ten thousand of which take some 20 ms.
pub(crate) fn snapshot(
    connection: &Connection,
    workspace: WorkspaceId,
    store: StoreId,
) -> Result<InStore<Vec<Memory>>, Fault> {
    let Some((number, sequence)) = store_number(connection, workspace, store)? else { return Ok(None) };
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {} FROM memories m WHERE m.store = ? ORDER BY m.path",
        rows::MEMORY
    ))?;
    let value = rows::all(&mut statement, [number], |row| Ok(rows::memory(&mut Cursor::new(row), store)?.0))?;
    Ok(Some(At { sequence, value }))
}

/// The texts of memories and versions.
pub(crate) fn contents(
    connection: &Connection,
    workspace: WorkspaceId,
    store: StoreId,
    wanted: &[Wanted],
    bytes: u64,
) -> Result<InStore<Vec<Option<VersionText>>>, Fault> {
    let Some((number, sequence)) = store_number(connection, workspace, store)? else { return Ok(None) };
    let (began, mut read) = (Instant::now(), 0);
    let mut value = Vec::with_capacity(wanted.len());
    for wanted in wanted {
        let found = text(connection, (number, store), *wanted)?;
        read +=
            found.as_ref().and_then(|text| text.content.as_ref()).map_or(0, |content| content.len() as u64);
        value.push(found);
        if read >= bytes || began.elapsed() > READING {
            break;
        }
    }
    Ok(Some(At { sequence, value }))
}

fn text(
    connection: &Connection,
    (number, store): (i64, StoreId),
    wanted: Wanted,
) -> Result<Option<VersionText>, Fault> {
    let (from, id) = match wanted {
        Wanted::Memory(id) => (
            "memories m JOIN versions v ON v.version = m.head WHERE m.id = ? AND m.store = ?",
            *id.as_bytes(),
        ),
        Wanted::Version(id) => ("versions v WHERE v.id = ? AND v.store = ?", *id.as_bytes()),
    };
    let sql = format!("SELECT {}, {VERSION_TEXTS} FROM {from}", rows::VERSION);
    let mut statement = connection.prepare_cached(&sql)?;
    let mut found = statement.query(params![id, number])?;
    found.next()?.map(|row| version_text(row, store, true)).transpose()
}
