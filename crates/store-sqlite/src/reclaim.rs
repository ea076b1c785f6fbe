//! Giving back the space of husks: what retention and deleted stores left in the log of versions.
//!
//! Only the old end of the log is reclaimed. Where at least half of the next stretch is husks, the living rows in it
//! are moved to the new end; then the husks are deleted, but for a margin wide enough that no page with text in it is
//! touched when SQLite joins emptied pages with their neighbours.

use std::time::Instant;

use rusqlite::{Connection, params};

use crate::fault::Stop;
use crate::rows::Sql;
use crate::sweep::{SLICE, husk};

/// Rows judged at once.
const STRETCH: i64 = 1_000;
/// Husks that stay between a living row and the nearest deleted one. A page holds at most about 160 husks, and
/// joining pages concerns a page and its two neighbours.
const MARGIN: i64 = 1_000;
/// Husks deleted between two looks at the clock.
const STEP: i64 = 100;

const COLUMNS: &str = "store, sequence, id, memory_id, operation, created_at, author_kind, author, redacted_at, \
     redacted_by_kind, redacted_by, content_sha256, size_bytes, path, summary, reason, encoding, content";

/// How far the log is reclaimed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    /// All rows up to this one are husks.
    husks_to: i64,
    /// There is nothing more to do now.
    pub(crate) done: bool,
}

/// One slice.
pub(crate) fn reclaim(connection: &Connection, mut progress: Progress) -> Result<Progress, Stop> {
    let began = Instant::now();
    while !progress.done && began.elapsed() < SLICE {
        let stretch = Stretch::after(connection, progress.husks_to)?;
        if stretch.is_worth_it() {
            progress.husks_to = stretch.clear(connection, progress.husks_to, began)?;
        } else {
            progress.done = delete_husks(connection, progress.husks_to, began)?;
        }
    }
    Ok(progress)
}

/// The next rows of the log.
struct Stretch {
    rows: i64,
    living: i64,
    last: i64,
}

impl Stretch {
    fn after(connection: &Connection, number: i64) -> Sql<Self> {
        connection
            .prepare_cached(
                "SELECT count(*), count(store), ifnull(max(version), 0) FROM \
                 (SELECT version, store FROM versions WHERE version > ? ORDER BY version LIMIT ?)",
            )?
            .query_row([number, STRETCH], |row| {
                Ok(Self { rows: row.get(0)?, living: row.get(1)?, last: row.get(2)? })
            })
    }

    /// The newest rows are left alone: they would only be moved onto themselves.
    fn is_worth_it(&self) -> bool {
        self.rows == STRETCH && self.living * 2 <= self.rows
    }

    /// Moves the living rows away, as far as the slice reaches; returns up to where all are husks.
    fn clear(&self, connection: &Connection, from: i64, began: Instant) -> Sql<i64> {
        let mut next = connection.prepare_cached(
            "SELECT version FROM versions WHERE version > ? AND version <= ? AND store IS NOT NULL \
             ORDER BY version LIMIT 1",
        )?;
        let mut at = from;
        loop {
            let mut found = next.query([at, self.last])?;
            let Some(living) = found.next()?.map(|row| row.get(0)).transpose()? else { return Ok(self.last) };
            drop(found);
            if began.elapsed() > SLICE && at > from {
                return Ok(at);
            }
            relocate(connection, living)?;
            at = living;
        }
    }
}

/// Moves one row to the new end of the log.
fn relocate(connection: &Connection, number: i64) -> Sql<()> {
    let values: Vec<rusqlite::types::Value> = connection
        .prepare_cached(&format!("SELECT {COLUMNS} FROM versions WHERE version = ?"))?
        .query_row([number], |row| {
            (0..row.as_ref().column_count()).map(|column| row.get(column)).collect()
        })?;
    connection.prepare_cached(&husk("version = ?"))?.execute([number])?;
    let marks = vec!["?"; values.len()].join(", ");
    connection
        .prepare_cached(&format!("INSERT INTO versions ({COLUMNS}) VALUES ({marks})"))?
        .execute(rusqlite::params_from_iter(&values))?;
    let moved = connection.last_insert_rowid();
    connection
        .prepare_cached(
            "UPDATE memories SET head = ? WHERE head = ? AND id = (SELECT memory_id FROM versions WHERE version = ?)",
        )?
        .execute([moved, number, moved])?;
    Ok(())
}

/// Deletes husks at the old end up to the margin; true once none is left.
fn delete_husks(connection: &Connection, husks_to: i64, began: Instant) -> Sql<bool> {
    // By row numbers, not by counting: numbers only grow, so at least so many rows lie between.
    let mut delete = connection.prepare_cached(
        "DELETE FROM versions WHERE version IN (SELECT version FROM versions WHERE version < \
         (SELECT min(version) FROM (SELECT version FROM versions WHERE version <= ?1 ORDER BY version DESC LIMIT ?2)) \
         ORDER BY version LIMIT ?3)",
    )?;
    while delete.execute(params![husks_to, MARGIN, STEP])? > 0 {
        if began.elapsed() > SLICE {
            return Ok(false);
        }
    }
    Ok(true)
}
