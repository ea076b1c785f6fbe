//! Looking a database over, and rewriting it: for a data directory that no server holds.

use std::path::Path;

use rusqlite::{Connection, params};
use stele_core::hash::Sha256;
use stele_core::id::{MemoryId, StoreId, VersionId};
use stele_core::records::{Kind, RecordId, Tag};
use store_codec::decode_tags;

use crate::content::decode;
use crate::lock::lock;
use crate::open::{FILE, OpenError, open_writer};
use crate::rows::{Col, Sql};

/// Something that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Damage {
    /// SQLite's own check found this.
    Structure(String),
    /// The content of a version is not what its hash says.
    Content {
        /// The memory.
        memory: MemoryId,
        /// The version.
        version: VersionId,
    },
    /// A live memory's head is not a version of it that has the memory's hash and path.
    Head {
        /// The memory.
        memory: MemoryId,
    },
    /// A store's counters are not what its memories, versions and marks come to.
    Counters {
        /// The store.
        store: StoreId,
    },
    /// What a record can be found by is not what it says, or its bytes cannot be read.
    Record {
        /// The record.
        id: RecordId,
        /// Its kind.
        kind: Kind,
    },
    /// A log does not have all of its entries.
    Log {
        /// The log.
        log: RecordId,
    },
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Structure(what) => write!(f, "database structure: {what}"),
            Self::Content { memory, version } => {
                write!(f, "memory {memory}, version {version}: the content does not have its recorded hash")
            }
            Self::Head { memory } => write!(f, "memory {memory}: its head is missing or another one's"),
            Self::Counters { store } => write!(f, "store {store}: its counters do not equal its tables"),
            Self::Record { id, kind } => {
                let id = u128::from_be_bytes(*id);
                write!(f, "record {id:032x} of kind {}: its tags do not equal their table", kind.0)
            }
            Self::Log { log } => {
                write!(f, "log {:032x}: some of its entries are missing", u128::from_be_bytes(*log))
            }
        }
    }
}

/// Opens a data directory that no server holds.
pub(crate) fn open(data_dir: &Path) -> Result<(crate::lock::Locked, Connection), OpenError> {
    if !data_dir.join(FILE).exists() {
        return Err(OpenError::NoDatabase(data_dir.to_owned()));
    }
    let locked = lock(data_dir)?;
    let (connection, _) = open_writer(data_dir)?;
    Ok((locked, connection))
}

/// Compares structure, hashes, heads and counters; returns all that is damaged.
///
/// # Errors
/// The directory is in use or cannot be opened.
pub fn check(data_dir: &Path) -> Result<Vec<Damage>, OpenError> {
    let (_locked, connection) = open(data_dir)?;
    Ok(examine(&connection)?)
}

pub(crate) fn examine(connection: &Connection) -> Sql<Vec<Damage>> {
    let mut damage = structure(connection)?;
    damage.extend(contents(connection)?);
    damage.extend(heads(connection)?);
    damage.extend(counters(connection)?);
    damage.extend(records(connection)?);
    damage.extend(logs(connection)?);
    Ok(damage)
}

/// Rewrites the whole database, so that nothing once deleted or redacted is left in it, not even by accident.
///
/// # Errors
/// The directory is in use or cannot be opened, or the disk has no room for a second copy.
pub fn scrub(data_dir: &Path) -> Result<(), OpenError> {
    let (_locked, connection) = open(data_dir)?;
    connection.execute_batch("VACUUM")?;
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    Ok(())
}

pub(crate) fn structure(connection: &Connection) -> Sql<Vec<Damage>> {
    let mut statement = connection.prepare("PRAGMA integrity_check")?;
    let lines: Vec<String> = crate::rows::all(&mut statement, [], |row| row.get(0))?;
    Ok(lines.into_iter().filter(|line| line != "ok").map(Damage::Structure).collect())
}

fn contents(connection: &Connection) -> Sql<Vec<Damage>> {
    let mut statement = connection.prepare(
        "SELECT id, memory_id, encoding, size_bytes, content_sha256, content FROM versions \
         WHERE content_sha256 IS NOT NULL",
    )?;
    let mut damage = Vec::new();
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (Col(version), Col(memory)) = (row.get(0)?, row.get(1)?);
        let (encoding, size): (Option<u8>, u64) = (row.get(2)?, row.get(3)?);
        let sha256: Col<Sha256> = row.get(4)?;
        let whole =
            encoding.and_then(|encoding| Some(decode(encoding, row.get_ref(5).ok()?, size, sha256.0)));
        if whole.flatten().is_none() {
            damage.push(Damage::Content { memory, version });
        }
    }
    Ok(damage)
}

fn heads(connection: &Connection) -> Sql<Vec<Damage>> {
    let mut statement = connection.prepare(
        "SELECT m.id FROM memories m LEFT JOIN versions v ON v.version = m.head AND v.id = m.version_id \
         AND v.store = m.store AND v.memory_id = m.id AND v.path = m.path AND v.size_bytes = m.size_bytes \
         AND v.content_sha256 = m.content_sha256 WHERE v.version IS NULL",
    )?;
    crate::rows::all(&mut statement, [], |row| Ok(Damage::Head { memory: row.get::<_, Col<MemoryId>>(0)?.0 }))
}

fn counters(connection: &Connection) -> Sql<Vec<Damage>> {
    let mut statement = connection.prepare(
        "SELECT s.id FROM stores s \
         LEFT JOIN (SELECT store, count(*) n, sum(size_bytes) bytes FROM memories GROUP BY store) m ON m.store = s.store \
         LEFT JOIN (SELECT store, count(*) n, max(sequence) newest FROM versions WHERE store IS NOT NULL GROUP BY store) v ON v.store = s.store \
         WHERE s.deleted_at IS NULL AND (s.memories <> ifnull(m.n, 0) OR s.bytes <> ifnull(m.bytes, 0) \
         OR s.versions <> ifnull(v.n, 0) OR s.sequence < ifnull(v.newest, 0) OR s.sequence < s.floor \
         OR s.sequence - s.floor <> \
         (SELECT count(*) FROM versions f WHERE f.store = s.store AND f.sequence > s.floor) \
         + (SELECT count(*) FROM marks k WHERE k.store = s.id AND k.sequence > s.floor))",
    )?;
    crate::rows::all(&mut statement, [], |row| {
        Ok(Damage::Counters { store: row.get::<_, Col<StoreId>>(0)?.0 })
    })
}

fn records(connection: &Connection) -> Sql<Vec<Damage>> {
    let mut statement =
        connection.prepare("SELECT workspace, kind, id, created_at, tags, record FROM records")?;
    let mut tagged = connection.prepare(
        "SELECT name, value FROM record_tags WHERE workspace = ? AND kind = ? AND id = ? AND created_at = ? \
         AND record = ? AND name = ? AND value = ?",
    )?;
    let (mut damage, mut tags) = (Vec::new(), 0);
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (workspace, kind, id): ([u8; 16], u16, RecordId) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let (created_at, record): (i64, i64) = (row.get(3)?, row.get(5)?);
        let own = decode_tags(row.get_ref(4)?.as_bytes()?);
        let whole = match &own {
            Some(own) => own.iter().try_fold(true, |whole, Tag { name, value }| -> Sql<bool> {
                Ok(whole && tagged.exists(params![workspace, kind, id, created_at, record, name, value])?)
            })?,
            None => false,
        };
        let each_once: std::collections::BTreeSet<_> = own.into_iter().flatten().collect();
        tags += each_once.len() as u64;
        if !whole {
            damage.push(Damage::Record { id, kind: Kind(kind) });
        }
    }
    let strays = connection.query_row("SELECT count(*) FROM record_tags", [], |row| row.get::<_, u64>(0))?;
    if strays > tags {
        damage.push(Damage::Structure("tags of records that are not there".into()));
    }
    Ok(damage)
}

fn logs(connection: &Connection) -> Sql<Vec<Damage>> {
    let mut statement = connection.prepare(
        "SELECT l.id FROM logs l \
         LEFT JOIN (SELECT log, count(*) n, max(sequence) newest FROM entries GROUP BY log) e ON e.log = l.log \
         WHERE l.dropped = 0 AND (ifnull(e.n, 0) <> l.last OR ifnull(e.newest, 0) <> l.last)",
    )?;
    crate::rows::all(&mut statement, [], |row| Ok(Damage::Log { log: row.get(0)? }))
}
