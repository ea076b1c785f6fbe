//! Zeroing what SQLite leaves between a page's cell pointers and its cells.
//!
//! `secure_delete` zeroes freed cells and freed pages, but not the gap of a page that is rebuilt when its cells move
//! to a neighbour (`rebuildPage` in btree.c): copies of them stay in it, and a later redaction of theirs could not
//! reach these. So before the log is merged into the database the pages in it are looked through, and gaps that are
//! not zero are rewritten. Whatever leaves the log is clean then, and nothing else changes pages.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rusqlite::{Connection, params};

use crate::rows::Sql;

/// Bytes before the first frame of the log, and before the page in each frame: sqlite.org/walformat.html.
const LOG_HEADER: u64 = 32;
const FRAME_HEADER: u64 = 24;
/// From this page number on, an overflow page (which starts with the number of the next one) could look like a page
/// of cells: with 4 kB pages that is a database of 128 GB.
const TOO_MANY_PAGES: u32 = 0x0200_0000;

/// Clears the gaps of the pages that the frames `from` to `to` of the log hold.
pub(crate) fn clear(connection: &Connection, log: &Path, from: u64, to: u64) -> Sql<()> {
    if from >= to {
        return Ok(());
    }
    let pages = pages(log, from, to).map_err(unreadable)?;
    if pages.last().is_none_or(|last| *last >= TOO_MANY_PAGES) {
        return Ok(());
    }
    connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
    let cleared = clear_pages(connection, &pages);
    let end = if cleared.is_ok() { "COMMIT" } else { "ROLLBACK" };
    connection.prepare_cached(end)?.execute([])?;
    cleared
}

fn unreadable(error: io::Error) -> rusqlite::Error {
    let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_IOERR_READ);
    rusqlite::Error::SqliteFailure(code, Some(format!("the log cannot be read: {error}")))
}

fn pages(log: &Path, from: u64, to: u64) -> io::Result<BTreeSet<u32>> {
    let file = File::open(log)?;
    let mut size = [0; 4];
    file.read_exact_at(&mut size, 8)?;
    let frame_bytes = FRAME_HEADER + u64::from(u32::from_be_bytes(size));
    let page = |frame| {
        let mut number = [0; 4];
        file.read_exact_at(&mut number, LOG_HEADER + frame * frame_bytes)?;
        Ok(u32::from_be_bytes(number))
    };
    (from..to).map(page).collect()
}

fn clear_pages(connection: &Connection, pages: &BTreeSet<u32>) -> Sql<()> {
    let mut read = connection.prepare_cached("SELECT data FROM sqlite_dbpage WHERE pgno = ?")?;
    let mut write = connection.prepare_cached("UPDATE sqlite_dbpage SET data = ? WHERE pgno = ?")?;
    for page in pages {
        let mut found = read.query([page])?;
        // A page that is beyond the end again was given back.
        let Some(row) = found.next()? else { continue };
        let mut data: Vec<u8> = row.get(0)?;
        drop(found);
        if clear_gap(&mut data, if *page == 1 { 100 } else { 0 }) {
            write.execute(params![data, page])?;
        }
    }
    Ok(())
}

/// Zeroes the gap of a page of cells whose header starts at `at`; true if there was something in it.
fn clear_gap(data: &mut [u8], at: usize) -> bool {
    let header = match data[at] {
        2 | 5 => 12,
        10 | 13 => 8,
        _ => return false,
    };
    let word = |at: usize| usize::from(u16::from_be_bytes([data[at], data[at + 1]]));
    let from = at + header + 2 * word(at + 3);
    let to = match word(at + 5) {
        0 => 65_536,
        to => to,
    };
    let Some(gap) = data.get_mut(from..to) else { return false };
    let dirty = gap.iter().any(|byte| *byte != 0);
    gap.fill(0);
    dirty
}
