//! Rows to domain types and back.

use std::error::Error;

use bytes::{Bytes, BytesMut};
use stele_core::access::{Grant, Permissions, Role};
use stele_core::hash::Sha256;
use stele_core::id::{
    AgentId, BackupId, Epoch, KeyId, MemoryId, OrganizationId, ServiceAccountId, SessionId, StoreId, UserId,
    VersionId, WorkspaceId,
};
use stele_core::key::{ApiKey, Contract};
use stele_core::model::{Actor, Counters, Memory, Operation, Origin, Recorded, Redaction, Store, Version};
use stele_core::path::MemoryPath;
use stele_core::records::{Entry, Kind, Record};
use stele_core::storage::Workspace;
use stele_core::text::{Description, Metadata, Name, Summary};
use stele_core::time::Timestamp;
use store_codec::decode_tags;
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

use crate::fault::Fault;

/// A domain type in a column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Col<T>(pub(crate) T);

type Any = Box<dyn Error + Sync + Send>;

macro_rules! bytes_column {
    ($type:ident, $length:literal: $($name:ident)*) => {$(
        impl<'a> FromSql<'a> for Col<$name> {
            fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Any> {
                Ok(Col($name::from_bytes(<[u8; $length]>::try_from(raw)?)))
            }
            fn accepts(column: &Type) -> bool {
                *column == Type::$type
            }
        }
        impl ToSql for Col<$name> {
            fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Any> {
                out.extend_from_slice(self.0.as_bytes());
                Ok(IsNull::No)
            }
            fn accepts(column: &Type) -> bool {
                *column == Type::$type
            }
            to_sql_checked!();
        }
    )*};
}

/// Sixteen bytes that are the id of something.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AnyId(pub(crate) [u8; 16]);

impl AnyId {
    const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

bytes_column!(UUID, 16: AnyId Epoch OrganizationId WorkspaceId StoreId MemoryId VersionId KeyId AgentId BackupId);
bytes_column!(BYTEA, 32: Sha256);

/// A number of things, as PostgreSQL counts: no store has as many as a signed number cannot hold.
pub(crate) fn signed(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// The stored number of an operation; never reused, the same in every back end.
pub(crate) fn operation_number(operation: Operation) -> i16 {
    match operation {
        Operation::Created => 1,
        Operation::Updated => 2,
        Operation::Renamed => 3,
        Operation::Deleted => 4,
        Operation::Recreated => 5,
    }
}

/// The stored number of an origin.
pub(crate) fn origin_number(origin: Origin) -> i16 {
    i16::from(origin == Origin::Reflection)
}

/// The two columns of an actor: kind and id.
pub(crate) fn actor_columns(actor: Actor) -> (i16, Col<AnyId>) {
    let (kind, id) = match actor {
        Actor::ApiKey(id) => (1, *id.as_bytes()),
        Actor::Session(id) => (2, *id.as_bytes()),
        Actor::User(id) => (3, *id.as_bytes()),
        Actor::ServiceAccount(id) => (4, *id.as_bytes()),
    };
    (kind, Col(AnyId(id)))
}

/// The actor in two columns.
pub(crate) fn actor(kind: i16, Col(AnyId(id)): Col<AnyId>) -> Result<Actor, Fault> {
    match kind {
        1 => Ok(Actor::ApiKey(KeyId::from_bytes(id))),
        2 => Ok(Actor::Session(SessionId::from_bytes(id))),
        3 => Ok(Actor::User(UserId::from_bytes(id))),
        4 => Ok(Actor::ServiceAccount(ServiceAccountId::from_bytes(id))),
        other => Err(Fault::Damaged(format!("with author kind {other}"))),
    }
}

/// Reads columns from left to right.
pub(crate) struct Cursor<'r> {
    row: &'r Row,
    at: usize,
}

impl<'r> Cursor<'r> {
    pub(crate) fn new(row: &'r Row) -> Self {
        Self { row, at: 0 }
    }

    pub(crate) fn take<T: FromSql<'r>>(&mut self) -> Result<T, Fault> {
        self.at += 1;
        Ok(self.row.try_get(self.at - 1)?)
    }

    pub(crate) fn col<T>(&mut self) -> Result<T, Fault>
    where
        Col<T>: FromSql<'r>,
    {
        self.take::<Col<T>>().map(|col| col.0)
    }

    pub(crate) fn maybe<T>(&mut self) -> Result<Option<T>, Fault>
    where
        Col<T>: FromSql<'r>,
    {
        Ok(self.take::<Option<Col<T>>>()?.map(|col| col.0))
    }

    pub(crate) fn number(&mut self) -> Result<u64, Fault> {
        let number = self.take::<i64>()?;
        u64::try_from(number).map_err(|_| Fault::Damaged(format!("with the count {number}")))
    }

    pub(crate) fn time(&mut self) -> Result<Timestamp, Fault> {
        self.take().map(Timestamp::from_micros)
    }

    pub(crate) fn maybe_time(&mut self) -> Result<Option<Timestamp>, Fault> {
        Ok(self.take::<Option<i64>>()?.map(Timestamp::from_micros))
    }

    pub(crate) fn summary(&mut self) -> Result<Option<Summary>, Fault> {
        Ok(self.take::<Option<String>>()?.map(Summary::from_trusted))
    }

    pub(crate) fn path(&mut self) -> Result<MemoryPath, Fault> {
        self.take().map(MemoryPath::from_trusted)
    }
}

/// A store in the columns of `store_columns!`.
pub(crate) fn store(c: &mut Cursor<'_>) -> Result<Store, Fault> {
    Ok(Store {
        id: c.col()?,
        workspace: c.col()?,
        name: Name::from_trusted(c.take()?),
        slug: c.take()?,
        description: Description::from_trusted(c.take()?),
        metadata: metadata(c.take()?)?,
        origin: match c.take::<i16>()? {
            0 => Origin::Curated,
            1 => Origin::Reflection,
            other => return Err(Fault::Damaged(format!("with origin {other}"))),
        },
        agent: c.maybe()?,
        created_by: actor(c.take()?, c.take()?)?,
        created_at: c.time()?,
        updated_at: c.time()?,
        changed_at: c.time()?,
        archived_at: c.maybe_time()?,
        counters: Counters {
            sequence: c.number()?,
            floor: c.number()?,
            memories: c.number()?,
            bytes: c.number()?,
            versions: c.number()?,
        },
    })
}

fn metadata(text: &str) -> Result<Metadata, Fault> {
    let pairs =
        serde_json::from_str(text).map_err(|error| Fault::Damaged(format!("of metadata: {error}")))?;
    Ok(Metadata::from_trusted(pairs))
}

/// Metadata as stored.
pub(crate) fn metadata_column(metadata: &Metadata) -> String {
    serde_json::to_string(metadata.pairs()).expect("a map of texts is always JSON")
}

/// A memory of `store` in the columns of `memory_columns!`.
pub(crate) fn memory(c: &mut Cursor<'_>, store: StoreId) -> Result<Memory, Fault> {
    Ok(Memory {
        id: c.col()?,
        store,
        path: c.path()?,
        version: c.col()?,
        content_sha256: c.col()?,
        size_bytes: c.number()?,
        created_at: c.time()?,
        updated_at: c.time()?,
    })
}

/// A version of `store` in the columns of `version_columns!`.
pub(crate) fn version(c: &mut Cursor<'_>, store: StoreId) -> Result<Version, Fault> {
    let (id, memory, sequence): (VersionId, _, _) = (c.col()?, c.col()?, c.number()?);
    let number = c.take::<i16>()?;
    let operation = Operation::ALL.into_iter().find(|operation| operation_number(*operation) == number);
    let operation = operation.ok_or_else(|| Fault::Damaged(format!("{id}, with operation {number}")))?;
    let (created_at, author) = (c.time()?, actor(c.take()?, c.take()?)?);
    let redaction = match (c.maybe_time()?, c.take::<Option<i16>>()?, c.take::<Option<Col<AnyId>>>()?) {
        (Some(at), Some(kind), Some(by)) => Some(Redaction { at, by: actor(kind, by)? }),
        _ => None,
    };
    let recorded = match (c.maybe()?, c.take::<Option<i64>>()?) {
        (Some(content_sha256), Some(size)) => {
            Some(Recorded { content_sha256, size_bytes: size.unsigned_abs() })
        }
        _ => None,
    };
    let path = c.take::<Option<String>>()?.map(MemoryPath::from_trusted);
    Ok(Version { id, store, memory, sequence, operation, created_at, author, path, recorded, redaction })
}

/// A workspace: id, name, time and cap.
pub(crate) fn workspace(row: &Row) -> Result<Workspace, Fault> {
    let c = &mut Cursor::new(row);
    Ok(Workspace {
        id: c.col()?,
        name: Name::from_trusted(c.take()?),
        created_at: c.time()?,
        max_memories_per_store: c.take::<Option<i64>>()?.map(i64::unsigned_abs),
    })
}

/// A key in the columns of `key_columns!`.
pub(crate) fn api_key(row: &Row) -> Result<ApiKey, Fault> {
    let c = &mut Cursor::new(row);
    let (id, workspace, name) = (c.col()?, c.col()?, Name::from_trusted(c.take()?));
    let role: Option<String> = c.take()?;
    let permissions = Permissions::from_bits(u8::try_from(c.take::<i16>()?).unwrap_or(0));
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
        contract: Contract::parse(c.take()?).unwrap_or_default(),
        created_at: c.time()?,
        expires_at: c.maybe_time()?,
        revoked_at: c.maybe_time()?,
    })
}

/// A record in the columns of `record_columns!`.
pub(crate) fn record(row: &Row) -> Result<Record, Fault> {
    let c = &mut Cursor::new(row);
    let (workspace, kind, id) = (c.col()?, kind(c.take()?)?, c.col::<AnyId>()?.0);
    Ok(Record {
        workspace,
        kind,
        id,
        revision: c.number()?,
        created_at: c.time()?,
        due_at: c.maybe_time()?,
        key: c.maybe::<Sha256>()?.map(|hash| *hash.as_bytes()),
        tags: decode_tags(c.take()?)
            .ok_or_else(|| Fault::Damaged(format!("of kind {}, in its tags", kind.0)))?,
        body: Bytes::copy_from_slice(c.take()?),
    })
}

fn kind(number: i32) -> Result<Kind, Fault> {
    u16::try_from(number).map(Kind).map_err(|_| Fault::Damaged(format!("with kind {number}")))
}

/// An entry in the columns of `entry_columns!`.
pub(crate) fn entry(row: &Row) -> Result<Entry, Fault> {
    let c = &mut Cursor::new(row);
    Ok(Entry {
        sequence: c.number()?,
        id: c.col::<AnyId>()?.0,
        at: c.time()?,
        kind: c.take()?,
        body: Bytes::copy_from_slice(c.take()?),
    })
}
