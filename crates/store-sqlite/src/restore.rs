//! Putting a store back behind a tombstone, in slices; and rows of history as they are.

use rusqlite::{Connection, ErrorCode, OptionalExtension, params};
use stele_core::backup::RedactionRecord;
use stele_core::command::RedactedPath;
use stele_core::decide::room_for_store;
use stele_core::dump::{StorePlace, Stored, VersionRow};
use stele_core::feed::{History, Past};
use stele_core::id::{StoreId, WorkspaceId};
use stele_core::limits::Limits;
use stele_core::model::{Mark, Memory, Store, VersionText};
use stele_core::refusal::Refusal;
use stele_core::storage::Remains;
use store_codec::{Compression, encode_bytes};

use crate::fault::{Fault, Stop};
use crate::feed::READING;
use crate::ledger;
use crate::marks::insert_mark;
use crate::reads::{self, VERSION_TEXTS, version_text};
use crate::rows::{self, Col, Sql, actor_columns};
use crate::writes::{free_slug, insert_memory, insert_store};

/// Stores that are being put back by this process. Their rows have tombstones, which no purge takes while they are in
/// here; what another process left is not, and goes with the next purge.
pub(crate) const RESTORING: &str = "CREATE TEMP TABLE restoring (store INTEGER PRIMARY KEY) STRICT";
/// Rows kept in one turn of the writer: some milliseconds.
const SLICE: (usize, usize) = (100, 256 * 1024);

/// The history of a store after a sequence.
pub(crate) fn history(
    connection: &Connection,
    workspace: WorkspaceId,
    id: StoreId,
    after: u64,
    (limit, bytes): (usize, u64),
) -> Result<Option<History>, Fault> {
    let began = std::time::Instant::now();
    let Some((number, _)) = reads::store_number(connection, workspace, id)? else { return Ok(None) };
    let Some(store) = reads::store(connection, workspace, id)? else { return Ok(None) };
    let limited = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {}, {VERSION_TEXTS} FROM versions v WHERE v.store = ? AND v.sequence > ? ORDER BY v.sequence LIMIT ?",
        rows::VERSION
    ))?;
    let mut found = statement.query(params![number, after, limited])?;
    let (mut past, mut read, mut end) = (Vec::new(), 0, u64::MAX);
    while let Some(row) = found.next()? {
        let text = version_text(row, id, true)?;
        read += text.content.as_ref().map_or(0, |content| content.len() as u64);
        let sequence = text.version.sequence;
        past.push(Past::Version(Box::new(text)));
        if read >= bytes || began.elapsed() > READING {
            end = sequence;
            break;
        }
    }
    let marks = crate::feed::marks_after(connection, id, after, limited)?;
    past.extend(marks.into_iter().filter(|mark| mark.sequence <= end).map(Past::Mark));
    past.sort_by_key(Past::sequence);
    past.truncate(limit);
    Ok(Some(History { store, past }))
}

fn stores_of(connection: &Connection, workspace: WorkspaceId) -> Sql<u64> {
    connection
        .prepare_cached("SELECT count(*) FROM stores WHERE workspace = ? AND deleted_at IS NULL")?
        .query_row([Col(workspace)], |row| row.get(0))
}

/// Makes the row of a store that is put back, as a tombstone without counters.
pub(crate) fn begin(connection: &Connection, store: &Store, limits: &Limits) -> Result<Remains, Stop> {
    room_for_store(stores_of(connection, store.workspace)?, store.origin, limits)?;
    let restoring: Option<bool> = connection
        .prepare_cached(
            "SELECT r.store IS NOT NULL FROM stores s LEFT JOIN temp.restoring r ON r.store = s.store WHERE s.id = ?",
        )?
        .query_row([Col(store.id)], |row| row.get(0))
        .optional()?;
    match restoring {
        Some(true) => return Err(Stop::Restoring(store.id)),
        Some(false) => return Err(Refusal::StoreExists(store.id).into()),
        None => {}
    }
    // Which slug it gets is settled at its end; that of a tombstone counts no more.
    let slug = free_slug(connection, store.workspace, &store.slug)?;
    insert_store(connection, &Store { slug, ..store.clone() })?;
    let number = connection.last_insert_rowid();
    connection
        .prepare_cached("UPDATE stores SET deleted_at = changed_at WHERE store = ?")?
        .execute([number])?;
    connection.prepare_cached("INSERT INTO temp.restoring VALUES (?)")?.execute([number])?;
    let deleted_at = connection
        .prepare_cached("SELECT max(sequence) FROM marks WHERE store = ? AND workspace = ? AND kind = 3")?
        .query_row(params![Col(store.id), Col(store.workspace)], |row| row.get(0))?;
    let redactions = ledger::of_store(connection, store.workspace, store.id)?;
    Ok(Remains { redactions, deleted_at })
}

/// The row number of a store that is being put back.
fn number(connection: &Connection, (workspace, store): StorePlace) -> Result<i64, Stop> {
    let found: Option<i64> = connection
        .prepare_cached(
            "SELECT s.store FROM stores s JOIN temp.restoring r ON r.store = s.store WHERE s.id = ? AND s.workspace = ?",
        )?
        .query_row(params![Col(store), Col(workspace)], |row| row.get(0))
        .optional()?;
    found.ok_or_else(|| Fault::Damaged(format!("{store}, which is not being put back")).into())
}

/// A row of a history as it is stored.
#[derive(Debug)]
pub(crate) enum Kept {
    Version(Box<VersionRow>),
    Mark(Mark),
}

impl Kept {
    /// Takes time in proportion to the text, so not for the writer thread.
    pub(crate) fn of(past: Past, compression: Compression) -> Self {
        let VersionText { version, summary, reason, content } = match past {
            Past::Version(text) => *text,
            Past::Mark(mark) => return Self::Mark(mark),
        };
        let content = content.map(|content| {
            let encoded = encode_bytes(&content, compression);
            Stored { encoding: encoded.encoding, bytes: encoded.bytes }
        });
        Self::Version(Box::new(VersionRow { version, summary, reason, content }))
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Version(row) => row.content.as_ref().map_or(0, |content| content.bytes.len()),
            Self::Mark(_) => 0,
        }
    }
}

/// Rows in slices for one turn of the writer each.
pub(crate) fn slices(rows: Vec<Kept>) -> Vec<Vec<Kept>> {
    let (mut slices, mut slice, mut bytes) = (Vec::new(), Vec::new(), 0);
    for row in rows {
        bytes += row.bytes();
        slice.push(row);
        if slice.len() >= SLICE.0 || bytes >= SLICE.1 {
            slices.push(std::mem::take(&mut slice));
            bytes = 0;
        }
    }
    slices.push(slice);
    slices
}

/// Memories in slices likewise.
pub(crate) fn slices_of_memories(memories: &[Memory]) -> impl Iterator<Item = Vec<Memory>> {
    memories.chunks(SLICE.0).map(<[Memory]>::to_vec)
}

/// An id that is taken is in another store: nothing but an archive that was made up has such.
fn taken(place: StorePlace) -> impl Fn(rusqlite::Error) -> Stop {
    move |error| match error.sqlite_error_code() {
        Some(ErrorCode::ConstraintViolation) => Refusal::StoreExists(place.1).into(),
        _ => error.into(),
    }
}

/// Keeps entries of a history.
pub(crate) fn keep(connection: &Connection, place: StorePlace, rows: &[Kept]) -> Result<(), Stop> {
    let number = number(connection, place)?;
    for row in rows {
        match row {
            Kept::Mark(mark) => insert_mark(connection, place.0, mark).map_err(taken(place))?,
            Kept::Version(row) => {
                keep_version(connection, number, row).map_err(taken(place))?;
                let version = &row.version;
                let record = version.redaction.map(|redaction| RedactionRecord {
                    workspace: place.0,
                    store: place.1,
                    version: version.id,
                    written_at: version.created_at,
                    redaction,
                    path: if version.path.is_none() { RedactedPath::Scrub } else { RedactedPath::Keep },
                });
                ledger::keep(connection, record.as_slice())?;
            }
        }
    }
    Ok(())
}

/// Keeps live memories.
pub(crate) fn keep_memories(connection: &Connection, place: StorePlace, rows: &[Memory]) -> Result<(), Stop> {
    let number = number(connection, place)?;
    rows.iter().try_for_each(|memory| {
        keep_memory(connection, number, memory).map_err(|fault| match fault {
            Fault::Sqlite(error) => taken(place)(error),
            Fault::Damaged(_) => fault.into(),
        })
    })
}

/// Takes the tombstone away.
pub(crate) fn end(connection: &Connection, store: &Store, limits: &Limits) -> Result<Store, Stop> {
    let number = number(connection, (store.workspace, store.id))?;
    room_for_store(stores_of(connection, store.workspace)?, store.origin, limits)?;
    let mut store = store.clone();
    store.slug = free_slug(connection, store.workspace, &store.slug)?;
    connection
        .prepare_cached("DELETE FROM marks WHERE store = ? AND workspace = ? AND kind = 3")?
        .execute(params![Col(store.id), Col(store.workspace)])?;
    let counters = store.counters;
    connection
        .prepare_cached(
            "UPDATE stores SET deleted_at = NULL, slug = ?, changed_at = ?, sequence = ?, floor = ?, memories = ?, \
             bytes = ?, versions = ? WHERE store = ?",
        )?
        .execute(params![
            store.slug,
            Col(store.changed_at),
            counters.sequence,
            counters.floor,
            counters.memories,
            counters.bytes,
            counters.versions,
            number
        ])?;
    connection.prepare_cached("DELETE FROM temp.restoring WHERE store = ?")?.execute([number])?;
    Ok(store)
}

/// Leaves what there is of it to the next purge.
pub(crate) fn abandon(connection: &Connection, (workspace, store): StorePlace) -> Result<(), Stop> {
    connection
        .prepare_cached(
            "DELETE FROM temp.restoring WHERE store IN (SELECT store FROM stores WHERE id = ? AND workspace = ?)",
        )?
        .execute(params![Col(store), Col(workspace)])?;
    Ok(())
}

/// Keeps a version of the store numbered `number`.
pub(crate) fn keep_version(connection: &Connection, number: i64, row: &VersionRow) -> Sql<()> {
    let version = &row.version;
    let (kind, author) = actor_columns(version.author);
    let redaction = version.redaction.map(|redaction| (redaction.at, actor_columns(redaction.by)));
    connection
        .prepare_cached(
            "INSERT INTO versions (store, sequence, id, memory_id, operation, created_at, author_kind, author, \
             redacted_at, redacted_by_kind, redacted_by, content_sha256, size_bytes, path, summary, reason, \
             encoding, content) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        )?
        .execute(params![
            number,
            version.sequence,
            Col(version.id),
            Col(version.memory),
            Col(version.operation),
            Col(version.created_at),
            kind,
            author,
            redaction.map(|(at, _)| Col(at)),
            redaction.map(|(_, (kind, _))| kind),
            redaction.map(|(_, (_, by))| by),
            version.recorded.as_ref().map(|recorded| Col(recorded.content_sha256)),
            version.recorded.as_ref().map(|recorded| recorded.size_bytes),
            version.path.as_ref().map(|path| path.as_str()),
            row.summary.as_ref().map(|summary| summary.as_str()),
            row.reason,
            row.content.as_ref().map(|content| content.encoding),
            row.content.as_ref().map(|content| &*content.bytes),
        ])?;
    Ok(())
}

/// Keeps a live memory of the store numbered `number`, whose head was kept before.
pub(crate) fn keep_memory(connection: &Connection, number: i64, memory: &Memory) -> Result<(), Fault> {
    let head: Option<i64> = connection
        .prepare_cached("SELECT version FROM versions WHERE id = ? AND store = ?")?
        .query_row(params![Col(memory.version), number], |row| row.get(0))
        .optional()?;
    let damaged = || Fault::Damaged(format!("{} of memory {}", memory.version, memory.id));
    Ok(insert_memory(connection, number, memory, head.ok_or_else(damaged)?)?)
}
