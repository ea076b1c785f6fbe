//! Rows to domain types and back.

use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use rusqlite::{Row, Statement};
use stele_core::access::{Grant, Permissions, Role};
use stele_core::hash::Sha256;
use stele_core::id::{
    AgentId, BackupId, Epoch, KeyId, MemoryId, OrganizationId, ServiceAccountId, SessionId, StoreId, UserId,
    VersionId, WorkspaceId,
};
use stele_core::key::{ApiKey, Contract};
use stele_core::model::{Actor, Counters, Memory, Operation, Origin, Recorded, Redaction, Store, Version};
use stele_core::path::MemoryPath;
use stele_core::storage::Workspace;
use stele_core::text::{Description, Metadata, Name, Summary};
use stele_core::time::Timestamp;

pub(crate) type Sql<T> = rusqlite::Result<T>;

/// A domain type in a column.
pub(crate) struct Col<T>(pub(crate) T);

macro_rules! blob {
    ($($name:ident)*) => {$(
        impl FromSql for Col<$name> {
            fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
                <[u8; 16]>::column_result(value).map(|bytes| Col($name::from_bytes(bytes)))
            }
        }
        impl ToSql for Col<$name> {
            fn to_sql(&self) -> Sql<ToSqlOutput<'_>> {
                Ok(ToSqlOutput::Borrowed(ValueRef::Blob(self.0.as_bytes())))
            }
        }
    )*};
}

blob!(OrganizationId WorkspaceId StoreId MemoryId VersionId KeyId AgentId BackupId Epoch);

impl FromSql for Col<Sha256> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        <[u8; 32]>::column_result(value).map(|bytes| Col(Sha256::from_bytes(bytes)))
    }
}

impl ToSql for Col<Sha256> {
    fn to_sql(&self) -> Sql<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(ValueRef::Blob(self.0.as_bytes())))
    }
}

impl FromSql for Col<Timestamp> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        value.as_i64().map(|micros| Col(Timestamp::from_micros(micros)))
    }
}

impl ToSql for Col<Timestamp> {
    fn to_sql(&self) -> Sql<ToSqlOutput<'_>> {
        Ok(self.0.as_micros().into())
    }
}

impl FromSql for Col<Operation> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let number = value.as_i64()?;
        let operation = Operation::ALL.into_iter().find(|o| operation_number(*o) == number);
        operation.map(Col).ok_or(FromSqlError::OutOfRange(number))
    }
}

impl ToSql for Col<Operation> {
    fn to_sql(&self) -> Sql<ToSqlOutput<'_>> {
        Ok(operation_number(self.0).into())
    }
}

/// The stored number of an operation; never reused.
pub(crate) fn operation_number(operation: Operation) -> i64 {
    match operation {
        Operation::Created => 1,
        Operation::Updated => 2,
        Operation::Renamed => 3,
        Operation::Deleted => 4,
        Operation::Recreated => 5,
    }
}

impl FromSql for Col<Origin> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        match value.as_i64()? {
            0 => Ok(Col(Origin::Curated)),
            1 => Ok(Col(Origin::Reflection)),
            other => Err(FromSqlError::OutOfRange(other)),
        }
    }
}

impl ToSql for Col<Origin> {
    fn to_sql(&self) -> Sql<ToSqlOutput<'_>> {
        Ok(i64::from(self.0 == Origin::Reflection).into())
    }
}

/// The two columns of an actor: kind and id.
pub(crate) fn actor_columns(actor: Actor) -> (i64, [u8; 16]) {
    match actor {
        Actor::ApiKey(id) => (1, *id.as_bytes()),
        Actor::Session(id) => (2, *id.as_bytes()),
        Actor::User(id) => (3, *id.as_bytes()),
        Actor::ServiceAccount(id) => (4, *id.as_bytes()),
    }
}

/// The actor in two columns.
pub(crate) fn actor(kind: i64, id: [u8; 16]) -> Sql<Actor> {
    match kind {
        1 => Ok(Actor::ApiKey(KeyId::from_bytes(id))),
        2 => Ok(Actor::Session(SessionId::from_bytes(id))),
        3 => Ok(Actor::User(UserId::from_bytes(id))),
        4 => Ok(Actor::ServiceAccount(ServiceAccountId::from_bytes(id))),
        other => Err(FromSqlError::OutOfRange(other).into()),
    }
}

/// Reads columns from left to right.
pub(crate) struct Cursor<'r, 's> {
    row: &'r Row<'s>,
    at: usize,
}

impl<'r, 's> Cursor<'r, 's> {
    pub(crate) fn new(row: &'r Row<'s>) -> Self {
        Self { row, at: 0 }
    }

    pub(crate) fn take<T: FromSql>(&mut self) -> Sql<T> {
        self.at += 1;
        self.row.get(self.at - 1)
    }

    pub(crate) fn col<T>(&mut self) -> Sql<T>
    where
        Col<T>: FromSql,
    {
        self.take::<Col<T>>().map(|col| col.0)
    }

    pub(crate) fn maybe<T>(&mut self) -> Sql<Option<T>>
    where
        Col<T>: FromSql,
    {
        Ok(self.take::<Option<Col<T>>>()?.map(|col| col.0))
    }

    pub(crate) fn value(&mut self) -> Sql<ValueRef<'r>> {
        self.at += 1;
        self.row.get_ref(self.at - 1)
    }
}

/// Columns that [`store`] reads.
pub(crate) const STORE: &str = "s.store, s.id, s.workspace, s.name, s.slug, s.description, s.metadata, s.origin, \
     s.agent, s.created_by_kind, s.created_by, s.created_at, s.updated_at, s.changed_at, s.archived_at, \
     s.sequence, s.floor, s.memories, s.bytes, s.versions";

/// A store and its row number.
pub(crate) fn store(row: &Row<'_>) -> Sql<(i64, Store)> {
    let c = &mut Cursor::new(row);
    let number = c.take()?;
    let store = Store {
        id: c.col()?,
        workspace: c.col()?,
        name: Name::from_trusted(c.take()?),
        slug: c.take()?,
        description: Description::from_trusted(c.take()?),
        metadata: metadata(c.value()?)?,
        origin: c.col()?,
        agent: c.maybe()?,
        created_by: actor(c.take()?, c.take()?)?,
        created_at: c.col()?,
        updated_at: c.col()?,
        changed_at: c.col()?,
        archived_at: c.maybe()?,
        counters: Counters {
            sequence: c.take()?,
            floor: c.take()?,
            memories: c.take()?,
            bytes: c.take()?,
            versions: c.take()?,
        },
    };
    Ok((number, store))
}

fn metadata(value: ValueRef<'_>) -> Sql<Metadata> {
    let pairs = serde_json::from_slice(value.as_bytes()?).map_err(|e| FromSqlError::Other(Box::new(e)))?;
    Ok(Metadata::from_trusted(pairs))
}

/// Metadata as stored.
pub(crate) fn metadata_column(metadata: &Metadata) -> String {
    serde_json::to_string(metadata.pairs()).expect("a map of texts is always JSON")
}

/// Columns that [`memory`] reads.
pub(crate) const MEMORY: &str =
    "m.id, m.path, m.version_id, m.content_sha256, m.size_bytes, m.created_at, m.updated_at, m.head";

/// A memory of `store`, and the row number of its head.
pub(crate) fn memory(c: &mut Cursor<'_, '_>, store: StoreId) -> Sql<(Memory, i64)> {
    let memory = Memory {
        id: c.col()?,
        store,
        path: MemoryPath::from_trusted(c.take()?),
        version: c.col()?,
        content_sha256: c.col()?,
        size_bytes: c.take()?,
        created_at: c.col()?,
        updated_at: c.col()?,
    };
    Ok((memory, c.take()?))
}

/// Columns that [`version`] reads.
pub(crate) const VERSION: &str = "v.id, v.memory_id, v.sequence, v.operation, v.created_at, v.author_kind, \
     v.author, v.redacted_at, v.redacted_by_kind, v.redacted_by, v.content_sha256, v.size_bytes, v.path";

/// A version of `store`.
pub(crate) fn version(c: &mut Cursor<'_, '_>, store: StoreId) -> Sql<Version> {
    let (id, memory, sequence, operation, created_at) = (c.col()?, c.col()?, c.take()?, c.col()?, c.col()?);
    let author = actor(c.take()?, c.take()?)?;
    let redacted: (Option<Timestamp>, Option<i64>, Option<[u8; 16]>) = (c.maybe()?, c.take()?, c.take()?);
    let redaction = match redacted {
        (Some(at), Some(kind), Some(by)) => Some(Redaction { at, by: actor(kind, by)? }),
        _ => None,
    };
    let recorded = match (c.maybe()?, c.take()?) {
        (Some(content_sha256), Some(size_bytes)) => Some(Recorded { content_sha256, size_bytes }),
        _ => None,
    };
    let path = c.take::<Option<String>>()?.map(MemoryPath::from_trusted);
    Ok(Version { id, store, memory, sequence, operation, created_at, author, path, recorded, redaction })
}

/// A summary in a column.
pub(crate) fn summary(c: &mut Cursor<'_, '_>) -> Sql<Option<Summary>> {
    Ok(c.take::<Option<String>>()?.map(Summary::from_trusted))
}

/// Columns that [`api_key`] reads.
pub(crate) const API_KEY: &str =
    "id, workspace, name, role, permissions, contract, created_at, expires_at, revoked_at";

/// A key.
pub(crate) fn api_key(row: &Row<'_>) -> Sql<ApiKey> {
    let c = &mut Cursor::new(row);
    let (id, workspace, name) = (c.col()?, c.col()?, Name::from_trusted(c.take()?));
    let role: Option<String> = c.take()?;
    let permissions = Permissions::from_bits(c.take()?);
    let grant = match role {
        // An unknown role allows nothing rather than something.
        Some(name) => Role::parse(&name).map_or(Grant::Permissions(Permissions::default()), Grant::Role),
        None => Grant::Permissions(permissions),
    };
    Ok(ApiKey {
        id,
        workspace,
        name,
        grant,
        contract: Contract::parse(&c.take::<String>()?).unwrap_or_default(),
        created_at: c.col()?,
        expires_at: c.maybe()?,
        revoked_at: c.maybe()?,
    })
}

/// Columns that [`workspace`] reads.
pub(crate) const WORKSPACE: &str = "id, name, created_at, max_memories_per_store";

/// A workspace.
pub(crate) fn workspace(row: &Row<'_>) -> Sql<Workspace> {
    let c = &mut Cursor::new(row);
    Ok(Workspace {
        id: c.col()?,
        name: Name::from_trusted(c.take()?),
        created_at: c.col()?,
        max_memories_per_store: c.take()?,
    })
}

/// All rows of a query.
pub(crate) fn all<T>(
    statement: &mut Statement<'_>,
    parameters: impl rusqlite::Params,
    read: impl FnMut(&Row<'_>) -> Sql<T>,
) -> Sql<Vec<T>> {
    statement.query_map(parameters, read)?.collect()
}
