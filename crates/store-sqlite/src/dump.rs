//! Everything in a data directory, row by row: to be copied elsewhere, or filled from elsewhere.

use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use rusqlite::{Connection, params};
use stele_core::backup::{BackupRecord, RedactionPlace, RedactionRecord};
use stele_core::dump::{Dump, Load, Log, LogPlace, StorePlace, Stored, Totals, VersionRow};
use stele_core::hash::Sha256;
use stele_core::id::{KeyId, MemoryId, StoreId, WorkspaceId};
use stele_core::key::KeyHash;
use stele_core::model::{Mark, Memory, Store};
use stele_core::records::{Entry, Kind, Record, RecordId};
use stele_core::storage::{Installation, KeyRecord, StorageError, Workspace};

use crate::fault::Fault;
use crate::ledger;
use crate::lock::{Locked, lock};
use crate::marks::{self, insert_mark};
use crate::open::{COPY_DRAFT, FILE, OpenError, make_data_dir, open_writer};
use crate::record_dump;
use crate::restore::{keep_memory, keep_version};
use crate::rows::{self, Col, Cursor, Sql};
use crate::storage::{insert_installation, insert_key, insert_workspace, installation};
use crate::writes::insert_store;

fn failed(error: rusqlite::Error) -> StorageError {
    Fault::from(error).into()
}

fn sql_limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// A data directory to be read; nobody else may use it meanwhile.
pub struct SqliteDump {
    connection: Connection,
    _locked: Locked,
}

impl SqliteDump {
    /// Opens a data directory that no server holds.
    ///
    /// # Errors
    /// It is in use, has no database, or holds what this program does not know.
    pub fn open(data_dir: &Path) -> Result<Self, OpenError> {
        let (_locked, connection) = crate::check::open(data_dir)?;
        Ok(Self { connection, _locked })
    }

    fn number(&self, (workspace, store): StorePlace) -> Result<i64, StorageError> {
        let found = crate::reads::store_number(&self.connection, workspace, store).map_err(failed)?;
        found.map(|(number, _)| number).ok_or_else(|| StorageError::Corrupt(format!("of store {store}")))
    }
}

/// How much there is in a database.
pub(crate) fn totals(connection: &Connection) -> Sql<Totals> {
    let count = |table: &str, of: &str| -> Sql<u64> {
        connection.query_row(&format!("SELECT count(*) FROM {table} t {of}"), [], |row| row.get(0))
    };
    let live = "WHERE EXISTS (SELECT 1 FROM stores s WHERE s.store = t.store AND s.deleted_at IS NULL)";
    Ok(Totals {
        workspaces: count("workspaces", "")?,
        keys: count("api_keys", "")?,
        stores: count("stores", "WHERE t.deleted_at IS NULL")?,
        memories: count("memories", live)?,
        versions: count("versions", live)?,
        marks: count(
            "marks",
            "WHERE EXISTS (SELECT 1 FROM stores s WHERE s.id = t.store AND s.deleted_at IS NULL)",
        )?,
        records: count("records", "")?,
        entries: count(
            "entries",
            "WHERE EXISTS (SELECT 1 FROM logs l WHERE l.log = t.log AND l.dropped = 0)",
        )?,
    })
}

impl Dump for SqliteDump {
    fn installation(&mut self) -> Result<Option<Installation>, StorageError> {
        installation(&self.connection).map_err(failed)
    }

    fn totals(&mut self) -> Result<Totals, StorageError> {
        totals(&self.connection).map_err(failed)
    }

    fn workspaces(&mut self) -> Result<Vec<Workspace>, StorageError> {
        let sql = format!("SELECT {} FROM workspaces ORDER BY id", rows::WORKSPACE);
        let mut statement = self.connection.prepare_cached(&sql).map_err(failed)?;
        rows::all(&mut statement, [], rows::workspace).map_err(failed)
    }

    fn keys(
        &mut self,
        after: Option<(WorkspaceId, KeyId)>,
        limit: usize,
    ) -> Result<Vec<KeyRecord>, StorageError> {
        let (workspace, id) = after.map_or(([0; 16], [0; 16]), |(w, k)| (*w.as_bytes(), *k.as_bytes()));
        let sql = format!(
            "SELECT {}, hash FROM api_keys WHERE (workspace, id) > (?, ?) ORDER BY workspace, id LIMIT ?",
            rows::API_KEY
        );
        let read = |row: &rusqlite::Row<'_>| {
            let hash: Col<Sha256> = row.get(9)?;
            Ok(KeyRecord { key: rows::api_key(row)?, hash: KeyHash::from_bytes(*hash.0.as_bytes()) })
        };
        let mut statement = self.connection.prepare_cached(&sql).map_err(failed)?;
        rows::all(&mut statement, params![workspace, id, sql_limit(limit)], read).map_err(failed)
    }

    fn stores(&mut self, after: Option<StorePlace>, limit: usize) -> Result<Vec<Store>, StorageError> {
        let (workspace, id) = after.map_or(([0; 16], [0; 16]), |(w, s)| (*w.as_bytes(), *s.as_bytes()));
        let sql = format!(
            "SELECT {} FROM stores s WHERE s.deleted_at IS NULL AND (s.workspace, s.id) > (?, ?) \
             ORDER BY s.workspace, s.id LIMIT ?",
            rows::STORE
        );
        let mut statement = self.connection.prepare_cached(&sql).map_err(failed)?;
        let found = rows::all(&mut statement, params![workspace, id, sql_limit(limit)], rows::store);
        Ok(found.map_err(failed)?.into_iter().map(|(_, store)| store).collect())
    }

    fn versions(
        &mut self,
        place: StorePlace,
        after: u64,
        limit: usize,
    ) -> Result<Vec<VersionRow>, StorageError> {
        let number = self.number(place)?;
        let sql = format!(
            "SELECT {}, v.summary, v.reason, v.encoding, v.content FROM versions v \
             WHERE v.store = ? AND v.sequence > ? ORDER BY v.sequence LIMIT ?",
            rows::VERSION
        );
        let read = |row: &rusqlite::Row<'_>| {
            let c = &mut Cursor::new(row);
            let version = rows::version(c, place.1)?;
            let (summary, reason) = (rows::summary(c)?, c.take()?);
            let content = match (c.take::<Option<u8>>()?, c.take::<Option<Vec<u8>>>()?) {
                (Some(encoding), Some(bytes)) => Some(Stored { encoding, bytes: Bytes::from(bytes) }),
                _ => None,
            };
            Ok(VersionRow { version, summary, reason, content })
        };
        let mut statement = self.connection.prepare_cached(&sql).map_err(failed)?;
        rows::all(&mut statement, params![number, after, sql_limit(limit)], read).map_err(failed)
    }

    fn marks(&mut self, place: StorePlace, after: u64, limit: usize) -> Result<Vec<Mark>, StorageError> {
        let sql = format!(
            "SELECT {} FROM marks m WHERE m.store = ? AND m.sequence > ? ORDER BY m.sequence LIMIT ?",
            marks::MARK
        );
        let mut statement = self.connection.prepare_cached(&sql).map_err(failed)?;
        let read = |row: &rusqlite::Row<'_>| marks::mark(&mut Cursor::new(row));
        rows::all(&mut statement, params![Col(place.1), after, sql_limit(limit)], read).map_err(failed)
    }

    fn memories(
        &mut self,
        place: StorePlace,
        after: Option<MemoryId>,
        limit: usize,
    ) -> Result<Vec<Memory>, StorageError> {
        let number = self.number(place)?;
        let after = after.map_or([0; 16], |id| *id.as_bytes());
        let sql = format!(
            "SELECT {} FROM memories m WHERE m.store = ? AND m.id > ? ORDER BY m.id LIMIT ?",
            rows::MEMORY
        );
        let read = |row: &rusqlite::Row<'_>| Ok(rows::memory(&mut Cursor::new(row), place.1)?.0);
        let mut statement = self.connection.prepare_cached(&sql).map_err(failed)?;
        rows::all(&mut statement, params![number, after, sql_limit(limit)], read).map_err(failed)
    }

    fn records(
        &mut self,
        after: Option<(WorkspaceId, Kind, RecordId)>,
        limit: usize,
    ) -> Result<Vec<Record>, StorageError> {
        record_dump::records(&self.connection, after, sql_limit(limit)).map_err(failed)
    }

    fn logs(&mut self, after: Option<LogPlace>, limit: usize) -> Result<Vec<Log>, StorageError> {
        record_dump::logs(&self.connection, after, sql_limit(limit)).map_err(failed)
    }

    fn entries(&mut self, place: LogPlace, after: u64, limit: usize) -> Result<Vec<Entry>, StorageError> {
        record_dump::entries(&self.connection, place, after, sql_limit(limit)).map_err(failed)
    }

    fn redactions(
        &mut self,
        after: Option<RedactionPlace>,
        limit: usize,
    ) -> Result<Vec<RedactionRecord>, StorageError> {
        ledger::list(&self.connection, after, limit).map_err(failed)
    }

    fn backups(&mut self) -> Result<Vec<BackupRecord>, StorageError> {
        let standings = ledger::backups(&self.connection).map_err(failed)?;
        Ok(standings.into_iter().map(|standing| standing.record).collect())
    }
}

/// A data directory to be filled: the database is made in a directory beside its place, and moved there whole.
pub struct SqliteLoad {
    connection: Option<Connection>,
    draft: PathBuf,
    place: PathBuf,
    _locked: Locked,
}

impl SqliteLoad {
    /// Prepares a data directory that has no database.
    ///
    /// # Errors
    /// It has one, is in use, or cannot be used.
    pub fn open(data_dir: &Path) -> Result<Self, OpenError> {
        make_data_dir(data_dir)?;
        let locked = lock(data_dir)?;
        let (draft, place) = (data_dir.join(COPY_DRAFT), data_dir.join(FILE));
        if place.exists() {
            return Err(OpenError::NotEmpty(data_dir.to_owned()));
        }
        if draft.exists() {
            fs::remove_dir_all(&draft).map_err(|source| OpenError::Io { path: draft.clone(), source })?;
        }
        make_data_dir(&draft)?;
        let (connection, _) = open_writer(&draft)?;
        // One long transaction: what ends before it is over is thrown away as a whole.
        connection.execute_batch("BEGIN IMMEDIATE")?;
        Ok(Self { connection: Some(connection), draft, place, _locked: locked })
    }

    fn connection(&self) -> &Connection {
        self.connection.as_ref().expect("open until it is finished")
    }

    fn number(&self, store: StoreId) -> Sql<i64> {
        self.connection()
            .prepare_cached("SELECT store FROM stores WHERE id = ?")?
            .query_row([Col(store)], |row| row.get(0))
    }

    fn keep_store(&self, store: &Store) -> Sql<()> {
        insert_store(self.connection(), store)?;
        let counters = store.counters;
        self.connection()
            .prepare_cached(
                "UPDATE stores SET sequence = ?, floor = ?, memories = ?, bytes = ?, versions = ? WHERE id = ?",
            )?
            .execute(params![
                counters.sequence,
                counters.floor,
                counters.memories,
                counters.bytes,
                counters.versions,
                Col(store.id)
            ])?;
        Ok(())
    }
}

impl Load for SqliteLoad {
    fn workspaces(&mut self, rows: &[Workspace]) -> Result<(), StorageError> {
        rows.iter().try_for_each(|row| insert_workspace(self.connection(), row)).map_err(failed)
    }

    fn keys(&mut self, rows: &[KeyRecord]) -> Result<(), StorageError> {
        let revoke = |row: &KeyRecord| -> Sql<()> {
            insert_key(self.connection(), row)?;
            if let Some(at) = row.key.revoked_at {
                self.connection()
                    .prepare_cached("UPDATE api_keys SET revoked_at = ? WHERE id = ?")?
                    .execute(params![Col(at), Col(row.key.id)])?;
            }
            Ok(())
        };
        rows.iter().try_for_each(revoke).map_err(failed)
    }

    fn stores(&mut self, rows: &[Store]) -> Result<(), StorageError> {
        rows.iter().try_for_each(|row| self.keep_store(row)).map_err(failed)
    }

    fn versions(&mut self, place: StorePlace, rows: &[VersionRow]) -> Result<(), StorageError> {
        let number = self.number(place.1).map_err(failed)?;
        rows.iter().try_for_each(|row| keep_version(self.connection(), number, row)).map_err(failed)
    }

    fn marks(&mut self, place: StorePlace, rows: &[Mark]) -> Result<(), StorageError> {
        rows.iter().try_for_each(|row| insert_mark(self.connection(), place.0, row)).map_err(failed)
    }

    fn memories(&mut self, place: StorePlace, rows: &[Memory]) -> Result<(), StorageError> {
        let number = self.number(place.1).map_err(failed)?;
        rows.iter().try_for_each(|row| Ok(keep_memory(self.connection(), number, row)?))
    }

    fn records(&mut self, rows: &[Record]) -> Result<(), StorageError> {
        record_dump::keep_records(self.connection(), rows)
    }

    fn logs(&mut self, rows: &[Log]) -> Result<(), StorageError> {
        record_dump::keep_logs(self.connection(), rows).map_err(failed)
    }

    fn entries(&mut self, place: LogPlace, rows: &[Entry]) -> Result<(), StorageError> {
        record_dump::keep_entries(self.connection(), place, rows).map_err(failed)
    }

    fn redactions(&mut self, rows: &[RedactionRecord]) -> Result<(), StorageError> {
        ledger::keep(self.connection(), rows).map_err(failed)
    }

    fn backups(&mut self, rows: &[BackupRecord]) -> Result<(), StorageError> {
        rows.iter().try_for_each(|row| ledger::keep_backup(self.connection(), row)).map_err(failed)
    }

    fn finish(mut self: Box<Self>, installation: Installation) -> Result<(), StorageError> {
        let connection = self.connection.take().expect("finished once");
        insert_installation(&connection, installation).map_err(failed)?;
        connection.execute_batch("COMMIT").map_err(failed)?;
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).map_err(failed)?;
        // The last connection takes the log with it when it closes.
        connection.close().map_err(|(_, error)| failed(error))?;
        let moved = fs::File::open(self.draft.join(FILE))
            .and_then(|file| file.sync_all())
            .and_then(|()| fs::rename(self.draft.join(FILE), &self.place))
            .and_then(|()| fs::File::open(self.place.parent().unwrap_or(Path::new("/")))?.sync_all());
        moved.map_err(|error| StorageError::Internal(Box::new(error)))
    }
}

impl Drop for SqliteLoad {
    fn drop(&mut self) {
        drop(self.connection.take());
        // What is left of an unfinished copy goes at the next attempt, if it cannot go now.
        let _ = fs::remove_dir_all(&self.draft);
    }
}
