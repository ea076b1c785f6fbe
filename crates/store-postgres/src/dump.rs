//! Everything in a database, row by row, as of one moment: servers may go on meanwhile.

use std::time::Duration;

use bytes::Bytes;
use stele_core::backup::{BackupRecord, RedactionPlace, RedactionRecord};
use stele_core::dump::{Dump, Log, LogPlace, StorePlace, Stored, Totals, VersionRow};
use stele_core::hash::Sha256;
use stele_core::id::{KeyId, MemoryId, StoreId, WorkspaceId};
use stele_core::key::KeyHash;
use stele_core::model::{Mark, Memory, Store};
use stele_core::records::{Entry, Kind, Record, RecordId};
use stele_core::storage::{Installation, KeyRecord, StorageError, Workspace};
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row};

use crate::connect::{Connector, SCHEMA};
use crate::fault::Fault;
use crate::ledger;
use crate::marks;
use crate::migrate;
use crate::open::{OpenError, reach};
use crate::rows::{self, AnyId, Col, Cursor, signed};
use crate::url::Url;

/// A connection, waited for on this thread.
pub(crate) struct Session {
    pub(crate) runtime: Runtime,
    pub(crate) client: Client,
}

impl Session {
    pub(crate) fn open(url: &Url) -> Result<Self, OpenError> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime of one thread can be made");
        let connector = Connector::new(url, Duration::from_secs(60))?;
        let client = runtime.block_on(reach(url, &connector))?;
        let settings = format!("SET search_path = {SCHEMA}; SET client_min_messages = error; SET jit = off");
        runtime.block_on(client.batch_execute(&settings))?;
        Ok(Self { runtime, client })
    }

    pub(crate) fn run(&self, sql: &str) -> Result<(), Fault> {
        Ok(self.runtime.block_on(self.client.batch_execute(sql))?)
    }

    fn query(&self, sql: &str, parameters: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, Fault> {
        Ok(self.runtime.block_on(self.client.query(sql, parameters))?)
    }
}

/// A database to be read.
pub struct PostgresDump {
    session: Session,
}

impl PostgresDump {
    /// Opens a database and keeps to what it is at this moment.
    ///
    /// # Errors
    /// It cannot be reached, is not ours, or is of another Stele.
    pub fn open(url: &Url) -> Result<Self, OpenError> {
        let session = Session::open(url)?;
        if !session.runtime.block_on(migrate::exists(&session.client))? {
            return Err(OpenError::NoDatabase(url.to_string()));
        }
        session.runtime.block_on(migrate::is_current(&session.client))?;
        let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL enable_seqscan = off";
        session.runtime.block_on(session.client.batch_execute(begin))?;
        Ok(Self { session })
    }
}

const NOTHING: [u8; 16] = [0; 16];

impl Dump for PostgresDump {
    fn installation(&mut self) -> Result<Option<Installation>, StorageError> {
        let rows =
            self.session.query("SELECT organization, first_workspace, epoch FROM installation", &[])?;
        let read = |row: &Row| -> Result<_, Fault> {
            let c = &mut Cursor::new(row);
            Ok(Installation { organization: c.col()?, first_workspace: c.col()?, epoch: c.col()? })
        };
        Ok(rows.first().map(read).transpose()?)
    }

    fn totals(&mut self) -> Result<Totals, StorageError> {
        let live = "t JOIN stores s ON s.workspace = t.workspace AND s.id = t.store AND s.deleted_at IS NULL";
        let sql = format!(
            "SELECT (SELECT count(*) FROM workspaces), (SELECT count(*) FROM api_keys), \
             (SELECT count(*) FROM stores WHERE deleted_at IS NULL), (SELECT count(*) FROM memories {live}), \
             (SELECT count(*) FROM versions {live}), (SELECT count(*) FROM marks {live}), \
             (SELECT count(*) FROM records), \
             (SELECT count(*) FROM entries e JOIN logs l ON l.workspace = e.workspace AND l.id = e.log \
             AND NOT l.dropped)"
        );
        let rows = self.session.query(&sql, &[])?;
        let c = &mut Cursor::new(rows.first().expect("counts are one row"));
        Ok(Totals {
            workspaces: c.number()?,
            keys: c.number()?,
            stores: c.number()?,
            memories: c.number()?,
            versions: c.number()?,
            marks: c.number()?,
            records: c.number()?,
            entries: c.number()?,
        })
    }

    fn workspaces(&mut self) -> Result<Vec<Workspace>, StorageError> {
        let sql =
            "SELECT workspace, name, created_at, max_memories_per_store FROM workspaces ORDER BY workspace";
        let found = self.session.query(sql, &[])?;
        Ok(found.iter().map(rows::workspace).collect::<Result<_, _>>()?)
    }

    fn keys(
        &mut self,
        after: Option<(WorkspaceId, KeyId)>,
        limit: usize,
    ) -> Result<Vec<KeyRecord>, StorageError> {
        let start = (WorkspaceId::from_bytes(NOTHING), KeyId::from_bytes(NOTHING));
        let (workspace, id) = after.unwrap_or(start);
        let sql = concat!(
            "SELECT ",
            key_columns!(),
            ", k.hash FROM api_keys k WHERE (k.workspace, k.id) > ($1, $2) ORDER BY k.workspace, k.id LIMIT $3"
        );
        let rows = self.session.query(sql, &[&Col(workspace), &Col(id), &signed(limit as u64)])?;
        let read = |row: &Row| -> Result<_, Fault> {
            let hash: Col<Sha256> = row.try_get(9)?;
            Ok(KeyRecord { key: rows::api_key(row)?, hash: KeyHash::from_bytes(*hash.0.as_bytes()) })
        };
        Ok(rows.iter().map(read).collect::<Result<_, _>>()?)
    }

    fn stores(&mut self, after: Option<StorePlace>, limit: usize) -> Result<Vec<Store>, StorageError> {
        let start = (WorkspaceId::from_bytes(NOTHING), StoreId::from_bytes(NOTHING));
        let (workspace, id) = after.unwrap_or(start);
        let sql = concat!(
            "SELECT ",
            store_columns!(),
            " FROM stores s WHERE s.deleted_at IS NULL AND (s.workspace, s.id) > ($1, $2) \
             ORDER BY s.workspace, s.id LIMIT $3"
        );
        let rows = self.session.query(sql, &[&Col(workspace), &Col(id), &signed(limit as u64)])?;
        let read = |row: &Row| rows::store(&mut Cursor::new(row));
        Ok(rows.iter().map(read).collect::<Result<_, _>>()?)
    }

    fn versions(
        &mut self,
        place: StorePlace,
        after: u64,
        limit: usize,
    ) -> Result<Vec<VersionRow>, StorageError> {
        let sql = concat!(
            "SELECT v.summary, v.reason, v.encoding, v.content, ",
            version_columns!(),
            " FROM versions v WHERE v.workspace = $1 AND v.store = $2 AND v.sequence > $3 \
             ORDER BY v.sequence LIMIT $4"
        );
        let (workspace, store) = (Col(place.0), Col(place.1));
        let rows = self.session.query(sql, &[&workspace, &store, &signed(after), &signed(limit as u64)])?;
        let read = |row: &Row| -> Result<_, Fault> {
            let c = &mut Cursor::new(row);
            let (summary, reason) = (c.summary()?, c.take()?);
            let (encoding, bytes) = (c.take::<Option<i16>>()?, c.take::<Option<Vec<u8>>>()?);
            let content = match (encoding.and_then(|encoding| u8::try_from(encoding).ok()), bytes) {
                (Some(encoding), Some(bytes)) => Some(Stored { encoding, bytes: Bytes::from(bytes) }),
                _ => None,
            };
            Ok(VersionRow { version: rows::version(c, place.1)?, summary, reason, content })
        };
        Ok(rows.iter().map(read).collect::<Result<_, _>>()?)
    }

    fn marks(&mut self, place: StorePlace, after: u64, limit: usize) -> Result<Vec<Mark>, StorageError> {
        let sql = concat!(
            "SELECT ",
            mark_columns!(),
            " FROM marks k WHERE k.workspace = $1 AND k.store = $2 AND k.sequence > $3 \
             ORDER BY k.sequence LIMIT $4"
        );
        let (workspace, store) = (Col(place.0), Col(place.1));
        let rows = self.session.query(sql, &[&workspace, &store, &signed(after), &signed(limit as u64)])?;
        Ok(rows.iter().map(|row| marks::mark(&mut Cursor::new(row))).collect::<Result<_, _>>()?)
    }

    fn memories(
        &mut self,
        place: StorePlace,
        after: Option<MemoryId>,
        limit: usize,
    ) -> Result<Vec<Memory>, StorageError> {
        let after = after.unwrap_or(MemoryId::from_bytes(NOTHING));
        let sql = concat!(
            "SELECT ",
            memory_columns!(),
            " FROM memories m WHERE m.workspace = $1 AND m.store = $2 AND m.id > $3 ORDER BY m.id LIMIT $4"
        );
        let (workspace, store) = (Col(place.0), Col(place.1));
        let rows = self.session.query(sql, &[&workspace, &store, &Col(after), &signed(limit as u64)])?;
        let read = |row: &Row| rows::memory(&mut Cursor::new(row), place.1);
        Ok(rows.iter().map(read).collect::<Result<_, _>>()?)
    }

    fn records(
        &mut self,
        after: Option<(WorkspaceId, Kind, RecordId)>,
        limit: usize,
    ) -> Result<Vec<Record>, StorageError> {
        let (workspace, kind, id) = after.unwrap_or((WorkspaceId::from_bytes(NOTHING), Kind(0), NOTHING));
        let sql = concat!(
            "SELECT ",
            record_columns!(),
            " FROM records r WHERE (r.workspace, r.kind, r.id) > ($1, $2, $3) \
             ORDER BY r.workspace, r.kind, r.id LIMIT $4"
        );
        let (kind, id, limit) = (i32::from(kind.0), Col(AnyId(id)), signed(limit as u64));
        let found = self.session.query(sql, &[&Col(workspace), &kind, &id, &limit])?;
        Ok(found.iter().map(rows::record).collect::<Result<_, _>>()?)
    }

    fn logs(&mut self, after: Option<LogPlace>, limit: usize) -> Result<Vec<Log>, StorageError> {
        let (workspace, id) = after.unwrap_or((WorkspaceId::from_bytes(NOTHING), NOTHING));
        let sql = "SELECT workspace, id, last FROM logs WHERE NOT dropped AND (workspace, id) > ($1, $2) \
                   ORDER BY workspace, id LIMIT $3";
        let found = self.session.query(sql, &[&Col(workspace), &Col(AnyId(id)), &signed(limit as u64)])?;
        let read = |row: &Row| -> Result<_, Fault> {
            let c = &mut Cursor::new(row);
            Ok(Log { place: (c.col()?, c.col::<AnyId>()?.0), last: c.number()? })
        };
        Ok(found.iter().map(read).collect::<Result<_, _>>()?)
    }

    fn entries(&mut self, place: LogPlace, after: u64, limit: usize) -> Result<Vec<Entry>, StorageError> {
        let sql = concat!(
            "SELECT ",
            entry_columns!(),
            " FROM entries e WHERE e.workspace = $1 AND e.log = $2 AND e.sequence > $3 ORDER BY e.sequence LIMIT $4"
        );
        let (workspace, log) = (Col(place.0), Col(AnyId(place.1)));
        let found = self.session.query(sql, &[&workspace, &log, &signed(after), &signed(limit as u64)])?;
        Ok(found.iter().map(rows::entry).collect::<Result<_, _>>()?)
    }

    fn redactions(
        &mut self,
        after: Option<RedactionPlace>,
        limit: usize,
    ) -> Result<Vec<RedactionRecord>, StorageError> {
        let Session { runtime, client } = &self.session;
        Ok(runtime.block_on(ledger::list(client, after, limit))?)
    }

    fn backups(&mut self) -> Result<Vec<BackupRecord>, StorageError> {
        let Session { runtime, client } = &self.session;
        let standings = runtime.block_on(ledger::backups(client))?;
        Ok(standings.into_iter().map(|standing| standing.record).collect())
    }
}
