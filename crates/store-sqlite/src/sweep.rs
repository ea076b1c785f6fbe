//! Housekeeping in slices of 5 ms on the writer thread: retention, and what deleted stores and dropped logs left.

use std::time::{Duration, Instant};

use rusqlite::{Connection, OptionalExtension, params};
use stele_core::id::MemoryId;
use stele_core::limits::Limits;
use stele_core::model::Operation;
use stele_core::retention::{Standing, cutoff, expired};
use stele_core::time::Timestamp;

use crate::fault::{Fault, Stop};
use crate::rows::{Col, Sql, operation_number};

/// How long one slice may hold the writer.
pub(crate) const SLICE: Duration = Duration::from_millis(5);
/// Old versions looked at in one read snapshot.
const LOOKED_AT: i64 = 2_000;
/// Rows deleted between two looks at the clock.
const STEP: i64 = 50;

/// One version that may have outlived its retention.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    created_at: i64,
    number: i64,
}

/// The next old versions behind `after`, oldest first; none at the end.
pub(crate) fn candidates(
    connection: &Connection,
    after: Option<Candidate>,
    now: Timestamp,
    limits: &Limits,
) -> Result<Vec<Candidate>, Fault> {
    let (time, number) = after.map_or((i64::MIN, 0), |c| (c.created_at, c.number));
    let mut statement = connection.prepare_cached(
        "SELECT created_at, version FROM versions WHERE created_at < ? AND (created_at, version) > (?, ?) \
         ORDER BY created_at, version LIMIT ?",
    )?;
    let read = |row: &rusqlite::Row<'_>| Ok(Candidate { created_at: row.get(0)?, number: row.get(1)? });
    let old = cutoff(now, limits).as_micros();
    Ok(crate::rows::all(&mut statement, params![old, time, number, LOOKED_AT], read)?)
}

/// Removes those of `candidates` that are still expired, as far as one slice reaches; returns how many were looked
/// at and how many removed.
pub(crate) fn remove(
    connection: &Connection,
    candidates: &[Candidate],
    now: Timestamp,
    limits: &Limits,
) -> Result<(usize, u64), Stop> {
    let began = Instant::now();
    let mut removed = 0;
    for (done, candidate) in candidates.iter().enumerate() {
        if done > 0 && began.elapsed() > SLICE {
            return Ok((done, removed));
        }
        if remove_one(connection, *candidate, now, limits)? {
            removed += 1;
        }
    }
    Ok((candidates.len(), removed))
}

fn remove_one(connection: &Connection, candidate: Candidate, now: Timestamp, limits: &Limits) -> Sql<bool> {
    let found: Option<(i64, Col<MemoryId>, i64, Col<Timestamp>)> = connection
        .prepare_cached(
            "SELECT store, memory_id, sequence, created_at FROM versions WHERE version = ? AND store IS NOT NULL \
             AND store NOT IN (SELECT store FROM temp.restoring)",
        )?
        .query_row([candidate.number], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))
        .optional()?;
    let Some((store, memory, sequence, Col(created_at))) = found else { return Ok(false) };
    let newer = connection
        .prepare_cached(
            "SELECT count(*) FROM (SELECT 1 FROM versions WHERE store = ? AND memory_id = ? AND sequence > ? LIMIT ?)",
        )?
        .query_row(params![store, memory, sequence, limits.versions_kept.max(1)], |row| row.get(0))?;
    let standing = Standing { created_at, newer, memory_deleted_at: deleted_at(connection, store, &memory)? };
    if !expired(standing, now, limits) {
        return Ok(false);
    }
    connection.prepare_cached(&husk("version = ?"))?.execute([candidate.number])?;
    connection
        .prepare_cached("UPDATE stores SET versions = versions - 1, floor = max(floor, ?) WHERE store = ?")?
        .execute([sequence, store])?;
    Ok(true)
}

/// Removes marks that are older than versions are kept, as far as one slice reaches; true once none is left.
pub(crate) fn remove_marks(connection: &Connection, now: Timestamp, limits: &Limits) -> Result<bool, Stop> {
    let began = Instant::now();
    let old = cutoff(now, limits).as_micros();
    while began.elapsed() < SLICE {
        let newest: Vec<(i64, Vec<u8>, i64)> = crate::rows::all(
            &mut *connection.prepare_cached(
                "SELECT mark, store, sequence FROM marks WHERE created_at < ? AND store NOT IN (SELECT s.id \
                 FROM temp.restoring r JOIN stores s ON s.store = r.store) ORDER BY created_at LIMIT ?",
            )?,
            params![old, STEP],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )?;
        if newest.is_empty() {
            return Ok(true);
        }
        for (mark, store, sequence) in newest {
            connection
                .prepare_cached("UPDATE stores SET floor = max(floor, ?) WHERE id = ?")?
                .execute(params![sequence, store])?;
            connection.prepare_cached("DELETE FROM marks WHERE mark = ?")?.execute([mark])?;
        }
    }
    Ok(false)
}

/// When the memory was deleted: the time of its newest version, if that is a deletion.
fn deleted_at(connection: &Connection, store: i64, memory: &Col<MemoryId>) -> Sql<Option<Timestamp>> {
    let newest: Option<(i64, Col<Timestamp>)> = connection
        .prepare_cached(
            "SELECT operation, created_at FROM versions WHERE store = ? AND memory_id = ? \
             ORDER BY sequence DESC LIMIT 1",
        )?
        .query_row(params![store, memory], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let deleted = newest.filter(|(operation, _)| *operation == operation_number(Operation::Deleted));
    Ok(deleted.map(|(_, Col(at))| at))
}

/// The statement that turns versions into husks.
pub(crate) fn husk(condition: &str) -> String {
    format!(
        "UPDATE versions SET store = NULL, sequence = NULL, id = NULL, memory_id = NULL, operation = NULL, \
         created_at = NULL, author_kind = NULL, author = NULL, redacted_at = NULL, redacted_by_kind = NULL, \
         redacted_by = NULL, content_sha256 = NULL, size_bytes = NULL, path = NULL, summary = NULL, \
         reason = NULL, encoding = NULL, content = NULL WHERE {condition}"
    )
}

/// What one slice of a purge did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purge {
    /// There is nothing deleted.
    Nothing,
    /// Some of a store or log is gone; more is left.
    Some,
    /// All of one is gone.
    All,
}

/// Removes a slice of a deleted store.
pub(crate) fn purge(connection: &Connection) -> Result<Purge, Stop> {
    let began = Instant::now();
    let deleted: Option<i64> = connection
        .prepare_cached(
            "SELECT store FROM stores WHERE deleted_at IS NOT NULL AND store NOT IN (SELECT store FROM temp.restoring) \
             LIMIT 1",
        )?
        .query_row([], |row| row.get(0))
        .optional()?;
    let Some(store) = deleted else { return Ok(Purge::Nothing) };
    let steps = [
        "DELETE FROM memories WHERE memory IN (SELECT memory FROM memories WHERE store = ? LIMIT ?)"
            .to_owned(),
        husk("version IN (SELECT version FROM versions WHERE store = ? LIMIT ?)"),
        // The mark of its deletion stays for those who follow it, until retention removes that.
        "DELETE FROM marks WHERE mark IN (SELECT mark FROM marks WHERE kind <> 3 \
         AND store = (SELECT id FROM stores WHERE store = ?) LIMIT ?)"
            .to_owned(),
    ];
    for step in steps {
        let mut statement = connection.prepare_cached(&step)?;
        while statement.execute(params![store, STEP])? > 0 {
            if began.elapsed() > SLICE {
                return Ok(Purge::Some);
            }
        }
    }
    connection.prepare_cached("DELETE FROM stores WHERE store = ?")?.execute([store])?;
    Ok(Purge::All)
}

/// Removes a slice of a dropped log.
pub(crate) fn purge_log(connection: &Connection) -> Result<Purge, Stop> {
    let began = Instant::now();
    let dropped: Option<i64> = connection
        .prepare_cached("SELECT log FROM logs WHERE dropped = 1 LIMIT 1")?
        .query_row([], |row| row.get(0))
        .optional()?;
    let Some(log) = dropped else { return Ok(Purge::Nothing) };
    let mut statement = connection.prepare_cached(
        "DELETE FROM entries WHERE entry IN (SELECT entry FROM entries WHERE log = ? ORDER BY sequence LIMIT ?)",
    )?;
    while statement.execute(params![log, STEP])? > 0 {
        if began.elapsed() > SLICE {
            return Ok(Purge::Some);
        }
    }
    connection.prepare_cached("DELETE FROM logs WHERE log = ?")?.execute([log])?;
    Ok(Purge::All)
}
