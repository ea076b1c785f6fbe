//! Records and logs in a copy: see `dump`.

use rusqlite::{Connection, params};
use stele_core::dump::{Log, LogPlace};
use stele_core::id::WorkspaceId;
use stele_core::records::{Entry, Kind, Record, RecordId};
use stele_core::storage::StorageError;
use store_codec::encode_tags;

use crate::fault::Fault;
use crate::record_reads::{self, ENTRY, RECORD, log_number};
use crate::record_writes::{insert, insert_entries};
use crate::rows::{self, Col, Sql};

pub(crate) fn records(
    connection: &Connection,
    after: Option<(WorkspaceId, Kind, RecordId)>,
    limit: i64,
) -> Sql<Vec<Record>> {
    let (workspace, Kind(kind), id) = after.unwrap_or((WorkspaceId::from_bytes([0; 16]), Kind(0), [0; 16]));
    let sql = format!(
        "SELECT {RECORD} FROM records r WHERE (r.workspace, r.kind, r.id) > (?, ?, ?) \
         ORDER BY r.workspace, r.kind, r.id LIMIT ?"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    rows::all(&mut statement, params![Col(workspace), kind, id, limit], record_reads::record)
}

pub(crate) fn logs(connection: &Connection, after: Option<LogPlace>, limit: i64) -> Sql<Vec<Log>> {
    let (workspace, id) = after.unwrap_or((WorkspaceId::from_bytes([0; 16]), [0; 16]));
    let mut statement = connection.prepare_cached(
        "SELECT workspace, id, last FROM logs WHERE dropped = 0 AND (workspace, id) > (?, ?) \
         ORDER BY workspace, id LIMIT ?",
    )?;
    rows::all(&mut statement, params![Col(workspace), id, limit], |row| {
        let Col(workspace) = row.get(0)?;
        Ok(Log { place: (workspace, row.get(1)?), last: row.get(2)? })
    })
}

pub(crate) fn entries(
    connection: &Connection,
    (workspace, log): LogPlace,
    after: u64,
    limit: i64,
) -> Sql<Vec<Entry>> {
    let number = log_number(connection, workspace, log)?;
    let sql = format!("SELECT {ENTRY} FROM entries WHERE log = ? AND sequence > ? ORDER BY sequence LIMIT ?");
    rows::all(&mut *connection.prepare_cached(&sql)?, params![number, after, limit], record_reads::entry)
}

pub(crate) fn keep_records(connection: &Connection, rows: &[Record]) -> Result<(), StorageError> {
    for record in rows {
        if !insert(connection, record, &encode_tags(&record.tags)).map_err(Fault::from)? {
            return Err(StorageError::Corrupt(format!(
                "of kind {}: its id or key is another one's",
                record.kind.0
            )));
        }
    }
    Ok(())
}

pub(crate) fn keep_logs(connection: &Connection, rows: &[Log]) -> Sql<()> {
    let mut statement =
        connection.prepare_cached("INSERT INTO logs (workspace, id, last) VALUES (?, ?, ?)")?;
    for Log { place: (workspace, id), last } in rows {
        statement.execute(params![Col(*workspace), id, last])?;
    }
    Ok(())
}

pub(crate) fn keep_entries(connection: &Connection, (workspace, log): LogPlace, rows: &[Entry]) -> Sql<()> {
    let number = log_number(connection, workspace, log)?.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
    insert_entries(connection, number, rows)
}
