//! Filling an empty database from elsewhere, by COPY, in one transaction: it is there whole, or nothing of it.

use std::collections::{BTreeSet, HashMap};
use std::pin::pin;

use stele_core::access::Grant;
use stele_core::backup::{BackupRecord, RedactionRecord};
use stele_core::command::RedactedPath;
use stele_core::dump::{Load, Log, LogPlace, StorePlace, VersionRow};
use stele_core::id::VersionId;
use stele_core::model::{Mark, Memory, Store};
use stele_core::records::{Entry, Record};
use stele_core::storage::{Installation, KeyRecord, StorageError, Workspace};
use store_codec::encode_tags;
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::{ToSql, Type};

use crate::dump::Session;
use crate::fault::Fault;
use crate::marks::kind_columns;
use crate::migrate;
use crate::open::OpenError;
use crate::rows::{AnyId, Col, actor_columns, metadata_column, operation_number, origin_number, signed};
use crate::url::Url;

/// A database to be filled.
pub struct PostgresLoad {
    session: Session,
    /// Sequences of the versions of the store at hand: heads are kept by them.
    sequences: (Option<StorePlace>, HashMap<VersionId, u64>),
}

type Columns = Vec<Box<dyn ToSql + Sync + Send>>;

macro_rules! columns {
    ($($value:expr),* $(,)?) => {
        vec![$(Box::new($value) as Box<dyn ToSql + Sync + Send>),*]
    };
}

impl PostgresLoad {
    /// Prepares a database that has nothing of ours in it, or only empty tables.
    ///
    /// # Errors
    /// It cannot be reached, or is not empty.
    pub fn open(url: &Url) -> Result<Self, OpenError> {
        let mut session = Session::open(url)?;
        session.runtime.block_on(migrate::run(&mut session.client))?;
        let lock = "BEGIN; LOCK TABLE installation, workspaces, stores IN EXCLUSIVE MODE";
        session.runtime.block_on(session.client.batch_execute(lock))?;
        let sql = "SELECT EXISTS (SELECT 1 FROM installation) OR EXISTS (SELECT 1 FROM workspaces) \
                   OR EXISTS (SELECT 1 FROM stores)";
        if session.runtime.block_on(session.client.query_one(sql, &[]))?.try_get(0)? {
            return Err(OpenError::NotEmpty(url.to_string()));
        }
        Ok(Self { session, sequences: (None, HashMap::new()) })
    }

    /// Sends rows by COPY.
    fn copy(
        &self,
        into: &str,
        types: &[Type],
        rows: impl Iterator<Item = Result<Columns, StorageError>>,
    ) -> Result<(), StorageError> {
        let sending = async {
            let sink = self.session.client.copy_in(&format!("COPY {into} FROM STDIN BINARY")).await;
            let mut writer = pin!(BinaryCopyInWriter::new(sink.map_err(Fault::from)?, types));
            for row in rows {
                let row = row?;
                let columns: Vec<&(dyn ToSql + Sync)> = row.iter().map(|column| &**column as _).collect();
                writer.as_mut().write(&columns).await.map_err(Fault::from)?;
            }
            writer.finish().await.map_err(Fault::from)?;
            Ok(())
        };
        self.session.runtime.block_on(sending)
    }
}

impl Load for PostgresLoad {
    fn workspaces(&mut self, rows: &[Workspace]) -> Result<(), StorageError> {
        let types = [Type::UUID, Type::TEXT, Type::INT8, Type::INT8];
        let columns = rows.iter().map(|row| {
            Ok(columns![
                Col(row.id),
                row.name.as_str().to_owned(),
                row.created_at.as_micros(),
                row.max_memories_per_store.map(signed),
            ])
        });
        self.copy("workspaces (workspace, name, created_at, max_memories_per_store)", &types, columns)
    }

    fn keys(&mut self, rows: &[KeyRecord]) -> Result<(), StorageError> {
        let types = [
            Type::UUID,
            Type::UUID,
            Type::BYTEA,
            Type::TEXT,
            Type::TEXT,
            Type::INT2,
            Type::TEXT,
            Type::INT8,
            Type::INT8,
            Type::INT8,
        ];
        let columns = rows.iter().map(|KeyRecord { key, hash }| {
            let role = match key.grant {
                Grant::Role(role) => Some(role.as_str().to_owned()),
                Grant::Permissions(_) => None,
            };
            Ok(columns![
                Col(key.workspace),
                Col(key.id),
                hash.as_bytes().to_vec(),
                key.name.as_str().to_owned(),
                role,
                i16::from(key.grant.permissions().bits()),
                key.contract.as_str().to_owned(),
                key.created_at.as_micros(),
                key.expires_at.map(|at| at.as_micros()),
                key.revoked_at.map(|at| at.as_micros()),
            ])
        });
        let into = "api_keys (workspace, id, hash, name, role, permissions, contract, created_at, expires_at, \
                    revoked_at)";
        self.copy(into, &types, columns)
    }

    fn stores(&mut self, rows: &[Store]) -> Result<(), StorageError> {
        let (id, text, small, big) = (Type::UUID, Type::TEXT, Type::INT2, Type::INT8);
        let types = [
            &id, &id, &text, &text, &text, &text, &small, &id, &small, &id, &big, &big, &big, &big, &big,
            &big, &big, &big, &big,
        ]
        .map(Clone::clone);
        let columns = rows.iter().map(|store| {
            let (kind, by) = actor_columns(store.created_by);
            Ok(columns![
                Col(store.workspace),
                Col(store.id),
                store.name.as_str().to_owned(),
                store.slug.clone(),
                store.description.as_str().to_owned(),
                metadata_column(&store.metadata),
                origin_number(store.origin),
                store.agent.map(Col),
                kind,
                by,
                store.created_at.as_micros(),
                store.updated_at.as_micros(),
                store.changed_at.as_micros(),
                store.archived_at.map(|at| at.as_micros()),
                signed(store.counters.sequence),
                signed(store.counters.floor),
                signed(store.counters.memories),
                signed(store.counters.bytes),
                signed(store.counters.versions),
            ])
        });
        let into = "stores (workspace, id, name, slug, description, metadata, origin, agent, created_by_kind, \
                    created_by, created_at, updated_at, changed_at, archived_at, sequence, floor, memories, \
                    bytes, versions)";
        self.copy(into, &types, columns)
    }

    fn versions(&mut self, place: StorePlace, rows: &[VersionRow]) -> Result<(), StorageError> {
        if self.sequences.0 != Some(place) {
            self.sequences = (Some(place), HashMap::new());
        }
        self.sequences.1.extend(rows.iter().map(|row| (row.version.id, row.version.sequence)));
        let (id, text, small, big, bytes) = (Type::UUID, Type::TEXT, Type::INT2, Type::INT8, Type::BYTEA);
        let types = [
            &id, &id, &big, &id, &id, &small, &big, &small, &id, &big, &small, &id, &bytes, &big, &text,
            &text, &text, &small, &bytes,
        ]
        .map(Clone::clone);
        let columns = rows.iter().map(|row| {
            let version = &row.version;
            let (kind, author) = actor_columns(version.author);
            let redaction = version.redaction.map(|redaction| (redaction.at, actor_columns(redaction.by)));
            Ok(columns![
                Col(place.0),
                Col(place.1),
                signed(version.sequence),
                Col(version.id),
                Col(version.memory),
                operation_number(version.operation),
                version.created_at.as_micros(),
                kind,
                author,
                redaction.map(|(at, _)| at.as_micros()),
                redaction.map(|(_, (kind, _))| kind),
                redaction.map(|(_, (_, by))| by),
                version.recorded.as_ref().map(|recorded| Col(recorded.content_sha256)),
                version.recorded.as_ref().map(|recorded| signed(recorded.size_bytes)),
                version.path.as_ref().map(|path| path.as_str().to_owned()),
                row.summary.as_ref().map(|summary| summary.as_str().to_owned()),
                row.reason.clone(),
                row.content.as_ref().map(|content| i16::from(content.encoding)),
                row.content.as_ref().map(|content| content.bytes.to_vec()),
            ])
        });
        let into = "versions (workspace, store, sequence, id, memory_id, operation, created_at, author_kind, author, \
                    redacted_at, redacted_by_kind, redacted_by, content_sha256, size_bytes, path, summary, reason, \
                    encoding, content)";
        self.copy(into, &types, columns)
    }

    fn marks(&mut self, place: StorePlace, rows: &[Mark]) -> Result<(), StorageError> {
        let (id, small, big) = (Type::UUID, Type::INT2, Type::INT8);
        let types = [&id, &id, &big, &small, &id, &id, &big, &small, &id].map(Clone::clone);
        let columns = rows.iter().map(|mark| {
            let (kind, memory, version) = kind_columns(mark.kind);
            let (author_kind, author) = actor_columns(mark.author);
            Ok(columns![
                Col(place.0),
                Col(place.1),
                signed(mark.sequence),
                kind,
                memory,
                version,
                mark.created_at.as_micros(),
                author_kind,
                author,
            ])
        });
        let into = "marks (workspace, store, sequence, kind, memory_id, version_id, created_at, author_kind, author)";
        self.copy(into, &types, columns)
    }

    fn memories(&mut self, place: StorePlace, rows: &[Memory]) -> Result<(), StorageError> {
        let types = [
            Type::UUID,
            Type::UUID,
            Type::UUID,
            Type::TEXT,
            Type::INT8,
            Type::UUID,
            Type::BYTEA,
            Type::INT8,
            Type::INT8,
            Type::INT8,
        ];
        let columns = rows.iter().map(|memory| {
            let damaged = || StorageError::Corrupt(format!("{} of memory {}", memory.version, memory.id));
            let head = *self.sequences.1.get(&memory.version).ok_or_else(damaged)?;
            Ok(columns![
                Col(place.0),
                Col(place.1),
                Col(memory.id),
                memory.path.as_str().to_owned(),
                signed(head),
                Col(memory.version),
                Col(memory.content_sha256),
                signed(memory.size_bytes),
                memory.created_at.as_micros(),
                memory.updated_at.as_micros(),
            ])
        });
        let into = "memories (workspace, store, id, path, head, version_id, content_sha256, size_bytes, created_at, \
                    updated_at)";
        self.copy(into, &types, columns)
    }

    fn records(&mut self, rows: &[Record]) -> Result<(), StorageError> {
        let (id, int, big, bytes) = (Type::UUID, Type::INT4, Type::INT8, Type::BYTEA);
        let types = [&id, &int, &id, &big, &big, &big, &bytes, &bytes, &bytes].map(Clone::clone);
        let columns = rows.iter().map(|record| {
            Ok(columns![
                Col(record.workspace),
                i32::from(record.kind.0),
                Col(AnyId(record.id)),
                signed(record.revision),
                record.created_at.as_micros(),
                record.due_at.map(|at| at.as_micros()),
                record.key.map(|key| key.to_vec()),
                encode_tags(&record.tags),
                record.body.to_vec(),
            ])
        });
        let into = "records (workspace, kind, id, revision, created_at, due_at, key, tags, body)";
        self.copy(into, &types, columns)?;
        let types = [&id, &int, &id, &int, &bytes, &big].map(Clone::clone);
        let columns = rows.iter().flat_map(|record| {
            let each_once: BTreeSet<_> = record.tags.iter().collect();
            each_once.into_iter().map(|tag| {
                Ok(columns![
                    Col(record.workspace),
                    i32::from(record.kind.0),
                    Col(AnyId(record.id)),
                    i32::from(tag.name),
                    tag.value.clone(),
                    record.created_at.as_micros(),
                ])
            })
        });
        self.copy("record_tags (workspace, kind, id, name, value, created_at)", &types, columns)
    }

    fn logs(&mut self, rows: &[Log]) -> Result<(), StorageError> {
        let types = [Type::UUID, Type::UUID, Type::INT8];
        let columns = rows.iter().map(|log| {
            let (workspace, id) = log.place;
            Ok(columns![Col(workspace), Col(AnyId(id)), signed(log.last)])
        });
        self.copy("logs (workspace, id, last)", &types, columns)
    }

    fn entries(&mut self, (workspace, log): LogPlace, rows: &[Entry]) -> Result<(), StorageError> {
        let types = [Type::UUID, Type::UUID, Type::INT8, Type::UUID, Type::INT8, Type::TEXT, Type::BYTEA];
        let columns = rows.iter().map(|entry| {
            Ok(columns![
                Col(workspace),
                Col(AnyId(log)),
                signed(entry.sequence),
                Col(AnyId(entry.id)),
                entry.at.as_micros(),
                entry.kind.clone(),
                entry.body.to_vec(),
            ])
        });
        self.copy("entries (workspace, log, sequence, id, at, kind, body)", &types, columns)
    }

    fn redactions(&mut self, rows: &[RedactionRecord]) -> Result<(), StorageError> {
        let (id, small, big) = (Type::UUID, Type::INT2, Type::INT8);
        let types = [&id, &id, &id, &big, &big, &small, &id, &Type::BOOL].map(Clone::clone);
        let columns = rows.iter().map(|row| {
            let (kind, by) = actor_columns(row.redaction.by);
            Ok(columns![
                Col(row.workspace),
                Col(row.store),
                Col(row.version),
                row.written_at.as_micros(),
                row.redaction.at.as_micros(),
                kind,
                by,
                row.path == RedactedPath::Scrub,
            ])
        });
        let into = "redactions (workspace, store, version, written_at, redacted_at, redacted_by_kind, redacted_by, \
                    path_scrubbed)";
        self.copy(into, &types, columns)
    }

    fn backups(&mut self, rows: &[BackupRecord]) -> Result<(), StorageError> {
        let (text, big) = (Type::TEXT, Type::INT8);
        let types = [&Type::UUID, &text, &text, &big, &big, &big, &big, &big].map(Clone::clone);
        let columns = rows.iter().map(|row| {
            Ok(columns![
                Col(row.id),
                row.host.clone(),
                row.path.clone(),
                row.made_at.as_micros(),
                row.newest_at.map(|at| at.as_micros()),
                signed(row.redactions),
                signed(row.versions),
                signed(row.bytes),
            ])
        });
        self.copy(
            "backups (id, host, path, made_at, newest_at, redactions, versions, bytes)",
            &types,
            columns,
        )
    }

    fn finish(self: Box<Self>, installation: Installation) -> Result<(), StorageError> {
        let statement =
            "INSERT INTO installation (one, organization, first_workspace, epoch) VALUES (1, $1, $2, $3)";
        let (organization, first) = (Col(installation.organization), Col(installation.first_workspace));
        let epoch = Col(installation.epoch);
        let inserting =
            async { self.session.client.execute(statement, &[&organization, &first, &epoch]).await };
        self.session.runtime.block_on(inserting).map_err(Fault::from)?;
        // Plans made from now on know how much there is.
        let analyze = "ANALYZE workspaces, api_keys, stores, memories, versions, marks, records, record_tags, \
                       logs, entries";
        self.session.run(&format!("COMMIT; {analyze}"))?;
        Ok(())
    }
}
