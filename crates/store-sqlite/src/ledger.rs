//! What is remembered of redactions and of backups.

use rusqlite::{Connection, OptionalExtension, Row, params};
use stele_core::backup::{BackupRecord, BackupStanding, RedactionPlace, RedactionRecord, Remembered};
use stele_core::command::RedactedPath;
use stele_core::id::{BackupId, StoreId, VersionId, WorkspaceId};
use stele_core::model::Redaction;
use stele_core::storage::{Answer, StorageError};

use crate::queue::Lane;
use crate::rows::{self, Col, Cursor, Sql, actor, actor_columns};
use crate::storage::SqliteStorage;
use crate::writer::Needs;

const BACKUP: &str = "b.id, b.host, b.path, b.made_at, b.newest_at, b.redactions, b.versions, b.bytes";
const REDACTION: &str =
    "workspace, store, version, written_at, redacted_at, redacted_by_kind, redacted_by, path_scrubbed";

/// Remembers the redaction of a version that is there.
pub(crate) fn remember(
    connection: &Connection,
    version: VersionId,
    redaction: Redaction,
    path: RedactedPath,
) -> Sql<()> {
    let (kind, by) = actor_columns(redaction.by);
    connection
        .prepare_cached(
            "INSERT INTO redactions (workspace, store, version, written_at, redacted_at, redacted_by_kind, \
             redacted_by, path_scrubbed) SELECT s.workspace, s.id, v.id, v.created_at, ?, ?, ?, ? \
             FROM versions v JOIN stores s ON s.store = v.store WHERE v.id = ? \
             ON CONFLICT (workspace, store, version) DO UPDATE SET path_scrubbed = path_scrubbed OR excluded.path_scrubbed",
        )?
        .execute(params![Col(redaction.at), kind, by, path == RedactedPath::Scrub, Col(version)])?;
    Ok(())
}

/// Keeps redactions as they are; of one known already, nothing but its path may go.
pub(crate) fn keep(connection: &Connection, records: &[RedactionRecord]) -> Sql<()> {
    let mut statement = connection.prepare_cached(&format!(
        "INSERT INTO redactions ({REDACTION}) VALUES (?, ?, ?, ?, ?, ?, ?, ?) \
         ON CONFLICT (workspace, store, version) DO UPDATE SET path_scrubbed = path_scrubbed OR excluded.path_scrubbed"
    ))?;
    for record in records {
        let (kind, by) = actor_columns(record.redaction.by);
        statement.execute(params![
            Col(record.workspace),
            Col(record.store),
            Col(record.version),
            Col(record.written_at),
            Col(record.redaction.at),
            kind,
            by,
            record.path == RedactedPath::Scrub
        ])?;
    }
    Ok(())
}

/// Redactions by place, at most `limit`.
pub(crate) fn list(
    connection: &Connection,
    after: Option<RedactionPlace>,
    limit: usize,
) -> Sql<Vec<RedactionRecord>> {
    let start = after.map_or(([0; 16], [0; 16], [0; 16]), |(workspace, store, version)| {
        (*workspace.as_bytes(), *store.as_bytes(), *version.as_bytes())
    });
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {REDACTION} FROM redactions WHERE (workspace, store, version) > (?, ?, ?) \
         ORDER BY workspace, store, version LIMIT ?"
    ))?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    rows::all(&mut statement, params![start.0, start.1, start.2, limit], redaction)
}

/// Redactions of a store's versions.
pub(crate) fn of_store(
    connection: &Connection,
    workspace: WorkspaceId,
    store: StoreId,
) -> Sql<Vec<RedactionRecord>> {
    let mut statement = connection
        .prepare_cached(&format!("SELECT {REDACTION} FROM redactions WHERE workspace = ? AND store = ?"))?;
    rows::all(&mut statement, params![Col(workspace), Col(store)], redaction)
}

/// Reads the columns of `REDACTION`.
pub(crate) fn redaction(row: &Row<'_>) -> Sql<RedactionRecord> {
    let c = &mut Cursor::new(row);
    Ok(RedactionRecord {
        workspace: c.col()?,
        store: c.col()?,
        version: c.col()?,
        written_at: c.col()?,
        redaction: Redaction { at: c.col()?, by: actor(c.take()?, c.take()?)? },
        path: if c.take()? { RedactedPath::Scrub } else { RedactedPath::Keep },
    })
}

/// Remembers a backup; in place of an older entry with its id.
pub(crate) fn keep_backup(connection: &Connection, record: &BackupRecord) -> Sql<()> {
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO backups (id, host, path, made_at, newest_at, redactions, versions, bytes) \
             VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        )?
        .execute(params![
            Col(record.id),
            record.host,
            record.path,
            Col(record.made_at),
            record.newest_at.map(Col),
            record.redactions,
            record.versions,
            record.bytes
        ])?;
    Ok(())
}

/// All managed backups, oldest first.
pub(crate) fn backups(connection: &Connection) -> Sql<Vec<BackupStanding>> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {BACKUP}, (SELECT count(*) FROM redactions r WHERE r.written_at <= b.newest_at) \
         FROM backups b ORDER BY b.made_at, b.id"
    ))?;
    rows::all(&mut statement, [], |row| {
        let c = &mut Cursor::new(row);
        let record = BackupRecord {
            id: c.col()?,
            host: c.take()?,
            path: c.take()?,
            made_at: c.col()?,
            newest_at: c.maybe()?,
            redactions: c.take()?,
            versions: c.take()?,
            bytes: c.take()?,
        };
        let known: u64 = c.take()?;
        let unapplied = known.saturating_sub(record.redactions);
        Ok(BackupStanding { record, unapplied })
    })
}

/// Whether the database has a table of this name.
pub(crate) fn has_table(connection: &Connection, name: &str) -> Sql<bool> {
    let sql = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?";
    Ok(connection.query_row(sql, [name], |_| Ok(())).optional()?.is_some())
}

impl Remembered for SqliteStorage {
    fn redaction_list(
        &self,
        after: Option<RedactionPlace>,
        limit: usize,
    ) -> Answer<'_, Result<Vec<RedactionRecord>, StorageError>> {
        Box::pin(self.readers.read(move |c| Ok(list(c, after, limit)?)))
    }

    fn backup_list(&self) -> Answer<'_, Result<Vec<BackupStanding>, StorageError>> {
        Box::pin(self.readers.read(|c| Ok(backups(c)?)))
    }

    fn backup_keep(&self, record: BackupRecord) -> Answer<'_, Result<(), StorageError>> {
        Box::pin(async move {
            let work = move |c: &Connection| Ok(keep_backup(c, &record)?);
            Ok(self.writer.write(Lane::Background, Needs::default(), work).await?)
        })
    }

    fn backup_forget(&self, id: BackupId) -> Answer<'_, Result<bool, StorageError>> {
        Box::pin(async move {
            let work = move |c: &Connection| {
                let sql = "DELETE FROM backups WHERE id = ?";
                Ok(c.prepare_cached(sql)?.execute([Col(id)])? == 1)
            };
            Ok(self.writer.write(Lane::Background, Needs::default(), work).await?)
        })
    }
}
